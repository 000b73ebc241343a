//! What goes with a program to whoever gets it: the licences of the crates in it, since most of them
//! allow copies only together with their text and the names of their authors.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::fs::{read, read_dir};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{needed, refusal};
use crate::metadata::{self, Package};
use crate::step::{cargo, output_of};

const HEAD: &str = "\
The crates that are in this program, each with its licence and the texts that come with it. The texts
follow by their numbers, each once. Where a crate may be used under one licence or another, the texts
of all of them are here.
";

/// How names of files with such texts begin.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "UNLICENSE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
];
/// Directories in which every file is one.
const DIRECTORIES: [&str; 2] = ["LICENSES", "LICENCES"];
/// Kinds of file that are something else, whatever their name.
const OTHER_KINDS: [&str; 9] = ["c", "h", "html", "json", "png", "py", "rs", "svg", "toml"];
/// Parts of a crate that are in no program.
const NOT_LINKED: [&str; 7] = [
    "assets", "bench", "benches", "doc", "docs", "examples", "tests",
];

/// A crate in a program.
struct Linked {
    name: String,
    version: String,
    /// By SPDX.
    licence: String,
    authors: Vec<String>,
    texts: Vec<Text>,
}

/// A licence or a notice.
struct Text {
    /// Its file, from the crate's directory.
    name: String,
    text: String,
}

/// Writes the licences of a program to `file`: of the packages and features of the workspace of
/// `manifest` that `cargo tree` selects with these arguments.
///
/// Errors: a crate has a licence that is not allowed, or neither a text nor a licence whose text is
/// known.
pub fn write(file: &str, manifest: &str, selection: &[&str]) -> Result<()> {
    // What makes code for the compiler alone is not in the program.
    let edges = ["--edges", "normal,no-proc-macro"];
    let tree = output_of(
        cargo()
            .args(["tree", "--locked", "--manifest-path", manifest])
            .args(["--prefix", "none", "--format", "{p}"])
            .args(edges)
            .args(selection),
    )?;
    let names = names_in(&tree);
    let packages = metadata::read_of(manifest)?.packages;
    let is_linked = |package: &&Package| {
        // Of ours the licence is the program's own.
        package.source.is_some() && names.contains(&(&package.name, &package.version))
    };
    let mut crates = packages
        .iter()
        .filter(is_linked)
        .map(linked)
        .collect::<Result<Vec<Linked>>>()?;
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    std::fs::write(file, document(&crates)?).with_context(|| file.to_owned())?;
    println!("{} crates", crates.len());
    Ok(())
}

/// Names and versions in lines like `serde v1.0.0 (*)`.
fn names_in(tree: &str) -> BTreeSet<(&str, &str)> {
    tree.lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or(rest)))
        .collect()
}

fn linked(package: &Package) -> Result<Linked> {
    if let Some(refusal) = refusal(package) {
        bail!(refusal);
    }
    let root = package
        .manifest_path
        .parent()
        .context("a manifest lies in no directory")?;
    let mut files = BTreeSet::new();
    find(root, false, &mut files)?;
    files.extend(package.license_file.iter().map(|file| root.join(file)));
    let text = |path: &PathBuf| {
        let bytes = read(path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(root).unwrap_or(path);
        anyhow::Ok(Text {
            name: name.display().to_string(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    };
    Ok(Linked {
        name: package.name.clone(),
        version: package.version.clone(),
        licence: package.license.clone().unwrap_or_default(),
        authors: package.authors.clone(),
        texts: files.iter().map(text).collect::<Result<_>>()?,
    })
}

/// Files with licences and notices in a directory and below, of the C sources that a crate brings along,
/// too.
fn find(directory: &Path, is_all: bool, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let entries = read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !entry.file_type()?.is_dir() {
            if is_all || is_text(&name) {
                files.insert(entry.path());
            }
        } else if !NOT_LINKED.contains(&name.as_str()) {
            let is_all = DIRECTORIES.contains(&name.to_uppercase().as_str());
            find(&entry.path(), is_all, files)?;
        }
    }
    Ok(())
}

fn is_text(name: &str) -> bool {
    let is_other = name
        .rsplit_once('.')
        .is_some_and(|(_, kind)| OTHER_KINDS.contains(&kind));
    let name = name.to_uppercase();
    !is_other && NAMES.iter().any(|begin| name.starts_with(begin))
}

/// The list of crates, and every text once.
fn document(crates: &[Linked]) -> Result<String> {
    let (mut list, mut texts) = (HEAD.to_owned(), Texts::default());
    for each in crates {
        writeln!(list, "\n{} {}: {}", each.name, each.version, each.licence)?;
        for Text { name, text } in &each.texts {
            writeln!(list, "    [{}] {name}", texts.number_of(text))?;
        }
        if !each.texts.is_empty() {
            continue;
        }
        if !each.authors.is_empty() {
            writeln!(list, "    by {}", each.authors.join(", "))?;
        }
        let needed = needed(&each.licence).with_context(|| each.name.clone())?;
        if needed.is_empty() {
            bail!("{}: neither a text nor a licence", each.name);
        }
        for licence in needed {
            let number = texts.number_of(licence.text());
            let name = licence.name;
            writeln!(
                list,
                "    [{number}] it brings no text, so the common one of {name}"
            )?;
        }
    }
    Ok(list + &texts.written)
}

/// Texts by numbers.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    written: String,
}

impl Texts {
    /// A text's number, under which it is written if it was not yet. Where lines break does not matter.
    fn number_of(&mut self, text: &str) -> usize {
        let words: Vec<&str> = text.split_whitespace().collect();
        let next = self.numbers.len() + 1;
        *self.numbers.entry(words.join(" ")).or_insert_with(|| {
            self.written += &format!("\n---- [{next}]\n\n");
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            self.written += lines.join("\n").trim_matches('\n');
            self.written += "\n";
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn linked(name: &str, licence: &str, texts: &[(&str, &str)]) -> Linked {
        let text = |(name, text): &(&str, &str)| Text {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        };
        Linked {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            authors: vec!["Somebody".to_owned()],
            texts: texts.iter().map(text).collect(),
        }
    }

    #[test]
    fn a_text_is_written_once_wherever_its_lines_break() {
        let crates = [
            linked("a", "MIT", &[("LICENSE", "Copyright A\r\n\r\nYou may.\n")]),
            linked("b", "MIT", &[("COPYING", "Copyright A You\nmay.")]),
            linked("c", "MIT", &[("LICENSE", "Copyright C\n\nYou may.\n")]),
        ];
        let written = document(&crates).expect("a document");
        let list = "\na 1.0.0: MIT\n    [1] LICENSE\n\nb 1.0.0: MIT\n    [1] COPYING\n\n\
                    c 1.0.0: MIT\n    [2] LICENSE\n";
        let texts =
            "\n---- [1]\n\nCopyright A\n\nYou may.\n\n---- [2]\n\nCopyright C\n\nYou may.\n";
        assert_eq!(written, [HEAD, list, texts].concat());
    }

    #[test]
    fn a_crate_without_a_text_has_its_authors_and_the_common_text_of_one_licence() {
        let written = document(&[linked("a", "MIT OR Apache-2.0", &[])]).expect("a document");
        let entry = "\na 1.0.0: MIT OR Apache-2.0\n    by Somebody\n    \
                     [1] it brings no text, so the common one of Apache-2.0\n";
        assert!(written.contains(entry), "{written}");
        assert!(written.contains("Grant of Patent License"), "{written}");
        assert!(!written.contains("Permission is hereby granted"));
    }

    #[test]
    fn a_crate_without_a_text_and_a_known_licence_is_an_error() {
        let error = |licence| match document(&[linked("a", licence, &[])]) {
            Ok(written) => written,
            Err(error) => format!("{error:#}"),
        };
        assert!(error("LicenseRef-own").starts_with("a: licence LicenseRef-own"));
        assert!(error("").starts_with("a: "));
    }

    #[test]
    fn texts_are_found_by_their_names_those_of_sources_in_other_languages_too() {
        let root = tempfile::tempdir().expect("a directory");
        for name in [
            "LICENSE-MIT",
            "Licence.txt",
            "src/license.rs",
            "src/lib.rs",
            "zstd/COPYING",
            "LICENSES/BSD.txt",
            "tests/LICENSE",
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("below the root")).expect("a directory");
            fs::write(path, "text").expect("a file");
        }
        let mut files = BTreeSet::new();
        find(root.path(), false, &mut files).expect("the files");
        let names: Vec<_> = files
            .iter()
            .filter_map(|path| path.strip_prefix(root.path()).ok()?.to_str())
            .collect();
        assert_eq!(
            names,
            [
                "LICENSE-MIT",
                "LICENSES/BSD.txt",
                "Licence.txt",
                "zstd/COPYING"
            ]
        );
    }

    #[test]
    fn crates_are_read_from_a_tree() {
        let tree = "a v1.0.0\nb-c v2.1.0+v1 (*)\n\na v1.0.0\n";
        assert_eq!(
            names_in(tree).into_iter().collect::<Vec<_>>(),
            [("a", "1.0.0"), ("b-c", "2.1.0+v1")]
        );
    }
}

//! The pages of `docs/contributing`, followed step by step.
//!
//! What a page names is there; and in a copy of the tree a page's code makes what it promises. A
//! block that names a file is that file, a block of `diff` changes one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::step::{cargo, output_of, root, run};
use crate::tidy::tree;

const PAGES: &str = "docs/contributing";

/// blktrace's text of one write, for the new format.
const TEXT: &str = "  8,0    0        1     0.000000001  9  Q   W 2048 + 8 [sh]
  8,0    0        2     0.000000002  9  D   W 2048 + 8 [sh]
  8,0    0        3     0.000000003  9  C   W 2048 + 8 [0]
";
const IMAGE_BYTES: u64 = 8 << 20;

/// Fails where a page names what is not there, or changes lines that are not.
pub fn check() -> Result<()> {
    changed().map(drop)
}

/// The same, and what the changed copy makes: everything of ours is built a second time.
pub fn build() -> Result<()> {
    changed()?.try_out()
}

fn changed() -> Result<Copy> {
    let entries = fs::read_dir(root().join(PAGES)).context(PAGES)?;
    for entry in entries {
        let page = entry?.path();
        let text = fs::read_to_string(&page)?;
        let missing = missing(&text, |path| fs::read_to_string(root().join(path)).ok());
        ensure!(
            missing.is_empty(),
            "{}:\n{}",
            page.display(),
            missing.join("\n")
        );
    }
    let copy = Copy::make()?;
    for page in ["lab.md", "export-format.md"] {
        copy.follow(page)
            .with_context(|| format!("{PAGES}/{page}"))?;
    }
    Ok(copy)
}

/// What the tables of a page name and the tree has not: files, and the words after them in these.
fn missing(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut missing = Vec::new();
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let columns: Vec<&str> = row.split('|').collect();
        let [_, _, files, words, _] = columns[..] else {
            missing.push(format!("{row}: not three columns"));
            continue;
        };
        let mut texts = String::new();
        for file in quoted(files) {
            match read(file) {
                Some(text) => texts.push_str(&text),
                None => missing.push(format!("{file}: there is no such file")),
            }
        }
        let unknown = quoted(words).filter(|word| !texts.contains(word));
        missing.extend(unknown.map(|word| format!("{}: no {word} there", files.trim())));
    }
    missing
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A page's blocks of code: what stands behind the fence, and the code.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some((indent, info)) = line.split_once("```") else {
            continue;
        };
        let code = lines.by_ref().take_while(|line| line.trim() != "```");
        let code = code.map(|line| line.strip_prefix(indent).unwrap_or(line));
        blocks.push((info, code.map(|line| format!("{line}\n")).collect()));
    }
    blocks
}

/// A copy of the tree.
struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make() -> Result<Copy> {
        let target = crate::metadata::read()?.target_directory;
        let tree = target.join("contributing");
        let _ = fs::remove_dir_all(&tree);
        for path in tree::files()? {
            let to = tree.join(&path);
            fs::create_dir_all(to.parent().unwrap_or(&tree))?;
            fs::copy(root().join(&path), &to).with_context(|| path.clone())?;
            // Cargo builds what is younger than what it built before.
            let time = fs::metadata(root().join(&path))?.modified()?;
            fs::File::options()
                .append(true)
                .open(&to)?
                .set_modified(time)?;
        }
        let target = target.join("contributing-target");
        Ok(Copy { tree, target })
    }

    fn follow(&self, page: &str) -> Result<()> {
        let page = fs::read_to_string(root().join(PAGES).join(page))?;
        for (info, code) in blocks(&page) {
            match info.split_once(' ') {
                Some((_, file)) => {
                    let file = self.tree.join(file);
                    ensure!(!file.exists(), "{}: there already", file.display());
                    fs::write(file, code)?;
                }
                None if info == "diff" => self.change(&code)?,
                None => bail!("a block of {info:?} says no file"),
            }
        }
        Ok(())
    }

    /// Where the lines around a change are tells its place, not their numbers.
    fn change(&self, diff: &str) -> Result<()> {
        let file = self.tree.join("change.diff");
        fs::write(&file, diff)?;
        let mut git = Command::new("git");
        git.args(["apply", "--recount", "change.diff"]);
        // Not of the repository around it.
        git.current_dir(&self.tree).env(
            "GIT_CEILING_DIRECTORIES",
            self.tree.parent().unwrap_or(root()),
        );
        let applied = run(&mut git).with_context(|| diff.to_owned());
        fs::remove_file(file)?;
        applied
    }

    /// Builds the command, apart from the tree's: cargo takes a package of the copy for the tree's.
    fn build(&self) -> Result<PathBuf> {
        let mut cargo = cargo();
        cargo.args(["build", "--package=iostep", "--locked", "--quiet"]);
        run(cargo
            .current_dir(&self.tree)
            .arg("--target-dir")
            .arg(&self.target))?;
        Ok(self.target.join("debug/iostep"))
    }

    fn try_out(&self) -> Result<()> {
        let iostep = self.build()?;
        let listed = output_of(Command::new(&iostep).args(["lab", "list"]))?;
        ensure!(listed.contains("sync-calls "), "iostep lab list:\n{listed}");
        let cells = output_of(Command::new(&iostep).args(["lab", "list", "sync-calls"]))?;
        ensure!(cells.lines().count() == 4, "not four cells:\n{cells}");
        let log = self.exported(&iostep)?;
        let does = log.split_once(' ').map_or("", |(_, rest)| rest);
        ensure!(
            does.contains(" write 1048576 4096\n"),
            "--format iolog:\n{log}"
        );
        Ok(())
    }

    /// What the new format makes of [`TEXT`].
    fn exported(&self, iostep: &Path) -> Result<String> {
        let (text, image) = (self.tree.join("text"), self.tree.join("image"));
        let trace = self.tree.join("trace");
        fs::write(&text, TEXT)?;
        fs::File::create(&image)?.set_len(IMAGE_BYTES)?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(&image)
            .stdout(Stdio::null()))?;
        let mut import = Command::new(iostep);
        import
            .arg("import")
            .arg(&text)
            .arg("--image")
            .arg(&image)
            .arg("-o")
            .arg(&trace);
        output_of(&mut import)?;
        let mut report = Command::new(iostep);
        output_of(
            report
                .arg("report")
                .arg(&trace)
                .args(["--allow-loss", "--format", "iolog"]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_table_names_and_the_tree_has_not_is_told() {
        let read = |path: &str| (path == "a.rs").then(|| "fn known() {}".to_owned());
        let page = "| step | in | as there |\n|---|---|---|\n| 1 | `a.rs` | `known` |\n";
        assert_eq!(missing(page, read), [""; 0]);
        let page = "| 1 | `a.rs` | `unknown` |\n| 2 | `b.rs` | |\n| 3 |\n";
        let expected = [
            "`a.rs`: no unknown there",
            "b.rs: there is no such file",
            "| 3 |: not three columns",
        ];
        assert_eq!(missing(page, read), expected);
    }

    #[test]
    fn blocks_lose_the_indentation_of_their_step() {
        let page =
            "1. a\n\n   ```rust a.rs\n   fn a() {\n       b()\n\n   }\n   ```\n```diff\n+x\n```\n";
        let expected = [
            ("rust a.rs", "fn a() {\n    b()\n\n}\n".to_owned()),
            ("diff", "+x\n".to_owned()),
        ];
        assert_eq!(blocks(page), expected);
    }
}

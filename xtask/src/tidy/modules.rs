//! Which module of a crate may know which: none its own user, and none another's inside.
//!
//! A circle is a chain of modules below one parent that comes back to where it began. A parent and
//! its children may know each other, and tests may know everything. What is written is followed:
//! imports and paths, through the names that a parent hands out; a method call names no module.

mod graph;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Finding;
use super::tree::Source;
use graph::circles;

/// The names from the crate's root to a module.
type Path = Vec<String>;

/// A module, with what it says of others.
#[derive(Default)]
struct Module {
    /// Where it stands. Modules within one file are one to this rule: the file's.
    file: String,
    home: Path,
    /// Declared `pub mod`: a part of what its parent offers.
    is_open: bool,
    /// Names that it imports, with their paths.
    imports: BTreeMap<String, Path>,
    /// Every path in it, with its line, from 1.
    uses: Vec<(Path, usize)>,
}

/// The modules of a crate that are no tests.
type Crate = BTreeMap<Path, Module>;

/// Where a module names another one.
struct Use<'a> {
    from: &'a Module,
    to: &'a Module,
    line: usize,
}

/// Names every circle and every way into another's inside.
pub fn check(sources: &[Source], findings: &mut Vec<Finding>) -> Result<()> {
    let texts: BTreeMap<&str, &str> = sources
        .iter()
        .map(|source| (source.path.as_str(), source.text.as_str()))
        .collect();
    for root in texts.keys() {
        let (directory, name) = root.rsplit_once('/').unwrap_or(("", root));
        let is_tool = directory.split('/').any(|part| part == "src");
        if !is_tool || !matches!(name, "lib.rs" | "main.rs") {
            continue;
        }
        let modules = paths::read(directory, root, &texts)?;
        let facts = judge(&modules);
        findings.extend(facts.into_iter().map(|fact| format!("{directory}: {fact}")));
    }
    Ok(())
}

/// What is wrong in a crate: a line that says what, then where.
fn judge(modules: &Crate) -> Vec<String> {
    let mut siblings: BTreeMap<&[String], BTreeMap<(&str, &str), Use>> = BTreeMap::new();
    let mut insides: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in uses(modules) {
        let (from, to) = (&one.from.home, &one.to.home);
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let (Some(a), Some(b)) = (from.get(common), to.get(common)) else {
            continue;
        };
        if let Some(closed) = closed_part(modules, to, common + 1) {
            let owner = to[..=common].join("::");
            let fact = format!("{} is {owner}'s own", closed.join("::"));
            let place = format!("\n    {}:{}", one.from.file, one.line);
            insides.entry(fact).or_default().insert(place);
        }
        let ties = siblings.entry(&from[..common]).or_default();
        ties.entry((a, b)).or_insert(one);
    }
    let mut facts: Vec<String> = insides
        .into_iter()
        .map(|(fact, places)| fact + &places.into_iter().collect::<String>())
        .collect();
    for (parent, ties) in siblings {
        facts.extend(
            circles(&ties)
                .iter()
                .map(|circle| tell(parent, &ties, circle)),
        );
    }
    facts
}

/// The first module on the way to `to`, below the first `open` names, that its parent does not offer.
fn closed_part<'a>(modules: &Crate, to: &'a [String], open: usize) -> Option<&'a [String]> {
    let mut parts = (open + 1..=to.len()).map(|end| &to[..end]);
    parts.find(|part| modules.get(*part).is_some_and(|module| !module.is_open))
}

fn tell(parent: &[String], ties: &BTreeMap<(&str, &str), Use>, circle: &BTreeSet<&str>) -> String {
    let parent = match parent {
        [] => "crate".to_owned(),
        names => names.join("::"),
    };
    let names: Vec<&str> = circle.iter().copied().collect();
    let inside = ties
        .iter()
        .filter(|((a, b), _)| circle.contains(a) && circle.contains(b))
        .map(|((a, b), one)| format!("\n    {a} uses {b}: {}:{}", one.from.file, one.line));
    format!(
        "{parent}: a circle of {}{}",
        names.join(", "),
        inside.collect::<String>()
    )
}

/// Every path of every module, as far as it leads to a module of the crate.
fn uses(modules: &Crate) -> Vec<Use<'_>> {
    let mut uses = Vec::new();
    for (at, from) in modules {
        for (path, line) in &from.uses {
            let Some(to) = target(modules, at, path, from) else {
                continue;
            };
            uses.push(Use {
                from,
                to,
                line: *line,
            });
        }
    }
    uses
}

/// The module that a path leads to. Where that is one around `from`, which only hands the name
/// out, the way goes on to where it has it from.
fn target<'a>(
    modules: &'a Crate,
    at: &[String],
    path: &[String],
    from: &Module,
) -> Option<&'a Module> {
    const MOST_HANDS: usize = 8;
    let (mut module, mut rest) = paths::resolve(modules, at, path)?;
    for _ in 0..MOST_HANDS {
        let found = &modules[&module];
        let onward = rest.first().and_then(|name| found.imports.get(name));
        let (true, Some(onward)) = (from.home.starts_with(&found.home), onward) else {
            break;
        };
        let way = [&onward[..], &rest[1..]].concat();
        (module, rest) = paths::resolve(modules, &module, &way)?;
    }
    modules.get(&module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().copied().collect();
        judge(&paths::read("src", "src/lib.rs", &texts).expect("it parses"))
    }

    #[test]
    fn a_circle_between_siblings_is_told_with_its_lines() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "fn f() {\n    crate::c::g();\n}"),
            ("src/c.rs", "fn g() { vec![super::a::A]; }"),
        ];
        let expected = "crate: a circle of a, b, c\n    a uses b: src/a.rs:1\n    \
                        b uses c: src/b.rs:2\n    c uses a: src/c.rs:1";
        assert_eq!(facts(&files), [expected]);
        assert_eq!(facts(&[&files[..3], &[("src/c.rs", "")]].concat()), [""; 0]);
    }

    #[test]
    fn a_circle_through_what_the_parent_hands_out_is_one() {
        let files = [
            ("src/lib.rs", "mod p;"),
            ("src/p.rs", "mod a;\nmod b;\npub use a::A;\nuse b::f as g;"),
            ("src/p/a.rs", "use super::g;\nuse std::fmt;"),
            ("src/p/b.rs", "fn f() -> super::A {}"),
        ];
        let found = facts(&files);
        assert!(found[0].starts_with("p: a circle of a, b\n"), "{found:?}");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn parents_children_inline_modules_and_tests_are_free() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\nfn root() {}"),
            (
                "src/a.rs",
                "mod c;\nuse c::C;\nuse crate::root;\nmod i { use super::C; }",
            ),
            ("src/a/c.rs", "use super::C as D;\nuse crate::b::B;"),
            (
                "src/b.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::a::C;\n}",
            ),
        ];
        assert_eq!(facts(&files), [""; 0]);
    }

    #[test]
    fn an_inside_is_open_only_if_its_parent_offers_it() {
        let files = |vis: &'static str| {
            [
                ("src/lib.rs", "mod a;\nmod b;"),
                ("src/a.rs", vis),
                ("src/a/c.rs", "pub struct C;"),
                ("src/b.rs", "use crate::a::{self, c::C};"),
            ]
        };
        let expected = "a::c is a's own\n    src/b.rs:1";
        assert_eq!(facts(&files("pub(crate) mod c;")), [expected]);
        assert_eq!(facts(&files("pub mod c;")), [""; 0]);
    }
}

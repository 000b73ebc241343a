//! Where functions begin and end.
//!
//! The formatters run first, so indentation is the grammar: a function ends at the first closing
//! brace that stands as deep as its first line.

use super::tree::Source;

/// A function and its length.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// From the signature to the closing brace.
    pub lines: usize,
}

/// The functions of a Rust or C file; none for any other.
pub fn of(source: &Source) -> Vec<Function> {
    let lines: Vec<&str> = source.text.lines().collect();
    match source.kind() {
        "rs" => rust(&lines),
        "c" | "h" => c(&lines),
        _ => Vec::new(),
    }
}

fn rust(lines: &[&str]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        if let Some(name) = rust_name(line) {
            functions.push(Function {
                name: name.to_owned(),
                lines: rust_length(&lines[first..]),
            });
        }
    }
    functions
}

/// The name in `pub(crate) const unsafe extern "C" fn name(`.
fn rust_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifies = |word: &str| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub")
    };
    let name = after.split(['(', '<']).next()?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (before.split_whitespace().all(qualifies) && is_name).then_some(name)
}

/// A declaration ends at its semicolon, a body at its brace.
fn rust_length(lines: &[&str]) -> usize {
    let indent = indentation(lines[0]);
    if lines[0].ends_with([';', '}']) {
        return 1;
    }
    let end = lines[1..].iter().position(|line| {
        let same = !line.is_empty() && indentation(line) == indent;
        same && (line.ends_with(';') || line.trim_start().starts_with('}'))
    });
    end.map_or(lines.len(), |end| end + 2)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// In kernel style the brace that opens a function stands alone at the margin.
fn c(lines: &[&str]) -> Vec<Function> {
    let mut functions = Vec::new();
    for (open, _) in lines.iter().enumerate().filter(|(_, line)| **line == "{") {
        let is_outside = |line: &&str| line.is_empty() || line.starts_with(['}', '#', '/', ' ']);
        let signature = lines[..open]
            .iter()
            .rev()
            .take_while(|line| !is_outside(line))
            .count();
        let body = lines[open..].iter().position(|line| line.starts_with('}'));
        let first = open - signature;
        functions.push(Function {
            name: c_name(&lines[first..open].join(" ")),
            lines: signature + body.map_or(lines.len() - open, |end| end + 1),
        });
    }
    functions
}

/// The word before the parameters; for a BPF program, the first of its macro's arguments.
fn c_name(signature: &str) -> String {
    let wrapped = signature.split_once("BPF_PROG(").map(|(_, rest)| rest);
    let word = match wrapped {
        Some(rest) => rest.split([',', ')']).next(),
        None => signature
            .split('(')
            .next()
            .and_then(|before| before.split_whitespace().last()),
    };
    word.unwrap_or_default().trim_start_matches('*').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::source;

    fn lengths(path: &str, text: &str) -> Vec<(String, usize)> {
        let functions = of(&source(path, text));
        functions.into_iter().map(|f| (f.name, f.lines)).collect()
    }

    #[test]
    fn rust_functions_are_measured_with_their_signature() {
        let text = "\
impl A {
    pub fn short(&self) -> u8 {
        if x {
        }
    }

    fn wide(
        a: u8,
    ) -> u8
    where
        T: B,
    {
        let fnord = call(fn_pointer);
    }
}

trait T {
    fn declared(&self) -> u8;
}
";
        let expected = [("short", 4), ("wide", 8), ("declared", 1)];
        assert_eq!(
            lengths("a.rs", text),
            expected.map(|(n, l)| (n.to_owned(), l))
        );
    }

    #[test]
    fn c_functions_are_found_and_structures_are_not() {
        let text = "\
struct s {
\tint a;
};

static int *plain(int a,
\t\t  int b)
{
\treturn 0;
}

SEC(\"tp_btf/block_rq_issue\")
int BPF_PROG(on_issue, struct request *rq)
{
\treturn 0;
}
";
        let found = lengths("a.c", text);
        assert_eq!(found[0].0, "plain");
        assert_eq!(found[1], ("on_issue".to_owned(), 5));
        assert_eq!(found.len(), 2);
    }
}

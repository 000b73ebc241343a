//! Where C functions begin and end.
//!
//! The formatter runs first, so indentation is the grammar: a function ends at the first closing
//! brace at the margin.

use super::tree::Source;

/// A function and its length.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// From the signature to the closing brace.
    pub lines: usize,
}

/// The functions of a C file; none for any other.
pub fn of(source: &Source) -> Vec<Function> {
    match source.kind() {
        "c" | "h" => c(&source.text.lines().collect::<Vec<_>>()),
        _ => Vec::new(),
    }
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
        let found = of(&source("a.c", text))
            .into_iter()
            .map(|f| (f.name, f.lines));
        let expected =
            [("plain", 5), ("on_issue", 5)].map(|(name, lines)| (name.to_owned(), lines));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

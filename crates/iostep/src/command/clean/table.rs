//! Where every line went, as text and as JSON.

use std::path::Path;

use iostep_model::printable;
use iostep_model::syscall::Ledger;

use crate::{ledger, terminal};

/// What became of the inputs.
pub(super) struct Cleaned<'a> {
    pub(super) output: &'a Path,
    pub(super) ledger: Ledger,
    /// The first lines that cannot be read, with where they are.
    pub(super) unreadable: Vec<String>,
    pub(super) interrupted: bool,
}

impl Cleaned<'_> {
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        let (as_json, text) = (|| self.json().to_string(), || self.text());
        terminal::print_either([self.output], json, as_json, text)
    }

    /// The table: every line of the inputs in one of its lines.
    fn text(&self) -> String {
        let (kept, left_out) = self.ledger.totals();
        let mut lines = Vec::new();
        if self.interrupted {
            lines.push("interrupted: the trace holds only the beginning".to_owned());
        }
        let total = kept + left_out;
        let part = |count: u64| 100.0 * count as f64 / total.max(1) as f64;
        let line = |count: u64, of: &str| format!("{count:>12} {:>6.2} %  {of}", part(count));
        lines.push(line(total, "lines read"));
        lines.extend(ledger::lines(&self.ledger, ["kept", "left out"], line));
        if !self.unreadable.is_empty() {
            lines.push("first lines that cannot be read:".to_owned());
            lines.extend(self.unreadable.iter().map(|line| format!("  {line}")));
        }
        lines.push(format!("wrote {}", self.output.display()));
        lines.iter().map(|line| printable(line) + "\n").collect()
    }

    fn json(&self) -> serde_json::Value {
        let (kept, left_out) = self.ledger.totals();
        serde_json::json!({
            "output": self.output,
            "interrupted": self.interrupted,
            "lines": {
                "read": kept + left_out,
                "kept": kept,
                "left_out": left_out,
            },
            "kept": ledger::reasons(&self.ledger, true),
            "left_out": ledger::reasons(&self.ledger, false),
            "unreadable": self.unreadable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_accounts_for_every_line() {
        let mut ledger = Ledger::default();
        ledger.add(true, "call", 6);
        ledger.add(false, "pipe", 1);
        ledger.add(false, "socket", 3);
        let cleaned = Cleaned {
            output: Path::new("x.trace"),
            ledger,
            unreadable: vec!["x:7: abc".into()],
            interrupted: false,
        };
        let expected = "          10 100.00 %  lines read\n           6  60.00 %  kept\n           \
                        6  60.00 %    call\n           4  40.00 %  left out\n           3  30.00 %    \
                        socket\n           1  10.00 %    pipe\nfirst lines that cannot be read:\n  \
                        x:7: abc\nwrote x.trace\n";
        assert_eq!(cleaned.text(), expected);
        let json = cleaned.json();
        assert_eq!(json["unreadable"][0], "x:7: abc");
        assert_eq!(json["lines"]["read"], 10);
        assert_eq!(json["left_out"]["socket"], 3);
    }
}

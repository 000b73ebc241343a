//! Table 1 of the paper: what one insert into an empty table writes, by `iostep explain`.

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

/// For the command line and the page.
pub const NAME: &str = "table1";
/// What it is about.
pub const TITLE: &str = "What one insert of 100 bytes into an empty table writes, FULL, ext4";
/// Journal modes, and the paper's data, filesystem's journal, JOJ and total, in KB.
const MODES: [(&str, &str); 6] = [
    ("off", "8 / 12 / 0 / 20"),
    ("wal", "8 / 20 / 20 / 28"),
    ("waldio", "4 / 0 / 0 / 4"),
    ("delete", "24 / 56 / 44 / 80"),
    ("truncate", "24 / 48 / 36 / 72"),
    ("persist", "28 / 52 / 40 / 80"),
];
/// The insert is the last transaction.
pub const SQL: &str = "CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB); \
                       INSERT INTO t VALUES (1, randomblob(100))";

/// The modes, as `iostep explain --journal` takes them.
pub fn modes() -> String {
    MODES.map(|(mode, _)| mode).join(",")
}

/// What the insert wrote in one mode.
#[derive(Debug, PartialEq, Serialize)]
pub struct Volume {
    mode: String,
    paper: &'static str,
    data_kb: f64,
    journal_kb: f64,
    joj_kb: f64,
    total_kb: f64,
    writes: f64,
    flushes: f64,
}

/// From what `iostep explain --json` prints.
pub fn parse(text: &str) -> Result<Vec<Volume>> {
    let document: Value = serde_json::from_str(text).context("not iostep's JSON")?;
    ensure!(
        document["lost_events"] == 0,
        "events were lost; the bytes are too few"
    );
    let runs = document["runs"].as_array().context("no runs")?;
    MODES
        .iter()
        .map(|(mode, paper)| {
            let run = runs.iter().find(|run| run["mode"] == *mode);
            let cost = run
                .and_then(|run| run["transactions"].as_array()?.last()?.get("cost"))
                .with_context(|| format!("nothing about journal mode {mode}"))?;
            let of = |name: &str| cost[name].as_f64().with_context(|| format!("no {name}"));
            Ok(Volume {
                mode: (*mode).to_owned(),
                paper,
                data_kb: of("data_bytes")? / 1024.0,
                journal_kb: of("journal_bytes")? / 1024.0,
                joj_kb: of("joj_bytes")? / 1024.0,
                total_kb: of("bytes")? / 1024.0,
                writes: of("writes")?,
                flushes: of("flushes")?,
            })
        })
        .collect()
}

/// The table.
pub fn markdown(volumes: &[Volume]) -> String {
    let mut text = "\
| journal mode | data, KB | filesystem's journal | JOJ | total | writes | flushes | paper |
|---|---|---|---|---|---|---|---|
"
    .to_owned();
    for v in volumes {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            v.mode, v.data_kb, v.journal_kb, v.joj_kb, v.total_kb, v.writes, v.flushes, v.paper
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(lost: u32) -> String {
        let run = |mode: &str| {
            format!(
                r#"{{"mode":"{mode}","transactions":[{{"cost":{{"bytes":1}}}},{{"cost":{{
                    "writes":3,"bytes":28672,"data_bytes":8192,"journal_bytes":20480,
                    "joj_bytes":20480,"flushes":2}}}}]}}"#
            )
        };
        let runs = MODES.map(|(mode, _)| run(mode)).join(",");
        format!(r#"{{"lost_events":{lost},"runs":[{runs}]}}"#)
    }

    #[test]
    fn the_last_transaction_of_each_mode_is_the_insert() {
        let volumes = parse(&document(0)).expect("all modes");
        let text = markdown(&volumes);
        assert!(
            text.contains("| wal | 8 | 20 | 20 | 28 | 3 | 2 | 8 / 20 / 20 / 28 |\n"),
            "{text}"
        );
        assert_eq!(volumes.len(), MODES.len());
    }

    #[test]
    fn lost_events_and_lost_modes_are_errors() {
        assert!(parse(&document(1)).is_err());
        assert!(parse(r#"{"lost_events":0,"runs":[]}"#).is_err());
    }
}

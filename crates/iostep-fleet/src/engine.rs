//! The engine that answers SQL on a lake: DataFusion, in a program of its own
//! (`fleet/engine`), so that nobody compiles it who has no lake.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::column::Column;
use crate::lake::Lake;
use crate::table::Table;

/// The program's name.
pub const PROGRAM: &str = "iostep-fleet-engine";
/// As the engine says of a query that is wrong.
const WRONG_QUERY: i32 = 2;
/// More than an error takes.
const MOST_SAID_BYTES: u64 = 64 << 10;

/// How often somebody looks whether the end was asked for.
const TICK: Duration = Duration::from_millis(50);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The query is wrong; the text is the engine's.
    #[error("{0}")]
    Query(String),
    /// The engine failed.
    #[error("{PROGRAM}: {0}")]
    Engine(String),
}

/// What a query may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory, beyond which it goes to the disk.
    pub memory_bytes: u64,
    pub threads: usize,
}

#[derive(Serialize)]
struct Request<'a> {
    lake: &'a Path,
    spill: &'a Path,
    memory_bytes: u64,
    threads: usize,
    tables: BTreeMap<&'static str, Vec<Column>>,
    sql: &'a str,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Columns { columns: Vec<String> },
    Row(Vec<Value>),
    End { rows: u64 },
}

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    pub columns: Vec<String>,
    /// As many values each as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// Where the engine is: as the environment says (`IOSTEP_FLEET_ENGINE`), beside this program, or in
/// the PATH.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("IOSTEP_FLEET_ENGINE") {
        return Some(named.into());
    }
    // Not known where there is no /proc.
    let beside = std::env::current_exe().map(|program| program.with_file_name(PROGRAM));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|directory| directory.join(PROGRAM));
    beside
        .into_iter()
        .chain(in_path)
        .find(|path| path.is_file())
}

/// Asks an engine, which is ended once `stop` is true. `spill` is an empty directory for what does not
/// fit the memory.
///
/// Errors: see [`Fault`].
pub fn ask(
    engine: &Path,
    lake: &Lake,
    sql: &str,
    limits: Limits,
    spill: &Path,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Answer, Fault> {
    let failed = |error: std::io::Error| Fault::Engine(error.to_string());
    let tables = Table::ALL
        .iter()
        .map(|table| (table.name(), table.columns()));
    let request = Request {
        lake: &lake.root().canonicalize().map_err(failed)?,
        spill,
        memory_bytes: limits.memory_bytes,
        threads: limits.threads,
        tables: tables.collect(),
        sql,
    };
    let request = serde_json::to_vec(&request).map_err(|error| Fault::Engine(error.to_string()))?;
    let mut child = Command::new(engine)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (pid, stderr) = (Pid::from_child(&child), child.stderr.take());
    // Whoever says much waits for a reader, and so would whoever waits for the answer.
    let said = thread::spawn(move || said(stderr));
    let answer = thread::scope(|scope| {
        // Until this is done it is not waited for, so the number is its own.
        let (_done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if stop() {
                    let _ = kill_process(pid, Signal::KILL);
                    break;
                }
            }
        });
        converse(&mut child, &request)
    });
    if answer.is_err() {
        // It may have ended already; what else it would say does not matter.
        let _ = child.kill();
    }
    let status = child.wait();
    let (answer, status) = (answer?, status.map_err(failed)?);
    let said = said.join().unwrap_or_else(|panic| resume_unwind(panic));
    match answer {
        _ if status.code() == Some(WRONG_QUERY) => Err(Fault::Query(said)),
        _ if !status.success() && !said.is_empty() => Err(Fault::Engine(said)),
        _ if !status.success() => Err(Fault::Engine(status.to_string())),
        Some(answer) => Ok(answer),
        None => Err(not_whole()),
    }
}

fn not_whole() -> Fault {
    Fault::Engine("its answer is not whole".into())
}

/// `None` if the engine ended before its answer did.
///
/// Errors: what comes is no answer.
fn converse(child: &mut Child, request: &[u8]) -> Result<Option<Answer>, Fault> {
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(None);
    };
    if input.write_all(request).is_err() {
        return Ok(None);
    }
    drop(input);
    let mut answer: Option<Answer> = None;
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else {
            return Ok(None);
        };
        match (serde_json::from_slice(&line), &mut answer) {
            (Ok(Line::Columns { columns }), None) => {
                let rows = Vec::new();
                answer = Some(Answer { columns, rows });
            }
            (Ok(Line::Row(values)), Some(answer)) if values.len() == answer.columns.len() => {
                answer.rows.push(values);
            }
            (Ok(Line::End { rows }), Some(whole)) if rows == whole.rows.len() as u64 => {
                return Ok(answer);
            }
            _ => return Err(not_whole()),
        }
    }
    Ok(None)
}

/// What the engine says until its end, of which the first part is kept.
fn said(stderr: Option<ChildStderr>) -> String {
    let mut said = Vec::new();
    if let Some(mut stderr) = stderr {
        // What cannot be read was not said.
        let _ = stderr.by_ref().take(MOST_SAID_BYTES).read_to_end(&mut said);
        let _ = io::copy(&mut stderr, &mut io::sink());
    }
    String::from_utf8_lossy(&said).trim_end().to_owned()
}

//! One query on a lake. The request is JSON on standard input, the answer JSON lines on standard
//! output: the names of the columns, each row, and the number of rows last, so that whoever reads
//! it knows that it is whole. Exit status 2 if the query is wrong, 1 for what fails.

mod answer;
mod fence;
mod lake;
mod request;

use std::io::{self, BufWriter, Read, Write};
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{DataFrame, SessionContext};

use request::Request;

/// Longer than any request is.
const MOST_REQUEST_BYTES: u64 = 16 << 20;
const WRONG_QUERY: u8 = 2;
/// How often somebody looks whether the asker lives.
const TICK: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            match error.is::<WrongQuery>() {
                true => ExitCode::from(WRONG_QUERY),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// Ends this process once `parent` has ended, whatever it was killed by: nobody waits for the answer.
fn end_with(parent: u32) {
    std::thread::spawn(move || {
        while parent_id() == parent {
            std::thread::sleep(TICK);
        }
        std::process::exit(1);
    });
}

/// What is the query's own fault.
#[derive(Debug)]
struct WrongQuery(String);

impl std::fmt::Display for WrongQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for WrongQuery {}

fn run() -> anyhow::Result<()> {
    let parent = parent_id();
    let mut text = Vec::new();
    io::stdin()
        .take(MOST_REQUEST_BYTES)
        .read_to_end(&mut text)
        .context("cannot read the request")?;
    let request: Request = serde_json::from_slice(&text).context("the request")?;
    // Before any thread is started, so that all are inside.
    fence::enter(&request)?;
    end_with(parent);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(request.threads.max(1))
        .build()
        .context("cannot start threads")?;
    runtime.block_on(query(&request))
}

async fn query(request: &Request) -> anyhow::Result<()> {
    let context = lake::open(request)?;
    let frame = plan(&context, &request.sql).await?;
    let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match answer::write(frame, out).await {
        // Whoever asked has what they wanted.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        result => result,
    }
}

/// A query reads, and nothing else.
async fn plan(context: &SessionContext, sql: &str) -> anyhow::Result<DataFrame> {
    let only_reads = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let frame = context.sql_with_options(sql, only_reads).await;
    frame.map_err(|error| WrongQuery(error.strip_backtrace()).into())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Flushes what `write!` left, and says if that failed.
fn flush(out: &mut impl Write) -> anyhow::Result<()> {
    out.flush().map_err(anyhow::Error::from)
}

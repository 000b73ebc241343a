//! `iostep bench file` and `iostep bench sqlite`: one job, its outputs, its exit status.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use iostep_analyze::bench::Summary;
use iostep_analyze::report::bench::{self, csv};
use iostep_model::bench::Document;
use iostep_model::publish;
use iostep_report::document::Detail;
use serde::Serialize;

use super::generator::Generator;
use super::measure_args::{On, OutputArgs, usage};
use super::own_storage::OwnStorage;
use super::session::{self, Measured, Output};
#[cfg(feature = "many-devices")]
use crate::command::submit::Destination;
use crate::interrupt::Interrupt;
use crate::terminal::{self, Content};

/// The file of a result: what was measured, and the numbers made of it.
#[derive(Serialize)]
pub struct ResultFile<'a> {
    result: &'a Document,
    summary: &'a Summary,
}

/// Runs a job and shows what came of it, also if that is not all that was asked for.
///
/// Errors: from before the first run, and those of writing.
pub fn run(generator: &Generator) -> anyhow::Result<ExitCode> {
    let output = generator.output();
    let mut job = generator.job()?;
    let repetition = generator.measure().repetition()?;
    let journal = generator.measure().journal_device.as_deref();
    output.check()?;
    for path in output.files() {
        check_parent(path)?;
    }
    #[cfg(feature = "many-devices")]
    let server = output.submit.as_deref().map(Destination::new);
    #[cfg(feature = "many-devices")]
    let server = server.transpose()?;
    // Before any other thread is started.
    let storage = match generator.measure().on {
        On::Here => None,
        On::Loop => Some(OwnStorage::make(&mut job)?),
    };
    let interrupt = Interrupt::install()?;
    let mut measured = None;
    let mut measure = |log: Option<&mut dyn Write>| {
        measured = Some(session::run(
            job.clone(),
            repetition,
            journal,
            &interrupt,
            Output {
                log,
                progress: output.progress,
            },
        )?);
        anyhow::Ok(())
    };
    match &output.log {
        Some(path) => publish::write_with(path, |file| measure(Some(file)))?,
        None => measure(None)?,
    }
    let measured: Measured = measured.expect("it was measured, or there was an error");
    let failed = !measured.is_whole();
    measured.tell();
    let Measured(mut document) = measured;
    if let Some(storage) = storage {
        storage.restore(&mut document);
    }
    let summary = Summary::of(&document);
    let result = (document, summary);
    print(&result, output)?;
    write(&result, output)?;
    #[cfg(feature = "many-devices")]
    if let (Some(server), Some(file)) = (server, &output.output) {
        match failed {
            true => server.refuse(file),
            false => server.send(file, json(&result).as_bytes())?,
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// Shows the result in a file, on a page if one is asked for.
///
/// Errors: those of reading and writing.
pub(in crate::command) fn show(
    file: &Path,
    page: Option<&Path>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let document = Document::read(file)?;
    let summary = Summary::of(&document);
    let result = (document, summary);
    let output = OutputArgs {
        html: page.map(Path::to_owned),
        json: as_json,
        quiet: page.is_some() && !as_json,
        ..OutputArgs::default()
    };
    output.check()?;
    print(&result, &output)?;
    write(&result, &output)?;
    Ok(ExitCode::SUCCESS)
}

/// A directory that is not there is found before an hour of measuring, not after.
pub(in crate::command) fn check_parent(path: &Path) -> iostep_load::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_none_or(Path::is_dir) {
        return Ok(());
    }
    Err(usage(
        format!("{}: its directory is not there", path.display()),
        "make it, or name another",
    ))
}

fn json((result, summary): &(Document, Summary)) -> String {
    terminal::json(&ResultFile { result, summary })
}

fn print(result: &(Document, Summary), output: &OutputArgs) -> anyhow::Result<()> {
    if output.quiet {
        return Ok(());
    }
    let (document, summary) = result;
    let (content, text) = match (output.json, output.csv) {
        (true, _) => (Content::Json, json(result) + "\n"),
        (_, true) => (Content::Data, csv::runs(document, summary)),
        _ => {
            let text = bench::document(document, summary, output.verbose);
            (Content::Text, text.text(Detail::Full, terminal::style()))
        }
    };
    terminal::print_beside(output.files(), content, &text)
}

fn write(result: &(Document, Summary), output: &OutputArgs) -> iostep_model::Result<()> {
    if let Some(path) = &output.output {
        publish::write(path, json(result).as_bytes())?;
    }
    if let Some(path) = &output.html {
        let (document, summary) = result;
        let page = bench::document(document, summary, true).html();
        publish::write(path, page.as_bytes())?;
    }
    if let Some(path) = &output.seconds {
        publish::write(path, csv::seconds(&result.0).as_bytes())?;
    }
    Ok(())
}

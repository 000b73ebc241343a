//! `iostep fleet ask`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use iostep_fleet::{QUESTIONS, Question};
use iostep_model::publish;
use iostep_report::document::{Block, Cell, Detail, Document, Section, Table};

use super::query::{self, QueryArgs};
use crate::error::bad_input;
use crate::terminal::{self, say};

/// Ask a lake one of ten questions.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep fleet ask
  iostep fleet ask fsync-by-part lake
  iostep fleet ask 1 lake --html joj.html")]
pub struct Args {
    /// The question, by its name or its number; without it all are listed
    #[arg(value_name = "QUESTION", requires = "lake")]
    question: Option<String>,

    /// The lake
    #[arg(value_name = "LAKE")]
    lake: Option<PathBuf>,

    /// Write the answer as a page
    #[arg(long, value_name = "FILE", requires = "lake", conflicts_with = "csv")]
    html: Option<PathBuf>,

    #[command(flatten)]
    query: QueryArgs,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.query.json || args.query.csv, &args.html)?;
    let (Some(name), Some(lake)) = (&args.question, &args.lake) else {
        return list(args.query.json);
    };
    let question = Question::called(name).ok_or_else(|| {
        let names: Vec<&str> = QUESTIONS.iter().map(Question::name).collect();
        bad_input(anyhow!(
            "no question {name:?}; there are: {}",
            names.join(", ")
        ))
    })?;
    let answer = query::ask(lake, question.sql, &args.query)?;
    if let Some(path) = &args.html {
        let page = document(&question, answer.table(Some(question.drawn))).html();
        publish::write(path, page.as_bytes())?;
        say!("wrote {}", path.display());
    }
    if args.query.json {
        let mut json = answer.json();
        json["question"] = question.file.into();
        terminal::print_json(&terminal::json(&json))?;
    } else if args.query.csv {
        answer.print_csv()?;
    } else if args.html.is_none() {
        let document = document(&question, answer.table(None));
        terminal::print(&document.text(Detail::Full, terminal::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn document(question: &Question, table: Table) -> Document {
    let mut section = Section::new(question.title());
    let is_empty = table.rows.is_empty();
    section.push(Block::Table(table));
    if is_empty {
        section.push(Block::Lines(vec!["nothing in the lake answers it".into()]));
    }
    let notes = question.notes();
    if !notes.is_empty() {
        section.push(Block::Prose(vec![notes]));
    }
    Document::of(section)
}

fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        let all = QUESTIONS.iter().map(
            |it| serde_json::json!({ "question": it.file, "title": it.title(), "sql": it.sql }),
        );
        terminal::print_json(&terminal::json(&all.collect::<Vec<_>>()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut section = Section::default();
    let rows = QUESTIONS.iter().zip(1..).map(|(question, number)| {
        vec![
            Cell::count(number),
            Cell::text(question.name()),
            Cell::text(question.title()),
        ]
    });
    section.push(Block::Table(
        Table::new("", [">", "question", "~"]).rows(rows),
    ));
    terminal::print(&Document::of(section).text(Detail::Full, terminal::style()))?;
    Ok(ExitCode::SUCCESS)
}

//! A query on a lake, and the forms of its answer.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use iostep_fleet::Lake;
use iostep_fleet::engine::{self, Fault, Limits};
use iostep_model::directory::Temporary;
use iostep_model::unit::Unit;
use iostep_model::units::parse_bytes;
use iostep_report::csv;
use iostep_report::document::{Bar, Cell, Table};
use serde_json::Value;

use crate::error::bad_input;
use crate::interrupt::Interrupt;
use crate::terminal::{self, Content, working};

#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Memory that a query may hold; beyond it goes to the temporary directory
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    memory: u64,

    /// Threads [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An answer, and its forms.
pub struct Answer(engine::Answer);

/// Asks a lake.
///
/// Errors: of bad usage for a lake that is none and a query that is wrong; there is no engine; it
/// fails; a signal.
pub fn ask(lake: &Path, sql: &str, args: &QueryArgs) -> anyhow::Result<Answer> {
    let engine = engine::find().ok_or_else(|| {
        anyhow!(
            "there is no {}; install the package iostep-fleet, or build it with make fleet-engine \
             and put it beside iostep or into the PATH",
            engine::PROGRAM
        )
    })?;
    let lake = Lake::open(lake)?;
    let interrupt = Interrupt::install()?;
    let spill = Temporary::new(&std::env::temp_dir(), "iostep-fleet-")?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits {
        memory_bytes: args.memory,
        threads: args.threads.map_or(threads, usize::from),
    };
    let bar = working("asking the lake");
    // The engine makes directories in it, by its name.
    let place = spill.path().canonicalize()?;
    let asked = engine::ask(&engine, &lake, sql, limits, &place, &|| interrupt.came());
    bar.finish_and_clear();
    match asked {
        Ok(answer) => Ok(Answer(answer)),
        Err(_) if interrupt.came() => Err(anyhow!("interrupted")),
        Err(fault @ Fault::Query(_)) => Err(bad_input(fault)),
        Err(fault) => Err(anyhow!(fault).context(lake.root().display().to_string())),
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::json!({ "columns": self.0.columns, "rows": self.0.rows })
    }

    /// Prints comma-separated values.
    ///
    /// Errors: those of standard output.
    pub fn print_csv(&self) -> anyhow::Result<()> {
        terminal::write(Content::Data, |out| {
            out.write_all(csv::line(&self.0.columns).as_bytes())?;
            for row in &self.0.rows {
                out.write_all(csv::line(row.iter().map(plain)).as_bytes())?;
            }
            Ok(())
        })
    }

    /// A table. Numbers have the unit that their column's name ends in; those of the column `drawn` have
    /// bars on a page.
    pub fn table(&self, drawn: Option<&str>) -> Table {
        let is_number = |place: usize| {
            let mut values = self.0.rows.iter().filter_map(|row| row.get(place));
            values.all(|value| value.is_number() || value.is_null())
        };
        let numbers: Vec<bool> = (0..self.0.columns.len()).map(is_number).collect();
        let names = self
            .0
            .columns
            .iter()
            .zip(&numbers)
            .map(|(name, is_number)| match is_number {
                true => format!(">{name}"),
                false => format!("~{name}"),
            });
        let greatest = |place: usize| {
            let values = self
                .0
                .rows
                .iter()
                .filter_map(|row| row.get(place)?.as_f64());
            values.fold(0.0, f64::max)
        };
        let drawn = drawn.and_then(|drawn| self.0.columns.iter().position(|name| name == drawn));
        let drawn = drawn.map(|place| (place, greatest(place)));
        let cell = |(place, value): (usize, &Value)| {
            if !numbers[place] {
                return Cell::text(plain(value));
            }
            let (unit, one) = unit(&self.0.columns[place], value);
            let cell = Cell::number(unit, value.as_f64().map(|number| number * one));
            match drawn {
                Some((drawn, greatest)) if drawn == place => {
                    cell.with_bar(Bar::Other, greatest * one)
                }
                _ => cell,
            }
        };
        let rows = self.0.rows.iter();
        let rows = rows.map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>());
        Table::new("", names).rows(rows).in_order()
    }
}

/// The unit of a column's numbers, and how many of it each is.
fn unit(column: &str, value: &Value) -> (Unit, f64) {
    const UNITS: [(&str, Unit, f64); 5] = [
        ("bytes", Unit::Bytes, 1.0),
        ("bytes_a_day", Unit::Bytes, 1.0),
        ("ns", Unit::Nanoseconds, 1.0),
        ("percent", Unit::Share, 0.01),
        ("share", Unit::Share, 1.0),
    ];
    let ends_in = |word: &str| {
        let before = column.strip_suffix(word);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let known = UNITS.iter().find(|(word, ..)| ends_in(word));
    let (whole, mean) = ((Unit::Count, 1.0), (Unit::Mean, 1.0));
    let plain = if value.is_i64() { whole } else { mean };
    known.map_or(plain, |(_, unit, one)| (*unit, *one))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

//! What pages show beside rankings: where values come from, and what there is to choose.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use iostep_analyze::bench::Measure;
use rusqlite::{Connection, Row, params};

use super::Readers;
use super::query::{self, Page, Submission};
use crate::error::Result;
use crate::subject::{Device, Product};
use crate::upload::Id;

/// A value of a valid result, and where it comes from.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Many share it.
    pub device: Rc<Device>,
    pub installation: i64,
    pub value: f64,
    /// Empty for a device without one.
    pub filesystem: Rc<str>,
}

/// A value, and when it came.
#[derive(Clone, Debug)]
pub struct Dated {
    pub sample: Sample,
    /// Seconds since 1970.
    pub received: i64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub product: Product,
    /// Results of any state.
    pub results: u64,
}

impl Readers {
    /// The values of a product's valid results of a test.
    ///
    /// Errors: `Database`.
    pub fn samples(&self, (test, measure): (&str, &str), product: &Product) -> Result<Vec<Sample>> {
        let sql = of_values();
        let mut names = Names::default();
        self.ask(|db| each_value(db, &sql, (test, measure), product, |row| names.sample(row)))
    }

    /// As [`Readers::samples`], with when they came.
    ///
    /// Errors: `Database`.
    pub fn history(&self, (test, measure): (&str, &str), product: &Product) -> Result<Vec<Dated>> {
        let sql = of_history();
        let mut names = Names::default();
        self.ask(|db| {
            each_value(db, &sql, (test, measure), product, |row| {
                let (sample, received) = (names.sample(row)?, row.get(11)?);
                Ok(Dated { sample, received })
            })
        })
    }

    /// The tests that a product has valid results of, and how many, those of most first.
    ///
    /// Errors: `Database`.
    pub fn tests_of(&self, product: &Product) -> Result<Vec<(String, u64)>> {
        self.ask(|db| {
            let mut statement = db.prepare_cached(&of_tests())?;
            let Product {
                vendor,
                model,
                part,
                ..
            } = product;
            let rows = statement
                .query_map(params![vendor, model, part, capacity(product)], |row| {
                    Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
                })?;
            rows.collect()
        })
    }

    /// The measures that results of a test have.
    ///
    /// Errors: `Database`.
    pub fn measures(&self, test: &str) -> Result<Vec<Measure>> {
        self.ask(|db| {
            let mut statement = db.prepare_cached(
                "SELECT 1 FROM metric WHERE test = (SELECT number FROM test WHERE name = ?1)
                 AND measure = ?2",
            )?;
            let mut found = Vec::new();
            for measure in Measure::all() {
                if statement.exists(params![test, measure.to_string()])? {
                    found.push(measure);
                }
            }
            Ok(found)
        })
    }

    /// The newest results of a product, of whatever state; those before a number, if there is one.
    ///
    /// Errors: `Database`.
    pub fn results_of(&self, product: &Product, before: Option<i64>, limit: u32) -> Result<Page> {
        self.ask(|db| query::list_of(db, (DEVICES, product), before, limit))
    }

    /// Products with a word in one of their names, and the least of their numbers first; not more
    /// than `limit`.
    ///
    /// Errors: `Database`.
    pub fn search(&self, word: &str, limit: usize) -> Result<Vec<Found>> {
        self.ask(|db| search(db, word, limit))
    }

    /// A result without its body; `None` if it is not there.
    ///
    /// Errors: `Database`.
    pub fn find(&self, id: &Id) -> Result<Option<Submission>> {
        self.ask(|db| match query::record(db, id)? {
            super::Record::Kept(submission, _) => Ok(Some(*submission)),
            super::Record::Gone | super::Record::Missing => Ok(None),
        })
    }
}

/// The numbers of a product's devices.
const DEVICES: &str = "SELECT number FROM device
    WHERE vendor = ?1 AND model = ?2 AND part = ?3 AND capacity_bytes = ?4";

fn capacity(product: &Product) -> i64 {
    i64::try_from(product.capacity_bytes).unwrap_or(-1)
}

/// Columns of the values of a product's valid results, and one more of what is joined to them.
fn values(more: &str, joined: &str) -> String {
    format!(
        "SELECT vendor, model, part, firmware, capacity_bytes, android, kernel,
            metric.device, metric.installation, value, metric.filesystem, {more}
         FROM metric JOIN device ON device.number = metric.device {joined}
         WHERE metric.test = (SELECT number FROM test WHERE name = ?5)
            AND measure = ?6 AND counts AND metric.device IN ({DEVICES})"
    )
}

/// By the device's index: most results are valid, and SQLite would look at all of them.
fn of_tests() -> String {
    format!(
        "SELECT name, count(*) FROM submission INDEXED BY submission_by_device
            JOIN test ON test.number = submission.test
         WHERE device IN ({DEVICES}) AND state = 'valid'
         GROUP BY name ORDER BY count(*) DESC, name"
    )
}

fn of_values() -> String {
    values("NULL", "")
}

fn of_history() -> String {
    // By the index: the table's own rows lie far from each other.
    values(
        "received",
        "JOIN submission INDEXED BY submission_by_device
         ON submission.device = metric.device AND submission.number = metric.submission",
    )
}

fn each_value<T>(
    db: &Connection,
    sql: &str,
    (test, measure): (&str, &str),
    product: &Product,
    of: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let Product {
        vendor,
        model,
        part,
        ..
    } = product;
    let mut statement = db.prepare_cached(sql)?;
    let parameters = params![vendor, model, part, capacity(product), test, measure];
    let rows = statement.query_map(parameters, of)?;
    rows.collect()
}

/// What many values share.
#[derive(Default)]
struct Names {
    /// By their numbers.
    devices: HashMap<i64, Rc<Device>>,
    filesystems: HashSet<Rc<str>>,
}

impl Names {
    /// From the columns of [`values`].
    fn sample(&mut self, row: &Row<'_>) -> rusqlite::Result<Sample> {
        let number = row.get(7)?;
        let device = match self.devices.get(&number) {
            Some(device) => Rc::clone(device),
            None => {
                let device = Rc::new(query::device(row, 0)?);
                self.devices.insert(number, Rc::clone(&device));
                device
            }
        };
        let name = row.get_ref(10)?.as_str()?;
        let filesystem = match self.filesystems.get(name) {
            Some(name) => Rc::clone(name),
            None => {
                let name: Rc<str> = name.into();
                self.filesystems.insert(Rc::clone(&name));
                name
            }
        };
        Ok(Sample {
            device,
            installation: row.get(8)?,
            value: row.get(9)?,
            filesystem,
        })
    }
}

fn search(db: &Connection, word: &str, limit: usize) -> rusqlite::Result<Vec<Found>> {
    let mut statement = db.prepare_cached(
        "SELECT vendor, model, part, capacity_bytes,
            sum((SELECT count(*) FROM submission WHERE device = device.number))
         FROM device
         WHERE vendor || ' ' || model || ' ' || part || ' ' || firmware LIKE ?1 ESCAPE '\\'
         GROUP BY vendor, model, part, capacity_bytes
         ORDER BY vendor, model, part, capacity_bytes LIMIT ?2",
    )?;
    let escaped = word
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    let parameters = params![format!("%{escaped}%"), limit as i64];
    let rows = statement.query_map(parameters, |row| {
        Ok(Found {
            product: Product {
                vendor: row.get(0)?,
                model: row.get(1)?,
                part: row.get(2)?,
                capacity_bytes: row.get::<_, i64>(3)?.unsigned_abs(),
            },
            results: row.get::<_, i64>(4)?.unsigned_abs(),
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::params_from_iter;

    use super::*;
    use crate::store::Store;

    /// The body of a result is larger than a page: whoever reads rows of submissions reads a page each.
    #[test]
    fn a_device_is_shown_without_a_look_at_the_rows_of_its_results() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(&directory.path().join("data")).expect("a store");
        let readers = Readers::new(store);
        let plan = |sql: &str| {
            let plan = readers.ask(|db| {
                let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let nothing = vec![""; statement.parameter_count()];
                let rows = statement.query_map(params_from_iter(nothing), |row| row.get(3))?;
                rows.collect::<rusqlite::Result<Vec<String>>>()
            });
            plan.expect("a plan").join("\n")
        };
        let index = "submission USING COVERING INDEX submission_by_device (device=?";
        let metric = "metric USING PRIMARY KEY (test=? AND measure=? AND device=?)";
        let values = plan(&of_values());
        assert!(values.contains(metric), "{values}");
        assert!(!values.contains("submission"), "{values}");
        let history = plan(&of_history());
        assert!(history.contains(metric), "{history}");
        assert!(
            history.contains(&format!("{index} AND number=?)")),
            "{history}"
        );
        let tests = plan(&of_tests());
        assert!(tests.contains(&format!("{index})")), "{tests}");
        // Those of one page alone are looked up.
        let newest = plan(&query::of_devices(DEVICES));
        assert!(
            newest.contains(&format!("{index} AND number<?)")),
            "{newest}"
        );
        assert!(
            newest.contains("submission USING INTEGER PRIMARY KEY (rowid=?)"),
            "{newest}"
        );
    }
}

//! What pages show beside rankings: where values come from, and what there is to choose.

use std::collections::HashMap;
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
        self.ask(|db| samples(db, (test, measure), product))
    }

    /// The tests that a product has valid results of, and how many, those of most first.
    ///
    /// Errors: `Database`.
    pub fn tests_of(&self, product: &Product) -> Result<Vec<(String, u64)>> {
        self.ask(|db| {
            let sql = format!(
                "SELECT name, count(*) FROM submission JOIN test ON test.number = submission.test
                 WHERE device IN ({DEVICES}) AND state = 'valid'
                 GROUP BY name ORDER BY count(*) DESC, name"
            );
            let mut statement = db.prepare_cached(&sql)?;
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

fn samples(
    db: &Connection,
    (test, measure): (&str, &str),
    product: &Product,
) -> rusqlite::Result<Vec<Sample>> {
    let mut devices: HashMap<i64, Rc<Device>> = HashMap::new();
    let mut filesystems: HashMap<String, Rc<str>> = HashMap::new();
    let sql = format!(
        "SELECT vendor, model, part, firmware, capacity_bytes, android, kernel,
            metric.device, metric.installation, value, metric.filesystem, received
         FROM metric JOIN device ON device.number = metric.device
            JOIN submission ON submission.number = metric.submission
         WHERE metric.test = (SELECT number FROM test WHERE name = ?5)
            AND measure = ?6 AND counts AND metric.device IN ({DEVICES})"
    );
    let Product {
        vendor,
        model,
        part,
        ..
    } = product;
    let mut sample = |row: &Row<'_>| -> rusqlite::Result<Sample> {
        let device = match devices.get(&row.get(7)?) {
            Some(device) => Rc::clone(device),
            None => {
                let device = Rc::new(query::device(row, 0)?);
                devices.insert(row.get(7)?, Rc::clone(&device));
                device
            }
        };
        let name: String = row.get(10)?;
        let filesystem = filesystems
            .entry(name)
            .or_insert_with_key(|name| name[..].into());
        Ok(Sample {
            device,
            installation: row.get(8)?,
            value: row.get(9)?,
            filesystem: Rc::clone(filesystem),
            received: row.get(11)?,
        })
    };
    let mut statement = db.prepare_cached(&sql)?;
    let parameters = params![vendor, model, part, capacity(product), test, measure];
    let rows = statement.query_map(parameters, |row| sample(row))?;
    rows.collect()
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

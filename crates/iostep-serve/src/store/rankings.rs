//! Rankings in memory, each brought up to the store before it is told: of what changed since the last
//! time, by whichever process, the values are read again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use crate::ranking::{self, Better, Place};
use crate::subject::Product;

/// More than this are not kept: those that were not asked for the longest are made anew.
const MOST: usize = 64;

/// What is ranked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The number of the test.
    test: i64,
    measure: String,
    filesystem: Option<String>,
    better: Better,
}

/// Rankings that somebody asked for.
#[derive(Debug, Default)]
pub(super) struct Rankings(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How often any was asked for.
    uses: u64,
    /// With the last time that each was.
    all: HashMap<Key, (u64, Arc<Mutex<Ranking>>)>,
}

/// One of them, as the store was.
#[derive(Debug, Default)]
struct Ranking {
    /// The highest number of `changed` that is in it.
    upto: i64,
    /// Without ranks.
    places: HashMap<Product, Place>,
    /// All of them in their order.
    ordered: Vec<Place>,
}

impl Rankings {
    /// The devices of a ranking, as the store is now.
    pub(super) fn places(&self, db: &Connection, key: Key) -> rusqlite::Result<Vec<Place>> {
        let ranking = self.find(key.clone());
        // Whoever asks for the same meanwhile waits, and has less to read.
        let mut ranking = ranking.lock().unwrap_or_else(PoisonError::into_inner);
        ranking.bring_up(db, &key)?;
        Ok(ranking.ordered.clone())
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().expect("nobody died").all.len()
    }

    fn find(&self, key: Key) -> Arc<Mutex<Ranking>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { uses, all } = &mut *kept;
        *uses += 1;
        if all.len() >= MOST && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        let (used, ranking) = all.entry(key).or_default();
        *used = *uses;
        Arc::clone(ranking)
    }
}

impl Ranking {
    fn bring_up(&mut self, db: &Connection, key: &Key) -> rusqlite::Result<()> {
        // What changed and the values are of one moment.
        let moment = db.unchecked_transaction()?;
        let (products, upto) = changed(&moment, key.test, self.upto)?;
        let places: Vec<(Product, Option<Place>)> = products
            .into_iter()
            .map(|product| {
                let values = values(&moment, key, &product)?;
                let place = ranking::place(product.clone(), &values, key.better);
                Ok((product, place))
            })
            .collect::<rusqlite::Result<_>>()?;
        if places.is_empty() {
            return Ok(());
        }
        for (product, place) in places {
            match place {
                Some(place) => self.places.insert(product, place),
                None => self.places.remove(&product),
            };
        }
        self.upto = upto;
        self.ordered = self.places.values().cloned().collect();
        ranking::order(&mut self.ordered, key.better);
        Ok(())
    }
}

/// The ranking that is asked for; `None` if the store has nothing of it.
pub(super) fn key(
    db: &Connection,
    (test, measure): (&str, &str),
    filesystem: Option<&str>,
    better: Better,
) -> rusqlite::Result<Option<Key>> {
    // A filesystem that nothing was measured on would be looked for in all results.
    let test = db
        .prepare_cached(
            "SELECT number FROM test WHERE name = ?1
             AND (?2 IS NULL OR EXISTS (SELECT 1 FROM submission WHERE filesystem = ?2))",
        )?
        .query_row(params![test, filesystem], |row| row.get(0))
        .optional()?;
    Ok(test.map(|test| Key {
        test,
        measure: measure.to_owned(),
        filesystem: filesystem.map(str::to_owned),
        better,
    }))
}

/// The products of a test whose values changed after a number, and the number that they are at.
fn changed(db: &Connection, test: i64, after: i64) -> rusqlite::Result<(HashSet<Product>, i64)> {
    let mut statement = db.prepare_cached(
        "SELECT changed.number, vendor, model, part, capacity_bytes
         FROM changed JOIN device ON device.number = changed.device
         WHERE test = ?1 AND changed.number > ?2",
    )?;
    let mut rows = statement.query([test, after])?;
    let (mut products, mut upto) = (HashSet::new(), after);
    while let Some(row) = rows.next()? {
        upto = upto.max(row.get(0)?);
        products.insert(Product {
            vendor: row.get(1)?,
            model: row.get(2)?,
            part: row.get(3)?,
            capacity_bytes: row.get::<_, i64>(4)?.unsigned_abs(),
        });
    }
    Ok((products, upto))
}

/// The values of a product's valid results, by installation.
fn values(
    db: &Connection,
    key: &Key,
    product: &Product,
) -> rusqlite::Result<HashMap<i64, Vec<f64>>> {
    // In this order: a product has few devices.
    let mut statement = db.prepare_cached(
        "SELECT installation, value FROM device CROSS JOIN metric ON metric.device = device.number
         WHERE vendor = ?1 AND model = ?2 AND part = ?3 AND capacity_bytes = ?4
         AND test = ?5 AND measure = ?6 AND counts AND (?7 IS NULL OR filesystem = ?7)",
    )?;
    let mut rows = statement.query(params![
        product.vendor,
        product.model,
        product.part,
        product.capacity_bytes as i64,
        key.test,
        key.measure,
        key.filesystem
    ])?;
    let mut values: HashMap<i64, Vec<f64>> = HashMap::new();
    while let Some(row) = rows.next()? {
        values.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(values)
}

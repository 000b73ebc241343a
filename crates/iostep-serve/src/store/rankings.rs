//! Rankings in memory, each brought up to the store before it is told: of what changed since the last
//! time, by whichever process, the values are read again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};

use super::query;
use crate::ranking::{self, Better, Conditions, Group};
use crate::subject::Product;

/// More than this are not kept: those that were not asked for the longest are made anew.
const MOST: usize = 64;

/// What is ranked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The number of the test.
    test: i64,
    measure: String,
    conditions: Conditions,
    better: Better,
}

/// A ranking as the store was when it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    /// The devices in their order.
    pub groups: Arc<[Group]>,
    /// What the results are of, and how many are of the same.
    pub conditions: Arc<[(Conditions, u64)]>,
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
    /// Without ranks, each with what its results are of.
    groups: HashMap<Product, (Group, HashMap<Conditions, u64>)>,
    /// All of them in their order.
    told: Ranked,
}

impl Rankings {
    /// A ranking, as the store is now.
    pub(super) fn tell(&self, db: &Connection, key: Key) -> rusqlite::Result<Ranked> {
        let ranking = self.find(key.clone());
        // Whoever asks for the same meanwhile waits, and has less to read.
        let mut ranking = ranking.lock().unwrap_or_else(PoisonError::into_inner);
        ranking.bring_up(db, &key)?;
        Ok(ranking.told.clone())
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
        let mut read = Vec::new();
        for product in products {
            let values = values(&moment, key, &product)?;
            let group = ranking::group(product.clone(), &values.installations, key.better);
            read.push((product, group.map(|group| (group, values.conditions))));
        }
        if read.is_empty() {
            return Ok(());
        }
        for (product, group) in read {
            match group {
                Some(group) => self.groups.insert(product, group),
                None => self.groups.remove(&product),
            };
        }
        self.upto = upto;
        let mut groups: Vec<Group> = self.groups.values().map(|(it, _)| it.clone()).collect();
        ranking::order(&mut groups, key.better);
        let mut conditions: HashMap<&Conditions, u64> = HashMap::new();
        for (condition, count) in self.groups.values().flat_map(|(_, counts)| counts) {
            *conditions.entry(condition).or_default() += count;
        }
        let conditions = conditions
            .into_iter()
            .map(|(it, count)| (it.clone(), count));
        self.told = Ranked {
            groups: groups.into(),
            conditions: conditions.collect(),
        };
        Ok(())
    }
}

/// The ranking that is asked for; `None` if the store has nothing of it.
pub(super) fn key(
    db: &Connection,
    (test, measure): (&str, &str),
    conditions: &Conditions,
    better: Better,
) -> rusqlite::Result<Option<Key>> {
    let Conditions {
        filesystem,
        kernel,
        android,
        part,
    } = conditions;
    // What nothing was measured on would be looked for in all results.
    let test = db
        .prepare_cached(
            "SELECT number FROM test WHERE name = ?1
             AND (?2 = '' OR EXISTS (SELECT 1 FROM submission WHERE filesystem = ?2))
             AND (?3 || ?4 || ?5 = '' OR EXISTS (SELECT 1 FROM device
                WHERE substr(kernel, 1, length(?3)) = ?3
                AND ?4 IN ('', android) AND ?5 IN ('', part)))",
        )?
        .query_row(params![test, filesystem, kernel, android, part], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(test.map(|test| Key {
        test,
        measure: measure.to_owned(),
        conditions: conditions.clone(),
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

/// The values of a product's valid results.
#[derive(Debug, Default)]
struct Values {
    installations: HashMap<i64, Vec<f64>>,
    conditions: HashMap<Conditions, u64>,
}

fn values(db: &Connection, key: &Key, product: &Product) -> rusqlite::Result<Values> {
    let mut found = Values::default();
    let mut devices = db.prepare_cached(
        "SELECT vendor, model, part, firmware, capacity_bytes, android, kernel, number FROM device
         WHERE vendor = ?1 AND model = ?2 AND part = ?3 AND capacity_bytes = ?4",
    )?;
    let Product {
        vendor,
        model,
        part,
        capacity_bytes,
    } = product;
    let mut devices = devices.query(params![vendor, model, part, *capacity_bytes as i64])?;
    while let Some(row) = devices.next()? {
        let device = query::device(row, 0)?;
        // Most devices have one filesystem.
        let mut filesystems: Vec<(Conditions, bool, u64)> = Vec::new();
        let mut statement = db.prepare_cached(
            "SELECT installation, value, filesystem FROM metric
             WHERE test = ?1 AND measure = ?2 AND device = ?3 AND counts",
        )?;
        let number: i64 = row.get(7)?;
        let mut rows = statement.query(params![key.test, key.measure, number])?;
        while let Some(row) = rows.next()? {
            let filesystem = row.get_ref(2)?.as_str()?;
            let known = filesystems
                .iter()
                .position(|(it, ..)| it.filesystem == filesystem);
            let place = known.unwrap_or_else(|| {
                let conditions = Conditions::of(&device, filesystem);
                let is_asked = key.conditions.admit(&conditions);
                filesystems.push((conditions, is_asked, 0));
                filesystems.len() - 1
            });
            let (_, is_asked, count) = &mut filesystems[place];
            if *is_asked {
                *count += 1;
                let values = found.installations.entry(row.get(0)?).or_default();
                values.push(row.get(1)?);
            }
        }
        for (conditions, _, count) in filesystems.into_iter().filter(|(_, is_asked, _)| *is_asked) {
            *found.conditions.entry(conditions).or_default() += count;
        }
    }
    Ok(found)
}

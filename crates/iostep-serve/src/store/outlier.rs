//! A result that is too far from what others measured with the same device: it waits for an operator.
//!
//! Compared is the logarithm of the rate, so that twice and half as much are as far away. The median
//! and the median absolute deviation are those of installations, each of which counts once, so
//! that nobody alone shifts them.

use std::collections::{BTreeSet, HashMap};

use iostep_model::quantile::median;
use rusqlite::{Connection, params};

use crate::check::Reason;
use crate::upload::Upload;

/// The code of the reason.
pub(super) const CODE: &str = "outlier";
/// What is compared. The index of the schema has its values alone.
const MEASURE: &str = "operations_per_second";
/// Fewer other installations than this say nothing about what is usual.
const LEAST_INSTALLATIONS: usize = 10;
/// How many results of a device are compared with, the newest.
const OF_DEVICE: usize = 32;
/// How many of these may be one installation's, so that nobody alone fills the place of all others.
const EACH: usize = 4;
/// How many results of a device are looked at for that, so that an upload takes no longer for those
/// that there are.
const LOOKED_AT: usize = 1024;
/// How many devices of a product, which differ by firmware, kernel and Android, are compared with: the
/// oldest, before which nobody can put any, and as many of the newest.
const DEVICES: usize = 16;
/// Of so many of either those that have results are looked for.
const KNOWN: usize = 1024;
/// A result is doubted only if it is more than so many times as fast or as slow as the median:
/// devices that are full or old or hot differ by less.
const TIMES: f64 = 3.0;
/// And only if it is so many standard deviations away, as the median absolute deviation tells
/// them: of values that spread widely none is an outlier.
const DEVIATIONS: f64 = 6.0;
/// A normal distribution's standard deviation, in median absolute deviations.
const OF_NORMAL: f64 = 1.4826;

/// Why an upload is doubted, if it is. `test` and `installation` are their numbers in the store.
pub(super) fn doubt(
    db: &Connection,
    upload: &Upload,
    test: i64,
    installation: i64,
) -> rusqlite::Result<Option<Reason>> {
    let rate = upload.figures.iter().find(|it| it.measure == MEASURE);
    let Some(rate) = rate else {
        return Ok(None);
    };
    let others = others(db, upload, test, installation)?;
    Ok(distance(rate.value, &others).map(|text| Reason {
        code: CODE.into(),
        text,
    }))
}

/// What is wrong with a rate beside those of others; `None` if nothing is.
fn distance(rate: f64, others: &[f64]) -> Option<String> {
    if others.len() < LEAST_INSTALLATIONS {
        return None;
    }
    let others: Vec<f64> = others.iter().map(|rate| rate.ln()).collect();
    let middle = median(&others)?;
    let distances: Vec<f64> = others.iter().map(|rate| (rate - middle).abs()).collect();
    let deviation = OF_NORMAL * median(&distances)?;
    let distance = (rate.ln() - middle).abs();
    (distance > TIMES.ln().max(DEVIATIONS * deviation)).then(|| {
        let direction = if rate.ln() > middle { "above" } else { "below" };
        format!(
            "{rate:.1} operations per second are {:.1} times {direction} the median {:.1} of {} other \
             installations, whose standard deviation is a factor of {:.3}",
            distance.exp(),
            middle.exp(),
            others.len(),
            deviation.exp()
        )
    })
}

/// The medians of other installations, of their newest valid results of the same test, product and
/// filesystem.
fn others(
    db: &Connection,
    upload: &Upload,
    test: i64,
    installation: i64,
) -> rusqlite::Result<Vec<f64>> {
    let mut newest = db.prepare_cached(
        "SELECT installation, value FROM metric
         WHERE measure = 'operations_per_second' AND counts = 1
         AND test = ?1 AND device = ?2 AND filesystem = ?3
         ORDER BY submission DESC LIMIT ?4",
    )?;
    let mut counted: HashMap<i64, usize> = HashMap::new();
    let mut results: Vec<(i64, f64)> = Vec::new();
    for device in devices(db, upload, test)? {
        let parameters = params![test, device, upload.filesystem, LOOKED_AT as i64];
        let mut rows = newest.query(parameters)?;
        let before = results.len();
        while results.len() < before + OF_DEVICE
            && let Some(row) = rows.next()?
        {
            let other = row.get(0)?;
            let count: &mut usize = counted.entry(other).or_default();
            *count += 1;
            if other != installation && *count <= EACH {
                results.push((other, row.get(1)?));
            }
        }
    }
    let mut by_installation: HashMap<i64, Vec<f64>> = HashMap::new();
    for (other, rate) in results {
        // A rate of nothing has no logarithm.
        if rate > 0.0 {
            by_installation.entry(other).or_default().push(rate);
        }
    }
    Ok(by_installation
        .values()
        .filter_map(|rates| median(rates))
        .collect())
}

/// The oldest and the newest devices of an upload's product that have valid results of the test on its
/// filesystem.
fn devices(db: &Connection, upload: &Upload, test: i64) -> rusqlite::Result<BTreeSet<i64>> {
    let device = &upload.device;
    let mut all = BTreeSet::new();
    for order in ["ASC", "DESC"] {
        let mut devices = db.prepare_cached(&format!(
            "SELECT known.number FROM
                (SELECT number FROM device WHERE vendor = ?1 AND model = ?2 AND part = ?3
                    AND capacity_bytes = ?4 ORDER BY number {order} LIMIT ?5) AS known
             WHERE EXISTS (SELECT 1 FROM metric WHERE measure = 'operations_per_second'
                AND counts = 1 AND test = ?6 AND metric.device = known.number
                AND filesystem = ?7)
             LIMIT ?8"
        ))?;
        let parameters = params![
            device.vendor,
            device.model,
            device.part,
            device.capacity_bytes as i64,
            KNOWN as i64,
            test,
            upload.filesystem,
            DEVICES as i64
        ];
        for number in devices.query_map(parameters, |row| row.get(0))? {
            all.insert(number?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates around 1000, whose logarithms are evenly spread.
    fn spread(count: u32, factor: f64) -> Vec<f64> {
        let at = |number: u32| f64::from(number) / f64::from(count - 1) * 2.0 - 1.0;
        (0..count).map(|it| 1000.0 * factor.powf(at(it))).collect()
    }

    #[test]
    fn what_devices_of_one_kind_differ_by_is_no_outlier() {
        let narrow = spread(20, 1.05);
        for rate in [950.0, 1050.0, 500.0, 2_000.0, 2_950.0, 340.0] {
            assert_eq!(distance(rate, &narrow), None, "{rate}");
        }
        // Half of them are more than twice as fast or as slow as the median.
        let wide = spread(20, 5.0);
        for rate in [200.0, 5_000.0, 20_000.0, 50.0] {
            assert_eq!(distance(rate, &wide), None, "{rate}");
        }
        let same = [1000.0; 10];
        assert_eq!(distance(2_900.0, &same), None);
    }

    #[test]
    fn what_none_of_many_comes_near_is_one_and_the_reason_has_the_numbers() {
        let narrow = spread(21, 1.05);
        let reason = distance(10_000.0, &narrow).expect("an outlier");
        assert_eq!(
            reason,
            "10000.0 operations per second are 10.0 times above the median 1000.0 of 21 other \
             installations, whose standard deviation is a factor of 1.037"
        );
        for rate in [3_100.0, 320.0, 0.0] {
            assert!(distance(rate, &narrow).is_some(), "{rate}");
        }
        let wide = spread(21, 1.5);
        assert_eq!(distance(5_000.0, &wide), None);
        assert!(distance(10_000.0, &wide).is_some());
    }

    #[test]
    fn few_installations_doubt_nobody() {
        assert_eq!(distance(1e9, &spread(9, 1.01)), None);
        assert!(distance(1e9, &spread(10, 1.01)).is_some());
    }
}

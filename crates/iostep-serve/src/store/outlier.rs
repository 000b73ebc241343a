//! A result that is too far from what others measured with the same device: it waits for an operator.
//!
//! Compared is a figure's logarithm, so that twice and half as much are as far away. The median
//! and the median absolute deviation are those of installations, each of which counts once, so
//! that nobody alone shifts them.

use std::collections::{BTreeSet, HashMap};

use iostep_model::quantile::median;
use rusqlite::{Connection, params};

use crate::check::Reason;
use crate::upload::Upload;

/// The code of the reason.
pub(super) const CODE: &str = "outlier";
/// What is compared: each has an index of its own in the schema.
const COMPARED: [Compared; 2] = [
    Compared {
        measure: "operations_per_second",
        name: "operations per second",
        unit: 1.0,
        slower_too: true,
    },
    // Whoever has a full device waits long at times, and that is no reason for doubt.
    Compared {
        measure: "total_p99_ns",
        name: "µs within which 99 of 100 operations ended",
        unit: 1e3,
        slower_too: false,
    },
];

/// A figure that is compared.
struct Compared {
    measure: &'static str,
    name: &'static str,
    /// What one of that name is in the measure's own unit.
    unit: f64,
    /// A result is doubted also for being worse than those of others: less of a rate. Of a latency only
    /// less is doubted.
    slower_too: bool,
}

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
    let kin = Kin {
        test,
        devices: devices(db, upload, test)?,
        filesystem: upload.filesystem.clone(),
    };
    for compared in &COMPARED {
        let mut figures = upload.figures.iter();
        let Some(figure) = figures.find(|it| it.measure == compared.measure) else {
            continue;
        };
        let others = others(db, compared.measure, &kin, installation)?;
        if let Some(text) = distance(compared, figure.value, &others) {
            let code = CODE.into();
            return Ok(Some(Reason { code, text }));
        }
    }
    Ok(None)
}

/// What is wrong with a figure beside those of others; `None` if nothing is.
fn distance(compared: &Compared, value: f64, others: &[f64]) -> Option<String> {
    if others.len() < LEAST_INSTALLATIONS {
        return None;
    }
    let others: Vec<f64> = others.iter().map(|value| value.ln()).collect();
    let middle = median(&others)?;
    let distances: Vec<f64> = others.iter().map(|value| (value - middle).abs()).collect();
    let deviation = OF_NORMAL * median(&distances)?;
    let distance = value.ln() - middle;
    if distance.abs() <= TIMES.ln().max(DEVIATIONS * deviation) {
        return None;
    }
    let is_above = distance > 0.0;
    (compared.slower_too || !is_above).then(|| {
        format!(
            "{:.1} {} are {:.1} times {} the median {:.1} of {} other installations, whose standard \
             deviation is a factor of {:.3}",
            value / compared.unit,
            compared.name,
            distance.abs().exp(),
            if is_above { "above" } else { "below" },
            middle.exp() / compared.unit,
            others.len(),
            deviation.exp()
        )
    })
}

/// What of results is compared with those of an upload: a test's, on devices of its product, on its
/// filesystem.
struct Kin {
    test: i64,
    devices: BTreeSet<i64>,
    filesystem: String,
}

/// SQL of a device's newest values of a measure. Only with that in the text it is known that its index
/// has all of them.
fn of_newest(measure: &str) -> String {
    format!(
        "SELECT installation, value FROM metric
         WHERE measure = '{measure}' AND counts = 1
         AND test = ?1 AND device = ?2 AND filesystem = ?3
         ORDER BY submission DESC LIMIT ?4"
    )
}

/// The medians of a measure of other installations, of their newest valid results.
fn others(
    db: &Connection,
    measure: &str,
    kin: &Kin,
    installation: i64,
) -> rusqlite::Result<Vec<f64>> {
    let mut newest = db.prepare_cached(&of_newest(measure))?;
    let mut counted: HashMap<i64, usize> = HashMap::new();
    let mut results: Vec<(i64, f64)> = Vec::new();
    for device in &kin.devices {
        let parameters = params![kin.test, device, kin.filesystem, LOOKED_AT as i64];
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
    for (other, value) in results {
        // Nothing has no logarithm.
        if value > 0.0 {
            by_installation.entry(other).or_default().push(value);
        }
    }
    Ok(by_installation
        .values()
        .filter_map(|values| median(values))
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
    use crate::store::Store;

    const RATE: &Compared = &COMPARED[0];
    const TAIL: &Compared = &COMPARED[1];

    /// Rates around 1000, whose logarithms are evenly spread.
    fn spread(count: u32, factor: f64) -> Vec<f64> {
        let at = |number: u32| f64::from(number) / f64::from(count - 1) * 2.0 - 1.0;
        (0..count).map(|it| 1000.0 * factor.powf(at(it))).collect()
    }

    #[test]
    fn what_devices_of_one_kind_differ_by_is_no_outlier() {
        let narrow = spread(20, 1.05);
        for rate in [950.0, 1050.0, 500.0, 2_000.0, 2_950.0, 340.0] {
            assert_eq!(distance(RATE, rate, &narrow), None, "{rate}");
        }
        // Half of them are more than twice as fast or as slow as the median.
        let wide = spread(20, 5.0);
        for rate in [200.0, 5_000.0, 20_000.0, 50.0] {
            assert_eq!(distance(RATE, rate, &wide), None, "{rate}");
        }
        let same = [1000.0; 10];
        assert_eq!(distance(RATE, 2_900.0, &same), None);
    }

    #[test]
    fn what_none_of_many_comes_near_is_one_and_the_reason_has_the_numbers() {
        let narrow = spread(21, 1.05);
        let reason = distance(RATE, 10_000.0, &narrow).expect("an outlier");
        assert_eq!(
            reason,
            "10000.0 operations per second are 10.0 times above the median 1000.0 of 21 other \
             installations, whose standard deviation is a factor of 1.037"
        );
        for rate in [3_100.0, 320.0, 0.0] {
            assert!(distance(RATE, rate, &narrow).is_some(), "{rate}");
        }
        let wide = spread(21, 1.5);
        assert_eq!(distance(RATE, 5_000.0, &wide), None);
        assert!(distance(RATE, 10_000.0, &wide).is_some());
    }

    #[test]
    fn of_a_tail_only_a_short_one_is_doubted() {
        let others: Vec<f64> = spread(21, 1.05).into_iter().map(|it| it * 1e4).collect();
        for p99_ns in [1e12, 3.1e7, 1e7, 3.4e6] {
            assert_eq!(distance(TAIL, p99_ns, &others), None, "{p99_ns}");
        }
        assert_eq!(
            distance(TAIL, 1e6, &others).expect("an outlier"),
            "1000.0 µs within which 99 of 100 operations ended are 10.0 times below the median 10000.0 of 21 \
             other installations, whose standard deviation is a factor of 1.037"
        );
    }

    #[test]
    fn each_has_an_index_of_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(&directory.path().join("data")).expect("a store");
        let db = store.connect().expect("a connection");
        for (compared, index) in COMPARED.iter().zip(["", "_tail"]) {
            let sql = format!("EXPLAIN QUERY PLAN {}", of_newest(compared.measure));
            let plan = db.query_row(&sql, ["", "", "", ""], |row| row.get::<_, String>(3));
            assert_eq!(
                plan.expect("a plan"),
                format!(
                    "SEARCH metric USING COVERING INDEX metric_compared{index} \
                     (test=? AND device=? AND filesystem=?)"
                )
            );
        }
    }

    #[test]
    fn few_installations_doubt_nobody() {
        assert_eq!(distance(RATE, 1e9, &spread(9, 1.01)), None);
        assert!(distance(RATE, 1e9, &spread(10, 1.01)).is_some());
    }
}

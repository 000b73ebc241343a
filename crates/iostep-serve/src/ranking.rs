//! How a device is ranked: by what its installations measured, each of which counts once.

use std::collections::HashMap;

pub use iostep_analyze::bench::Better;
use iostep_analyze::bench::Measure;
use iostep_model::quantile::median;
use iostep_report::plot::strip;
use serde::Serialize;

use crate::subject::{Device, Product};

/// A device of fewer installations is shown, and has no rank.
pub const LEAST_INSTALLATIONS: usize = 5;
/// What may be outside of an interval.
pub const OUTSIDE: f64 = 0.05;

/// Which of a measure's values is the better one, by the measure's name; `None` for a name that no
/// measure has.
pub fn better_of(measure: &str) -> Option<Better> {
    let found = Measure::all().find(|it| it.to_string() == measure)?;
    Some(found.better())
}

/// A device in a ranking: firmware, Android and kernel of its results may differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// From 1; `None` for fewer than [`LEAST_INSTALLATIONS`]. Equal medians have equal ranks.
    pub rank: Option<u64>,
    pub vendor: String,
    pub model: String,
    pub part: String,
    pub capacity_bytes: u64,
    pub installations: u64,
    pub results: u64,
    /// The best installation's median.
    pub best: f64,
    /// Of the installations' medians.
    pub median: f64,
    /// The 95 % interval of that median; `None` where there are too few to tell.
    pub interval: Option<[f64; 2]>,
    /// The worst installation's median.
    pub worst: f64,
}

impl Place {
    pub fn product(&self) -> Product {
        Product {
            vendor: self.vendor.clone(),
            model: self.model.clone(),
            part: self.part.clone(),
            capacity_bytes: self.capacity_bytes,
        }
    }

    fn name(&self) -> (&str, &str, &str, u64) {
        (&self.vendor, &self.model, &self.part, self.capacity_bytes)
    }
}

/// A device in a ranking, and how its values lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub place: Place,
    /// The medians of its installations, ascending; of very many, as many as are shown.
    pub medians: Vec<f64>,
}

/// What results are of; an empty text of a question is any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conditions {
    pub filesystem: String,
    /// The kernel's series.
    pub kernel: String,
    pub android: String,
    /// The storage in the device.
    pub part: String,
}

impl Conditions {
    /// Those of a device's results on a filesystem.
    pub fn of(device: &Device, filesystem: &str) -> Conditions {
        Conditions {
            filesystem: filesystem.to_owned(),
            kernel: series(&device.kernel).to_owned(),
            android: device.android.clone(),
            part: device.part.clone(),
        }
    }

    /// True if results under `found` are among those that this asks for.
    pub fn admit(&self, found: &Conditions) -> bool {
        let pairs = [
            (&self.filesystem, &found.filesystem),
            (&self.kernel, &found.kernel),
            (&self.android, &found.android),
            (&self.part, &found.part),
        ];
        pairs
            .into_iter()
            .all(|(asked, found)| asked.is_empty() || asked == found)
    }
}

/// The first two numbers of a kernel's release: those of phones are of a few series, each with many
/// builds.
fn series(kernel: &str) -> &str {
    let mut points = kernel.match_indices('.');
    let second = points.nth(1).map_or(kernel.len(), |(place, _)| place);
    &kernel[..second]
}

/// The medians of installations, ascending.
fn medians(installations: &HashMap<i64, Vec<f64>>) -> Vec<f64> {
    let mut medians: Vec<f64> = installations.values().filter_map(|it| median(it)).collect();
    medians.sort_by(f64::total_cmp);
    medians
}

/// Puts devices in the order of their medians, the best first, and those without a rank behind; gives
/// them their ranks.
pub fn order(groups: &mut [Group], better: Better) {
    groups.sort_by(|Group { place: one, .. }, Group { place: other, .. }| {
        let unranked = |place: &Place| (place.installations as usize) < LEAST_INSTALLATIONS;
        let by_median = match better {
            Better::Higher => other.median.total_cmp(&one.median),
            Better::Lower => one.median.total_cmp(&other.median),
        };
        unranked(one)
            .cmp(&unranked(other))
            .then(by_median)
            .then_with(|| one.name().cmp(&other.name()))
    });
    let ranked = groups
        .iter_mut()
        .map(|group| &mut group.place)
        .take_while(|place| place.installations as usize >= LEAST_INSTALLATIONS);
    let mut last: Option<(f64, u64)> = None;
    for (number, place) in (1..).zip(ranked) {
        let rank = match last {
            Some((median, rank)) if median == place.median => rank,
            _ => number,
        };
        place.rank = Some(rank);
        last = Some((place.median, rank));
    }
}

/// A device's place, without a rank, by the values of each installation's results; `None` if there
/// are none.
pub fn group(
    product: Product,
    installations: &HashMap<i64, Vec<f64>>,
    better: Better,
) -> Option<Group> {
    let Product {
        vendor,
        model,
        part,
        capacity_bytes,
    } = product;
    let medians = medians(installations);
    let (low, high) = (*medians.first()?, *medians.last()?);
    let (best, worst) = match better {
        Better::Higher => (high, low),
        Better::Lower => (low, high),
    };
    let place = Place {
        rank: None,
        vendor,
        model,
        part,
        capacity_bytes,
        installations: medians.len() as u64,
        results: installations.values().map(|it| it.len() as u64).sum(),
        best,
        median: median(&medians)?,
        interval: median_interval(&medians),
        worst,
    };
    let medians = strip::shown(&medians);
    Some(Group { place, medians })
}

/// The 95 % interval of the median of what ascending values are drawn from: two of the values, by the
/// binomial distribution, whatever theirs is. `None` for fewer than six, of which no two are far
/// enough apart.
///
/// Source: W. J. Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2.
fn median_interval(ascending: &[f64]) -> Option<[f64; 2]> {
    let count = ascending.len();
    // Probability that at most `below` of the values are less than the median.
    let mut term_ln = -(count as f64) * std::f64::consts::LN_2;
    let mut tail = term_ln.exp();
    let mut below = None;
    for number in 0..count / 2 {
        if 2.0 * tail > OUTSIDE {
            break;
        }
        below = Some(number);
        term_ln += ((count - number) as f64 / (number + 1) as f64).ln();
        tail += term_ln.exp();
    }
    let below = below?;
    Some([ascending[below], ascending[count - 1 - below]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: &str, installations: &[&[f64]], better: Better) -> Group {
        let product = Product {
            vendor: String::new(),
            model: String::new(),
            part: part.into(),
            capacity_bytes: 0,
        };
        let values = installations.iter().map(|values| values.to_vec());
        group(product, &(0..).zip(values).collect(), better).expect("values")
    }

    #[test]
    fn the_interval_of_a_median_is_the_textbooks() {
        let ascending = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        // Table of Conover: ranks 1 and 6, 2 and 9, 6 and 15, 40 and 61.
        for (count, expected) in [
            (5, None),
            (6, Some([1.0, 6.0])),
            (10, Some([2.0, 9.0])),
            (20, Some([6.0, 15.0])),
            (100, Some([40.0, 61.0])),
        ] {
            assert_eq!(median_interval(&ascending(count)), expected, "{count}");
        }
        let [low, high] = median_interval(&ascending(100_000)).expect("many");
        assert_eq!((low, high), (49_690.0, 50_311.0));
    }

    #[test]
    fn an_installation_counts_once_by_its_median() {
        let values: [&[f64]; 5] = [&[1.0, 9.0, 2.0], &[4.0], &[5.0], &[6.0], &[7.0]];
        let Group { place, medians } = of("a", &values, Better::Higher);
        assert_eq!(medians, [2.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!((place.installations, place.results), (5, 7));
        assert_eq!((place.best, place.median, place.worst), (7.0, 5.0, 2.0));
        assert_eq!(place.interval, None);
    }

    #[test]
    fn few_installations_have_no_rank_and_equal_medians_have_the_same() {
        let same: [&[f64]; 5] = [&[3.0], &[3.0], &[3.0], &[3.0], &[3.0]];
        let slow: [&[f64]; 5] = [&[1.0]; 5];
        let shown = |better| -> Vec<(String, Option<u64>)> {
            let few: [&[f64]; 1] = [&[99.0]];
            let all: [(&str, &[&[f64]]); 4] =
                [("slow", &slow), ("few", &few), ("b", &same), ("a", &same)];
            let mut groups: Vec<Group> = all.map(|(part, values)| of(part, values, better)).into();
            order(&mut groups, better);
            let places = groups.into_iter().map(|it| it.place);
            places.map(|it| (it.part, it.rank)).collect()
        };
        let place = |part: &str, rank| (part.to_owned(), rank);
        assert_eq!(
            shown(Better::Higher),
            [
                place("a", Some(1)),
                place("b", Some(1)),
                place("slow", Some(3)),
                place("few", None)
            ]
        );
        assert_eq!(shown(Better::Lower)[0], place("slow", Some(1)));
    }

    #[test]
    fn a_series_is_two_numbers() {
        let found = ["5.10.198-android13-4", "6.18", "6", ""].map(series);
        assert_eq!(found, ["5.10", "6.18", "6", ""]);
    }

    #[test]
    fn a_measure_says_which_end_is_the_better_one() {
        assert_eq!(better_of("operations_per_second"), Some(Better::Higher));
        assert_eq!(better_of("total_p99_ns"), Some(Better::Lower));
        assert_eq!(better_of("luck"), None);
    }
}

//! Quantiles, and the median.

/// Quantiles by nearest rank of `count` values: each is a value that occurred. The values ascend,
/// each with how often it occurred; so do the quantiles, in thousandths. 0 without values.
pub fn nearest_rank<const N: usize>(
    ascending: impl IntoIterator<Item = (u64, u64)>,
    count: u64,
    per_mille: [u64; N],
) -> [u64; N] {
    let mut rest = ascending.into_iter();
    let (mut value, mut passed) = (0, 0);
    per_mille.map(|share| {
        let rank = (u128::from(count) * u128::from(share)).div_ceil(1000);
        while passed < rank.max(1) {
            let Some((next, times)) = rest.next() else {
                break;
            };
            value = next;
            passed += u128::from(times);
        }
        value
    })
}

/// The middle value, or the mean of the two in the middle; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(match sorted.len() % 2 {
        0 => (sorted[sorted.len() / 2 - 1] + upper) / 2.0,
        _ => upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_median_of_two_lies_between_them() {
        let found = [&[][..], &[3.0], &[4.0, 1.0], &[9.0, 1.0, 2.0]].map(median);
        assert_eq!(found, [None, Some(3.0), Some(2.5), Some(2.0)]);
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_value_at_its_rank(
            mut values in proptest::collection::vec((0u64..50, 1u64..5), 1..40), share in 0u64..=1000,
        ) {
            values.sort_unstable();
            let plain = values.iter().flat_map(|(value, times)| (0..*times).map(|_| *value));
            let plain: Vec<u64> = plain.collect();
            let count = plain.len() as u64;
            let rank = (count * share).div_ceil(1000).max(1) as usize;
            let [found] = nearest_rank(values, count, [share]);
            prop_assert_eq!(found, plain[rank - 1]);
        }
    }
}

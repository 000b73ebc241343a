//! Student's distribution.

use std::f64::consts::FRAC_PI_2;
use std::sync::OnceLock;

/// Beyond so many degrees of freedom the normal distribution's value is right to 0.1 %.
const NEARLY_NORMAL: f64 = 5_000.0;
/// The value of the normal distribution.
const NORMAL_95: f64 = 1.959_964;
const STEPS: u32 = 4096;
/// Whole degrees of freedom below this are computed once: a mean of some runs has them, and a
/// summary has many means.
const KNOWN: usize = 128;

/// The `t` that Student's distribution with `freedom` (at least 1) degrees of freedom exceeds, on
/// both sides together, with a probability of 5 %.
///
/// With `t = sqrt(freedom) tan(x)` the density becomes proportional to `cos(x)^(freedom - 1)`,
/// which is summed up from 0 to pi/2: no gamma function is needed.
/// Source: Student, The probable error of a mean, Biometrika 6 (1908), section III.
pub(crate) fn t_95(freedom: f64) -> f64 {
    static WHOLE: [OnceLock<f64>; KNOWN] = [const { OnceLock::new() }; KNOWN];
    let whole = freedom as usize;
    match WHOLE.get(whole) {
        Some(known) if freedom == whole as f64 => *known.get_or_init(|| computed(freedom)),
        _ => computed(freedom),
    }
}

fn computed(freedom: f64) -> f64 {
    if freedom >= NEARLY_NORMAL {
        return NORMAL_95;
    }
    let width = FRAC_PI_2 / f64::from(STEPS);
    let density = |step: u32| ((f64::from(step) + 0.5) * width).cos().powf(freedom - 1.0);
    let wanted = 0.95 * (0..STEPS).map(density).sum::<f64>();
    let mut passed = 0.0;
    for step in 0..STEPS {
        let part = density(step);
        if passed + part >= wanted {
            let x = (f64::from(step) + (wanted - passed) / part) * width;
            return freedom.sqrt() * x.tan();
        }
        passed += part;
    }
    f64::INFINITY
}

/// By how much two means differ at most by chance alone, with a probability of 95 %, where each has
/// a standard error from so many values.
///
/// Source: B. L. Welch, The Generalization of Student's Problem, Biometrika 34 (1947).
pub(crate) fn welch_95([(a, a_values), (b, b_values)]: [(f64, f64); 2]) -> f64 {
    let (a, b) = (a * a, b * b);
    let freedom = (a + b).powi(2) / (a * a / (a_values - 1.0) + b * b / (b_values - 1.0));
    // Without any spread the freedom is no number.
    t_95(freedom.max(1.0)) * (a + b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_of_the_tables() {
        let table = [
            (1.0, 12.706),
            (2.0, 4.303),
            (3.0, 3.182),
            (4.0, 2.776),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
            (1000.0, 1.962),
            (1e9, 1.960),
        ];
        for (freedom, expected) in table {
            let found = t_95(freedom);
            assert_eq!(t_95(freedom), found);
            assert!(
                (found - expected).abs() < 0.0015,
                "{freedom}: {found} for {expected}"
            );
        }
    }

    #[test]
    fn fewer_degrees_of_freedom_need_a_wider_interval() {
        let values: Vec<f64> = (10..200)
            .map(|tenths| t_95(f64::from(tenths) / 10.0))
            .collect();
        assert!(values.is_sorted_by(|a, b| a > b));
    }
}

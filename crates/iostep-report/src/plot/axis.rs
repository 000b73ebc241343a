//! Where values lie on a plot.

use std::fmt;

/// A place, or a length. A tenth of a pixel is enough.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Px(pub f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}

/// A line of the grid.
pub struct Tick {
    pub at: Px,
    pub text: String,
}

/// From values to pixels.
pub struct Axis {
    scale: Scale,
    from_px: f64,
    to_px: f64,
}

enum Scale {
    /// From 0 to `last`, with a tick at each multiple of `step`.
    Linear { last: f64, step: f64 },
    /// From 10^`first` to 10^`last`.
    Decades { first: f64, last: f64 },
    /// Shares from 0 to 1 - 10^-`last`: as far from 90 % to 99 % as from 99 % to 99.9 %.
    Nines { last: f64 },
}

/// About so many ticks divide a linear axis.
const TICKS: f64 = 5.0;
/// More decades than this do not all have a tick.
const DECADES: f64 = 8.0;

impl Axis {
    /// From 0 to a round number that is not below `greatest`; `unit` is 1, or what units are
    /// counted in.
    pub fn linear(greatest: f64, unit: f64, (from_px, to_px): (f64, f64)) -> Axis {
        let greatest = if greatest > 0.0 { greatest / unit } else { 1.0 };
        let rough = greatest / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let round = steps.into_iter().find(|step| *step >= rough);
        let step = round.unwrap_or(rough) * unit;
        let last = step * (greatest * unit / step).ceil();
        Axis {
            scale: Scale::Linear { last, step },
            from_px,
            to_px,
        }
    }

    /// Bytes, whose round numbers are those of KiB, MiB and so on.
    pub fn bytes(greatest: f64, px: (f64, f64)) -> Axis {
        let power = greatest.max(1.0).log2() / 10.0;
        Axis::linear(greatest, 1024f64.powf(power.floor()), px)
    }

    /// Powers of ten around two values, both above 0.
    pub fn decades(least: f64, greatest: f64, (from_px, to_px): (f64, f64)) -> Axis {
        let first = least.max(1.0).log10().floor();
        let last = greatest.max(1.0).log10().ceil().max(first + 1.0);
        Axis {
            scale: Scale::Decades { first, last },
            from_px,
            to_px,
        }
    }

    /// From one value to another, both above 0, by their logarithms.
    pub fn logarithms(least: f64, greatest: f64, (from_px, to_px): (f64, f64)) -> Axis {
        Axis {
            scale: Scale::Decades {
                first: least.log10(),
                last: greatest.log10(),
            },
            from_px,
            to_px,
        }
    }

    /// Shares that are told apart up to one in `count`.
    pub fn nines(count: f64, (from_px, to_px): (f64, f64)) -> Axis {
        let last = count.max(10.0).log10().ceil().clamp(2.0, 6.0);
        Axis {
            scale: Scale::Nines { last },
            from_px,
            to_px,
        }
    }

    /// Where a value lies, never off the axis.
    pub fn at(&self, value: f64) -> Px {
        let share = match self.scale {
            Scale::Linear { last, .. } => value / last,
            Scale::Decades { first, last } => (value.max(1.0).log10() - first) / (last - first),
            Scale::Nines { last } => -(1.0 - value).max(0.0).log10() / last,
        };
        Px(self.from_px + share.clamp(0.0, 1.0) * (self.to_px - self.from_px))
    }

    /// The grid.
    pub fn ticks(&self, text: impl Fn(f64) -> String) -> Vec<Tick> {
        let values: Vec<f64> = match self.scale {
            Scale::Linear { last, step } => {
                let steps = (last / step).round() as u32;
                (0..=steps).map(|number| f64::from(number) * step).collect()
            }
            Scale::Decades { first, last } => {
                let stride = ((last - first) / DECADES).ceil() as usize;
                let decades = (first as i32..=last as i32).step_by(stride);
                decades.map(|decade| 10f64.powi(decade)).collect()
            }
            Scale::Nines { last } => {
                let nines = (1..=last as i32).map(|nines| 1.0 - 10f64.powi(-nines));
                [0.0, 0.5].into_iter().chain(nines).collect()
            }
        };
        let tick = |value| Tick {
            at: self.at(value),
            text: without_zeros(&text(value)),
        };
        values.into_iter().map(tick).collect()
    }
}

/// Round numbers without zeros that say nothing: `2.5`, not `2.50`; `1 ms`.
fn without_zeros(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zeros_behind_the_point_say_nothing() {
        let found = ["5.00", "10.0 ms", "0.250", "1,500", "100 ns", "0"].map(without_zeros);
        assert_eq!(found, ["5", "10 ms", "0.25", "1,500", "100 ns", "0"]);
    }

    #[test]
    fn a_linear_axis_has_round_ticks_and_holds_its_greatest_value() {
        for (greatest, expected) in [(987.0, 1000.0), (1001.0, 1500.0), (0.0, 1.0), (0.03, 0.03)] {
            let axis = Axis::linear(greatest, 1.0, (0.0, 100.0));
            let ticks = axis.ticks(|value| format!("{value:.3}"));
            let last: f64 = ticks.last().expect("ticks").text.parse().expect("a number");
            assert!((last - expected).abs() < 1e-9, "{greatest}: {last}");
            assert!(axis.at(greatest).0 <= 100.0);
        }
    }

    #[test]
    fn bytes_are_counted_in_their_units() {
        let axis = Axis::bytes(9e6, (0.0, 1.0));
        let ticks = axis.ticks(|value| (value / 1048576.0).to_string());
        let texts: Vec<&str> = ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["0", "2", "4", "6", "8", "10"]);
    }

    #[test]
    fn each_nine_is_as_long_as_the_one_before() {
        let axis = Axis::nines(1000.0, (0.0, 300.0));
        for (share, px) in [(0.0, 0.0), (0.9, 100.0), (0.99, 200.0), (1.0, 300.0)] {
            assert!((axis.at(share).0 - px).abs() < 1e-6, "{share}");
        }
    }
}

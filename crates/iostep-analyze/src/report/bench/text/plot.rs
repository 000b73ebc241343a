//! Throughput second by second, drawn with blocks.

use iostep_model::bench::Run;

use crate::report::quantity::decimal;
use crate::report::text::Style;

/// Columns of the drawing; more seconds than that share them.
const COLUMNS: usize = 60;
const ROWS: usize = 5;
/// Fewer seconds are no picture.
const LEAST_SECONDS: usize = 3;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The drawing below its title; nothing for a run of less than three whole seconds.
pub(super) fn of(run: &Run, title: &str, style: Style) -> String {
    let rates: Vec<f64> = run
        .seconds
        .iter()
        .filter(|second| second.length_ns >= 1_000_000_000)
        .map(|second| second.operations as f64 * 1e9 / second.length_ns as f64)
        .collect();
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    if rates.len() < LEAST_SECONDS || greatest <= 0.0 {
        return String::new();
    }
    let (columns, seconds_each) = columns(&rates);
    let mut text = format!("\n{}\n", style.bold(&format!("{title}, by second")));
    let label = format!("{}/s", decimal(greatest));
    for row in (0..ROWS).rev() {
        let name = match row {
            0 => "0",
            row if row == ROWS - 1 => &label,
            _ => "",
        };
        let line: String = columns
            .iter()
            .map(|rate| block(rate / greatest, row))
            .collect();
        text.push_str(format!(" {name:>11} |{line}").trim_end());
        text.push('\n');
    }
    let each = match seconds_each {
        1 => String::new(),
        seconds => format!(", {seconds} s in a column"),
    };
    text.push_str(&format!("              0 to {} s{each}\n", rates.len()));
    text
}

/// The mean of as many seconds in each column as it takes to have no more than [`COLUMNS`].
fn columns(rates: &[f64]) -> (Vec<f64>, usize) {
    let each = rates.len().div_ceil(COLUMNS).max(1);
    let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / seconds.len() as f64;
    (rates.chunks(each).map(mean).collect(), each)
}

/// What a column that is filled to `share` shows in a row, from 0 at the bottom.
fn block(share: f64, row: usize) -> char {
    let eighths = (share * (8 * ROWS) as f64).ceil() as usize;
    BLOCKS[eighths.saturating_sub(8 * row).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_without_operations_is_empty() {
        assert_eq!(block(0.0, 0), ' ');
        assert_eq!(block(1e-9, 0), '▁');
        assert_eq!((block(1.0, ROWS - 1), block(0.5, ROWS - 1)), ('█', ' '));
    }

    #[test]
    fn many_seconds_share_columns() {
        let rates: Vec<f64> = (0..150).map(f64::from).collect();
        let (columns, each) = columns(&rates);
        assert_eq!((columns.len(), each), (50, 3));
        assert_eq!(columns[1], 4.0);
    }
}

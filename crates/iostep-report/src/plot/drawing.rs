//! Plots drawn with characters.

use crate::quantity::decimal;

/// Columns of a drawing.
const COLUMNS: usize = 60;
const BLOCK_ROWS: usize = 5;
const POINT_ROWS: usize = 10;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Lines from the top, between the names of the greatest value and 0, above the line `bottom`.
fn frame(lines: impl IntoIterator<Item = String>, greatest: &str, bottom: &str) -> String {
    let lines: Vec<String> = lines.into_iter().collect();
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        let name = match place {
            0 => greatest,
            place if place + 1 == lines.len() => "0",
            _ => "",
        };
        text += &(format!(" {name:>11} |{line}").trim_end().to_owned() + "\n");
    }
    text + &format!("{:14}{bottom}\n", "")
}

/// Two courses from 0: the first with dots, the second with stars, both with a plus. A point is a
/// height and how far the first and the second are there; none without any width.
pub fn courses(
    points: &[(u64, [u64; 2])],
    name: impl Fn(u64) -> String,
    across: impl Fn(u64) -> String,
) -> Option<String> {
    let width = points.iter().flat_map(|point| point.1).max()?;
    let height = points.last()?.0;
    let place = |of: u64, whole: u64, most: usize| {
        (u128::from(of) * (most as u128 - 1) / u128::from(whole.max(1))) as usize
    };
    let mut cells = vec![[' '; COLUMNS]; POINT_ROWS];
    for &(at, far) in points {
        let row = &mut cells[place(at, height, POINT_ROWS)];
        let [first, second] = far.map(|far| place(far, width, COLUMNS));
        row[first] = '.';
        row[second] = if row[second] == ' ' { '*' } else { '+' };
    }
    let lines = cells.iter().rev().map(|row| row.iter().collect());
    let bottom = format!("0 to {}", across(width));
    (width > 0).then(|| frame(lines, &name(height), &bottom))
}

/// Rates a second, drawn with blocks; `None` for too few.
pub fn blocks(rates: &[f64]) -> Option<String> {
    /// Fewer seconds are no picture.
    const LEAST_SECONDS: usize = 3;
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    if rates.len() < LEAST_SECONDS || greatest <= 0.0 {
        return None;
    }
    let (columns, seconds_each) = columns(rates);
    let each = match seconds_each {
        1 => String::new(),
        seconds => format!(", {seconds} s in a column"),
    };
    let lines = (0..BLOCK_ROWS).rev().map(|row| {
        let blocks = columns.iter().map(|rate| block(rate / greatest, row));
        blocks.collect()
    });
    let bottom = format!("0 to {} s{each}", rates.len());
    Some(frame(lines, &format!("{}/s", decimal(greatest)), &bottom))
}

/// The mean of as many seconds in each column as it takes to have no more than [`COLUMNS`].
fn columns(rates: &[f64]) -> (Vec<f64>, usize) {
    let each = rates.len().div_ceil(COLUMNS).max(1);
    let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / seconds.len() as f64;
    (rates.chunks(each).map(mean).collect(), each)
}

/// What a column that is filled to `share` shows in a row, from 0 at the bottom.
fn block(share: f64, row: usize) -> char {
    let eighths = (share * (8 * BLOCK_ROWS) as f64).ceil() as usize;
    BLOCKS[eighths.saturating_sub(8 * row).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_without_operations_is_empty() {
        assert_eq!(block(0.0, 0), ' ');
        assert_eq!(block(1e-9, 0), '▁');
        let full = block(1.0, BLOCK_ROWS - 1);
        assert_eq!((full, block(0.5, BLOCK_ROWS - 1)), ('█', ' '));
    }

    #[test]
    fn many_seconds_share_columns() {
        let rates: Vec<f64> = (0..150).map(f64::from).collect();
        let (columns, each) = columns(&rates);
        assert_eq!((columns.len(), each), (50, 3));
        assert_eq!(columns[1], 4.0);
    }
}

//! Two traces side by side, as text.

use iostep_model::printable;

use super::Style;
use super::grid::grid;
use crate::compare::{Comparison, Unit};
use crate::report::quantity::{bytes, count, duration};

/// Shows a comparison; `names` are the two traces'. The first lines are failed self-checks.
pub fn render(comparison: &Comparison, names: [&str; 2], style: Style) -> String {
    let mut text = String::new();
    for (name, complaint) in names.iter().zip(&comparison.complaints) {
        if let Some(complaint) = complaint {
            let complaint = format!(
                "CHECK FAILED: {}: {}",
                printable(name),
                printable(complaint)
            );
            text.push_str(&style.alarm(&complaint));
            text.push('\n');
        }
    }
    let names = names.map(printable);
    for rows in comparison.rows.chunk_by(|a, b| a.group == b.group) {
        let right = names.clone().map(|name| format!(">{name}"));
        let group = format!("~{}", rows[0].group);
        let mut table = grid(style, &[&group, &right[0], &right[1], ">ratio"]);
        // A zero on both sides says nothing.
        for row in rows
            .iter()
            .filter(|row| row.first.max(row.second) > Some(0))
        {
            table.row([
                printable(&row.name).into(),
                value(row.first, row.unit),
                value(row.second, row.unit),
                row.ratio
                    .map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}x")),
            ]);
        }
        text.push_str(&table.untitled());
    }
    text
}

fn value(value: Option<u64>, unit: Unit) -> String {
    let show = match unit {
        Unit::Count => count,
        Unit::Bytes => bytes,
        Unit::Nanoseconds => duration,
    };
    value.map_or_else(|| "-".into(), show)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::stats::Summary;

    #[test]
    fn two_traces_stand_side_by_side() {
        let mut lossy = fixture::sqlite_on_ext4(60);
        lossy.manifest.check.lost_events = 1;
        let [first, second] = [fixture::sqlite_on_ext4(40), lossy].map(|t| Summary::of(&t));
        let comparison = Comparison::of(&first, &second);
        insta::assert_snapshot!(render(&comparison, ["old", "new"], Style::default()));
    }
}

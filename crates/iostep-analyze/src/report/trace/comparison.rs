//! Two traces side by side.

use iostep_model::unit::Unit;
use iostep_report::document::{Block, Cell, Document, Section, Table};

use crate::compare::Comparison;

/// The report of a comparison; `names` are the two traces'. The first lines are failed self-checks.
pub fn document(comparison: &Comparison, names: [&str; 2]) -> Document {
    let mut body = Section::default();
    for (name, complaint) in names.iter().zip(&comparison.complaints) {
        let complaint = complaint.iter();
        let alarm = complaint.map(|complaint| format!("CHECK FAILED: {name}: {complaint}"));
        body.alarms.extend(alarm);
    }
    let [first, second] = names.map(|name| format!(">{name}"));
    for group in comparison.rows.chunk_by(|a, b| a.group == b.group) {
        let name = format!("~{}", group[0].group);
        let columns = [name, first.clone(), second.clone(), ">ratio".to_owned()];
        // A zero on both sides says nothing.
        let rows = group
            .iter()
            .filter(|row| row.first.max(row.second) > Some(0));
        let rows = rows.map(|row| {
            let value = |value: Option<u64>| Cell::number(row.unit, value.map(|v| v as f64));
            vec![
                Cell::text(&row.name),
                value(row.first),
                value(row.second),
                Cell::number(Unit::Factor, row.ratio),
            ]
        });
        body.push(Block::Table(Table::new("", columns).rows(rows)));
    }
    Document::of(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;
    use iostep_model::fixture;
    use iostep_report::document::Detail;
    use iostep_report::text::Style;

    #[test]
    fn two_traces_stand_side_by_side() {
        let mut lossy = fixture::sqlite_on_ext4(60);
        lossy.manifest.check.lost_events = 1;
        let [first, second] = [fixture::sqlite_on_ext4(40), lossy].map(|t| Summary::of(&t));
        let comparison = Comparison::of(&first, &second);
        let text = document(&comparison, ["old", "new"]);
        insta::assert_snapshot!(text.text(Detail::Full, Style::default()));
    }
}

//! What a machine allows, as a text for its user and for a bug report.

use iostep_report::document::{Block, Cell, Document, Section, Table};

use super::disk;
use crate::doctor::{Ability, Checkup, Made, Seen};

/// The report: what works comes first.
pub fn document(checkup: &Checkup) -> Document {
    let mut body = Section::new(headline(&checkup.abilities));
    body.push(Block::Lines(machine(checkup)));
    let mut abilities = Section::new("What iostep can do here");
    let lines = checkup.abilities.iter().flat_map(ability);
    abilities.push(Block::Lines(lines.collect()));
    body.push(Block::Section(abilities));
    let made = checkup.filesystems.iter().map(made);
    let columns = ["filesystem", "mounted by this kernel", "made by"];
    body.push(Block::Table(
        Table::new("Filesystems that a lab makes", columns)
            .rows(made)
            .note("A guest mounts what this kernel does not.")
            .in_order(),
    ));
    let columns = ["mounted at", "filesystem", "of", "its own blocks"];
    let mounts = Table::new("Filesystems here", columns).rows(checkup.mounts.iter().map(seen));
    body.push(Block::Table(mounts.in_order()));
    let mut disks = Section::new("Disks");
    disks.push(Block::Lines(
        checkup.disks.iter().map(disk::label).collect(),
    ));
    body.push(Block::Section(disks));
    Document::of(body)
}

fn headline(abilities: &[Ability]) -> String {
    let missing = abilities.iter().filter(|ability| !ability.works);
    let missing: Vec<&str> = missing.map(|ability| ability.what).collect();
    match missing.is_empty() {
        true => "iostep doctor: everything works here".to_owned(),
        false => format!("iostep doctor: not here: {}", missing.join("; ")),
    }
}

fn machine(checkup: &Checkup) -> Vec<String> {
    let host = &checkup.host;
    let user = match checkup.user {
        0 => "root".to_owned(),
        id => format!("user {id}"),
    };
    let processor = match host.processor.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    vec![
        format!("iostep {} as {user}", checkup.iostep),
        format!(
            "Linux {} on {}, {} CPUs{processor}",
            host.kernel, host.machine, host.cpus
        ),
    ]
}

/// A line, and one for what is to be known of it.
fn ability(ability: &Ability) -> Vec<String> {
    let works = if ability.works { "yes" } else { "no" };
    let note = ability.note.iter().map(|note| format!("     {note}"));
    std::iter::once(format!("{works:<4} {}", ability.what))
        .chain(note)
        .collect()
}

fn made(made: &Made) -> Vec<Cell> {
    let mkfs = made.mkfs.as_ref().or(made.mkfs_missing.as_ref());
    vec![
        Cell::text(made.name),
        Cell::text(if made.mounts { "yes" } else { "no" }),
        Cell::text(mkfs.cloned().unwrap_or_default()),
    ]
}

fn seen(seen: &Seen) -> Vec<Cell> {
    vec![
        Cell::text(&seen.point),
        Cell::text(&seen.kind),
        Cell::text(&seen.source),
        Cell::text(if seen.is_known { "known" } else { "unknown" }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_work_is_in_the_first_line() {
        let ability = |what, works| Ability {
            what,
            works,
            note: None,
        };
        let all = [ability("trace", true), ability("lab guest", true)];
        assert!(headline(&all).ends_with("everything works here"));
        let some = [ability("trace", false), ability("lab guest", true)];
        assert!(headline(&some).ends_with("not here: trace"));
    }
}

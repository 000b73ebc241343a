//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// The groups of names of which each leads to every other.
pub fn circles<'a, T>(ties: &BTreeMap<(&'a str, &'a str), T>) -> BTreeSet<BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = ties.keys().flat_map(|(a, b)| [*a, *b]).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, from(name, ties))).collect();
    let group = |name: &&'a str| -> BTreeSet<&'a str> {
        let there_and_back = |other: &&&str| reached[*other].contains(name);
        reached[name]
            .iter()
            .filter(there_and_back)
            .copied()
            .collect()
    };
    let groups = names.iter().map(group);
    groups.filter(|group| group.len() > 1).collect()
}

/// What is reached from `start`.
fn from<'a, T>(start: &'a str, ties: &BTreeMap<(&'a str, &'a str), T>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![start];
    while let Some(name) = ahead.pop() {
        let next = ties.keys().filter(|(a, _)| *a == name);
        ahead.extend(next.map(|(_, b)| *b).filter(|b| reached.insert(*b)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_circle_is_a_group_and_a_tail_is_none() {
        let ties = ["ab", "ba", "bc", "cd", "de", "ec", "ef"];
        let ties = ties.map(|tie| (tie.split_at(1), ()));
        let found = circles(&BTreeMap::from(ties));
        let expected = [&["a", "b"][..], &["c", "d", "e"]];
        assert_eq!(
            found,
            expected.map(|names| names.iter().copied().collect()).into()
        );
    }
}

//! Programs that are measured by turns, so that what drifts meanwhile hits all alike.

/// In which order a round, from 0, of `count` programs goes. Each second round begins with another
/// program, and every other one goes backwards, so that neither a drift nor a neighbour favours
/// anybody.
pub fn order(count: usize, round: u32) -> Vec<usize> {
    let first = round as usize / 2;
    let mut order: Vec<usize> = (0..count).map(|n| (n + first) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_turn_once_a_round() {
        for (count, round) in (0..6).flat_map(|count| (0..7).map(move |round| (count, round))) {
            let mut order = order(count, round);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
        let rounds = [0, 1, 2].map(|round| order(3, round));
        assert_eq!(rounds, [[0, 1, 2], [2, 1, 0], [1, 2, 0]]);
    }
}

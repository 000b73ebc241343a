//! What to do, for the goal that was chosen.

use iostep_model::goal::Goal;
use iostep_report::quantity::bytes;

use crate::advise::{Advice, Gain, Row, State, Verdict};

/// The answer.
pub(super) struct Answer {
    /// What to do.
    pub sentence: String,
    /// What else may be wanted, a line each.
    pub besides: Vec<String>,
}

pub(super) fn of(advice: &Advice) -> Answer {
    let is_best = |row: &&Row| Some(&row.key) == advice.recommended.as_ref();
    let best = advice.rows.iter().find(is_best);
    let present = &advice.present;
    let sentence = match (best, advice.place.goal) {
        (Some(row), Goal::Speed) => format!(
            "Take {}: {}; it gives nothing up",
            row.name,
            gain_words(row.gain)
        ),
        (Some(row), Goal::Wear) => format!(
            "Take {}: {} written for a commit instead of {}; it gives nothing up",
            row.name,
            written(row),
            written(present)
        ),
        (Some(row), Goal::Durability) => format!(
            "Take {}: a power loss can cost {} instead of {}",
            row.name,
            row.durability.power_loss.words(),
            present.durability.power_loss.words()
        ),
        (None, goal) => keep(advice, goal),
    };
    let [faster, least] = [faster(advice, best), least_written(advice)];
    let lines = match advice.place.goal {
        Goal::Speed => [alike(advice, best), faster, least],
        Goal::Wear => [alike(advice, best), cost(best), None],
        Goal::Durability => [alike(advice, best), cost(best), None],
    };
    Answer {
        sentence,
        besides: lines.into_iter().flatten().collect(),
    }
}

/// Why nothing is to be changed.
fn keep(advice: &Advice, goal: Goal) -> String {
    let present = &advice.present;
    let name = &present.name;
    match goal {
        Goal::Speed => {
            format!("Keep {name}: nothing that gives no more up is faster for certain")
        }
        Goal::Wear if present.device.written_bytes.is_none() => {
            format!(
                "Keep {name}: what it writes was not counted, so nothing is known to write less"
            )
        }
        Goal::Wear => format!(
            "Keep {name}: nothing that gives no more up writes less for certain than its {} a commit",
            written(present)
        ),
        Goal::Durability => match present.durability.worst() {
            iostep_model::durability::Loss::Nothing => {
                format!("Keep {name}: it loses nothing already")
            }
            _ => format!("Keep {name}: nothing that was measured loses less"),
        },
    }
}

/// What of the settings that give something up is faster than the best, for certain.
fn faster(advice: &Advice, best: Option<&Row>) -> Option<String> {
    let is_faster = |row: &&Row| {
        row.gives_up && !row.only_shown && row.gain.is_some_and(|g| g.verdict == Verdict::Faster)
    };
    let beyond = best
        .and_then(|row| row.gain)
        .map_or(1.0, |gain| gain.at_least());
    let all = advice.rows.iter().filter(is_faster);
    let least = |row: &&Row| row.gain.map_or(0.0, |gain| gain.at_least());
    let other = all.max_by(|a, b| least(a).total_cmp(&least(b)));
    let other = other.filter(|row| least(row) > beyond)?;
    Some(format!(
        "Or {}: {}, if a power loss may cost {}",
        other.name,
        gain_words(other.gain),
        other.durability.power_loss.words()
    ))
}

/// What is as good as the best one, as far as the turns tell.
fn alike(advice: &Advice, best: Option<&Row>) -> Option<String> {
    let best = best?;
    let is_alike = |row: &&Row| best.not_told_from.contains(&row.key);
    let alike = advice.rows.iter().filter(is_alike);
    let names: Vec<&str> = alike.map(|row| row.name.as_str()).collect();
    let names = Some(names.join("; ")).filter(|names| !names.is_empty());
    names.map(|names| format!("The turns do not tell it from: {names}"))
}

/// How fast the best one is, where it was not chosen for that.
fn cost(best: Option<&Row>) -> Option<String> {
    let gain = best?.gain?;
    let word = match gain.verdict {
        Verdict::Faster => "It is faster too: ",
        Verdict::Slower => "It is slower: ",
        Verdict::NoGain => "The turns do not tell whether it is faster or slower: ",
        Verdict::TooFewTurns => "",
    };
    Some(format!("{word}{}", gain_words(Some(gain))))
}

/// The setting that gives nothing up and wears the device least, if that is certain.
fn least_written(advice: &Advice) -> Option<String> {
    let less = |row: &&Row| {
        let is_less = row.wear.is_some_and(|wear| wear.is_less());
        row.state == State::Measured && is_less && !row.gives_up && !row.only_shown
    };
    let most = |row: &Row| {
        row.wear
            .and_then(|wear| wear.at_most)
            .unwrap_or(f64::INFINITY)
    };
    let rows = advice.rows.iter().filter(less);
    let row = rows.min_by(|a, b| most(a).total_cmp(&most(b)))?;
    Some(format!(
        "Least written: {}, {} a commit instead of {}",
        row.name,
        written(row),
        written(&advice.present)
    ))
}

/// `12.1 KiB`, or `at most 12.1 KiB`.
fn written(row: &Row) -> String {
    let Some(amount) = row.device.written_bytes else {
        return "an unknown number of bytes".into();
    };
    let amount = bytes(amount.round() as u64);
    match row.device.at_most {
        true => format!("at most {amount}"),
        false => amount,
    }
}

fn gain_words(gain: Option<Gain>) -> String {
    let Some(gain) = gain else {
        return "not measured".into();
    };
    let sure = gain.interval.map_or_else(String::new, |interval| {
        format!(
            ", 95 % sure between {:.2} and {:.2}",
            interval.low, interval.high
        )
    });
    format!("{:.2} times as many commits/s{sure}", gain.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::fixture;

    /// What is written with each candidate, at most and at least; all are as fast as the present.
    fn writing(goal: Goal, bytes: &dyn Fn(&str) -> (f64, f64)) -> Answer {
        let turns = fixture::writing(fixture::turns(&|_, _| 1.0), bytes);
        of(&fixture::advice_for(goal, &turns))
    }

    #[test]
    fn a_log_that_saw_no_second_checkpoint_is_least_written_if_it_is_so_at_most() {
        let bytes = |key: &str| match key {
            "waldio-full" => (4096.0, 1000.0),
            "delete-full" => (6000.0, 6000.0),
            _ => (10.0, 10.0),
        };
        let least = "waldio, full, at most 4 KiB a commit instead of 8 KiB";
        let answer = writing(Goal::Speed, &bytes);
        assert_eq!(answer.besides, [format!("Least written: {least}")]);
        let answer = writing(Goal::Wear, &bytes);
        let expected = "Take waldio, full: at most 4 KiB written for a commit instead of 8 KiB; it \
                        gives nothing up";
        assert_eq!(answer.sentence, expected);
    }

    #[test]
    fn what_may_write_as_much_as_the_present_setting_is_not_named() {
        let bytes = |key: &str| match key {
            "waldio-full" => (8000.0, 100.0),
            _ => (64_000.0, 64_000.0),
        };
        let besides = writing(Goal::Speed, &bytes).besides;
        assert_eq!(besides, Vec::<String>::new());
        let sentence = writing(Goal::Wear, &bytes).sentence;
        assert!(
            sentence.starts_with("Keep wal, full: nothing"),
            "{sentence}"
        );
    }

    #[test]
    fn the_fastest_that_gives_something_up_is_named_once() {
        let answer = of(&fixture::advice());
        assert!(answer.sentence.starts_with("Take waldio, full: 2.00 times"));
        let [other] = &answer.besides[..] else {
            panic!("{:?}", answer.besides);
        };
        assert!(other.starts_with("Or wal, normal: 3.0"), "{other}");
    }

    #[test]
    fn who_loses_nothing_keeps_what_there_is() {
        let turns = fixture::turns(&|_, _| 1.0);
        let answer = of(&fixture::advice_for(Goal::Durability, &turns));
        assert_eq!(answer.sentence, "Keep wal, full: it loses nothing already");
    }
}

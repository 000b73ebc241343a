//! The conditions of a claim, judged at every place that they name.

use iostep_model::lab::{Claim, Condition, Measure, Side, Values};

use super::finding::{Answer, Evidence, Finding, Gap, Number};
use super::order::{Extreme, Series, both, words};
use super::results::{At, Results};

/// What became of a claim.
pub(super) fn judge(claim: &Claim, results: Results<'_>) -> Finding {
    let conditions = claim.conditions.iter();
    Finding::of(
        claim,
        conditions.flat_map(|condition| answers(condition, results)),
    )
}

fn answers(condition: &Condition, results: Results<'_>) -> Vec<Answer> {
    let values: Vec<&str> = match condition.value.0.as_slice() {
        [] => vec![""],
        values => values.iter().map(String::as_str).collect(),
    };
    let places = places(condition, results);
    let places = places.iter().map(|place| pairs(place));
    let answers = places.flat_map(|at| {
        let answer = |value: &&str| answer(condition, results, &at, value);
        values.iter().map(answer).collect::<Vec<_>>()
    });
    answers.collect()
}

fn answer(condition: &Condition, results: Results<'_>, at: &At<'_>, value: &str) -> Answer {
    let series = Series {
        results,
        at,
        axis: &condition.axis,
        measure: condition.measure,
    };
    let extreme = |extreme, others: &[String]| {
        let all = results.values_of(&condition.axis, at);
        let others = if others.is_empty() { &all } else { others };
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        series.extreme(extreme, value, &others)
    };
    let holds = |number: f64| condition.is.hold(number);
    match condition {
        Condition {
            least_of: Some(others),
            ..
        } => extreme(Extreme::Least, others),
        Condition {
            greatest_of: Some(others),
            ..
        } => extreme(Extreme::Greatest, others),
        Condition {
            over: Some(from),
            pair: Some(sides),
            ..
        } => pair(condition, series, sides, [from, value]),
        Condition {
            over: Some(from), ..
        } => series.ratio(from, value, &condition.allowed_by, holds),
        Condition { share_of, .. } if !share_of.is_empty() => {
            share(results, at, condition.measure, share_of, holds)
        }
        Condition { less, .. } if !less.is_empty() => series.above(value, less, holds),
        _ => series.alone(value, holds),
    }
}

/// Two ratios of a place.
fn pair(
    condition: &Condition,
    series: Series<'_>,
    sides: &[Side; 2],
    [from, to]: [&str; 2],
) -> Answer {
    let factor = |side: &Side| {
        let own = side
            .at
            .iter()
            .map(|(axis, value)| (axis.as_str(), value.as_str()));
        let at: Vec<(&str, &str)> = series.at.iter().copied().chain(own).collect();
        Series { at: &at, ..series }.factor(from, to)
    };
    let [first, second] = sides;
    let factors = [
        (first.name.as_str(), factor(first)?),
        (second.name.as_str(), factor(second)?),
    ];
    both(words(series.at), factors, |one, other| {
        let in_order = condition.order.is_none_or(|order| order.holds(one, other));
        in_order && first.is.hold(one) && second.is.hold(other)
    })
}

/// A number's share of a sum.
fn share(
    results: Results<'_>,
    at: &At<'_>,
    measure: Measure,
    all: &[Measure],
    holds: impl Fn(f64) -> bool,
) -> Answer {
    let gap = |reason: &str| Gap {
        place: words(at),
        reason: reason.to_owned(),
    };
    let median = |measure| {
        let (value, _) = results.value(at, measure)?;
        Some(value.median)
    };
    let sum: Option<f64> = all.iter().map(|measure| median(*measure)).sum();
    let (part, sum) = median(measure).zip(sum).ok_or_else(|| gap("no number"))?;
    if sum == 0.0 {
        return Err(gap("nothing was written"));
    }
    let name = measure.name().trim_end_matches(" each");
    Ok(Evidence {
        holds: holds(part / sum),
        place: words(at),
        numbers: vec![Number::ratio(&format!("{name} of all"), part / sum)],
    })
}

type Point = Vec<(String, String)>;

/// Where a condition is looked at.
fn places(condition: &Condition, results: Results<'_>) -> Vec<Point> {
    let mut places = vec![Point::new()];
    for (axis, Values(values)) in &condition.each {
        places = match values.is_empty() {
            true => crossed(&places, axis, &results.values_of(axis, &[])),
            false => crossed(&places, axis, values),
        };
    }
    places.retain(|place| results.first(&pairs(place)).is_some());
    for (axis, Values(values)) in &condition.at {
        places = crossed(&places, axis, values);
    }
    places
}

fn crossed(places: &[Point], axis: &str, values: &[String]) -> Vec<Point> {
    let places = places.iter().flat_map(|place| {
        let with = |value: &String| [&place[..], &[(axis.to_owned(), value.clone())]].concat();
        values.iter().map(with)
    });
    places.collect()
}

fn pairs(place: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = place
        .iter()
        .map(|(axis, value)| (axis.as_str(), value.as_str()));
    pairs.collect()
}

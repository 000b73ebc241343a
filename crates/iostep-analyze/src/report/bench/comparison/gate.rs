//! The verdict of a gate in words.

use iostep_report::quantity::{Show as _, percent};

use crate::bench::{Comparison, Gate, Judged, Judgement, Passage};

/// The verdict, and a line for each measure where there are several.
pub(super) fn lines(gate: &Gate, comparison: &Comparison) -> Vec<String> {
    let of = |verdict: Passage| {
        let judged = gate.judged.iter();
        let said = judged.filter(|judgement| judgement.verdict == verdict);
        let said = said.map(|judgement| sentence(judgement, gate, comparison));
        said.collect::<Vec<_>>()
    };
    let (failed, unknown, passed) = (
        of(Passage::Fail),
        of(Passage::CannotTell),
        of(Passage::Pass),
    );
    let word = match gate.verdict {
        Passage::Pass => "PASS",
        Passage::Fail => "FAIL",
        Passage::CannotTell => "CANNOT TELL",
    };
    let mut all = failed.into_iter().chain(unknown).chain(passed);
    let first = all.next().unwrap_or_default();
    std::iter::once(format!("{word}: {first}"))
        .chain(all)
        .collect()
}

fn sentence(judgement: &Judgement, gate: &Gate, comparison: &Comparison) -> String {
    let measure = judgement.measure;
    let label = measure.label(comparison.work);
    let row = comparison.rows.iter().find(|row| row.measure == measure);
    let show = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| measure.unit().show(v));
    let values = row.map_or_else(String::new, |row| {
        format!("{} and {}", show(row.first), show(row.second))
    });
    let allowed = match gate.allowed {
        0.0 => String::new(),
        allowed => format!(", {} are allowed", percent(Some(allowed))),
    };
    match judgement.judged {
        Judged::WorseBy(share) if share > 0.0 => {
            let by = match share.is_finite() {
                true => format!(" by {}", percent(Some(share))),
                false => String::new(),
            };
            format!("{label}: worse{by}, {values}{allowed}")
        }
        Judged::WorseBy(_) => format!("{label}: not worse, {values}"),
        Judged::TooFewRuns(needed) => format!(
            "{label}: too few runs to tell, {values}; make {needed} of each with --repeat{}",
            match measure.is_counted() {
                true => ", or end runs after a number of operations and not by --time",
                false => "",
            }
        ),
        Judged::Disturbed => format!(
            "{label}: others used the device meanwhile, {values}; stop them, or measure both with \
             --on loop"
        ),
        Judged::Missing => format!("{label}: not in both results; name others with --fail-on"),
    }
}

#[cfg(test)]
mod tests {
    use crate::bench::{Comparison, Gate, Measure, Passage, fixture};
    use crate::report::bench::comparison;
    use iostep_model::bench::Document;
    use iostep_report::document::Detail;
    use iostep_report::text::Style;

    fn text(first: &Document, second: &Document, measures: &[Measure]) -> (Passage, String) {
        let compared = Comparison::of(first, second).expect("the same work");
        let gate = Gate::of(&compared, measures, 0.01);
        let document = comparison(&compared, Some(&gate), ["a.json", "b.json"]);
        (gate.verdict, document.text(Detail::Full, Style::default()))
    }

    fn writing(runs: u32, factor: u64) -> Document {
        let mut document = fixture::write_fdatasync(runs);
        for run in &mut document.runs {
            run.device.as_mut().expect("a device").write.bytes *= factor;
        }
        document
    }

    #[test]
    fn the_verdict_comes_first_and_the_rows_say_the_same() {
        let measures = [Measure::FlushesPerOperation, Measure::WrittenPerOperation];
        let (verdict, text) = text(&writing(1, 1), &writing(1, 3), &measures);
        assert_eq!(verdict, Passage::Fail);
        let expected = "FAIL: device written per operation: worse by 200.0 %, ";
        assert!(text.starts_with(expected), "{text}");
        let row = |text: &str| {
            let mut lines = text.lines().map(str::trim_start);
            let row = lines.find(|line| line.starts_with("device written per operation  "));
            row.expect("a row").to_owned()
        };
        assert!(row(&text).ends_with("WORSE"), "{text}");
        let (verdict, text) = self::text(&writing(1, 1), &writing(1, 1), &measures);
        assert_eq!(verdict, Passage::Pass);
        assert!(
            text.starts_with("PASS: flushes per operation: not worse, "),
            "{text}"
        );
        assert!(row(&text).ends_with("no difference found"), "{text}");
    }

    #[test]
    fn what_cannot_be_told_is_said_to_be_so_by_both() {
        let timed = |factor| {
            let mut document = writing(1, factor);
            let iostep_model::bench::Job::File(job) = &mut document.job else {
                panic!("a file job")
            };
            job.measurement.limits.time_ns = Some(1_000_000_000);
            document
        };
        let measures = [Measure::WrittenPerOperation];
        let (verdict, text) = text(&timed(1), &timed(3), &measures);
        assert_eq!(verdict, Passage::CannotTell);
        let expected = "CANNOT TELL: device written per operation: too few runs to tell, ";
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("WORSE"), "{text}");
    }
}

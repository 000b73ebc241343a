//! What the figures themselves say against a measurement.

use std::mem::discriminant;

use iostep_model::bench::{Document, Pace, Warning};
use iostep_model::quantile::median;

use super::run::RunSummary;
use super::steady::Steadiness;

/// Below a second the ticks of the machine's times and single stalls matter.
const SHORT_NS: u64 = 1_000_000_000;
/// A rate is reached within this share.
const RATE: f64 = 0.05;
/// From this share of the machine on others matter. The kernel's own threads that write for the
/// load are among them, so it is not small.
const OTHERS: f64 = 0.25;
/// From this share on the hypervisor matters.
const STEAL: f64 = 0.02;

/// The warnings of a document, and those of its runs that it does not have yet.
pub(super) fn of(document: &Document, runs: &[RunSummary]) -> Vec<Warning> {
    let mut warnings = document.warnings.clone();
    let known: Vec<_> = warnings.iter().map(discriminant).collect();
    let single = [
        short(runs),
        missed_rate(document.job.measurement().pace, runs),
        others(runs),
        steal(runs),
    ];
    let found = single.into_iter().flatten().chain(unsteady(runs));
    warnings.extend(found.filter(|warning| !known.contains(&discriminant(warning))));
    warnings
}

fn short(runs: &[RunSummary]) -> Option<Warning> {
    let elapsed_ns = runs.iter().map(|run| run.elapsed_ns).min()?;
    (elapsed_ns < SHORT_NS).then_some(Warning::TooShort { elapsed_ns })
}

fn missed_rate(pace: Pace, runs: &[RunSummary]) -> Option<Warning> {
    let asked = pace.operations_per_second?;
    let rates: Vec<f64> = runs
        .iter()
        .filter_map(|run| Some(run.throughput?.operations_per_second))
        .collect();
    let reached = median(&rates)?;
    (reached < asked * (1.0 - RATE)).then_some(Warning::RateNotReached { asked, reached })
}

fn others(runs: &[RunSummary]) -> Option<Warning> {
    let shares = runs.iter().filter_map(|run| Some(run.cpu.machine?.others));
    let others = shares.reduce(f64::max)?;
    (others >= OTHERS).then_some(Warning::BusyMachine { others })
}

fn steal(runs: &[RunSummary]) -> Option<Warning> {
    let shares = runs.iter().filter_map(|run| Some(run.cpu.machine?.steal));
    let share = shares.reduce(f64::max)?;
    (share >= STEAL).then_some(Warning::Steal { share })
}

fn unsteady(runs: &[RunSummary]) -> impl Iterator<Item = Warning> + '_ {
    runs.iter().filter_map(|run| match run.steadiness {
        Steadiness::NotSteady { reason } => Some(Warning::NotSteady {
            run: run.run,
            reason: reason.to_string(),
        }),
        Steadiness::Steady | Steadiness::TooShort => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Summary, fixture};

    #[test]
    fn a_quiet_steady_run_has_no_warning() {
        assert_eq!(Summary::of(&fixture::write_fdatasync(3)).warnings, []);
    }

    #[test]
    fn what_the_figures_show_is_warned_of() {
        let mut document = fixture::write_fdatasync(2);
        let iostep_model::bench::Job::File(job) = &mut document.job else {
            panic!("a file job")
        };
        job.measurement.pace.operations_per_second = Some(5000.0);
        for second in &mut document.runs[1].seconds[..2] {
            second.operations *= 3;
        }
        let machine = document.runs[0].cpu.machine.as_mut().expect("a machine");
        machine.user_ns *= 20;
        machine.steal_ns *= 10;
        let warnings = Summary::of(&document).warnings;
        let [rate, others, steal, unsteady] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        assert!(matches!(
            rate,
            Warning::RateNotReached { asked: 5000.0, .. }
        ));
        assert!(matches!(others, Warning::BusyMachine { .. }));
        assert!(matches!(steal, Warning::Steal { .. }));
        assert!(matches!(unsteady, Warning::NotSteady { run: 2, .. }));
    }

    #[test]
    fn a_warning_that_is_there_is_not_given_again() {
        let mut document = fixture::write_fdatasync(1);
        document.runs[0].elapsed_ns = 10;
        let known = Warning::TooShort { elapsed_ns: 7 };
        document.warnings = vec![Warning::OnBattery, known.clone()];
        let found = Summary::of(&document).warnings;
        let short = found
            .iter()
            .filter(|w| matches!(w, Warning::TooShort { .. }));
        assert_eq!(short.collect::<Vec<_>>(), [&known]);
    }
}

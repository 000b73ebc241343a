//! What a cell leaves: its result, and that of `iostep bench` where it is one.

use std::mem::discriminant;

use iostep_model::bench::Document;
use iostep_model::lab::{Cell, CellResult, State, WorkloadKind};

/// A cell's result with what there is beside it.
#[derive(Clone, Debug)]
pub struct Measured {
    pub result: CellResult,
    /// What `iostep bench` says, with the runs of all rounds: of a cell that is complete and
    /// [`is_of_bench_alone`].
    pub bench: Option<Document>,
}

impl From<CellResult> for Measured {
    fn from(result: CellResult) -> Measured {
        Measured {
            result,
            bench: None,
        }
    }
}

impl Measured {
    /// Adds what `iostep bench` said in a further round.
    pub(crate) fn add(&mut self, document: Document) {
        if !is_of_bench_alone(&self.result.cell) {
            return;
        }
        let Some(before) = &mut self.bench else {
            self.bench = Some(document);
            return;
        };
        before.runs.extend(document.runs);
        for warning in document.warnings {
            // The same one has other numbers in each round.
            let kind = discriminant(&warning);
            if before.warnings.iter().all(|it| discriminant(it) != kind) {
                before.warnings.push(warning);
            }
        }
    }

    /// Leaves out what is not whole.
    pub(crate) fn settle(&mut self) {
        if self.result.state != State::Complete {
            self.bench = None;
        }
    }
}

/// True for a cell that is what `iostep bench` does by itself. What else there may be, a trace, a load,
/// variables, a second device, changes the times, and the result of `iostep bench` says nothing of it.
pub fn is_of_bench_alone(cell: &Cell) -> bool {
    matches!(
        cell.workload.kind,
        WorkloadKind::Sqlite | WorkloadKind::File
    ) && !cell.trace
        && cell.cpu_load == 0
        && cell.environment.is_empty()
        && !cell.storage.external_journal
}

#[cfg(test)]
pub(crate) mod tests {
    use iostep_model::bench::{
        Environment, FileJob, Job, Run, RunState, SCHEMA_VERSION, Target, Warning,
    };
    use iostep_model::fixture;
    use iostep_model::lab::Filesystem;

    use super::*;

    fn cell() -> Cell {
        fixture::cell(Filesystem::Xfs, WorkloadKind::File, &[])
    }

    /// What a bench said that made so many operations.
    pub(crate) fn document(operations: u64, warnings: &[Warning]) -> Document {
        let run = Run {
            operations,
            ..Run::empty(RunState::Complete, operations)
        };
        Document {
            schema_version: SCHEMA_VERSION,
            iostep_version: "1".into(),
            arguments: Vec::new(),
            job: Job::File(FileJob::new(Target::Directory("/mnt".into()))),
            environment: Environment {
                host: fixture::manifest().host,
                memory_bytes: 1 << 30,
                clock_source: "tsc".into(),
                filesystem: None,
                device: None,
                flushes_of: Vec::new(),
                disks: Vec::new(),
                sqlite: None,
            },
            runs: vec![run],
            warnings: warnings.to_vec(),
        }
    }

    fn measured(cell: &Cell) -> Measured {
        CellResult::without_runs(cell, State::Complete).into()
    }

    #[test]
    fn rounds_become_one_result_that_warns_once_of_each_thing() {
        let mut measured = measured(&cell());
        let busy = |others| Warning::BusyMachine { others };
        measured.add(document(1, &[busy(0.5)]));
        measured.add(document(2, &[busy(0.6), Warning::OnBattery]));
        let bench = measured.bench.as_ref().expect("a result");
        let operations: Vec<u64> = bench.runs.iter().map(|run| run.operations).collect();
        assert_eq!(operations, [1, 2]);
        assert_eq!(bench.warnings, [busy(0.5), Warning::OnBattery]);
        measured.settle();
        assert!(measured.bench.is_some());
        measured.result.state = State::Interrupted;
        measured.settle();
        assert!(measured.bench.is_none());
    }

    #[test]
    fn what_bench_would_not_say_of_itself_is_no_result_of_it() {
        assert!(is_of_bench_alone(&cell()));
        let changes: [fn(&mut Cell); 6] = [
            |cell| cell.trace = true,
            |cell| cell.cpu_load = 1,
            |cell| cell.environment = vec!["A=b".into()],
            |cell| cell.storage.external_journal = true,
            |cell| cell.workload.kind = WorkloadKind::Replay,
            |cell| cell.workload.kind = WorkloadKind::Command,
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = cell();
            change(&mut other);
            let mut measured = measured(&other);
            measured.add(document(1, &[]));
            assert!(measured.bench.is_none(), "change {number}");
        }
    }
}

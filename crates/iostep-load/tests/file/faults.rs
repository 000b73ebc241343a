//! Calls that fail or do less than they were asked for.

use iostep_load::engine::{Observer, Progress};
use iostep_model::bench::{Access, FileJob, RunState};
use iostep_model::manifest::Counters;

use super::bench::{file, job, run_watched};

struct Cutter(std::path::PathBuf, u64);

impl Observer for Cutter {
    fn device(&mut self) -> Option<Counters> {
        let file = std::fs::OpenOptions::new().write(true).open(&self.0);
        file.expect("the file").set_len(self.1).expect("a cut");
        None
    }

    fn progress(&mut self, _: Progress) {}
}

#[test]
fn a_read_at_the_end_of_a_file_fails_with_its_number_and_keeps_what_was_done() {
    for (length, done) in [(5 * 4096, 0), (5 * 4096 + 100, 100)] {
        let dir = tempfile::tempdir().expect("a directory");
        let job = FileJob {
            access: Access::Read,
            ..job(dir.path())
        };
        let path = file(dir.path(), "file-0");
        let run = run_watched(&job, &mut Cutter(path.clone(), length)).expect("a run");
        assert_eq!(run.state, RunState::Failed);
        assert_eq!((run.operations, run.bytes), (5, 5 * 4096));
        let failure = &run.failures[0];
        assert_eq!((failure.thread, failure.operation), (0, 6));
        let attempt = format!("read of 4096 bytes at 20480 of {}", path.display());
        assert_eq!(failure.attempt, attempt);
        assert_eq!(failure.reason, format!("it ended after {done} bytes"));
    }
}

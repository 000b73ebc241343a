//! A test with its requirements.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iostep_kernel_tests::demand;
use iostep_kernel_tests::dmesg::Mark;
use iostep_kernel_tests::leftovers;
use iostep_kernel_tests::requirement::{Requirement, lacks};
use libtest_mimic::{Completion, Failed, Trial};

/// A test says how long it took from here on: all together are to be done in minutes.
const LONG: Duration = Duration::from_secs(10);

/// The body of a test.
type Body = Box<dyn FnOnce() -> anyhow::Result<()> + Send>;

/// A test.
pub struct Case {
    name: String,
    requirements: Vec<Requirement>,
    body: Body,
}

impl Case {
    /// A test with a name that says what must be true, and what it needs.
    pub fn new(
        name: impl Into<String>,
        requirements: impl Into<Vec<Requirement>>,
        body: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> Case {
        Case {
            name: name.into(),
            requirements: requirements.into(),
            body: Box::new(body),
        }
    }

    /// The same test with the subject before its name, so that a filter finds all of a subject.
    pub fn about(mut self, subject: &str) -> Case {
        self.name = format!("{subject}: {}", self.name);
        self
    }

    /// True if a guest runs it.
    pub fn is_in_guest(&self) -> bool {
        let needs_guest =
            |r: &Requirement| matches!(r, Requirement::Guest | Requirement::Kernel(_));
        self.requirements.iter().any(needs_guest)
    }

    /// The test as the harness runs it: skipped with every reason, or run, with nothing left
    /// behind and no complaint in the kernel's log.
    pub fn into_trial(self, scratch: &Path) -> Trial {
        let scratch = scratch.to_owned();
        Trial::ignorable_test(self.name.clone(), move || self.run(scratch))
    }

    fn run(self, scratch: PathBuf) -> Result<Completion, Failed> {
        let (missing, reasons) = lacks(&self.requirements);
        if !missing.is_empty() {
            return demand::skip(&missing, &reasons.join(", "));
        }
        println!("{}", self.name);
        let mark = Mark::now();
        let began = Instant::now();
        let result = (self.body)();
        if began.elapsed() > LONG {
            println!("    took {:.0} s", began.elapsed().as_secs_f64());
        }
        let mut faults: Vec<String> = leftovers::of_runs_below(&scratch)
            .into_iter()
            .map(|left| format!("left behind: {left}"))
            .collect();
        faults.extend(
            mark.complaints()
                .into_iter()
                .map(|c| format!("kernel log: {c}")),
        );
        if let Err(error) = result {
            faults.insert(0, format!("{error:#}"));
        }
        match faults.is_empty() {
            true => Ok(Completion::Completed),
            false => Err(faults.join("\n").into()),
        }
    }
}

//! The traces of other tools: what they are, and opening them.

use std::cell::RefCell;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use iostep_calls::import::Format;
use iostep_calls::input::{GUESS_BYTES, Input};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::bad_input;
use crate::input::{self, Kind};
use crate::packed::{self, Unpacked};
use crate::terminal;

const READING: &str = "{prefix} {bar:30} {percent} %{left}";
/// Files that the process has open besides.
const OTHER_FILES: u64 = 64;

/// What is read, and how far.
pub(super) struct Inputs {
    paths: Vec<PathBuf>,
    /// The first one from its beginning on, until it is taken: a pipe can be read once.
    first: RefCell<Option<Unpacked>>,
    /// The first one's first bytes.
    pub(super) start: Vec<u8>,
    pub(super) bar: ProgressBar,
}

impl Inputs {
    /// Looks at the inputs. None may be what is written.
    pub(super) fn new(paths: &[PathBuf], output: &Path) -> anyhow::Result<Inputs> {
        let mut bytes = 0;
        let target = std::fs::canonicalize(output).ok();
        for path in paths.iter().filter(|path| !packed::is_standard_input(path)) {
            let name = path.display();
            let metadata = std::fs::metadata(path).with_context(|| format!("{name}: cannot open"));
            let metadata = metadata.map_err(bad_input)?;
            if metadata.is_dir() {
                return Err(bad_input(anyhow!("{name}: a directory; name its files")));
            }
            if target.is_some() && std::fs::canonicalize(path).ok() == target {
                let error = anyhow!("{name}: an input; write to another file with --output");
                return Err(bad_input(error));
            }
            bytes += metadata.len();
        }
        allow_files(paths.len() as u64);
        let style = terminal::bar_style(READING);
        let mut inputs = Inputs {
            paths: paths.to_vec(),
            first: RefCell::new(None),
            start: Vec::new(),
            bar: ProgressBar::new(bytes)
                .with_style(style)
                .with_prefix("reading"),
        };
        let begun = packed::begin(inputs.unpacked(&paths[0])?, GUESS_BYTES);
        let begun = begun.with_context(|| format!("{}: cannot read", paths[0].display()));
        let (start, whole) = begun.map_err(bad_input)?;
        inputs.start = start;
        inputs.first = RefCell::new(Some(whole));
        Ok(inputs)
    }

    /// What the first input looks like.
    pub(super) fn format(&self) -> anyhow::Result<Format> {
        let kind = input::of_start(&self.start);
        if !matches!(kind, Kind::Calls | Kind::Other | Kind::Damaged) {
            return Err(input::unfit(&self.paths[0], kind));
        }
        let name = self.paths[0].display();
        let error =
            || anyhow!("{name}: looks like no trace that is known; --format says what it is");
        Format::guess(&self.start).ok_or_else(|| bad_input(error()))
    }

    pub(super) fn open(&self) -> anyhow::Result<Vec<Input<'static>>> {
        let mut inputs = Vec::new();
        let mut first = self.first.take();
        for path in &self.paths {
            let text = match first.take() {
                Some(first) => first,
                None => self.unpacked(path)?,
            };
            inputs.push(Input::new(path, BufReader::new(text)));
        }
        Ok(inputs)
    }

    pub(super) fn only(&self) -> anyhow::Result<&Path> {
        match &self.paths[..] {
            [path] => Ok(path),
            _ => Err(bad_input(anyhow!(
                "what iostep record left is one recording; clean it alone"
            ))),
        }
    }

    fn unpacked(&self, path: &Path) -> anyhow::Result<Unpacked> {
        packed::open(path, "iostep clean", |file| {
            Box::new(self.bar.wrap_read(file))
        })
    }
}

/// Raises this process's limit of open files, which is 1024 on most systems, as far as it may:
/// strace -ff makes a file for each thread. What does not fit is an error when it is opened.
fn allow_files(inputs: u64) {
    let wanted = inputs.saturating_add(OTHER_FILES);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(wanted, |hard| wanted.min(hard))),
            maximum: limit.maximum,
        };
        // If it cannot, the open that fails says so.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

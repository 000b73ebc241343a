//! Results of a matrix, brought to a server without a measurement waiting for it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[cfg(feature = "many-devices")]
use super::submit::Destination;
use crate::error::describe;
use crate::interrupt::Interrupt;
use crate::shell::shown;
use crate::terminal::say;

/// How soon a wait sees a signal.
const TICK: Duration = Duration::from_millis(100);

/// Nothing of the kind in this program.
#[cfg(not(feature = "many-devices"))]
enum Destination {}

#[cfg(not(feature = "many-devices"))]
impl Destination {
    fn url(&self) -> &str {
        match *self {}
    }

    fn bring(
        &self,
        _file: &std::path::Path,
        _wait: &dyn Fn(Duration) -> bool,
    ) -> anyhow::Result<Result<(), String>> {
        match *self {}
    }
}

/// Where results of a matrix are brought.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutboxArgs {
    /// Bring each complete result to this server too; iostep submit says what is sent
    #[cfg(feature = "many-devices")]
    #[arg(long, value_name = "URL")]
    submit: Option<String>,
}

impl OutboxArgs {
    /// To be asked before anything is measured.
    ///
    /// Errors: those of a command line with this URL.
    pub fn open(&self) -> anyhow::Result<Outbox> {
        #[cfg(feature = "many-devices")]
        let destination = self.submit.as_deref().map(Destination::new).transpose()?;
        #[cfg(not(feature = "many-devices"))]
        let destination = None;
        Ok(Outbox {
            destination,
            waiting: VecDeque::new(),
            is_away: false,
            not_taken: 0,
        })
    }
}

/// Files of results on their way to a server, if there is one.
pub struct Outbox {
    destination: Option<Destination>,
    /// What is brought at the end.
    waiting: VecDeque<PathBuf>,
    /// The server did not answer: it is not waited for between measurements again.
    is_away: bool,
    /// How many the server does not take, now or later.
    not_taken: usize,
}

impl Outbox {
    /// The server, as the user named it.
    pub fn url(&self) -> Option<&str> {
        self.destination.as_ref().map(Destination::url)
    }

    /// Brings a file while nothing is measured, or at the end if the server is away.
    pub fn bring(&mut self, file: PathBuf) {
        let Some(destination) = &self.destination else {
            return;
        };
        if !self.is_away {
            match destination.bring(&file, &|_| false) {
                Ok(taken) => return self.count(taken),
                Err(error) => {
                    let error = describe(&error);
                    say!("iostep: {error}; it goes on, and the results are sent at the end");
                    self.is_away = true;
                }
            }
        }
        self.waiting.push_back(file);
    }

    /// Brings a file at the end, since something is measured meanwhile.
    pub fn keep(&mut self, file: PathBuf) {
        if self.destination.is_some() {
            self.waiting.push_back(file);
        }
    }

    /// Brings what waits, until a signal comes or the server does not answer. True if all was taken;
    /// otherwise what is missing is said, and that `iostep submit` of `all`, words
    /// of sh, sends it.
    pub fn finish(mut self, interrupt: &Interrupt, all: &str) -> bool {
        let Some(destination) = self.destination.take() else {
            return true;
        };
        let wait = |pause: Duration| {
            let end = Instant::now() + pause;
            while Instant::now() < end && !interrupt.came() {
                std::thread::sleep(TICK);
            }
            !interrupt.came()
        };
        while let Some(file) = self.waiting.front().filter(|_| !interrupt.came()) {
            match destination.bring(file, &wait) {
                Ok(taken) => self.count(taken),
                Err(error) => {
                    say!("iostep: {}", describe(&error));
                    break;
                }
            }
            self.waiting.pop_front();
        }
        if !self.waiting.is_empty() {
            let (count, url) = (self.waiting.len(), shown(destination.url()));
            let results = if count == 1 { "result" } else { "results" };
            say!("iostep: {count} {results} not sent; iostep submit {all} --to {url} sends all");
        }
        self.waiting.is_empty() && self.not_taken == 0
    }

    fn count(&mut self, taken: Result<(), String>) {
        if let Err(reason) = taken {
            say!("iostep: {reason}");
            self.not_taken += 1;
        }
    }
}

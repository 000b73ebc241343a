//! The measuring side of the pipe.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Advice;

use crate::error::{Error, Result};
use crate::script::copy::with_suffix;
use crate::script::protocol::{Answer, Closed, Database, Opened, Request, Transaction};

/// How often to look whether somebody asked for the end, in nanoseconds.
const POLL_NS: i64 = 50_000_000;

/// A child process that runs SQL. The drop ends it.
#[derive(Debug)]
pub struct Driver<'a> {
    child: Child,
    /// `None` once the child has been told to end.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    interrupted: &'a AtomicBool,
}

impl<'a> Driver<'a> {
    /// Starts `command`, whose process must call [`serve`](crate::script::serve) on its standard
    /// input and output. When `interrupted` becomes true, every request fails soon.
    ///
    /// Errors: `Io`.
    pub fn start(mut command: Command, interrupted: &'a AtomicBool) -> Result<Driver<'a>> {
        let program = command.get_program().to_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io(program, "start"))?;
        Ok(Driver {
            requests: child.stdin.take(),
            answers: child.stdout.take().expect("it is piped"),
            child,
            interrupted,
        })
    }

    /// Names a [`Temporary`](iostep_model::directory::Temporary) directory, or mount point, that this
    /// process has made and will remove: if it is killed, the child removes it.
    ///
    /// Errors: those of the pipe.
    pub fn dispose_of(&mut self, directory: &Path) -> Result<()> {
        match self.ask(&Request::Dispose(directory.to_owned()))? {
            Answer::Noted => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Opens a database; the one before is closed.
    ///
    /// Errors: as [`Runner::open`](crate::script::Runner::open), and those of the pipe: `ChildDied`,
    /// `Interrupted`, `Io`.
    pub fn open(&mut self, database: &Database) -> Result<Opened> {
        match self.ask(&Request::Open(database.clone()))? {
            Answer::Opened(opened) => Ok(opened),
            other => Err(unexpected(&other)),
        }
    }

    /// Hands over a script; the answer is how many statements it has.
    ///
    /// Errors: `Usage` if it has none; those of the pipe.
    pub fn load(&mut self, script: &str) -> Result<usize> {
        match self.ask(&Request::Load(script.into()))? {
            Answer::Loaded(statements) => Ok(statements),
            other => Err(unexpected(&other)),
        }
    }

    /// See [`Runner::warm_up`](crate::script::Runner::warm_up).
    ///
    /// Errors: `Database`; those of the pipe.
    pub fn warm_up(&mut self) -> Result<()> {
        match self.ask(&Request::WarmUp)? {
            Answer::WarmedUp => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Has no page of the database in memory any more, neither SQLite nor the kernel has, so that
    /// what is read next comes from the device. Only what is [settled](Driver::settle) can go.
    ///
    /// Errors: `Database`, `Io`; those of the pipe.
    pub fn cool(&mut self, database: &Path) -> Result<()> {
        match self.ask(&Request::Forget)? {
            // Here and not in the child: to close a file would drop SQLite's locks on it.
            Answer::Forgotten => drop_page_cache(database),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs the next transaction; `None` after the last.
    ///
    /// Errors: `Statement`; those of the pipe.
    pub fn step(&mut self) -> Result<Option<Transaction>> {
        match self.ask(&Request::Step)? {
            Answer::Stepped(transaction) => Ok(transaction),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes back everything that the database's filesystem holds in memory.
    ///
    /// Errors: `Io`; those of the pipe.
    pub fn settle(&mut self) -> Result<()> {
        match self.ask(&Request::Settle)? {
            Answer::Settled => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Closes the database.
    ///
    /// Errors: `Database`; those of the pipe.
    pub fn close(&mut self) -> Result<Closed> {
        match self.ask(&Request::Close)? {
            Answer::Closed(closed) => Ok(closed),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer> {
        if !self.send(request)? {
            return Err(self.died());
        }
        match self.read_line()? {
            Answer::Failed(error) => Err(error),
            answer => Ok(answer),
        }
    }

    /// False if nobody is there to read it.
    fn send(&mut self, request: &Request) -> Result<bool> {
        let mut line = serde_json::to_vec(request).map_err(|error| Error::Usage {
            what: format!("the database's name cannot be passed on: {error}"),
            hint: "rename the file".into(),
        })?;
        line.push(b'\n');
        let requests = self.requests.as_mut();
        Ok(requests.is_some_and(|requests| requests.write_all(&line).is_ok()))
    }

    fn read_line(&mut self) -> Result<Answer> {
        let mut line = Vec::new();
        let mut chunk = [0; 4096];
        while line.last() != Some(&b'\n') {
            self.wait_for_answer()?;
            let read = self
                .answers
                .read(&mut chunk)
                .map_err(Error::io("the pipe", "read from"))?;
            if read == 0 {
                return Err(self.died());
            }
            line.extend_from_slice(&chunk[..read]);
        }
        serde_json::from_slice(&line).map_err(|error| Error::Io {
            path: "the pipe".into(),
            what: "read an answer from".into(),
            reason: error.to_string(),
        })
    }

    /// std's reads start over after a signal, so a signal alone would not get us out of one.
    fn wait_for_answer(&mut self) -> Result<()> {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: POLL_NS,
        };
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                self.end();
                return Err(Error::Interrupted);
            }
            let mut fds = [PollFd::new(&self.answers, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(Error::io("the pipe", "wait for")(errno.into())),
            }
        }
    }

    /// Whoever gets an interruption removes the database's directory: by then nobody may make or
    /// remove files there.
    fn end(&mut self) {
        self.requests = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ctrl-C on a terminal reaches the child too, and it may be the first to go.
    fn died(&mut self) -> Error {
        self.requests = None;
        let status = self.child.wait();
        if self.interrupted.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        Error::ChildDied {
            how: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
        }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        // Unless it is in the middle of something that nobody waits for any more.
        if self.interrupted.load(Ordering::Relaxed) {
            return self.end();
        }
        // Lets the child close its database. It may be gone already, and then nothing is left to do.
        let _ = self.send(&Request::Quit);
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// Takes a database and its journal or log out of the page cache.
fn drop_page_cache(database: &Path) -> Result<()> {
    for suffix in ["", "-journal", "-wal"] {
        let path = with_suffix(database, suffix);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(Error::io(&path, "open"))?,
        };
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)
            .map_err(|errno| Error::io(&path, "drop the page cache of")(errno.into()))?;
    }
    Ok(())
}

fn unexpected(answer: &Answer) -> Error {
    Error::Io {
        path: "the pipe".into(),
        what: "make sense of".into(),
        reason: format!("{answer:?}"),
    }
}

//! The child's side of the pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use iostep_model::directory::remove_left;
use rusqlite::InterruptHandle;
use rustix::mount::UnmountFlags;

use crate::error::{Error, Result};
use crate::script::protocol::{Answer, Closed, Database, Request};
use crate::script::runner::Runner;
use iostep_model::clock::mono_ns;

/// Answers requests until it is told to quit. If the input just ends, the driver was killed, and
/// what is disposable is removed.
///
/// Errors: `Io` if the pipe breaks; `Usage` for anything that is no request.
pub fn serve(input: impl Read + Send + 'static, mut output: impl Write) -> Result<()> {
    let (sender, lines) = channel();
    let mut server = Server::default();
    let running = Arc::downgrade(&server.running);
    std::thread::Builder::new()
        .name("sql-input".into())
        .spawn(move || listen(input, sender, &running))
        .map_err(Error::io("sql-input", "start the thread"))?;
    let served = server.answer_all(&lines, &mut output);
    server.close_database();
    if !matches!(served, Ok(End::Quit)) {
        server.clean_up();
    }
    served.map(|_| ())
}

/// How long to wait for the driver's death once its end of the pipe is closed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a statement that nobody waits for any more is told to stop: one that starts just
/// after it was told does not notice.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Hands lines on; at the end of the input stops what still runs, for as long as a server is there.
fn listen(
    input: impl Read,
    lines: Sender<std::io::Result<String>>,
    running: &Weak<Mutex<Option<InterruptHandle>>>,
) {
    for line in BufReader::new(input).lines() {
        if lines.send(line).is_err() {
            return;
        }
    }
    drop(lines);
    while let Some(running) = running.upgrade() {
        if let Some(handle) = &*running.lock().unwrap_or_else(PoisonError::into_inner) {
            handle.interrupt();
        }
        drop(running);
        std::thread::sleep(INTERRUPT_INTERVAL);
    }
}

enum End {
    Quit,
    Killed,
}

#[derive(Default)]
struct Server {
    runner: Option<Runner>,
    database: Option<Database>,
    disposable: Vec<PathBuf>,
    /// Stops the runner's statement; for the thread that sees the end of the input.
    running: Arc<Mutex<Option<InterruptHandle>>>,
}

impl Server {
    fn answer_all(
        &mut self,
        lines: &Receiver<std::io::Result<String>>,
        output: &mut impl Write,
    ) -> Result<End> {
        for line in lines {
            let line = line.map_err(Error::io("the pipe", "read from"))?;
            let request = serde_json::from_str(&line).map_err(|error| Error::Usage {
                what: format!("not a request: {error}"),
                hint: "this command is for iostep's own use".into(),
            })?;
            if request == Request::Quit {
                return Ok(End::Quit);
            }
            let answer = self.answer(request).unwrap_or_else(Answer::Failed);
            let mut line = serde_json::to_vec(&answer).expect("answers have only JSON's types");
            line.push(b'\n');
            let sent = output.write_all(&line).and_then(|()| output.flush());
            match sent {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(End::Killed),
                sent => sent.map_err(Error::io("the pipe", "write to"))?,
            }
        }
        Ok(End::Killed)
    }

    fn answer(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Dispose(directory) => {
                self.disposable.push(directory);
                Ok(Answer::Noted)
            }
            Request::Open(database) => self.open(database),
            Request::Load(script) => Ok(Answer::Loaded(self.runner()?.0.load(&script)?)),
            Request::WarmUp => {
                let (runner, path) = self.runner()?;
                runner.warm_up(path)?;
                Ok(Answer::WarmedUp)
            }
            Request::Forget => {
                let (runner, path) = self.runner()?;
                runner.forget_pages(path)?;
                Ok(Answer::Forgotten)
            }
            Request::Step => Ok(Answer::Stepped(self.runner()?.0.step()?)),
            Request::Settle => self.settle(),
            Request::Close => self.close(),
            Request::Quit => Err(nothing_open()),
        }
    }

    fn open(&mut self, database: Database) -> Result<Answer> {
        self.close_database();
        let database = self.database.insert(database);
        let runner = Runner::open(&database.path, &database.settings)?;
        let opened = runner.describe(&database.path)?;
        self.set_interrupt_handle(Some(runner.interrupt_handle()));
        self.runner = Some(runner);
        Ok(Answer::Opened(opened))
    }

    fn close_database(&mut self) {
        self.set_interrupt_handle(None);
        self.runner = None;
    }

    fn set_interrupt_handle(&self, handle: Option<InterruptHandle>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    fn close(&mut self) -> Result<Answer> {
        self.runner()?;
        let start_ns = mono_ns();
        if let (Some(runner), Some(database)) = (self.runner.take(), &self.database) {
            runner.close(&database.path)?;
        }
        Ok(Answer::Closed(Closed {
            start_ns,
            end_ns: mono_ns(),
        }))
    }

    fn runner(&mut self) -> Result<(&mut Runner, &Path)> {
        match (&mut self.runner, &self.database) {
            (Some(runner), Some(database)) => Ok((runner, &database.path)),
            _ => Err(nothing_open()),
        }
    }

    /// In this process, so that the I/O of settling is not taken for the recorder's own.
    fn settle(&mut self) -> Result<Answer> {
        let database = self.database.as_ref().ok_or_else(nothing_open)?;
        let directory = database.path.parent().unwrap_or(Path::new("/"));
        let opened = File::open(directory).map_err(Error::io(directory, "open"))?;
        rustix::fs::syncfs(&opened)
            .map_err(|errno| Error::io(directory, "sync the filesystem of")(errno.into()))?;
        Ok(Answer::Settled)
    }

    /// The newest first: it may lie in an older one.
    fn clean_up(&self) {
        for directory in self.disposable.iter().rev() {
            remove(directory);
        }
    }
}

fn nothing_open() -> Error {
    Error::Usage {
        what: "no database is open".into(),
        hint: "open one first".into(),
    }
}

/// Removes a directory that iostep made and marked, and nothing else, whatever the request says.
fn remove(directory: &Path) {
    // Fails for what is no mount point, which is most of them.
    let _ = rustix::mount::unmount(directory, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
    remove_left(directory, PATIENCE);
}

//! The child's side of the pipe.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::sql::protocol::{Answer, Closed, Database, Request};
use crate::sql::runner::{Runner, mono_ns};

/// Answers requests until the input ends, then closes the database and removes what is disposable.
///
/// Errors: `Io` if the pipe breaks; `Usage` for anything that is no request.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let mut server = Server::default();
    let served = server.answer_all(input, &mut output);
    server.clean_up();
    served
}

#[derive(Default)]
struct Server {
    runner: Option<Runner>,
    database: Option<Database>,
}

impl Server {
    fn answer_all(&mut self, input: impl BufRead, output: &mut impl Write) -> Result<()> {
        for line in input.lines() {
            let line = line.map_err(Error::io("the pipe", "read from"))?;
            let request = serde_json::from_str(&line).map_err(|error| Error::Usage {
                what: format!("not a request: {error}"),
                hint: "this command is for iostep's own use".into(),
            })?;
            let answer = self.answer(request).unwrap_or_else(Answer::Failed);
            let mut line = serde_json::to_vec(&answer).expect("answers have only JSON's types");
            line.push(b'\n');
            output
                .write_all(&line)
                .and_then(|()| output.flush())
                .map_err(Error::io("the pipe", "write to"))?;
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Open(database) => self.open(database),
            Request::Load(script) => Ok(Answer::Loaded(self.runner()?.0.load(&script)?)),
            Request::WarmUp => {
                let (runner, path) = self.runner()?;
                runner.warm_up(path)?;
                Ok(Answer::WarmedUp)
            }
            Request::Step => Ok(Answer::Stepped(self.runner()?.0.step()?)),
            Request::Close => self.close(),
        }
    }

    fn open(&mut self, database: Database) -> Result<Answer> {
        self.runner = None;
        let database = self.database.insert(database);
        let runner = Runner::open(&database.path, &database.settings)?;
        let opened = runner.describe(&database.path)?;
        self.runner = Some(runner);
        Ok(Answer::Opened(opened))
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
            _ => Err(Error::Usage {
                what: "no database is open".into(),
                hint: "open one first".into(),
            }),
        }
    }

    fn clean_up(&mut self) {
        self.runner = None;
        for path in self
            .database
            .iter()
            .flat_map(|database| &database.disposable)
        {
            remove_copy(path);
        }
    }
}

/// Removes a database, its side files and then its directory, which stays if it holds anything
/// else. The driver may have been faster: what is not there is fine.
fn remove_copy(path: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = OsString::from(path);
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
    if let Some(directory) = path.parent() {
        let _ = std::fs::remove_dir(directory);
    }
}

//! The declarations before the calls.

use std::fmt::Write;

use super::super::identity::ProcessId;
use super::super::recording::{
    Content, Header, InitialFile, InitialKind, Ledger, LedgerLine, Paths, Thread,
};
use super::escape::quote;
use super::fields::{Fault, Fields, number, prefixed, text, thread};

/// Everything of a recording but its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    pub(super) header: Header,
    pub(super) threads: Vec<Thread>,
    pub(super) initial: Vec<InitialFile>,
    pub(super) ledger: Ledger,
}

impl Head {
    /// Appends all lines, each with its end.
    pub(super) fn write(&self, paths: &Paths, out: &mut String) {
        self.write_header(out);
        for thread in &self.threads {
            // Writing to a string cannot fail, here and below.
            let _ = write!(out, "@thread t{} p{} ", thread.id.0, thread.process.0);
            let _ = write!(out, "tid={} name=", thread.tid);
            quote(thread.name.as_bytes(), out);
            out.push('\n');
        }
        for file in &self.initial {
            write_initial(file, paths, out);
        }
        for line in &self.ledger.lines {
            out.push_str(if line.kept { "@kept " } else { "@left-out " });
            quote(line.reason.as_bytes(), out);
            let _ = writeln!(out, " {}", line.count);
        }
    }

    fn write_header(&self, out: &mut String) {
        // A loss comes first, wherever a recording is shown.
        let _ = writeln!(out, "@lost {}", self.ledger.lost);
        for (name, value) in [
            ("@recorder ", &self.header.recorder),
            ("@machine ", &self.header.machine),
        ] {
            out.push_str(name);
            quote(value.as_bytes(), out);
            out.push('\n');
        }
        if !self.header.command.is_empty() {
            out.push_str("@command");
            for word in &self.header.command {
                out.push(' ');
                quote(word, out);
            }
            out.push('\n');
        }
        let clock = &self.header.clock;
        let _ = match clock.start_wall_ns {
            Some(wall) => write!(out, "@clock wall={wall}"),
            None => write!(out, "@clock wall=?"),
        };
        let _ = writeln!(out, " resolution={}", clock.resolution_ns);
    }

    /// Takes one declaration, `line` without its `@`.
    pub(super) fn read(&mut self, line: &str, paths: &mut Paths) -> Result<(), Fault> {
        let mut fields = Fields::split(line)?;
        match fields.expect("the declaration")? {
            "recorder" => self.header.recorder = words(&mut fields)?,
            "machine" => self.header.machine = words(&mut fields)?,
            "command" => {
                while let Some(word) = fields.next() {
                    let word = text(word).ok_or_else(|| format!("{word}: not quoted text"))?;
                    self.header.command.push(word.into_owned());
                }
            }
            "clock" => {
                let wall = fields.named("wall").ok_or("wall= is missing")?;
                self.header.clock.start_wall_ns = match wall {
                    "?" => None,
                    wall => Some(number(wall).ok_or_else(|| format!("{wall}: not a time"))?),
                };
                self.header.clock.resolution_ns = fields.number("resolution")?;
            }
            "thread" => self.thread(&mut fields)?,
            "initial" => self.initial.push(read_initial(&mut fields, paths)?),
            "lost" => self.ledger.lost = count(&mut fields)?,
            kind @ ("kept" | "left-out") => {
                let reason = words(&mut fields)?;
                let count = count(&mut fields)?;
                let kept = kind == "kept";
                self.ledger.lines.push(LedgerLine {
                    kept,
                    reason,
                    count,
                });
            }
            other => return Err(format!("@{other}: not known")),
        }
        fields.done()
    }

    fn thread(&mut self, fields: &mut Fields<'_>) -> Result<(), Fault> {
        let id = thread(fields.expect("the thread (t1)")?)?;
        let process = fields.expect("the process (p1)")?;
        let process = prefixed(process, 'p').map(ProcessId);
        if id.0 as usize != self.threads.len() + 1 {
            return Err(format!("t{}: threads are declared in order from t1", id.0));
        }
        self.threads.push(Thread {
            id,
            process: process.ok_or("not a process (p1)")?,
            tid: fields.number("tid")?,
            name: String::from_utf8_lossy(&fields.bytes("name")?).into_owned(),
        });
        Ok(())
    }
}

fn words(fields: &mut Fields<'_>) -> Result<String, Fault> {
    let word = fields.expect("text")?;
    let bytes = text(word).ok_or_else(|| format!("{word}: not quoted text"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn count(fields: &mut Fields<'_>) -> Result<u64, Fault> {
    let word = fields.expect("a count")?;
    number(word).ok_or_else(|| format!("{word}: not a count"))
}

fn write_initial(file: &InitialFile, paths: &Paths, out: &mut String) {
    let kind = match file.kind {
        InitialKind::Absent => "absent",
        InitialKind::File { .. } => "file",
        InitialKind::Directory => "directory",
        InitialKind::Symlink { .. } => "symlink",
        InitialKind::HardLink { .. } => "hardlink",
        InitialKind::Fifo => "fifo",
        InitialKind::Socket => "socket",
        InitialKind::Device => "device",
    };
    let _ = write!(out, "@initial {kind} path=");
    quote(paths.get(file.path), out);
    match &file.kind {
        InitialKind::File { size, content } => {
            let _ = write!(out, " size={size} content=");
            let _ = match content {
                Content::Data => write!(out, "data"),
                Content::Hole => write!(out, "hole"),
                Content::Sparse(data) => write!(out, "sparse:{data}"),
                Content::Kept(number) => write!(out, "kept:{number}"),
            };
        }
        InitialKind::Symlink { content } => {
            out.push_str(" content=");
            quote(paths.get(*content), out);
        }
        InitialKind::HardLink { of } => {
            out.push_str(" of=");
            quote(paths.get(*of), out);
        }
        InitialKind::Absent | InitialKind::Directory => {}
        InitialKind::Fifo | InitialKind::Socket | InitialKind::Device => {}
    }
    if let Some(mode) = file.mode {
        let _ = write!(out, " mode=0{mode:03o}");
    }
    out.push_str(if file.seen { " seen\n" } else { "\n" });
}

fn read_initial(fields: &mut Fields<'_>, paths: &mut Paths) -> Result<InitialFile, Fault> {
    let kind = fields.expect("what it is")?;
    let path = paths.intern(&fields.bytes("path")?);
    let kind = match kind {
        "absent" => InitialKind::Absent,
        "directory" => InitialKind::Directory,
        "file" => InitialKind::File {
            size: fields.number("size")?,
            content: match fields.named("content").ok_or("content= is missing")? {
                "data" => Content::Data,
                "hole" => Content::Hole,
                other => {
                    let kept = other.strip_prefix("kept:").and_then(number);
                    let kept = kept.map(Content::Kept);
                    let sparse = other.strip_prefix("sparse:").and_then(number);
                    let content = kept.or(sparse.map(Content::Sparse));
                    content.ok_or_else(|| format!("content={other}: not known"))?
                }
            },
        },
        "symlink" => InitialKind::Symlink {
            content: paths.intern(&fields.bytes("content")?),
        },
        "hardlink" => InitialKind::HardLink {
            of: paths.intern(&fields.bytes("of")?),
        },
        "fifo" => InitialKind::Fifo,
        "socket" => InitialKind::Socket,
        "device" => InitialKind::Device,
        other => return Err(format!("@initial {other}: not known")),
    };
    Ok(InitialFile {
        path,
        kind,
        mode: fields.optional("mode")?,
        seen: fields.flag("seen"),
    })
}

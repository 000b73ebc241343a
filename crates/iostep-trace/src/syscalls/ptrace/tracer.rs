//! Follows every thread from stop to stop.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::capture::{self, Begun};
use super::tracee::{self, ARCHITECTURE, At, Call, FIRST_FOREIGN, Stop};
use crate::error::{Error, Result};
use crate::syscalls::file_data::FileData;
use crate::syscalls::programs::types::wire_shares as Shares;
use crate::syscalls::received;
use crate::syscalls::record::{self, Record};
use crate::syscalls::requests;
use crate::syscalls::spool;
use iostep_model::clock::mono_ns;

/// How long a command that was asked to end may take.
const TERMINATION: Duration = Duration::from_secs(2);
/// `IORING_MAX_ENTRIES` (io_uring/io_uring.h): no call hands in more.
const MAX_REQUESTS: i64 = 32_768;

/// Whose calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A command, which nobody else watches: it is ended with the recording.
    Command(u32),
    /// A process that runs already: it goes on without the recorder.
    Process,
}

/// What is traced, and what was recorded of it.
#[derive(Debug)]
pub(super) struct Tracer {
    subject: Subject,
    threads: HashMap<u32, Thread>,
    /// New threads that stopped before their parent did, which must be told first.
    early: HashMap<u32, Stop>,
    /// Threads that recorded ones want to trace, and who that is.
    wanted: HashMap<u32, u32>,
    /// A command's first exec was seen, or it is no command.
    pub(super) runs: bool,
    /// How the command ended.
    pub(super) status: Option<ExitStatus>,
    detaching: bool,
    /// When those are killed that were asked to end.
    kill_at: Option<Instant>,
    spool: spool::Writer,
    /// Takes what files hold before they are opened.
    data: Option<FileData>,
    /// Nothing is recorded from then on; what is traced goes on unharmed.
    failed: Option<Error>,
}

#[derive(Debug)]
struct Thread {
    process: u32,
    call: Option<Begun>,
}

impl Tracer {
    /// Of nothing yet.
    pub(super) fn new(subject: Subject, spool: spool::Writer, data: Option<FileData>) -> Tracer {
        let mut threads = HashMap::new();
        if let Subject::Command(process) = subject {
            let call = None;
            threads.insert(process, Thread { process, call });
        }
        Tracer {
            subject,
            threads,
            early: HashMap::new(),
            wanted: HashMap::new(),
            runs: subject == Subject::Process,
            status: None,
            detaching: false,
            kill_at: None,
            spool,
            data,
            failed: None,
        }
    }

    /// What was recorded, and what was kept.
    ///
    /// Errors: what made the recording stop early.
    pub(super) fn recorded(self) -> Result<(spool::Writer, Option<FileData>)> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.spool, self.data)),
        }
    }

    /// Removes what was recorded.
    pub(super) fn discard(self) {
        self.spool.discard();
    }

    /// Stops every thread of a process. `stopped` is called while all of them are; then they go on.
    ///
    /// Errors: `Unsupported` if the process may not be traced, and `stopped`'s; nothing is traced
    /// then.
    pub(super) fn attach<T>(
        &mut self,
        process: u32,
        stopped: impl FnOnce(Option<&mut FileData>, &mut spool::Writer) -> Result<T>,
    ) -> Result<T> {
        let mut held = HashMap::new();
        let attached = self
            .hold_all(process, &mut held)
            .and_then(|()| stopped(self.data.as_mut(), &mut self.spool));
        if attached.is_err() {
            self.detaching = true;
        }
        for (tid, stop) in held {
            self.go_on(tid, stop)?;
        }
        if attached.is_err() {
            while !self.threads.is_empty() && self.step()? {}
        }
        attached
    }

    /// Attaches to threads until there is none that is not stopped: those that still run make more.
    fn hold_all(&mut self, process: u32, held: &mut HashMap<u32, Stop>) -> Result<()> {
        let directory = format!("/proc/{process}/task");
        loop {
            let threads = fs::read_dir(&directory).map_err(Error::io(&directory, "list"))?;
            let names = threads.flatten().map(|entry| entry.file_name());
            let tids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
            let new: Vec<u32> = tids.filter(|tid| !self.threads.contains_key(tid)).collect();
            let mut added = false;
            for tid in new {
                added |= self.seize(process, tid)?;
            }
            if !added {
                break;
            }
            while self.threads.keys().any(|tid| !held.contains_key(tid)) {
                self.hold_one(held)?;
            }
        }
        match self.threads.is_empty() {
            true => Err(Error::unsupported(
                format!("process {process}"),
                "it has no thread that can be traced; it is about to end",
            )),
            false => Ok(()),
        }
    }

    /// False if the thread is gone.
    fn seize(&mut self, process: u32, tid: u32) -> Result<bool> {
        let seized = tracee::seize(tid).and_then(|()| tracee::interrupt(tid));
        match seized {
            Ok(()) => {
                self.threads.insert(
                    tid,
                    Thread {
                        process,
                        call: None,
                    },
                );
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(_) if is_dead(tid) => Ok(false),
            Err(error) => Err(Error::unsupported(
                format!("process {process}"),
                format!(
                    "it may not be traced: {error}; another program may trace it, or root's \
                     rights are needed (/proc/sys/kernel/yama/ptrace_scope)"
                ),
            )),
        }
    }

    fn hold_one(&mut self, held: &mut HashMap<u32, Stop>) -> Result<()> {
        let Some((tid, stop)) = tracee::wait().map_err(waiting)? else {
            return Ok(());
        };
        match stop {
            Stop::Ended(_) => {
                held.remove(&tid);
                self.threads.remove(&tid);
                return Ok(());
            }
            Stop::Fork => {
                if let Some(child) = tracee::message(tid) {
                    self.tell_fork(tid, child);
                }
            }
            _ => {}
        }
        let process = leader_of(tid).unwrap_or(tid);
        let thread = Thread {
            process,
            call: None,
        };
        self.threads.entry(tid).or_insert(thread);
        held.insert(tid, stop);
        Ok(())
    }

    /// Follows until everything ended, or until `stop` is set and everything was let go or ended
    /// for that.
    ///
    /// Errors: `Unsupported` where the kernel lacks what this needs.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        while !(self.threads.is_empty() && self.early.is_empty()) || self.awaits_command() {
            if stop.load(Ordering::Relaxed) {
                self.end();
            }
            if !self.step()? {
                break;
            }
        }
        Ok(())
    }

    /// True if the command itself goes on, be it without the recorder.
    fn awaits_command(&self) -> bool {
        matches!(self.subject, Subject::Command(_)) && self.status.is_none()
    }

    /// Ends a command, leaves a process.
    fn end(&mut self) {
        let signal = match self.kill_at {
            None => Signal::TERM,
            Some(at) if at <= Instant::now() => Signal::KILL,
            Some(_) => return,
        };
        self.kill_at = Some(Instant::now() + TERMINATION);
        match self.subject {
            Subject::Command(_) => self.signal_all(signal),
            Subject::Process => self.leave_all(),
        }
    }

    /// Lets each thread go at its next stop.
    fn leave_all(&mut self) {
        self.detaching = true;
        for tid in self.threads.keys() {
            // It may have ended; the wait will tell.
            let _ = tracee::interrupt(*tid);
        }
    }

    fn signal_all(&self, signal: Signal) {
        let mut processes: Vec<u32> = self.threads.values().map(|thread| thread.process).collect();
        if let Subject::Command(command) = self.subject
            && self.status.is_none()
        {
            processes.push(command);
        }
        processes.sort_unstable();
        processes.dedup();
        for process in processes {
            if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
                // It may have ended, and nobody else has its number before it is waited for.
                let _ = kill_process(process, signal);
            }
        }
    }

    /// Lets go what cannot be followed any more.
    pub(super) fn abandon(&mut self) {
        self.failed
            .get_or_insert_with(|| Error::unsupported("the recorder", "it gave up"));
        self.leave_all();
        while !self.threads.is_empty() && matches!(self.step(), Ok(true)) {}
    }

    /// Takes one stop. False if nothing is left to wait for.
    fn step(&mut self) -> Result<bool> {
        let (tid, stop) = match tracee::wait() {
            Ok(Some(stopped)) => stopped,
            Ok(None) => return Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(false),
            Err(error) => return Err(waiting(error)),
        };
        if let Stop::Ended(status) = stop {
            self.ended(tid, status)?;
            self.hand_over(tid, None)?;
            return Ok(true);
        }
        if self.wanted.contains_key(&tid) {
            self.hand_over(tid, Some(stop))?;
            return Ok(true);
        }
        if !self.threads.contains_key(&tid) {
            if self.detaching {
                tracee::detach(tid, 0).map_err(following)?;
            }
            self.early.insert(tid, stop);
            return Ok(true);
        }
        match stop {
            Stop::Call => match tracee::at(tid) {
                Ok(At::Enter(call)) => {
                    if self.debugs(tid, &call)? {
                        return Ok(true);
                    }
                    self.enter(tid, &call);
                }
                Ok(At::Leave(result)) => self.leave(tid, result),
                Ok(At::Nothing) => {}
                // It is to be let go whatever it does.
                Err(_) if self.failed.is_some() => {}
                Err(error) => return Err(unsaid(error)),
            },
            Stop::Fork => self.forked(tid)?,
            Stop::Exec => self.executed(tid),
            _ => {}
        }
        self.go_on(tid, stop)?;
        Ok(true)
    }

    /// Lets a thread go on after a stop.
    fn go_on(&mut self, tid: u32, stop: Stop) -> Result<()> {
        let signal = match stop {
            Stop::Signal(signal) => signal,
            _ => 0,
        };
        if self.detaching {
            if let Some(begun) = self.threads.remove(&tid).and_then(|thread| thread.call) {
                begun.unfinished(tid, mono_ns(), |record| self.push(record));
            }
            return tracee::detach(tid, signal).map_err(following);
        }
        if stop == Stop::Group {
            return tracee::listen(tid).map_err(following);
        }
        let thread = self.threads.get_mut(&tid);
        let call = thread.and_then(|thread| thread.call.as_mut());
        // Reading arguments is the recorder's time, not the call's.
        if let (Some(begun), Stop::Call) = (call, stop) {
            begun.start_ns = mono_ns();
        }
        tracee::resume(tid, signal).map_err(following)
    }

    /// A recorded program debugs others: only one may trace a thread, so the recorder lets go whom
    /// that one wants. True if the caller goes on later.
    fn debugs(&mut self, tid: u32, call: &Call) -> Result<bool> {
        let is_ptrace = call.number == libc::SYS_ptrace as u64 && call.architecture == ARCHITECTURE;
        if !is_ptrace || self.detaching {
            return Ok(false);
        }
        let request = u32::try_from(call.arguments[0]).unwrap_or(u32::MAX);
        match request {
            // The recorder is the first process's parent.
            libc::PTRACE_TRACEME if self.subject != Subject::Command(tid) => {
                self.let_go(tid, 0)?;
                Ok(true)
            }
            libc::PTRACE_ATTACH | libc::PTRACE_SEIZE => {
                let wanted = u32::try_from(call.arguments[1]).unwrap_or(0);
                let known = wanted != tid && self.threads.contains_key(&wanted);
                if !known || tracee::interrupt(wanted).is_err() {
                    return Ok(false);
                }
                self.wanted.insert(wanted, tid);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A thread that another one wants stopped, or ended.
    fn hand_over(&mut self, tid: u32, stop: Option<Stop>) -> Result<()> {
        let Some(caller) = self.wanted.remove(&tid) else {
            return Ok(());
        };
        match stop {
            Some(Stop::Signal(signal)) => self.let_go(tid, signal)?,
            Some(Stop::Fork) => {
                self.forked(tid)?;
                self.let_go(tid, 0)?;
            }
            Some(_) => self.let_go(tid, 0)?,
            None => {}
        }
        self.go_on(caller, Stop::Call)
    }

    /// Lets a thread go on without the recorder.
    fn let_go(&mut self, tid: u32, signal: i32) -> Result<()> {
        let thread = self.threads.remove(&tid);
        let process = thread.as_ref().map_or(tid, |thread| thread.process);
        if let Some(begun) = thread.and_then(|thread| thread.call) {
            begun.unfinished(tid, mono_ns(), |record| self.push(record));
        }
        let last = !self.threads.values().any(|other| other.process == process);
        self.note(tid, record::UNRECORDED, [0; 3]);
        self.note(tid, record::EXIT, [u64::from(last), 0, 0]);
        tracee::detach(tid, signal).map_err(following)
    }

    fn enter(&mut self, tid: u32, call: &Call) {
        if !self.runs {
            return;
        }
        let native = call.architecture == ARCHITECTURE;
        let begun = match i64::try_from(call.number) {
            _ if !native || call.number >= FIRST_FOREIGN => Some(Begun::plain(record::FOREIGN)),
            Ok(libc::SYS_prctl) => {
                let names = call.arguments[0] == libc::PR_SET_NAME as u64;
                names.then(|| Begun::plain(record::NAME))
            }
            _ => capture::begin(tid, call, self.data.as_mut()),
        };
        let begun = begun.map(|mut begun| {
            begun.trace_child(tid);
            begun
        });
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.call = begun;
        }
    }

    fn leave(&mut self, tid: u32, result: i64) {
        let end_ns = mono_ns();
        let thread = self.threads.get_mut(&tid);
        let Some(mut begun) = thread.and_then(|thread| thread.call.take()) else {
            return;
        };
        match begun.number {
            record::NAME if result == 0 => {
                let [first, second] = capture::name(tid);
                self.note(tid, record::NAME, [u64::from(tid), first, second]);
            }
            record::NAME => {}
            _ if begun.told => begun.restore(tid),
            _ => {
                begun.restore(tid);
                if begun.is_fork() && result > 0 {
                    return self.note(tid, record::UNRECORDED, [0; 3]);
                }
                if let Some(numbers) = begun.received(tid, result) {
                    return self.receive(tid, &numbers, end_ns);
                }
                if let Some(ends) = begun.completed(tid, result) {
                    for words in ends {
                        self.note(tid, record::COMPLETED, words);
                    }
                    return;
                }
                begun.submitted(tid, |record| self.push(record));
                if i64::from(begun.number) == libc::SYS_io_uring_enter {
                    self.count_requests(tid, end_ns, result);
                }
                begun.read_answer(tid, result, self.data.as_mut());
                begun.ended(tid, end_ns, result, |record| self.push(record));
            }
        }
    }

    /// Descriptors came from another process.
    fn receive(&mut self, tid: u32, numbers: &[i32], now_ns: u64) {
        for number in numbers {
            let Some((link, found, bytes)) = received::found(tid, *number, now_ns) else {
                continue;
            };
            if let Some(data) = &mut self.data {
                data.keep(&link, &found);
            }
            if let Some(record) = Record::parse(&bytes) {
                self.push(&record);
            }
        }
    }

    fn forked(&mut self, parent: u32) -> Result<()> {
        let Some(child) = tracee::message(parent) else {
            return Ok(());
        };
        self.tell_fork(parent, child);
        match self.early.remove(&child) {
            Some(_) if self.detaching => {
                self.threads.remove(&child);
                Ok(())
            }
            Some(stop) => self.go_on(child, stop),
            None => Ok(()),
        }
    }

    /// Records a new thread, and follows it.
    fn tell_fork(&mut self, parent: u32, child: u32) {
        let now = mono_ns();
        let leader = leader_of(child);
        let Some(thread) = self.threads.get_mut(&parent) else {
            return;
        };
        let is_thread = leader.is_some_and(|leader| leader != child);
        let is_foreign = |begun: &Begun| begun.number == record::FOREIGN;
        let flags = match &mut thread.call {
            Some(begun) if !is_foreign(begun) => {
                begun.told = true;
                begun.clone_flags(parent)
            }
            // How a 32-bit program called it is not looked at: as all threads are made.
            _ if is_thread => (libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_FS) as u64,
            _ => 0,
        };
        let start_ns = thread.call.as_ref().map_or(now, |begun| begun.start_ns);
        let shares = [
            (libc::CLONE_THREAD, Shares::SHARES_PROCESS),
            (libc::CLONE_FILES, Shares::SHARES_FILES),
            (libc::CLONE_FS, Shares::SHARES_DIRECTORY),
        ];
        let set = |flag: i32| flags & flag as u64 != 0;
        let shares = shares.iter().filter(|(flag, _)| set(*flag));
        let shares = shares.fold(0, |all, (_, share)| all | u64::from(share.0));
        let process = match shares & u64::from(Shares::SHARES_PROCESS.0) {
            0 => child,
            _ => thread.process,
        };
        let call = None;
        self.threads.insert(child, Thread { process, call });
        let mut word = [0; 10];
        let own = own_number_of(child).unwrap_or(0);
        word[..3].copy_from_slice(&[u64::from(child), shares, u64::from(own)]);
        self.push(&Record {
            start_ns,
            duration_ns: now.saturating_sub(start_ns),
            word,
            ..blank(parent, record::FORK)
        });
    }

    /// The thread has its process's number now, whatever it had before; the others are gone.
    fn executed(&mut self, tid: u32) {
        let before = tracee::message(tid).unwrap_or(tid);
        let mover = self.threads.remove(&before);
        let now = mono_ns();
        let process = self.threads.get(&tid).or(mover.as_ref());
        let process = process.map_or(tid, |thread| thread.process);
        let others = self
            .threads
            .iter()
            .filter(|(_, thread)| thread.process == process);
        let others: Vec<u32> = others.map(|(tid, _)| *tid).collect();
        for other in others {
            let thread = self.threads.remove(&other);
            if let Some(begun) = thread.and_then(|thread| thread.call) {
                begun.unfinished(other, now, |record| self.push(record));
            }
            if other != tid {
                self.note(other, record::EXIT, [0; 3]);
            }
        }
        let call = None;
        self.threads.insert(tid, Thread { process, call });
        self.runs = true;
        let [first, second] = capture::name(tid);
        self.note(tid, record::EXEC, [u64::from(before), first, second]);
    }

    fn ended(&mut self, tid: u32, status: i32) -> Result<()> {
        if self.subject == Subject::Command(tid) {
            self.status = Some(ExitStatus::from_raw(status));
        }
        self.early.remove(&tid);
        let Some(thread) = self.threads.remove(&tid) else {
            return Ok(());
        };
        if let Some(begun) = thread.call {
            if begun.is_fork() && !begun.told {
                self.adopt_orphans(tid, thread.process)?;
            }
            if self.runs && !begun.told && begun.number != record::NAME {
                begun.unfinished(tid, mono_ns(), |record| self.push(record));
            }
        }
        let mut left = self.threads.values();
        let last = !left.any(|other| other.process == thread.process);
        if self.runs {
            self.note(tid, record::EXIT, [u64::from(last), 0, 0]);
        }
        Ok(())
    }

    /// A thread that was killed while it made another never tells of that.
    fn adopt_orphans(&mut self, parent: u32, process: u32) -> Result<()> {
        let known = |process| {
            let mut threads = self.threads.values();
            threads.any(|thread| thread.process == process)
        };
        let orphaned = |child: u32| match leader_of(child) {
            Some(leader) if leader != child => leader == process,
            _ => field_of(child, "PPid:").is_none_or(|ppid| ppid == process || !known(ppid)),
        };
        let early = self.early.keys().copied();
        let orphans: Vec<u32> = early.filter(|child| orphaned(*child)).collect();
        for child in orphans {
            let stop = self.early.remove(&child).unwrap_or(Stop::Trap);
            self.threads.insert(
                parent,
                Thread {
                    process,
                    call: None,
                },
            );
            self.tell_fork(parent, child);
            self.threads.remove(&parent);
            self.go_on(child, stop)?;
        }
        Ok(())
    }

    /// Requests that io_uring_enter handed in: what they are lies in the ring.
    fn count_requests(&mut self, tid: u32, now_ns: u64, handed_in: i64) {
        let mut word = [0; 10];
        word[4] = requests::UNSEEN;
        for _ in 0..handed_in.clamp(0, MAX_REQUESTS) {
            self.push(&Record {
                start_ns: now_ns,
                word,
                ..blank(tid, record::REQUEST)
            });
        }
    }

    fn note(&mut self, tid: u32, number: u16, words: [u64; 3]) {
        let mut word = [0; 10];
        word[..3].copy_from_slice(&words);
        self.push(&Record {
            start_ns: mono_ns(),
            word,
            ..blank(tid, number)
        });
    }

    /// A full disk ends the recording, not the program.
    fn push(&mut self, record: &Record<'_>) {
        if self.failed.is_none() {
            // A stop costs far more than a write, and nobody would write later what is held back.
            let pushed = self.spool.push(&record.bytes());
            self.failed = pushed.and_then(|()| self.spool.flush()).err();
        }
    }
}

fn blank(tid: u32, number: u16) -> Record<'static> {
    Record {
        start_ns: 0,
        duration_ns: 0,
        result: 0,
        tid,
        number,
        flags: 0,
        word: [0; 10],
        text: [b""; 2],
    }
}

/// The process of a thread.
fn leader_of(tid: u32) -> Option<u32> {
    field_of(tid, "Tgid:")
}

/// A number in `/proc/TID/status`.
fn field_of(tid: u32, name: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Its number in the innermost of its PID namespaces.
fn own_number_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let mut lines = status.lines();
    let numbers = lines.find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

fn is_dead(tid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status"));
    status.is_ok_and(|status| status.contains("\nState:\tZ") || status.contains("\nState:\tX"))
}

fn waiting(error: io::Error) -> Error {
    Error::unsupported("ptrace", format!("cannot wait for what is traced: {error}"))
}

fn following(error: io::Error) -> Error {
    Error::unsupported("ptrace", format!("cannot let a thread go on: {error}"))
}

fn unsaid(error: io::Error) -> Error {
    Error::unsupported(
        "ptrace",
        format!("the kernel does not say which call a thread makes: {error}; Linux 5.3 does"),
    )
}

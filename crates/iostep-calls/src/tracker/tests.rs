//! Events written down by hand, and a model of descriptors that nothing here was made from.

mod files;
mod initial;
mod model;
mod processes;

use std::borrow::Cow;

use iostep_model::syscall::raw::{
    Action, Descriptor, DescriptorKind, Event, Known, Path, Returned,
};
use iostep_model::syscall::{
    Direction, Errno, HandleId, InitialKind, OpenFlags, Operation, Recording, Syscall,
};

use super::{Finished, Tracker};

/// Calls of a program, a microsecond each, one after the other.
struct Program {
    tracker: Tracker<Recording>,
    now_ns: u64,
    events: u64,
}

fn number(number: i32) -> Descriptor<'static> {
    Descriptor::number(number)
}

fn path(text: &str) -> Path<'_> {
    Path {
        directory: None,
        text: Cow::Borrowed(text.as_bytes()),
        truncated: false,
    }
}

fn beneath(directory: i32, text: &str) -> Path<'_> {
    Path {
        directory: Some(number(directory)),
        ..path(text)
    }
}

fn known(kind: DescriptorKind, path: Option<&str>) -> Option<Known<'_>> {
    let path = path.map(|path| Cow::Borrowed(path.as_bytes()));
    Some(Known { kind, path })
}

const READ: OpenFlags = OpenFlags::NONE;
const OK: Returned = Returned::Value(0);
const ENOENT: Returned = Returned::Failed(Errno::ENOENT);

impl Program {
    fn new() -> Program {
        Program {
            tracker: Tracker::new(Recording::default()),
            now_ns: 0,
            events: 0,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        self.events += 1;
        self.tracker.event(event).expect("a sink that never fails");
    }

    fn act(&mut self, tid: u32, action: Action<'_>, returned: Returned) {
        let start_ns = self.now_ns;
        self.now_ns += 1000;
        self.event(Event {
            tid,
            start_ns,
            duration_ns: Some(500),
            action,
            returned,
            seen: None,
        });
    }

    fn call(
        &mut self,
        tid: u32,
        syscall: Syscall,
        operation: Operation<Descriptor<'_>, Path<'_>>,
        returned: Returned,
    ) {
        self.act(tid, Action::Operation(syscall, operation), returned);
    }

    fn open(&mut self, tid: u32, at: Path<'_>, flags: OpenFlags, returned: i32) {
        let open = Operation::Open {
            path: at,
            flags,
            mode: 0o644,
        };
        let returned = match u64::try_from(returned) {
            Ok(number) => Returned::Value(number),
            Err(_) => Returned::Failed(Errno(-returned)),
        };
        self.call(tid, Syscall::Openat, open, returned);
    }

    fn close(&mut self, tid: u32, fd: i32) {
        let close = Operation::Close { handle: number(fd) };
        self.call(tid, Syscall::Close, close, OK);
    }

    fn transfer(&mut self, tid: u32, fd: i32, direction: Direction, at: Option<i64>, done: u64) {
        let operation = transfer(number(fd), direction, at, done);
        self.call(tid, Syscall::Pread64, operation, Returned::Value(done));
    }

    fn read(&mut self, tid: u32, fd: i32) {
        self.transfer(tid, fd, Direction::Read, Some(0), 10);
    }

    fn dup(&mut self, tid: u32, syscall: Syscall, from: i32, to: i32) {
        let action = Action::Duplicate {
            syscall,
            from: number(from),
            close_on_exec: false,
        };
        self.act(tid, action, Returned::Value(to as u64));
    }

    fn clone(&mut self, tid: u32, child: u32, thread: bool) {
        let action = Action::Clone {
            name: "clone".into(),
            child,
            thread,
            shares_descriptors: thread,
            shares_directory: thread,
        };
        self.act(tid, action, Returned::Value(child.into()));
    }

    fn exit(&mut self, tid: u32, process: bool) {
        self.act(tid, Action::Exit { process }, OK);
    }

    /// The end; each event has gone to exactly one line.
    fn finish(self) -> Finished<Recording> {
        let finished = self.tracker.finish();
        let (kept, left_out) = finished.ledger.totals();
        assert_eq!(kept + left_out, self.events);
        finished
    }
}

fn transfer<H>(
    handle: H,
    direction: Direction,
    offset: Option<i64>,
    size: u64,
) -> Operation<H, Path<'static>> {
    Operation::Transfer {
        direction,
        handle,
        size,
        buffers: 1,
        offset,
        flags: 0,
    }
}

/// The recording's calls as the trace file has them, without times.
fn lines(finished: &Finished<Recording>) -> Vec<String> {
    let lines = crate::fixture::lines(finished).into_iter();
    let without_times = |line: String| line.splitn(3, ' ').nth(2).map(str::to_owned);
    lines
        .map(|line| without_times(line).expect("two times"))
        .collect()
}

fn counts(finished: &Finished<Recording>, kept: bool) -> Vec<(&str, u64)> {
    let lines = finished.ledger.lines.iter();
    let lines = lines.filter(|line| line.kept == kept);
    lines.map(|l| (l.reason.as_str(), l.count)).collect()
}

/// What was at each path, in words.
fn beginning(finished: &Finished<Recording>) -> Vec<String> {
    let initial = finished.initial.iter().map(|file| {
        let path = String::from_utf8_lossy(finished.paths.get(file.path));
        let what = match &file.kind {
            InitialKind::Absent => "absent".to_owned(),
            InitialKind::File { size, .. } => format!("file {size}"),
            InitialKind::Directory => "directory".to_owned(),
            InitialKind::Fifo => "fifo".to_owned(),
            InitialKind::Socket => "socket".to_owned(),
            InitialKind::Device => "device".to_owned(),
            InitialKind::Symlink { .. } => "symlink".to_owned(),
            InitialKind::HardLink { of } => {
                format!("link {}", String::from_utf8_lossy(finished.paths.get(*of)))
            }
        };
        let seen = if file.seen { " seen" } else { "" };
        format!("{path} {what}{seen}")
    });
    let mut initial: Vec<String> = initial.collect();
    initial.sort();
    initial
}

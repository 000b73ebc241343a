//! What only one filesystem's causes are found by.

use iostep_model::event::{File, Process, SyncEnter};
use iostep_model::{Evidence, FileKey, Flags, Operation};

use super::*;

const APP: u32 = 100;
const OTHER: u32 = 200;
const KERNEL: u32 = 7;

struct Recording {
    names: Names,
    causes: Causes,
}

impl Recording {
    fn of(kind: &str, events: &[Event]) -> Recording {
        let mut manifest = iostep_model::fixture::sqlite_on_ext4(1).manifest;
        let filesystem = manifest.filesystem.as_mut().expect("a filesystem");
        filesystem.kind = kind.into();
        let names = Names::learn(events);
        let causes = Causes::learn(&manifest, &names, events);
        Recording { names, causes }
    }

    /// The thread whose sync call is behind a written block.
    fn cause(&self, pid: u32, mono_ns: u64, class: Class, inode: Option<u64>) -> Option<u32> {
        let own = self.causes.calls.iter().find(|call| {
            let row = &call.row;
            call.key.pid == pid && row.enter_ns <= mono_ns && row.exit_ns >= Some(mono_ns)
        });
        let queue = Queue {
            mono_ns,
            sector: 0,
            bytes: 4096,
            operation: Operation::Write,
            flags: Flags::default(),
            pid,
            tgid: pid,
            sync: own.map(|call| call.key),
            segments: Vec::new(),
        };
        let mut piece = Segment {
            file: inode.and_then(|inode| self.names.file(file(inode))),
            ..Segment::of(4096, class, Evidence::PageCache)
        };
        let row = self.causes.of_piece(&self.names, &queue, &mut piece)?;
        Some(self.causes.calls[row as usize].key.pid)
    }
}

fn file(inode: u64) -> FileKey {
    FileKey::plain(inode, 1)
}

fn file_event(inode: u64) -> Event {
    Event::File(File {
        mono_ns: 0,
        file: file(inode),
        mode: 0o100_644,
        path: None,
        unlinked: false,
        birth_wall_ns: None,
    })
}

fn thread(pid: u32, comm: &str, kernel: bool) -> Event {
    Event::Process(Process {
        mono_ns: 0,
        pid,
        tgid: pid,
        parent_tgid: 1,
        comm: comm.into(),
        kernel,
        command_line: None,
    })
}

/// An fsync from one time to another.
fn fsync(pid: u32, (enter_ns, exit_ns): (u64, u64), inode: u64) -> [Event; 2] {
    let sync = SyncKey { pid, enter_ns };
    [
        Event::SyncEnter(SyncEnter {
            sync,
            tgid: pid,
            kind: SyncKind::Fsync,
            file: Some(file(inode)),
        }),
        Event::SyncExit {
            mono_ns: exit_ns,
            sync,
            result: Some(0),
        },
    ]
}

fn needs(pid: u32, enter_ns: u64, commit: u64) -> Event {
    Event::SyncNeeds {
        mono_ns: enter_ns,
        sync: SyncKey { pid, enter_ns },
        commit,
    }
}

fn log(commit: u64, start_ns: u64, end_ns: u64) -> [Event; 2] {
    [
        Event::CommitStart {
            mono_ns: start_ns,
            commit,
        },
        Event::CommitEnd {
            mono_ns: end_ns,
            commit,
        },
    ]
}

#[test]
fn a_log_of_nilfs2_belongs_to_the_first_call_that_it_answers() {
    let [other_enters, other_leaves] = fsync(OTHER, (10, 90), 13);
    // io_uring's fsync is not seen before its log begins.
    let [app_enters, app_leaves] = fsync(APP, (31, 60), 12);
    let [begins, ends] = log(5, 30, 50);
    let [later_begins, later_ends] = log(6, 70, 80);
    let recording = Recording::of(
        "nilfs2",
        &[
            file_event(12),
            file_event(13),
            other_enters,
            begins,
            app_enters,
            needs(APP, 31, 5),
            ends,
            app_leaves,
            later_begins,
            needs(OTHER, 10, 6),
            later_ends,
            other_leaves,
        ],
    );
    let at = |mono_ns| recording.cause(KERNEL, mono_ns, Class::FileData, Some(13));
    assert_eq!(at(40), Some(APP));
    assert_eq!(at(75), Some(OTHER));
    assert_eq!(at(95), None);
    let superblock = recording.cause(KERNEL, 40, Class::Superblock, None);
    assert_eq!(superblock, None);
}

#[test]
fn a_page_that_f2fs_submits_with_others_belongs_to_its_own_files_call() {
    let mut events = vec![file_event(12), file_event(13), file_event(14)];
    events.extend(fsync(APP, (10, 90), 12));
    events.extend(fsync(OTHER, (20, 80), 13));
    let recording = Recording::of("f2fs", &events);
    let cause = |class, inode| recording.cause(APP, 40, class, Some(inode));
    assert_eq!(cause(Class::FileData, 12), Some(APP));
    assert_eq!(cause(Class::FileData, 13), Some(OTHER));
    assert_eq!(cause(Class::FileData, 14), None);
    assert_eq!(cause(Class::NodeBlock, 13), Some(OTHER));
    assert_eq!(cause(Class::NodeBlock, 14), Some(APP));
    assert_eq!(recording.cause(KERNEL, 40, Class::Checkpoint, None), None);
}

#[test]
fn f2fs_checkpoints_for_the_call_under_way() {
    let mut events = vec![file_event(12), thread(KERNEL, "f2fs_ckpt-7:0", true)];
    events.extend(fsync(APP, (10, 90), 12));
    let recording = Recording::of("f2fs", &events);
    let at = |mono_ns| recording.cause(KERNEL, mono_ns, Class::Checkpoint, None);
    assert_eq!(at(40), Some(APP));
    assert_eq!(at(95), None);
}

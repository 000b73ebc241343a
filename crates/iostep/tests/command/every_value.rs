//! What a recorder may write is read again by everything that reads traces, whatever the values.

use std::time::{SystemTime, UNIX_EPOCH};

use iostep_model::event::{
    Completion, Content, Dirtier, Event, Fact, File, Io, Process, Queue, Segment, SyncEnter,
    Transfer,
};
use iostep_model::manifest::{Manifest, State};
use iostep_model::table::Trace;
use iostep_model::{
    FileKey, Flags, Operation, SECTORS_MAX, SyncKey, SyncKind, fixture, spool, store,
};
use tempfile::TempDir;

use crate::{name, said};

const SECTORS: [u64; 6] = [
    0,
    2048,
    SECTORS_MAX - 1,
    SECTORS_MAX,
    SECTORS_MAX + 1,
    // Of flushes and of passthrough requests.
    u64::MAX,
];
const BYTES: [u32; 6] = [0, 1, 96, 512, 4096, u32::MAX];
const NUMBERS: [u64; 3] = [0, 1, u64::MAX];

/// Every event about a request, with the values of a row each.
fn requests(start_ns: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut mono_ns = start_ns;
    for operation in Operation::ALL {
        for sector in SECTORS {
            for bytes in BYTES {
                mono_ns += 10;
                let bits = Flags((mono_ns / 10 % (1 << 10)) as u16);
                let transfer = Transfer {
                    mono_ns,
                    sector,
                    bytes,
                    operation,
                    flags: bits,
                };
                let segment = Segment {
                    bytes,
                    content: Content::File {
                        file: FileKey::plain(mono_ns, u32::MAX),
                        offset_bytes: u64::MAX - u64::from(bytes),
                        direct: true,
                    },
                    dirtier: Some(Dirtier {
                        pid: u32::MAX,
                        tgid: u32::MAX,
                        by_inode: true,
                    }),
                };
                let carries = bytes > 0 && operation.is_write();
                events.push(Event::Queue(Queue {
                    mono_ns,
                    sector,
                    bytes,
                    operation,
                    flags: bits,
                    pid: 7,
                    tgid: 7,
                    sync: None,
                    segments: carries.then_some(segment).into_iter().collect(),
                }));
                events.push(Event::Issue(transfer.clone()));
                events.push(Event::Requeue(transfer.clone()));
                events.push(Event::on(0, Io::Issue(transfer.clone())));
                events.push(Event::Complete(Completion {
                    transfer: Transfer {
                        mono_ns: mono_ns + 5,
                        ..transfer
                    },
                    status: (mono_ns / 10) as u8,
                    in_flush_sequence: false,
                }));
            }
        }
    }
    events
}

/// Every event about files, threads, sync calls and commits.
fn facts(start_ns: u64) -> Vec<Event> {
    let mut events = vec![Event::Process(Process {
        mono_ns: start_ns,
        pid: 7,
        tgid: 7,
        parent_tgid: u32::MAX,
        comm: "a\\xff\u{1b}[31m".into(),
        kernel: false,
        command_line: Some("a \u{7f} b".into()),
    })];
    let mut enter_ns = start_ns;
    for number in NUMBERS {
        let file = FileKey {
            subvolume: number,
            inode: number,
            generation: number as u32,
        };
        events.push(Event::of(
            0,
            Fact::File(File {
                mono_ns: start_ns,
                file,
                mode: number as u16,
                path: (number > 0).then(|| format!("/{number}\t\"")),
                unlinked: number == 1,
                birth_wall_ns: Some(i64::MIN.wrapping_add(number as i64)),
            }),
        ));
        events.push(Event::CommitStart {
            mono_ns: start_ns,
            commit: number,
        });
        for kind in SyncKind::ALL {
            enter_ns += 10;
            let sync = SyncKey { pid: 7, enter_ns };
            events.push(Event::SyncEnter(SyncEnter {
                sync,
                tgid: 7,
                kind,
                file: Some(file),
            }));
            events.push(Event::SyncNeeds {
                mono_ns: enter_ns + 1,
                sync,
                commit: number,
            });
            events.push(Event::SyncExit {
                mono_ns: enter_ns + 2,
                sync,
                result: Some(number as i64),
            });
        }
        events.push(Event::FileDeleted {
            mono_ns: enter_ns,
            file,
        });
    }
    events
}

/// A directory as a recorder leaves it.
fn recorded() -> TempDir {
    let dir = TempDir::new().expect("a directory");
    let mut manifest: Manifest = fixture::empty().manifest;
    manifest.state = State::Recording;
    manifest.tracer_tgid = u32::MAX;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    manifest.clocks.wall_ns = now.expect("after 1970").as_nanos() as u64;
    manifest.write(dir.path()).expect("written");
    let path = dir.path().join(spool::FILE_NAME);
    let mut writer = spool::Writer::create(&path).expect("created");
    let start_ns = manifest.clocks.mono_ns;
    for event in facts(start_ns).into_iter().chain(requests(start_ns)) {
        writer.push(&event).expect("pushed");
    }
    writer.flush().expect("flushed");
    dir
}

fn count(trace: &Trace, operation: Operation) -> usize {
    let of_it = trace.requests.iter();
    of_it.filter(|row| row.operation == operation).count()
}

#[test]
fn every_value_that_is_recorded_is_read_again_by_every_reader() {
    let dir = recorded();
    let out = TempDir::new().expect("a directory");
    let [page, picture, lake] =
        ["page.html", "trace.pftrace", "lake"].map(|it| out.path().join(it));
    let trace = name(dir.path());
    let readers: [&[&str]; 10] = [
        &["report", trace],
        &["report", trace, "--full"],
        &["report", trace, "--json"],
        &["report", trace, "--events"],
        &["report", trace, "--format", "csv"],
        &["report", trace, "--format", "blkparse"],
        &["report", trace, "--format", "most"],
        &[
            "report",
            trace,
            "--format",
            "perfetto",
            "-o",
            name(&picture),
        ],
        &["report", trace, "--html", name(&page)],
        &["fleet", "add", trace, name(&lake)],
    ];
    for arguments in readers {
        let output = crate::iostep().args(arguments).output().expect("it runs");
        let told = said(&output);
        // Whoever reads it says that its recorder was killed, and fails by that.
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 1)),
            "{arguments:?}: {code:?} {told}"
        );
        for word in ["panicked", "damaged", "past any device", "cannot"] {
            assert!(!told.contains(word), "{arguments:?}: {told}");
        }
    }
    let trace = store::read(dir.path()).expect("a whole trace");
    for operation in Operation::ALL {
        assert_eq!(
            count(&trace, operation),
            SECTORS.len() * BYTES.len(),
            "{operation:?}"
        );
    }
    assert_eq!(trace.syncs.len(), NUMBERS.len() * SyncKind::ALL.len());
    let passthrough = trace
        .requests
        .iter()
        .filter(|row| row.operation.is_passthrough());
    for row in passthrough {
        assert_eq!((row.sector, row.segments), (0, 0), "{row:?}");
        assert!(
            row.submitter.is_some() && row.complete_ns.is_some(),
            "{row:?}"
        );
    }
}

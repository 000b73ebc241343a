//! A trace of system calls, planned and performed, whatever it says.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iostep_load::replay::plan::Plan;
use iostep_load::replay::{Stage, Watch};
use iostep_model::replay::{Settings, Threads, Timing};
use iostep_model::syscall::{InitialKind, Operation, Recording, text};

/// What a file may hold and a call may move here: larger sizes are only a matter of time and space.
const MOST_BYTES: u64 = 1 << 20;
/// A lock that nobody gives back is waited for, for longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads the bytes as a trace. If it can be read, it is replayed in a directory, and a file beside
/// that must be as it was.
pub fn run(bytes: &[u8]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (trace, victim) = (place.path().join("trace"), place.path().join("victim"));
    let parent = place.path().join("parent");
    std::fs::create_dir(&parent).expect("a directory");
    std::fs::write(&victim, "precious").expect("a file");
    let mut file = std::fs::File::create(&trace).expect("a file");
    file.write_all(bytes).expect("room for a file");
    let Ok(recording) = text::read(&trace) else {
        return;
    };
    for threads in [Threads::Original, Threads::Merge] {
        let plan = Plan::new(&recording, threads);
        if is_small(&recording) {
            perform(&recording, &plan, threads, &parent);
        }
    }
    assert_eq!(std::fs::read(&victim).expect("the victim"), b"precious");
    let beside = std::fs::read_dir(place.path()).expect("the directory");
    assert_eq!(beside.count(), 3, "something was made outside");
}

fn is_small(recording: &Recording) -> bool {
    let files = recording.initial.iter().all(|file| match file.kind {
        InitialKind::File { size, .. } => size <= MOST_BYTES,
        _ => true,
    });
    let calls = recording.calls.iter().all(|call| match call.operation {
        Operation::Transfer { size, .. } | Operation::Copy { size, .. } => size <= MOST_BYTES,
        Operation::Allocate { .. } => false,
        _ => true,
    });
    files && calls
}

fn perform(recording: &Recording, plan: &Plan, threads: Threads, parent: &Path) {
    let watch = Watch::default();
    let Ok(stage) = Stage::set(recording, parent, None, false, &watch) else {
        return;
    };
    let settings = Settings {
        timing: Timing::Fast,
        speed: 1.0,
        threads,
    };
    let replay = std::thread::scope(|scope| {
        let (over, ended) = std::sync::mpsc::channel::<()>();
        let interrupted = &watch.interrupted;
        scope.spawn(move || {
            let _ = ended.recv_timeout(PATIENCE);
            interrupted.store(true, Ordering::Relaxed);
        });
        let replay = stage.perform(recording, plan, settings, &watch);
        drop(over);
        replay
    });
    if let Ok(replay) = replay {
        assert_eq!(replay.calls.len(), recording.calls.len());
        assert_eq!(replay.order_violations, 0);
    }
}

use super::*;
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::syscall::text::Reader;
use std::path::Path;

const HEAD: &str = "# iostep system calls 1
@thread t1 p1 tid=1 name=\"app\"
@thread t2 p1 tid=2 name=\"app\"
0 1 t1 openat path=\"/d/app.db\" flags=O_RDWR|O_CREAT mode=0644 = h1
1 1 t1 openat path=\"/d/app.db-journal\" flags=O_RDWR|O_CREAT mode=0644 = h2
2 1 t1 openat path=\"/d/app.db-wal\" flags=O_RDWR|O_CREAT mode=0644 = h3
3 1 t1 openat path=\"/d/app.db-shm\" flags=O_RDWR|O_CREAT mode=0644 = h4
";

/// What a recording of these calls says; their times are added.
fn habit(calls: &str, name: Option<&[u8]>) -> Option<Habit> {
    let mut text = HEAD.to_owned();
    let mut count = 4;
    for line in calls.lines().map(str::trim).filter(|line| !line.is_empty()) {
        count += 1;
        text.push_str(&format!("{} 1 {line}\n", 10 * count));
    }
    text.push_str(&format!("@end calls={count}\n"));
    let input = Box::new(std::io::Cursor::new(text.into_bytes()));
    let mut reader = Reader::new(Path::new("test"), input).expect("a recording");
    let mut habits = Habits::default();
    while let Some(call) = reader.next_call().expect("a call") {
        habits.call(&call, reader.paths());
    }
    habits.finish(name)
}

/// Two pages behind a journal that is synced so often before; `end` ends the transaction.
fn journaled(syncs: usize, end: &str) -> String {
    let sync = "t1 fdatasync h2 = 0\n".repeat(syncs);
    format!(
        "t1 pwrite64 h2 size=512 offset=0 = 512
         t1 pwrite64 h2 size=4096 offset=516 = 4096
         {sync}
         t1 pwrite64 h1 size=4096 offset=0 = 4096
         t1 pwrite64 h1 size=4096 offset=8192 = 4096
         t1 pwrite64 h1 size=4096 offset=8192 = 4096
         t1 fdatasync h1 = 0
         {end}"
    )
}

/// A frame in the log by a thread, at this place of its file.
fn frame(thread: u32, place: u64) -> String {
    let offset = 32 + place * 4120;
    let page = offset + 24;
    format!(
        "t{thread} pwrite64 h3 size=24 offset={offset} = 24
         t{thread} pwrite64 h3 size=4096 offset={page} = 4096\n"
    )
}

const LOCK: &str = "t1 fcntl h4 lock=1 of=process offset=120 size=1 = 0\n";
const UNLOCK: &str = "t1 fcntl h4 lock=2 of=process offset=120 size=1 = 0\n";

#[test]
fn the_end_of_a_journal_tells_its_mode() {
    for (end, expected) in [
        ("t1 unlink path=\"/d/app.db-journal\" = 0", Journal::Delete),
        ("t1 ftruncate h2 size=0 = 0", Journal::Truncate),
        ("t1 pwrite64 h2 size=28 offset=0 = 28", Journal::Persist),
    ] {
        let found = habit(&journaled(2, end), None).expect("a transaction");
        assert_eq!(found.journal, Some(expected));
        assert_eq!((found.transactions, found.threads), (1, 1));
        assert_eq!(found.pages_per_transaction, Some(2));
        assert_eq!(found.synchronous, Some(Synchronous::Full));
        assert_eq!(found.syncs_per_transaction, 3.0);
    }
}

#[test]
fn syncs_of_the_journal_tell_the_setting() {
    let end = "t1 pwrite64 h2 size=28 offset=0 = 28
        t1 fdatasync h2 = 0";
    let of = |syncs| {
        // The sync after the zeros is no sync before the next transaction's pages.
        let twice = [journaled(syncs, end), journaled(syncs, end)].join("\n");
        habit(&twice, None).and_then(|habit| habit.synchronous)
    };
    assert_eq!(of(1), Some(Synchronous::Normal));
    assert_eq!(of(2), Some(Synchronous::Full));
}

#[test]
fn unlocks_end_the_transactions_of_a_log() {
    let mut calls = String::new();
    for number in 0..3 {
        calls.push_str(LOCK);
        calls.push_str(&frame(1 + number % 2, 2 * u64::from(number)));
        calls.push_str(&frame(1 + number % 2, 2 * u64::from(number) + 1));
        calls.push_str(UNLOCK);
    }
    let found = habit(&calls, None).expect("transactions");
    assert_eq!(found.journal, Some(Journal::Wal));
    assert_eq!((found.transactions, found.threads), (3, 2));
    assert_eq!(found.pages_per_transaction, Some(2));
    assert_eq!(found.synchronous, Some(Synchronous::Off));
    let synced = calls.replace(UNLOCK, &format!("t1 fdatasync h3 = 0\n{}", UNLOCK));
    let found = habit(&synced, None).expect("transactions");
    assert_eq!(found.synchronous, Some(Synchronous::Full));
    assert_eq!(found.transactions, 3);
}

#[test]
fn without_locks_syncs_end_them() {
    let calls = [
        &frame(1, 0),
        "t1 fdatasync h3 = 0\n",
        &frame(1, 1),
        "t1 fdatasync h3 = 0",
    ];
    let found = habit(&calls.concat(), None).expect("transactions");
    assert_eq!(
        (found.transactions, found.pages_per_transaction),
        (2, Some(1))
    );
}

#[test]
fn a_database_is_chosen_by_its_name_or_its_transactions() {
    let end = "t1 unlink path=\"/d/app.db-journal\" = 0";
    let calls = journaled(2, end);
    assert!(habit(&calls, Some(b"app.db")).is_some());
    assert!(habit(&calls, Some(b"other.db")).is_none());
    let nothing = "t1 pwrite64 h1 size=4096 offset=0 = 4096";
    assert_eq!(habit(nothing, None), None);
}

#[test]
fn positions_are_followed_where_calls_have_none() {
    let calls = journaled(2, "t1 unlink path=\"/d/app.db-journal\" = 0")
        .replace(
            "t1 pwrite64 h1 size=4096 offset=0 ",
            "t1 write h1 size=4096 ",
        )
        .replacen(
            "t1 pwrite64 h1 size=4096 offset=8192 ",
            "t1 lseek h1 offset=8192 whence=set = 8192\nt1 write h1 size=4096 ",
            1,
        );
    let found = habit(&calls, None).expect("a transaction");
    assert_eq!(found.pages_per_transaction, Some(2));
}

//! Explanations of traces made by hand: one insert under WAL and DELETE, and somebody else's I/O.

use iostep_model::class::{Class, Evidence, FileType};
use iostep_model::durability::Durability;
use iostep_model::identity::FileKey;
use iostep_model::manifest::Filesystem;
use iostep_model::operation::{Flags, Operation};
use iostep_model::pragma::Synchronous;
use iostep_model::sync::SyncKind;
use iostep_model::table::{File, MarkerRow, Phase, ProcessRow, Request, Segment, Sync, Trace};
use iostep_report::document::Detail;
use iostep_report::quantity::bytes;
use iostep_report::text::Style;

use super::*;
use crate::report;
use crate::stats::Summary;

fn shown(explanation: &Explanation) -> String {
    report::explain::document(explanation).text(Detail::Full, Style::default())
}

const DATABASE: u32 = 0;
const JOURNAL: u32 = 1;
const WAL: u32 = 2;
const PHOTO: u32 = 3;
const SQL: u32 = 0;
const JBD2: u32 = 1;
const CAMERA: u32 = 2;
const SQL_TGID: u32 = 100;
const ZERO_NS: u64 = 1_000_000_000;

/// A trace that grows by one event every microsecond.
struct Recorder {
    trace: Trace,
    now_ns: u64,
}

/// A piece of a write: its class, of which file or home, and its bytes.
type Piece = (Class, Option<u32>, Option<Class>, u32);

impl Recorder {
    fn new() -> Recorder {
        let mut trace = iostep_model::fixture::empty();
        trace.manifest.filesystem = Some(Filesystem {
            kind: "ext4".into(),
            mount_point: "/data".into(),
            block_bytes: 4096,
            ..Filesystem::default()
        });
        trace.markers.clear();
        trace.files = vec![
            file("/app/app.db", FileType::SqliteDatabase),
            file("/app/app.db-journal", FileType::SqliteJournal),
            file("/app/app.db-wal", FileType::SqliteWal),
            file("/photo.jpg", FileType::Multimedia),
        ];
        trace.processes = vec![
            process(SQL_TGID, false),
            process(7, true),
            process(300, false),
        ];
        Recorder {
            trace,
            now_ns: ZERO_NS,
        }
    }

    fn tick(&mut self) -> u64 {
        self.now_ns += 1_000;
        self.now_ns
    }

    fn mark(&mut self, step: &Step, edge: Edge) {
        let mono_ns = self.tick();
        self.trace.markers.push(MarkerRow {
            mono_ns,
            marker: step.marker(edge),
        });
    }

    fn step(&mut self, mode: &str, subject: Subject, during: impl FnOnce(&mut Recorder)) {
        let step = Step {
            mode: mode.into(),
            subject,
        };
        self.mark(&step, Edge::Start);
        during(self);
        self.mark(&step, Edge::End);
        self.mark(&step, Edge::Settled);
    }

    /// A fdatasync by the SQL process, with what it causes.
    fn sync(&mut self, file: u32, during: impl FnOnce(&mut Recorder, u32)) {
        let index = self.trace.syncs.len();
        let enter_ns = self.tick();
        self.trace.syncs.push(Sync {
            enter_ns,
            exit_ns: None,
            kind: SyncKind::Fdatasync,
            process: Some(SQL),
            file: Some(file),
            result: Some(0),
            commit: None,
            volume: None,
        });
        during(self, index as u32);
        self.trace.syncs[index].exit_ns = Some(self.tick());
    }

    fn write(&mut self, submitter: u32, flags: Flags, cause: Option<u32>, pieces: &[Piece]) {
        let queue_ns = self.tick();
        let request = self.trace.requests.len() as u32;
        let first_segment = self.trace.segments.len() as u32;
        for &(class, file, home_class, bytes) in pieces {
            self.trace.segments.push(Segment {
                request,
                file,
                cause,
                home_class,
                ..Segment::of(bytes, class, Evidence::PageCache)
            });
        }
        let operation = if pieces.is_empty() {
            Operation::Flush
        } else {
            Operation::Write
        };
        self.trace.requests.push(Request {
            queue_ns,
            issue_ns: queue_ns,
            complete_ns: Some(queue_ns + 500),
            sector: 0,
            bytes: pieces.iter().map(|piece| piece.3).sum(),
            operation,
            flags,
            status: 0,
            bios: 1,
            submitter: Some(submitter),
            sync: None,
            first_segment,
            segments: pieces.len() as u16,
            phase: Phase::Run,
            by_tracer: false,
            device: 0,
        });
    }

    fn data(&mut self, file: u32, bytes: u32, sync: u32) {
        let piece = (Class::FileData, Some(file), None, bytes);
        self.write(SQL, Flags::SYNC, Some(sync), &[piece]);
    }

    /// A commit of jbd2: descriptor, copies, flush, commit block.
    fn commit(&mut self, sync: u32, homes: &[Class]) {
        let mut pieces = vec![(Class::LogDescriptor, None, None, 4096)];
        let copies = homes
            .iter()
            .map(|home| (Class::LoggedBlock, None, Some(*home), 4096));
        pieces.extend(copies);
        self.write(JBD2, Flags::SYNC, Some(sync), &pieces);
        self.write(JBD2, Flags::PREFLUSH, None, &[]);
        let fua = Flags::SYNC.with(Flags::FUA);
        self.write(
            JBD2,
            fua,
            Some(sync),
            &[(Class::LogCommit, None, None, 4096)],
        );
    }
}

fn file(path: &str, file_type: FileType) -> File {
    File {
        key: FileKey::plain(path.len() as u64, 0),
        path: Some(path.into()),
        mode: 0o100_644,
        file_type,
        birth_wall_ns: None,
        deleted_ns: None,
        volume: None,
        first_path: None,
    }
}

fn process(tgid: u32, kernel: bool) -> ProcessRow {
    ProcessRow {
        mono_ns: 0,
        pid: tgid,
        tgid,
        parent_tgid: 1,
        comm: "p".into(),
        kernel,
        command_line: None,
        cgroup_id: None,
        cgroup: None,
    }
}

fn wal_insert(recorder: &mut Recorder) {
    recorder.sync(WAL, |recorder, sync| {
        recorder.data(WAL, 8192, sync);
        recorder.commit(sync, &[Class::InodeTable]);
    });
}

fn delete_insert(recorder: &mut Recorder) {
    recorder.sync(JOURNAL, |recorder, sync| {
        recorder.data(JOURNAL, 12288, sync);
        recorder.commit(
            sync,
            &[Class::InodeTable, Class::Directory, Class::BlockBitmap],
        );
    });
    // Somebody else's photo, in the middle of it.
    let photo = (Class::FileData, Some(PHOTO), None, 1 << 20);
    recorder.write(CAMERA, Flags::default(), None, &[photo]);
    recorder.sync(DATABASE, |recorder, sync| {
        recorder.data(DATABASE, 8192, sync);
        recorder.commit(sync, &[Class::InodeTable]);
    });
}

fn checkpoint(recorder: &mut Recorder) {
    recorder.sync(DATABASE, |recorder, sync| {
        recorder.data(DATABASE, 4096, sync)
    });
}

fn run(mode: &str, transactions: usize) -> Run {
    run_with(mode, transactions, Synchronous::Full)
}

fn run_with(mode: &str, transactions: usize, synchronous: Synchronous) -> Run {
    let asked = Asked {
        statements: vec!["INSERT INTO t VALUES (zeroblob(100))".into()],
        outcome: "committed".into(),
        rows: 1,
        user_bytes: Some(100),
        elapsed_ns: 5_000_000,
    };
    Run {
        mode: mode.into(),
        synchronous: synchronous.name().into(),
        durability: Durability::of(mode.parse().expect("a mode"), synchronous, None),
        transactions: vec![asked; transactions],
    }
}

fn explained(runs: Vec<Run>) -> Explanation {
    recorded(runs).1
}

fn recorded(runs: Vec<Run>) -> (Trace, Explanation) {
    let mut recorder = Recorder::new();
    for run in &runs {
        for number in 1..=run.transactions.len() {
            recorder.step(
                &run.mode,
                Subject::Transaction(number),
                |recorder| match run.mode.as_str() {
                    "wal" => wal_insert(recorder),
                    "delete" => delete_insert(recorder),
                    _ => checkpoint(recorder),
                },
            );
        }
        recorder.step(&run.mode, Subject::Close, |recorder| {
            if run.mode == "wal" {
                checkpoint(recorder);
            }
        });
    }
    let experiment = Experiment {
        database: "app.db".into(),
        sql_tgid: SQL_TGID,
        own_mode: "delete".into(),
        cold_cache: false,
        runs,
        not_run: Vec::new(),
    };
    let explanation = explain(&recorder.trace, &experiment).expect("every milestone is there");
    (recorder.trace, explanation)
}

#[test]
fn the_page_has_what_the_modes_cost_above_the_recording() {
    let (trace, explanation) = recorded(vec![run("delete", 2), run("wal", 1)]);
    let summary = Summary::of(&trace);
    let page = report::explain::page(&explanation, &trace, &summary);
    report::page::well_formed(&page);
    let (above, below) = page.split_once("<canvas").expect("the recording's picture");
    for row in &explanation.comparison {
        assert!(above.contains(&format!(">{}</td>", bytes(row.total_bytes))));
        let folded = format!("<summary>journal mode {}, synchronous full", row.mode);
        assert!(above.to_lowercase().contains(&folded), "{folded}");
    }
    assert!(above.contains("transaction 2 (committed)"));
    assert!(below.contains("Latency"));
}

fn bytes_of(cost: &Cost, part: Part) -> u64 {
    let row = cost.parts.iter().find(|row| row.part == part);
    row.map_or(0, |row| row.bytes)
}

#[test]
fn a_wal_insert_of_the_paper_is_counted_as_the_paper_does() {
    let explanation = explained(vec![run("wal", 1)]);
    let transaction = &explanation.runs[0].transactions[0];
    assert_eq!(transaction.cost.data_bytes, 8192);
    assert_eq!(transaction.cost.journal_bytes, 12288);
    assert_eq!(transaction.cost.joj_bytes, 12288);
    assert_eq!(transaction.cost.bytes, 20480);
    assert_eq!(transaction.cost.writes, 3);
    assert_eq!(transaction.cost.flushes, 1);
    assert_eq!(transaction.cost.fua_writes, 1);
    assert_eq!(transaction.amplification, Some(204.8));
    assert_eq!(transaction.joj_share, Some(0.6));
    assert_eq!(explanation.runs[0].close.bytes, 4096);
    let paper = explanation.comparison[0]
        .paper
        .expect("it is the paper's experiment");
    assert_eq!(paper.total_kb, 28);
}

#[test]
fn bytes_that_sqlite_does_not_tell_give_no_amplification() {
    let mut unknown = run("wal", 1);
    unknown.transactions[0].user_bytes = None;
    let explanation = explained(vec![unknown]);
    let json = serde_json::to_value(&explanation).expect("JSON");
    let transaction = &json["runs"][0]["transactions"][0];
    assert!(transaction["amplification"].is_null());
    assert!(transaction["asked"]["user_bytes"].is_null());
    assert_eq!(explanation.comparison[0].paper, None);
    let text = shown(&explanation);
    assert!(
        text.contains("asked: 1 row, bytes that SQLite does not tell;"),
        "{text}"
    );
    assert!(
        text.contains("\n JOJ 60 % of the bytes written\n"),
        "{text}"
    );
}

#[test]
fn only_syncs_of_the_sqlite_journal_make_joj_and_others_io_is_background() {
    let explanation = explained(vec![run("delete", 1)]);
    let cost = &explanation.runs[0].transactions[0].cost;
    assert_eq!(
        bytes_of(cost, Part::Log(Some(Owner::RollbackJournal))),
        20480
    );
    assert_eq!(bytes_of(cost, Part::Log(Some(Owner::Database))), 12288);
    assert_eq!(cost.joj_bytes, 20480);
    assert_eq!(cost.data_bytes, 20480);
    assert_eq!(cost.background_bytes, 1 << 20);
    let parts: u64 = cost.parts.iter().map(|row| row.bytes).sum();
    assert_eq!(parts, cost.bytes);
    assert_eq!(cost.data_bytes + cost.journal_bytes, cost.bytes);
}

#[test]
fn the_time_line_tells_each_sync_with_what_it_caused() {
    let explanation = explained(vec![run("delete", 1)]);
    let lines = &explanation.runs[0].transactions[0].timeline;
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "fdatasync(app.db-journal): 12 KiB to app.db-journal, then ext4 journals 16 KiB \
             (descriptor, inode table, directory, block bitmap), then a flush, then ext4 journals \
             4 KiB (commit, with FUA)",
            "fdatasync(app.db): 8 KiB to app.db, then ext4 journals 8 KiB (descriptor, inode table), \
             then a flush, then ext4 journals 4 KiB (commit, with FUA)",
        ]
    );
    assert!(lines[0].at_ns < lines[1].at_ns);
}

#[test]
fn advice_is_the_cheapest_mode_that_is_as_durable() {
    let advice = explained(vec![run("delete", 1), run("wal", 1)]).advice;
    assert_eq!(
        advice,
        "wal instead of delete writes 20 KiB instead of 52 KiB (62 % less) and flushes 1 instead of \
         2 times, and loses less when the power fails (at worst nothing instead of: the last \
         commit); its checkpoint at the close wrote 4 KiB more"
    );
    let normal = run_with("wal", 1, Synchronous::Normal);
    let advice = explained(vec![run("delete", 1), normal]).advice;
    assert!(!advice.contains("wal instead"), "{advice}");
}

#[test]
fn the_same_durability_is_said_only_where_it_is_the_same() {
    for (synchronous, words) in [
        (Synchronous::Extra, ", with the same durability;"),
        (
            Synchronous::Normal,
            ", and loses less when the power fails (at worst the commits since the last checkpoint \
             instead of: the database may be damaged);",
        ),
        (
            Synchronous::Off,
            ", with the same durability (at worst, when the power fails: the database may be \
             damaged);",
        ),
    ] {
        let runs = ["delete", "wal"].map(|mode| run_with(mode, 1, synchronous));
        let advice = explained(runs.to_vec()).advice;
        assert!(advice.contains(words), "{synchronous}: {advice}");
    }
}

#[test]
fn a_mode_that_cannot_be_used_is_a_marked_row_and_reads_are_a_column() {
    let mut explanation = explained(vec![run("delete", 1)]);
    let text = shown(&explanation);
    assert!(!text.contains("Written under each"), "{text}");
    explanation.not_run.push(NotRun {
        mode: "waldio".into(),
        reason: "btrfs copies on write".into(),
    });
    let text = shown(&explanation);
    assert!(
        text.contains("\n waldio not here: btrfs copies on write\n"),
        "{text}"
    );
    assert!(!text.contains("  read"), "{text}");
    explanation.comparison[0].read_bytes = 12288;
    let text = shown(&explanation);
    assert!(text.contains("  close    read  paper, KB\n"), "{text}");
    assert!(text.contains("    0 B  12 KiB  24 / 56"), "{text}");
}

#[test]
fn a_read_is_part_of_the_cost_and_none_says_that_the_cache_was_warm() {
    let select = |cold_cache, bytes| {
        let mut recorder = Recorder::new();
        recorder.step("delete", Subject::Transaction(1), |recorder| {
            if bytes > 0 {
                let piece = (Class::FileData, Some(DATABASE), None, bytes);
                recorder.write(SQL, Flags::default(), None, &[piece]);
                let last = recorder.trace.requests.last_mut().expect("it is there");
                last.operation = Operation::Read;
            }
        });
        recorder.step("delete", Subject::Close, |_| {});
        let experiment = Experiment {
            database: "app.db".into(),
            sql_tgid: SQL_TGID,
            own_mode: "delete".into(),
            cold_cache,
            runs: vec![run("delete", 1)],
            not_run: Vec::new(),
        };
        explain(&recorder.trace, &experiment).expect("every milestone is there")
    };
    let cold = select(true, 8192);
    let cost = &cold.runs[0].transactions[0].cost;
    assert_eq!((cost.reads, cost.read_bytes, cost.bytes), (1, 8192, 0));
    let text = shown(&cold);
    assert!(text.contains("; 8 KiB read in 1 read\n"), "{text}");
    assert!(!text.contains("--cold-cache"), "{text}");
    let text = shown(&select(false, 0));
    assert!(
        text.contains("no I/O: what it read was in memory"),
        "{text}"
    );
}

#[test]
fn advice_for_one_mode_comes_from_its_own_numbers() {
    let advice = explained(vec![run("delete", 1)]).advice;
    assert!(
        advice.starts_with("20 KiB of 52 KiB (38 %) are ext4 journaling"),
        "{advice}"
    );
    let advice = explained(vec![run("delete", 3)]).advice;
    assert!(
        advice.contains("up to 4 sync calls and 4 flushes (104 KiB) would be saved"),
        "{advice}"
    );
}

#[test]
fn a_trace_without_the_milestones_is_refused_by_name() {
    let experiment = Experiment {
        database: "app.db".into(),
        sql_tgid: SQL_TGID,
        own_mode: "wal".into(),
        cold_cache: false,
        runs: vec![run("wal", 1)],
        not_run: Vec::new(),
    };
    let error = explain(&Recorder::new().trace, &experiment).expect_err("nothing is there");
    assert_eq!(error, MissingStep("wal: transaction 1 starts".into()));
}

#[test]
fn the_text_begins_with_what_makes_it_doubtful_and_ends_with_the_advice() {
    let mut explanation = explained(vec![run("delete", 1), run("wal", 1)]);
    explanation.lost_events = 3;
    let text = shown(&explanation);
    assert!(text.starts_with("lost 3 events"), "{text}");
    let last = text.lines().last().expect("it has lines");
    assert_eq!(last, format!("advice: {}", explanation.advice));
    let row = text.lines().find(|line| line.starts_with("  wal "));
    let words: Vec<&str> = row.expect("the mode").split_whitespace().collect();
    let expected = "wal 8 KiB 12 KiB 12 KiB 20 KiB 3 1 0 B 4 KiB 8 / 20 / 20 / 28";
    assert_eq!(words.join(" "), expected, "{text}");
}

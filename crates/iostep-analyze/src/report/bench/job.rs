//! What was done and where, in words.

use std::path::Path;

use iostep_model::bench::{
    CheckpointPolicy, Document, Environment, FileJob, Files, Job, Measurement, PageCache,
    PayloadKind, Sharing, SqliteJob, SqliteLibrary, SqliteOperation, Sync, Target, WalFile,
    WaldioOptions,
};
use iostep_model::printable;
use iostep_report::quantity::{bytes, count, decimal, duration, plural};

use crate::report::disk;

/// The lines below a result's title: what was done, with which settings, where, on what machine,
/// with which SQLite, which has its settings only if it is `verbose`. Nothing in them can steer a
/// terminal.
pub fn lines(document: &Document, verbose: bool) -> Vec<String> {
    let mut lines = match &document.job {
        Job::File(job) => file(job),
        Job::Sqlite(job) => sqlite(job),
    };
    let environment = &document.environment;
    let target = match &document.job {
        Job::File(job) => match &job.target {
            Target::Directory(path) | Target::BlockDevice(path) => path,
        },
        Job::Sqlite(job) => &job.directory,
    };
    lines.push(place(target, environment));
    lines.extend(disk::health(&environment.disks).map(|health| format!("health of {health}")));
    lines.push(machine(environment));
    if let Some(library) = &environment.sqlite {
        lines.push(sqlite_library(library, verbose));
    }
    lines
        .iter()
        .map(|line| printable(line).into_owned())
        .collect()
}

fn file(job: &FileJob) -> Vec<String> {
    let threads = plural(u64::from(job.threads), "thread");
    let on = match (job.sharing, &job.target) {
        (_, Target::BlockDevice(_)) => format!("{} of the device", bytes(job.file_bytes)),
        (Sharing::SharedFile, _) => format!("one file of {}", bytes(job.file_bytes)),
        (Sharing::OwnFile, _) if job.threads == 1 => format!("a file of {}", bytes(job.file_bytes)),
        (Sharing::OwnFile, _) => format!("a file of {} each", bytes(job.file_bytes)),
    };
    let first = format!(
        "{} of {} by {threads} on {on}; {}, {}",
        job.access,
        bytes(job.record_bytes),
        job.transfer,
        sync(job),
    );
    let payload = match job.payload {
        PayloadKind::Incompressible => "incompressible payload".to_owned(),
        PayloadKind::Constant(byte) => format!("payload of bytes {byte:#04x}"),
    };
    let cache = match job.page_cache {
        PageCache::Drop => "page cache dropped before",
        PageCache::Warm => "page cache warmed before",
        PageCache::AsIs => "page cache left as it was",
    };
    let files = match job.files {
        Files::Fresh => "made anew",
        Files::Reuse => "reused",
    };
    let mut settings = vec![
        format!("{}, depth {}", job.engine, job.depth),
        format!("files {}, {files}", job.initial),
        payload,
        cache.to_owned(),
    ];
    if job.overlap_percent > 0.0 {
        settings.push(format!(
            "{} % of offsets overlap",
            decimal(job.overlap_percent)
        ));
    }
    let flags = [(job.atomic, "atomic"), (job.polled, "polled")];
    settings.extend(
        flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, name)| (*name).to_owned()),
    );
    settings.extend(measurement(&job.measurement));
    vec![first, settings.join("; ")]
}

fn sync(job: &FileJob) -> String {
    let each = match (job.sync, job.sync_every) {
        (Sync::None, _) => "no sync".to_owned(),
        (sync, _) if sync.is_of_write() => sync.to_string(),
        (sync, 1) => format!("{sync} after every operation"),
        (sync, every) => format!("{sync} after every {} operations", count(every)),
    };
    match job.end_sync {
        true => format!("{each}, one more sync at the end"),
        false => each,
    }
}

fn sqlite(job: &SqliteJob) -> Vec<String> {
    let operation = match job.operation {
        SqliteOperation::Insert => "insert".to_owned(),
        SqliteOperation::Update => "update".to_owned(),
        SqliteOperation::Delete => "delete".to_owned(),
        SqliteOperation::Read => "read".to_owned(),
        SqliteOperation::Mix(mix) => format!(
            "mix of insert {}, update {}, delete {}, read {}",
            mix.insert, mix.update, mix.delete, mix.read
        ),
    };
    let databases = match job.shared {
        true => "shared databases",
        false => "databases of its own",
    };
    let first = format!(
        "{operation} in SQLite by {}, {databases}; journal {}, synchronous {}",
        plural(u64::from(job.threads), "thread"),
        job.journal,
        job.synchronous,
    );
    let shape = format!(
        "{} on {} of {} in a transaction; {} a row, {} keys, {} before",
        plural(u64::from(job.statements), "statement"),
        plural(u64::from(job.tables), "table"),
        plural(u64::from(job.databases), "database"),
        bytes(u64::from(job.record_bytes)),
        job.keys,
        plural(job.rows, "row"),
    );
    let checkpoint = match job.checkpoint {
        CheckpointPolicy::Pages(pages) => {
            format!("checkpoint from {} on", plural(u64::from(pages), "page"))
        }
        CheckpointPolicy::Never => "no checkpoint before the end".into(),
        CheckpointPolicy::Transactions(number) => {
            format!("checkpoint after every {}", plural(number, "transaction"))
        }
    };
    let mut settings = Vec::new();
    if job.measurement.limits.time_ns.is_none() {
        settings.push(format!(
            "{} of each thread",
            plural(job.transactions, "transaction")
        ));
    }
    if job.journal.is_log() {
        settings.push(format!("{checkpoint}, {}", job.checkpoint_mode));
    }
    if job.wal_file == WalFile::Steady {
        settings.push("on a log as long as it gets".into());
    }
    settings.extend(waldio(&job.waldio));
    if job.batch_atomic {
        settings.push("batch atomic writes in place of the journal".into());
    }
    if job.fsync {
        settings.push("fsync in place of fdatasync".into());
    }
    settings.push(format!("busy timeout {}", duration(job.busy_timeout_ns)));
    settings.extend(measurement(&job.measurement));
    vec![first, shape, settings.join("; ")]
}

/// The options that are not waldio's own choice.
fn waldio(options: &WaldioOptions) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(options.sync.map(|sync| format!("waldio sync {sync}")));
    words.extend(
        options
            .group_frames
            .map(|n| format!("at most {} in a group", plural(u64::from(n), "frame"))),
    );
    words.extend(options.group_ms.map(|ms| format!("at most {ms} ms old")));
    words.extend(options.layout.map(|layout| format!("layout {layout}")));
    let size = |size: u32| bytes(u64::from(size));
    words.extend(
        options
            .padding_bytes
            .map(|padding| format!("frames padded to {}", size(padding))),
    );
    words.extend(
        options
            .prealloc_bytes
            .map(|step| format!("log extended by {} first", size(step))),
    );
    words.extend(
        options
            .library
            .as_ref()
            .map(|path| format!("waldio of {}", path.display())),
    );
    words
}

fn measurement(measurement: &Measurement) -> Vec<String> {
    let Measurement {
        limits, pace, cpus, ..
    } = measurement;
    let mut words = Vec::new();
    words.extend(
        limits
            .time_ns
            .map(|time_ns| format!("for {}", duration(time_ns))),
    );
    if limits.ramp_ns > 0 {
        words.push(format!("after a ramp of {}", duration(limits.ramp_ns)));
    }
    words.extend(
        pace.operations_per_second
            .map(|rate| format!("at most {} a second", decimal(rate))),
    );
    if pace.think_ns > 0 {
        words.push(format!("think time {}", duration(pace.think_ns)));
    }
    if !cpus.is_empty() {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        words.push(format!("on CPUs {}", cpus.join(",")));
    }
    words.push(format!("seed {}", measurement.seed));
    words
}

/// Where it ran: directory or device, filesystem, device, and the disks below.
pub(crate) fn place(target: &Path, environment: &Environment) -> String {
    let mut line = format!("in {}", target.display());
    if let Some(filesystem) = &environment.filesystem {
        line.push_str(&format!(" on {} ({})", filesystem.kind, filesystem.options));
    }
    match &environment.device {
        None => line.push_str(", no device of its own"),
        Some(device) => line.push_str(&format!(", {}", disk::device(device))),
    }
    if let Some(disks) = disk::line(&environment.disks) {
        line.push_str(&format!("; below it {disks}"));
    }
    line
}

pub(crate) fn machine(environment: &Environment) -> String {
    let mut line = format!(
        "Linux {} on {}, {}, {}, {} of memory, clock {}",
        environment.host.kernel,
        environment.host.machine,
        environment.host.processor,
        plural(u64::from(environment.host.cpus), "CPU"),
        bytes(environment.memory_bytes),
        environment.clock_source,
    );
    if let Some(build) = &environment.host.android {
        line.push_str(&format!("; {}", disk::android(build)));
    }
    line
}

fn sqlite_library(library: &SqliteLibrary, verbose: bool) -> String {
    let mut line = format!(
        "SQLite {} ({}), VFS {}",
        library.version,
        library.path.as_deref().unwrap_or("the one inside"),
        library.vfs,
    );
    if verbose {
        let settings: Vec<String> = library
            .settings
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        line.push_str(&format!("; {}", settings.join(", ")));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;
    use iostep_model::bench::WaldioSync;
    use iostep_model::pragma::Journal;

    #[test]
    fn every_setting_that_matters_is_in_words() {
        let mut document = fixture::write_fdatasync(0);
        let Job::File(job) = &mut document.job else {
            panic!("a file job")
        };
        job.sync_every = 32;
        job.end_sync = true;
        job.atomic = true;
        job.overlap_percent = 12.5;
        job.measurement.cpus = vec![0, 1];
        job.payload = PayloadKind::Constant(0xfe);
        job.measurement.limits.time_ns = Some(10_000_000_000);
        job.measurement.limits.ramp_ns = 2_000_000_000;
        job.measurement.pace.operations_per_second = Some(250.0);
        job.measurement.pace.think_ns = 1_500_000;
        insta::assert_snapshot!(lines(&document, true).join("\n"));
    }

    #[test]
    fn what_was_asked_of_waldio_is_in_words_and_its_own_choices_are_not() {
        let mut document = fixture::sqlite_wal(0);
        let Job::Sqlite(job) = &mut document.job else {
            panic!("a SQLite job")
        };
        job.journal = Journal::Waldio;
        job.wal_file = WalFile::Steady;
        job.waldio = WaldioOptions {
            sync: Some(WaldioSync::Group),
            group_frames: Some(9),
            group_ms: Some(7),
            padding_bytes: Some(8192),
            ..WaldioOptions::default()
        };
        let words = lines(&document, true).join("\n");
        let expected = "checkpoint from 1,000 pages on, passive; on a log as long as it gets; \
                        waldio sync group; at most 9 frames in a group; at most 7 ms old; \
                        frames padded to 8 KiB; busy";
        assert!(words.contains(expected), "{words}");
    }

    #[test]
    fn a_path_cannot_steer_the_terminal() {
        let mut document = fixture::sqlite_wal(0);
        let Job::Sqlite(job) = &mut document.job else {
            panic!("a SQLite job")
        };
        job.directory = "/mnt/\u{1b}[2J".into();
        assert!(
            lines(&document, true)
                .iter()
                .all(|line| !line.contains('\u{1b}'))
        );
    }
}

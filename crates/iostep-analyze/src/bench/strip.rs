//! What of a result is about a person or one machine: it is neither sent to a server nor kept by one.
//!
//! A [`Document`] has fields for what is measured only, so names and serial numbers that somebody
//! adds are gone once it is read. What is left are paths, words that may hold one, and options of
//! mounts.

use iostep_model::bench::{Document, Job, Run, Target, Warning};

/// Stands for a path. It is one that leads nowhere, and the same in every result.
const HIDDEN: &str = "hidden";
/// Options of mounts whose values say how a filesystem works.
const OPTIONS: [&str; 29] = [
    "active_logs",
    "alloc_mode",
    "background_compression",
    "background_gc",
    "barrier",
    "checkpoint_merge",
    "commit",
    "compr",
    "compress",
    "compress-force",
    "compress_algorithm",
    "compress_extension",
    "compress_mode",
    "compression",
    "data",
    "discard",
    "discard_unit",
    "errors",
    "fsync_mode",
    "journal_checksum",
    "logbsize",
    "logbufs",
    "memory",
    "mode",
    "space_cache",
    "stripe",
    "sunit",
    "swidth",
    "thread_pool",
];
/// More letters than any word of such options has.
const MOST_LETTERS: usize = 32;

/// Takes out of a document what is neither sent nor kept.
pub fn strip(document: &mut Document) {
    // The job says all that the arguments say, but for names of files.
    document.arguments.clear();
    strip_job(&mut document.job);
    let environment = &mut document.environment;
    if let Some(android) = &mut environment.host.android {
        // A build that somebody made has their name in it.
        let fingerprint = android.fingerprint.take();
        android.fingerprint = fingerprint.filter(|text| is_of_makers(text));
    }
    if let Some(filesystem) = &mut environment.filesystem {
        filesystem.mount_point = HIDDEN.into();
        filesystem.mounts.clear();
        filesystem.layout.clear();
        filesystem.options = options(&filesystem.options);
    }
    if let Some(device) = &mut environment.device {
        hide_unless(&mut device.name, is_kernels_name);
        if let Some(disk) = &mut device.part_of {
            hide_unless(disk, is_kernels_name);
        }
    }
    for disk in &mut environment.flushes_of {
        hide_unless(disk, is_kernels_name);
    }
    for disk in &mut environment.disks {
        hide_unless(&mut disk.name, is_kernels_name);
    }
    if let Some(sqlite) = &mut environment.sqlite {
        hide(&mut sqlite.path);
        sqlite.settings.retain(|(_, value)| !value.contains('/'));
        sqlite
            .compile_options
            .retain(|option| !option.contains('/'));
    }
    document.runs.iter_mut().for_each(strip_run);
    document.warnings.iter_mut().for_each(strip_warning);
}

fn strip_job(job: &mut Job) {
    match job {
        Job::File(job) => match &mut job.target {
            Target::Directory(path) | Target::BlockDevice(path) => *path = HIDDEN.into(),
        },
        Job::Sqlite(job) => {
            job.directory = HIDDEN.into();
            hide(&mut job.library);
            hide(&mut job.waldio.library);
        }
    }
}

fn strip_run(run: &mut Run) {
    if let Some(others) = &mut run.others {
        // What else runs on a machine is nobody's business.
        others.processes.clear();
        for disk in &mut others.flushes_not_counted {
            hide_unless(disk, is_kernels_name);
        }
    }
    for failure in &mut run.failures {
        // The system's and SQLite's words name files.
        failure.attempt.clear();
        failure.reason.clear();
    }
    if let Some(verification) = &mut run.verification {
        verification.examples.clear();
    }
    if let Some(waldio) = &mut run.waldio {
        let texts = waldio.reasons.iter_mut().chain(&mut waldio.layouts);
        texts.for_each(|text| hide_unless(text, |text| !text.contains('/')));
    }
}

fn strip_warning(warning: &mut Warning) {
    match warning {
        Warning::Unreadable { paths } => paths.clear(),
        Warning::FilesystemNearlyFull { mount_point, .. } => *mount_point = HIDDEN.into(),
        Warning::LoopDevice {
            device,
            backing_file,
        } => {
            hide_unless(device, is_kernels_name);
            *backing_file = HIDDEN.into();
        }
        Warning::Compression { by: text }
        | Warning::InMemory { filesystem: text }
        | Warning::NotSteady { reason: text, .. }
        | Warning::StockLog { reason: text }
        | Warning::CpuGovernor { governor: text, .. } => {
            hide_unless(text, |text| !text.contains('/'));
        }
        Warning::BusyDevice { processes, .. } => processes.clear(),
        Warning::OnBattery
        | Warning::StayedInMemory { .. }
        | Warning::WithoutCheckpoint
        | Warning::BatterySaver
        | Warning::Hot { .. }
        | Warning::CallsRefused { .. }
        | Warning::Swapping { .. }
        | Warning::BusyMachine { .. }
        | Warning::Steal { .. }
        | Warning::MoreThreadsThanCpus { .. }
        | Warning::FitsInPageCache { .. }
        | Warning::TooShort { .. }
        | Warning::RateNotReached { .. }
        | Warning::SpreadTooWide { .. } => {}
    }
}

fn hide<T: From<&'static str>>(path: &mut Option<T>) {
    if let Some(path) = path {
        *path = HIDDEN.into();
    }
}

fn hide_unless(text: &mut String, is_kept: impl Fn(&str) -> bool) {
    if !is_kept(text) {
        *text = HIDDEN.into();
    }
}

/// `nvme0n1p2`, `dm-3`; not what people call it.
fn is_kernels_name(name: &str) -> bool {
    let is_kernels = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MOST_LETTERS).contains(&name.len()) && name.bytes().all(is_kernels)
}

/// `acme/ph8/ph8:14/AP1A.240405/1:user/release-keys`, and no `userdebug`, nor the build of an engineer.
fn is_of_makers(fingerprint: &str) -> bool {
    fingerprint.contains(":user/") && !fingerprint.contains("eng.")
}

/// Words, and values of options that are known to hold neither path, user nor label.
fn options(text: &str) -> String {
    let is_word = |text: &str| {
        let letters =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.');
        // All extensions, as f2fs has it.
        text == "*" || (1..=MOST_LETTERS).contains(&text.len()) && text.bytes().all(letters)
    };
    let is_kept = |option: &&str| match option.split_once('=') {
        None => is_word(option),
        Some((name, value)) => OPTIONS.contains(&name) && is_word(value),
    };
    let kept: Vec<&str> = text.split(',').filter(is_kept).collect();
    kept.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::bench::{Failure, Verification, WaldioRun};
    use iostep_model::host::Android;
    use iostep_model::manifest::MountPlace;

    use iostep_model::disk::Disk;

    use crate::bench::fixture;

    /// A document that has the same word wherever somebody's name could be.
    fn of_alice() -> Document {
        let word = "/data/alice/x y".to_owned();
        let mut document = fixture::sqlite_wal(1);
        document.arguments = vec!["bench".into(), word.clone()];
        let Job::Sqlite(job) = &mut document.job else {
            panic!("a job of SQLite")
        };
        job.directory = word.clone().into();
        job.library = Some(word.clone().into());
        job.waldio.library = Some(word.clone().into());
        let environment = &mut document.environment;
        environment.host.android = Some(Android {
            model: Some("Phone 8".into()),
            fingerprint: Some("a/b/c:14/X/eng.alice.20260101:userdebug/test-keys".into()),
            ..Android::default()
        });
        let filesystem = environment.filesystem.as_mut().expect("a filesystem");
        filesystem.mount_point = word.clone();
        filesystem.mounts = vec![MountPlace {
            root: "/@alice".into(),
            point: word.clone(),
        }];
        filesystem.options =
            "rw,relatime,data=ordered,subvol=/@alice,uid=alice,commit=/alice,alice x".into();
        environment.device.as_mut().expect("a device").name = "mapper/alice".into();
        environment.disks = vec![Disk {
            name: "by-id/alice".into(),
            ..Disk::default()
        }];
        let sqlite = environment.sqlite.as_mut().expect("SQLite");
        sqlite.path = Some(word.clone());
        sqlite
            .settings
            .push(("temp_store_directory".into(), word.clone()));
        sqlite.compile_options.push("TEMP=/data/alice".into());
        let run = &mut document.runs[0];
        run.failures = vec![Failure {
            thread: 0,
            operation: 1,
            attempt: format!("COMMIT in {word}"),
            reason: word.clone(),
        }];
        run.verification = Some(Verification {
            examples: vec![word.clone()],
            ..Verification::default()
        });
        run.waldio = Some(WaldioRun {
            reasons: vec![word.clone()],
            ..WaldioRun::default()
        });
        document.warnings = vec![
            Warning::Unreadable {
                paths: vec![word.clone().into()],
            },
            Warning::FilesystemNearlyFull {
                mount_point: word.clone().into(),
                used: 0.9,
            },
            Warning::LoopDevice {
                device: "loop1".into(),
                backing_file: word.clone().into(),
            },
            Warning::StockLog { reason: word },
        ];
        document
    }

    #[test]
    fn no_word_of_a_person_is_left_and_what_is_measured_stays() {
        let mut document = of_alice();
        let runs = document.runs[0].clone();
        strip(&mut document);
        let text = serde_json::to_string(&document).expect("JSON");
        assert!(!text.contains("alice"), "{text}");
        assert!(!text.contains("x y"), "{text}");
        assert_eq!(document.runs[0].latencies, runs.latencies);
        assert_eq!(document.runs[0].seconds, runs.seconds);
        let filesystem = document.environment.filesystem.expect("a filesystem");
        assert_eq!(filesystem.options, "rw,relatime,data=ordered");
        assert_eq!(filesystem.mount_point, HIDDEN);
        let android = document.environment.host.android.expect("Android");
        assert_eq!(android.model.as_deref(), Some("Phone 8"));
        assert_eq!(android.fingerprint, None);
        assert_eq!(document.warnings.len(), 4);
    }

    #[test]
    fn what_was_taken_out_once_is_not_found_again() {
        let mut once = of_alice();
        strip(&mut once);
        let mut twice = once.clone();
        strip(&mut twice);
        assert_eq!(once, twice);
    }
}

//! Journaling of journal: what each file's syncs cost in the filesystem's own log.

use iostep_model::class::{Class, FileType};
use iostep_model::table::Trace;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::amount::ratio;
use super::syncs::{Caused, SyncRow};

/// The table of ATC'15 (table 1), for the files of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Joj {
    /// Files with data written or with sync calls, the most journal bytes first.
    pub files: Vec<JojRow>,
    /// File data written.
    pub data_bytes: u64,
    /// Written to the filesystem's log, whatever the cause.
    pub journal_bytes: u64,
    /// Of `journal_bytes`: caused by syncs of a database's own log. Journaling of journal.
    pub joj_bytes: u64,
    /// Of `journal_bytes`: caused by no sync call on a file that is known.
    pub uncaused_journal_bytes: u64,
    /// Other metadata written, whatever the cause.
    pub metadata_bytes: u64,
    /// `joj_bytes / (data_bytes + journal_bytes)`: of what ATC'15 calls the total.
    pub joj_share: Option<f64>,
}

/// What one file's data cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JojRow {
    /// Row in `files.parquet`.
    pub file: u32,
    /// Path below the filesystem's root, or `inode N`.
    pub path: String,
    /// The path as users have it, below the mount point.
    pub user_path: String,
    /// Its first path below the filesystem's root, if it has another name now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_path: Option<String>,
    /// The same as users have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_first_path: Option<String>,
    pub file_type: FileType,
    /// Files that the row is about: 1, but in [`Joj::by_path`].
    pub files: u64,
    /// Sync calls on it.
    pub syncs: u64,
    /// Its data that was written.
    pub data_bytes: u64,
    /// Written to the filesystem's log because of its syncs.
    pub journal_bytes: u64,
    /// Other metadata written because of its syncs.
    pub metadata_bytes: u64,
    /// `(data + journal + metadata) / data`; nothing without data.
    pub amplification: Option<f64>,
}

impl Joj {
    /// Computes the table; `calls` are the trace's sync calls with what they caused.
    pub fn of(trace: &Trace, calls: &[SyncRow]) -> Joj {
        let mut joj = Joj::default();
        let mut rows = FxHashMap::<u32, JojRow>::default();
        joj.add_data(trace, &mut rows);
        let mut caused_bytes = 0;
        for call in calls {
            let Some(file) = call.file else { continue };
            let row = rows.entry(file).or_insert_with(|| JojRow::new(trace, file));
            row.syncs += 1;
            row.journal_bytes += call.caused.journal_bytes;
            row.metadata_bytes += call.caused.metadata_bytes;
            caused_bytes += call.caused.journal_bytes;
            if row.file_type.is_database_log() {
                joj.joj_bytes += call.caused.journal_bytes;
            }
        }
        joj.uncaused_journal_bytes = joj.journal_bytes - caused_bytes;
        joj.joj_share = ratio(joj.joj_bytes, joj.data_bytes + joj.journal_bytes);
        joj.files = rows.into_values().collect();
        joj.files.iter_mut().for_each(JojRow::amplify);
        sort(&mut joj.files);
        joj
    }

    /// Sums up what was written, whatever the cause.
    fn add_data(&mut self, trace: &Trace, rows: &mut FxHashMap<u32, JojRow>) {
        let mut written = Caused::default();
        for segment in &trace.segments {
            let request = &trace.requests[segment.request as usize];
            if request.by_tracer || !request.operation.is_write() {
                continue;
            }
            written.add_segment(segment);
            if let (Class::FileData, Some(file)) = (segment.class, segment.file) {
                let row = rows.entry(file).or_insert_with(|| JojRow::new(trace, file));
                row.data_bytes += u64::from(segment.bytes);
            }
        }
        self.data_bytes = written.data_bytes;
        self.journal_bytes = written.journal_bytes;
        self.metadata_bytes = written.metadata_bytes;
    }
}

/// The most journal bytes first.
pub(super) fn sort(rows: &mut [JojRow]) {
    rows.sort_by_key(|row| {
        let bytes = (row.journal_bytes, row.data_bytes);
        (std::cmp::Reverse(bytes), row.file)
    });
}

impl JojRow {
    fn new(trace: &Trace, file: u32) -> JojRow {
        JojRow {
            file,
            path: trace.file_path(file),
            user_path: trace.file_name(file),
            first_path: trace.files[file as usize].first_path.clone(),
            user_first_path: trace.first_name(file),
            file_type: trace.files[file as usize].file_type,
            files: 1,
            syncs: 0,
            data_bytes: 0,
            journal_bytes: 0,
            metadata_bytes: 0,
            amplification: None,
        }
    }

    pub(super) fn amplify(&mut self) {
        let all = self.data_bytes + self.journal_bytes + self.metadata_bytes;
        self.amplification = ratio(all, self.data_bytes);
    }
}

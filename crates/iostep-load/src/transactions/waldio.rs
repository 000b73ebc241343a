//! The extension waldio: below the connections, over a VFS that times syncs.
//!
//! Waldio knows its own connections by their files, so nothing may stand over it; and what it writes
//! durably and flushes by itself, on descriptors of its own, reaches no VFS. So its syncs are timed
//! in two places: by the VFS below, which has a name like SQLite's own and which waldio therefore
//! treats as such, and by a hook in waldio where it is the one inside. A commit that waits for
//! another thread's flush makes no sync of its own.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iostep_model::bench::{SqliteJob, WaldioLayout, WaldioRun};
use iostep_model::pragma::Journal;
use rusqlite::ffi;

use super::connection::{Connection, Sql};
use super::vfs::{self, Vfs};
use crate::error::{Error, Result};
use crate::library::{Library, check_can_load};

/// The VFS.
const NAME: &CStr = c"waldio";
const ENTRY: &str = "sqlite3_waldio_init";
/// What waldio asks of SQLite.
const OLDEST_VERSION: i32 = 3_040_000;
/// Reserved bytes of a page that layout W needs.
const RESERVED_BYTES: u32 = 24;
/// The least padding that there is, for layout P.
const PADDING_BYTES: u32 = 512;

/// Whose waldio is registered: it stands over one VFS as long as the process lives.
static REGISTERED: Mutex<Option<Registered>> = Mutex::new(None);

#[derive(Debug, PartialEq)]
struct Registered {
    /// The address of one of its functions.
    library: usize,
    extension: Option<PathBuf>,
}

/// Registers waldio: the one inside, or the job's, which is loaded.
///
/// Errors: `Usage` if another SQLite has none to load, or it cannot be loaded; `Unsupported` for an
/// old SQLite, or if the process has waldio over another one already.
pub(super) fn register(library: Library, job: &SqliteJob) -> Result<()> {
    if library.version_number() < OLDEST_VERSION {
        return Err(Error::Unsupported {
            what: format!("waldio needs SQLite 3.40, this is {}", library.version()),
            hint: "choose a newer library, or --journal wal".into(),
        });
    }
    let wanted = Registered {
        library: library.functions.sqlite3_libversion_number as usize,
        extension: job.waldio.library.clone(),
    };
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    match &*registered {
        Some(known) if *known == wanted => return Ok(()),
        Some(_) => {
            return Err(Error::Unsupported {
                what: "waldio stands over another SQLite library in this process".into(),
                hint: "run iostep once for each library".into(),
            });
        }
        None => {}
    }
    let below = Vfs::register_below_another(library)?;
    let done = match &job.waldio.library {
        Some(path) => load(library, path, &below.below()),
        None => waldio::register(false).map_err(|error| Error::Unsupported {
            what: error.to_string(),
            hint: "choose --journal wal".into(),
        }),
    };
    below.step_back();
    done?;
    waldio::on_flush(on_flush);
    *registered = Some(wanted);
    Ok(())
}

fn on_flush(took: Duration) {
    vfs::add_sync(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
}

/// Loads the extension through a connection on `vfs`.
fn load(library: Library, path: &Path, vfs: &str) -> Result<()> {
    let bad = |reason: String| Error::Usage {
        what: format!("cannot load waldio: {reason}"),
        hint: "name the waldio.so that make -C waldio builds".into(),
    };
    check_can_load(path)?;
    let absolute = std::path::absolute(path).map_err(Error::io(path, "find"))?;
    let vfs = std::ffi::CString::new(vfs).map_err(|error| bad(error.to_string()))?;
    let mut db = Connection::open(library, Path::new(":memory:"), Some(&vfs), true)?;
    db.load_extension(&absolute, ENTRY)
        .map_err(|error| bad(format!("{}: {}", path.display(), error.message)))
}

/// The VFS that the job's databases are used through; `None` for SQLite's default.
pub(super) fn name_for(job: &SqliteJob) -> Option<&'static CStr> {
    (job.journal == Journal::Waldio).then_some(NAME)
}

pub(super) fn find(library: Library) -> Option<NonNull<ffi::sqlite3_vfs>> {
    // SAFETY: the name is a C string.
    NonNull::new(unsafe { (library.functions.sqlite3_vfs_find)(NAME.as_ptr()) })
}

/// The VFS that makes the job's databases: waldio if it may reserve bytes as it likes.
pub(super) fn maker_for(job: &SqliteJob) -> Option<&'static CStr> {
    let reserves = match job.waldio.layout {
        None => job.waldio.padding_bytes.is_none(),
        Some(layout) => layout == WaldioLayout::W,
    };
    name_for(job).filter(|_| reserves)
}

/// Reserves what the layout needs in the pages of a database that is still empty.
///
/// Errors: `Database`.
pub(super) fn reserve(job: &SqliteJob, db: &mut Connection) -> Result<()> {
    if job.journal != Journal::Waldio || job.waldio.layout != Some(WaldioLayout::W) {
        return Ok(());
    }
    let done = db.execute_batch(&format!("PRAGMA main.waldio_reserve = {RESERVED_BYTES}"));
    done.map_err(|error| error.at(db.path()))
}

/// The pragmas of the job's options, each with the value that is read back.
pub(super) fn pragmas(job: &SqliteJob) -> [(&'static str, Option<String>); 5] {
    let options = &job.waldio;
    let padding = match options.layout {
        Some(WaldioLayout::P) => Some(options.padding_bytes.unwrap_or(PADDING_BYTES)),
        _ => options.padding_bytes,
    };
    [
        ("waldio_sync", options.sync.map(|sync| sync.to_string())),
        (
            "waldio_group_frames",
            options.group_frames.map(|frames| frames.to_string()),
        ),
        ("waldio_group_ms", options.group_ms.map(|ms| ms.to_string())),
        ("waldio_padding", padding.map(|bytes| bytes.to_string())),
        (
            "waldio_prealloc",
            options.prealloc_bytes.map(|bytes| bytes.to_string()),
        ),
    ]
}

/// What waldio had counted when a run began.
#[derive(Debug)]
pub(super) struct Start {
    /// The databases: those whose names begin so.
    prefix: String,
    counters: Vec<(String, i64)>,
}

impl Start {
    /// To be taken after the warm-up, from which on the log's layout is known.
    ///
    /// Errors: `Unsupported` if it is not the layout that was asked for; `Database`.
    pub fn take(job: &SqliteJob, directory: &Path, db: &mut Connection) -> Result<Start> {
        let failed = |error: super::connection::SqlError| error.at(directory);
        let layout = db.first_text("PRAGMA main.waldio_layout").map_err(failed)?;
        let layout = layout.unwrap_or_default();
        if let Some(wanted) = job.waldio.layout
            && ![wanted.name(), "stock"].contains(&layout.as_str())
        {
            return Err(Error::Unsupported {
                what: format!("waldio uses layout {layout} and not {wanted}"),
                hint: "choose another layout, or leave it to waldio".into(),
            });
        }
        let prefix = format!("{}/", directory.display());
        let counters = counters(db, &prefix).map_err(failed)?;
        Ok(Start { prefix, counters })
    }

    /// What was counted since, and how the logs are.
    ///
    /// Errors: SQLite's.
    pub fn run(&self, db: &mut Connection) -> Sql<WaldioRun> {
        let mut of_all = |column: &str| {
            let from = from_stat(&self.prefix);
            let sql = format!("SELECT DISTINCT {column} {from} AND {column} IS NOT NULL");
            db.texts(&sql)
        };
        let (layouts, reasons) = (of_all("layout")?, of_all("reason")?);
        let mut counters = counters(db, &self.prefix)?;
        for ((name, count), (earlier_name, earlier)) in counters.iter_mut().zip(&self.counters) {
            debug_assert_eq!(name, earlier_name);
            *count -= earlier;
        }
        let sync = db.first_text("PRAGMA main.waldio_sync")?;
        Ok(WaldioRun {
            layouts,
            sync: sync.unwrap_or_default(),
            reasons,
            counters,
        })
    }
}

/// Every counter of `waldio_stat`, whatever this waldio counts, over the databases of a run.
fn counters(db: &mut Connection, prefix: &str) -> Sql<Vec<(String, i64)>> {
    let names = db.texts(
        "SELECT name FROM pragma_table_info('waldio_stat')
         WHERE type = 'INT' AND name NOT IN ('slot', 'handles')",
    )?;
    let from = from_stat(prefix);
    let mut counters = Vec::new();
    for name in names {
        let sum = db.first_text(&format!("SELECT ifnull(sum({name}), 0) {from}"))?;
        let count = sum.and_then(|sum| sum.parse().ok()).unwrap_or(0);
        counters.push((name, count));
    }
    Ok(counters)
}

fn from_stat(prefix: &str) -> String {
    let quoted = prefix.replace('\'', "''");
    format!("FROM waldio_stat WHERE instr(database, '{quoted}') = 1")
}

//! Files of PostgreSQL, MySQL and MariaDB, LMDB, RocksDB and LevelDB, by their paths.
//!
//! A trace has names and no content, and a wrong type is worse than none: a name that others have
//! too counts only where the trace also has a file that shows whose the directory is.

use std::collections::HashSet;

use iostep_model::FileType;
use iostep_model::FileType::{
    AriaLog, InnodbDatabase, InnodbDoublewrite, InnodbRedo, InnodbTemporary, InnodbUndo,
    LmdbDatabase, LmdbLock, MysqlBinlog, MysqlDatabase, MysqlMetadata, PostgresDatabase,
    PostgresMetadata, PostgresShm, PostgresTemporary, PostgresWal, RocksdbDatabase, RocksdbLock,
    RocksdbMetadata, RocksdbWal,
};
use iostep_model::class::Engine;

/// How much a path says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Proof {
    /// Nobody else has such a path; the form's directory is the engine's.
    Directory,
    /// Nobody else has such a path, and the file may lie anywhere.
    Itself,
    /// Others have such paths: it counts where another file proves the directory.
    Beside,
}
use Proof::{Beside, Directory, Itself};

/// A path from the engine's own directory on, what such a file is, and how sure that is. In a
/// name, `*` is any characters, `{a|b}` one of these, `{n6}` a number of at least six digits, and
/// `{x24}` 24 digits in hexadecimal; [`is_of_form`] tells the names that are whole in braces.
#[rustfmt::skip]
const FORMS: &[(&str, FileType, Proof)] = &[
    // PostgreSQL: storage layout in its manual, relpath.c, xlog_internal.h, slru.c.
    ("{pg_wal|pg_xlog}/{x24}{|.partial}", PostgresWal, Directory),
    ("{pg_wal|pg_xlog}/xlogtemp.{n1}", PostgresWal, Beside),
    ("{pg_wal|pg_xlog}/{x8}.history", PostgresMetadata, Beside),
    ("{pg_wal|pg_xlog}/{x24}.*.backup", PostgresMetadata, Beside),
    ("{pg_wal|pg_xlog}/{archive_status|summaries}/*", PostgresMetadata, Beside),
    // A log that is mounted or linked to from elsewhere.
    ("{segment}", PostgresWal, Itself),
    ("base/{database}/{relation}", PostgresDatabase, Directory),
    ("base/{database}/t{n1}_{n1}*", PostgresTemporary, Beside),
    ("base/{database}/{PG_VERSION|pg_filenode.map}", PostgresMetadata, Directory),
    ("base/{database}/pg_internal.init*", PostgresMetadata, Directory),
    ("base/pgsql_tmp/*", PostgresTemporary, Directory),
    ("base/pgsql_tmp/*/*", PostgresTemporary, Directory),
    // A tablespace: its directory is named after the version and the catalogue's date.
    ("PG_*_{n9}/{database}/{relation}", PostgresDatabase, Itself),
    ("PG_*_{n9}/{database}/t{n1}_{n1}*", PostgresTemporary, Itself),
    ("PG_*_{n9}/{database}/{PG_VERSION|pg_filenode.map}", PostgresMetadata, Itself),
    ("PG_*_{n9}/{database}/pg_internal.init*", PostgresMetadata, Itself),
    ("PG_*_{n9}/pgsql_tmp/*", PostgresTemporary, Itself),
    ("PG_*_{n9}/pgsql_tmp/*/*", PostgresTemporary, Itself),
    ("global/{relation}", PostgresDatabase, Beside),
    ("global/{pg_control|pg_filenode.map}", PostgresMetadata, Directory),
    ("global/pg_internal.init*", PostgresMetadata, Beside),
    ("{pg_xact|pg_clog|pg_subtrans|pg_commit_ts|pg_notify|pg_serial}/{slru}", PostgresMetadata, Directory),
    ("pg_multixact/{members|offsets}/{slru}", PostgresMetadata, Directory),
    ("{pg_stat|pg_stat_tmp|pg_logical|pg_twophase|pg_snapshots}/*", PostgresMetadata, Beside),
    ("{pg_logical|pg_replslot}/*/*", PostgresMetadata, Beside),
    ("{PG_VERSION|postmaster.opts|current_logfiles|backup_label|tablespace_map}", PostgresMetadata, Beside),
    ("pg_dynshmem/*", PostgresShm, Beside),
    ("postmaster.pid", PostgresShm, Beside),
    // InnoDB: log0constants.h, fil0fil.cc and buf0dblwr.h of MySQL, log0log.h of MariaDB.
    ("ib_logfile{n1}", InnodbRedo, Directory),
    ("#innodb_redo/#ib_redo{n1}{|_tmp}", InnodbRedo, Directory),
    ("ibdata{n1}", InnodbDatabase, Directory),
    ("*.ibd", InnodbDatabase, Itself),
    ("#ib_{n1}_{n1}.{dblwr|bdblwr}", InnodbDoublewrite, Directory),
    ("undo{|_}{n3}", InnodbUndo, Beside),
    ("*.ibu", InnodbUndo, Beside),
    ("ibtmp{n1}", InnodbTemporary, Directory),
    ("#innodb_temp/temp_{n1}.ibt", InnodbTemporary, Directory),
    ("ib_buffer_pool{|.incomplete}", MysqlMetadata, Itself),
    // The server, and MariaDB's tables of the system.
    ("{mysql-bin|mariadb-bin}.{n6}", MysqlBinlog, Itself),
    ("{binlog|*-bin}.{n6}", MysqlBinlog, Beside),
    ("{binlog|*-bin}.index", MysqlMetadata, Beside),
    ("aria_log.{n8}", AriaLog, Directory),
    ("aria_log_control", MysqlMetadata, Directory),
    ("*/*.{MAD|MAI|MYD|MYI}", MysqlDatabase, Beside),
    ("*/{*.frm|db.opt}", MysqlMetadata, Beside),
    ("{auto.cnf|ddl_recovery.log|tc.log|multi-master.info}", MysqlMetadata, Beside),
    // LMDB: mdb.c. A database by a name of its own is told by the lock beside it, see super.
    ("data.mdb", LmdbDatabase, Itself),
    ("lock.mdb", LmdbLock, Itself),
    // RocksDB and LevelDB: filename.cc.
    ("MANIFEST-{n6}", RocksdbMetadata, Directory),
    ("OPTIONS-{n6}{|.dbtmp}", RocksdbMetadata, Directory),
    ("{n6}.dbtmp", RocksdbMetadata, Directory),
    ("{CURRENT|IDENTITY|LOG}", RocksdbMetadata, Beside),
    ("LOG.old*", RocksdbMetadata, Beside),
    ("LOCK", RocksdbLock, Beside),
    ("{n6}.log", RocksdbWal, Beside),
    ("archive/{n6}.log", RocksdbWal, Beside),
    ("{n6}.{sst|ldb|blob}", RocksdbDatabase, Beside),
];

/// Whose directories are, by the paths of a trace.
#[derive(Debug)]
pub(super) struct Engines<'a>(HashSet<(Option<Engine>, &'a str)>);

impl<'a> Engines<'a> {
    /// Looks for what proves a directory. Paths are those of files, from the filesystem's root.
    pub(super) fn of(paths: impl Iterator<Item = &'a str>) -> Engines<'a> {
        let mut directories = HashSet::new();
        for path in paths {
            let proofs = FORMS.iter().filter(|(_, _, proof)| *proof == Directory);
            directories.extend(
                proofs.filter_map(|(form, of, _)| Some((engine(*of), directory_of(form, path)?))),
            );
        }
        Engines(directories)
    }

    /// What a file is to its engine; `None` if it is no engine's, or nothing shows that it is.
    pub(super) fn file_type(&self, path: &str) -> Option<FileType> {
        let mut forms = FORMS.iter();
        let found = forms.find(|(form, of, proof)| {
            directory_of(form, path).is_some_and(|directory| {
                *proof != Beside || self.0.contains(&(engine(*of), directory))
            })
        });
        found.map(|(_, of, _)| *of)
    }
}

fn engine(file_type: FileType) -> Option<Engine> {
    file_type.of_database().map(|(engine, _)| engine)
}

fn directory_of<'a>(form: &str, path: &'a str) -> Option<&'a str> {
    let mut directory = path;
    for form in form.rsplit('/') {
        let (above, name) = directory.rsplit_once('/')?;
        if !is_of_form(form, name) {
            return None;
        }
        directory = above;
    }
    Some(directory)
}

fn is_of_form(form: &str, name: &str) -> bool {
    match form {
        "{database}" => is_database(name),
        "{relation}" => is_relation(name),
        "{segment}" => is_segment(name),
        "{slru}" => name.len() >= 4 && name.len() == hexadecimal(name),
        _ => has_parts(form, name),
    }
}

fn has_parts(form: &str, name: &str) -> bool {
    let Some(first) = form.chars().next() else {
        return name.is_empty();
    };
    if first == '*' {
        let mut rests = name.char_indices().map(|(at, _)| &name[at..]);
        return has_parts(&form[1..], "") || rests.any(|rest| has_parts(&form[1..], rest));
    }
    let Some((inside, form)) = form.strip_prefix('{').and_then(|f| f.split_once('}')) else {
        let rest = name.strip_prefix(first);
        return rest.is_some_and(|rest| has_parts(&form[first.len_utf8()..], rest));
    };
    if inside.contains('|') {
        return inside
            .split('|')
            .any(|part| has_parts(&[part, form].concat(), name));
    }
    let (kind, digits) = inside.split_at(1);
    let digits: usize = digits.parse().unwrap_or(usize::MAX);
    let found = match kind {
        "n" => decimal(name),
        _ => hexadecimal(name),
    };
    let fits = match kind {
        "n" => found >= digits,
        _ => found == digits,
    };
    fits && has_parts(form, &name[found..])
}

/// How many digits a name begins with.
fn decimal(name: &str) -> usize {
    name.bytes().take_while(u8::is_ascii_digit).count()
}

fn hexadecimal(name: &str) -> usize {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte);
    name.bytes().take_while(is_digit).count()
}

/// An object's number as PostgreSQL writes it.
fn object(name: &str) -> Option<u32> {
    let is_plain = decimal(name) == name.len() && !name.starts_with('0');
    name.parse().ok().filter(|_| is_plain)
}

/// template1, template0 and postgres of version 15 on, what initdb gives before, and all later
/// ones (transam.h, pg_database.dat).
fn is_database(name: &str) -> bool {
    object(name).is_some_and(|number| matches!(number, 1 | 4 | 5 | 10_000..))
}

/// A relation's file: its number, fork and segment. No catalogue has a number of two digits, so
/// that tiles of maps (`base/5/16`) are none.
fn is_relation(name: &str) -> bool {
    let (name, segment) = name.split_once('.').unwrap_or((name, "1"));
    let (number, fork) = name.split_once('_').unwrap_or((name, "fsm"));
    let is_number = object(number).is_some_and(|number| number >= 100);
    is_number && object(segment).is_some() && ["fsm", "vm", "init"].contains(&fork)
}

/// A segment of PostgreSQL's log wherever it lies: a time line below 65,536, and a number that
/// segments of 1 MiB or more have.
fn is_segment(name: &str) -> bool {
    name.len() == 24
        && hexadecimal(name) == 24
        && name.starts_with("0000")
        && !name.starts_with("00000000")
        && &name[16..21] == "00000"
}

#[cfg(test)]
mod tests;

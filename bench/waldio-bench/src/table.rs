//! The tables: what is measured on which filesystem, beside what, and with which goals.

use iostep_lab::Kind;

use crate::goal::Goal;

/// Where a table's files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A filesystem on a loop device of its own.
    Image(Kind),
    /// Memory.
    Tmpfs,
}

impl Place {
    /// The name of the filesystem.
    pub fn name(self) -> &'static str {
        match self {
            Place::Image(kind) => kind.name(),
            Place::Tmpfs => "tmpfs",
        }
    }
}

/// What several writers have below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite's own VFS.
    Stock,
    /// The extension.
    Waldio,
}

/// What a row runs. `{ms}` and `{count}` in flags stand for the time of a run and the number of
/// transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// `iostep bench sqlite` with these flags, separated by blanks.
    Sqlite(String),
    /// `writers.c`: several writers of one database.
    Writers {
        /// What writes the log.
        engine: Engine,
        /// Processes instead of threads.
        processes: bool,
        count: u32,
        /// With the log of a session before, and from the first commit on.
        again: bool,
    },
    /// `floor.c` with this mode.
    Floor(&'static str),
    /// `peers.c` with this store.
    Peer(&'static str),
}

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What stands in front.
    pub label: String,
    /// What is run.
    pub work: Work,
    /// The row it is compared with.
    pub base: Option<usize>,
    /// What the paper says of the same, on its telephone.
    pub paper: &'static str,
    /// What it has to reach.
    pub goals: Vec<Goal>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// For the command line and the page.
    pub name: String,
    /// What it is about.
    pub title: String,
    pub place: Place,
    /// So many microseconds more each flush takes: `slow-flush.c`.
    pub slow_flush_us: u32,
    /// Its lines, which are measured by turns.
    pub rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(name: &str, place: Place, title: &str) -> Table {
        Table {
            name: name.to_owned(),
            title: title.to_owned(),
            place,
            slow_flush_us: 0,
            rows: Vec::new(),
        }
    }

    /// Adds a row; the answer is its number.
    pub(crate) fn row(&mut self, label: &str, work: Work, base: Option<usize>) -> usize {
        self.rows.push(Row {
            label: label.to_owned(),
            work,
            base,
            paper: "",
            goals: Vec::new(),
        });
        self.rows.len() - 1
    }

    /// Adds a goal to the row added last.
    pub(crate) fn goal(&mut self, goal: Goal) {
        if let Some(row) = self.rows.last_mut() {
            row.goals.push(goal);
        }
    }

    /// Puts the paper's figure beside the row added last.
    pub(crate) fn paper(&mut self, figure: &'static str) {
        if let Some(row) = self.rows.last_mut() {
            row.paper = figure;
        }
    }

    /// The driver that is needed besides those that are always there.
    pub fn needs_peers(&self) -> bool {
        let peer = |row: &Row| matches!(row.work, Work::Peer(_));
        self.rows.iter().any(peer)
    }
}

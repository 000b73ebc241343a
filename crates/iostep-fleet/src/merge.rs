//! Files of a table as one stream of rows in the order of the table's key.
//!
//! The rows of a group are in that order; those of a file are in one or several runs of groups.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use iostep_model::columnar::{GROUP_ROWS, Written, next_column};
use iostep_model::error::Result;
use parquet::data_type::{ByteArrayType, Int64Type};

use crate::column::{Column, Group, Out};
use crate::reader::{GroupReader, TableReader, Values};
use crate::table::Table;
use crate::writer::TableFile;

/// Runs that are read at once. Each holds a page of every column.
pub(crate) const FAN_IN: usize = 16;
/// Rows of a run that are held at once.
const BATCH_ROWS: usize = 1024;

/// Groups of a file whose rows follow each other in the order of the key.
#[derive(Clone)]
pub(crate) struct Run {
    path: PathBuf,
    groups: Range<usize>,
    rows: u64,
}

/// The runs of a file: one, but of a large trace, whose parts were sorted each by itself.
///
/// Errors: as [`TableReader::open`].
pub(crate) fn runs(path: &Path, table: Table) -> Result<Vec<Run>> {
    let file = TableReader::open(path, table)?;
    let mut runs = Vec::<Run>::new();
    let mut last = None;
    for index in 0..file.groups() {
        let mut group = file.group(index, Some(table.key()))?;
        let rows = group.left() as u64;
        let Some(first) = key_of(&mut group)? else {
            continue;
        };
        let between = group.left().saturating_sub(1);
        group.skip(between)?;
        let end = key_of(&mut group)?.unwrap_or_else(|| first.clone());
        match runs.last_mut() {
            Some(run) if last.as_ref() <= Some(&first) => {
                run.groups.end = index + 1;
                run.rows += rows;
            }
            _ => runs.push(Run {
                path: path.to_owned(),
                groups: index..index + 1,
                rows,
            }),
        }
        last = Some(end);
    }
    Ok(runs)
}

/// The key of a group's next row, of whose columns only the key's are read.
fn key_of(group: &mut GroupReader) -> Result<Option<Vec<Vec<u8>>>> {
    let columns = group.next(1)?;
    let key = |columns: Vec<Values>| {
        columns
            .iter()
            .map(|values| text(values, 0).to_vec())
            .collect()
    };
    Ok(columns.map(key))
}

/// Where a run is read.
struct Cursor {
    file: Rc<TableReader>,
    /// Those that follow.
    groups: Range<usize>,
    group: Option<GroupReader>,
    batch: Vec<Values>,
    /// Of the batch.
    rows: usize,
    /// The next row of the batch.
    row: usize,
}

impl Cursor {
    fn open(file: Rc<TableReader>, groups: Range<usize>) -> Result<Cursor> {
        let mut cursor = Cursor {
            file,
            groups,
            group: None,
            batch: Vec::new(),
            rows: 0,
            row: 0,
        };
        cursor.fill()?;
        Ok(cursor)
    }

    /// Makes sure that there is a next row, if the run has one.
    fn fill(&mut self) -> Result<()> {
        while self.row == self.rows {
            if let Some(group) = &mut self.group
                && let Some(batch) = group.next(BATCH_ROWS)?
            {
                self.rows = batch.first().map_or(0, length);
                self.batch = batch;
                self.row = 0;
                return Ok(());
            }
            let Some(next) = self.groups.next() else {
                self.group = None;
                return Ok(());
            };
            self.group = Some(self.file.group(next, None)?);
        }
        Ok(())
    }

    fn has_row(&self) -> bool {
        self.row < self.rows
    }

    fn compare(&self, row: usize, other: &Cursor, key: &[usize]) -> Ordering {
        let fields = key.iter().map(|column| {
            let own = text(&self.batch[*column], row);
            own.cmp(text(&other.batch[*column], other.row))
        });
        fields.fold(Ordering::Equal, Ordering::then)
    }
}

fn length(values: &Values) -> usize {
    match values {
        Values::Text(values) => values.len(),
        Values::Int(values) => values.len(),
        Values::OptionalInt(values) => values.len(),
    }
}

fn text(values: &Values, row: usize) -> &[u8] {
    match values {
        Values::Text(values) => values[row].data(),
        _ => &[],
    }
}

/// Runs as one stream.
pub(crate) struct Merge {
    /// Of all runs.
    all_rows: u64,
    cursors: Vec<Cursor>,
    columns: Vec<Column>,
    /// Indices of the columns of the key.
    key: Vec<usize>,
    gathered: Vec<Values>,
    rows: usize,
}

impl Merge {
    /// Errors: as [`TableReader::open`].
    pub(crate) fn open(runs: &[Run], table: Table) -> Result<Merge> {
        let columns = table.columns();
        let index = |name: &&str| columns.iter().position(|column| column.name == *name);
        let mut cursors = Vec::<Cursor>::new();
        let mut before: Option<&Run> = None;
        for run in runs {
            let file = match cursors.last() {
                Some(cursor) if before.is_some_and(|before| before.path == run.path) => {
                    Rc::clone(&cursor.file)
                }
                _ => Rc::new(TableReader::open(&run.path, table)?),
            };
            cursors.push(Cursor::open(file, run.groups.clone())?);
            before = Some(run);
        }
        Ok(Merge {
            all_rows: runs.iter().map(|run| run.rows).sum(),
            cursors,
            key: table.key().iter().filter_map(index).collect(),
            gathered: columns
                .iter()
                .map(|column| Values::empty(column.kind))
                .collect(),
            columns,
            rows: 0,
        })
    }

    /// Rows of all runs.
    pub(crate) fn all_rows(&self) -> u64 {
        self.all_rows
    }

    /// Writes the next group of rows; false if there are none.
    ///
    /// Errors: `Io`; `Corrupt` for a damaged file.
    pub(crate) fn write_group(&mut self, out: &mut TableFile) -> Result<bool> {
        while self.rows < GROUP_ROWS && self.gather()? {}
        if self.rows == 0 {
            return Ok(false);
        }
        let (columns, gathered) = (&self.columns, &mut self.gathered);
        out.group(self.rows, |group| write(columns, gathered, group))?;
        self.rows = 0;
        Ok(true)
    }

    /// Takes the rows of one run that come next; false if there are none.
    fn gather(&mut self) -> Result<bool> {
        let live = || (0..self.cursors.len()).filter(|index| self.cursors[*index].has_row());
        let before = |one: &usize, other: &usize| {
            let (one, other) = (&self.cursors[*one], &self.cursors[*other]);
            one.compare(one.row, other, &self.key)
        };
        // Of equal ones the first.
        let Some(first) = live().min_by(before) else {
            return Ok(false);
        };
        let second = live().filter(|index| *index != first).min_by(before);
        let cursor = &self.cursors[first];
        let most = cursor.rows.min(cursor.row + (GROUP_ROWS - self.rows));
        let mut end = cursor.row + 1;
        let is_next = |end: usize| match second {
            Some(second) => cursor
                .compare(end, &self.cursors[second], &self.key)
                .is_le(),
            None => true,
        };
        while end < most && is_next(end) {
            end += 1;
        }
        let rows = cursor.row..end;
        for (gathered, values) in self.gathered.iter_mut().zip(&cursor.batch) {
            match (gathered, values) {
                (Values::Text(all), Values::Text(new)) => all.extend_from_slice(&new[rows.clone()]),
                (Values::Int(all), Values::Int(new)) => all.extend_from_slice(&new[rows.clone()]),
                (Values::OptionalInt(all), Values::OptionalInt(new)) => {
                    all.extend_from_slice(&new[rows.clone()]);
                }
                _ => unreachable!("both are of the table's columns"),
            }
        }
        self.rows += rows.len();
        self.cursors[first].row = end;
        self.cursors[first].fill()?;
        Ok(true)
    }
}

/// Writes columns and empties them.
fn write(columns: &[Column], gathered: &mut [Values], group: &mut Group<'_>) -> Written {
    for (column, values) in columns.iter().zip(gathered) {
        match values {
            Values::Text(texts) => {
                next_column::<ByteArrayType, Out>(group, |write| write(texts, None))?;
            }
            Values::Int(values) => {
                next_column::<Int64Type, Out>(group, |write| write(values, None))?;
            }
            Values::OptionalInt(values) => {
                let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
                let there: Vec<i64> = values.iter().copied().flatten().collect();
                next_column::<Int64Type, Out>(group, |write| write(&there, Some(&levels)))?;
            }
        }
        *values = Values::empty(column.kind);
    }
    Ok(())
}

/// Leaves at most [`FAN_IN`] runs of many, by merging some of them into files, which `name` names.
///
/// Errors: as [`Merge::write_group`], and what `stop` says between groups.
pub(crate) fn narrow(
    mut all: Vec<Run>,
    table: Table,
    name: impl Fn(usize) -> PathBuf,
    stop: &dyn Fn() -> Result<()>,
) -> Result<Vec<Run>> {
    let mut made = 0;
    while all.len() > FAN_IN {
        let mut fewer = Vec::new();
        for some in all.chunks(FAN_IN) {
            let [only] = some else {
                let path = name(made);
                made += 1;
                let mut merge = Merge::open(some, table)?;
                let mut out = TableFile::create(&path, table)?;
                let mut groups = 0;
                while merge.write_group(&mut out)? {
                    groups += 1;
                    stop()?;
                }
                let rows = out.rows();
                out.finish()?;
                fewer.push(Run {
                    path,
                    groups: 0..groups,
                    rows,
                });
                continue;
            };
            fewer.push(only.clone());
        }
        all = fewer;
    }
    Ok(all)
}

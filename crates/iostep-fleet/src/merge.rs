//! Files of a table as one stream of rows in the order of the table's key.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use iostep_model::columnar::{GROUP_ROWS, Written, next_column};
use iostep_model::error::Result;
use parquet::data_type::{ByteArrayType, Int64Type};

use crate::column::{Column, Group, Out};
use crate::reader::{GroupReader, TableReader, Values};
use crate::table::Table;
use crate::writer::TableFile;

/// Files that are read at once. Each holds a page of every column.
pub(crate) const FAN_IN: usize = 16;
/// Rows of a file that are held at once.
const BATCH_ROWS: usize = 1024;

/// Where one file is read.
struct Cursor {
    reader: TableReader,
    /// Of the next group.
    next_group: usize,
    group: Option<GroupReader>,
    batch: Vec<Values>,
    /// Of the batch.
    rows: usize,
    /// The next row of the batch.
    row: usize,
}

impl Cursor {
    fn open(path: &Path, table: Table) -> Result<Cursor> {
        let mut cursor = Cursor {
            reader: TableReader::open(path, table)?,
            next_group: 0,
            group: None,
            batch: Vec::new(),
            rows: 0,
            row: 0,
        };
        cursor.fill()?;
        Ok(cursor)
    }

    /// Makes sure that there is a next row, if the file has one.
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
            if self.next_group == self.reader.groups() {
                self.group = None;
                return Ok(());
            }
            self.group = Some(self.reader.group(self.next_group, None)?);
            self.next_group += 1;
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

/// Files as one stream.
pub(crate) struct Merge {
    cursors: Vec<Cursor>,
    columns: Vec<Column>,
    /// Indices of the columns of the key.
    key: Vec<usize>,
    gathered: Vec<Values>,
    rows: usize,
}

impl Merge {
    /// Errors: as [`TableReader::open`].
    pub(crate) fn open(paths: &[PathBuf], table: Table) -> Result<Merge> {
        let columns = table.columns();
        let index = |name: &&str| columns.iter().position(|column| column.name == *name);
        let cursors = paths.iter().map(|path| Cursor::open(path, table));
        Ok(Merge {
            cursors: cursors.collect::<Result<_>>()?,
            key: table.key().iter().filter_map(index).collect(),
            gathered: columns
                .iter()
                .map(|column| Values::empty(column.kind))
                .collect(),
            columns,
            rows: 0,
        })
    }

    /// Rows of all files.
    pub(crate) fn all_rows(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.reader.rows()).sum()
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

    /// Takes the rows of one file that come next; false if there are none.
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

/// Leaves at most [`FAN_IN`] files of many, by merging some of them into others beside them, which
/// `name` names.
///
/// Errors: as [`Merge::write_group`], and what `stop` says between groups.
pub(crate) fn narrow(
    mut paths: Vec<PathBuf>,
    table: Table,
    name: impl Fn(usize) -> PathBuf,
    stop: &dyn Fn() -> Result<()>,
) -> Result<Vec<PathBuf>> {
    let mut made = 0;
    while paths.len() > FAN_IN {
        let mut fewer = Vec::new();
        for some in paths.chunks(FAN_IN) {
            let [only] = some else {
                let path = name(made);
                made += 1;
                let mut merge = Merge::open(some, table)?;
                let mut out = TableFile::create(&path, table)?;
                while merge.write_group(&mut out)? {
                    stop()?;
                }
                out.finish()?;
                fewer.push(path);
                continue;
            };
            fewer.push(only.clone());
        }
        paths = fewer;
    }
    Ok(paths)
}

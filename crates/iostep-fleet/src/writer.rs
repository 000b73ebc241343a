//! A file of a table, a group of rows at a time.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use iostep_model::columnar::{Written, write_error};
use iostep_model::error::{Error, Result};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::writer::SerializedFileWriter;

use crate::column::{Group, Out, stored};
use crate::format::label;
use crate::table::Table;

/// A file that is being written; synced by [`TableFile::finish`].
pub(crate) struct TableFile {
    path: PathBuf,
    writer: SerializedFileWriter<Out>,
    rows: u64,
}

impl TableFile {
    /// Errors: `Io`.
    pub(crate) fn create(path: &Path, table: Table) -> Result<TableFile> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(Error::io(path, "create"))?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let level = ZstdLevel::try_new(1).expect("zstd has level 1");
        let columns = stored(&table.columns());
        let writer = label(table).writer(out, &columns, Compression::ZSTD(level));
        Ok(TableFile {
            path: path.to_owned(),
            writer: writer.map_err(write_error(path))?,
            rows: 0,
        })
    }

    /// Writes `rows` rows as a group.
    ///
    /// Errors: `Io`.
    pub(crate) fn group(
        &mut self,
        rows: usize,
        fill: impl FnOnce(&mut Group<'_>) -> Written,
    ) -> Result<()> {
        let mut group = self
            .writer
            .next_row_group()
            .map_err(write_error(&self.path))?;
        fill(&mut group).map_err(write_error(&self.path))?;
        group.close().map_err(write_error(&self.path))?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Bytes of the groups so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the file and syncs it; its length in bytes.
    ///
    /// Errors: `Io`.
    pub(crate) fn finish(self) -> Result<u64> {
        let out = self.writer.into_inner().map_err(write_error(&self.path))?;
        let file = out.into_inner().map_err(|error| error.into_error());
        let file = file.map_err(Error::io(&self.path, "write"))?;
        file.sync_all().map_err(Error::io(&self.path, "sync"))?;
        let metadata = file.metadata().map_err(Error::io(&self.path, "stat"))?;
        Ok(metadata.len())
    }
}

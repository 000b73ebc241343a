//! What a block is for, and how we know.

use serde::{Deserialize, Serialize};

/// The three block types of FI'13 section 3.2, and what belongs to none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Content of files. (MOST counts directories here; ours are metadata, and the `.po` export
    /// puts them back.)
    Data,
    /// The filesystem's own log.
    Journal,
    /// Everything else that the filesystem keeps for itself.
    Metadata,
    /// Not known.
    Unknown,
}

crate::listed! { Layer,
    Data = "data",
    Journal = "journal",
    Metadata = "metadata",
    Unknown = "unknown",
}

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $layer:ident;)*) => {
        /// The class of a run of bytes on the device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class { $($(#[$doc])* $variant,)* }

        $crate::listed! { Class, $($variant = $name),* }

        impl Class {
            /// The block type that this class is a part of.
            pub fn layer(self) -> Layer {
                match self { $(Class::$variant => Layer::$layer,)* }
            }
        }
    };
}

classes! {
    /// Content of a regular file or of a long symbolic link.
    FileData, "file data", Data;
    /// Bytes that a user wrote to the block device itself, past the filesystem.
    DeviceData, "device data", Data;
    /// Blocks outside the filesystem's own structures that it asked the device to make zero
    /// (`REQ_OP_WRITE_ZEROES`): a file's, and nothing tells whose.
    Zeroes, "zeroes", Data;

    /// jbd2 descriptor block (fs/jbd2/commit.c).
    LogDescriptor, "log descriptor", Journal;
    /// A copy of a metadata block in the log.
    LoggedBlock, "logged block", Journal;
    /// A copy of a file's data block in the log (ext4 data=journal).
    LoggedData, "logged data", Journal;
    /// jbd2 commit block.
    LogCommit, "log commit", Journal;
    /// jbd2 revoke block.
    LogRevoke, "log revoke", Journal;
    /// ext4 fast commit block.
    FastCommit, "fast commit", Journal;
    /// jbd2 journal superblock.
    LogSuperblock, "log superblock", Journal;
    /// xfs log record.
    LogRecord, "log record", Journal;
    /// btrfs tree-log block: fsync's own log.
    TreeLog, "tree log", Journal;
    /// A block in the journal's area whose kind is not known.
    LogOther, "log other", Journal;

    /// Superblock or a backup of it.
    Superblock, "superblock", Metadata;
    /// Block group descriptors.
    GroupDescriptor, "group descriptor", Metadata;
    /// ext4 block bitmap.
    BlockBitmap, "block bitmap", Metadata;
    /// ext4 inode bitmap.
    InodeBitmap, "inode bitmap", Metadata;
    /// Inode table block, xfs inode chunk, or nilfs2's file of inodes (ifile).
    InodeTable, "inode table", Metadata;
    /// Directory block or directory index.
    Directory, "directory", Metadata;
    /// Extent tree block (ext4, xfs bmap btree).
    ExtentBlock, "extent block", Metadata;
    /// Block of a file's block map: ext2/3 indirect block, nilfs2 B-tree node.
    IndirectBlock, "indirect block", Metadata;
    /// Extended attributes.
    Attribute, "attribute", Metadata;
    /// Orphan file, quota file and other files that only the filesystem uses.
    SystemFile, "system file", Metadata;
    /// Free space headers: xfs AGF and AGFL, FAT FSInfo.
    FreeSpaceHeader, "free space header", Metadata;
    /// xfs AGI: inode allocation header.
    InodeHeader, "inode header", Metadata;
    /// xfs free space, reverse mapping and reference count btrees; btrfs free space tree.
    FreeSpaceTree, "free space tree", Metadata;
    /// xfs inode btrees.
    InodeTree, "inode tree", Metadata;
    /// btrfs root tree.
    RootTree, "root tree", Metadata;
    /// btrfs extent tree.
    ExtentTree, "extent tree", Metadata;
    /// btrfs chunk tree.
    ChunkTree, "chunk tree", Metadata;
    /// btrfs device tree.
    DeviceTree, "device tree", Metadata;
    /// btrfs filesystem (subvolume) tree.
    FilesystemTree, "filesystem tree", Metadata;
    /// btrfs checksum tree.
    ChecksumTree, "checksum tree", Metadata;
    /// btrfs trees that are none of the above.
    OtherTree, "other tree", Metadata;
    /// f2fs node block: an inode, or a block of a file's index.
    NodeBlock, "node block", Metadata;
    /// f2fs checkpoint pack: its header and footer, orphans and the open segments' summaries.
    /// nilfs2's file of checkpoints (cpfile).
    Checkpoint, "checkpoint", Metadata;
    /// f2fs node address table (NAT): where each node block is.
    NodeAddressTable, "node address table", Metadata;
    /// f2fs segment information table (SIT): which blocks of each segment are in use. nilfs2's file
    /// of segment usage (sufile).
    SegmentInfoTable, "segment info table", Metadata;
    /// f2fs segment summary area (SSA): whose each block of a segment is. nilfs2: the head of a
    /// log, which says the same of the log's blocks.
    SegmentSummary, "segment summary", Metadata;
    /// nilfs2: the last block of a log with a checkpoint, with the roots of DAT, cpfile and sufile.
    SuperRoot, "super root", Metadata;
    /// nilfs2's disk address translation file (DAT): where each virtual block is.
    AddressTranslation, "address translation", Metadata;
    /// FAT file allocation table, any copy.
    AllocationTable, "allocation table", Metadata;
    /// Metadata whose kind is not known.
    OtherMetadata, "other metadata", Metadata;

    /// Belongs to no file and to no structure.
    Free, "free", Unknown;
    /// Of another volume on the same disk, or of device mapper or md themselves.
    OtherVolume, "other volume", Unknown;
    /// In no filesystem: a partition table, what lies between or behind partitions, or behind a
    /// filesystem's last block.
    OutsideFilesystem, "outside filesystem", Unknown;
    /// Not known.
    Unknown, "unknown", Unknown;
}

/// How an attribution is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The page cache page's inode, seen in the kernel when the bio was queued.
    PageCache,
    /// The direct I/O's own control block, seen in the kernel when the bio was queued.
    DirectIo,
    /// The buffer that the filesystem's log was writing, seen in the kernel.
    LogBuffer,
    /// The structure that the filesystem itself named for its buffer, seen in the kernel.
    StructureName,
    /// The header of the block itself, read when the bio was queued.
    BlockHeader,
    /// A range that the layout on the device reserves for this.
    LayoutRange,
    /// An extent that the filesystem reported while the trace ran.
    ExtentEvent,
    /// The owner found in the image afterwards.
    OwnerMap,
    /// Nothing is known.
    None,
}

crate::listed! { Evidence,
    PageCache = "page cache",
    DirectIo = "direct I/O",
    LogBuffer = "log buffer",
    StructureName = "structure name",
    BlockHeader = "block header",
    LayoutRange = "layout range",
    ExtentEvent = "extent event",
    OwnerMap = "owner map",
    None = "none",
}

/// Whose the files of a database are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// SQLite, waldio's logs included.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB: InnoDB, Aria, and the server itself.
    Mysql,
    Lmdb,
    /// RocksDB or LevelDB, whose files have the same names.
    Rocksdb,
}

/// What a file is to its database, whatever the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Tables and indexes.
    Database,
    /// What is redone after a crash: a write-ahead log, a redo log, a binlog.
    WriteAheadLog,
    /// What is undone after a crash: whole pages as they were, in a file of their own.
    RollbackJournal,
    /// Pages on their way to their place, against torn writes.
    Doublewrite,
    /// Older versions of rows, in pages that the write-ahead log protects as it does tables.
    Undo,
    /// What a query needs while it runs.
    Temporary,
    /// What the engine keeps about itself: manifests, control files, states of transactions.
    Metadata,
    /// Shared memory and locks.
    SharedMemory,
}

macro_rules! file_types {
    ($($(#[$doc:meta])* $variant:ident, $name:literal $(, $engine:ident, $role:ident)?;)*) => {
        /// What a file is for (FI'13 section 2.3, ATC'13 figure 2(a)), with the files of databases
        /// told apart by [`Engine`] and [`Role`].
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum FileType { $($(#[$doc])* $variant,)* }

        $crate::listed! { FileType, $($variant = $name),* }

        impl FileType {
            /// Whose it is and what for, if it is a database's.
            pub fn of_database(self) -> Option<(Engine, Role)> {
                match self {
                    $($(FileType::$variant => Some((Engine::$engine, Role::$role)),)?)*
                    _ => None,
                }
            }
        }
    };
}

file_types! {
    SqliteDatabase, "SQLite database", Sqlite, Database;
    /// SQLite rollback journal or super-journal.
    SqliteJournal, "SQLite journal", Sqlite, RollbackJournal;
    SqliteWal, "SQLite WAL", Sqlite, WriteAheadLog;
    /// SQLite wal-index.
    SqliteShm, "SQLite shm", Sqlite, SharedMemory;
    WaldioLog, "waldio log", Sqlite, WriteAheadLog;

    /// PostgreSQL table or index, or one's map of free space or visibility.
    PostgresDatabase, "PostgreSQL database", Postgres, Database;
    /// Segment of PostgreSQL's write-ahead log.
    PostgresWal, "PostgreSQL WAL", Postgres, WriteAheadLog;
    /// PostgreSQL sort, hash or temporary table.
    PostgresTemporary, "PostgreSQL temporary", Postgres, Temporary;
    /// PostgreSQL control file, states of transactions, statistics, slots.
    PostgresMetadata, "PostgreSQL metadata", Postgres, Metadata;
    /// PostgreSQL shared memory or lock file.
    PostgresShm, "PostgreSQL shm", Postgres, SharedMemory;

    /// InnoDB tablespace: a table's, or the system's.
    InnodbDatabase, "InnoDB database", Mysql, Database;
    InnodbRedo, "InnoDB redo log", Mysql, WriteAheadLog;
    /// InnoDB doublewrite file, where it is apart from the system tablespace.
    InnodbDoublewrite, "InnoDB doublewrite", Mysql, Doublewrite;
    /// InnoDB undo tablespace.
    InnodbUndo, "InnoDB undo", Mysql, Undo;
    /// InnoDB temporary tablespace.
    InnodbTemporary, "InnoDB temporary", Mysql, Temporary;
    /// Binary log or relay log of MySQL or MariaDB.
    MysqlBinlog, "MySQL binlog", Mysql, WriteAheadLog;
    /// Log of Aria, MariaDB's engine for system tables.
    AriaLog, "Aria log", Mysql, WriteAheadLog;
    /// Table or index of Aria or MyISAM.
    MysqlDatabase, "MySQL database", Mysql, Database;
    /// Other file of a data directory of MySQL or MariaDB: definitions, control files, lists.
    MysqlMetadata, "MySQL metadata", Mysql, Metadata;

    /// LMDB database, which has no log.
    LmdbDatabase, "LMDB database", Lmdb, Database;
    /// LMDB table of readers.
    LmdbLock, "LMDB lock", Lmdb, SharedMemory;

    /// Table or blob file of RocksDB or LevelDB.
    RocksdbDatabase, "RocksDB/LevelDB database", Rocksdb, Database;
    RocksdbWal, "RocksDB/LevelDB WAL", Rocksdb, WriteAheadLog;
    /// Manifest, options or messages of RocksDB or LevelDB.
    RocksdbMetadata, "RocksDB/LevelDB metadata", Rocksdb, Metadata;
    RocksdbLock, "RocksDB/LevelDB lock", Rocksdb, SharedMemory;

    /// Program, library or package.
    Executable, "executable";
    /// Application resource: .dat, .xml and the like.
    Resource, "resource";
    /// Picture, sound or film.
    Multimedia, "multimedia";
    Directory, "directory";
    /// None of the above.
    Other, "other";
}

impl FileType {
    /// True for what a database writes only to be able to redo or undo what it writes elsewhere:
    /// the first J of the journaling of journal.
    pub fn is_database_log(self) -> bool {
        let role = self.of_database().map(|(_, role)| role);
        matches!(
            role,
            Some(Role::WriteAheadLog | Role::RollbackJournal | Role::Doublewrite)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_type_is_in_its_place_and_reads_back_by_its_name() {
        for (place, file_type) in FileType::ALL.iter().enumerate() {
            assert_eq!(*file_type as usize, place);
            assert_eq!(FileType::from_name(file_type.name()), Some(*file_type));
        }
    }

    #[test]
    fn logs_of_every_engine_are_logs_and_nothing_else_is() {
        let logs: Vec<&str> = FileType::ALL
            .iter()
            .filter(|file_type| file_type.is_database_log())
            .map(|file_type| file_type.name())
            .collect();
        let expected = [
            "SQLite journal",
            "SQLite WAL",
            "waldio log",
            "PostgreSQL WAL",
            "InnoDB redo log",
            "InnoDB doublewrite",
            "MySQL binlog",
            "Aria log",
            "RocksDB/LevelDB WAL",
        ];
        assert_eq!(logs, expected);
    }

    #[test]
    fn every_class_reads_back_by_its_name() {
        for class in Class::ALL {
            assert_eq!(Class::from_name(class.name()), Some(class));
        }
    }
}

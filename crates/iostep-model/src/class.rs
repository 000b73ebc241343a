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

impl Layer {
    /// Every layer, in the order of reports.
    pub const ALL: [Layer; 4] = [Layer::Data, Layer::Journal, Layer::Metadata, Layer::Unknown];

    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Data => "data",
            Layer::Journal => "journal",
            Layer::Metadata => "metadata",
            Layer::Unknown => "unknown",
        }
    }
}

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $layer:ident;)*) => {
        /// The class of a run of bytes on the device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Class { $($(#[$doc])* $variant,)* }

        impl Class {
            /// Every class, in the order of reports.
            pub const ALL: &'static [Class] = &[$(Class::$variant,)*];

            /// The name shown to people and stored in tables.
            pub fn name(self) -> &'static str {
                match self { $(Class::$variant => $name,)* }
            }

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
    /// Not known.
    Unknown, "unknown", Unknown;
}

impl Class {
    /// The class with this [`Class::name`].
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.iter().copied().find(|c| c.name() == name)
    }
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

impl Evidence {
    /// Every kind of evidence, in the order of the stored code.
    pub const ALL: [Evidence; 9] = [
        Evidence::PageCache,
        Evidence::DirectIo,
        Evidence::LogBuffer,
        Evidence::StructureName,
        Evidence::BlockHeader,
        Evidence::LayoutRange,
        Evidence::ExtentEvent,
        Evidence::OwnerMap,
        Evidence::None,
    ];

    /// The name shown to people and stored in tables.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::PageCache => "page cache",
            Evidence::DirectIo => "direct I/O",
            Evidence::LogBuffer => "log buffer",
            Evidence::StructureName => "structure name",
            Evidence::BlockHeader => "block header",
            Evidence::LayoutRange => "layout range",
            Evidence::ExtentEvent => "extent event",
            Evidence::OwnerMap => "owner map",
            Evidence::None => "none",
        }
    }

    /// The evidence with this [`Evidence::name`].
    pub fn from_name(name: &str) -> Option<Evidence> {
        Evidence::ALL.into_iter().find(|e| e.name() == name)
    }
}

/// What a file is for (FI'13 section 2.3, ATC'13 figure 2(a)), with SQLite's newer files apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileType {
    /// SQLite database.
    SqliteDatabase,
    /// SQLite rollback journal or super-journal.
    SqliteJournal,
    /// SQLite write-ahead log.
    SqliteWal,
    /// SQLite wal-index.
    SqliteShm,
    /// waldio log.
    WaldioLog,
    /// Program, library or package.
    Executable,
    /// Application resource: .dat, .xml and the like.
    Resource,
    /// Picture, sound or film.
    Multimedia,
    /// Directory.
    Directory,
    /// None of the above.
    Other,
}

impl FileType {
    /// Every type, in the order of reports.
    pub const ALL: [FileType; 10] = [
        FileType::SqliteDatabase,
        FileType::SqliteJournal,
        FileType::SqliteWal,
        FileType::SqliteShm,
        FileType::WaldioLog,
        FileType::Executable,
        FileType::Resource,
        FileType::Multimedia,
        FileType::Directory,
        FileType::Other,
    ];

    /// The name shown to people and stored in tables.
    pub fn name(self) -> &'static str {
        match self {
            FileType::SqliteDatabase => "SQLite database",
            FileType::SqliteJournal => "SQLite journal",
            FileType::SqliteWal => "SQLite WAL",
            FileType::SqliteShm => "SQLite shm",
            FileType::WaldioLog => "waldio log",
            FileType::Executable => "executable",
            FileType::Resource => "resource",
            FileType::Multimedia => "multimedia",
            FileType::Directory => "directory",
            FileType::Other => "other",
        }
    }

    /// The type with this [`FileType::name`].
    pub fn from_name(name: &str) -> Option<FileType> {
        FileType::ALL.into_iter().find(|t| t.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_reads_back_by_its_name() {
        for class in Class::ALL {
            assert_eq!(Class::from_name(class.name()), Some(*class));
        }
    }
}

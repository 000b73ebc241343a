//! What a system call asks for.

use super::OpenFlags;
use super::recording::ThreadId;

/// What a call asks of files. `H` names an open file: [`super::HandleId`] in a recording, a
/// [`super::raw::Descriptor`] before it was followed. `P` names a path: [`super::PathId`], or a
/// [`super::raw::Path`].
///
/// Sizes are what was asked for, never what was done: that is the outcome. A size that the caller
/// passed as -1 is `u64::MAX`, as the kernel sees it. Several calls share an operation (read and
/// readv, rename and renameat2); [`super::Syscall`] tells them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<H, P> {
    /// open, openat, openat2, creat (whose flags are `O_WRONLY|O_CREAT|O_TRUNC`).
    Open {
        /// The file.
        path: P,
        /// Flags, access mode included.
        flags: OpenFlags,
        /// Permissions of a new file.
        mode: u32,
    },
    /// close: one reference less to the open file.
    Close {
        /// The file.
        handle: H,
    },
    /// close_range, and what exec and exit close: one reference less to each.
    CloseMany {
        /// The files, as often as each loses a reference.
        handles: Box<[H]>,
    },
    /// dup, dup2, dup3, `F_DUPFD`: one reference more.
    Duplicate {
        /// The file.
        handle: H,
        /// What the new descriptor pointed to before (dup2, dup3), which is closed by it.
        replaces: Option<H>,
    },
    /// A new process has a reference to each of these too.
    Inherit {
        /// The first thread of the new process.
        child: ThreadId,
        /// The files, as often as the parent had descriptors of each.
        handles: Box<[H]>,
    },
    /// Everything of the read and write families.
    Transfer {
        /// To or from the file.
        direction: Direction,
        /// The file.
        handle: H,
        /// Bytes asked for, of all buffers.
        size: u64,
        /// Buffers: 1 but for the vectored calls.
        buffers: u32,
        /// Where; none: at the file's own position.
        offset: Option<i64>,
        /// `RWF_` flags of preadv2 and pwritev2 (include/uapi/linux/fs.h).
        flags: u32,
    },
    /// lseek.
    Seek {
        /// The file.
        handle: H,
        /// By how much.
        offset: i64,
        /// From where.
        whence: Whence,
    },
    /// truncate, ftruncate.
    Truncate {
        /// The file.
        target: Target<H, P>,
        /// The new size, negative if the caller passed such.
        size: i64,
    },
    /// fallocate.
    Allocate {
        /// The file.
        handle: H,
        /// `FALLOC_FL_` flags (include/uapi/linux/falloc.h).
        mode: u32,
        /// Where.
        offset: i64,
        /// How much.
        size: i64,
    },
    /// fsync, fdatasync, syncfs: the call's name says which.
    Sync {
        /// The file.
        handle: H,
    },
    /// sync_file_range.
    SyncRange {
        /// The file.
        handle: H,
        /// Where.
        offset: i64,
        /// How much.
        size: i64,
        /// `SYNC_FILE_RANGE_` flags.
        flags: u32,
    },
    /// sync.
    SyncAll,
    /// mmap of a file. Faults in it cannot be seen.
    Map {
        /// The file.
        handle: H,
        /// Where in the file.
        offset: i64,
        /// How much.
        size: u64,
        /// `PROT_` flags.
        protection: u32,
        /// `MAP_` flags.
        flags: u32,
    },
    /// munmap of a file's mapping or of a part of it.
    Unmap {
        /// The mapped file.
        handle: H,
        /// Where in the file the part begins.
        offset: i64,
        /// How much.
        size: u64,
    },
    /// mremap of a file's mapping, to another size or place.
    Remap {
        /// The mapped file.
        handle: H,
        /// Where in the file the part begins.
        offset: i64,
        /// How much was mapped.
        size: u64,
        /// How much is mapped afterwards.
        new_size: u64,
    },
    /// msync of a file's mapping.
    SyncMap {
        /// The mapped file.
        handle: H,
        /// Where in the file the part begins.
        offset: i64,
        /// How much.
        size: u64,
        /// `MS_` flags.
        flags: u32,
    },
    /// rename, renameat, renameat2.
    Rename {
        /// The old name.
        from: P,
        /// The new name.
        to: P,
        /// `RENAME_` flags.
        flags: u32,
    },
    /// link, linkat.
    Link {
        /// The file.
        from: P,
        /// Its further name.
        to: P,
        /// `AT_` flags.
        flags: u32,
    },
    /// symlink, symlinkat.
    Symlink {
        /// What the link says, word for word, relative or absolute.
        content: P,
        /// The link.
        path: P,
    },
    /// unlink, and unlinkat without `AT_REMOVEDIR`.
    Unlink {
        /// The name.
        path: P,
    },
    /// mkdir, mkdirat.
    MakeDirectory {
        /// The directory.
        path: P,
        /// Its permissions.
        mode: u32,
    },
    /// rmdir, and unlinkat with `AT_REMOVEDIR`.
    RemoveDirectory {
        /// The directory.
        path: P,
    },
    /// The stat family.
    Stat {
        /// The file.
        target: Target<H, P>,
        /// False for lstat and `AT_SYMLINK_NOFOLLOW`.
        follow: bool,
    },
    /// statfs, fstatfs.
    StatFilesystem {
        /// A file of the filesystem.
        target: Target<H, P>,
    },
    /// The access family.
    Access {
        /// The file.
        path: P,
        /// `R_OK` and so on.
        mode: u32,
    },
    /// readlink, readlinkat.
    ReadLink {
        /// The link.
        path: P,
        /// Bytes of the buffer.
        size: u64,
    },
    /// getdents, getdents64.
    ReadDirectory {
        /// The directory.
        handle: H,
        /// Bytes of the buffer.
        size: u64,
    },
    /// The chmod family.
    SetMode {
        /// The file.
        target: Target<H, P>,
        /// Permissions.
        mode: u32,
    },
    /// The chown family. The numbers are the recorded machine's.
    SetOwner {
        /// The file.
        target: Target<H, P>,
        /// User, -1 for unchanged.
        user: i32,
        /// Group, -1 for unchanged.
        group: i32,
    },
    /// The utime family. The times themselves are not kept.
    SetTimes {
        /// The file.
        target: Target<H, P>,
    },
    /// posix_fadvise and readahead (advice `POSIX_FADV_WILLNEED`, 3).
    Advise {
        /// The file.
        handle: H,
        /// Where.
        offset: i64,
        /// How much, 0 for all.
        size: i64,
        /// `POSIX_FADV_`.
        advice: u32,
    },
    /// flock, and the lock commands of fcntl.
    Lock {
        /// The file.
        handle: H,
        /// Which kind of lock.
        kind: LockKind,
        /// `LOCK_SH` 1, `LOCK_EX` 2, `LOCK_UN` 8 of flock; `F_RDLCK` 0, `F_WRLCK` 1, `F_UNLCK` 2 of
        /// fcntl.
        lock: u32,
        /// Waits until it has the lock.
        wait: bool,
        /// Where; 0 for flock. From the file's start, whatever the caller counted from.
        offset: i64,
        /// How much, 0 for the rest.
        size: i64,
    },
    /// `F_GETFL`, and `F_SETFL` with its flags.
    StatusFlags {
        /// The file.
        handle: H,
        /// The flags to set; none for `F_GETFL`.
        set: Option<OpenFlags>,
    },
    /// ioctl.
    Control {
        /// The file.
        handle: H,
        /// The request's number.
        request: u32,
    },
    /// copy_file_range, sendfile.
    Copy {
        /// Read from.
        from: H,
        /// Where; none: at its own position.
        from_offset: Option<i64>,
        /// Written to.
        to: H,
        /// Where; none: at its own position.
        to_offset: Option<i64>,
        /// How much.
        size: u64,
    },
    /// A request of io_uring that has no operation here.
    Other {
        /// The file.
        handle: H,
        /// `IORING_OP_` (include/uapi/linux/io_uring.h).
        code: u32,
    },
}

/// What a call names its file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target<H, P> {
    /// By an open file.
    Handle(H),
    /// By a path.
    Path(P),
}

/// Which way data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Whose lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// flock.
    Whole,
    /// `F_SETLK`, `F_SETLKW`: the process's.
    Process,
    /// `F_OFD_SETLK`, `F_OFD_SETLKW`: the open file's.
    Description,
    /// `F_GETLK`, `F_OFD_GETLK`: only asks.
    Query,
}

/// What lseek counts from.
#[allow(missing_docs, reason = "the names are those of lseek(2)")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Whence {
    Start,
    Current,
    End,
    Data,
    Hole,
}

crate::names::named!(
    Whence,
    "origin of lseek",
    Start = "set",
    Current = "cur",
    End = "end",
    Data = "data",
    Hole = "hole",
);

/// What translates an operation's files and paths, in the order the variants list them.
pub trait Translate<H, P, H2, P2> {
    /// Why it cannot.
    type Error;

    /// An open file that the call uses.
    fn handle(&mut self, handle: H) -> Result<H2, Self::Error>;

    /// A path that the call uses.
    fn path(&mut self, path: P) -> Result<P2, Self::Error>;

    /// The words of a symbolic link, which are not a path of the caller's.
    fn content(&mut self, content: P) -> Result<P2, Self::Error>;
}

/// One arm a variant: how each field is translated, and the fields that stay.
macro_rules! translated {
    ($self:expr, $by:expr; $($variant:ident { $($how:ident $field:ident),* ; $($kept:ident),* })+) => {
        match $self {
            $(Operation::$variant { $($field,)* $($kept,)* } => Operation::$variant {
                $($field: translate_each::$how($field, $by)?,)*
                $($kept,)*
            },)+
        }
    };
}

impl<H, P> Operation<H, P> {
    /// The same operation with other names for its files and paths, asked for in the order of the
    /// variant's fields.
    ///
    /// Errors: the first of `by`'s.
    pub fn translate<H2, P2, T>(self, by: &mut T) -> Result<Operation<H2, P2>, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        Ok(translated! { self, by;
            Open { path path; flags, mode }
            Close { handle handle;  }
            CloseMany { all handles;  }
            Duplicate { handle handle, replaced replaces;  }
            Inherit { all handles; child }
            Transfer { handle handle; direction, size, buffers, offset, flags }
            Seek { handle handle; offset, whence }
            Truncate { target target; size }
            Allocate { handle handle; mode, offset, size }
            Sync { handle handle;  }
            SyncRange { handle handle; offset, size, flags }
            SyncAll { ;  }
            Map { handle handle; offset, size, protection, flags }
            Unmap { handle handle; offset, size }
            Remap { handle handle; offset, size, new_size }
            SyncMap { handle handle; offset, size, flags }
            Rename { path from, path to; flags }
            Link { path from, path to; flags }
            Symlink { content content, path path;  }
            Unlink { path path;  }
            MakeDirectory { path path; mode }
            RemoveDirectory { path path;  }
            Stat { target target; follow }
            StatFilesystem { target target;  }
            Access { path path; mode }
            ReadLink { path path; size }
            ReadDirectory { handle handle; size }
            SetMode { target target; mode }
            SetOwner { target target; user, group }
            SetTimes { target target;  }
            Advise { handle handle; offset, size, advice }
            Lock { handle handle; kind, lock, wait, offset, size }
            StatusFlags { handle handle; set }
            Control { handle handle; request }
            Copy { handle from, handle to; from_offset, to_offset, size }
            Other { handle handle; code }
        })
    }
}

/// How a field is translated, by what it is.
mod translate_each {
    use super::{Target, Translate};

    pub(super) fn handle<H, P, H2, P2, T>(handle: H, by: &mut T) -> Result<H2, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        by.handle(handle)
    }

    pub(super) fn replaced<H, P, H2, P2, T>(
        handle: Option<H>,
        by: &mut T,
    ) -> Result<Option<H2>, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        handle.map(|handle| by.handle(handle)).transpose()
    }

    pub(super) fn all<H, P, H2, P2, T>(handles: Box<[H]>, by: &mut T) -> Result<Box<[H2]>, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        handles
            .into_iter()
            .map(|handle| by.handle(handle))
            .collect()
    }

    pub(super) fn path<H, P, H2, P2, T>(path: P, by: &mut T) -> Result<P2, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        by.path(path)
    }

    pub(super) fn content<H, P, H2, P2, T>(content: P, by: &mut T) -> Result<P2, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        by.content(content)
    }

    pub(super) fn target<H, P, H2, P2, T>(
        target: Target<H, P>,
        by: &mut T,
    ) -> Result<Target<H2, P2>, T::Error>
    where
        T: Translate<H, P, H2, P2> + ?Sized,
    {
        Ok(match target {
            Target::Handle(handle) => Target::Handle(by.handle(handle)?),
            Target::Path(path) => Target::Path(by.path(path)?),
        })
    }
}

impl<H: Copy, P: Copy> Operation<H, P> {
    /// The open files that the call uses.
    pub fn handles(&self) -> Vec<H> {
        let mut seen = Seen::default();
        let Ok(_) = self.clone().translate(&mut seen);
        seen.handles
    }

    /// The paths that the call uses, symbolic links' words left out.
    pub fn paths(&self) -> Vec<P> {
        let mut seen = Seen::default();
        let Ok(_) = self.clone().translate(&mut seen);
        seen.paths
    }
}

/// Translates everything to nothing and remembers what it was.
struct Seen<H, P> {
    handles: Vec<H>,
    paths: Vec<P>,
}

impl<H, P> Default for Seen<H, P> {
    fn default() -> Seen<H, P> {
        Seen {
            handles: Vec::new(),
            paths: Vec::new(),
        }
    }
}

impl<H, P> Translate<H, P, (), ()> for Seen<H, P> {
    type Error = std::convert::Infallible;

    fn handle(&mut self, handle: H) -> Result<(), Self::Error> {
        self.handles.push(handle);
        Ok(())
    }

    fn path(&mut self, path: P) -> Result<(), Self::Error> {
        self.paths.push(path);
        Ok(())
    }

    fn content(&mut self, _: P) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_names_its_files_and_paths() {
        let rename: Operation<u32, u32> = Operation::Rename {
            from: 1,
            to: 2,
            flags: 0,
        };
        assert_eq!(rename.paths(), [1, 2]);
        let copy: Operation<u32, u32> = Operation::Copy {
            from: 3,
            from_offset: None,
            to: 4,
            to_offset: Some(0),
            size: 9,
        };
        assert_eq!(copy.handles(), [3, 4]);
        let link: Operation<u32, u32> = Operation::Symlink {
            content: 5,
            path: 6,
        };
        assert_eq!(
            link.paths(),
            [6],
            "what a link says is no path that the call looks up"
        );
    }
}

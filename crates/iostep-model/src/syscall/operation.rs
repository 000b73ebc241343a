//! What a system call asks for.

use super::OpenFlags;
use super::identity::ThreadId;

/// What a call names its file by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target<H, P> {
    /// By an open file.
    Handle(H),
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

crate::names::named!(
    LockKind,
    "kind of lock",
    Whole = "file",
    Process = "process",
    Description = "description",
    Query = "query",
);

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

    /// The file that a call is about.
    ///
    /// Errors: those of its handle or path.
    fn target(&mut self, target: Target<H, P>) -> Result<Target<H2, P2>, Self::Error> {
        Ok(match target {
            Target::Handle(handle) => Target::Handle(self.handle(handle)?),
            Target::Path(path) => Target::Path(self.path(path)?),
        })
    }
}

/// Every operation, in the order of its words in a trace. A field is `name: type as kind`, where the
/// kind says how [`Operation::translate`] and the trace's text treat it (text/operation.rs), then the word before its value if that is not its name.
macro_rules! operations {
    ($define:ident) => {
        $define! {
            /// open, openat, openat2, creat (whose flags are `O_WRONLY|O_CREAT|O_TRUNC`).
            Open {
                path: P as path,
                /// Flags, access mode included.
                flags: OpenFlags as open_flags,
                /// Permissions of a new file.
                mode: u32 as mode,
            };
            /// The same calls through a link of /proc to an open file (`/proc/self/fd/3`): another open
            /// file of the same file or directory, whatever names that has.
            Reopen {
                handle: H as handle,
                /// Flags, access mode included.
                flags: OpenFlags as open_flags,
                /// Permissions of what `O_TMPFILE` makes.
                mode: u32 as mode,
            };
            /// close: one reference less to the open file.
            Close {
                handle: H as handle,
            };
            /// close_range, and what exec and exit close: one reference less to each.
            CloseMany {
                /// The files, as often as each loses a reference.
                handles: Box<[H]> as handles,
            };
            /// dup, dup2, dup3, `F_DUPFD`: one reference more.
            Duplicate {
                handle: H as handle,
                /// What the new descriptor pointed to before (dup2, dup3), which is closed by it.
                replaces: Option<H> as replaced,
            };
            /// A new process has a reference to each of these too.
            Inherit {
                /// The first thread of the new process.
                child: ThreadId as thread,
                /// The files, as often as the parent had descriptors of each.
                handles: Box<[H]> as handles,
            };
            /// Everything of the read and write families.
            Transfer {
                /// To or from the file.
                direction: Direction as direction,
                handle: H as handle,
                /// Bytes asked for, of all buffers.
                size: u64 as number,
                /// Where; none: at the file's own position.
                offset: Option<i64> as offset,
                /// Buffers: 1 but for the vectored calls.
                buffers: u32 as buffers,
                /// `RWF_` flags of preadv2 and pwritev2 (include/uapi/linux/fs.h).
                flags: u32 as some_hex,
            };
            /// lseek.
            Seek {
                handle: H as handle,
                /// By how much.
                offset: i64 as number,
                whence: Whence as whence,
            };
            /// truncate, ftruncate.
            Truncate {
                target: Target<H, P> as target,
                /// The new size, negative if the caller passed such.
                size: i64 as number,
            };
            /// fallocate.
            Allocate {
                handle: H as handle,
                /// `FALLOC_FL_` flags (include/uapi/linux/falloc.h).
                mode: u32 as hex "flags",
                offset: i64 as number,
                /// How much.
                size: i64 as number,
            };
            /// fsync, fdatasync, syncfs: the call's name says which.
            Sync {
                handle: H as handle,
            };
            /// sync_file_range.
            SyncRange {
                handle: H as handle,
                offset: i64 as number,
                /// How much.
                size: i64 as number,
                /// `SYNC_FILE_RANGE_` flags.
                flags: u32 as hex,
            };
            SyncAll;
            /// mmap of a file. Faults in it cannot be seen.
            Map {
                handle: H as handle,
                /// Where in the file.
                offset: i64 as number,
                /// How much.
                size: u64 as number,
                /// `PROT_` flags.
                protection: u32 as hex,
                /// `MAP_` flags.
                flags: u32 as hex,
            };
            /// munmap of a file's mapping or of a part of it.
            Unmap {
                /// The mapped file.
                handle: H as handle,
                /// Where in the file the part begins.
                offset: i64 as number,
                /// How much.
                size: u64 as number,
            };
            /// mremap of a file's mapping, to another size or place.
            Remap {
                /// The mapped file.
                handle: H as handle,
                /// Where in the file the part begins.
                offset: i64 as number,
                /// How much was mapped.
                size: u64 as number,
                /// How much is mapped afterwards.
                new_size: u64 as number,
            };
            /// msync of a file's mapping.
            SyncMap {
                /// The mapped file.
                handle: H as handle,
                /// Where in the file the part begins.
                offset: i64 as number,
                /// How much.
                size: u64 as number,
                /// `MS_` flags.
                flags: u32 as hex,
            };
            /// rename, renameat, renameat2.
            Rename {
                /// The old name.
                from: P as path,
                /// The new name.
                to: P as path,
                /// `RENAME_` flags.
                flags: u32 as some_hex,
            };
            /// link, linkat.
            Link {
                /// An open file with `AT_EMPTY_PATH`, or through a link of /proc to it.
                from: Target<H, P> as source,
                /// Its further name.
                to: P as path,
                /// `AT_` flags.
                flags: u32 as some_hex,
            };
            /// symlink, symlinkat.
            Symlink {
                /// What the link says, word for word, relative or absolute.
                content: P as content,
                /// The link.
                path: P as path,
            };
            /// unlink, and unlinkat without `AT_REMOVEDIR`.
            Unlink {
                /// The name.
                path: P as path,
            };
            /// mkdir, mkdirat.
            MakeDirectory {
                /// The directory.
                path: P as path,
                /// Its permissions.
                mode: u32 as mode,
            };
            /// mknod, mknodat: a FIFO, a socket, a device, or an empty file.
            MakeNode {
                /// The node.
                path: P as path,
                /// Its type (`S_IFIFO` and so on; 0 is a file's) and permissions.
                mode: u32 as mode,
            };
            /// rmdir, and unlinkat with `AT_REMOVEDIR`.
            RemoveDirectory {
                /// The directory.
                path: P as path,
            };
            /// The stat family.
            Stat {
                target: Target<H, P> as target,
                /// False for lstat and `AT_SYMLINK_NOFOLLOW`.
                follow: bool as follow,
            };
            /// statfs, fstatfs.
            StatFilesystem {
                /// A file of the filesystem.
                target: Target<H, P> as target,
            };
            /// The access family.
            Access {
                target: Target<H, P> as target,
                /// `R_OK` and so on.
                mode: u32 as number,
            };
            /// readlink, readlinkat.
            ReadLink {
                /// The link.
                path: P as path,
                /// Bytes of the buffer.
                size: u64 as number,
            };
            /// getdents, getdents64.
            ReadDirectory {
                /// The directory.
                handle: H as handle,
                /// Bytes of the buffer.
                size: u64 as number,
            };
            /// The chmod family.
            SetMode {
                target: Target<H, P> as target,
                /// Permissions.
                mode: u32 as mode,
            };
            /// The chown family. The numbers are the recorded machine's.
            SetOwner {
                target: Target<H, P> as target,
                /// User, -1 for unchanged.
                user: i32 as number,
                /// Group, -1 for unchanged.
                group: i32 as number,
            };
            /// The utime family. The times themselves are not kept.
            SetTimes {
                target: Target<H, P> as target,
            };
            /// posix_fadvise and readahead (advice `POSIX_FADV_WILLNEED`, 3).
            Advise {
                handle: H as handle,
                offset: i64 as number,
                /// How much, 0 for all.
                size: i64 as number,
                /// `POSIX_FADV_`.
                advice: u32 as number,
            };
            /// flock, and the lock commands of fcntl.
            Lock {
                handle: H as handle,
                /// `LOCK_SH` 1, `LOCK_EX` 2, `LOCK_UN` 8 of flock; `F_RDLCK` 0, `F_WRLCK` 1, `F_UNLCK` 2 of
                /// fcntl.
                lock: u32 as number,
                kind: LockKind as lock_kind "of",
                /// Where; 0 for flock. From the file's start, whatever the caller counted from.
                offset: i64 as lock_range,
                /// How much, 0 for the rest.
                size: i64 as lock_range,
                /// Waits until it has the lock.
                wait: bool as wait,
            };
            /// `F_GETFL`, and `F_SETFL` with its flags.
            StatusFlags {
                handle: H as handle,
                /// The flags to set; none for `F_GETFL`.
                set: Option<OpenFlags> as status_flags,
            };
            /// ioctl.
            Control {
                handle: H as handle,
                /// The request's number.
                request: u32 as hex,
            };
            /// copy_file_range, sendfile, splice: from one file to another.
            Copy {
                /// Read from.
                from: H as handle,
                /// Written to.
                to: H as handle,
                /// How much.
                size: u64 as number,
                /// Where; none: at its own position.
                from_offset: Option<i64> as offset,
                /// Where; none: at its own position.
                to_offset: Option<i64> as offset,
            };
            /// `FICLONE` and `FICLONERANGE` of ioctl: blocks of one file become those of another, too.
            Reflink {
                /// Whose they are.
                from: H as handle,
                /// Which has them, too.
                to: H as handle,
                /// How much; 0 for all from there on.
                size: u64 as number,
                from_offset: i64 as number,
                to_offset: i64 as number,
            };
            /// A request of io_uring that has no operation here.
            Other {
                handle: H as handle,
                /// `IORING_OP_` (include/uapi/linux/io_uring.h).
                code: u32 as number,
            };
        }
    };
}
pub(super) use operations;

/// How a field of a kind is translated.
macro_rules! translated {
    ($by:ident $value:ident handle) => {
        $by.handle($value)?
    };
    ($by:ident $value:ident replaced) => {
        $value.map(|handle| $by.handle(handle)).transpose()?
    };
    ($by:ident $value:ident handles) => {
        $value
            .into_iter()
            .map(|handle| $by.handle(handle))
            .collect::<Result<_, _>>()?
    };
    ($by:ident $value:ident path) => {
        $by.path($value)?
    };
    ($by:ident $value:ident content) => {
        $by.content($value)?
    };
    ($by:ident $value:ident target) => {
        $by.target($value)?
    };
    ($by:ident $value:ident source) => {
        $by.target($value)?
    };
    ($by:ident $value:ident $other:ident) => {
        $value
    };
}

macro_rules! define {
    ($($(#[$about:meta])* $variant:ident $({
        $($(#[$is:meta])* $field:ident: $type:ty as $kind:ident $($word:literal)?,)+
    })?;)+) => {
        /// What a call asks of files. `H` names an open file: [`super::HandleId`] in a recording, a
        /// [`super::raw::Descriptor`] before it was followed. `P` names a path: [`super::PathId`], or a
        /// [`super::raw::Path`].
        ///
        /// Sizes are what was asked for, never what was done: that is the outcome. A size that the caller
        /// passed as -1 is `u64::MAX`, as the kernel sees it. Several calls share an operation (read and
        /// readv, rename and renameat2); [`super::Syscall`] tells them apart.
        #[allow(missing_docs, reason = "a field without words is the file that the call is about")]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Operation<H, P> {
            $($(#[$about])* $variant $({ $($(#[$is])* $field: $type,)+ })?,)+
        }

        /// An operation without its fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OperationKind {
            $($(#[$about])* $variant,)+
        }

        impl<H, P> Operation<H, P> {
            /// The same operation with other names for its files and paths, asked for in the order
            /// of the variant's fields.
            ///
            /// Errors: the first of `by`'s.
            pub fn translate<H2, P2, T>(self, by: &mut T) -> Result<Operation<H2, P2>, T::Error>
            where
                T: Translate<H, P, H2, P2> + ?Sized,
            {
                Ok(match self {
                    $(Operation::$variant $({ $($field,)+ })? => Operation::$variant $({
                        $($field: translated!(by $field $kind),)+
                    })?,)+
                })
            }
        }
    };
}
operations!(define);

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

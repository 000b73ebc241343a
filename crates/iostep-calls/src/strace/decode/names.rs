//! Every call's name, old ones and those of 32-bit machines included, and who reads it.

use iostep_model::syscall::Syscall as S;
use iostep_model::syscall::raw::DescriptorKind as K;
use rustc_hash::FxHashMap;

use super::{Call, Decoded, Named, OTHER_FILE_CALL, descriptors as d, files as f, processes as p};

/// How a call's arguments are read.
#[derive(Clone, Copy)]
pub(in crate::strace) enum Decoder {
    /// By this, as this call.
    By(S, for<'a> fn(&mut Named<'_, 'a>) -> Decoded<'a>),
    /// It makes descriptors of this, with these flags in an argument.
    Makes(K),
    /// It is left out.
    LeftOut(&'static str),
}

/// The decoders by name.
pub(in crate::strace) struct Table(FxHashMap<&'static [u8], Decoder>);

impl Decoder {
    pub(super) fn decode<'a>(self, call: &mut Call<'a>) -> Decoded<'a> {
        match self {
            Decoder::By(syscall, by) => by(&mut Named { syscall, call }),
            Decoder::Makes(kind) => d::make_other(call, kind),
            Decoder::LeftOut(reason) => Err(reason),
        }
    }
}

impl Table {
    pub(in crate::strace) fn new() -> Table {
        let mut table = FxHashMap::default();
        for (names, decoder) in NAMES {
            for name in names.split(' ') {
                table.insert(name.as_bytes(), *decoder);
            }
        }
        Table(table)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Decoder> {
        self.0.get(name).copied()
    }
}

/// Names with a blank between, as strace's tables (src/linux/*/syscallent.h) have them.
const NAMES: &[(&str, Decoder)] = &[
    ("open", Decoder::By(S::Open, f::open)),
    ("open64", Decoder::By(S::Open, f::open)),
    ("openat openat64", Decoder::By(S::Openat, f::openat)),
    ("openat2", Decoder::By(S::Openat2, f::openat2)),
    ("creat", Decoder::By(S::Creat, f::creat)),
    ("close", Decoder::By(S::Close, d::close)),
    ("close_range", Decoder::By(S::CloseRange, d::close_range)),
    ("dup", Decoder::By(S::Dup, d::duplicate)),
    ("dup2", Decoder::By(S::Dup2, d::duplicate)),
    ("dup3", Decoder::By(S::Dup3, d::duplicate)),
    ("fcntl fcntl64", Decoder::By(S::Fcntl, d::fcntl)),
    ("flock", Decoder::By(S::Flock, d::flock)),
    ("read", Decoder::By(S::Read, d::transfer)),
    ("write", Decoder::By(S::Write, d::transfer)),
    ("pread64 pread", Decoder::By(S::Pread64, d::transfer_at)),
    ("pwrite64 pwrite", Decoder::By(S::Pwrite64, d::transfer_at)),
    ("readv", Decoder::By(S::Readv, d::vector)),
    ("writev", Decoder::By(S::Writev, d::vector)),
    ("preadv", Decoder::By(S::Preadv, d::vector)),
    ("pwritev", Decoder::By(S::Pwritev, d::vector)),
    ("preadv2", Decoder::By(S::Preadv2, d::vector)),
    ("pwritev2", Decoder::By(S::Pwritev2, d::vector)),
    ("lseek", Decoder::By(S::Lseek, d::seek)),
    ("_llseek llseek", Decoder::By(S::Lseek, d::long_seek)),
    ("truncate truncate64", Decoder::By(S::Truncate, f::truncate)),
    (
        "ftruncate ftruncate64",
        Decoder::By(S::Ftruncate, d::truncate),
    ),
    ("fallocate", Decoder::By(S::Fallocate, d::allocate)),
    ("fsync", Decoder::By(S::Fsync, d::sync)),
    ("fdatasync", Decoder::By(S::Fdatasync, d::sync)),
    ("syncfs", Decoder::By(S::Syncfs, d::sync)),
    ("sync", Decoder::By(S::Sync, d::sync_all)),
    (
        "sync_file_range",
        Decoder::By(S::SyncFileRange, d::sync_range),
    ),
    (
        "sync_file_range2 arm_sync_file_range",
        Decoder::By(S::SyncFileRange, d::sync_range_flags_first),
    ),
    ("mmap mmap2 old_mmap", Decoder::By(S::Mmap, d::map)),
    ("munmap", Decoder::By(S::Munmap, d::unmap)),
    ("mremap", Decoder::By(S::Mremap, d::remap)),
    ("msync", Decoder::By(S::Msync, d::sync_map)),
    ("rename", Decoder::By(S::Rename, f::rename)),
    ("renameat", Decoder::By(S::Renameat, f::rename_at)),
    ("renameat2", Decoder::By(S::Renameat2, f::rename_at)),
    ("link", Decoder::By(S::Link, f::link)),
    ("linkat", Decoder::By(S::Linkat, f::link_at)),
    ("symlink", Decoder::By(S::Symlink, f::symlink)),
    ("symlinkat", Decoder::By(S::Symlinkat, f::symlink)),
    ("unlink", Decoder::By(S::Unlink, f::unlink)),
    ("unlinkat", Decoder::By(S::Unlinkat, f::unlink_at)),
    ("mkdir", Decoder::By(S::Mkdir, f::make_directory)),
    ("mkdirat", Decoder::By(S::Mkdirat, f::make_directory)),
    ("rmdir", Decoder::By(S::Rmdir, f::remove_directory)),
    ("stat stat64 oldstat", Decoder::By(S::Stat, f::stat)),
    ("lstat lstat64 oldlstat", Decoder::By(S::Lstat, f::stat)),
    ("fstat fstat64 oldfstat", Decoder::By(S::Fstat, d::stat)),
    (
        "newfstatat fstatat64 fstatat",
        Decoder::By(S::Newfstatat, f::stat_at),
    ),
    ("statx", Decoder::By(S::Statx, f::statx)),
    (
        "statfs statfs64",
        Decoder::By(S::Statfs, f::stat_filesystem),
    ),
    (
        "fstatfs fstatfs64",
        Decoder::By(S::Fstatfs, d::stat_filesystem),
    ),
    ("access", Decoder::By(S::Access, f::access)),
    ("faccessat", Decoder::By(S::Faccessat, f::access_at)),
    ("faccessat2", Decoder::By(S::Faccessat2, f::access_at)),
    ("readlink", Decoder::By(S::Readlink, f::read_link)),
    ("readlinkat", Decoder::By(S::Readlinkat, f::read_link)),
    ("getdents", Decoder::By(S::Getdents, d::read_directory)),
    ("getdents64", Decoder::By(S::Getdents64, d::read_directory)),
    ("chmod", Decoder::By(S::Chmod, f::set_mode)),
    ("fchmod", Decoder::By(S::Fchmod, d::set_mode)),
    ("fchmodat", Decoder::By(S::Fchmodat, f::set_mode)),
    ("chown chown32", Decoder::By(S::Chown, f::set_owner)),
    ("lchown lchown32", Decoder::By(S::Lchown, f::set_owner)),
    ("fchown fchown32", Decoder::By(S::Fchown, d::set_owner)),
    ("fchownat", Decoder::By(S::Fchownat, f::set_owner)),
    ("utime", Decoder::By(S::Utime, f::set_times)),
    ("utimes", Decoder::By(S::Utimes, f::set_times)),
    ("futimesat", Decoder::By(S::Futimesat, f::set_times)),
    (
        "utimensat utimensat_time64",
        Decoder::By(S::Utimensat, f::set_times),
    ),
    ("ioctl", Decoder::By(S::Ioctl, d::control)),
    (
        "fadvise64 fadvise64_64",
        Decoder::By(S::Fadvise64, d::advise),
    ),
    (
        "arm_fadvise64_64",
        Decoder::By(S::Fadvise64, d::advise_advice_first),
    ),
    ("readahead", Decoder::By(S::Readahead, d::read_ahead)),
    (
        "sendfile sendfile64",
        Decoder::By(S::Sendfile, d::send_file),
    ),
    (
        "copy_file_range",
        Decoder::By(S::CopyFileRange, d::copy_range),
    ),
    // Their name in the trace does not matter: they are no calls of it.
    ("chdir", Decoder::By(S::Present, p::change_directory)),
    ("fchdir", Decoder::By(S::Present, p::change_directory_to)),
    ("getcwd", Decoder::By(S::Present, p::current_directory)),
    (
        "clone clone2 __clone2 clone3 fork vfork",
        Decoder::By(S::Clone, p::clone),
    ),
    ("execve execveat", Decoder::By(S::Execve, p::execute)),
    ("pipe pipe2", Decoder::Makes(K::Pipe)),
    (
        "socket socketpair accept accept4",
        Decoder::Makes(K::Socket),
    ),
    (
        "eventfd eventfd2 epoll_create epoll_create1 timerfd_create timerfd signalfd signalfd4 \
         inotify_init inotify_init1 fanotify_init pidfd_open userfaultfd perf_event_open",
        Decoder::Makes(K::Event),
    ),
    ("memfd_create memfd_secret", Decoder::Makes(K::Memory)),
    ("io_uring_setup", Decoder::Makes(K::Uring)),
    ("bpf mq_open", Decoder::Makes(K::Kernel)),
    (
        "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr \
         flistxattr removexattr lremovexattr fremovexattr mknod mknodat splice tee vmsplice \
         io_submit io_uring_enter name_to_handle_at open_by_handle_at chroot pivot_root fchmodat2 \
         mount umount umount2 quotactl uselib swapon swapoff inotify_add_watch cachestat",
        Decoder::LeftOut(OTHER_FILE_CALL),
    ),
];

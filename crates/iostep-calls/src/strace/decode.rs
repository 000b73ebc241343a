//! What a call's text asks for, by the call's name.

mod aio;
mod arguments;
mod others;
mod told;

use iostep_model::syscall::raw::{Action, DescriptorKind as Kind, Returned};
use iostep_model::syscall::{Arguments, Operation, Reason, Syscall};
use rustc_hash::FxHashMap;

use super::split::Call;
use arguments::Text;

pub(super) use arguments::link_says;
pub(super) use others::child_of;
pub(super) use told::{entries, seen};

/// It is about files, and a trace has no operation for it.
pub(super) const OTHER_FILE_CALL: &str = "other call on files";
/// The call says nothing of files.
pub(super) const NOT_FILES: &str = "not about files";
/// strace was older than the call, and wrote its number.
const NAMELESS: &str = "call without a name";
/// No program sees these results: the kernel makes the call again, which is a line of its own, or
/// gives `EINTR` (`ERESTARTSYS` to `ERESTART_RESTARTBLOCK`, include/linux/errno.h).
const RESTARTED: &str = "interrupted by a signal";
const RESTARTS: std::ops::RangeInclusive<i32> = 512..=516;

/// What a call was, or the ledger's reason to leave it out.
type Decoded<'a> = Result<Action<'a>, Reason>;

/// How a call's arguments are read.
#[derive(Clone, Copy)]
enum Decoder {
    /// As the table of calls says.
    As(Syscall),
    /// The same, but flags are the second argument and not the fourth.
    FlagsSecond(Syscall),
    /// By this.
    By(for<'a> fn(&mut Call<'a>) -> Decoded<'a>),
    /// It makes descriptors of this, with these flags in an argument.
    Makes(Kind),
    LeftOut(Reason),
}

impl Decoder {
    fn decode<'a>(self, call: &mut Call<'a>) -> Decoded<'a> {
        match self {
            Decoder::As(syscall) => syscall.action(&Text(call)),
            Decoder::FlagsSecond(syscall) => {
                call.arguments[1..4].rotate_left(1);
                syscall.action(&Text(call))
            }
            Decoder::By(by) => by(call),
            Decoder::Makes(kind) => others::make_other(call, kind),
            Decoder::LeftOut(reason) => Err(reason),
        }
    }
}

/// The decoders by name.
pub(super) struct Table(FxHashMap<&'static [u8], Decoder>);

impl Table {
    pub(super) fn new() -> Table {
        let mut table = FxHashMap::default();
        // From io_uring's requests on they are no calls of a program.
        for syscall in Syscall::ALL.iter().filter(|s| **s < Syscall::UringRead) {
            let names = syscall.names().iter();
            table.extend(names.map(|name| (name.as_bytes(), Decoder::As(*syscall))));
        }
        for (names, decoder) in OTHERS {
            table.extend(names.split(' ').map(|name| (name.as_bytes(), *decoder)));
        }
        Table(table)
    }

    /// True for the name of a call that is read.
    pub(super) fn knows(&self, name: &[u8]) -> bool {
        self.0.contains_key(name)
    }
}

/// Calls that are read otherwise, with a blank between names, as strace's tables
/// (src/linux/*/syscallent.h) have them.
const OTHERS: &[(&str, Decoder)] = &[
    ("_llseek llseek", Decoder::By(long_seek)),
    (
        "sync_file_range2 arm_sync_file_range",
        Decoder::FlagsSecond(Syscall::SyncFileRange),
    ),
    ("arm_fadvise64_64", Decoder::FlagsSecond(Syscall::Fadvise64)),
    ("chdir", Decoder::By(others::change_directory)),
    ("chroot", Decoder::By(others::change_root)),
    // With flags (Linux 6.6).
    ("fchmodat2", Decoder::As(Syscall::Fchmodat)),
    ("fchdir", Decoder::By(others::change_directory_to)),
    ("getcwd", Decoder::By(others::current_directory)),
    (
        "clone clone2 __clone2 clone3 fork vfork",
        Decoder::By(others::clone),
    ),
    ("execve execveat", Decoder::By(others::execute)),
    ("io_submit", Decoder::By(aio::submit)),
    (
        "io_getevents io_pgetevents io_pgetevents_time64",
        Decoder::By(aio::complete),
    ),
    ("io_destroy", Decoder::By(aio::destroy)),
    ("pipe pipe2", Decoder::Makes(Kind::Pipe)),
    (
        "socket socketpair accept accept4",
        Decoder::Makes(Kind::Socket),
    ),
    (
        "eventfd eventfd2 epoll_create epoll_create1 timerfd_create timerfd signalfd signalfd4 \
         inotify_init inotify_init1 fanotify_init pidfd_open userfaultfd perf_event_open",
        Decoder::Makes(Kind::Event),
    ),
    ("memfd_create memfd_secret", Decoder::Makes(Kind::Memory)),
    ("io_uring_setup", Decoder::Makes(Kind::Uring)),
    ("bpf mq_open", Decoder::Makes(Kind::Kernel)),
    (
        "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr \
         flistxattr removexattr lremovexattr fremovexattr tee vmsplice \
         io_uring_enter name_to_handle_at open_by_handle_at pivot_root \
         mount umount umount2 quotactl uselib swapon swapoff inotify_add_watch cachestat",
        Decoder::LeftOut(OTHER_FILE_CALL),
    ),
];

/// `_llseek(3, 0, [100], SEEK_END) = 0`: where it went is in the brackets.
fn long_seek<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    let text = Text(call);
    let operation = Operation::Seek {
        handle: text.descriptor(0)?,
        offset: text.number(1)?,
        whence: text.whence(call.count().saturating_sub(1).max(3))?,
    };
    if let Returned::Value(0) = call.returned {
        call.returned = Returned::Value(text.size(2)?);
    }
    Ok(Action::Operation(Syscall::Lseek, operation))
}

/// The call's action, and what it returned in the trace's terms, which is set in `call`.
pub(super) fn action<'a>(table: &Table, call: &mut Call<'a>) -> Action<'a> {
    let name = call.name;
    let decoded = match (table.0.get(name), call.returned) {
        (Some(_), Returned::Failed(errno)) if RESTARTS.contains(&errno.0) => Err(RESTARTED),
        (Some(decoder), _) => decoder.decode(call),
        (None, _) if name.starts_with(b"SYS_") || name.starts_with(b"syscall_") => Err(NAMELESS),
        (None, _) => Err(NOT_FILES),
    };
    decoded.unwrap_or_else(|reason| left_out(name, reason))
}

/// A line of which no call comes.
pub(super) fn left_out<'a>(name: &'a [u8], reason: &'static str) -> Action<'a> {
    Action::LeftOut {
        name: String::from_utf8_lossy(name),
        reason,
    }
}

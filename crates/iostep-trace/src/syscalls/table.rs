//! Which system calls are recorded, and what of them.

use std::cell::Cell;
use std::sync::LazyLock;

use iostep_model::syscall::constants::Names;
use iostep_model::syscall::raw::{Descriptor, DescriptorKind, Path};
use iostep_model::syscall::{Arguments, LockKind, OpenFlags, Reason, Syscall, Target};

use super::plain_path;
use super::programs::types::{wire_class as Class, wire_extra as Extra};

/// A call that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number on this architecture.
    pub number: i64,
    pub name: &'static str,
    pub shape: Shape,
    /// What is read of it.
    pub layout: Layout,
}

/// What a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One that a trace has.
    Call(Syscall),
    ChangeDirectory,
    ChangeDirectoryOpen,
    ChangeRoot,
    /// Two descriptors at this argument, of this kind.
    Pair {
        /// 0 or 3.
        at: usize,
        kind: DescriptorKind,
    },
    /// Gives a descriptor of what is no file.
    Make(DescriptorKind),
    /// Socket, `struct msghdr`, flags. Descriptors come with messages.
    Receive,
    /// Gives a descriptor of another process.
    Take,
    /// clone and its kin.
    Fork,
    /// io_submit: context, how many, addresses of requests. They come before it.
    Submit,
    /// io_getevents and its kin: context, least, most, events.
    Complete,
    /// io_destroy: context.
    Destroy,
    /// Not kept, for this reason.
    LeftOut(&'static str),
}

/// What else is read of a call; wire.h says what each is.
macro_rules! extras {
    ($($name:ident = $wire:ident,)*) => { $(pub(super) const $name: u32 = Extra::$wire.0;)* };
}
extras!(
    OPENED = EXTRA_OPENED,
    VECTORS = EXTRA_VECTORS,
    LOCK = EXTRA_LOCK,
    PAIR_AT_0 = EXTRA_PAIR_AT_0,
    PAIR_AT_3 = EXTRA_PAIR_AT_3,
    OFFSETS = EXTRA_OFFSETS,
    OFFSET_AT_2 = EXTRA_OFFSET_AT_2,
    OPEN_HOW = EXTRA_OPEN_HOW,
    MAPPED = EXTRA_MAPPED,
    FORK = EXTRA_FORK,
    ANSWERED = EXTRA_ANSWERED,
    MESSAGE = EXTRA_MESSAGE,
    RECEIVED = EXTRA_RECEIVED,
    SUBMITTED = EXTRA_SUBMITTED,
    COMPLETED = EXTRA_COMPLETED,
    STAT = EXTRA_STAT,
    CLONE_RANGE = EXTRA_CLONE_RANGE,
);

/// What of a call's arguments is read from memory, and how much of a record they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The arguments that are strings; with `ANSWERED` and `STAT` the second is what the call fills.
    pub texts: [Option<u32>; 2],
    /// What else is read, of the constants above.
    pub extra: u32,
    /// Words of a record that say everything, if there is no string.
    words: u32,
}

impl Layout {
    fn of(shape: Shape) -> Layout {
        let probe = Probe::default();
        let extra = match shape {
            Shape::Call(syscall) => {
                // Of any numbers something can be made, and it does not matter what.
                let _ = syscall.action(&probe);
                return probe.0.get().with_answer(syscall);
            }
            Shape::ChangeDirectory | Shape::ChangeRoot => {
                probe.text(0);
                0
            }
            Shape::Pair { at: 0, .. } => PAIR_AT_0,
            Shape::Pair { .. } => PAIR_AT_3,
            Shape::Receive => MESSAGE,
            Shape::Take => RECEIVED,
            Shape::Fork => FORK,
            Shape::Submit => SUBMITTED,
            Shape::Complete => COMPLETED,
            _ => 0,
        };
        probe.extra(
            extra,
            if matches!(shape, Shape::Pair { .. }) {
                10
            } else {
                3
            },
        );
        probe.0.get()
    }

    /// What is read beside a call's arguments: the structure that the stat family fills in, and the one
    /// that some requests of ioctl pass.
    fn with_answer(self, syscall: Syscall) -> Layout {
        let at = match syscall {
            Syscall::Stat | Syscall::Lstat | Syscall::Fstat => 1,
            Syscall::Newfstatat => 2,
            Syscall::Statx => 4,
            Syscall::Ioctl => {
                return Layout {
                    extra: CLONE_RANGE,
                    words: 10,
                    ..self
                };
            }
            _ => return self,
        };
        Layout {
            texts: [self.texts[0], Some(at)],
            extra: STAT,
            words: 10,
        }
    }

    /// What the programs of the BPF recorder do with such a call.
    pub fn class(self) -> u32 {
        let [first, second] = self.texts.map(|at| at.map_or(0, |argument| argument + 1));
        // No record is shorter.
        let words = self.words.max(3);
        Class::CLASS_KNOWN.0
            | self.extra << Class::CLASS_EXTRA_SHIFT.0
            | second << Class::CLASS_TEXT_2_SHIFT.0
            | first << Class::CLASS_TEXT_1_SHIFT.0
            | words
    }
}

/// Notes what of a call's arguments is read.
#[derive(Default)]
struct Probe(Cell<Layout>);

impl Probe {
    fn words(&self, words: usize) {
        let mut layout = self.0.get();
        layout.words = layout.words.max(words as u32);
        self.0.set(layout);
    }

    fn extra(&self, extra: u32, words: usize) {
        self.words(words);
        self.0.set(Layout {
            extra,
            ..self.0.get()
        });
    }

    fn text(&self, at: usize) {
        let mut layout = self.0.get();
        layout.texts[usize::from(layout.texts[0].is_some())] = Some(at as u32);
        self.0.set(layout);
    }
}

impl Arguments<'static> for Probe {
    const NONSENSE: Reason = "";

    fn number(&self, at: usize) -> Result<i64, Reason> {
        self.words(at + 1);
        Ok(0)
    }

    fn descriptor(&self, at: usize) -> Result<Descriptor<'static>, Reason> {
        self.id(at).map(Descriptor::number)
    }

    fn flags(&self, at: usize, _names: Names) -> Result<u32, Reason> {
        self.number(at).map(|flags| flags as u32)
    }

    fn open_flags(&self, at: usize) -> Result<OpenFlags, Reason> {
        self.flags(at, &[]).map(OpenFlags)
    }

    fn open_mode(&self, at: usize) -> Result<u32, Reason> {
        self.extra(OPENED, at + 1);
        Ok(0)
    }

    fn creat_mode(&self, at: usize) -> Result<u32, Reason> {
        self.open_mode(at)
    }

    fn how_mode(&self, at: usize) -> Result<u32, Reason> {
        self.extra(OPEN_HOW, at + 1);
        Ok(0)
    }

    fn path(&self, at: usize) -> Result<Path<'static>, Reason> {
        self.text(at);
        Ok(plain_path(b""))
    }

    fn path_at(&self, at: usize) -> Result<Path<'static>, Reason> {
        self.path(at + 1)
    }

    fn path_or_directory(&self, at: usize, _: Option<usize>) -> Result<Path<'static>, Reason> {
        self.path_at(at)
    }

    fn target_at(&self, _: u32) -> Result<Target<Descriptor<'static>, Path<'static>>, Reason> {
        self.named_at(0)
    }

    fn timed(&self, _: usize) -> Result<Target<Descriptor<'static>, Path<'static>>, Reason> {
        self.named_at(0)
    }

    fn answer(&self, at: usize) -> Result<u64, Reason> {
        self.text(at - 1);
        self.extra(ANSWERED, at + 1);
        Ok(0)
    }

    fn vector(&self, _: usize) -> Result<u64, Reason> {
        self.extra(VECTORS, 7);
        Ok(0)
    }

    fn offset_at(&self, at: usize) -> Result<Option<i64>, Reason> {
        self.extra(if at == 2 { OFFSET_AT_2 } else { OFFSETS }, 10);
        Ok(None)
    }

    fn mapped(&self, at: usize) -> Result<Descriptor<'static>, Reason> {
        self.extra(MAPPED, at + 1);
        self.descriptor(at)
    }

    fn request(&self, at: usize) -> Result<u32, Reason> {
        self.flags(at, &[])
    }

    fn clone_range(&self, at: usize) -> Result<(Descriptor<'static>, [i64; 3]), Reason> {
        Ok((self.descriptor(at)?, [0; 3]))
    }

    fn command(&self, _: usize) -> Result<u32, Reason> {
        self.extra(LOCK, 10);
        Ok(libc::F_GETFL as u32)
    }

    fn other_command(&self, _: u32) -> Reason {
        ""
    }

    fn record_lock(&self, _: LockKind) -> Result<(u32, i64, i64), Reason> {
        Ok((0, 0, 0))
    }
}

/// The call of a number on this architecture.
pub fn by_number(number: u16) -> Option<&'static Entry> {
    static INDEX: LazyLock<Vec<Option<&'static Entry>>> = LazyLock::new(|| {
        let mut index = vec![None; CALLS];
        for entry in entries() {
            index[entry.number as usize] = Some(entry);
        }
        index
    });
    *INDEX.get(usize::from(number))?
}

/// `WIRE_CALLS` of bpf/wire.h.
pub const CALLS: usize = 512;

/// Every call that is recorded.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let calls = Syscall::ALL.iter().filter_map(|syscall| {
            let number = syscall.number()?;
            Some((number, syscall.name(), Shape::Call(*syscall)))
        });
        let all = calls.chain(FOLLOWED.iter().chain(OLD).chain(NOT_IN_LIBC).copied());
        all.map(|(number, name, shape)| Entry {
            number,
            name,
            shape,
            layout: Layout::of(shape),
        })
        .collect()
    });
    ENTRIES.iter()
}

/// A call that is no [`Syscall`]: its number, its name, and what it is.
type Followed = (i64, &'static str, Shape);

macro_rules! calls {
    ($($call:ident $name:literal $shape:expr;)*) => {
        &[$((libc::$call, $name, $shape),)*]
    };
}

use DescriptorKind as K;
use Shape as S;

const EXTENDED_ATTRIBUTE: Shape = Shape::LeftOut("extended attribute");

#[rustfmt::skip]
const FOLLOWED: &[Followed] = calls! {
    SYS_chdir "chdir" S::ChangeDirectory;
    SYS_fchdir "fchdir" S::ChangeDirectoryOpen;
    SYS_chroot "chroot" S::ChangeRoot;
    SYS_pipe2 "pipe2" S::Pair { at: 0, kind: K::Pipe };
    SYS_socketpair "socketpair" S::Pair { at: 3, kind: K::Socket };
    SYS_socket "socket" S::Make(K::Socket);
    SYS_accept "accept" S::Make(K::Socket);
    SYS_accept4 "accept4" S::Make(K::Socket);
    SYS_eventfd2 "eventfd2" S::Make(K::Event);
    SYS_epoll_create1 "epoll_create1" S::Make(K::Event);
    SYS_timerfd_create "timerfd_create" S::Make(K::Event);
    SYS_signalfd4 "signalfd4" S::Make(K::Event);
    SYS_inotify_init1 "inotify_init1" S::Make(K::Event);
    SYS_fanotify_init "fanotify_init" S::Make(K::Event);
    SYS_pidfd_open "pidfd_open" S::Make(K::Event);
    SYS_perf_event_open "perf_event_open" S::Make(K::Event);
    SYS_bpf "bpf" S::Make(K::Event);
    SYS_userfaultfd "userfaultfd" S::Make(K::Event);
    SYS_memfd_create "memfd_create" S::Make(K::Memory);
    SYS_io_uring_setup "io_uring_setup" S::Make(K::Uring);
    SYS_recvmsg "recvmsg" S::Receive;
    SYS_pidfd_getfd "pidfd_getfd" S::Take;
    SYS_clone "clone" S::Fork;
    SYS_clone3 "clone3" S::Fork;
    SYS_io_submit "io_submit" S::Submit;
    SYS_io_getevents "io_getevents" S::Complete;
    SYS_io_destroy "io_destroy" S::Destroy;
    SYS_io_uring_enter "io_uring_enter" S::LeftOut("io_uring");
    SYS_setxattr "setxattr" EXTENDED_ATTRIBUTE;
    SYS_lsetxattr "lsetxattr" EXTENDED_ATTRIBUTE;
    SYS_fsetxattr "fsetxattr" EXTENDED_ATTRIBUTE;
    SYS_getxattr "getxattr" EXTENDED_ATTRIBUTE;
    SYS_lgetxattr "lgetxattr" EXTENDED_ATTRIBUTE;
    SYS_fgetxattr "fgetxattr" EXTENDED_ATTRIBUTE;
    SYS_listxattr "listxattr" EXTENDED_ATTRIBUTE;
    SYS_llistxattr "llistxattr" EXTENDED_ATTRIBUTE;
    SYS_flistxattr "flistxattr" EXTENDED_ATTRIBUTE;
    SYS_removexattr "removexattr" EXTENDED_ATTRIBUTE;
    SYS_lremovexattr "lremovexattr" EXTENDED_ATTRIBUTE;
    SYS_fremovexattr "fremovexattr" EXTENDED_ATTRIBUTE;
};

/// include/uapi/asm-generic/unistd.h, and arch/x86/entry/syscalls/syscall_64.tbl.
const NOT_IN_LIBC: &[Followed] = &[
    (
        if cfg!(target_arch = "x86_64") {
            333
        } else {
            292
        },
        "io_pgetevents",
        S::Complete,
    ),
    // fchmodat with flags, since Linux 6.6.
    (452, "fchmodat2", S::Call(Syscall::Fchmodat)),
];

/// What younger architectures lack (include/uapi/asm-generic/unistd.h).
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[Followed] = calls! {
    SYS_pipe "pipe" S::Pair { at: 0, kind: K::Pipe };
    SYS_eventfd "eventfd" S::Make(K::Event);
    SYS_epoll_create "epoll_create" S::Make(K::Event);
    SYS_signalfd "signalfd" S::Make(K::Event);
    SYS_inotify_init "inotify_init" S::Make(K::Event);
    SYS_fork "fork" S::Fork;
    SYS_vfork "vfork" S::Fork;
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Followed] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_there_once_and_has_room_in_the_programs_table() {
        let mut numbers: Vec<i64> = entries().map(|entry| entry.number).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert!(
            numbers
                .iter()
                .all(|number| (0..CALLS as i64).contains(number))
        );
    }
}

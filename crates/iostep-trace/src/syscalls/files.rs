//! What an open opened.

use iostep_model::syscall::raw::{Action, DescriptorKind, Seen};
use iostep_model::syscall::{Content, InitialKind, OpenFlags};

use super::record::{self, Record};
use super::table::{Entry, Shape};

/// `FMODE_CREATED` (include/linux/fs.h).
const CREATED: u32 = 1 << 20;
/// Filesystems without data (include/uapi/linux/magic.h): proc, sysfs, cgroup2, cgroup, debugfs,
/// tracefs, bpf, securityfs, devpts, selinuxfs.
const WITHOUT_DATA: [u32; 10] = [
    0x9fa0,
    0x6265_6572,
    0x6367_7270,
    0x27_e0eb,
    0x6462_6720,
    0x7472_6163,
    0xcafe_4a11,
    0x7363_6673,
    0x1cd1,
    0xf97c_ff8c,
];

/// What a record says of the file, if it says anything.
#[derive(Clone, Copy, Debug)]
struct Opened {
    device: u32,
    inode: u64,
    size: u64,
    mode: u32,
    created: bool,
    filesystem: u32,
}

impl Opened {
    fn of(record: &Record<'_>) -> Option<Opened> {
        record.has(record::SEEN).then(|| Opened {
            device: record.word[6] as u32,
            mode: (record.word[6] >> 32) as u32,
            inode: record.word[7],
            size: record.word[8],
            created: (record.word[9] >> 32) as u32 & CREATED != 0,
            filesystem: record.word[9] as u32,
        })
    }

    fn kind(&self) -> Option<DescriptorKind> {
        kind_of(self.mode, self.filesystem)
    }
}

/// What a file's type and filesystem make a descriptor of it; none for symbolic links.
pub(super) fn kind_of(mode: u32, filesystem: u32) -> Option<DescriptorKind> {
    if WITHOUT_DATA.contains(&filesystem) {
        return Some(DescriptorKind::Kernel);
    }
    match mode & libc::S_IFMT {
        libc::S_IFREG => Some(DescriptorKind::File),
        libc::S_IFDIR => Some(DescriptorKind::Directory),
        libc::S_IFIFO => Some(DescriptorKind::Pipe),
        libc::S_IFSOCK => Some(DescriptorKind::Socket),
        libc::S_IFCHR | libc::S_IFBLK => Some(DescriptorKind::Device),
        _ => None,
    }
}

/// An open of what is no file, whatever its path.
pub(super) fn opened<'a>(record: &Record<'a>, entry: &Entry) -> Option<Action<'a>> {
    let flags = match entry.shape {
        Shape::Open { at: false } => record.word[1],
        _ => record.word[2],
    };
    no_file(record, entry.name, flags)
}

/// The same of whatever opens with these flags.
pub(super) fn no_file<'a>(
    record: &Record<'a>,
    name: &'static str,
    flags: u64,
) -> Option<Action<'a>> {
    let kind = Opened::of(record)?.kind()?;
    (!kind.is_kept()).then(|| Action::MakeOther {
        name: name.into(),
        kind,
        descriptors: i32::try_from(record.result).into_iter().collect(),
        close_on_exec: flags & libc::O_CLOEXEC as u64 != 0,
    })
}

/// What was there before an open. A file that the open cut to nothing was of any size: that is not
/// seen.
pub(super) fn seen(record: &Record<'_>, flags: OpenFlags) -> Option<Seen> {
    let opened = Opened::of(record)?;
    // The path is the directory's, the file has none.
    if flags.has(OpenFlags::O_TMPFILE) {
        return None;
    }
    let kind = match opened.kind()? {
        _ if opened.created => InitialKind::Absent,
        DescriptorKind::Directory => InitialKind::Directory,
        _ => InitialKind::File {
            size: opened.size,
            content: Content::Data,
        },
    };
    // The kernel's own numbering: MKDEV of include/linux/kdev_t.h.
    let (major, minor) = (opened.device >> 20, opened.device & 0xf_ffff);
    Some(Seen {
        identity: (rustix::fs::makedev(major, minor), opened.inode),
        kind,
    })
}

//! What an open opened.

use iostep_model::syscall::raw::{Action, DescriptorKind, Seen, SeenKind};
use iostep_model::syscall::{Content, OpenFlags, Syscall};

use super::record::{self, Record};
use super::table::{self, Entry, Shape};

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

// include/uapi/linux/magic.h.
const TMPFS: u32 = 0x0102_1994;
const HUGETLBFS: u32 = 0x9584_58f6;
const SECRETMEM: u32 = 0x5345_434d;
/// Of eventfd and others (`ANON_INODE_FS_MAGIC`), pidfs, nsfs and dma-buf.
const OF_KERNEL_OBJECTS: [u32; 4] = [0x0904_1934, 0x5049_4446, 0x6e73_6673, 0x444d_4142];

/// What a record says of the file, if it says anything.
#[derive(Clone, Copy, Debug)]
struct Opened {
    device: u32,
    inode: u64,
    size: u64,
    mode: u32,
    created: bool,
    filesystem: u32,
    /// Its number among open files; 0 if it is not known.
    open_file: u64,
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
            open_file: match record.number {
                record::REQUEST => 0,
                record::RECEIVED => record.word[2],
                _ => record.word[5],
            },
        })
    }

    fn seen(&self, kind: SeenKind) -> Seen {
        // The kernel's own numbering: MKDEV of include/linux/kdev_t.h.
        let (major, minor) = (self.device >> 20, self.device & 0xf_ffff);
        Seen {
            identity: Some((rustix::fs::makedev(major, minor), self.inode)),
            names: None,
            kind,
            mode: None,
            open_file: self.open_file,
        }
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
        Shape::Call(Syscall::Open) => record.word[1],
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
        _ if opened.created => SeenKind::Absent,
        DescriptorKind::Directory => SeenKind::Directory,
        _ => SeenKind::File {
            size: Some(opened.size),
            content: Content::Data,
        },
    };
    Some(opened.seen(kind))
}

/// What a call of the stat family answered.
pub(super) fn asked(record: &Record<'_>) -> Option<Seen> {
    let stat = table::by_number(record.number)?.layout.extra == table::STAT;
    if !stat || !record.has(record::SEEN) {
        return None;
    }
    let [names, device_and_mode, inode, size, blocks] = [5, 6, 7, 8, 9].map(|at| record.word[at]);
    let (device, mode) = (device_and_mode & u64::from(u32::MAX), device_and_mode >> 32);
    Some(Seen {
        identity: Some((device, inode)),
        names: Some(names),
        kind: SeenKind::of_stat(mode as u32, Some(size), Some(blocks)),
        mode: Some(mode as u32 & 0o7777),
        open_file: 0,
    })
}

/// What a descriptor is that came from another process with so many links of its file, and the file
/// as it was then.
pub(super) fn received(record: &Record<'_>, links: u64) -> (DescriptorKind, Option<Seen>) {
    let Some(opened) = Opened::of(record) else {
        return (DescriptorKind::SomeFile, None);
    };
    let kind = match opened.filesystem {
        filesystem if OF_KERNEL_OBJECTS.contains(&filesystem) => DescriptorKind::Event,
        // memfd_create makes it there, without a name.
        TMPFS | HUGETLBFS if links == 0 => DescriptorKind::Memory,
        SECRETMEM => DescriptorKind::Memory,
        _ => opened.kind().unwrap_or(DescriptorKind::Event),
    };
    let found = match kind {
        DescriptorKind::Directory => SeenKind::Directory,
        _ => SeenKind::File {
            size: Some(opened.size),
            content: Content::Data,
        },
    };
    let named = kind.is_kept() && links > 0;
    (kind, named.then(|| opened.seen(found)))
}

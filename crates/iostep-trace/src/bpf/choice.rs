//! Which programs are loaded: what a kernel lacks, or its verifier refuses, costs that one thing.

use std::collections::BTreeSet;

use crate::error::{Error, Result};

const EXT: &[&str] = &["ext4", "ext3", "ext2"];
const XFS: &[&str] = &["xfs"];
const BTRFS: &[&str] = &["btrfs"];
const F2FS: &[&str] = &["f2fs"];
const NILFS2: &[&str] = &["nilfs2"];
const FAT: &[&str] = &["vfat", "msdos"];
/// Filesystems with a tracepoint in their fsync.
const TELLING: [&[&str]; 4] = [EXT, XFS, BTRFS, F2FS];
/// The others, and devices without one.
const SILENT: &[&str] = &[
    "nilfs2",
    "vfat",
    "msdos",
    "a device, or any other filesystem",
];
/// Whatever is mounted.
const ANY: &[&str] = &[];

/// Programs that tell one thing: different kernels have different ones of them. A program that is
/// in no part is one without which there is no trace.
struct Part {
    programs: &'static [&'static str],
    filesystems: &'static [&'static str],
    /// What is not known without them.
    tells: &'static str,
}

const fn part(
    programs: &'static [&'static str],
    filesystems: &'static [&'static str],
    tells: &'static str,
) -> Part {
    Part {
        programs,
        filesystems,
        tells,
    }
}

/// Programs that only count, or tell what is older than the trace: what they miss is no event of the
/// trace. They have no entries.
pub(super) const COUNTING: [&str; 4] = [
    "on_back_merge",
    "on_front_merge",
    "on_request_merge",
    "on_get_request",
];

/// Called by the reader and by no event, so never twice at a time: they have no entries either.
const OF_READER: [&str; 2] = [SWEEP, "list_older"];
const SWEEP: &str = "sweep";

const OTHER_FSYNC: &str = "fsync inside other calls (O_SYNC, msync, io_uring)";
const PART_OF_FOLIO: &str = "which process wrote a page of a large folio after another one";
const MAPPED_FOLIO: &str =
    "whether several processes wrote to a large folio, one of them through memory";
const DELETED: &str = "when a file is deleted";

const PARTS: [Part; 30] = [
    part(&["on_dirty_folio"], ANY, "which process made a page dirty"),
    part(
        &["on_ext4_journalled_write"],
        EXT,
        "which process wrote a page with data=journal",
    ),
    part(
        &["on_ext4_delayed_write", "on_ext4_write"],
        EXT,
        PART_OF_FOLIO,
    ),
    // Also where the device itself is written.
    part(&["on_file_buffer"], EXT, MAPPED_FOLIO),
    part(&["on_xfs_write"], XFS, PART_OF_FOLIO),
    part(&["on_xfs_fault", "on_xfs_fault_of_old"], XFS, MAPPED_FOLIO),
    part(&["on_syscall"], ANY, "sync calls"),
    part(&["on_syscall_exit"], ANY, "when a sync call ends"),
    part(
        &[SWEEP],
        ANY,
        "new names of files whose directory was renamed and that have no I/O afterwards",
    ),
    // Without them, bios that were queued before the trace can be taken for some that nobody saw.
    part(&["on_get_request"], ANY, ""),
    // Without it, they are looked for until the end.
    part(&["list_older"], ANY, ""),
    part(&["on_uring_complete"], ANY, "when io_uring's fsync ends"),
    part(&["on_ext4_fsync"], EXT, OTHER_FSYNC),
    part(&["on_ext4_fsync_exit"], EXT, "which commit fsync waits for"),
    part(&["on_commit_start"], EXT, "when a commit begins"),
    part(&["on_commit_end"], EXT, "when a commit ends"),
    part(&["on_ext4_evict"], EXT, DELETED),
    part(&["on_xfs_fsync"], XFS, OTHER_FSYNC),
    part(&["on_xfs_directory_fsync"], XFS, "fsync of directories"),
    part(
        &["on_xfs_log_force"],
        XFS,
        "which log record fsync waits for",
    ),
    part(&["on_xfs_destroy"], XFS, DELETED),
    part(
        &["on_btrfs_fsync", "on_btrfs_fsync_enter"],
        BTRFS,
        OTHER_FSYNC,
    ),
    // Without it the end of the system call is the end.
    part(&["on_btrfs_fsync_exit"], BTRFS, ""),
    part(&["on_btrfs_evict"], BTRFS, DELETED),
    part(&["on_f2fs_fsync", "on_f2fs_fsync_exit"], F2FS, OTHER_FSYNC),
    part(&["on_f2fs_evict"], F2FS, "the end of atomic writes"),
    part(&["on_nilfs_stage"], NILFS2, "which log fsync waits for"),
    part(&["on_nilfs_transaction"], NILFS2, "when a log is complete"),
    part(
        &["on_silent_syscall"],
        SILENT,
        "syncs by O_SYNC writes and msync",
    ),
    part(
        &["on_dirty_buffer"],
        FAT,
        "which process changed the allocation table or a directory",
    ),
];

impl Part {
    fn serves(&self, mounted: &Mounted) -> bool {
        match self.filesystems {
            [] => true,
            SILENT => mounted.has_silent(),
            // It runs with every change of a buffer.
            FAT => self.is_for(mounted),
            _ => mounted.may_grow || self.is_for(mounted),
        }
    }

    fn is_for(&self, mounted: &Mounted) -> bool {
        if self.filesystems == SILENT {
            return mounted.has_silent();
        }
        let mut kinds = mounted.kinds.iter();
        kinds.any(|kind| self.filesystems.contains(&&kind[..]))
    }

    /// True if a filesystem that is there is one that this is for.
    fn is_missed(&self, mounted: &Mounted) -> bool {
        !self.tells.is_empty() && self.is_for(mounted)
    }
}

/// The filesystems on what is traced.
#[derive(Debug)]
struct Mounted {
    /// By the kernel's names for them.
    kinds: Vec<String>,
    /// What is not mounted yet may be soon.
    may_grow: bool,
}

impl Mounted {
    /// True if something is there, or may come, that tells of no fsync by itself.
    fn has_silent(&self) -> bool {
        let tells = |kind: &String| TELLING.iter().any(|some| some.contains(&&kind[..]));
        self.may_grow || !self.kinds.iter().all(tells)
    }
}

/// What of the programs is loaded for what is traced.
#[derive(Debug)]
pub(super) struct Choice {
    mounted: Mounted,
    /// Programs whose tracepoint this kernel does not have.
    absent: BTreeSet<String>,
    /// Programs that this kernel refused.
    refused: BTreeSet<String>,
    /// True if this kernel may preempt a task in a tracepoint.
    is_preempted: bool,
    /// An entry, or a program behind entries, that this kernel refused: then there are none.
    refused_entry: Option<String>,
}

/// True if a kernel may preempt a task in any tracepoint, by `uname -r`: "tracing: Guard
/// __DECLARE_TRACE() use of __DO_TRACE_CALL() with SRCU-fast", Linux 7.0.
pub(crate) fn is_preempted(kernel: &str) -> bool {
    let major = kernel.split(|c: char| !c.is_ascii_digit()).next();
    major.and_then(|n| n.parse().ok()).unwrap_or(0u32) >= 7
}

/// What a BPF program is to the one of ours that it belongs to (`entries.bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Called by the kernel.
    Itself,
    /// The same, called by its entries.
    Behind,
    /// Calls it, if no entry before did.
    Entry,
}

/// The program of ours that a BPF program belongs to, and as what.
pub(super) fn role_of(name: &str) -> (&str, Role) {
    if let Some(program) = name.strip_suffix("_behind") {
        return (program, Role::Behind);
    }
    match name.rsplit_once("_entry") {
        Some((program, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
            (program, Role::Entry)
        }
        _ => (name, Role::Itself),
    }
}

impl Choice {
    /// For filesystems by the kernel's names for them, others of which may be mounted meanwhile; and
    /// for a kernel by `uname -r`.
    pub fn new(filesystems: &[&str], may_grow: bool, kernel: &str) -> Choice {
        Choice {
            mounted: Mounted {
                kinds: filesystems.iter().map(|kind| (*kind).to_owned()).collect(),
                may_grow: may_grow || filesystems.is_empty(),
            },
            absent: BTreeSet::new(),
            refused: BTreeSet::new(),
            is_preempted: is_preempted(kernel),
            refused_entry: None,
        }
    }

    /// True if a BPF program is to be loaded.
    pub fn takes(&self, name: &str) -> bool {
        let (program, role) = role_of(name);
        let in_its_role = self.has_entries(program) != (role == Role::Itself);
        in_its_role && self.has(program)
    }

    /// True if a program of ours is there, in whatever way it is called.
    fn has(&self, program: &str) -> bool {
        let wanted = part_of(program).is_none_or(|part| part.serves(&self.mounted));
        wanted && !self.absent.contains(program) && !self.refused.contains(program)
    }

    /// True if the kernel may preempt a program, so that it is called by its entries.
    pub fn has_entries(&self, program: &str) -> bool {
        let may_be_twice = !OF_READER.contains(&program) && !COUNTING.contains(&program);
        self.is_preempted && self.refused_entry.is_none() && may_be_twice
    }

    /// True if this kernel may preempt a task in a tracepoint.
    pub fn is_preempted(&self) -> bool {
        self.is_preempted
    }

    /// True if something is there, or may come, that tells of no fsync by itself.
    pub fn has_silent(&self) -> bool {
        self.mounted.has_silent()
    }

    /// This kernel has no such tracepoint.
    pub fn set_absent(&mut self, program: &str) {
        self.absent.insert(program.to_owned());
    }

    /// Leaves out the program that the kernel refused, by what libbpf said of it.
    ///
    /// Errors: `Refused` if it cannot be done without, `error` if no program is named.
    pub fn leave_out(&mut self, error: Error, said: &str, kernel: &str) -> Result<()> {
        let Some(program) = refused_program(said) else {
            return Err(error);
        };
        if role_of(program).1 != Role::Itself && self.refused_entry.is_none() {
            self.refused_entry = Some(program.to_owned());
            return Ok(());
        }
        if part_of(program).is_none() || !self.refused.insert(program.to_owned()) {
            return Err(Error::Refused {
                program: program.to_owned(),
                kernel: kernel.to_owned(),
                log: said.to_owned(),
            });
        }
        Ok(())
    }

    /// What a trace with these programs does not tell, a sentence each.
    pub fn notes(&self, kernel: &str) -> Vec<String> {
        let lost = |part: &&Part| !part.programs.iter().any(|program| self.has(program));
        let parts = PARTS.iter().filter(|part| part.serves(&self.mounted));
        let parts = parts
            .filter(lost)
            .filter_map(|part| self.note(part, kernel));
        let entry = self.refused_entry.iter().map(|entry| {
            format!(
                "events may be missing where tasks are preempted; Linux {kernel} refused the BPF program {entry}"
            )
        });
        parts.chain(entry).collect()
    }

    fn note(&self, part: &Part, kernel: &str) -> Option<String> {
        let refused = part.programs.iter().find(|p| self.refused.contains(**p));
        match refused {
            _ if part.tells.is_empty() => None,
            Some(program) => Some(format!(
                "not known: {}; Linux {kernel} refused the BPF program {program}",
                part.tells
            )),
            None if part.is_missed(&self.mounted) => Some(format!(
                "not known: {}; Linux {kernel} has no tracepoint for it",
                part.tells
            )),
            None => None,
        }
    }
}

fn part_of(program: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.programs.contains(&program))
}

/// True for the programs on the tracepoints of all system calls.
pub(super) fn looks_at_calls(program: &str) -> bool {
    matches!(
        program,
        "on_syscall" | "on_syscall_exit" | "on_silent_syscall"
    )
}

/// The program that libbpf could not load, by its own words.
fn refused_program(said: &str) -> Option<&str> {
    said.lines().find_map(|line| {
        let (program, what) = line.split_once("prog '")?.1.split_once("': ")?;
        let failed = ["failed to ", "BPF program load failed"];
        failed
            .iter()
            .any(|words| what.starts_with(words))
            .then_some(program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::skel::{OpenSkel, SkelBuilder};
    use std::mem::MaybeUninit;

    const SAID: &str = "libbpf: prog 'on_ext4_fsync': BPF program load failed: -EACCES
libbpf: prog 'on_ext4_fsync': -- BEGIN PROG LOAD LOG --
R2 invalid mem access 'trusted_ptr_or_null_'
libbpf: prog 'on_ext4_fsync': failed to load: -EACCES
libbpf: failed to load object 'iostep_bpf'
";

    fn error() -> Error {
        Error::unsupported("the BPF object", "not loaded")
    }

    #[test]
    fn every_part_is_one_of_programs_that_are_there() {
        let mut object = MaybeUninit::uninit();
        let open = super::super::IostepSkelBuilder::default()
            .open(&mut object)
            .expect("the object that was built");
        let programs: BTreeSet<String> = open
            .open_object()
            .progs()
            .map(|program| program.name().to_string_lossy().into_owned())
            .collect();
        let parts = PARTS.iter().flat_map(|part| part.programs);
        let unknown: Vec<&&str> = parts.filter(|p| !programs.contains(**p)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn programs_of_other_filesystems_are_left_out() {
        let choice = Choice::new(&["ext4"], false, "6.1.0");
        assert!(choice.takes("on_bio_queue") && choice.takes("on_ext4_fsync"));
        assert!(!choice.takes("on_xfs_fsync") && !choice.takes("on_dirty_buffer"));
        assert!(choice.notes("6.12").is_empty());
    }

    #[test]
    fn on_a_device_without_a_mount_any_filesystem_may_come() {
        let choice = Choice::new(&[], false, "6.1.0");
        assert!(choice.takes("on_ext4_fsync") && choice.takes("on_xfs_fsync"));
        assert!(choice.takes("on_silent_syscall") && !choice.takes("on_dirty_buffer"));
    }

    #[test]
    fn where_a_filesystem_does_not_tell_of_its_fsync_calls_do() {
        for (kind, is_silent) in [
            ("ext4", false),
            ("ext2", false),
            ("xfs", false),
            ("btrfs", false),
            ("f2fs", false),
            ("vfat", true),
            ("nilfs2", true),
            ("exfat", true),
            ("ntfs3", true),
            ("minix", true),
            ("udf", true),
            ("one that comes", true),
        ] {
            let choice = Choice::new(&[kind], false, "6.1.0");
            assert_eq!(choice.takes("on_silent_syscall"), is_silent, "{kind}");
        }
    }

    #[test]
    fn on_a_disk_with_several_filesystems_each_has_its_programs() {
        let choice = Choice::new(&["ext4", "vfat"], true, "6.1.0");
        assert!(choice.takes("on_ext4_fsync") && choice.takes("on_silent_syscall"));
        assert!(choice.takes("on_dirty_buffer") && choice.takes("on_xfs_fsync"));
    }

    #[test]
    fn a_refused_program_costs_what_it_tells() {
        let mut choice = Choice::new(&["ext4"], false, "6.1.0");
        choice.leave_out(error(), SAID, "9.9").expect("optional");
        assert!(!choice.takes("on_ext4_fsync") && choice.takes("on_ext4_fsync_exit"));
        let expected = "not known: fsync inside other calls (O_SYNC, msync, io_uring); \
                        Linux 9.9 refused the BPF program on_ext4_fsync";
        assert_eq!(choice.notes("9.9"), [expected]);
        let again = choice.leave_out(error(), SAID, "9.9");
        assert!(matches!(again, Err(Error::Refused { .. })), "{again:?}");
    }

    #[test]
    fn without_a_core_program_one_plain_sentence_says_so() {
        let said = SAID.replace("on_ext4_fsync", "on_bio_queue");
        let error = Choice::new(&["ext4"], false, "6.1.0")
            .leave_out(error(), &said, "9.9")
            .expect_err("core");
        let text = error.to_string();
        assert!(text.starts_with("Linux 9.9 refused the BPF program on_bio_queue"));
        assert!(!text.contains("trusted_ptr") && text.contains("--verbose"));
    }

    #[test]
    fn what_names_no_program_stays_the_error_that_it_is() {
        let result = Choice::new(&[], false, "6.1.0").leave_out(
            error(),
            "libbpf: map 'events': -12\n",
            "9.9",
        );
        assert!(matches!(result, Err(Error::Unsupported { .. })));
    }

    #[test]
    fn programs_are_called_by_entries_where_a_kernel_may_preempt_them() {
        for (kernel, may) in [
            ("5.15.0", false),
            ("6.12.117+deb13-amd64", false),
            ("6.18.44-x", false),
            ("7.0.1", true),
            ("10.0", true),
        ] {
            let mut choice = Choice::new(&["ext4"], false, kernel);
            assert_eq!(choice.takes("on_syscall_entry1"), may, "{kernel}");
            assert_eq!(choice.takes("on_bio_queue_entry4"), may, "{kernel}");
            assert_eq!(choice.takes("on_syscall"), !may, "{kernel}");
            assert_eq!(choice.takes("on_bio_queue_behind"), may, "{kernel}");
            assert!(!choice.takes("on_xfs_fsync_entry1"), "{kernel}");
            choice.set_absent("on_ext4_evict");
            assert!(!choice.takes("on_ext4_evict_entry1"), "{kernel}");
        }
    }

    #[test]
    fn without_an_entry_programs_are_called_themselves_and_a_note_says_so() {
        let said = SAID.replace("on_ext4_fsync", "on_bio_queue_behind");
        let mut choice = Choice::new(&["ext4"], false, "7.3.4");
        choice.leave_out(error(), &said, "7.3.4").expect("optional");
        assert!(choice.takes("on_bio_queue") && !choice.takes("on_bio_queue_entry1"));
        assert!(choice.takes("on_issue") && !choice.takes("on_issue_behind"));
        let notes = choice.notes("7.3.4");
        assert!(
            notes.len() == 1 && notes[0].ends_with("on_bio_queue_behind"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_tracepoint_that_is_gone_is_told_of_where_its_filesystem_is() {
        let mut choice = Choice::new(&["btrfs"], false, "6.1.0");
        choice.set_absent("on_btrfs_fsync");
        assert!(choice.notes("7.3").is_empty());
        choice.set_absent("on_btrfs_fsync_enter");
        assert_eq!(choice.notes("7.3").len(), 1);
        let mut anywhere = Choice::new(&[], false, "6.1.0");
        anywhere.set_absent("on_btrfs_fsync");
        anywhere.set_absent("on_btrfs_fsync_enter");
        assert!(anywhere.notes("7.3").is_empty());
    }
}

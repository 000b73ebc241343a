//! Which programs are loaded: what a kernel lacks, or its verifier refuses, costs that one thing.

use std::collections::BTreeSet;

use crate::error::{Error, Result};

const EXT: &[&str] = &["ext4", "ext3", "ext2"];
const XFS: &[&str] = &["xfs"];
const BTRFS: &[&str] = &["btrfs"];
const F2FS: &[&str] = &["f2fs"];
const NILFS2: &[&str] = &["nilfs2"];
const FAT: &[&str] = &["vfat", "msdos"];
/// Filesystems without a tracepoint in their fsync.
pub(super) const SILENT: &[&str] = &["nilfs2", "vfat", "msdos"];
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

const OTHER_FSYNC: &str = "fsync inside other calls (O_SYNC, msync, io_uring)";
const DELETED: &str = "when a file is deleted";

const PARTS: [Part; 22] = [
    part(&["on_dirty_folio"], ANY, "which process made a page dirty"),
    part(&["on_syscall"], ANY, "sync calls"),
    part(&["on_syscall_exit"], ANY, "when a sync call ends"),
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
    /// `filesystem` is empty if nothing is mounted.
    fn serves(&self, filesystem: &str) -> bool {
        match self.filesystems {
            [] => true,
            // They run with every call, or with every change of a buffer.
            SILENT | FAT => self.filesystems.contains(&filesystem),
            // What is not mounted yet may be soon.
            _ => filesystem.is_empty() || self.filesystems.contains(&filesystem),
        }
    }

    /// True if the filesystem that is there is one that this is for.
    fn is_missed(&self, filesystem: &str) -> bool {
        !self.tells.is_empty() && self.filesystems.contains(&filesystem)
    }
}

/// What of the programs is loaded for one device.
#[derive(Debug)]
pub(super) struct Choice {
    filesystem: String,
    /// Programs whose tracepoint this kernel does not have.
    absent: BTreeSet<String>,
    /// Programs that this kernel refused.
    refused: BTreeSet<String>,
}

impl Choice {
    /// For a filesystem by the kernel's name for it; empty if nothing is mounted.
    pub fn new(filesystem: &str) -> Choice {
        Choice {
            filesystem: filesystem.to_owned(),
            absent: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// True if a program is to be loaded.
    pub fn takes(&self, program: &str) -> bool {
        let part = part_of(program);
        let wanted = part.is_none_or(|part| part.serves(&self.filesystem));
        wanted && !self.absent.contains(program) && !self.refused.contains(program)
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
        let lost = |part: &&Part| !part.programs.iter().any(|program| self.takes(program));
        let parts = PARTS.iter().filter(|part| part.serves(&self.filesystem));
        parts
            .filter(lost)
            .filter_map(|part| self.note(part, kernel))
            .collect()
    }

    fn note(&self, part: &Part, kernel: &str) -> Option<String> {
        let refused = part.programs.iter().find(|p| self.refused.contains(**p));
        match refused {
            _ if part.tells.is_empty() => None,
            Some(program) => Some(format!(
                "not known: {}; Linux {kernel} refused the BPF program {program}",
                part.tells
            )),
            None if part.is_missed(&self.filesystem) => Some(format!(
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
        let choice = Choice::new("ext4");
        assert!(choice.takes("on_bio_queue") && choice.takes("on_ext4_fsync"));
        assert!(!choice.takes("on_xfs_fsync") && !choice.takes("on_dirty_buffer"));
        assert!(choice.notes("6.12").is_empty());
    }

    #[test]
    fn on_a_device_without_a_mount_any_filesystem_may_come() {
        let choice = Choice::new("");
        assert!(choice.takes("on_ext4_fsync") && choice.takes("on_xfs_fsync"));
        assert!(!choice.takes("on_silent_syscall"));
    }

    #[test]
    fn a_refused_program_costs_what_it_tells() {
        let mut choice = Choice::new("ext4");
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
        let error = Choice::new("ext4")
            .leave_out(error(), &said, "9.9")
            .expect_err("core");
        let text = error.to_string();
        assert!(text.starts_with("Linux 9.9 refused the BPF program on_bio_queue"));
        assert!(!text.contains("trusted_ptr") && text.contains("--verbose"));
    }

    #[test]
    fn what_names_no_program_stays_the_error_that_it_is() {
        let result = Choice::new("").leave_out(error(), "libbpf: map 'events': -12\n", "9.9");
        assert!(matches!(result, Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_tracepoint_that_is_gone_is_told_of_where_its_filesystem_is() {
        let mut choice = Choice::new("btrfs");
        choice.set_absent("on_btrfs_fsync");
        assert!(choice.notes("7.3").is_empty());
        choice.set_absent("on_btrfs_fsync_enter");
        assert_eq!(choice.notes("7.3").len(), 1);
        let mut anywhere = Choice::new("");
        anywhere.set_absent("on_btrfs_fsync");
        anywhere.set_absent("on_btrfs_fsync_enter");
        assert!(anywhere.notes("7.3").is_empty());
    }
}

//! The kernels that iostep is tested on, each in a guest.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::kernels::{self, ARM64, ROLES};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::guest::BROUGHT;

use crate::case::Case;
use crate::guest::{INSIDE, INSIDE_LIMIT, ON_STACKS, Programs, TRACED, run_inside};
use crate::variants;

/// Set by `make test-kernels`: all tests inside run on every kernel, which takes a quarter of an
/// hour; with `IOSTEP_VARIANTS=all` every variant, also on LVM on LUKS, in two and a
/// half hours.
const WHOLE: &str = "IOSTEP_KERNELS";
/// Boot and all, ten times what it takes.
const ONE_LIMIT: Duration = Duration::from_secs(400);

/// The same for every variant.
const ALL_LIMIT: Duration = Duration::from_secs(3600);

/// Set by `cargo xtask arm64`: the directory with iostep and these tests for arm64, each one static
/// file. Without it there are no tests on arm64.
const FOR_ARM64: &str = "IOSTEP_ARM64";
/// Boot and all under emulation, four times what it takes.
const ARM64_LIMIT: Duration = Duration::from_secs(1800);
/// Runs a test of waldio's, which works below `build`, on the guest's disk.
const ON_EXT4: &str = "mkfs.ext4 -q /dev/vda && mount /dev/vda /mnt && mkdir /mnt/build && \
                       cd /mnt && exec \"$0\"";
/// The tests of iostep-load that emulation cannot run, as `cargo xtask arm64` lists them. Some want
/// a place where cargo has theirs.
const LOAD_ON_EXT4: &str = "mkfs.ext4 -q /dev/vda && mount /dev/vda \"$1\" && \
                            while read -r suite arguments; do \
                            TMPDIR=\"$1\" \"$0/$suite\" $arguments || exit; \
                            done <\"$0/in-guests\"";
/// What is told of whole kernels of arm64: each word selects tests in the guest.
const ON_ARM64: [&str; 3] = [INSIDE, "record: ", "replay: "];
/// What tests compile, which a root of another processor has not.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
/// Asks for 4 GiB in memory, which a guest has not.
const TOO_LARGE: &str = "a signal is heard while files are made";
/// The same where a page has 16 KiB: other filesystems ask there for blocks of that size, as f2fs
/// does, or are not made for it.
const ON_LARGE_PAGES: [&str; 3] = ["in the guest: ext4: ", "record: ", "replay: "];

/// A trace on each kernel and, where they are asked for, all tests that run in guests.
pub fn cases() -> Vec<Case> {
    let whole = std::env::var_os(WHOLE).is_some();
    let mut all: Vec<Case> = ROLES.map(|role| case(role, whole)).into();
    if let Some(directory) = std::env::var_os(FOR_ARM64) {
        let programs = |role| on_arm64(role, PathBuf::from(&directory), whole);
        // One kernel is enough to see whether it works at all.
        let roles = if whole { &ARM64[..] } else { &ARM64[1..2] };
        all.extend(roles.iter().copied().map(programs));
    }
    all
}

fn on_arm64(role: &'static str, directory: PathBuf, whole: bool) -> Case {
    let requirements = [Requirement::Root, Requirement::Kernel(role)];
    let name = match whole {
        true => format!("{role}: the tests inside pass"),
        false => format!("{role}: {TRACED}"),
    };
    let case = Case::new(name, requirements, move || {
        let kernel = kernels::image(role).context("it was there a moment ago")?;
        let (kernel, shared) = (kernel.to_string_lossy(), directory.to_string_lossy());
        let agent = directory.join("iostep");
        let programs = Programs {
            tests: directory.join("kernel"),
            iostep: BROUGHT.into(),
        };
        let flags = [
            &["--kernel", &*kernel, "--root", kernels::ARM64_ROOT][..],
            &["--agent", &agent.to_string_lossy(), "--rw", &shared],
            &["--rw", PROGRAMS],
            &["--env", "PATH=/usr/bin:/usr/sbin"],
        ];
        let flags = flags.concat();
        if !whole {
            let traced = format!("{INSIDE}: {TRACED}");
            return programs.run(&[], &flags, &[&traced, "--exact"], ONE_LIMIT);
        }
        // It leaves its page where it runs.
        let demo = format!("cd /tmp && {BROUGHT} demo");
        programs.run_command(&flags, &["sh", "-c", &demo], ONE_LIMIT)?;
        let kill = directory.join("waldio-sqlite3/test-kill");
        let on_ext4 = ["sh", "-c", ON_EXT4, &kill.to_string_lossy()];
        programs.run_command(&flags, &on_ext4, ONE_LIMIT)?;
        let load = directory.join("iostep-load");
        let place = directory.with_file_name("tmp");
        let (load, place) = (load.to_string_lossy(), place.to_string_lossy());
        let on_ext4 = ["sh", "-c", LOAD_ON_EXT4, &load, &place];
        let flags_there = [&flags[..], &["--rw", &place]].concat();
        programs.run_command(&flags_there, &on_ext4, ARM64_LIMIT)?;
        let filters = match role.ends_with("-16k") {
            true => ON_LARGE_PAGES,
            false => ON_ARM64,
        };
        filters.iter().try_for_each(|filter| {
            let selected = [filter, "--skip", TOO_LARGE];
            programs.run(&[], &flags, &selected, ARM64_LIMIT)
        })
    });
    case.about("arm64")
}

fn case(role: &'static str, whole: bool) -> Case {
    let requirements = [
        Requirement::Root,
        Requirement::Guest,
        Requirement::Kernel(role),
        Requirement::Program("mkfs.ext4"),
    ];
    let name = match whole {
        true => format!("{role}: the tests inside pass"),
        false => format!("{role}: {TRACED}"),
    };
    let case = Case::new(name, requirements, move || on(role, whole));
    case.about("every kernel")
}

fn on(role: &str, whole: bool) -> anyhow::Result<()> {
    let kernel = kernels::image(role).context("it was there a moment ago")?;
    let kernel = kernel.to_string_lossy();
    let flags = ["--kernel", &kernel];
    match whole {
        true if variants::are_all_wanted() => {
            run_inside(&flags, &[INSIDE], ALL_LIMIT)?;
            run_inside(&flags, &[ON_STACKS], ALL_LIMIT)
        }
        true => run_inside(&flags, &[INSIDE], INSIDE_LIMIT),
        false => {
            let traced = format!("{INSIDE}: {TRACED}");
            run_inside(&flags, &[&traced, "--exact"], ONE_LIMIT)
        }
    }
}

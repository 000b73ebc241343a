//! Tests that need root and a real kernel.
//!
//! `cargo test -p iostep-kernel-tests --test kernel -- [FILTER]`; build `iostep` first. What a
//! machine lacks makes a test be skipped, with the reasons; `IOSTEP_REQUIRE=all`, or a list such
//! as `root,btf,xfs`, makes that a failure. `IOSTEP_KERNELS=1` runs the tests of guests on every
//! kernel that `scripts/setup guest` unpacks. `IOSTEP_KEEP=DIR` keeps each scenario's trace.
//! `IOSTEP_LANE` is `guests` for what runs in guests alone, `machine` for the rest.

mod advise;
mod attribution;
mod bad_input;
mod batch_atomic;
mod bench;
mod busy;
mod careful;
mod case;
mod cgroups;
mod clean;
mod databases;
mod devices;
mod disks;
mod every_kernel;
mod explain;
mod f2fs;
mod fat;
mod faults;
mod flushes;
mod folios;
mod ground_truth;
mod guest;
mod guest_filesystems;
mod lab;
mod lane;
mod names;
mod namespaces;
mod nilfs2;
mod overlay;
mod partition;
mod raw_device;
mod read_back;
mod record;
mod recording;
mod refused;
mod replay;
mod requests;
mod rewritten;
mod rights;
mod serve;
mod shown;
mod splits;
mod stacks;
mod stage;
mod stall;
mod variants;
mod waiting;
mod whose;

use std::path::Path;

use libtest_mimic::Arguments;

use crate::lane::Lane;

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::from_args();
    let lane = Lane::from_environment()?;
    // The tests measure the machine that they share.
    arguments.test_threads.get_or_insert(1);
    let scratch = tempfile::Builder::new()
        .prefix("iostep-kernel-")
        .tempdir()
        .expect("a temporary directory can be made");
    prepare(scratch.path());
    let mut cases = ground_truth::cases();
    cases.extend(advise::cases());
    cases.extend(attribution::cases());
    cases.extend(bad_input::cases());
    cases.extend(bench::cases());
    cases.extend(busy::cases());
    cases.extend(waiting::cases());
    cases.extend(careful::cases());
    cases.extend(cgroups::cases());
    cases.extend(rewritten::cases());
    cases.extend(clean::cases());
    cases.extend(databases::cases());
    cases.extend(devices::cases());
    cases.extend(disks::cases());
    cases.extend(explain::cases());
    cases.extend(faults::cases());
    cases.extend(flushes::cases());
    cases.extend(folios::cases());
    cases.extend(every_kernel::cases());
    cases.extend(guest::cases());
    cases.extend(guest::cases_inside(guest_filesystems::cases()));
    cases.extend(guest::cases_on_stacks(stacks::cases()));
    cases.extend(guest::cases_on_stacks(partition::cases_on_stacks()));
    cases.extend(guest::cases_without_bpf(attribution::cases_without_bpf()));
    cases.extend(guest::cases_without_bpf(bad_input::cases_without_bpf()));
    cases.extend(guest::cases_on_disks(busy::cases_on_disks()));
    cases.extend(guest::cases_under_systemd());
    cases.extend(lab::cases());
    cases.extend(names::cases());
    cases.extend(namespaces::cases());
    cases.extend(overlay::cases());
    cases.extend(partition::cases());
    cases.extend(raw_device::cases());
    cases.extend(read_back::cases());
    cases.extend(replay::cases());
    cases.extend(record::cases());
    cases.extend(refused::cases());
    cases.extend(requests::cases());
    cases.extend(rights::cases());
    cases.extend(serve::cases());
    cases.extend(shown::cases());
    cases.extend(splits::cases());
    cases.extend(stall::cases());
    cases.extend(whose::cases());
    let trials = cases
        .into_iter()
        .filter(|case| lane.has(case))
        .map(|case| case.into_trial(scratch.path()))
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(scratch);
    conclusion.exit()
}

/// Moves this process into mounts of its own, where that is allowed, and all temporary files of
/// its children below `scratch`.
fn prepare(scratch: &Path) {
    // SAFETY: no other thread exists yet that could read the environment.
    unsafe { std::env::set_var("TMPDIR", scratch) };
    // Everybody can enter, so that tests can give up root.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scratch, open).expect("the directory is ours");
    // Without the right to do so there is no right to mount anything either: those tests skip.
    let _ = iostep_lab::enter_private_mounts();
}

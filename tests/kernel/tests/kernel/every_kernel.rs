//! The kernels that iostep is tested on, each in a guest.

use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::kernels::{self, ROLES};
use iostep_kernel_tests::requirement::Requirement;

use crate::case::Case;
use crate::guest::{INSIDE, INSIDE_LIMIT, ON_STACKS, TRACED, run_inside};
use crate::variants;

/// Set by `make test-kernels`: all tests inside run on every kernel, which takes a quarter of an
/// hour; with `IOSTEP_VARIANTS=all` every variant, also on LVM on LUKS, in two and a
/// half hours.
const WHOLE: &str = "IOSTEP_KERNELS";
/// Boot and all, ten times what it takes.
const ONE_LIMIT: Duration = Duration::from_secs(400);

/// The same for every variant.
const ALL_LIMIT: Duration = Duration::from_secs(3600);

/// A trace on each kernel and, where they are asked for, all tests that run in guests.
pub fn cases() -> Vec<Case> {
    let whole = std::env::var_os(WHOLE).is_some();
    ROLES.map(|role| case(role, whole)).into()
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

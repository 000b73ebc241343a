//! The capabilities that this program needs, and those that it gives up.

use iostep_model::rights::way_to_capabilities;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::error::{Error, Result};

/// A capability's name, and its number in include/uapi/linux/capability.h.
type Right = (&'static str, u32);

const SYS_ADMIN: u32 = 21;
const SYSLOG: Right = ("CAP_SYSLOG", 34);
/// What BPF needs.
const BPF: [Right; 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
/// What a trace of block I/O needs: the addresses of kernel functions too.
pub(crate) const TRACE: [Right; 3] = [BPF[0], BPF[1], SYSLOG];
/// What it takes to become another user.
pub(crate) const USER: [Right; 2] = [("CAP_SETUID", 7), ("CAP_SETGID", 6)];

/// What a recorder still does once it records: it reads BPF's maps, looks at processes in /proc or
/// stops them, ends its command, and writes into directories of others.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Gives up what the calling thread does not need any more once it records, for good. What it starts
/// as root from then on has its rights again; so does what was started before.
pub fn give_up() {
    let Ok(mut own) = capabilities(None) else {
        return;
    };
    let mut kept = KEPT;
    // Before Linux 5.8 that stood for BPF and the look at others.
    if !own.permitted.contains(CapabilitySet::BPF) {
        kept |= CapabilitySet::SYS_ADMIN;
    }
    own.effective &= kept;
    own.permitted &= kept;
    // Fewer rights are always granted.
    let _ = set_capabilities(None, own);
}

/// Has no right at all any more. Makes only one system call, which is safe between fork and exec.
pub(crate) fn give_up_all() -> rustix::io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets)
}

/// Errors: `Unsupported`, with the names of the rights that BPF needs and this process lacks.
pub(crate) fn check_rights(what: &str) -> Result<()> {
    let Some(missing) = missing_rights(&BPF) else {
        return Ok(());
    };
    Err(Error::unsupported(
        format!("no right to {what}"),
        format!(
            "{missing} missing; {}; `iostep record --via ptrace` needs no rights",
            way_to_capabilities()
        ),
    ))
}

impl Error {
    /// Builds the `map_err` closure for a BPF operation, which may only have lacked rights.
    pub(crate) fn kernel(what: impl ToString) -> impl FnOnce(libbpf_rs::Error) -> Error {
        let what = what.to_string();
        move |error| match check_rights(&what) {
            Err(error) => error,
            Ok(()) => Error::Kernel {
                what,
                reason: format!("{error:#}"),
            },
        }
    }
}

/// Those of `needed` that this process lacks. CAP_SYS_ADMIN stands for those of BPF
/// (capabilities(7)), and not for CAP_SYSLOG where addresses are asked for (kernel/ksyms_common.c).
pub(crate) fn missing_rights(needed: &[Right]) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    missing_of(u64::from_str_radix(mask.trim(), 16).ok()?, needed)
}

fn missing_of(effective: u64, needed: &[Right]) -> Option<String> {
    let has = |number: u32| effective >> number & 1 == 1;
    let stands_in = |right: &Right| BPF.contains(right) && has(SYS_ADMIN);
    let lacks = |right: &&Right| !has(right.1) && !stands_in(right);
    let names: Vec<&str> = needed.iter().filter(lacks).map(|right| right.0).collect();
    match names.len() {
        0 => None,
        1 => Some(format!("{} is", names[0])),
        _ => Some(format!("{} are", names.join(" and "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named() {
        assert_eq!(
            missing_of(0, &BPF).as_deref(),
            Some("CAP_BPF and CAP_PERFMON are")
        );
        assert_eq!(missing_of(1 << 39, &BPF).as_deref(), Some("CAP_PERFMON is"));
        assert_eq!(missing_of(1 << 39 | 1 << 38, &BPF), None);
        assert_eq!(missing_of(1 << 21, &BPF), None);
        assert_eq!(
            missing_of(1 << 21, &TRACE).as_deref(),
            Some("CAP_SYSLOG is")
        );
        assert_eq!(missing_of(7 << 38 | 1 << 34, &TRACE), None);
        assert_eq!(
            missing_of(1 << 21, &USER).as_deref(),
            Some("CAP_SETUID and CAP_SETGID are")
        );
    }
}

//! A query can read the lake and write where it spills, whatever it says: the kernel sees to it
//! (landlock, Linux 5.13 and newer).

use anyhow::Context;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr,
};

use crate::request::Request;

/// What the kernel reports of itself, and time zones.
const SYSTEM: [&str; 3] = ["/proc/self", "/sys/fs/cgroup", "/usr/share/zoneinfo"];

/// Keeps this process, and all threads that it starts, from everything else. A kernel without
/// landlock leaves it at what the engine itself refuses.
///
/// Errors: the lake cannot be opened; the kernel refuses.
pub fn enter(request: &Request) -> anyhow::Result<()> {
    let abi = ABI::V2;
    let open = |path: &std::path::Path| {
        PathFd::new(path).with_context(|| format!("{}: cannot open", path.display()))
    };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .create()?
        .add_rule(PathBeneath::new(
            open(&request.lake)?,
            AccessFs::from_read(abi),
        ))?
        .add_rule(PathBeneath::new(
            open(&request.spill)?,
            AccessFs::from_all(abi),
        ))?;
    for path in SYSTEM {
        // Not every system has each.
        if let Ok(path) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(path, AccessFs::from_read(abi)))?;
        }
    }
    rules.restrict_self().context("landlock")?;
    Ok(())
}

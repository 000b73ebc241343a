//! What runs in guests can run beside what runs on this machine: they share nothing but the
//! processors, and a guest keeps one of them busy. `cargo xtask test` starts a process for each.

use anyhow::bail;

use crate::case::Case;

/// Which tests this process runs.
#[derive(Clone, Copy)]
pub enum Lane {
    All,
    Machine,
    Guests,
}

impl Lane {
    /// As `IOSTEP_LANE` says; all tests if it says nothing.
    ///
    /// Errors: it names no lane.
    pub fn from_environment() -> anyhow::Result<Lane> {
        match std::env::var("IOSTEP_LANE").as_deref() {
            Err(_) => Ok(Lane::All),
            Ok("machine") => Ok(Lane::Machine),
            Ok("guests") => Ok(Lane::Guests),
            Ok(other) => bail!("IOSTEP_LANE={other:?} is none of machine, guests"),
        }
    }

    /// True if this process runs the test.
    pub fn has(self, case: &Case) -> bool {
        match self {
            Lane::All => true,
            Lane::Machine => !case.is_in_guest(),
            Lane::Guests => case.is_in_guest(),
        }
    }
}

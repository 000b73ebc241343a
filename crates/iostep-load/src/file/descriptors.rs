//! Enough file descriptors for every thread.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Result};

/// A thread's file and ring.
const EACH: u64 = 2;
/// What the process has open besides, and may open later.
const OTHERS: u64 = 128;

/// Raises this process's soft limit of open files to what `threads` take, if need be: most
/// systems begin with 1024.
///
/// Errors: `Refused` if the hard limit is lower.
pub fn allow_for(threads: u32) -> Result<()> {
    let wanted = EACH * u64::from(threads) + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|most| most >= wanted) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| Error::Refused {
        what: format!("{threads} threads take {wanted} open files, which the limit is below"),
        hint: "raise ulimit -n or choose fewer --threads".into(),
    })
}

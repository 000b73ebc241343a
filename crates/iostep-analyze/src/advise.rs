//! Which settings would make a database faster here: what is worth measuring, and what the
//! measurements mean.
//!
//! ```text
//! recording       what an application did to its database, out of a trace of system calls
//! workload        the transactions that are measured
//! setting         how a database is set up, and as what bench is asked to measure it
//! mount_option    options of the filesystem that need no mkfs
//! candidate       the settings that are worth measuring
//! turns           what came of each run
//! gain            how much faster, with its interval
//! wear            how much less is written
//! lines           what to put into the application
//! advice          all of it, ranked
//! ```

mod advice;
mod candidate;
mod gain;
mod lines;
mod mount_option;
pub mod recording;
mod setting;
mod turns;
mod wear;
mod workload;

#[cfg(test)]
pub(crate) mod fixture;

pub use advice::{Advice, DeviceCosts, Planned, Row, SCHEMA_VERSION, Situation, State};
pub use candidate::{Candidate, candidates};
pub use gain::{Gain, Verdict};
pub use mount_option::{MountOption, is_in_force, mount_options};
pub use setting::Setting;
pub use turns::{CommitCost, Observation, Setback, Turn, Turns};
pub use wear::Wear;
pub use workload::Workload;

//! Runs threads of work and measures them; what the work is, is the caller's.
//!
//! ```text
//! pool      starts the threads at once, samples every second, ends them, adds up a Run
//! thread    what a worker sees: when to begin, what to record
//! record    histograms and seconds of one thread
//! pace      schedules, think time, and sleeping that is on time
//! usage     processor time and context switches
//! random    seeds, permutations, incompressible bytes
//! ```

mod pace;
mod pool;
pub mod random;
mod record;
mod thread;
mod usage;

pub use pace::{Pacer, sleep_until};
pub use pool::{Observer, Pool, Progress, Worker};
pub use record::Operation;
pub use thread::{Fault, Thread};
pub(crate) use usage::{between, machine_time};

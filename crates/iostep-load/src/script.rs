//! SQL, one transaction at a time.
//!
//! [`Driver`] starts a child process and tells it over a pipe what to do; [`serve`] is the child's
//! side, a [`Runner`] behind that pipe. A process of its own keeps the I/O of the script apart from
//! the I/O of whoever measures it.
//!
//! SQLite is the one compiled into iostep, set up like a stock build: foreign keys off, and
//! `fdatasync` where it is enough (without `HAVE_FDATASYNC` SQLite calls `fsync` everywhere, which
//! costs more of the filesystem's log).

mod asked;
mod copy;
mod database;
mod driver;
mod held;
mod protocol;
mod runner;
mod server;
mod settings;
mod size;
mod statements;

pub use copy::{copy, copy_unshared, exchanged, log_of};
pub(crate) use database::check_is_file;
pub use database::own_mode;
pub use driver::Driver;
pub use held::held_path;
pub use protocol::{Closed, Database, Executed, Opened, Outcome, Transaction};
pub use runner::Runner;
pub use server::serve;
pub use settings::Settings;
pub use statements::split;

const _: () = assert!(
    option_env!("LIBSQLITE3_FLAGS").is_some(),
    "build inside the repository: .cargo/config.toml makes SQLite use fdatasync"
);

//! The lake: a directory with the traces and results of many devices, as tables of Parquet that
//! every engine of SQL reads.
//!
//! | table | a row is |
//! |---|---|
//! | `segments` | a part of a request with one owner and one origin |
//! | `requests` | a request to a device |
//! | `syncs` | a sync call |
//! | `traces` | a trace |
//! | `results` | a run of a result of `iostep bench` |
//!
//! Each lies in `TABLE/date=YYYY-MM-DD/*.parquet`. `docs/format-lake.md` names the columns and says
//! what readers may rely on; [`lake`] says how that is kept through SIGKILL and other writers.

mod add;
mod column;
mod compact;
mod date;
pub mod engine;
mod format;
mod hidden;
pub mod lake;
mod merge;
mod options;
mod place;
mod question;
mod reader;
mod rows;
mod table;
mod writer;

pub use add::{Added, identity};
pub use compact::{Compacted, Sizes};
pub use date::Date;
pub use format::VERSION;
pub use lake::{Lake, Totals};
pub use options::Options;
pub use question::{QUESTIONS, Question};
pub use table::Table;

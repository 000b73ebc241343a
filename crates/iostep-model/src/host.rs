//! The machine that something ran on.

use serde::{Deserialize, Serialize};

/// A kernel and the processors below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`, in a guest the guest's.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// The processor's name; empty if nobody looked.
    pub processor: String,
    /// CPUs that the process may use; 0 if nobody looked.
    pub cpus: u32,
}

impl Host {
    /// This one, without its processor.
    pub fn running() -> Host {
        let uname = rustix::system::uname();
        Host {
            kernel: uname.release().to_string_lossy().into_owned(),
            machine: uname.machine().to_string_lossy().into_owned(),
            ..Host::default()
        }
    }
}

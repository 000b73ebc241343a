//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {what}: {source}", path = path.display())]
    Io {
        /// The file, device or directory.
        path: PathBuf,
        /// What was attempted, as a verb phrase.
        what: &'static str,
        /// The reason given.
        source: std::io::Error,
    },
    /// This machine, device or filesystem cannot do it; the text says what would.
    #[error("{object}: {reason}")]
    Unsupported {
        /// What was looked at.
        object: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// What was asked for makes no sense; the text says what does.
    #[error("{object}: {reason}")]
    Usage {
        /// What was given.
        object: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The kernel refused a BPF operation.
    #[error("the kernel refused to {what}: {reason}")]
    Kernel {
        /// What was attempted, as a verb phrase.
        what: String,
        /// The reason, in libbpf's words.
        reason: String,
    },
    /// The kernel does not take a BPF program without which nothing can be recorded.
    #[error(
        "Linux {kernel} refused the BPF program {program}, without which nothing can be recorded; \
         use --backend tracefs, or see why with iostep trace --verbose"
    )]
    Refused {
        /// The program's name.
        program: String,
        /// `uname -r`.
        kernel: String,
        /// What libbpf and the verifier said.
        log: String,
    },
    /// A file of the trace could not be written or read.
    #[error(transparent)]
    Trace(#[from] iostep_model::Error),
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Builds the `map_err` closure for an operation on `path`.
    pub(crate) fn io<E: Into<std::io::Error>>(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let path = path.into();
        move |source| Error::Io {
            path,
            what,
            source: source.into(),
        }
    }

    /// Something that this machine cannot do.
    pub(crate) fn unsupported(object: impl ToString, reason: impl ToString) -> Error {
        Error::Unsupported {
            object: object.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Something that was asked for in vain.
    pub(crate) fn usage(object: impl ToString, reason: impl ToString) -> Error {
        Error::Usage {
            object: object.to_string(),
            reason: reason.to_string(),
        }
    }

    /// Builds the `map_err` closure for a BPF operation.
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

/// A capability's name, and its number in include/uapi/linux/capability.h.
type Right = (&'static str, u32);

const SYS_ADMIN: u32 = 21;
const SYSLOG: Right = ("CAP_SYSLOG", 34);
/// What BPF needs.
const BPF: [Right; 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
/// What a trace of block I/O needs: the addresses of kernel functions too.
pub(crate) const TRACE: [Right; 3] = [BPF[0], BPF[1], SYSLOG];

/// Errors: `Unsupported`, with the names of the rights that BPF needs and this process lacks.
pub(crate) fn check_rights(what: &str) -> Result<()> {
    let Some(missing) = missing_rights(&BPF) else {
        return Ok(());
    };
    Err(Error::unsupported(
        format!("no right to {what}"),
        format!(
            "{missing} missing; run it as root, as `sudo iostep ...` does; `iostep record --via \
             ptrace` needs no rights"
        ),
    ))
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
    let lacks = |right: &&Right| !has(right.1) && (**right == SYSLOG || !has(SYS_ADMIN));
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
    }
}

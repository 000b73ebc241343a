//! What an error comes to: the exit status, and the line that is printed.

use std::io::ErrorKind;
use std::process::ExitCode;

use iostep_model::Error as Unreadable;
use iostep_model::printable;
use iostep_model::printable::printable_lines;

/// Bad usage.
const USAGE: u8 = 2;
/// This machine cannot do it (as kselftest's skip).
const UNSUPPORTED: u8 = 4;

/// The exit status for an error: the first cause that knows its own decides.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    // Whatever could not be read for want of a descriptor may be good.
    if error
        .chain()
        .any(|cause| is_of_descriptors(&cause.to_string()))
    {
        return ExitCode::FAILURE;
    }
    let status = error.chain().find_map(status);
    status.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// True if this machine cannot record or make a filesystem, or does not let this process. What SQLite
/// or a generator cannot do on a filesystem, they cannot do on another machine's either.
pub fn is_of_the_machine(error: &anyhow::Error) -> bool {
    let is_of_the_load = error.chain().any(|cause| cause.is::<iostep_load::Error>());
    !is_of_the_load && error.chain().find_map(status) == Some(UNSUPPORTED)
}

/// What a command was given to read is not there, or is nothing that it reads.
#[derive(Debug)]
struct BadInput(anyhow::Error);

/// Makes an error one about the command's input, which is the user's to mend.
pub fn bad_input(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(BadInput(error.into()))
}

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BadInput {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.chain().nth(1)
    }
}

fn status(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if cause.is::<BadInput>() {
        return Some(USAGE);
    }
    // A wrong path has one status, whoever finds out.
    if let Some(error) = cause.downcast_ref::<std::io::Error>() {
        return match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => Some(USAGE),
            // Ours, as of a result that is a block device. The kernel has other reasons for its own.
            ErrorKind::InvalidInput if error.raw_os_error().is_none() => Some(USAGE),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<Unreadable>() {
        return match error {
            Unreadable::Corrupt { .. } | Unreadable::Unsupported { .. } => Some(USAGE),
            Unreadable::Io { .. } => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<iostep_trace::Error>() {
        return match error {
            iostep_trace::Error::Usage { .. } => Some(USAGE),
            iostep_trace::Error::Unsupported { .. } | iostep_trace::Error::Refused { .. } => {
                Some(UNSUPPORTED)
            }
            iostep_trace::Error::Trace(error) => status(error),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<iostep_lab::Error>() {
        return match error {
            iostep_lab::Error::Usage { .. } => Some(USAGE),
            iostep_lab::Error::Unsupported { .. } => Some(UNSUPPORTED),
            iostep_lab::Error::File(error) => status(error),
            _ => None,
        };
    }
    let error = cause.downcast_ref::<iostep_load::Error>()?;
    match error {
        iostep_load::Error::Usage { .. } => Some(USAGE),
        iostep_load::Error::Unsupported { .. } => Some(UNSUPPORTED),
        _ => None,
    }
}

/// An error with its causes in one line, which the console of a guest follows. Most of our errors
/// name their cause themselves: what was said already is not said again.
pub fn describe(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let cause = match cause.downcast_ref() {
            Some(iostep_lab::Error::Guest { .. }) => printable_lines(&text),
            _ => printable(&text),
        };
        if line.is_empty() {
            line = cause.into_owned();
        } else if !line.ends_with(&*cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    if is_of_descriptors(&line) {
        line.push_str("; allow this process more of them, as with ulimit -n 4096");
    }
    line
}

/// True if descriptors ran out, whoever says so: some errors come through a pipe, as text.
fn is_of_descriptors(text: &str) -> bool {
    text.contains(&std::io::Error::from(rustix::io::Errno::MFILE).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_can_be_written_to_is_bad_usage() {
        let error = std::io::Error::new(ErrorKind::InvalidInput, "it is a block device");
        assert_eq!(status(&error), Some(USAGE));
        assert_eq!(
            status(&std::io::Error::from(rustix::io::Errno::INVAL)),
            None
        );
        assert_eq!(
            status(&std::io::Error::from(rustix::io::Errno::NOSPC)),
            None
        );
    }
}

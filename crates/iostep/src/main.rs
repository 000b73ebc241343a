//! The command `iostep`.

use std::process::ExitCode;

fn main() -> ExitCode {
    iostep::main()
}

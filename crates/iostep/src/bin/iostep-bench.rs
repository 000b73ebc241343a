//! The command `iostep-bench`, for machines that nobody traces.

use std::process::ExitCode;

fn main() -> ExitCode {
    iostep::main_of_bench()
}

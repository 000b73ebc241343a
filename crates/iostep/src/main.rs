//! The iostep command.
fn main() {}

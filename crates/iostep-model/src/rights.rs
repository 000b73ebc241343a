//! What a user does who lacks a right.

use rustix::process::geteuid;

/// What to do where a capability is missing. To tell root to run it as root helps nobody.
pub fn way_to_capabilities() -> &'static str {
    way(geteuid().is_root())
}

fn way(is_root: bool) -> &'static str {
    match is_root {
        false => "run it as root, as `sudo iostep ...` does",
        true => {
            "this root lacks it, as in most containers: start the container or the service with \
             this capability, as `docker run --cap-add` does"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_become_root() {
        assert!(way(false).contains("sudo"));
        assert!(!way(true).contains("sudo"));
    }
}

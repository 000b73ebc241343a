//! Which lacks of a machine are failures. Tests of other packages have this file as a module, too.

use libtest_mimic::{Completion, Failed};

/// What becomes of a test for lack of these, by their names: it is skipped with the reason, or has
/// failed if `IOSTEP_REQUIRE` names one. That is a list separated by commas, or `all`.
pub fn skip(missing: &[&str], reason: &str) -> Result<Completion, Failed> {
    let demanded = std::env::var("IOSTEP_REQUIRE").unwrap_or_default();
    match missing.iter().any(|name| names(&demanded, name)) {
        true => Err(format!("IOSTEP_REQUIRE asks for it: {reason}").into()),
        false => Ok(Completion::ignored_with(reason)),
    }
}

fn names(demanded: &str, requirement: &str) -> bool {
    let mut names = demanded.split(',').map(str::trim);
    names.any(|name| name == "all" || name == requirement)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_demand_names_requirements_or_all() {
        use super::names;
        assert!(names("root, btf", "btf"));
        assert!(names("all", "xfs"));
        assert!(names("xfs", "xfs"));
        assert!(!names("root", "btf"));
        assert!(!names("", "root"));
    }
}

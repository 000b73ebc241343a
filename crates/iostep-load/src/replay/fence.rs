//! The second belt around a replay: whatever slips through the lookups beneath the root, the
//! kernel refuses to the threads (Landlock, Documentation/userspace-api/landlock.rst).

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError,
};

use super::root::Root;

/// The first version that lets names move between directories; before it, a rename would fail
/// that succeeds otherwise.
const LEAST: ABI = ABI::V2;
/// The newest whose rights about files are known here: truncate (3), ioctls of devices (5).
const KNOWN: ABI = ABI::V5;

/// What no replay does, not beneath its root either.
fn never() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev
}

/// Allows this thread, and those that it starts from now on, to open and change files beneath the
/// root only. False where the kernel cannot; paths are looked up beneath the root all the same.
pub(super) fn raise(root: &Root) -> bool {
    try_raise(root).is_ok()
}

fn try_raise(root: &Root) -> Result<(), RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let beneath = PathBeneath::new(root.directory(), all & !never());
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rule(beneath)?
        .restrict_self()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work_directory::WorkDirectory;

    #[test]
    fn behind_the_fence_only_the_directory_can_be_opened() {
        let parent = tempfile::tempdir().expect("a directory");
        let outside = parent.path().join("outside");
        std::fs::write(&outside, "precious").expect("write");
        let directory = WorkDirectory::open(parent.path(), "inside").expect("make");
        let root = Root::open(&directory).expect("open");
        let (below, other) = (directory.path().join("a"), directory.path().join("d/b"));
        std::fs::create_dir(directory.path().join("d")).expect("make");
        let tried = std::thread::scope(|scope| {
            let fenced = scope.spawn(|| {
                raise(&root).then(|| {
                    let made = std::fs::write(&below, "x").is_ok();
                    let moved = std::fs::rename(&below, &other).is_ok();
                    let kinds = [
                        std::fs::read(&outside).map(drop),
                        std::fs::write(&outside, "y"),
                        std::fs::remove_file(&outside),
                    ];
                    let denied = std::io::ErrorKind::PermissionDenied;
                    let kept_out = kinds.map(|done| done.is_err_and(|e| e.kind() == denied));
                    (made, moved, kept_out)
                })
            });
            fenced.join().expect("no panic")
        });
        // The threads that did not raise it are free, whatever the kernel can.
        assert_eq!(std::fs::read(&outside).expect("read"), b"precious");
        match tried {
            Some(tried) => assert_eq!(tried, (true, true, [true; 3])),
            None => eprintln!("skipped: the kernel has no Landlock of version 2"),
        }
        root.clear().expect("clear");
    }
}

//! The kernel's log: a test that makes the kernel complain has failed.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// What blktests and fstests look for, too.
const COMPLAINTS: [&str; 9] = [
    "WARNING: ",
    "BUG: ",
    "Oops: ",
    "general protection fault",
    "possible recursive locking",
    "possible circular locking",
    "INFO: task ",
    "UBSAN: ",
    "kernel BUG at",
];

/// What Linux 5.10 says once of a discard on a loop device without a granularity, as mkfs makes, and
/// refuses it (block/blk-lib.c).
const OLD_NEWS: (&str, &str) = ("5.10.", "__blkdev_issue_discard");

/// A place in the kernel's log.
pub struct Mark {
    log: Option<File>,
}

impl Mark {
    /// The log's present end. Without the right to read it, nothing will be found.
    pub fn now() -> Mark {
        let open = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg");
        let mark = Mark { log: open.ok() };
        if let Some(log) = &mark.log {
            // SEEK_END: behind the last record (Documentation/ABI/testing/dev-kmsg).
            let end = rustix::fs::seek(log, rustix::fs::SeekFrom::End(0));
            if end.is_err() {
                return Mark { log: None };
            }
        }
        mark
    }

    /// Complaints since then.
    pub fn complaints(self) -> Vec<String> {
        let Some(mut log) = self.log else {
            return Vec::new();
        };
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        let mut found = Vec::new();
        let mut record = [0; 8192];
        loop {
            match log.read(&mut record) {
                Ok(0) => return found,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    found.extend(complaint(&text, &release));
                }
                // EPIPE: records were overwritten; the next read goes on behind them.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return found,
            }
        }
    }
}

/// The message of a `/dev/kmsg` record, if it is a complaint on this release of the kernel.
fn complaint(record: &str, release: &str) -> Option<String> {
    let (_, message) = record.split_once(';')?;
    let message = message.lines().next()?;
    let bad = COMPLAINTS.iter().any(|c| message.contains(c));
    let is_old_news = release.starts_with(OLD_NEWS.0) && message.contains(OLD_NEWS.1);
    (bad && !is_old_news).then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_from_news() {
        let warning = "4,300,5000,-;WARNING: CPU: 1 PID: 7 at fs/inode.c:1 drop+0x1\n SUBSYSTEM=x";
        let found = complaint(warning, "5.10.0").expect("a complaint");
        assert!(found.ends_with("drop+0x1"), "{found}");
        let old = warning.replace("drop+0x1", "__blkdev_issue_discard+0x22b/0x290");
        assert_eq!(complaint(&old, "5.10.0-46-amd64"), None);
        assert!(complaint(&old, "6.1.0").is_some());
        let news = "6,301,5001,-;EXT4-fs (loop0): mounted";
        assert_eq!(complaint(news, "6.1.0"), None);
    }
}

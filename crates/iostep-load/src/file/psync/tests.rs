use std::cell::RefCell;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::*;
use crate::file::offsets::Offsets;
use crate::file::region::Tally;
use crate::file::sample;

fn region() -> Region {
    let job = sample::job("/x");
    Region {
        file: tempfile::tempfile().expect("a file"),
        path: "/x/file-0".into(),
        file_number: 0,
        thread: 0,
        offsets: Offsets::new(&job, 0, 0, &Arc::default()),
        tally: Tally::default(),
        job,
    }
}

/// Answers of a system call, one after the other; what they say is done really is.
fn scripted(
    answers: &[rustix::io::Result<usize>],
) -> impl Fn(&File, &[u8], u64) -> rustix::io::Result<usize> {
    let answers = RefCell::new(answers.iter().copied());
    move |file, bytes, offset_bytes| {
        let answer = answers.borrow_mut().next().expect("one call too many");
        if let Ok(count) = answer {
            file.write_all_at(&bytes[..count], offset_bytes)
                .expect("a write");
        }
        answer
    }
}

fn write(answers: &[rustix::io::Result<usize>]) -> (std::result::Result<(), Fault>, Vec<u8>) {
    let region = region();
    let record: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8).collect();
    let call = scripted(answers);
    let first = call(&region.file, &record, 4096);
    let result = region.write_rest(&call, &record, 4096, first);
    let mut content = vec![0; 8192];
    let count = region.file.read_at(&mut content, 0).expect("a read");
    content.truncate(count);
    assert!(content.is_empty() || content[4096..] == record[..content.len() - 4096]);
    (result, content)
}

#[test]
fn a_write_that_is_cut_or_interrupted_goes_on_where_it_was() {
    let interrupted = Err(Errno::INTR);
    for answers in [
        &[Ok(1000), Ok(3096)][..],
        &[interrupted, Ok(4096)],
        &[Ok(1), interrupted, Ok(4000), interrupted, Ok(95)],
    ] {
        let (result, content) = write(answers);
        assert_eq!(result, Ok(()));
        assert_eq!(content.len(), 8192);
    }
}

#[test]
fn a_write_that_fails_says_of_what_where_and_why() {
    for (answers, reason) in [
        (
            &[Ok(1000), Err(Errno::NOSPC)][..],
            "No space left on device (os error 28)",
        ),
        (&[Err(Errno::IO)], "Input/output error (os error 5)"),
        (&[Ok(1000), Ok(0)], "it ended after 1000 bytes"),
    ] {
        let fault = write(answers).0.expect_err("a fault");
        assert_eq!(fault.attempt, "write of 4096 bytes at 4096 of /x/file-0");
        assert_eq!(fault.reason, reason);
    }
}

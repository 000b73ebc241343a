//! Makes requests of io_uring on files in a directory.
//!
//! ```text
//! requests DIRECTORY names      every request that names a file by a path
//! requests DIRECTORY files      requests on open files, registered ones among them
//! requests DIRECTORY polled     some that a kernel thread takes from the ring
//! requests DIRECTORY silent     some whose completion is not to be told
//! requests DIRECTORY pending    one that is never complete
//! ```

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::path::Path;

use anyhow::Context;
use io_uring::{IoUring, opcode, squeue, types};

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, directory, what] = &words[..] else {
        anyhow::bail!("usage: requests DIRECTORY names|files|polled|silent|pending");
    };
    std::env::set_current_dir(Path::new(directory))?;
    match what.as_str() {
        "names" => names(),
        "files" => files(),
        "polled" => polled(),
        "silent" => silent(),
        "pending" => pending(),
        other => anyhow::bail!("{other}: not known"),
    }
}

const HERE: types::Fd = types::Fd(libc::AT_FDCWD);

/// Hands a request in and waits for its result.
fn ask(ring: &mut IoUring, entry: squeue::Entry) -> anyhow::Result<i32> {
    // SAFETY: all that an entry points to outlives this call, which ends with its completion.
    unsafe { ring.submission().push(&entry) }.context("the queue is full")?;
    ring.submit_and_wait(1)?;
    let completion = ring.completion().next().context("a completion")?;
    Ok(completion.result())
}

fn open(ring: &mut IoUring, path: &CStr, flags: i32) -> anyhow::Result<RawFd> {
    let entry = opcode::OpenAt::new(HERE, path.as_ptr())
        .flags(flags)
        .mode(0o640);
    let fd = ask(ring, entry.build())?;
    anyhow::ensure!(
        fd >= 0,
        "{path:?}: {}",
        std::io::Error::from_raw_os_error(-fd)
    );
    Ok(fd)
}

fn names() -> anyhow::Result<()> {
    let ring = &mut IoUring::new(8)?;
    let file = open(ring, c"file", libc::O_RDWR | libc::O_CREAT)?;
    let how = types::OpenHow::new().flags((libc::O_RDONLY | libc::O_DIRECTORY) as u64);
    let here = ask(
        ring,
        opcode::OpenAt2::new(HERE, c".".as_ptr(), &how).build(),
    )?;
    let at = types::Fd(here);
    // SAFETY: all zeros is a statx without an answer.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    let statx = (&raw mut answer).cast();
    let missing = opcode::OpenAt::new(at, c"missing".as_ptr()).flags(libc::O_RDONLY);
    for entry in [
        missing.build(),
        opcode::Statx::new(at, c"file".as_ptr(), statx).build(),
        opcode::Statx::new(types::Fd(file), c"".as_ptr(), statx)
            .flags(libc::AT_EMPTY_PATH)
            .build(),
        opcode::MkDirAt::new(at, c"dir".as_ptr())
            .mode(0o750)
            .build(),
        opcode::LinkAt::new(at, c"file".as_ptr(), HERE, c"dir/link".as_ptr()).build(),
        opcode::SymlinkAt::new(at, c"dir/link".as_ptr(), c"soft".as_ptr()).build(),
        opcode::RenameAt::new(HERE, c"dir/link".as_ptr(), at, c"renamed".as_ptr())
            .flags(libc::RENAME_NOREPLACE)
            .build(),
        opcode::UnlinkAt::new(at, c"renamed".as_ptr()).build(),
        opcode::UnlinkAt::new(at, c"dir".as_ptr())
            .flags(libc::AT_REMOVEDIR)
            .build(),
        opcode::Close::new(types::Fd(file)).build(),
        opcode::Close::new(at).build(),
    ] {
        ask(ring, entry)?;
    }
    Ok(())
}

fn files() -> anyhow::Result<()> {
    let ring = &mut IoUring::new(8)?;
    let kept = open(ring, c"kept", libc::O_RDWR | libc::O_CREAT)?;
    let closed = open(ring, c"closed", libc::O_RDWR | libc::O_CREAT)?;
    let mut memory = [7_u8; 8192];
    let at = memory.as_mut_ptr();
    let vectors = [5000, 1000].map(|iov_len| libc::iovec {
        iov_base: at.cast(),
        iov_len,
    });
    // SAFETY: the memory outlives the ring's use of it.
    unsafe { ring.submitter().register_buffers(&vectors[..1])? };
    ring.submitter().register_files(&[kept, closed])?;
    ask(ring, opcode::Close::new(types::Fd(closed)).build())?;
    let (file, first, second) = (types::Fd(kept), types::Fixed(0), types::Fixed(1));
    for entry in [
        opcode::Write::new(file, at, 8000).offset(0).build(),
        opcode::Write::new(file, at, 100)
            .offset(0)
            .rw_flags(libc::RWF_DSYNC)
            .build(),
        opcode::Writev::new(file, vectors.as_ptr(), 2)
            .offset(100)
            .build(),
        opcode::Read::new(first, at, 4096).offset(4).build(),
        opcode::WriteFixed::new(first, at, 4000, 0)
            .offset(512)
            .build(),
        opcode::ReadFixed::new(first, at, 2000, 0).offset(0).build(),
        opcode::Fadvise::new(first, 4096, libc::POSIX_FADV_RANDOM).build(),
        opcode::Fallocate::new(first, 20_000).offset(10).build(),
        opcode::Ftruncate::new(first, 9000).build(),
        opcode::Fsync::new(first).build(),
        opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build(),
        // Open still, but no descriptor stands for it.
        opcode::Write::new(second, at, 10).offset(0).build(),
        // No such file.
        opcode::Read::new(types::Fd(1234), at, 10).build(),
    ] {
        ask(ring, entry)?;
    }
    Ok(())
}

fn polled() -> anyhow::Result<()> {
    let ring = &mut IoUring::builder().setup_sqpoll(50).build(8)?;
    let file = open(ring, c"polled", libc::O_RDWR | libc::O_CREAT)?;
    let memory = [1; 100];
    for number in 0..20 {
        let write = opcode::Write::new(types::Fd(file), memory.as_ptr(), 100);
        ask(ring, write.offset(100 * number).build())?;
    }
    ask(ring, opcode::Fsync::new(types::Fd(file)).build())?;
    Ok(())
}

/// Each write but the last is followed by another with the kernel's same memory, or not.
fn silent() -> anyhow::Result<()> {
    let ring = &mut IoUring::new(8)?;
    let file = open(ring, c"silent", libc::O_RDWR | libc::O_CREAT)?;
    let memory = [1; 100];
    for number in 0..10 {
        let write = opcode::Write::new(types::Fd(file), memory.as_ptr(), 100);
        let entry = write.offset(100 * number).build();
        let entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        // SAFETY: the memory outlives the ring.
        unsafe { ring.submission().push(&entry) }.context("the queue is full")?;
        ring.submit()?;
    }
    let size = || std::fs::metadata("silent").map(|found| found.len());
    while size()? < 1000 {
        std::thread::yield_now();
    }
    Ok(())
}

/// A read of a pipe that nobody writes to.
fn pending() -> anyhow::Result<()> {
    let ring = &mut IoUring::new(8)?;
    let (reader, _writer) = std::io::pipe()?;
    let mut memory = [0; 10];
    let fd = types::Fd(std::os::fd::AsRawFd::as_raw_fd(&reader));
    let entry = opcode::Read::new(fd, memory.as_mut_ptr(), 10).build();
    // SAFETY: the process ends before the memory does.
    unsafe { ring.submission().push(&entry) }.context("the queue is full")?;
    ring.submit()?;
    std::process::exit(0);
}

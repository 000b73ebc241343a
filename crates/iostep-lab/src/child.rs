//! Processes that end with whoever started them.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostep_model::printable;
use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal,
};

/// How often its end and the wish for it are looked for.
const TICK: Duration = Duration::from_millis(20);
/// How long one that was asked to end may take: its files have to be removed and written.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is kept of a complaint.
const MAX_COMPLAINT_BYTES: u64 = 4 << 10;

/// How a process ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// The first line that it wrote to standard error, without `iostep: ` before it.
    pub complaint: Option<String>,
    /// Why it was asked to end, if it was.
    pub cut: Option<Cut>,
}

/// Why a process was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A signal came.
    Interrupted,
    /// Its time was over.
    TimeLimit,
}

impl Ended {
    /// What to tell of one that did not succeed.
    pub fn reason(&self) -> String {
        self.complaint
            .clone()
            .unwrap_or_else(|| self.status.to_string())
    }
}

/// Runs a command to its end, without input; its output goes where the caller says. It is asked to end when `interrupted`
/// becomes true and after `limit`, killed if it does not, and ended by the kernel if this process
/// dies.
///
/// Errors: it cannot be started or waited for.
pub fn run(
    command: &mut Command,
    interrupted: &AtomicBool,
    limit: Option<Duration>,
) -> io::Result<Ended> {
    // A group of its own, so that what it started can be killed with it.
    command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = with_parent(command).spawn()?;
    let stderr = child.stderr.take();
    let complaint = stderr.map(|stderr| std::thread::spawn(move || first_complaint(stderr)));
    let (status, cut) = wait(&mut child, interrupted, limit)?;
    if cut.is_some() {
        // Whatever it left would hold the pipe, and the filesystem below.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    Ok(Ended {
        status,
        complaint: complaint.and_then(|thread| thread.join().ok().flatten()),
        cut,
    })
}

/// The kernel ends the child if this process dies: two of them must not measure each other.
fn with_parent(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: only two system calls are made, which are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            match rustix::process::getppid() {
                Some(now) if now == parent => Ok(()),
                _ => Err(rustix::io::Errno::SRCH.into()),
            }
        })
    }
}

fn wait(
    child: &mut Child,
    interrupted: &AtomicBool,
    limit: Option<Duration>,
) -> io::Result<(ExitStatus, Option<Cut>)> {
    let pid = Pid::from_child(child);
    let end = limit.map(|limit| Instant::now() + limit);
    let mut cut: Option<(Cut, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, cut.map(|(cut, _)| cut)));
        }
        let now = Instant::now();
        match cut {
            None => {
                let why = match interrupted.load(Ordering::Relaxed) {
                    true => Some(Cut::Interrupted),
                    false => end.filter(|end| now >= *end).map(|_| Cut::TimeLimit),
                };
                if let Some(why) = why {
                    cut = Some((why, now + PATIENCE));
                    kill_process(pid, Signal::TERM)?;
                }
            }
            Some((_, last)) if now >= last => kill_process_group(pid, Signal::KILL)?,
            Some(_) => {}
        }
        std::thread::sleep(TICK);
    }
}

/// The first line of a standard error. All of it is read, or the process would wait for that.
fn first_complaint(mut stderr: impl Read) -> Option<String> {
    let mut kept = Vec::new();
    let _ = stderr
        .by_ref()
        .take(MAX_COMPLAINT_BYTES)
        .read_to_end(&mut kept);
    let _ = io::copy(&mut stderr, &mut io::sink());
    let text = String::from_utf8_lossy(&kept);
    let line = text.lines().next()?;
    let line = line.strip_prefix("iostep: ").unwrap_or(line);
    Some(printable(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_first_line_of_a_complaint_is_kept() {
        let never = AtomicBool::new(false);
        let script = "echo 'iostep: no room' >&2; echo more >&2; exit 3";
        let ended = run(&mut shell(script), &never, None).expect("it runs");
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!((ended.reason().as_str(), ended.cut), ("no room", None));
    }

    #[test]
    fn one_that_takes_too_long_ends_with_what_it_started() {
        let never = AtomicBool::new(false);
        let limit = Some(Duration::from_millis(50));
        let begin = Instant::now();
        let ended = run(&mut shell("sleep 1000 & sleep 1000"), &never, limit).expect("it runs");
        assert_eq!(ended.cut, Some(Cut::TimeLimit));
        assert!(begin.elapsed() < PATIENCE, "the pipe was held open");
    }

    #[test]
    fn a_signal_ends_it() {
        let came = AtomicBool::new(true);
        let ended = run(&mut shell("sleep 1000"), &came, None).expect("it runs");
        assert_eq!(ended.cut, Some(Cut::Interrupted));
        assert!(!ended.status.success());
    }
}

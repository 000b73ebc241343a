//! Who is behind a thread id.
//!
//! A scan of /proc at the start and the kernel's own news of forks and renames after it: no
//! thread is too short-lived to have a name. Command lines and control groups are read when a
//! thread is first spoken of, so those of very short processes are missing.

use std::collections::HashMap;
use std::fs;

use iostep_model::event::{Cgroup, Event, Process};
use iostep_model::printable::{name_text, path_text};

/// `PF_KTHREAD`, include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    tgid: u32,
    parent_tgid: u32,
    comm: String,
    kernel: bool,
    /// True once the events told of it under this name.
    told: bool,
}

/// Every thread known.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    tasks: HashMap<u32, Task>,
}

impl Processes {
    /// The threads that live now. Call it with recording on: what changes meanwhile is then
    /// told by records.
    pub fn scan() -> Processes {
        let mut processes = Processes::default();
        for tgid in numbers_in("/proc") {
            for pid in numbers_in(&format!("/proc/{tgid}/task")) {
                let stat = fs::read(format!("/proc/{tgid}/task/{pid}/stat"));
                let task = stat.ok().and_then(|stat| parse_stat(&stat, tgid));
                processes.tasks.extend(task.map(|task| (pid, task)));
            }
        }
        processes
    }

    /// Thread `parent` made `pid`.
    pub fn made(&mut self, parent: u32, pid: u32, same_process: bool, comm: String) {
        let parent = self.task(parent);
        let task = Task {
            tgid: if same_process { parent.tgid } else { pid },
            parent_tgid: if same_process {
                parent.parent_tgid
            } else {
                parent.tgid
            },
            comm,
            kernel: parent.kernel,
            told: false,
        };
        self.tasks.insert(pid, task);
    }

    /// Thread `pid` goes by a new name.
    pub fn renamed(&mut self, pid: u32, comm: String) {
        let task = self.task(pid);
        task.told &= task.comm == comm;
        task.comm = comm;
    }

    /// The thread's process; tells of the thread, and of the first of its process, whose name is
    /// the program's, if nothing did yet.
    pub fn mention(&mut self, pid: u32, mono_ns: u64, emit: &mut dyn FnMut(Event)) -> u32 {
        let tgid = self.tell(pid, mono_ns, emit);
        if tgid != pid {
            self.tell(tgid, mono_ns, emit);
        }
        tgid
    }

    fn tell(&mut self, pid: u32, mono_ns: u64, emit: &mut dyn FnMut(Event)) -> u32 {
        let task = self.task(pid);
        if !task.told {
            task.told = true;
            emit(Event::Process(Process {
                mono_ns,
                pid,
                tgid: task.tgid,
                parent_tgid: task.parent_tgid,
                comm: task.comm.clone(),
                kernel: task.kernel,
                command_line: command_line(task.tgid),
            }));
            if let Some(path) = cgroup(task.tgid, pid) {
                emit(Event::Cgroup(Cgroup {
                    mono_ns,
                    pid,
                    id: None,
                    path: Some(path),
                }));
            }
        }
        task.tgid
    }

    /// True for a kernel thread.
    pub fn is_kernel(&mut self, pid: u32) -> bool {
        self.task(pid).kernel
    }

    /// True for a worker of io_uring (`create_io_thread` names them, io_uring/io-wq.c).
    pub fn is_uring_worker(&mut self, pid: u32) -> bool {
        self.task(pid).comm.starts_with("iou-wrk")
    }

    fn task(&mut self, pid: u32) -> &mut Task {
        self.tasks.entry(pid).or_insert_with(|| look_up(pid))
    }
}

/// A thread that no record made known: it lives, or it is the idle thread.
fn look_up(pid: u32) -> Task {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let tgid = tgid.and_then(|t| t.trim().parse().ok()).unwrap_or(pid);
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    parse_stat(&stat, tgid).unwrap_or_else(|| Task {
        tgid,
        parent_tgid: 0,
        comm: if pid == 0 { "swapper" } else { "?" }.to_owned(),
        kernel: pid == 0,
        told: false,
    })
}

/// Reads `/proc/PID/stat`: `pid (comm) state ppid pgrp session tty tpgid flags ...`; see
/// proc_pid_stat(5). The name may hold anything, also `)`.
fn parse_stat(stat: &[u8], tgid: u32) -> Option<Task> {
    let open = stat.iter().position(|&b| b == b'(')?;
    let close = stat.iter().rposition(|&b| b == b')')?;
    let comm = name_text(stat.get(open + 1..close)?);
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let mut words = rest.split_ascii_whitespace().skip(1);
    let parent_tgid = words.next()?.parse().ok()?;
    let flags: u64 = words.nth(4)?.parse().ok()?;
    Some(Task {
        tgid,
        parent_tgid,
        comm,
        kernel: flags & KERNEL_THREAD != 0,
        told: false,
    })
}

fn command_line(tgid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{tgid}/cmdline")).ok()?;
    let words = bytes.split(|&b| b == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(name_text).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The thread's control group of version 2, whose line begins with `0::` (cgroups(7)).
fn cgroup(tgid: u32, pid: u32) -> Option<String> {
    let groups = fs::read(format!("/proc/{tgid}/task/{pid}/cgroup")).ok()?;
    let mut lines = groups.split(|&b| b == b'\n');
    let path = lines.find_map(|line| line.strip_prefix(b"0::"))?;
    Some(path_text(path))
}

fn numbers_in(dir: &str) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(processes: &mut Processes, pid: u32) -> Vec<Process> {
        let mut told = Vec::new();
        processes.mention(pid, 1, &mut |event| match event {
            Event::Process(process) => told.push(process),
            Event::Cgroup(_) => {}
            other => panic!("{other:?}"),
        });
        told
    }

    fn with_shell() -> Processes {
        let stat = b"4000000 (a ) b) S 7 1 1 0 -1 4194304 0 0";
        let task = parse_stat(stat, 4_000_000).expect("a stat line");
        Processes {
            tasks: HashMap::from([(4_000_000, task)]),
        }
    }

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let mut processes = with_shell();
        let process = told(&mut processes, 4_000_000).remove(0);
        assert_eq!(process.comm, "a ) b");
        assert_eq!((process.tgid, process.parent_tgid), (4_000_000, 7));
        assert!(!process.kernel);
    }

    #[test]
    fn threads_belong_to_the_process_and_children_to_their_parent() {
        let mut processes = with_shell();
        processes.made(4_000_000, 4_000_001, true, "thread".into());
        processes.made(4_000_001, 4_000_002, false, "child".into());
        let thread = told(&mut processes, 4_000_001).remove(0);
        assert_eq!((thread.tgid, thread.parent_tgid), (4_000_000, 7));
        let child = told(&mut processes, 4_000_002).remove(0);
        assert_eq!((child.tgid, child.parent_tgid), (4_000_002, 4_000_000));
    }

    #[test]
    fn a_thread_brings_the_name_of_its_program() {
        let mut processes = with_shell();
        processes.made(4_000_000, 4_000_001, true, "thread".into());
        let told = told(&mut processes, 4_000_001);
        let names: Vec<_> = told.iter().map(|p| (p.pid, p.comm.as_str())).collect();
        assert_eq!(names, [(4_000_001, "thread"), (4_000_000, "a ) b")]);
    }

    #[test]
    fn a_thread_is_told_of_once_for_each_name() {
        let mut processes = with_shell();
        assert_eq!(told(&mut processes, 4_000_000).len(), 1);
        assert_eq!(told(&mut processes, 4_000_000).len(), 0);
        processes.renamed(4_000_000, "sqlite3".into());
        assert_eq!(told(&mut processes, 4_000_000)[0].comm, "sqlite3");
        processes.renamed(4_000_000, "sqlite3".into());
        assert_eq!(told(&mut processes, 4_000_000).len(), 0);
    }

    #[test]
    fn a_reused_thread_id_is_told_of_again() {
        let mut processes = with_shell();
        processes.made(4_000_000, 4_000_005, false, "first".into());
        told(&mut processes, 4_000_005);
        processes.made(4_000_000, 4_000_005, false, "second".into());
        assert_eq!(told(&mut processes, 4_000_005)[0].comm, "second");
    }

    #[test]
    fn our_own_thread_is_found_by_the_scan() {
        let pid = std::process::id();
        let process = told(&mut Processes::scan(), pid).remove(0);
        assert_eq!(process.tgid, pid);
        assert!(process.command_line.is_some());
    }

    #[test]
    fn a_garbled_stat_line_is_no_task() {
        for stat in ["", ")(", "1 (x", "1 (x) S", "1 (x) S a b c d e f g"] {
            assert_eq!(parse_stat(stat.as_bytes(), 1), None);
        }
    }
}

//! An end for tests that hang, and a look at them before it.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Twice what the longest, the kernel tests, takes on two slow cores.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// How long processes may take to end once they are killed; one that the kernel holds never does.
const PATIENCE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(20);

/// Waits for a command.
///
/// Errors: it takes longer than an hour. Then its processes are shown, with where each is in
/// the kernel, and killed.
pub fn wait(child: &mut Child) -> Result<ExitStatus> {
    wait_at_most(child, LIMIT)
}

fn wait_at_most(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    if let Some(status) = wait_for(child, limit)? {
        return Ok(status);
    }
    let processes = family(child.id());
    eprintln!("xtask: hung for {limit:?}; its processes:");
    for pid in &processes {
        eprintln!("{}", describe(*pid));
    }
    kill(child);
    bail!("hung, and was killed after {limit:?}");
}

/// Kills a command and all that it started.
pub fn kill(child: &mut Child) {
    let processes = family(child.id());
    let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let kill = |mut command: Command| command.arg("-KILL").args(&pids).status();
    // Those of root among them need root's.
    if !kill(Command::new("kill")).is_ok_and(|status| status.success()) {
        let mut sudo = Command::new("sudo");
        sudo.args(["--non-interactive", "--", "kill"]);
        // Where there is no sudo, they end by their own limits.
        let _ = kill(sudo);
    }
    if !matches!(wait_for(child, PATIENCE), Ok(Some(_))) {
        eprintln!("xtask: killed, and still there after {PATIENCE:?}");
    }
}

fn wait_for(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() || began.elapsed() > limit {
            return Ok(status);
        }
        std::thread::sleep(INTERVAL);
    }
}

/// A process and all that descend from it.
fn family(first: u32) -> BTreeSet<u32> {
    let all = parents();
    let mut family = BTreeSet::from([first]);
    loop {
        let before = family.len();
        let children = all.iter().filter(|(_, parent)| family.contains(parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter_map(|name| {
            let pid = name.parse().ok()?;
            Some((pid, parent_in(&text(pid, "stat"))?))
        })
        .collect()
}

/// The fourth field of `/proc/PID/stat` (proc_pid_stat(5)); the second can hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn describe(pid: u32) -> String {
    let command = text(pid, "cmdline").replace('\0', " ");
    let mut lines = vec![format!("{pid} {}", command.trim_end())];
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    for thread in threads {
        let of = |name: &str| text(pid, &format!("task/{thread}/{name}"));
        let status = of("status");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let (name, state) = (field("Name:\t"), field("State:\t"));
        let (name, state) = (name.unwrap_or("?"), state.unwrap_or("?"));
        lines.push(format!("    {thread} {name}: {state}, in {}", of("wchan")));
        // For root alone.
        let stack = of("stack");
        lines.extend(stack.lines().map(|frame| format!("        {frame}")));
    }
    lines.join("\n")
}

fn text(pid: u32, name: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_in("7 (a) b) S 3 7 7 0"), Some(3));
        assert_eq!(parent_in("7 (a"), None);
    }

    #[test]
    fn what_hangs_is_shown_and_killed_with_all_that_it_started() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & read line"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh");
        let began = Instant::now();
        let all = loop {
            let all = family(child.id());
            let shown: String = all.iter().map(|pid| describe(*pid)).collect();
            if shown.contains("sleep 1000\n    ") {
                break all;
            }
            assert!(began.elapsed() < PATIENCE, "{shown}");
            std::thread::sleep(INTERVAL);
        };
        assert_eq!(all.len(), 2);
        let error = wait_at_most(&mut child, INTERVAL).expect_err("it never ends");
        assert!(error.to_string().starts_with("hung"), "{error}");
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_some_and(|status| !status.success()));
        let lives = |pid: &u32| {
            let status = text(*pid, "status");
            // A zombie waits for whoever took it over.
            !status.is_empty() && !status.contains("State:\tZ")
        };
        while all.iter().any(lives) {
            assert!(began.elapsed() < 2 * PATIENCE, "{all:?} live");
            std::thread::sleep(INTERVAL);
        }
    }

    #[test]
    fn what_ends_in_time_has_its_status() {
        let mut child = Command::new("false").spawn().expect("false");
        assert_eq!(wait(&mut child).expect("a status").code(), Some(1));
    }
}

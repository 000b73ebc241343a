//! The guest's first process: it mounts what a command expects, runs it, and reports.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, makedev, mknodat};
use rustix::mount::MountFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::share;
use super::wire::{Order, PORT, Report, receive, send};
use crate::error::{Error, Result};

/// The hidden command of the program that is the guest's first process: it calls [`main`].
pub const COMMAND: &str = "__guest-agent";

/// How long drivers may take to find a device.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked for one.
const TICK: Duration = Duration::from_millis(5);
/// linux/magic.h.
const PROC_SUPER_MAGIC: i64 = 0x9fa0;

/// Mounted in this order; the kernel may lack what is not demanded. Not `/sys/fs/bpf`: for it the
/// kernel runs modprobe first, which takes longer than the rest.
const MOUNTS: [(&str, &str, bool); 9] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("devpts", "/dev/pts", true),
    ("tmpfs", "/dev/shm", true),
    ("tmpfs", "/run", true),
    ("tracefs", "/sys/kernel/tracing", false),
    ("debugfs", "/sys/kernel/debug", false),
    ("cgroup2", "/sys/fs/cgroup", false),
];
/// What stays writable of the root, in memory.
const WRITABLE: [&str; 2] = ["/tmp", "/var/tmp"];
/// What udev would link.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

/// Serves the host, which ends the guest after the last report.
///
/// Errors: `Usage` anywhere but in a guest; what keeps it from talking to the host. As the first
/// process ends with an error, the kernel panics, and the host shows the console.
pub fn main() -> Result<Infallible> {
    check_place()?;
    mount_all()?;
    let port = open_port()?;
    let say =
        |report: &Report| send(&port, report).map_err(Error::io("/dev", "write to the port in"));
    let kernel = rustix::system::uname();
    say(&Report::Up(kernel.release().to_bytes().to_vec()))?;
    let work = Work::receive(&port).map_err(Error::io("/dev", "read from the port in"))?;
    let last = serve(&work, &Mutex::new(&port))
        .unwrap_or_else(|error| Report::Failed(error.to_string().into_bytes()));
    // The host ends the guest without another word to its kernel.
    rustix::fs::sync();
    say(&last)?;
    loop {
        std::thread::park();
    }
}

/// Errors: `Usage` unless this is the first process of a machine that has mounted nothing yet:
/// elsewhere, mounting would bury what is there.
fn check_place() -> Result<()> {
    let proc = rustix::fs::statfs("/proc").map_or(0, |proc| proc.f_type);
    if rustix::process::getpid() == Pid::INIT && proc != PROC_SUPER_MAGIC {
        return Ok(());
    }
    Err(Error::Usage {
        what: "this is no guest of iostep".into(),
        hint: "see iostep lab guest --help".into(),
    })
}

fn mount_all() -> Result<()> {
    for (kind, target, demanded) in MOUNTS {
        let made = make_directory(Path::new(target))
            .and_then(|()| mount(kind, kind, Path::new(target), MountFlags::empty(), ""));
        if demanded {
            made?;
        }
    }
    for (target, link) in LINKS {
        // It may be there already.
        let _ = std::os::unix::fs::symlink(target, link);
    }
    for directory in WRITABLE {
        make_directory(Path::new(directory))?;
        bind(Path::new(directory), Path::new(directory))?;
    }
    // Opening it loads the driver (Documentation/admin-guide/devices.txt: 10, 237).
    let node = (FileType::CharacterDevice, Mode::from_raw_mode(0o660));
    let _ = mknodat(
        rustix::fs::CWD,
        "/dev/loop-control",
        node.0,
        node.1,
        makedev(10, 237),
    );
    Ok(())
}

fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(Error::io(path, "make"))
}

fn mount(source: &str, kind: &str, at: &Path, flags: MountFlags, data: &str) -> Result<()> {
    let data = CString::new(data).expect("options are ours");
    rustix::mount::mount(source, at, kind, flags, data.as_c_str()).map_err(Error::io(at, "mount"))
}

fn bind(from: &Path, at: &Path) -> Result<()> {
    rustix::mount::mount_bind(from, at).map_err(Error::io(at, "mount"))
}

/// The port by its name: without udev it has only a number.
fn open_port() -> Result<File> {
    let class = Path::new("/sys/class/virtio-ports");
    let find = || {
        let ports = std::fs::read_dir(class).ok()?.filter_map(io::Result::ok);
        let named = |port: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(port.path().join("name"));
            name.is_ok_and(|name| name.trim() == PORT)
        };
        let port = ports.into_iter().find(named)?.file_name();
        Some(Path::new("/dev").join(port))
    };
    let path = wait_for(find).ok_or_else(|| Error::Unsupported {
        what: format!("{}: no port to the host", class.display()),
        hint: "see iostep lab guest --help".into(),
    })?;
    let open = File::options().read(true).write(true).open(&path);
    open.map_err(Error::io(&path, "open"))
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        let found = look();
        if found.is_some() || began.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(TICK);
    }
}

/// What the host wants.
#[derive(Debug, Default)]
struct Work {
    shares: Vec<PathBuf>,
    /// The kernel's version.
    modules: Option<OsString>,
    devices: Vec<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    command: Vec<OsString>,
}

impl Work {
    fn receive(mut from: impl Read) -> io::Result<Work> {
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let mut work = Work::default();
        loop {
            match receive(&mut from)? {
                Order::Share(bytes) => work.shares.push(path(bytes)),
                Order::Modules(bytes) => work.modules = Some(OsString::from_vec(bytes)),
                Order::Device(bytes) => work.devices.push(path(bytes)),
                Order::Environment(setting) => work.environment.extend(variable(setting)),
                Order::Directory(bytes) => work.directory = path(bytes),
                Order::Argument(bytes) => work.command.push(OsString::from_vec(bytes)),
                Order::Run => return Ok(work),
            }
        }
    }
}

/// `NAME=VALUE` in two.
fn variable(mut setting: Vec<u8>) -> Option<(OsString, OsString)> {
    let equals = setting.iter().position(|byte| *byte == b'=')?;
    let value = setting.split_off(equals + 1);
    setting.truncate(equals);
    Some((OsString::from_vec(setting), OsString::from_vec(value)))
}

fn serve(work: &Work, port: &Mutex<&File>) -> Result<Report> {
    if let Some(version) = &work.modules {
        let place = Path::new("/lib/modules").join(version);
        make_directory(&place)?;
        let options = share::mount_options("loose");
        mount(share::MODULES, "9p", &place, MountFlags::RDONLY, &options)?;
    }
    // It may lie where something else is mounted now.
    make_directory(&work.directory)?;
    for (n, path) in work.shares.iter().enumerate() {
        make_directory(path)?;
        // Uncached: what was written is on the host, even if the guest is killed.
        let options = share::mount_options("none");
        mount(&share::tag(n), "9p", path, MountFlags::empty(), &options)?;
    }
    let read_only = MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount("/", read_only, c"").map_err(Error::io("/", "protect"))?;
    for device in &work.devices {
        if wait_for(|| device.exists().then_some(())).is_none() {
            return Err(Error::Unsupported {
                what: format!("{}: the guest has no such device", device.display()),
                hint: "choose another kernel or device".into(),
            });
        }
    }
    run(work, port)
}

fn run(work: &Work, port: &Mutex<&File>) -> Result<Report> {
    let Some((program, arguments)) = work.command.split_first() else {
        return Err(Error::Usage {
            what: "no command".into(),
            hint: "name one after --".into(),
        });
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(work.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&work.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io(program, "run"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        send_or_end(port, &Report::Started);
        scope.spawn(|| forward(stdout, port, Report::Stdout));
        scope.spawn(|| forward(stderr, port, Report::Stderr));
        let status = wait(Pid::from_child(&child));
        // What the command left running holds its output open. kill(2) takes the negated 1 for
        // every process but the first.
        let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
        status
    })
}

/// Waits for the command, and for every orphan, as the first process has to.
fn wait(command: Pid) -> Result<Report> {
    loop {
        let ended = rustix::process::wait(WaitOptions::empty());
        match ended.map_err(Error::io("the command", "wait for"))? {
            Some((pid, status)) if pid == command => return Ok(report(status)),
            _ => {}
        }
    }
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Report::Exited(status as u8),
        (None, Some(signal)) => Report::Killed(signal as u8),
        (None, None) => Report::Failed(b"the command neither ended nor was killed".to_vec()),
    }
}

fn forward(from: Option<impl Read>, port: &Mutex<&File>, report: fn(Vec<u8>) -> Report) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        send_or_end(port, &report(buffer[..read].to_vec()));
    }
}

/// Without a host there is nobody to serve.
fn send_or_end(port: &Mutex<&File>, report: &Report) {
    let port = port.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if send(*port, report).is_err() {
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_nothing_outside_a_guest() {
        assert!(matches!(main(), Err(Error::Usage { .. })));
    }

    #[test]
    fn orders_make_the_work() {
        let mut bytes = Vec::new();
        for order in [
            Order::Share(b"/results".to_vec()),
            Order::Environment(b"A=b=c".to_vec()),
            Order::Environment(b"no equals sign".to_vec()),
            Order::Argument(b"echo".to_vec()),
            Order::Argument(b"\xff".to_vec()),
            Order::Run,
        ] {
            send(&mut bytes, &order).expect("memory takes all");
        }
        let work = Work::receive(bytes.as_slice()).expect("whole");
        assert_eq!(work.shares, [Path::new("/results")]);
        assert_eq!(work.environment, [("A".into(), "b=c".into())]);
        assert_eq!(work.command.len(), 2);
        bytes.truncate(bytes.len() - 1);
        assert!(Work::receive(bytes.as_slice()).is_err());
    }
}

//! The process of QEMU: its command line, its console, its end.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use iostep_model::lab::Tool;
use iostep_model::printable::excerpt;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::architecture::{Architecture, Processor};
use super::device::{Device, held, images};
use super::share;
use super::wire::PORT;
use crate::console::Console;
use crate::error::{Error, Result};

/// A panic and an oops end the guest at once (`-no-reboot`); of the kernel's messages, warnings
/// and worse reach the console, which is slow under emulation.
const KERNEL: &str = "loglevel=5 panic=-1 oops=panic cryptomgr.notests trace_clock=local";

/// What a QEMU is started with. The files stay open as long as it runs.
pub(super) struct Machine<'a> {
    pub architecture: Architecture,
    pub processor: Processor,
    pub kernel: &'a File,
    pub initramfs: &'a File,
    pub memory_bytes: u64,
    pub cpus: u32,
    pub device: Device,
    pub images: &'a [File],
    /// The guest's root.
    pub root: &'a Path,
    /// The directory of the kernel's modules.
    pub modules: &'a Path,
    pub shares: &'a [PathBuf],
}

/// A running QEMU. The drop kills it.
pub(super) struct Qemu {
    child: Child,
    console: Option<JoinHandle<Console>>,
}

/// Errors: `Unsupported` if it is not on the path.
pub(super) fn find(architecture: Architecture) -> Result<PathBuf> {
    let (program, package) = architecture.program();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|program| program.is_file())
        .ok_or_else(|| Error::not_runnable(program, package, ErrorKind::NotFound.into()))
}

/// QEMU for guests like this machine, with its version; `None` if it cannot be run.
pub fn version() -> Option<Tool> {
    let (program, _) = Architecture::HOST.program();
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next()?;
    Some(Tool {
        name: program.into(),
        version: excerpt(line, 200),
    })
}

impl Qemu {
    /// Starts QEMU, and hands out its end of the agent's port.
    ///
    /// The kernel kills it when the calling thread ends without having dropped this.
    /// Errors: `Unsupported` if it is not installed; `Io`.
    pub fn start(machine: &Machine) -> Result<(Qemu, UnixStream)> {
        let (program, package) = machine.architecture.program();
        let unable = || Error::io(program, "connect to");
        let (port, far_end) = UnixStream::pair().map_err(unable())?;
        let (read, write) = std::io::pipe().map_err(unable())?;
        let messages = write.try_clone().map_err(unable())?;
        let mut command = Command::new(program);
        command
            .args(machine.arguments())
            .stdin(OwnedFd::from(far_end))
            .stdout(write)
            .stderr(messages)
            // A terminal's Ctrl-C is for us, who end it.
            .process_group(0);
        let child = end_with_us(&mut command)
            .spawn()
            .map_err(|error| Error::not_runnable(program, package, error))?;
        // The command still holds our copies of the pipe, which would never end.
        drop(command);
        let console = Some(Console::reader(read));
        Ok((Qemu { child, console }, port))
    }

    /// The processor's time that it had so far; `None` if it has ended.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let ticks = ticks_of(&stat)?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_millis(
            ticks.saturating_mul(1000) / per_second,
        ))
    }

    /// Kills it; what its console and QEMU itself said last.
    pub fn stop(&mut self) -> Console {
        self.kill();
        let reader = self.console.take();
        reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    }

    fn kill(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `utime` and `stime` of /proc/PID/stat (proc_pid_stat(5)). The second field, the name, may hold
/// anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user.saturating_add(system))
}

fn end_with_us(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: only two system calls are made, which are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            match rustix::process::getppid() {
                Some(now) if now == parent => Ok(()),
                _ => Err(rustix::io::Errno::SRCH.into()),
            }
        })
    }
}

impl Machine<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let (memory, cpus) = (self.memory_bytes.div_ceil(1 << 20), self.cpus);
        let mut all: Vec<OsString> = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(OsString::from));
        add(&[
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
        ]);
        add(&self.architecture.machine(self.processor));
        add(&["-m", &format!("{memory}M"), "-smp", &cpus.to_string()]);
        let options = format!("{} {KERNEL}", self.architecture.kernel_options());
        add(&["-kernel", &held(self.kernel), "-append", &options]);
        add(&["-initrd", &held(self.initramfs)]);
        // Standard output is a pipe to us, standard input a socket.
        add(&["-chardev", "file,id=console,path=/proc/self/fd/1"]);
        add(&["-serial", "chardev:console"]);
        add(&[
            "-chardev",
            "socket,id=port,fd=0",
            "-device",
            "virtio-serial-pci",
        ]);
        add(&[
            "-device",
            &format!("virtserialport,chardev=port,name={PORT}"),
        ]);
        for (path, tag) in [(self.root, share::ROOT), (self.modules, share::MODULES)] {
            all.extend(share::arguments(path.as_os_str(), tag, ",readonly=on"));
        }
        for (n, path) in self.shares.iter().enumerate() {
            all.extend(share::arguments(path.as_os_str(), &share::tag(n), ""));
        }
        all.extend(images(self.images));
        all.extend(self.device.arguments(self.images.len()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_comes_after_its_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 11 22 33 44 250 50 0 0 20 0 1 0 99";
        assert_eq!(ticks_of(stat), Some(300));
        assert_eq!(ticks_of("7 (a"), None);
    }

    #[test]
    fn the_root_is_shared_read_only_and_the_shares_are_not() {
        let file = tempfile::tempfile().expect("a file");
        let machine = Machine {
            architecture: Architecture::HOST,
            processor: Processor::Emulated,
            kernel: &file,
            initramfs: &file,
            memory_bytes: (1 << 30) + 1,
            cpus: 2,
            device: Device::Nvme,
            images: &[],
            root: Path::new("/"),
            modules: Path::new("/lib/modules/6.1"),
            shares: &["/results".into()],
        };
        let arguments = machine.arguments();
        let shares: Vec<_> = arguments
            .iter()
            .map(|argument| argument.to_string_lossy())
            .filter(|argument| argument.starts_with("local,"))
            .collect();
        assert_eq!(shares.len(), 3);
        assert!(shares[0].contains(",readonly=on,path=/") && shares[0].contains("id=root"));
        assert!(shares[1].contains(",readonly=on,path=/lib") && shares[1].contains("id=modules"));
        assert!(!shares[2].contains("readonly") && shares[2].ends_with("path=/results"));
        assert!(arguments.contains(&"1025M".into()));
    }
}

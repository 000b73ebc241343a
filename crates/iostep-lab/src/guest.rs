//! Any command in a stock kernel under QEMU, with the host's root as its root.
//!
//! The guest boots a distribution's kernel from an archive that is made on the spot: busybox and
//! the few modules that reach the host. Its root is the host's, or a directory with programs for
//! another processor, shared read-only over 9p; `/tmp`,
//! `/var/tmp`, `/run` and `/dev/shm` are memory of the guest, and directories that are named can
//! be written to. There the calling program's own binary is the first process, with the argument
//! [`agent::COMMAND`]: it takes the command over a virtio-serial port, word by word, and sends
//! back what it prints and how it ends. The kernel's console is another device, of which the last
//! lines are kept for errors.
//!
//! Nothing of a guest has a name on the host: images and the archive are nameless files, the port
//! is a socket pair. So all that a killed process could leave is QEMU, and the kernel ends that.

pub mod agent;
mod architecture;
mod busybox;
mod cpio;
mod device;
mod initramfs;
mod kernel;
mod modules;
mod payload;
mod qemu;
mod share;
mod wire;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

pub use device::{Backing, Device};
pub use initramfs::BROUGHT;
pub use qemu::version as qemu_version;

use crate::error::{Error, Result};
use crate::mkfs::{Kind, MADE};
use architecture::{Architecture, Processor};
use initramfs::Init;
use kernel::Kernel;
use qemu::{Machine, Qemu};
use wire::{Order, Report};

/// How often the caller's flag, the limits and QEMU's end are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long a guest may take until its command starts, by who executes it: ten times what it takes.
/// On a machine that is busy time passes and nothing happens, so QEMU has to have used
/// [`BOOT_PROCESSOR`] of it as well, or the whole of [`BOOT_AT_MOST`] is over.
const KVM_BOOT: Duration = Duration::from_secs(20);
const EMULATED_BOOT: Duration = Duration::from_secs(60);
const BOOT_PROCESSOR: Duration = Duration::from_secs(40);
const BOOT_AT_MOST: Duration = Duration::from_secs(180);
/// How often a guest that is silent for that long is ended and started again.
const RESTARTS: u32 = 2;
/// Reports that wait for the caller; then the guest waits, too.
const QUEUE: usize = 64;

/// Set in the environment of whatever runs in a guest, and in one whose processor is emulated.
pub const VARIABLE: &str = "IOSTEP_GUEST";
pub const EMULATED_VARIABLE: &str = "IOSTEP_GUEST_EMULATED";

/// Who may execute the guest's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's processor if a guest comes up on it, else emulation.
    #[default]
    Auto,
    /// The host's processor.
    Kvm,
    /// Emulation.
    None,
}

/// What a guest should be like.
#[derive(Clone, Debug)]
pub struct Options {
    /// A bzImage, or an Image of arm64; its modules lie in `../lib/modules/VERSION` or in the
    /// host's. If `None`, the one
    /// that the host runs, else the newest in `/boot`, else what `scripts/setup` unpacked; one that
    /// has every [`Kind`] of filesystem comes before one that has not.
    pub kernel: Option<PathBuf>,
    /// A program that calls [`agent::main`] for the argument [`agent::COMMAND`], by default this
    /// one. Where the guest has a root of its own, it is a static one, and `/iostep` there.
    pub agent: Option<PathBuf>,
    /// What the guest has as its root, by default the host's. It has a static busybox.
    pub root: PathBuf,
    /// Filesystems that the kernel must have, by its own names for them.
    pub filesystems: Vec<&'static str>,
    /// Who executes it.
    pub accelerator: Accelerator,
    pub memory_bytes: u64,
    /// Processors.
    pub cpus: u32,
    /// The kind of the devices.
    pub device: Device,
    /// One for each device; [`Device::path`] says where the guest has them.
    pub backings: Vec<Backing>,
    /// Directories that the guest may write to, at the same path as on the host.
    pub shares: Vec<PathBuf>,
    /// How long the command may run, its boot included.
    pub time_limit: Option<Duration>,
}

impl Default for Options {
    /// 1 GiB, 2 processors, no device.
    fn default() -> Options {
        Options {
            kernel: None,
            agent: None,
            root: "/".into(),
            filesystems: Vec::new(),
            accelerator: Accelerator::Auto,
            memory_bytes: 1 << 30,
            cpus: 2,
            device: Device::Virtio,
            backings: Vec::new(),
            shares: Vec::new(),
            time_limit: None,
        }
    }
}

/// What is run.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program, found by the `PATH` of its environment, and its arguments.
    pub words: Vec<OsString>,
    /// Its whole environment but for [`VARIABLE`], which every guest has, and [`EMULATED_VARIABLE`],
    /// which an emulated one has.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: PathBuf,
}

/// Where what the command prints goes.
pub struct Output<'a> {
    /// Its standard output.
    pub stdout: &'a mut dyn Write,
    /// Its standard error.
    pub stderr: &'a mut dyn Write,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this status.
    Exited(u8),
    /// By this signal.
    Killed(u8),
}

/// What a guest was, and how its command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// How the command ended.
    pub status: Status,
    /// The release of the guest's kernel.
    pub kernel: String,
    /// True if its times are not times of hardware.
    pub emulated: bool,
    /// Guests that fell silent before the command started, and were ended.
    pub restarts: u32,
    /// From the start of QEMU to the guest's first word.
    pub boot: Duration,
    /// From there to the command's end.
    pub run: Duration,
}

/// Boots a guest, runs a command as its root, and takes everything down.
///
/// Errors: `Usage`; `Unsupported` if QEMU, a kernel, a module, busybox or room is missing; `Guest`
/// with the console's last lines if the guest does not come up, panics, or exceeds the time limit;
/// `Agent` if the command cannot be run; `Interrupted` once `stop` is set; `Io`, also of `output`.
pub fn run(
    options: &Options,
    command: &Command,
    output: &mut Output,
    stop: &AtomicBool,
) -> Result<Exit> {
    check(options, command)?;
    let began = Instant::now();
    let prepared = Prepared::of(options)?;
    let deadline = options.time_limit.map(|limit| began + limit);
    let mut run = Run {
        prepared: &prepared,
        command,
        output,
        stop,
        deadline,
        has_begun: false,
        restarts: 0,
    };
    match options.accelerator {
        Accelerator::None => run.emulated(),
        Accelerator::Kvm => run.on(Processor::Kvm),
        Accelerator::Auto if !Processor::kvm_is_usable(prepared.kernel.architecture) => {
            run.emulated()
        }
        Accelerator::Auto => match run.on(Processor::Kvm) {
            // Whether nested virtualisation works is seen by trying only.
            Err(Error::Guest { came_up: false, .. }) => run.emulated(),
            other => other,
        },
    }
}

/// Whether such a guest could be started here: QEMU, a kernel and busybox are there.
///
/// Errors: `Unsupported` with what is missing; `Usage`.
pub fn check_prerequisites(options: &Options) -> Result<()> {
    // What is missing first is told first: without QEMU nobody needs a kernel.
    let host = Architecture::HOST;
    let guest = options.kernel.is_none().then_some(host);
    guest.map(qemu::find).transpose()?;
    let kernel = find_kernel(options)?;
    qemu::find(kernel.architecture)?;
    busybox::find(&options.root, kernel.architecture).map(drop)
}

/// Whether a guest like this machine may run on its processor, by KVM; else it is emulated, and slow.
pub fn is_accelerated() -> bool {
    Processor::kvm_is_usable(Architecture::HOST)
}

fn find_kernel(options: &Options) -> Result<Kernel> {
    let mut needed = initramfs::needed(drivers(options));
    needed.extend(&options.filesystems);
    // A kernel for clouds comes up, and has less than most commands will ask for.
    let wished = MADE.map(Kind::name);
    kernel::find(options.kernel.as_deref(), &needed, &wished)
}

/// The drivers of the guest's devices, with their parameters.
fn drivers(options: &Options) -> &'static [(&'static str, &'static str)] {
    match options.backings.is_empty() {
        true => &[],
        false => options.device.drivers(),
    }
}

/// Errors: `Usage` for what no guest can be or do.
fn check(options: &Options, command: &Command) -> Result<()> {
    let refused = |what: &str, hint: &str| {
        Err(Error::Usage {
            what: what.into(),
            hint: hint.into(),
        })
    };
    if command.words.is_empty() {
        return refused("no command", "name one after --");
    }
    if options.memory_bytes < 256 << 20 {
        return refused("too little memory for a guest", "give it 256MiB or more");
    }
    if options.cpus == 0 || options.cpus > 255 {
        return refused("no such number of processors", "choose 1 to 255");
    }
    Ok(())
}

/// What is ready for a guest. Dropping it removes everything.
struct Prepared {
    kernel: Kernel,
    /// What is booted.
    image: File,
    initramfs: File,
    images: Vec<File>,
    device: Device,
    root: PathBuf,
    shares: Vec<PathBuf>,
    memory_bytes: u64,
    cpus: u32,
}

impl Prepared {
    fn of(options: &Options) -> Result<Prepared> {
        let shares = share::directories(&options.shares)?;
        let drivers = drivers(options);
        let kernel = find_kernel(options)?;
        let root = std::fs::canonicalize(&options.root).map_err(Error::io(&options.root, "use"))?;
        let init = init(options, &root, kernel.architecture)?;
        let initramfs = initramfs::make(&kernel, drivers, &root, &init)?;
        let image = kernel.to_boot()?;
        Ok(Prepared {
            kernel,
            image,
            initramfs,
            images: device::open(options.device, &options.backings, &std::env::temp_dir())?,
            device: options.device,
            root,
            shares,
            memory_bytes: options.memory_bytes,
            cpus: options.cpus,
        })
    }

    fn machine(&self, processor: Processor) -> Machine<'_> {
        Machine {
            architecture: self.kernel.architecture,
            processor,
            kernel: &self.image,
            initramfs: &self.initramfs,
            memory_bytes: self.memory_bytes,
            cpus: self.cpus,
            device: self.device,
            images: &self.images,
            root: &self.root,
            modules: &self.kernel.directory,
            shares: &self.shares,
        }
    }
}

/// The guest's first process.
///
/// Errors: `Usage` if a program that is brought along cannot run there; `Io`.
fn init(options: &Options, root: &Path, architecture: Architecture) -> Result<Init> {
    let agent = match &options.agent {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(Error::io("this program", "find"))?,
    };
    if root == Path::new("/") {
        return Ok(Init::OnRoot(agent));
    }
    let program = std::fs::read(&agent).map_err(Error::io(&agent, "read"))?;
    if !busybox::is_static(&program, architecture) {
        let (agent, name) = (agent.display(), architecture.name());
        return Err(Error::Usage {
            what: format!("{agent}: no static program for {name}"),
            hint: "name one by --agent, as make dist and make dist-arm64 build it".into(),
        });
    }
    Ok(Init::Brought(program))
}

/// One command in one guest.
struct Run<'a, 'b> {
    prepared: &'a Prepared,
    command: &'a Command,
    output: &'a mut Output<'b>,
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
    /// The command may have started, and is never run a second time.
    has_begun: bool,
    restarts: u32,
}

/// What a guest is waited for.
struct Watch {
    qemu: Qemu,
    reports: Receiver<Report>,
    /// When the command must have ended.
    deadline: Option<Instant>,
    /// How long it may take until the command starts; `None` once it has.
    boot: Option<Patience>,
    came_up: bool,
}

/// How long a guest is waited for that says nothing.
struct Patience {
    began: Instant,
    processor: Processor,
}

impl Patience {
    /// `used` is the processor's time that QEMU had, if that is known.
    fn is_over(&self, used: Option<Duration>) -> bool {
        let passed = self.began.elapsed();
        match self.processor {
            Processor::Kvm => passed >= KVM_BOOT,
            Processor::Emulated => {
                let had_its_turns = used.is_none_or(|used| used >= BOOT_PROCESSOR);
                passed >= BOOT_AT_MOST || (passed >= EMULATED_BOOT && had_its_turns)
            }
        }
    }
}

impl Run<'_, '_> {
    /// A guest that falls silent before the command starts has done nothing yet that would be done
    /// twice: it is ended, and another one started.
    fn emulated(&mut self) -> Result<Exit> {
        loop {
            match self.on(Processor::Emulated) {
                Err(Error::Guest { silent: true, .. })
                    if !self.has_begun && self.restarts < RESTARTS =>
                {
                    self.restarts += 1;
                }
                other => return other,
            }
        }
    }

    fn on(&mut self, processor: Processor) -> Result<Exit> {
        let began = Instant::now();
        let (qemu, port) = Qemu::start(&self.prepared.machine(processor))?;
        let reports = reports(&port)?;
        let mut watch = Watch {
            qemu,
            reports,
            deadline: self.deadline,
            boot: Some(Patience { began, processor }),
            came_up: false,
        };
        let Report::Up(release) = watch.next(self.stop)? else {
            return watch.fail("the guest did not say what it is");
        };
        let up = Instant::now();
        watch.came_up = true;
        if let Err(error) = self.order(&port, processor) {
            return watch.fail(&format!("cannot tell the guest what to run: {error}"));
        }
        let status = self.follow(&mut watch)?;
        watch.qemu.stop();
        Ok(Exit {
            status,
            kernel: String::from_utf8_lossy(&release).into_owned(),
            emulated: processor == Processor::Emulated,
            restarts: self.restarts,
            boot: up - began,
            run: up.elapsed(),
        })
    }

    /// Tells the agent all it needs.
    fn order(&self, port: &UnixStream, processor: Processor) -> io::Result<()> {
        let bytes = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
        let prepared = self.prepared;
        let mut orders: Vec<Order> = Vec::new();
        orders.extend(
            prepared
                .shares
                .iter()
                .map(|share| Order::Share(bytes(share))),
        );
        orders.push(Order::Modules(prepared.kernel.version.clone().into_bytes()));
        let devices = (0..prepared.images.len()).map(|n| prepared.device.path(n));
        orders.extend(devices.map(|path| Order::Device(bytes(&path))));
        orders.push(Order::Directory(bytes(&self.command.directory)));
        for (name, value) in &self.command.environment {
            let parts = [name.as_bytes(), value.as_bytes()];
            orders.push(Order::Environment(parts.join(&b'=')));
        }
        orders.push(Order::Environment(format!("{VARIABLE}=1").into_bytes()));
        if processor == Processor::Emulated {
            orders.push(Order::Environment(
                format!("{EMULATED_VARIABLE}=1").into_bytes(),
            ));
        }
        let words = self.command.words.iter();
        orders.extend(words.map(|word| Order::Argument(word.as_bytes().to_vec())));
        orders.push(Order::Run);
        orders.iter().try_for_each(|order| wire::send(port, order))
    }

    /// Passes on what the command prints, until it ends.
    fn follow(&mut self, watch: &mut Watch) -> Result<Status> {
        let printed = |stream| Error::io(PathBuf::from(stream), "pass on the command's output to");
        loop {
            match watch.next(self.stop)? {
                Report::Stdout(bytes) => {
                    let written = self.output.stdout.write_all(&bytes);
                    written
                        .and_then(|()| self.output.stdout.flush())
                        .map_err(printed("standard output"))?;
                }
                Report::Stderr(bytes) => {
                    let written = self.output.stderr.write_all(&bytes);
                    written.map_err(printed("standard error"))?;
                }
                Report::Exited(status) => return Ok(Status::Exited(status)),
                Report::Killed(signal) => return Ok(Status::Killed(signal)),
                Report::Failed(text) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    return Err(Error::Agent { message: text });
                }
                Report::Started => {
                    self.has_begun = true;
                    watch.boot = None;
                }
                Report::Up(_) => {}
            }
        }
    }
}

/// The agent's reports, read in a thread of their own, which ends with QEMU.
fn reports(port: &UnixStream) -> Result<Receiver<Report>> {
    let from = port
        .try_clone()
        .map_err(Error::io("the guest's port", "read from"))?;
    let (sender, receiver) = sync_channel(QUEUE);
    std::thread::spawn(move || {
        let mut from = io::BufReader::new(from);
        while let Ok(report) = wire::receive(&mut from) {
            if sender.send(report).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}

impl Watch {
    /// The next report.
    ///
    /// Errors: `Guest` if it does not come; `Interrupted`.
    fn next(&mut self, stop: &AtomicBool) -> Result<Report> {
        loop {
            match self.reports.recv_timeout(TICK) {
                Ok(report) => return Ok(report),
                // Without a port there is no guest: QEMU has ended, or will never say more.
                Err(RecvTimeoutError::Disconnected) => return self.gone(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if self.deadline.is_some_and(|end| Instant::now() >= end) {
                return self.fail(match self.came_up {
                    true => "the command did not end within its time limit",
                    false => "the guest did not come up within its time limit",
                });
            }
            let boot = self.boot.as_ref();
            if boot.is_some_and(|boot| boot.is_over(self.qemu.processor_time())) {
                return self.fall_silent();
            }
        }
    }

    fn gone<T>(&mut self) -> Result<T> {
        let what = match self.came_up {
            true => "the guest ended before the command did",
            false => "the guest ended before it had come up",
        };
        self.fail(what)
    }

    fn fall_silent<T>(&mut self) -> Result<T> {
        let what = match self.came_up {
            true => "the guest fell silent before the command started",
            false => "the guest did not come up: it fell silent",
        };
        self.end(what, true)
    }

    /// The error that says so, with the console's end. There is no guest any more.
    fn fail<T>(&mut self, what: &str) -> Result<T> {
        self.end(what, false)
    }

    fn end<T>(&mut self, what: &str, silent: bool) -> Result<T> {
        Err(Error::Guest {
            what: what.into(),
            came_up: self.came_up,
            silent,
            console: self.qemu.stop(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_had_no_turn_is_waited_for() {
        let patience = |seconds| Patience {
            began: Instant::now() - Duration::from_secs(seconds),
            processor: Processor::Emulated,
        };
        let used = |seconds| Some(Duration::from_secs(seconds));
        assert!(!patience(30).is_over(used(30)));
        assert!(!patience(90).is_over(used(10)));
        assert!(patience(90).is_over(used(80)) && patience(90).is_over(None));
        assert!(patience(200).is_over(used(10)));
    }

    #[test]
    fn what_no_guest_can_be_is_refused() {
        let command = Command {
            words: vec!["true".into()],
            ..Command::default()
        };
        let refused =
            |options: Options| matches!(check(&options, &command), Err(Error::Usage { .. }));
        assert!(refused(Options {
            memory_bytes: 1 << 20,
            ..Options::default()
        }));
        assert!(refused(Options {
            cpus: 0,
            ..Options::default()
        }));
        assert!(check(&Options::default(), &command).is_ok());
        assert!(check(&Options::default(), &Command::default()).is_err());
    }
}

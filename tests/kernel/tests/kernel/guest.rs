//! `iostep lab guest`: what a guest is, what it gives back, and how it ends.

mod hardware;
mod other_filesystems;
mod passthrough;
mod service;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome, Running};
use iostep_kernel_tests::kernels;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::table::{File, ProcessRow, Segment, Sync, Trace};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::Case;

/// Before the names of the tests that run inside: the filter that selects them.
pub const INSIDE: &str = "in the guest";
/// The same for those on devices that are made of others.
pub const ON_STACKS: &str = "on stacked devices";
/// The same for those on each kind of disk.
const ON_DISKS: &str = "on the guest's disk";
/// The same for a kernel that cannot run our BPF programs: an old one or, where none is unpacked,
/// one whose BTF is covered, for everything that runs there.
const WITHOUT_BPF: &str = "in a guest without BPF";
const COVER_BTF: &str = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
/// How long all of them may take, four times what they do on a slow machine.
pub const INSIDE_LIMIT: Duration = Duration::from_secs(2000);
/// The one of them that every kernel passes in `make test`.
pub const TRACED: &str =
    "a trace agrees with the device's counters, and names files, syncs and control groups";
/// How long one command in a guest may take, its boot included.
const LIMIT: Duration = Duration::from_secs(300);

/// Prints what a guest is, one fact a line, and fails where something is not as it should be.
const FACTS: &str = r#"
set -e
uname -r
id -u
echo "$IOSTEP_GUEST"
printf '<%s>' "$@"; echo
echo to-stderr >&2
echo kept > "$RW/written"
if touch /etc/written 2>/dev/null; then echo "the root is writable"; exit 1; fi
echo gone > /tmp/written
blockdev --getsize64 /dev/vda /dev/vdb
try() {
    kind=$1; shift
    "$@" > /dev/null 2>&1
    mount -t "$kind" /dev/vda /mnt
    echo "$kind" > /mnt/file
    umount /mnt
    echo "mounted $kind"
}
try ext4 mkfs.ext4 -q -F /dev/vda
try xfs mkfs.xfs -q -f /dev/vda
try btrfs mkfs.btrfs -q -f /dev/vda
try f2fs mkfs.f2fs -q -f /dev/vda
try nilfs2 mkfs.nilfs2 -q -f /dev/vda
try vfat mkfs.fat -F 32 /dev/vda
exit 3
"#;

/// Has the kernel patch the code that every system call runs through, while both processors run it:
/// a tracepoint is a jump that is there or not.
const PATCHING: &str = "
    for n in 1 2; do
        while :; do dd if=/dev/zero of=/dev/null bs=1 count=20000 2> /dev/null; done &
    done
    end=$(($(date +%s) + 20))
    while [ $(date +%s) -lt $end ]; do
        for state in 1 0; do
            echo $state > /sys/kernel/tracing/events/raw_syscalls/sys_enter/enable
        done
    done
    echo done
";

/// Every test of the host.
pub fn cases() -> Vec<Case> {
    let needs = |programs: &[&'static str]| {
        // Or they would run once for a user and once for root.
        let mut needs = vec![Requirement::Root, Requirement::Guest];
        needs.extend(programs.iter().map(|program| Requirement::Program(program)));
        needs
    };
    let makers = [
        "mkfs.ext4",
        "mkfs.xfs",
        "mkfs.btrfs",
        "mkfs.f2fs",
        "mkfs.nilfs2",
        "mkfs.fat",
    ];
    let all = vec![
        Case::new(
            "a command finds this machine's root, its devices and every filesystem",
            needs(&makers),
            facts,
        ),
        Case::new("NVMe has queues for polling", needs(&[]), nvme),
        Case::new("an SD card is one", needs(&[]), sd_card),
        Case::new("an image keeps what is written", needs(&[]), image),
        Case::new(
            "a user runs it, and has no more rights on this machine than before",
            needs(&["setpriv"]),
            by_a_user,
        ),
        Case::new("it is told who executed it", needs(&[]), accelerator),
        Case::new(
            "a panic is an error with the console's end",
            needs(&[]),
            panics,
        ),
        Case::new(
            "a broken kernel is an error with the console's end",
            needs(&[]),
            broken_kernel,
        ),
        Case::new(
            "a command that cannot be run is named",
            needs(&[]),
            no_such_command,
        ),
        Case::new("a guest ends at its time limit", needs(&[]), time_limit),
        Case::new("a guest ends with Ctrl-C", needs(&[]), || {
            ended_by(Signal::INT)
        }),
        Case::new("a guest ends with its host's process", needs(&[]), || {
            ended_by(Signal::KILL)
        }),
        Case::new("bad usage is refused", needs(&[]), refused),
        Case::new("a kernel may patch its own code", needs(&[]), patching),
        Case::new("the tests inside pass", needs(&[]), || {
            run_inside(&[], &[INSIDE], INSIDE_LIMIT)
        }),
        Case::new("the tests of stacks pass", needs(&[]), || {
            run_inside(&[], &[ON_STACKS], INSIDE_LIMIT)
        }),
    ];
    let all = all.into_iter().chain(cases_of_refusals(needs));
    let disks = ["nvme", "scsi", "sd"].map(|kind| busy(kind, needs(&[])));
    let all = all.chain(disks).chain(hardware::cases(needs));
    let all = all
        .chain(passthrough::cases(needs))
        .chain(other_filesystems::cases(needs));
    let all = all.chain(service::cases(needs));
    all.map(|case| case.about("guest")).collect()
}

/// Where BPF is refused, by rights or by the kernel.
fn cases_of_refusals(needs: impl Fn(&[&'static str]) -> Vec<Requirement>) -> [Case; 2] {
    let way_out = Case::new(
        "demo, explain and a lab run in one where a user may not trace",
        needs(&["setpriv"]),
        way_out,
    );
    [way_out, without_bpf(needs(&["mkfs.ext4"]))]
}

fn without_bpf(needs: Vec<Requirement>) -> Case {
    // Without the filter in its name, which would select it in the guest too.
    let name = "the tests pass where BPF programs cannot run";
    Case::new(name, needs, || match kernels::image(kernels::WITHOUT_BPF) {
        Some(kernel) => {
            let flags = ["--kernel", &kernel.to_string_lossy()];
            run_inside(&flags, &[WITHOUT_BPF], INSIDE_LIMIT)
        }
        None => {
            println!("    no Linux {}: BTF is covered", kernels::WITHOUT_BPF);
            let cover = ["sh", "-c", COVER_BTF, "sh"];
            Programs::own()?.run(&cover, &[], &[WITHOUT_BPF], INSIDE_LIMIT)
        }
    })
}

/// A kind of disk under load.
fn busy(kind: &'static str, needs: Vec<Requirement>) -> Case {
    let name = format!("{kind}: no trace of a busy disk fails");
    Case::new(name, needs, move || {
        run_inside(&["--device", kind], &[ON_DISKS], INSIDE_LIMIT)
    })
}

/// The tests that are run by [`run_inside`], `more` among them; none on the host.
pub fn cases_inside(mut more: Vec<Case>) -> Vec<Case> {
    more.push(Case::new(
        TRACED,
        [Requirement::Root, Requirement::Btf],
        traced,
    ));
    in_a_guest(INSIDE, more)
}

/// The tests on devices that are made of others; none on the host.
pub fn cases_on_stacks(all: Vec<Case>) -> Vec<Case> {
    in_a_guest(ON_STACKS, all)
}

/// The tests where BPF programs cannot run; none on the host.
pub fn cases_without_bpf(all: Vec<Case>) -> Vec<Case> {
    in_a_guest(WITHOUT_BPF, all)
}

/// The tests on the guest's own disk; none on the host.
pub fn cases_on_disks(all: Vec<Case>) -> Vec<Case> {
    in_a_guest(ON_DISKS, all)
}

/// The tests that a systemd in a guest runs; none on the host.
pub fn cases_under_systemd() -> Vec<Case> {
    in_a_guest(service::UNDER_SYSTEMD, service::cases_under_systemd())
}

fn in_a_guest(about: &str, all: Vec<Case>) -> Vec<Case> {
    if std::env::var_os("IOSTEP_GUEST").is_none() {
        return Vec::new();
    }
    all.into_iter().map(|case| case.about(about)).collect()
}

/// Runs `iostep lab guest` with these arguments.
fn guest<S: AsRef<std::ffi::OsStr>>(arguments: &[S], limit: Duration) -> anyhow::Result<Outcome> {
    let words = ["lab", "guest"].map(std::ffi::OsStr::new);
    let words = words.into_iter().chain(arguments.iter().map(AsRef::as_ref));
    Running::start(words)?.finish_within(limit)
}

/// The same with `--json`, which must succeed with the command's status.
fn json(arguments: &[&str], status: i32) -> anyhow::Result<Value> {
    let arguments: Vec<&str> = ["--json"].iter().chain(arguments).copied().collect();
    let outcome = guest(&arguments, LIMIT)?.status(status)?;
    let value: Value = serde_json::from_str(&outcome.stdout)?;
    println!(
        "    Linux {}, emulated: {}, up in {} s",
        value["kernel"], value["emulated"], value["boot_seconds"]
    );
    anyhow::ensure!(value["status"] == status, "{value}");
    Ok(value)
}

fn lines<'a>(value: &'a Value, stream: &str) -> Vec<&'a str> {
    value[stream].as_str().unwrap_or_default().lines().collect()
}

fn facts() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let rw = directory.path().to_string_lossy().into_owned();
    let value = json(
        &[
            "--size",
            "512MiB",
            "--journal-size",
            "16MiB",
            "--rw",
            &rw,
            "--env",
            &format!("RW={rw}"),
            "--",
            "sh",
            "-c",
            FACTS,
            "sh",
            "a b",
            "it's",
            "$HOME",
            "line\nbreak",
            "",
        ],
        3,
    )?;
    let stdout = lines(&value, "stdout");
    let kernel = value["kernel"].as_str().unwrap_or_default();
    let (own, expected) = (
        rustix::system::uname(),
        [
            kernel,
            "0",
            "1",
            "<a b><it's><$HOME><line",
            "break><>",
            "536870912",
            "16777216",
        ],
    );
    anyhow::ensure!(stdout.starts_with(&expected), "{stdout:#?}");
    println!(
        "    on a host with Linux {}",
        own.release().to_string_lossy()
    );
    let mounted =
        ["ext4", "xfs", "btrfs", "f2fs", "nilfs2", "vfat"].map(|kind| format!("mounted {kind}"));
    anyhow::ensure!(stdout[expected.len()..] == mounted, "{stdout:#?}");
    anyhow::ensure!(lines(&value, "stderr") == ["to-stderr"], "{value}");
    let written = std::fs::read_to_string(directory.path().join("written"))?;
    anyhow::ensure!(written == "kept\n", "{written:?}");
    for path in ["/etc/written", "/tmp/written"] {
        anyhow::ensure!(!Path::new(path).exists(), "{path} is on the host");
    }
    Ok(())
}

fn nvme() -> anyhow::Result<()> {
    let queue = "cat /sys/block/nvme0n1/queue/io_poll /sys/module/nvme/parameters/poll_queues
        blockdev --getsize64 /dev/nvme0n1 /dev/nvme0n2";
    let flags = [
        "--device",
        "nvme",
        "--size",
        "64MiB",
        "--journal-size",
        "32MiB",
        "--",
    ];
    let value = json(&[&flags[..], &["sh", "-c", queue]].concat(), 0)?;
    let stdout = lines(&value, "stdout");
    anyhow::ensure!(stdout == ["1", "1", "67108864", "33554432"], "{value}");
    Ok(())
}

fn sd_card() -> anyhow::Result<()> {
    let look = "cat /sys/block/mmcblk0/device/type; blockdev --getsize64 /dev/mmcblk0";
    let flags = ["--device", "sd", "--size", "64MiB", "--", "sh", "-c", look];
    let value = json(&flags, 0)?;
    anyhow::ensure!(lines(&value, "stdout") == ["SD", "67108864"], "{value}");
    Ok(())
}

fn image() -> anyhow::Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    file.as_file().set_len(1 << 20)?;
    let path = file.path().to_string_lossy().into_owned();
    let write = "printf written | dd of=/dev/vda bs=512 seek=3 conv=notrunc,sync 2>/dev/null";
    json(&["--image", &path, "--", "sh", "-c", write], 0)?;
    let bytes = std::fs::read(&path)?;
    anyhow::ensure!(bytes.len() == 1 << 20, "{} bytes", bytes.len());
    anyhow::ensure!(
        bytes[3 * 512..].starts_with(b"written\0"),
        "nothing was written"
    );
    Ok(())
}

/// Somebody without any right, in a directory of theirs.
struct Other {
    directory: tempfile::TempDir,
}

impl Other {
    fn new() -> anyhow::Result<Other> {
        let directory = tempfile::tempdir()?;
        let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open)?;
        // The build's directory may be closed to others.
        std::fs::copy(iostep::binary()?, directory.path().join("iostep"))?;
        Ok(Other { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs iostep as them, or as a root that has as few rights.
    fn run(&self, rights: &[&str], arguments: &[&str]) -> anyhow::Result<Outcome> {
        let output = Command::new("setpriv")
            .args(rights)
            .arg(self.path().join("iostep"))
            .args(arguments)
            .current_dir(self.path())
            .env("TMPDIR", self.path())
            .output()?;
        Ok(Outcome::from(output))
    }
}

const USER: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
const WEAK_ROOT: [&str; 2] = ["--bounding-set=-all", "--inh-caps=-all"];

fn way_out() -> anyhow::Result<()> {
    let other = Other::new()?;
    let said = "a guest does it";
    let demo = other.run(&USER, &["demo", "--json"])?.status(0)?;
    anyhow::ensure!(demo.stderr.contains(said), "{demo:?}");
    let explanation: Value = serde_json::from_str(&demo.stdout)?;
    let modes = explanation["comparison"].as_array().map(Vec::len);
    anyhow::ensure!(modes == Some(7), "{explanation}");
    let page = std::fs::read_to_string(other.path().join("demo-report.html"))?;
    anyhow::ensure!(page.contains("Written under each journal mode"), "no page");

    // What SQLite reads of it needs memory that is shared, which a guest's directories have not.
    let database = other.path().join("app.db");
    let made = rusqlite::Connection::open(&database)?;
    made.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t(v)")?;
    drop(made);
    let before = std::fs::read(&database)?;
    let insert = "INSERT INTO t VALUES (1)";
    let modes = ["--journal", "delete,wal", "--html", "cost.html"];
    let words = [&["explain", "app.db", insert, "--json"][..], &modes].concat();
    let outcome = other.run(&WEAK_ROOT, &words)?.status(0)?;
    let lacks = "this root lacks it";
    let is_told = outcome.stderr.contains(said) && outcome.stderr.contains(lacks);
    anyhow::ensure!(is_told && !outcome.stderr.contains("sudo"), "{outcome:?}");
    let explanation: Value = serde_json::from_str(&outcome.stdout)?;
    let runs = explanation["runs"].as_array().map(Vec::len);
    anyhow::ensure!(runs == Some(2), "{explanation}");
    anyhow::ensure!(other.path().join("cost.html").exists(), "no page");
    anyhow::ensure!(std::fs::read(&database)? == before, "the database changed");

    let cell = "name='one'\n[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
        device-size='64MiB'\n";
    std::fs::write(other.path().join("one.toml"), cell)?;
    let results = other.path().join("results");
    std::fs::create_dir(&results)?;
    std::os::unix::fs::chown(&results, Some(65534), Some(65534))?;
    let lab = ["lab", "run", "one.toml", "--results", "results", "--json"];
    let outcome = other.run(&USER, &lab)?.status(0)?;
    anyhow::ensure!(outcome.stderr.contains(said), "{outcome:?}");

    for words in [
        &["demo", "--on", "here"][..],
        &["explain", "app.db", insert, "--on", "here"],
    ] {
        other.run(&USER, words)?.refused(&[4], "CAP_")?;
    }
    let left = std::fs::read_dir(other.path())?.flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    let hidden = |name: &&std::ffi::OsString| name.to_string_lossy().starts_with('.');
    anyhow::ensure!(!left.iter().any(|name| hidden(&name)), "{left:?}");
    Ok(())
}

fn by_a_user() -> anyhow::Result<()> {
    let other = Other::new()?;
    let script = "id -u; echo kept > written; cat /etc/shadow";
    let words = ["lab", "guest", "--rw", ".", "--", "sh", "-c", script];
    let outcome = other.run(&USER, &words)?.status(1)?;
    anyhow::ensure!(outcome.stdout == "0\n", "{outcome:?}");
    let denied = outcome.stderr.contains("/etc/shadow: Permission denied");
    anyhow::ensure!(denied, "{outcome:?}");
    let written = other.path().join("written").metadata()?;
    let owner = std::os::unix::fs::MetadataExt::uid(&written);
    anyhow::ensure!(owner == 65534, "it belongs to {owner}");
    Ok(())
}

/// Whether a guest comes up on the processor is a fact of the machine that only trying tells.
fn accelerator() -> anyhow::Result<()> {
    let on_processor = guest(&["--kvm", "on", "--", "true"], LIMIT)?;
    let works = on_processor.code == Some(0);
    println!("    KVM works: {works}");
    let auto = json(
        &["--", "printenv", "IOSTEP_GUEST_EMULATED"],
        i32::from(works),
    )?;
    anyhow::ensure!(auto["emulated"] == !works, "{auto}");
    let off = json(&["--kvm", "off", "--", "true"], 0)?;
    anyhow::ensure!(off["emulated"] == true, "{off}");
    Ok(())
}

fn panics() -> anyhow::Result<()> {
    let crash = "echo c > /proc/sysrq-trigger; sleep 100";
    let outcome = guest(&["--", "sh", "-c", crash], LIMIT)?.status(1)?;
    println!("{}", outcome.stderr);
    anyhow::ensure!(
        outcome.stderr.contains("ended before the command did"),
        "{outcome:?}"
    );
    anyhow::ensure!(
        outcome.stderr.contains("sysrq triggered crash"),
        "{outcome:?}"
    );
    anyhow::ensure!(outcome.stderr.lines().count() <= 51, "{outcome:?}");
    Ok(())
}

/// A kernel's image with a whole header, and nothing behind it that could be unpacked.
pub struct BrokenKernel {
    root: TempDir,
}

impl BrokenKernel {
    /// Makes the image and its modules.
    pub fn new() -> anyhow::Result<BrokenKernel> {
        let kernel = BrokenKernel {
            root: tempfile::tempdir()?,
        };
        let modules = kernel.root.path().join("lib/modules/6.1.0-broken");
        std::fs::create_dir(kernel.root.path().join("boot"))?;
        std::fs::create_dir_all(&modules)?;
        let mut dependencies = String::new();
        for name in [
            "virtio_pci",
            "virtio_console",
            "9pnet_virtio",
            "9p",
            "overlay",
            "virtio_blk",
            "ext4",
        ] {
            std::fs::write(modules.join(format!("{name}.ko")), "")?;
            dependencies.push_str(&format!("{name}.ko:\n"));
        }
        std::fs::write(modules.join("modules.dep"), dependencies)?;
        // Documentation/arch/x86/boot.rst of Linux.
        let mut bytes = vec![0; 64 << 10];
        bytes[0x1f1] = 4;
        bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x206..0x208].copy_from_slice(&0x020fu16.to_le_bytes());
        bytes[0x20e..0x210].copy_from_slice(&0x200u16.to_le_bytes());
        bytes[0x400..][..12].copy_from_slice(b"6.1.0-broken");
        std::fs::write(kernel.path(), bytes)?;
        Ok(kernel)
    }

    /// The image.
    pub fn path(&self) -> String {
        let path = self.root.path().join("boot/vmlinuz");
        path.to_string_lossy().into_owned()
    }
}

fn broken_kernel() -> anyhow::Result<()> {
    let kernel = BrokenKernel::new()?;
    let flags = ["--kernel", &kernel.path(), "--time-limit", "20s", "--"];
    let outcome = guest(&[&flags[..], &["true"]].concat(), LIMIT)?;
    println!("{}", outcome.stderr);
    let outcome = outcome.status(1)?;
    anyhow::ensure!(outcome.stderr.contains("the guest"), "{outcome:?}");
    anyhow::ensure!(outcome.stderr.contains("console"), "{outcome:?}");
    Ok(())
}

fn no_such_command() -> anyhow::Result<()> {
    guest(&["--", "no-such-command"], LIMIT)?.refused(&[1], "no-such-command")?;
    Ok(())
}

fn time_limit() -> anyhow::Result<()> {
    let outcome = guest(&["--time-limit", "2s", "--", "sleep", "600"], LIMIT)?.status(1)?;
    println!("{}", outcome.stderr);
    anyhow::ensure!(
        outcome.stderr.contains("within its time limit"),
        "{outcome:?}"
    );
    Ok(())
}

/// What is left behind is found by the harness.
fn ended_by(signal: Signal) -> anyhow::Result<()> {
    let running = Running::start(["lab", "guest", "--", "sleep", "600"])?;
    let has_guest = || {
        let pid = running.pid().as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.is_ok_and(|children| !children.trim().is_empty())
    };
    crate::faults::wait_until("QEMU to start", has_guest)?;
    running.signal(signal)?;
    let outcome = running.finish()?;
    let expected = match signal {
        Signal::KILL => None,
        _ => Some(1),
    };
    anyhow::ensure!(outcome.code == expected, "{outcome:?}");
    Ok(())
}

fn refused() -> anyhow::Result<()> {
    for (flags, status, object) in [
        (&["--device", "floppy"][..], 2, "floppy"),
        (&["--device", "sd", "--size", "3MiB"], 2, "3145728"),
        (&["--rw", "/"], 2, "/"),
        (&["--rw", "/no/such/directory"], 2, "/no/such/directory"),
        (&["--memory", "1MiB"], 2, "memory"),
        (&["--cpus", "0"], 2, "processors"),
        (&["--kernel", "/etc/passwd"], 2, "/etc/passwd"),
        (&["--kernel", "/no/such/kernel"], 2, "/no/such/kernel"),
        (&["--size", "8000000TiB"], 4, "TMPDIR"),
    ] {
        let arguments: Vec<&str> = flags.iter().chain(&["--", "true"]).copied().collect();
        let outcome = guest(&arguments, LIMIT)?;
        println!("    {}", outcome.stderr.lines().next().unwrap_or_default());
        let outcome = outcome.status(status)?;
        anyhow::ensure!(
            outcome.stderr.contains(object),
            "{flags:?}: {}",
            outcome.stderr
        );
    }
    let without_qemu = Command::new(iostep::binary()?)
        .args(["lab", "guest", "--", "true"])
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .output()?;
    let outcome = Outcome::from(without_qemu);
    outcome.refused(&[4], "apt install qemu-system-x86")?;
    Ok(())
}

/// QEMU 7.2 with a thread for each processor hangs in this in most runs: see `qemu.rs`.
fn patching() -> anyhow::Result<()> {
    let command = ["--time-limit", "120s", "--", "sh", "-c", PATCHING];
    let outcome = guest(&command, LIMIT)?.status(0)?;
    anyhow::ensure!(outcome.stdout == "done\n", "{outcome:?}");
    Ok(())
}

/// Runs this very binary with these arguments in a guest, which has `more` flags than the others.
pub fn run_inside(more: &[&str], arguments: &[&str], limit: Duration) -> anyhow::Result<()> {
    Programs::own()?.run(&[], more, arguments, limit)
}

/// What runs in a guest.
pub struct Programs {
    /// These tests.
    pub tests: PathBuf,
    pub iostep: PathBuf,
}

impl Programs {
    fn own() -> anyhow::Result<Programs> {
        Ok(Programs {
            tests: std::env::current_exe()?,
            iostep: iostep::binary()?,
        })
    }

    /// Runs the tests with these arguments, started by the command `by`. What is required of the
    /// machine is required of the guest.
    pub fn run(
        &self,
        by: &[&str],
        more: &[&str],
        arguments: &[&str],
        limit: Duration,
    ) -> anyhow::Result<()> {
        let tests = self.tests.to_string_lossy();
        let command = [by, &[&*tests], arguments].concat();
        let stdout = self.run_command(more, &command, limit)?;
        let mut lines = stdout.lines();
        let ran = |line: &str| line.starts_with("test result: ok.") && !line.contains(" 0 passed");
        anyhow::ensure!(lines.any(ran), "nothing ran: {stdout}");
        Ok(())
    }

    /// Runs a command with the tests' environment, and hands out what it printed.
    pub fn run_command(
        &self,
        more: &[&str],
        command: &[&str],
        limit: Duration,
    ) -> anyhow::Result<String> {
        let binary = format!("IOSTEP_BIN={}", self.iostep.display());
        let required = std::env::var("IOSTEP_REQUIRE").unwrap_or_default();
        let required = format!("IOSTEP_REQUIRE={required}");
        let variants = std::env::var("IOSTEP_VARIANTS").unwrap_or_default();
        // Recordings stay until all tests have read them, in the guest's memory.
        let memory = if variants.is_empty() { "2GiB" } else { "4GiB" };
        let variants = format!("IOSTEP_VARIANTS={variants}");
        let variables = ["--env", &binary, "--env", &required, "--env", &variants];
        let sizes = ["--size", "512MiB", "--memory", memory];
        // The command's own limit: its error shows the console, where the kernel names stuck tasks.
        let seconds = format!("{}s", limit.as_secs());
        let time = ["--time-limit", &seconds];
        let flags = [&variables[..], &sizes, &time, more].concat();
        let outcome = guest(&[&flags[..], &["--"], command].concat(), limit + LIMIT)?;
        println!("    {}", outcome.stderr.lines().last().unwrap_or_default());
        outcome
            .stdout
            .lines()
            .for_each(|line| println!("    {line}"));
        anyhow::ensure!(
            outcome.code == Some(0),
            "{}\n{}",
            outcome.stdout,
            outcome.stderr
        );
        Ok(outcome.stdout)
    }
}

/// On the guest's own device, by its kernel, whose types may be laid out otherwise.
fn traced() -> anyhow::Result<()> {
    traced_on(&[], "defaults")?;
    traced_on(&["-O", "encrypt"], "test_dummy_encryption")
}

fn traced_on(features: &[&str], mount: &str) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).status();
        let status = status.with_context(|| format!("{program} cannot be run"))?;
        anyhow::ensure!(status.success(), "{program}: {status}");
        Ok(())
    };
    let make = [&["-q", "-F", "-b", "4096"], features, &["/dev/vda"]].concat();
    run("mkfs.ext4", &make)?;
    run("mount", &["-o", mount, "/dev/vda", "/mnt"])?;
    std::fs::create_dir_all(GROUP)?;
    // What is made after the mount is encrypted.
    let write = "echo 0 >$0/cgroup.procs; mkdir /mnt/d; \
         for n in 1 2 3; do dd if=/dev/zero of=/mnt/d/$n bs=4k count=5 conv=fsync; done; \
         dd if=/dev/zero of=/mnt/d/4 bs=4k count=5 conv=fsync oflag=direct";
    let output = output.to_string_lossy();
    let traced = iostep::run([
        "trace", "/mnt", "--json", "--settle", "-o", &output, "--", "sh", "-c", write, GROUP,
    ]);
    run("umount", &["/mnt"])?;
    traced?.success()?;
    let trace = iostep_model::store::read(Path::new(&*output))?;
    anyhow::ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
    let written = trace.manifest.check.completed.write.bytes;
    println!("    {mount}: {written} bytes written");
    anyhow::ensure!(written >= 4 * 5 * 4096, "{written} bytes");
    // Every program is there.
    let notes = &trace.manifest.check.notes;
    anyhow::ensure!(notes.is_empty(), "{notes:?}");
    names_control_groups(&trace)?;
    names_files_and_syncs(&trace)
}

/// Where the commands that write move to.
const GROUP: &str = "/sys/fs/cgroup/writers";

fn names_control_groups(trace: &Trace) -> anyhow::Result<()> {
    let expected = (
        Some(std::fs::metadata(GROUP)?.ino()),
        GROUP.strip_prefix("/sys/fs/cgroup"),
    );
    let mut writers = trace.processes.iter().filter(|row| row.comm == "dd");
    let is_there = |row: &ProcessRow| (row.cgroup_id, row.cgroup.as_deref()) == expected;
    let all_are = writers.clone().all(is_there) && writers.next().is_some();
    anyhow::ensure!(all_are, "{expected:?}: {:#?}", trace.processes);
    Ok(())
}

fn names_files_and_syncs(trace: &Trace) -> anyhow::Result<()> {
    for name in ["1", "2", "3", "4"] {
        let named = |file: &File| file.path.as_deref().is_some_and(|p| p.ends_with(name));
        let file = trace.files.iter().position(named);
        let file = file.with_context(|| format!("no file {name}"))?;
        let is_its = |sync: &&Sync| sync.file == Some(file as u32);
        let syncs = trace.syncs.iter().filter(is_its).count();
        anyhow::ensure!(syncs == 1, "{name} was synced {syncs} times");
        let is_data = |s: &&Segment| s.file == Some(file as u32) && s.file_offset_bytes.is_some();
        let data = trace.segments.iter().filter(is_data);
        let mut pieces: Vec<(u64, u32)> = data
            .map(|segment| (segment.file_offset_bytes.unwrap_or(0), segment.bytes))
            .collect();
        pieces.sort_unstable();
        let mut end = 0;
        for (offset, bytes) in &pieces {
            anyhow::ensure!(*offset == end, "{name}: {pieces:?}");
            end += u64::from(*bytes);
        }
        anyhow::ensure!(end == 5 * 4096, "{name}: {pieces:?}");
    }
    Ok(())
}

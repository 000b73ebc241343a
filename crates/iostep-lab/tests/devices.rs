//! Loop devices and mounts leave nothing behind. Needs root; without it every test is reported as
//! ignored, with the reason, or fails if `IOSTEP_REQUIRE` asks for it.
//!
//! Ground truth: `/sys/block/loopN/loop` and the mount table.

#[path = "../../../tests/kernel/src/demand.rs"]
mod demand;

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use iostep_lab::image::Options;
use iostep_lab::{Error, Kind, LoopImage, Mount, enter_private_mounts, mkfs};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Makes this binary hold a mounted image until it is killed, instead of running tests.
const HOLD: &str = "IOSTEP_LAB_TEST_HOLD";
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if let Ok(how) = std::env::var(HOLD) {
        return hold(&how);
    }
    let mut tests = vec![
        trial("a_dropped_environment_leaves_nothing", dropped),
        trial("a_panic_leaves_nothing", panicked),
        trial("a_mount_in_use_goes_when_its_last_file_is_closed", in_use),
        trial("a_failed_mount_leaves_nothing", failed_mount),
        trial("sigkill_in_a_private_namespace_leaves_nothing", killed),
        trial("private_mounts_are_seen_by_nobody_else", private),
        trial("a_failed_mkfs_says_why", failed_mkfs),
        trial("direct_io_reaches_the_loop_driver", direct_io),
        trial("the_logical_block_size_is_the_one_asked_for", block_size),
        trial("a_used_device_has_no_scheduler", scheduler),
    ];
    tests.extend(iostep_lab::MADE.map(made_and_mounted));
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn trial(name: &str, test: fn() -> Result<(), Failed>) -> Trial {
    Trial::ignorable_test(name, move || {
        if rustix::process::geteuid().is_root() {
            return test().map(|()| Completion::Completed);
        }
        demand::skip(&["root"], "needs root")
    })
}

/// Shown as ignored where the kernel cannot mount it.
fn made_and_mounted(kind: Kind) -> Trial {
    let name = format!("{}_can_be_made_and_mounted", kind.name());
    Trial::ignorable_test(name, move || {
        let missing = if !rustix::process::geteuid().is_root() {
            "root"
        } else if !can_mount(kind) {
            kind.name()
        } else {
            return make_and_mount(kind).map(|()| Completion::Completed);
        };
        let reason = format!("needs {missing}");
        let is_common = matches!(kind, Kind::Ext4 | Kind::Xfs | Kind::Btrfs);
        match is_common || missing == "root" {
            true => demand::skip(&[missing], &reason),
            // The kernel tests make and mount it in guests, whose kernels have it.
            false => Ok(Completion::ignored_with(reason)),
        }
    })
}

fn can_mount(kind: Kind) -> bool {
    // What is a module is not listed before it is loaded.
    let _ = Command::new("modprobe")
        .arg(kind.name())
        .stderr(Stdio::null())
        .status();
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known
        .lines()
        .any(|line| line.split_whitespace().last() == Some(kind.name()))
}

fn small() -> Options {
    Options {
        bytes: 32 << 20,
        ..Options::default()
    }
}

fn ext4() -> Result<(LoopImage, Mount), Error> {
    let image = LoopImage::create(&small())?;
    mkfs::<&str>(Kind::Ext4, &image, &[])?;
    let mount = Mount::new(Kind::Ext4, &image, "")?;
    Ok((image, mount))
}

/// What the environment must not leave behind.
struct Traces {
    device: PathBuf,
    /// The image as the kernel names it: by its inode, since it has no name. A device number
    /// alone would not do, because others take it as soon as it is free.
    image: String,
    mount_point: PathBuf,
}

impl Traces {
    fn of(image: &LoopImage, mount: &Mount) -> Traces {
        Traces::at(image.device().to_owned(), mount.path().to_owned())
    }

    fn at(device: PathBuf, mount_point: PathBuf) -> Traces {
        Traces {
            image: backing_file(&device).expect("it is attached"),
            device,
            mount_point,
        }
    }

    fn mounted(&self) -> bool {
        mount_table().contains(&*self.mount_point.to_string_lossy())
    }

    fn bound(&self) -> bool {
        backing_file(&self.device).as_ref() == Some(&self.image)
    }

    /// udev may hold the device for a moment longer than we do.
    fn check_detached(&self) -> Result<(), Failed> {
        let deadline = Instant::now() + PATIENCE;
        while self.bound() {
            if Instant::now() > deadline {
                return Err(format!("{} is still attached", self.device.display()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        check(!self.mounted(), "still mounted")
    }

    fn check_gone(&self) -> Result<(), Failed> {
        self.check_detached()?;
        check(!self.mount_point.exists(), "the mount point is still there")
    }
}

fn mount_table() -> String {
    fs::read_to_string("/proc/thread-self/mountinfo").expect("the mount table is readable")
}

fn backing_file(device: &Path) -> Option<String> {
    let name = device.file_name().expect("a device has a name");
    let attribute = Path::new("/sys/block").join(name).join("loop/backing_file");
    fs::read_to_string(attribute).ok()
}

fn check(fact: bool, otherwise: &str) -> Result<(), Failed> {
    fact.then_some(()).ok_or_else(|| otherwise.into())
}

fn dropped() -> Result<(), Failed> {
    let (image, mount) = ext4()?;
    let traces = Traces::of(&image, &mount);
    check(traces.bound() && traces.mounted(), "nothing was made")?;
    fs::write(mount.path().join("file"), b"content")?;
    drop(mount);
    drop(image);
    traces.check_gone()
}

fn panicked() -> Result<(), Failed> {
    let (image, mount) = ext4()?;
    let traces = Traces::of(&image, &mount);
    let unwound = std::panic::catch_unwind(move || {
        let _held = (mount, image);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    check(unwound.is_err(), "it did not panic")?;
    traces.check_gone()
}

fn in_use() -> Result<(), Failed> {
    let (image, mount) = ext4()?;
    let traces = Traces::of(&image, &mount);
    let mut file = fs::File::create(mount.path().join("file"))?;
    drop(mount);
    drop(image);
    check(!traces.mounted(), "still mounted")?;
    check(traces.bound(), "the file's device went away below it")?;
    file.write_all(b"still works")?;
    drop(file);
    traces.check_gone()
}

fn failed_mount() -> Result<(), Failed> {
    let image = LoopImage::create(&small())?;
    let device = image.device().to_owned();
    let error = Mount::new(Kind::Ext4, &image, "").expect_err("there is no filesystem on it");
    check(
        error.to_string().contains("cannot mount"),
        &error.to_string(),
    )?;
    check(
        !mount_table().contains(&*device.to_string_lossy()),
        "mounted",
    )
}

fn killed() -> Result<(), Failed> {
    let (mut child, traces) = start_holder("private")?;
    check(traces.bound(), "the child has no device")?;
    child.kill()?;
    child.wait()?;
    traces.check_detached()?;
    // The one thing that no kernel mechanism removes; the next mount does.
    drop(ext4()?);
    traces.check_gone()
}

fn private() -> Result<(), Failed> {
    let (mut child, traces) = start_holder("private")?;
    check(!traces.mounted(), "the child's mount is seen outside")?;
    drop(child.stdin.take());
    child.wait()?;
    traces.check_gone()
}

/// Runs this binary as a process that has an image mounted until its standard input ends.
fn start_holder(how: &str) -> Result<(Child, Traces), Failed> {
    let mut child = Command::new(std::env::current_exe()?)
        .env(HOLD, how)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines();
    let mut next = || -> Result<PathBuf, Failed> {
        let line = lines.next().ok_or("the child said nothing")??;
        Ok(PathBuf::from(line))
    };
    let device = next()?;
    Ok((child, Traces::at(device, next()?)))
}

fn hold(how: &str) -> ExitCode {
    if how == "private" {
        enter_private_mounts().expect("root may");
    }
    let (image, mount) = ext4().expect("root may");
    fs::write(mount.path().join("file"), b"content").expect("there is room");
    println!("{}\n{}", image.device().display(), mount.path().display());
    let _ = std::io::stdin().read_line(&mut String::new());
    ExitCode::SUCCESS
}

fn make_and_mount(kind: Kind) -> Result<(), Failed> {
    let image = LoopImage::create(&Options {
        bytes: iostep_lab::tool(kind).smallest_bytes,
        ..Options::default()
    })?;
    mkfs::<&str>(kind, &image, &[])?;
    let mount = Mount::new(kind, &image, "")?;
    let device = image.device().to_string_lossy().into_owned();
    let table = mount_table();
    let line = table.lines().find(|line| line.contains(&device));
    let made = line.is_some_and(|line| line.contains(&format!(" - {} ", kind.name())));
    check(made, kind.name())?;
    fs::write(mount.path().join("file"), b"content")?;
    mount.unmount()?;
    Ok(())
}

fn failed_mkfs() -> Result<(), Failed> {
    let image = LoopImage::create(&small())?;
    let error = mkfs(Kind::Ext4, &image, &["-b", "3"]).expect_err("3 is no block size");
    let text = error.to_string();
    check(matches!(error, Error::Program { .. }), &text)?;
    check(
        text.contains("mkfs.ext4 failed") && text.contains("block size"),
        &text,
    )
}

fn direct_io() -> Result<(), Failed> {
    let image = LoopImage::create(&Options {
        direct_io: true,
        ..small()
    })?;
    check(
        loop_attribute(&image, "loop/dio")? == "1",
        "the driver has it off",
    )
}

fn block_size() -> Result<(), Failed> {
    let image = LoopImage::create(&Options {
        block_bytes: 4096,
        ..small()
    })?;
    let size = loop_attribute(&image, "queue/logical_block_size")?;
    check(size == "4096", &size)
}

fn scheduler() -> Result<(), Failed> {
    // The kernel gives the first free one, but others take and give back theirs meanwhile: each
    // that comes is changed and given back, until one comes again.
    let mut changed = HashSet::new();
    for _ in 0..64 {
        let image = LoopImage::create(&small())?;
        let chosen = loop_attribute(&image, "queue/scheduler")?;
        check(chosen.contains("[none]"), &chosen)?;
        if !changed.insert(image.device().to_owned()) {
            return Ok(());
        }
        let mut offered = chosen.split(' ').filter(|name| !name.starts_with('['));
        let other = offered.next().ok_or("the kernel has no scheduler")?;
        fs::write(attribute_path(&image, "queue/scheduler"), other)?;
    }
    Err("no device came twice".into())
}

fn loop_attribute(image: &LoopImage, name: &str) -> Result<String, Failed> {
    Ok(fs::read_to_string(attribute_path(image, name))?
        .trim()
        .to_owned())
}

fn attribute_path(image: &LoopImage, name: &str) -> PathBuf {
    let device = image.device().file_name().expect("a device has a name");
    Path::new("/sys/block").join(device).join(name)
}

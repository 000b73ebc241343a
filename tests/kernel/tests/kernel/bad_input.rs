//! What cannot be traced or read is refused, with an error that says why.

use std::path::{Path, PathBuf};
use std::process::Command;

use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, mkfs};
use iostep_model::manifest::Backend;
use iostep_model::{Class, store};
use rustix::mount::{MountFlags, UnmountFlags};
use tempfile::TempDir;

use crate::case::Case;
use crate::stage::{self, Stage};

const ROOT: &[Requirement] = &[Requirement::Root, Requirement::Btf];
const LOOP: &[Requirement] = &[Requirement::Root, Requirement::Btf, Requirement::Loop];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let with = |program| [ROOT, &[Requirement::Program(program)]].concat();
    let mut ext4 = stage::requirements(Kind::Ext4);
    ext4.push(Requirement::Btf);
    let mut hidden = ext4.clone();
    hidden.extend([Requirement::Tracefs, Requirement::Program("unshare")]);
    vec![
        Case::new("without root, trace says so", with("setpriv"), without_root),
        Case::new(
            "three capabilities are enough to trace, and each is needed",
            [
                LOOP,
                &stage::requirements(Kind::Ext4)[..],
                &[Requirement::Program("setpriv")],
            ]
            .concat(),
            with_capabilities,
        ),
        Case::new(
            "without BTF, tracefs is chosen",
            hidden.clone(),
            without_btf,
        ),
        Case::new(
            "without BTF, --backend bpf says so",
            hidden,
            bpf_without_btf,
        ),
        Case::new("a character device is refused", ROOT, character_device),
        Case::new("a path that is not there is refused", ROOT, missing_path),
        Case::new("a tmpfs is refused", ROOT, on_tmpfs),
        Case::new(
            "an overlay is refused",
            [ROOT, &[Requirement::Filesystem("overlay")]].concat(),
            on_overlay,
        ),
        Case::new("a device without a filesystem is traced", LOOP, raw_device),
        Case::new(
            "a corrupt superblock does no harm",
            ext4.clone(),
            corrupt_superblock,
        ),
        Case::new(
            "an output directory with content is refused",
            ext4,
            taken_directory,
        ),
    ]
}

fn trace(target: &Path, output: &Path, flags: &[&str]) -> Vec<PathBuf> {
    let mut words: Vec<PathBuf> = ["trace", "-o"].map(PathBuf::from).to_vec();
    words.push(output.to_owned());
    words.extend(flags.iter().map(PathBuf::from));
    words.push(target.to_owned());
    words.extend(["--", "true"].map(PathBuf::from));
    words
}

/// Runs a trace that must be refused, without leaving its directory.
fn refused(target: &Path, codes: &[i32], object: &str) -> anyhow::Result<Outcome> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let outcome = iostep::run(trace(target, &output, &[]))?.refused(codes, object)?;
    anyhow::ensure!(!output.exists(), "{} was left", output.display());
    Ok(outcome)
}

/// A directory that everybody may write to, and a copy of the command in it: the build's own may be
/// closed to others.
fn for_others() -> anyhow::Result<(tempfile::TempDir, PathBuf)> {
    let directory = tempfile::tempdir()?;
    let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open)?;
    let copy = directory.path().join("iostep");
    std::fs::copy(iostep::binary()?, &copy)?;
    Ok((directory, copy))
}

fn without_root() -> anyhow::Result<()> {
    let (directory, copy) = for_others()?;
    let output = directory.path().join("run.iostep");
    let result = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(copy)
        .args(trace(Path::new("/"), &output, &[]))
        .output()?;
    Outcome::from(result).refused(&[4], "root")?;
    anyhow::ensure!(!output.exists(), "{} was left", output.display());
    Ok(())
}

/// A user with exactly these rights.
fn with_rights(rights: &[&str], copy: &Path, words: Vec<PathBuf>) -> anyhow::Result<Outcome> {
    let list = rights.iter().map(|right| format!(",+{right}"));
    let list = format!("-all{}", list.collect::<String>());
    let result = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([
            format!("--inh-caps={list}"),
            format!("--ambient-caps={list}"),
        ])
        .arg(copy)
        .args(words)
        .output()?;
    Ok(Outcome::from(result))
}

fn with_capabilities() -> anyhow::Result<()> {
    const RIGHTS: [&str; 3] = ["bpf", "perfmon", "syslog"];
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let (directory, copy) = for_others()?;
    let output = directory.path().join("run.iostep");
    for missing in RIGHTS {
        let others: Vec<&str> = RIGHTS
            .into_iter()
            .filter(|right| *right != missing)
            .collect();
        let words = trace(stage.device(), &output, &[]);
        let outcome = with_rights(&others, &copy, words)?;
        let setting = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        let is_zero = setting("kptr_restrict")?.trim() == "0";
        if missing == "syslog"
            && is_zero
            && setting("perf_event_paranoid")?.trim().parse::<i32>()? <= 1
        {
            println!("    this kernel shows its addresses to everybody");
            continue;
        }
        let name = format!("CAP_{} is missing", missing.to_uppercase());
        outcome.refused(&[4], &name)?;
        anyhow::ensure!(!output.exists(), "{} was left", output.display());
    }
    with_rights(&RIGHTS, &copy, trace(stage.device(), &output, &[]))?.success()?;
    Ok(())
}

/// Runs the command where an empty directory hides the kernel's BTF.
/// The tests of a kernel that cannot run our BPF programs.
pub fn cases_without_bpf() -> Vec<Case> {
    let case = Case::new(
        "a recorder names what does instead",
        [Requirement::Root],
        recorder_without_bpf,
    );
    vec![case]
}

fn recorder_without_bpf() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.calls");
    let path = output.to_string_lossy();
    let words = ["record", "-o", &path, "--", "true"];
    iostep::run(words)?.refused(&[4], "use --via ptrace")?;
    anyhow::ensure!(!output.exists(), "{path} was left");
    let words = ["record", "--via", "ptrace", "-o", &path, "--", "true"];
    iostep::run(words)?.success()?;
    iostep::run(["report", &path])?.success().map(drop)
}

fn run_without_btf(words: Vec<String>) -> anyhow::Result<Outcome> {
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let result = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(iostep::binary()?)
        .args(words)
        .env("NO_COLOR", "1")
        .output()?;
    Ok(Outcome::from(result))
}

fn without_btf() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let workload = stage.workload(&["append-fsync"]);
    run_without_btf(stage.trace(&output, &["--settle"], &workload))?.success()?;
    let manifest = store::read(&output)?.manifest;
    println!("    backend {}", manifest.backend.name());
    anyhow::ensure!(
        manifest.backend == Backend::Tracefs,
        "{:?}",
        manifest.backend
    );
    Ok(())
}

fn bpf_without_btf() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let words = stage.trace(&output, &["--backend", "bpf"], &["true".to_owned()]);
    run_without_btf(words)?.refused(&[4], "BTF")?;
    anyhow::ensure!(!output.exists(), "{} was left", output.display());
    Ok(())
}

fn character_device() -> anyhow::Result<()> {
    refused(Path::new("/dev/null"), &[2, 4], "/dev/null").map(drop)
}

fn missing_path() -> anyhow::Result<()> {
    refused(Path::new("/no/such/path"), &[1, 2], "/no/such/path").map(drop)
}

fn on_tmpfs() -> anyhow::Result<()> {
    let mount = TempMount::new("tmpfs", "")?;
    refused(mount.path(), &[4], "tmpfs").map(drop)
}

fn on_overlay() -> anyhow::Result<()> {
    let below = TempMount::new("tmpfs", "")?;
    for name in ["lower", "upper", "work"] {
        std::fs::create_dir(below.path().join(name))?;
    }
    let dir = below.path().display();
    let options = format!("lowerdir={dir}/lower,upperdir={dir}/upper,workdir={dir}/work");
    let overlay = TempMount::new("overlay", &options)?;
    refused(overlay.path(), &[4], "overlay").map(drop)
}

fn raw_device() -> anyhow::Result<()> {
    let image = LoopImage::create(&Options::default())?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let device = image.device().to_string_lossy().into_owned();
    let target = format!("of={device}");
    let output_text = output.to_string_lossy().into_owned();
    let mut words = vec!["trace", &device, "-o", &output_text, "--"];
    words.extend([
        "dd",
        "if=/dev/zero",
        &target,
        "bs=64k",
        "count=23",
        "oflag=direct",
    ]);
    iostep::run(words)?.success()?;
    let trace = store::read(&output)?;
    let mut written = 0;
    for segment in &trace.segments {
        let request = &trace.requests[segment.request as usize];
        if request.operation.is_write() {
            anyhow::ensure!(segment.class == Class::DeviceData, "{segment:?}");
            written += u64::from(segment.bytes);
        }
    }
    println!("    {written} bytes of device data");
    anyhow::ensure!(written == 23 * 65_536, "{written} bytes");
    anyhow::ensure!(
        trace.manifest.filesystem.is_none(),
        "a filesystem was found"
    );
    Ok(())
}

/// The magic number stays; everything else of the superblock is noise.
fn corrupt_superblock() -> anyhow::Result<()> {
    let image = LoopImage::create(&Options::default())?;
    mkfs::<&str>(Kind::Ext4, &image, &[])?;
    let device = std::fs::File::options().write(true).open(image.device())?;
    let magic = 1024 + 0x38;
    use std::os::unix::fs::FileExt;
    device.write_all_at(&[0xee; 0x38], 1024)?;
    device.write_all_at(&[0xee; 1024 - 0x3a], magic + 2)?;
    device.sync_all()?;
    drop(device);
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let outcome = iostep::run(trace(image.device(), &output, &[]))?;
    println!("    {:?}: {}", outcome.code, outcome.stderr.trim_end());
    match outcome.code {
        Some(0) => store::read(&output).map(drop)?,
        _ => anyhow::ensure!(!output.exists(), "{} was left", output.display()),
    }
    outcome.refused(&[0, 1, 4], "ext4").map(drop)
}

fn taken_directory() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = tempfile::tempdir()?;
    let mine = directory.path().join("mine.txt");
    std::fs::write(&mine, "do not touch")?;
    let words = stage.trace(directory.path(), &[], &["true".to_owned()]);
    let name = directory.path().to_string_lossy().into_owned();
    iostep::run(words)?.refused(&[1, 2], &name)?;
    let names: Vec<_> = std::fs::read_dir(directory.path())?.collect::<Result<_, _>>()?;
    anyhow::ensure!(names.len() == 1, "something was added: {names:?}");
    anyhow::ensure!(
        std::fs::read(&mine)? == b"do not touch",
        "the file was changed"
    );
    Ok(())
}

/// A mount without a device, gone at the end.
pub struct TempMount {
    directory: TempDir,
}

impl TempMount {
    /// Mounts a filesystem of this kind.
    pub fn new(kind: &str, options: &str) -> anyhow::Result<TempMount> {
        let directory = tempfile::tempdir()?;
        let data = std::ffi::CString::new(options)?;
        let flags = MountFlags::empty();
        rustix::mount::mount("none", directory.path(), kind, flags, data.as_c_str())?;
        Ok(TempMount { directory })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for TempMount {
    fn drop(&mut self) {
        // Lazily if a failed test still uses it; it then goes with the mount namespace.
        let _ = rustix::mount::unmount(self.path(), UnmountFlags::DETACH);
    }
}

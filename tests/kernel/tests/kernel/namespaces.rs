//! A filesystem that another process alone has mounted, named by a path through /proc.
//!
//! Ground truth: what stat(2) says of the path, the program's own writes, and FIEMAP.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::{extents, iostep};
use iostep_lab::Kind;
use iostep_lab::image::{LoopImage, Options};
use iostep_model::table::Trace;
use iostep_model::{Class, Operation, SECTOR_BYTES, store};
use tempfile::TempDir;

use crate::case::Case;
use crate::stage;

/// What the program writes, bytes.
const BYTES: u64 = 12 << 12;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let case = |kind: Kind, name: &str, body: Box<dyn Fn() -> anyhow::Result<()> + Send>| {
        let mut needs = stage::requirements(kind);
        let more = [Requirement::Btf, Requirement::Program("unshare")];
        needs.extend(more.into_iter().chain([Requirement::Tracefs]));
        Case::new(name, needs, body).about("namespaces")
    };
    let written = |kind: Kind, backend: &'static str| {
        let name = format!(
            "writes to another namespace's mount are those of its device, {} by {backend}",
            kind.name()
        );
        case(kind, &name, Box::new(move || writes(kind, backend)))
    };
    vec![
        written(Kind::Ext4, "bpf"),
        written(Kind::Xfs, "bpf"),
        written(Kind::Btrfs, "bpf"),
        written(Kind::Ext4, "tracefs"),
        case(
            Kind::Ext4,
            "every path into another namespace is traced as what stat names",
            Box::new(every_form),
        ),
        case(
            Kind::Btrfs,
            "every path into another namespace's btrfs is traced as its device",
            Box::new(of_a_subvolume),
        ),
        case(
            Kind::Ext4,
            "bench measures the device of another namespace's directory, and SQLite is not let astray",
            Box::new(benches),
        ),
    ]
}

/// A filesystem that is mounted in the mount namespace of one process alone: that ends with it.
struct Elsewhere {
    child: Child,
    /// The mount point, and beside it directory `bound`, at which its directory `inner` is bound.
    directory: TempDir,
    image: LoopImage,
}

impl Elsewhere {
    fn new(kind: Kind) -> anyhow::Result<Elsewhere> {
        let image = LoopImage::create(&Options {
            bytes: 320 << 20,
            ..Options::default()
        })?;
        iostep_lab::mkfs(kind, &image, iostep_lab::tool(kind).at_once)?;
        let directory = tempfile::tempdir()?;
        for name in ["mnt", "bound"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        let script = "mount -t $1 $2 mnt && mkdir mnt/inner && mount --bind mnt/inner bound && \
                      sync -f mnt && exec 9<mnt && cd mnt && echo mounted && read end";
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .args(["sh", kind.name()])
            .arg(image.device())
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().context("no output")?;
        let elsewhere = Elsewhere {
            child,
            directory,
            image,
        };
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        ensure!(line == "mounted\n", "{line:?}");
        Ok(elsewhere)
    }

    /// The directory in /proc of the process that has it mounted.
    fn process(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.child.id()))
    }

    /// A path of that process, through its root.
    fn through_root(&self, name: &str) -> PathBuf {
        let here = self.directory.path().join(name);
        let below = here.strip_prefix("/").unwrap_or(&here);
        self.process().join("root").join(below)
    }

    fn device_name(&self) -> String {
        let name = self.image.device().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Traces `target`, a path from `from`, while `dd` writes to `file`.
    fn trace(
        &self,
        (from, target): (&Path, &Path),
        flags: &[&str],
        file: &Path,
    ) -> anyhow::Result<(Trace, String)> {
        let output = self.directory.path().join("run.iostep");
        let file = format!("of={}", file.display());
        let count = format!("count={}", BYTES >> 12);
        let mut command = Command::new(iostep::binary()?);
        command.current_dir(from).arg("trace").arg(target);
        command.arg("-o").arg(&output).args(flags);
        command.args([
            "--",
            "dd",
            "status=none",
            "if=/dev/urandom",
            "bs=4k",
            &count,
        ]);
        command.args(["conv=notrunc,fsync", &file]);
        let outcome = iostep::Running::spawn(command)?.finish()?.success()?;
        let trace = store::read(&output)?;
        std::fs::remove_dir_all(&output)?;
        ensure!(trace.manifest.check.passed(), "{:?}", trace.manifest.check);
        let name = &trace.manifest.device.name;
        ensure!(
            *name == self.device_name(),
            "{}: {name} was traced",
            target.display()
        );
        Ok((trace, outcome.stdout))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // The end of its input is what it waits for; its mounts end with it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Bytes of data in the requests that wrote a file, found by the path that users have of it.
fn data_of(trace: &Trace, path: &Path) -> Vec<(u64, u64)> {
    let filesystem = trace.manifest.filesystem.as_ref();
    let is_meant = |row: u32| {
        let told = trace.files[row as usize].path.as_deref();
        let shown = told.zip(filesystem).map(|(told, it)| it.user_path(told));
        shown.is_some_and(|shown| Path::new(&shown) == path)
    };
    let data = trace.segments.iter().filter(|segment| {
        let operation = trace.requests[segment.request as usize].operation;
        let is_data = segment.class == Class::FileData && operation == Operation::Write;
        is_data && segment.file.is_some_and(is_meant)
    });
    let data = data.map(|segment| (segment.sector, u64::from(segment.bytes)));
    data.collect()
}

fn total(data: &[(u64, u64)]) -> u64 {
    data.iter().map(|(_, bytes)| bytes).sum()
}

fn writes(kind: Kind, backend: &str) -> anyhow::Result<()> {
    let elsewhere = Elsewhere::new(kind)?;
    let root = elsewhere.through_root("mnt");
    let file = root.join("inner/file");
    let flags = ["--settle", "--full", "--backend", backend];
    let (trace, text) = elsewhere.trace((Path::new("/"), &root), &flags, &file)?;
    let filesystem = trace.manifest.filesystem.as_ref().context("none")?;
    ensure!(filesystem.kind == kind.name(), "{filesystem:?}");
    ensure!(Path::new(&filesystem.mount_point) == root, "{filesystem:?}");
    let data = data_of(&trace, &file);
    ensure!(total(&data) == BYTES, "{data:?}");
    // By its layout, what is not data is known; what the tracer itself reads is not looked at.
    let others = trace.requests.iter().filter(|it| !it.by_tracer);
    let segments = others.flat_map(|request| trace.segments_of(request));
    let unknown = segments.filter(|it| it.class == Class::Unknown);
    ensure!(unknown.count() == 0, "{text}");
    // btrfs's are logical.
    if kind != Kind::Btrfs {
        let runs = extents::of(&File::open(&file)?)?;
        for (sector, bytes) in data {
            let start = sector * SECTOR_BYTES;
            let is_in = |run: &&extents::Extent| {
                run.physical <= start && start + bytes <= run.physical + run.bytes
            };
            ensure!(runs.iter().find(is_in).is_some(), "{start}: {runs:?}");
        }
    }
    Ok(())
}

/// Traces each way to name it, and a write to the same file by another.
fn every_form() -> anyhow::Result<()> {
    let elsewhere = Elsewhere::new(Kind::Ext4)?;
    let process = elsewhere.process();
    let root = elsewhere.through_root("mnt");
    let held = File::open(&root)?;
    let own = format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd());
    let own = PathBuf::from(own);
    let link = elsewhere.directory.path().join("link");
    std::os::unix::fs::symlink(&root, &link)?;
    let device = std::fs::metadata(&root)?.dev();
    let here = Path::new("/");
    let inner = elsewhere.through_root("bound/file");
    File::create(root.join("inner/file"))?;
    for (from, target) in [
        (here, process.join("cwd")),
        (here, process.join("cwd/inner/file")),
        (here, process.join("fd/9")),
        (here, own),
        (here, link),
        (here, elsewhere.through_root("bound")),
        (&process, "cwd/inner".into()),
        (&root, ".".into()),
        (here, elsewhere.image.device().into()),
    ] {
        println!("    {} in {}", target.display(), from.display());
        let (trace, _) = elsewhere.trace((from, &target), &["--settle"], &inner)?;
        let found = std::fs::metadata(from.join(&target))?;
        let number = match target == elsewhere.image.device() {
            true => found.rdev(),
            false => found.dev(),
        };
        ensure!(number == device, "{number}");
        // By whichever of its paths: all are the same file's.
        let by_root = data_of(&trace, &root.join("inner/file"));
        let data = [by_root, data_of(&trace, &inner)].concat();
        ensure!(total(&data) == BYTES, "{:?}", trace.files);
    }
    Ok(())
}

/// A subvolume's files have a device number of their own.
fn of_a_subvolume() -> anyhow::Result<()> {
    let elsewhere = Elsewhere::new(Kind::Btrfs)?;
    let root = elsewhere.through_root("mnt");
    let below = root.join("sub");
    let made = Command::new("btrfs")
        .args(["subvolume", "create"])
        .arg(&below)
        .output()?;
    ensure!(made.status.success(), "{made:?}");
    ensure!(std::fs::metadata(&below)?.dev() != std::fs::metadata(&root)?.dev());
    let file = below.join("file");
    for target in [&below, &elsewhere.process().join("cwd/sub")] {
        let (trace, _) = elsewhere.trace((Path::new("/"), target), &["--settle"], &file)?;
        ensure!(total(&data_of(&trace, &file)) == BYTES, "{:?}", trace.files);
    }
    Ok(())
}

fn benches() -> anyhow::Result<()> {
    let elsewhere = Elsewhere::new(Kind::Ext4)?;
    let root = elsewhere.through_root("mnt");
    let words = "bench file --size 1MiB --sync fsync --json".split(' ');
    let words = words.map(Path::new).chain([&*root]);
    let outcome = iostep::run(words)?.success()?;
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout)?;
    let environment = &document["result"]["environment"];
    let device = &environment["device"]["name"];
    ensure!(*device == elsewhere.device_name(), "{environment:#}");
    ensure!(environment["filesystem"]["mount_point"] == root.to_string_lossy().as_ref());
    // Links are followed by their text there, which names another file.
    let hint = format!("nsenter -t {} -m iostep", elsewhere.child.id());
    File::create(root.join("db"))?;
    for words in [&["bench", "sqlite"][..], &["advise"]] {
        let words = words.iter().map(Path::new).chain([&*root]);
        iostep::run(words)?.refused(&[1, 2, 4], &hint)?;
    }
    Ok(())
}

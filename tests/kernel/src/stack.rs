//! Devices made of loop devices by their own tools, and where the disks' sectors lie on them.
//!
//! No udev: a guest has none, so the tools make their nodes themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use iostep_lab::Disk;

/// What lies between the filesystem and the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Nothing: one disk.
    Nothing,
    /// LUKS2.
    Luks,
    /// A volume of LVM2 on one disk.
    Lvm,
    /// A volume of LVM2 on LUKS2.
    LvmOnLuks,
    /// A volume of LVM2, striped over two disks.
    Striped,
    /// RAID 0 of md on two disks.
    Raid0,
    /// RAID 1 of md on two disks.
    Raid1,
}

impl Below {
    /// How many disks it takes.
    pub fn disks(self) -> usize {
        match self {
            Below::Nothing | Below::Luks | Below::Lvm | Below::LvmOnLuks => 1,
            Below::Striped | Below::Raid0 | Below::Raid1 => 2,
        }
    }

    /// The tools that make it.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Below::Nothing => &[],
            Below::Luks => &["cryptsetup", "dmsetup"],
            Below::Lvm | Below::Striped => &["lvm", "dmsetup"],
            Below::LvmOnLuks => &["lvm", "cryptsetup", "dmsetup"],
            Below::Raid0 | Below::Raid1 => &["mdadm"],
        }
    }

    /// What its label says of the way down, apart from numbers.
    pub fn label(self) -> &'static str {
        match self {
            Below::Nothing => "",
            Below::Luks => "(LUKS on loop",
            Below::Lvm | Below::Striped => "iostep-root (LVM on loop",
            Below::LvmOnLuks => "iostep-root (LVM on LUKS on loop",
            Below::Raid0 => "(RAID0 on loop",
            Below::Raid1 => "(RAID1 on loop",
        }
    }
}

/// LVM's settings: no udev, no files of its own on the machine.
const LVM: &str = "devices { dir=\"/dev\" scan=\"/dev\" obtain_device_list_from_udev=0 \
     use_devicesfile=0 filter=[ \"a|/dev/loop|\", \"a|/dev/mapper/|\", \"r|.*|\" ] } \
     activation { udev_sync=0 udev_rules=0 monitoring=0 } backup { backup=0 archive=0 }";

/// A device made of disks. The drop takes it apart.
#[derive(Debug)]
pub struct Stack {
    device: PathBuf,
    /// Commands that take it apart, the first one first.
    ends: Vec<Vec<String>>,
}

impl Disk for Stack {
    fn device(&self) -> &Path {
        &self.device
    }

    /// It was just made, of disks of our own.
    fn check_may_be_destroyed(&self) -> iostep_lab::Result<()> {
        Ok(())
    }
}

impl Stack {
    /// Makes a device of these disks.
    pub fn new(below: Below, disks: &[impl Disk]) -> anyhow::Result<Stack> {
        let mut stack = Stack {
            device: PathBuf::new(),
            ends: Vec::new(),
        };
        let nodes: Vec<&Path> = disks.iter().map(Disk::device).collect();
        match below {
            Below::Nothing => stack.device = nodes[0].to_owned(),
            Below::Luks => stack.encrypt(nodes[0])?,
            Below::Lvm => stack.volume(&nodes, &[])?,
            Below::Striped => stack.volume(&nodes, &["-i", "2", "-I", "64k"])?,
            Below::LvmOnLuks => {
                stack.encrypt(nodes[0])?;
                let crypt = stack.device.clone();
                stack.volume(&[&crypt], &[])?;
            }
            Below::Raid0 => stack.array("0", &nodes)?,
            Below::Raid1 => stack.array("1", &nodes)?,
        }
        Ok(stack)
    }

    fn encrypt(&mut self, disk: &Path) -> anyhow::Result<()> {
        for directory in ["/run/cryptsetup", "/run/lock"] {
            fs::create_dir_all(directory)?;
        }
        run("modprobe", &["dm-crypt"])?;
        let key = tempfile::NamedTempFile::new()?;
        fs::write(key.path(), "a key")?;
        let key = key.path().to_string_lossy();
        let disk = disk.to_string_lossy();
        let format = [
            "luksFormat",
            "-q",
            "--type",
            "luks2",
            "--pbkdf",
            "pbkdf2",
            "--pbkdf-force-iterations",
            "1000",
            "--key-file",
            &key,
            &disk,
        ];
        run("cryptsetup", &format)?;
        run(
            "cryptsetup",
            &[
                "open",
                "--allow-discards",
                "--key-file",
                &key,
                &disk,
                "iostep-crypt",
            ],
        )?;
        self.device = "/dev/mapper/iostep-crypt".into();
        self.end(&["cryptsetup", "close", "iostep-crypt"]);
        Ok(())
    }

    fn volume(&mut self, parts: &[&Path], layout: &[&str]) -> anyhow::Result<()> {
        for directory in ["/run/lvm", "/run/lock"] {
            fs::create_dir_all(directory)?;
        }
        let parts: Vec<String> = parts.iter().map(|p| p.to_string_lossy().into()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let lvm =
            |words: &[&str], rest: &[&str]| run("lvm", &[words, &["--config", LVM], rest].concat());
        lvm(&["pvcreate", "-q"], &parts)?;
        lvm(&["vgcreate", "-q"], &[&["iostep"], &parts[..]].concat())?;
        let size = [
            "-q", "-y", "-Wn", "-Zn", "-l", "100%FREE", "-n", "root", "iostep",
        ];
        lvm(&["lvcreate"], &[layout, &size].concat())?;
        self.device = "/dev/mapper/iostep-root".into();
        self.end(&["lvm", "vgchange", "-q", "-an", "--config", LVM, "iostep"]);
        Ok(())
    }

    fn array(&mut self, level: &str, parts: &[&Path]) -> anyhow::Result<()> {
        run("modprobe", &[&format!("raid{level}")])?;
        let node = "/dev/md77";
        let parts: Vec<String> = parts.iter().map(|p| p.to_string_lossy().into()).collect();
        let count = parts.len().to_string();
        // As it is made it would be copied from disk to disk all the time.
        let mut words = vec![
            "--create",
            node,
            "--run",
            "--level",
            level,
            "--raid-devices",
            &count,
            "--metadata=1.2",
        ];
        words.extend(match level {
            "0" => ["--chunk=64K"],
            _ => ["--assume-clean"],
        });
        words.extend(parts.iter().map(String::as_str));
        run("mdadm", &words)?;
        self.device = node.into();
        self.end(&["mdadm", "--stop", node]);
        // Or md would write its superblocks once more some time after the last write.
        let delay = Path::new("/sys/block/md77/md/safe_mode_delay");
        if delay.exists() {
            fs::write(delay, "0")?;
        }
        Ok(())
    }

    fn end(&mut self, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned());
        self.ends.insert(0, words.collect());
    }

    /// Where the disks' sectors lie on it.
    pub fn places(&self) -> anyhow::Result<Places> {
        Places::of(&self.device)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        for words in &self.ends {
            let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            // A failure shows as a loop device left behind, which fails the test.
            let _ = run(&words[0], &rest);
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .env("DM_DISABLE_UDEV", "1")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} cannot be run"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program} {arguments:?}: {errors}");
    Ok(())
}

/// A run of sectors that lies on a device below.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    sectors: u64,
    /// Devices below, as MAJ:MIN, and the first sector on each.
    on: Vec<(String, u64)>,
    /// Sectors on each before the next one's turn; none for copies or a single one.
    chunk: Option<u64>,
}

/// Which sector of a device is which of the disks below, as the kernel's own tables say.
#[derive(Clone, Debug)]
pub struct Places {
    number: String,
    /// Of this device, and of those below it.
    runs: Vec<(String, Run)>,
}

impl Places {
    fn of(device: &Path) -> anyhow::Result<Places> {
        let name = fs::canonicalize(device)?;
        let mut name = name
            .file_name()
            .context("a name")?
            .to_string_lossy()
            .into_owned();
        let mut number = number_of(Path::new("/sys/class/block").join(&name).as_path());
        if number.is_err() {
            // Without udev a node of device mapper is no link.
            name = dm_name(device)?;
            number = number_of(Path::new("/sys/class/block").join(&name).as_path());
        }
        let number = number?;
        let mut places = Places {
            number: number.clone(),
            runs: Vec::new(),
        };
        places.add(&number)?;
        Ok(places)
    }

    fn add(&mut self, number: &str) -> anyhow::Result<()> {
        let directory = Path::new("/sys/dev/block").join(number);
        let runs = if directory.join("dm").exists() {
            let name = fs::read_to_string(directory.join("dm/name"))?;
            let output = Command::new("dmsetup")
                .args(["table", name.trim()])
                .output()?;
            let table = String::from_utf8(output.stdout)?;
            table.lines().map(run_of).collect::<anyhow::Result<_>>()?
        } else if directory.join("md").exists() {
            vec![array_of(&directory)?]
        } else {
            Vec::new()
        };
        for run in &runs {
            for (below, _) in &run.on {
                self.add(below)?;
            }
        }
        self.runs
            .extend(runs.into_iter().map(|run| (number.to_owned(), run)));
        Ok(())
    }

    /// The sector on the device above of a sector of a disk, whose number is MAJ:MIN.
    pub fn above(&self, disk: &str, sector: u64) -> Option<u64> {
        if disk == self.number {
            return Some(sector);
        }
        self.runs.iter().find_map(|(device, run)| {
            let above = run.above(disk, sector)?;
            self.above(device, above)
        })
    }
}

impl Run {
    fn above(&self, disk: &str, sector: u64) -> Option<u64> {
        let count = self.on.len() as u64;
        (0..).zip(&self.on).find_map(|(index, (number, first))| {
            let rest = sector.checked_sub(*first).filter(|_| number == disk)?;
            let place = match self.chunk {
                Some(chunk) => (rest / chunk * count + index) * chunk + rest % chunk,
                None => rest,
            };
            (place < self.sectors).then_some(self.start + place)
        })
    }
}

fn number_of(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join("dev");
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// `dm-N` of a node below /dev/mapper.
fn dm_name(node: &Path) -> anyhow::Result<String> {
    let wanted = node.file_name().context("a name")?.to_string_lossy();
    for entry in fs::read_dir("/sys/class/block")?.flatten() {
        let name = fs::read_to_string(entry.path().join("dm/name")).unwrap_or_default();
        if name.trim() == wanted {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    anyhow::bail!("{}: no device mapper device", node.display())
}

/// A line of `dmsetup table`.
fn run_of(line: &str) -> anyhow::Result<Run> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| -> anyhow::Result<u64> {
        let word = words
            .get(at)
            .with_context(|| format!("too short: {line}"))?;
        word.parse().with_context(|| line.to_owned())
    };
    let on = |at: usize| anyhow::Ok((words[at].to_owned(), number(at + 1)?));
    let (on, chunk) = match words.get(2).copied() {
        Some("linear") => (vec![on(3)?], None),
        // cipher, key, offset of the initial vector; then the device.
        Some("crypt") => (vec![on(6)?], None),
        Some("striped") => {
            let parts = (0..number(3)? as usize).map(|part| on(5 + part * 2));
            (parts.collect::<anyhow::Result<_>>()?, Some(number(4)?))
        }
        other => anyhow::bail!("{other:?}: {line}"),
    };
    Ok(Run {
        start: number(0)?,
        sectors: number(1)?,
        on,
        chunk,
    })
}

/// An array of md (Documentation/admin-guide/md.rst).
fn array_of(directory: &Path) -> anyhow::Result<Run> {
    let read = |path: &str| -> anyhow::Result<String> {
        let path = directory.join(path);
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        Ok(text.trim().to_owned())
    };
    let mut on = Vec::new();
    for part in 0..read("md/raid_disks")?.parse()? {
        let part: usize = part;
        let number = read(&format!("md/rd{part}/block/dev"))?;
        on.push((number, read(&format!("md/rd{part}/offset"))?.parse()?));
    }
    let chunk_bytes: u64 = read("md/chunk_size")?.parse()?;
    Ok(Run {
        start: 0,
        sectors: read("size")?.parse()?,
        on,
        chunk: (read("md/level")? == "raid0").then_some(chunk_bytes / 512),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(number: &str, lines: &[(&str, &str)]) -> Places {
        let runs = lines.iter().map(|(device, line)| {
            let run = run_of(line).expect("a line");
            ((*device).to_owned(), run)
        });
        Places {
            number: number.into(),
            runs: runs.collect(),
        }
    }

    #[test]
    fn a_volume_on_luks_is_shifted_twice() {
        let crypt = "0 1000 crypt aes-xts-plain64 :64:logon:key 0 7:0 32768";
        let places = places(
            "253:1",
            &[("253:0", crypt), ("253:1", "0 500 linear 253:0 100")],
        );
        assert_eq!(places.above("7:0", 32768 + 100), Some(0));
        assert_eq!(places.above("7:0", 32768 + 599), Some(499));
        assert_eq!(places.above("7:0", 32768 + 600), None);
        assert_eq!(places.above("7:0", 32768 + 99), None);
        assert_eq!(places.above("7:1", 32768 + 100), None);
    }

    #[test]
    fn stripes_take_turns() {
        let places = places(
            "253:0",
            &[("253:0", "0 1024 striped 2 128 7:0 2048 7:1 4096")],
        );
        assert_eq!(places.above("7:0", 2048 + 5), Some(5));
        assert_eq!(places.above("7:1", 4096), Some(128));
        assert_eq!(places.above("7:0", 2048 + 128), Some(256));
        assert_eq!(places.above("7:1", 4096 + 128 + 3), Some(387));
    }
}

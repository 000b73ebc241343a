//! FAT32, as dosfstools and mtools see it.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{Truth, number_after};
use crate::image::Image;

/// `FSInfo` begins with this: "RRaA".
const INFO_MAGIC: &[u8; 4] = b"RRaA";

/// See [`Truth::read`].
pub fn read(image: &Image) -> anyhow::Result<Truth> {
    let layout = Layout::read(image.path())?;
    let mut truth = Truth::default();
    for sector in 0..layout.table_start {
        let head = image.read(sector, 512)?;
        let class = match (&head[..4], &head[510..]) {
            (magic, _) if magic == INFO_MAGIC => Class::FreeSpaceHeader,
            (_, [0x55, 0xaa]) if head[3..].starts_with(b"mkfs.fat") => Class::Superblock,
            _ => continue,
        };
        truth.classes.insert(sector, 1, class);
    }
    let tables = layout.table_sectors * layout.tables;
    truth
        .classes
        .insert(layout.table_start, tables, Class::AllocationTable);
    let mut of_directories = HashSet::new();
    for directory in directories(image.path())? {
        let runs = clusters(image.path(), &directory)?;
        of_directories.extend(runs.into_iter().flat_map(|(first, last)| first..=last));
    }
    // Behind the tables lie directories and files, and the workload removes no directory.
    let end = image.bytes()? / SECTOR_BYTES;
    let sectors = (layout.data_start..end).step_by(layout.cluster_sectors as usize);
    for (cluster, sector) in (2..).zip(sectors) {
        let class = match of_directories.contains(&cluster) {
            true => Class::Directory,
            false => Class::FileData,
        };
        truth.classes.insert(sector, layout.cluster_sectors, class);
    }
    Ok(truth)
}

/// What `fsck.fat -nv` prints of the geometry.
struct Layout {
    table_start: u64,
    table_sectors: u64,
    tables: u64,
    data_start: u64,
    cluster_sectors: u64,
}

impl Layout {
    fn read(image: &Path) -> anyhow::Result<Layout> {
        let output = Command::new("fsck.fat")
            .args(["-n", "-v"])
            .arg(image)
            .output()
            .context("fsck.fat: cannot run")?;
        // Its status is 1 if it found anything to repair; a word about that is no geometry.
        Layout::parse(&String::from_utf8_lossy(&output.stdout))
    }

    fn parse(text: &str) -> anyhow::Result<Layout> {
        let number = |line: &str, before: &str| {
            let line = text.lines().find(|l| l.contains(line));
            let words = line
                .and_then(|l| l.split_once(before))
                .map(|(start, _)| start);
            words.and_then(|start| start.rsplit([' ', '(', '=']).next()?.parse::<u64>().ok())
        };
        let sector = |line: &str| {
            let line = text.lines().find(|l| l.contains(line));
            line.and_then(|l| number_after(l, "(sector"))
        };
        let sector_bytes = number("bytes per logical sector", " bytes per logical");
        let cluster_bytes = number("bytes per cluster", " bytes per cluster");
        let table = text.lines().find(|l| l.contains("bytes per FAT"));
        let layout = || {
            anyhow::ensure!(sector_bytes == Some(512), "only sectors of 512 bytes");
            Ok(Layout {
                table_start: sector("First FAT starts").context("no table")?,
                table_sectors: table
                    .and_then(|l| number_after(l, "(="))
                    .context("no length of the table")?,
                tables: number(" FATs,", " FATs,").context("no number of tables")?,
                data_start: sector("Data area starts").context("no data area")?,
                cluster_sectors: cluster_bytes.context("no length of a cluster")? / 512,
            })
        };
        layout().with_context(|| format!("fsck.fat: {text}"))
    }
}

fn mtools(program: &str, image: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .env("MTOOLS_SKIP_CHECK", "1")
        .arg("-i")
        .arg(image)
        .args(arguments)
        .output()
        .with_context(|| format!("{program}: cannot run"))?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "{program} {arguments:?}: {}: {error}",
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every directory: those whose line of `mdir -b` ends in a slash.
fn directories(image: &Path) -> anyhow::Result<Vec<String>> {
    let text = mtools("mdir", image, &["-/", "-b", "::/"])?;
    let mut all = vec!["::/".to_owned()];
    let directories = text.lines().filter_map(|line| line.strip_suffix('/'));
    all.extend(directories.map(str::to_owned));
    Ok(all)
}

/// The runs of clusters that `mshowfat` prints: `<2-5> <9>`.
fn clusters(image: &Path, path: &str) -> anyhow::Result<Vec<(u64, u64)>> {
    let text = mtools("mshowfat", image, &[path])?;
    let mut runs = Vec::new();
    for run in text.split('<').skip(1) {
        let run = run.split('>').next().unwrap_or_default();
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        runs.push((first.parse()?, last.parse()?));
    }
    anyhow::ensure!(!runs.is_empty(), "mshowfat {path}: {text}");
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometry_is_read_from_fsck() {
        let text = "fsck.fat 4.2 (2021-01-31)
Boot sector contents:
System ID \"mkfs.fat\"
Media byte 0xf8 (hard disk)
       512 bytes per logical sector
      4096 bytes per cluster
        32 reserved sectors
First FAT starts at byte 16384 (sector 32)
         2 FATs, 32 bit entries
    523264 bytes per FAT (= 1022 sectors)
Root directory start at cluster 2 (arbitrary size)
Data area starts at byte 1062912 (sector 2076)
";
        let layout = Layout::parse(text).expect("all fields");
        assert_eq!((layout.table_start, layout.table_sectors), (32, 1022));
        assert_eq!((layout.tables, layout.cluster_sectors), (2, 8));
        assert_eq!(layout.data_start, 2076);
    }
}

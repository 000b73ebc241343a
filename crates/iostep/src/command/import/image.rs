//! The images that an import looks into: of one filesystem, of several, or of a whole disk.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use anyhow::{Context, bail};
use iostep_analyze::attribute::log_image::Head;
use iostep_fs::partitions::{Partition, partitions};
use iostep_fs::{Found, Kind, OwnerMap, ReadAt, Section, ext4, fat};
use iostep_model::SECTOR_BYTES;

use super::Args;

/// How many problems of an image are printed.
const SHOWN_PROBLEMS: usize = 5;

/// The kernel counts a device's bytes in a signed number (`loff_t`).
const MAX_DEVICE_BYTES: u64 = i64::MAX as u64;

/// All that the text may be about.
pub(super) struct Images {
    pub(super) all: Vec<Image>,
    /// True unless one filesystem was given: then rows tell which.
    pub(super) are_several: bool,
    pub(super) warnings: Vec<String>,
}

/// A filesystem, or a partition without one that is known.
pub(super) struct Image {
    source: Section<File>,
    /// The image's file, and the partition's number.
    pub(super) name: String,
    /// Where it begins on the traced device.
    pub(super) start_bytes: u64,
    pub(super) size_bytes: u64,
    /// False for a partition that is known from the table of an image.
    pub(super) is_given: bool,
    /// False if nothing says where it begins, so that it begins at 0.
    pub(super) is_placed: bool,
    /// Each block of the journal is a block of jbd2 or a copy of another block.
    pub(super) has_jbd2_blocks_only: bool,
    pub(super) found: Option<Found>,
    pub(super) owners: Option<OwnerMap>,
}

/// An image as it was given.
struct Given<'a> {
    path: &'a Path,
    offset: Option<u64>,
    image_offset: Option<u64>,
}

impl Given<'_> {
    /// One image may be given for several filesystems.
    fn name(&self, are_several: bool) -> String {
        let name = name_of(self.path);
        match self.image_offset {
            Some(offset) if are_several && offset > 0 => format!("{name}@{offset}"),
            _ => name,
        }
    }
}

/// Reads what the user gave.
///
/// Errors: an image that cannot be read, or has no filesystem; filesystems that overlap; not as many
/// places as images.
pub(super) fn read(args: &Args) -> anyhow::Result<Images> {
    let mut images = Images {
        all: Vec::new(),
        are_several: args.image.len() > 1,
        warnings: Vec::new(),
    };
    for given in given(args)? {
        images.add(&given)?;
    }
    images.all.sort_by_key(|image| image.start_bytes);
    for pair in images.all.windows(2) {
        let end = pair[0].end_bytes();
        if end > pair[1].start_bytes {
            bail!(
                "{} ends at byte {end} of the device, and {} begins at {}; --offset says where each \
                 begins",
                pair[0].name,
                pair[1].name,
                pair[1].start_bytes
            );
        }
    }
    Ok(images)
}

/// Refuses an `--offset` at which nothing can begin.
fn check_offset(path: &Path, offset: u64, size_bytes: u64) -> anyhow::Result<()> {
    let name = path.display();
    if !offset.is_multiple_of(SECTOR_BYTES) {
        bail!("{name}: --offset {offset}: not a multiple of {SECTOR_BYTES} bytes, a sector");
    }
    let end = offset.checked_add(size_bytes);
    if end.is_none_or(|end| end > MAX_DEVICE_BYTES) {
        bail!("{name}: --offset {offset}: no device is so large that the image ends on it");
    }
    Ok(())
}

/// Which place is which image's.
fn given(args: &Args) -> anyhow::Result<Vec<Given<'_>>> {
    let count = args.image.len();
    for (option, places) in [
        ("--offset", &args.offset),
        ("--image-offset", &args.image_offset),
    ] {
        if !places.is_empty() && places.len() != count {
            bail!(
                "{option}: given {} times for {count} images; give it once for each --image, in the \
                 same order, or not at all",
                places.len()
            );
        }
    }
    let numbered = args.image.iter().enumerate();
    let all = numbered.map(|(at, path)| Given {
        path,
        offset: args.offset.get(at).copied(),
        image_offset: args.image_offset.get(at).copied(),
    });
    Ok(all.collect())
}

impl Images {
    fn add(&mut self, given: &Given<'_>) -> anyhow::Result<()> {
        let name = given.path.display();
        let file = File::open(given.path).with_context(|| format!("{name}: cannot open"))?;
        let start_bytes = match given.offset {
            Some(offset) => Some(offset),
            None => partition_start_bytes(&file)?,
        };
        let is_placed = start_bytes.is_some();
        let start_bytes = start_bytes.unwrap_or(0);
        let image_offset = given.image_offset.unwrap_or(0);
        let image_bytes = file.size_bytes()?;
        if image_offset >= image_bytes && image_offset > 0 {
            bail!(
                "{name}: --image-offset {image_offset}: behind the end of the image, which has \
                 {image_bytes} bytes"
            );
        }
        let source = Section::from(file, image_offset)
            .with_context(|| format!("{name}: --image-offset {image_offset}"))?;
        check_offset(given.path, start_bytes, source.size_bytes()?)?;
        if iostep_fs::detect(&source)?.is_none()
            && given.image_offset.is_none()
            && let Some(table) = partitions(&source).with_context(|| name.to_string())?
        {
            self.are_several = true;
            return self.add_partitions(given.path, start_bytes, &table);
        }
        let image = Image::new(source, given.name(self.are_several), start_bytes)?;
        let Some(mut image) = self.look_into(image, given.path)? else {
            bail!("{name}: no filesystem found; --image-offset says where it begins");
        };
        image.is_given = true;
        image.is_placed = is_placed;
        if self.are_several
            && let Some(found) = &image.found
        {
            // The rest of the image may be another one's.
            image.size_bytes = found.size_bytes;
        }
        self.all.push(image);
        Ok(())
    }

    /// Every partition of a disk. One that cannot be read costs its own names.
    fn add_partitions(
        &mut self,
        path: &Path,
        start_bytes: u64,
        table: &[Partition],
    ) -> anyhow::Result<()> {
        let before = self.all.len();
        for partition in table {
            let name = partition_name(&name_of(path), partition.number);
            let file =
                File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
            let part = Section::part(file, partition.start_bytes, partition.size_bytes);
            let Ok(source) = part else {
                self.warn(format!("{name}: behind the end of the image"));
                continue;
            };
            let start = start_bytes.saturating_add(partition.start_bytes);
            let mut image = Image::new(source, name.clone(), start)?;
            image.size_bytes = partition.size_bytes;
            match self.look_into(image, Path::new(&name)) {
                Ok(Some(image)) => self.all.push(image),
                Ok(None) => {
                    let file = File::open(path)?;
                    let source = Section::part(file, partition.start_bytes, partition.size_bytes)?;
                    self.all.push(Image {
                        size_bytes: partition.size_bytes,
                        ..Image::new(source, name, start)?
                    });
                }
                Err(error) => self.warn(format!("{error:#}")),
            }
        }
        let known = self.all[before..]
            .iter()
            .filter(|image| image.found.is_some());
        if known.count() == 0 {
            let name = path.display();
            bail!(
                "{name}: no filesystem found in its {} partitions",
                table.len()
            );
        }
        Ok(())
    }

    /// The image with what it has; `None` for one without a filesystem.
    fn look_into(&mut self, mut image: Image, path: &Path) -> anyhow::Result<Option<Image>> {
        let name = path.display();
        image.found = iostep_fs::layout(&image.source).with_context(|| name.to_string())?;
        match image.found.as_ref().map(|found| found.kind) {
            Some(Kind::Ext2 | Kind::Ext3 | Kind::Ext4) => {
                self.read_ext4(&mut image, path)
                    .with_context(|| name.to_string())?;
            }
            Some(Kind::Fat) => {
                let filesystem = fat::Fat::open(&image.source).with_context(|| name.to_string())?;
                let owners = fat::owners(&filesystem).with_context(|| name.to_string())?;
                self.warn_of_problems(&owners, path);
                image.owners = Some(owners);
            }
            Some(kind) => self.warn(format!(
                "{name}: {kind}: only the filesystem's fixed places are known; files need ext4 or \
                 FAT"
            )),
            None => return Ok(None),
        }
        Ok(Some(image))
    }

    fn read_ext4(&mut self, image: &mut Image, path: &Path) -> iostep_fs::Result<()> {
        let filesystem = ext4::Ext4::open(&image.source)?;
        let features = filesystem.superblock().features;
        let owners = ext4::owners(&filesystem)?;
        if features.needs_recovery() {
            self.warn(format!(
                "{}: its journal was not replayed, so newer files may be missing; unmount it, or \
                 run e2fsck on a copy",
                path.display()
            ));
        }
        self.warn_of_problems(&owners, path);
        image.has_jbd2_blocks_only = !features.has_fast_commit();
        image.owners = Some(owners);
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn warn_of_problems(&mut self, owners: &OwnerMap, path: &Path) {
        let name = path.display();
        for problem in owners.problems.iter().take(SHOWN_PROBLEMS) {
            self.warn(format!("{name}: {problem}"));
        }
        if let Some(more) = owners.problems.len().checked_sub(SHOWN_PROBLEMS + 1) {
            self.warn(format!("{name}: and {} more problems", more + 1));
        }
        if owners.shared_blocks > 0 {
            let blocks = owners.shared_blocks;
            self.warn(format!(
                "{name}: {blocks} blocks are claimed by more than one file"
            ));
        }
    }
}

impl Image {
    fn new(source: Section<File>, name: String, start_bytes: u64) -> anyhow::Result<Image> {
        Ok(Image {
            size_bytes: source.size_bytes()?,
            source,
            name,
            start_bytes,
            is_given: false,
            is_placed: true,
            has_jbd2_blocks_only: false,
            found: None,
            owners: None,
        })
    }

    pub(super) fn end_bytes(&self) -> u64 {
        self.start_bytes.saturating_add(self.size_bytes)
    }

    /// The first bytes of a filesystem block.
    pub(super) fn head(&self, block: u64) -> Option<Head> {
        let block_bytes = u64::from(self.found.as_ref()?.block_bytes);
        let mut head = Head::default();
        let offset_bytes = block.checked_mul(block_bytes)?;
        self.source.read_exact_at(offset_bytes, &mut head).ok()?;
        Some(head)
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// As the kernel calls a partition: `disk.img2`, and `loop0p2` behind a digit.
fn partition_name(disk: &str, number: u32) -> String {
    match disk.ends_with(|end: char| end.is_ascii_digit()) {
        true => format!("{disk}p{number}"),
        false => format!("{disk}{number}"),
    }
}

/// Where a block device begins on its disk: 0 for what is no partition. `None` for a file.
fn partition_start_bytes(file: &File) -> anyhow::Result<Option<u64>> {
    let metadata = file.metadata()?;
    if !metadata.file_type().is_block_device() {
        return Ok(None);
    }
    let device = metadata.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    // Only partitions have this file.
    let path = format!("/sys/dev/block/{major}:{minor}/start");
    match std::fs::read_to_string(&path) {
        Ok(sectors) => {
            let sectors: u64 = sectors.trim().parse().with_context(|| path)?;
            Ok(Some(sectors * SECTOR_BYTES))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some(0)),
        Err(error) => Err(error).with_context(|| path),
    }
}

//! Names what nobody saw while it happened, from the image afterwards (how MOST did it, FI'13
//! section 3).
//!
//! An owner map tells whose a block is *now*. A block that was freed since belongs to nobody, and
//! one that was used again belongs to its new owner: that is why [`Evidence::OwnerMap`] is weaker
//! than anything seen in the kernel, and replaces nothing that was.

use iostep_fs::{Owner, OwnerMap};
use iostep_model::table::{File, Segment, Trace};
use iostep_model::{Class, Evidence, FileKey, FileType, SECTOR_BYTES};
use rustc_hash::FxHashMap;

use super::file_type;
use super::recut::recut;

/// Gives class, file and offset to every segment of a filesystem that nothing but the layout or
/// nothing at all is known of, and cuts it where the owner changes. `volume` is the filesystem's, as
/// rows have it.
///
/// The bytes of a request stay as they are; files that are not in the trace yet are added to it.
pub fn apply(trace: &mut Trace, volume: Option<u16>, map: &OwnerMap) {
    let numbered = (0..).zip(&trace.files);
    let own = numbered.filter(|(_, file)| file.volume == volume);
    let mut owners = Owners {
        map,
        volume,
        start_sector: trace.manifest.start_sector_of(volume),
        rows: own.map(|(row, file)| (file.key, row)).collect(),
        files: std::mem::take(&mut trace.files),
    };
    recut(trace, |segment, room, parts| {
        owners.cut(segment, room, parts)
    });
    trace.files = owners.files;
    file_type::assign(&mut trace.files);
}

struct Owners<'a> {
    map: &'a OwnerMap,
    volume: Option<u16>,
    start_sector: u64,
    rows: FxHashMap<FileKey, u32>,
    files: Vec<File>,
}

impl Owners<'_> {
    /// Adds a segment in at most `room` parts; what is left over is the last part, as it was.
    fn cut(&mut self, segment: &Segment, room: usize, parts: &mut Vec<Segment>) {
        let mut rest = segment.clone();
        for _ in 1..room {
            let Some((owner, bytes)) = self.next(&rest) else {
                break;
            };
            let mut part = rest.clone();
            part.bytes = bytes;
            self.attribute(&mut part, owner);
            parts.push(part);
            rest.sector += u64::from(bytes) / SECTOR_BYTES;
            rest.bytes -= bytes;
            if rest.bytes == 0 {
                return;
            }
        }
        parts.push(rest);
    }

    /// Whose the segment's first bytes are, and how many; `None` if it needs no map, or the map
    /// does not reach there.
    fn next(&self, segment: &Segment) -> Option<(Owner, u32)> {
        if !matches!(segment.evidence, Evidence::None | Evidence::LayoutRange)
            || segment.class == Class::OutsideFilesystem
            || segment.volume != self.volume
        {
            return None;
        }
        let (block, inside_bytes) = self.block_of(segment.sector)?;
        let owner = self.map.owner(block)?;
        let owned_bytes = owner
            .blocks
            .saturating_mul(u64::from(self.map.block_bytes))
            .saturating_sub(inside_bytes);
        let bytes = u32::try_from(owned_bytes).map_or(segment.bytes, |b| b.min(segment.bytes));
        // The layout's own word stands where the map only repeats it.
        let repeated = segment.evidence == Evidence::LayoutRange && segment.class == owner.class;
        (!(repeated && bytes == segment.bytes) && bytes > 0).then_some((owner, bytes))
    }

    /// The filesystem block that holds a sector, and how far into the block the sector is.
    fn block_of(&self, sector: u64) -> Option<(u64, u64)> {
        let offset_bytes = sector.checked_sub(self.start_sector)? * SECTOR_BYTES;
        let block_bytes = u64::from(self.map.block_bytes);
        Some((
            offset_bytes.checked_div(block_bytes)?,
            offset_bytes % block_bytes,
        ))
    }

    fn attribute(&mut self, part: &mut Segment, owner: Owner) {
        let is_layout = part.evidence == Evidence::LayoutRange && part.class == owner.class;
        if !is_layout {
            part.evidence = Evidence::OwnerMap;
        }
        part.class = owner.class;
        let Some(inode) = owner.inode else {
            return;
        };
        part.file = self.row(inode, owner.generation);
        let inside_bytes = self.block_of(part.sector).map_or(0, |(_, inside)| inside);
        part.file_offset_bytes = owner
            .file_block
            .and_then(|block| block.checked_mul(u64::from(self.map.block_bytes)))
            .and_then(|start| start.checked_add(inside_bytes));
    }

    fn row(&mut self, inode: u64, generation: u32) -> Option<u32> {
        let key = FileKey::plain(inode, generation);
        if let Some(row) = self.rows.get(&key) {
            return Some(*row);
        }
        let row = u32::try_from(self.files.len()).ok()?;
        let entry = self.map.file(inode);
        self.files.push(File {
            key,
            path: self.map.path(inode),
            mode: entry.map_or(0, |entry| entry.mode),
            file_type: FileType::Other,
            birth_wall_ns: entry.and_then(|entry| entry.birth_wall_ns),
            deleted_ns: None,
            volume: self.volume,
            first_path: None,
        });
        self.rows.insert(key, row);
        Some(row)
    }
}

/// How many of a trace's bytes an owner map explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    /// Bytes of every segment.
    pub bytes: u64,
    /// Of these, bytes with a file.
    pub of_files: u64,
    /// Bytes of the filesystem's own structures.
    pub of_layout: u64,
    /// Bytes of blocks that nobody owns any more.
    pub free: u64,
    /// Bytes outside the filesystem, and what nothing is known of.
    pub unknown: u64,
}

impl Explained {
    /// Adds up a trace.
    pub fn of(trace: &Trace) -> Explained {
        let mut sums = Explained::default();
        for segment in &trace.segments {
            let bytes = u64::from(segment.bytes);
            sums.bytes += bytes;
            let sum = match segment.class {
                Class::Free => &mut sums.free,
                Class::Unknown | Class::OutsideFilesystem => &mut sums.unknown,
                _ if segment.file.is_some() => &mut sums.of_files,
                _ => &mut sums.of_layout,
            };
            *sum += bytes;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_fs::ext4::{self, Ext4};
    use iostep_model::Operation;
    use iostep_model::fixture;
    use iostep_model::table::Request;

    const IMAGE_BYTES: u64 = 4 << 20;
    const START_SECTOR: u64 = 2048;

    /// A small ext4 with one file of 300,000 bytes, made without mounting anything.
    fn owner_map() -> OwnerMap {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tree = directory.path().join("tree");
        std::fs::create_dir(&tree).expect("a directory");
        std::fs::write(tree.join("app.db"), vec![7; 300_000]).expect("a file");
        let image = directory.path().join("image");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(IMAGE_BYTES).expect("its size");
        let status = std::process::Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-b", "1024", "-d"])
            .args([&tree, &image])
            .status()
            .expect("mke2fs; install e2fsprogs");
        assert!(status.success());
        let file = std::fs::File::open(&image).expect("the image");
        let filesystem = Ext4::open(file).expect("open");
        ext4::owners(&filesystem).expect("owners")
    }

    /// One request over 16 sectors, the whole partition and the 8 sectors behind it, all unknown.
    fn one_request(evidence: Evidence) -> Trace {
        let mut trace = fixture::empty();
        trace.manifest.device.start_sector = START_SECTOR;
        trace.manifest.filesystem = Some(iostep_model::manifest::Filesystem {
            kind: "ext4".into(),
            block_bytes: 1024,
            size_bytes: Some(IMAGE_BYTES),
            ..Default::default()
        });
        let sector = START_SECTOR - 16;
        let bytes = u32::try_from(IMAGE_BYTES).expect("small") + 24 * 512;
        trace.requests = vec![Request {
            sector,
            bytes,
            operation: Operation::Read,
            first_segment: 0,
            segments: 1,
            ..fixture::sqlite_on_ext4(1).requests[0].clone()
        }];
        trace.segments = vec![Segment {
            request: 0,
            sector,
            bytes,
            class: Class::Unknown,
            evidence,
            file: None,
            file_offset_bytes: None,
            ..fixture::sqlite_on_ext4(1).segments[0].clone()
        }];
        trace
    }

    fn imported(trace: &mut Trace, map: &OwnerMap) {
        crate::attribute::volumes::place(trace);
        apply(trace, None, map);
    }

    #[test]
    fn a_request_is_cut_at_every_owner_and_keeps_its_bytes() {
        let map = owner_map();
        let mut trace = one_request(Evidence::None);
        imported(&mut trace, &map);
        let request = &trace.requests[0];
        assert_eq!(usize::from(request.segments), trace.segments.len());
        let mut sector = request.sector;
        for segment in &trace.segments {
            assert_eq!(segment.sector, sector);
            sector += u64::from(segment.bytes) / SECTOR_BYTES;
        }
        assert_eq!(
            sector,
            request.sector + u64::from(request.bytes) / SECTOR_BYTES
        );
        let sums = Explained::of(&trace);
        assert_eq!(sums.bytes, u64::from(request.bytes));
        assert_eq!(
            sums.of_files + sums.of_layout + sums.free + sums.unknown,
            sums.bytes
        );
        assert!(sums.of_layout > 0 && sums.free > 0);
    }

    #[test]
    fn a_files_bytes_are_found_once_each_with_name_and_offset() {
        let map = owner_map();
        let mut trace = one_request(Evidence::None);
        imported(&mut trace, &map);
        let row = trace
            .files
            .iter()
            .position(|file| file.path.as_deref() == Some("/app.db"));
        let row = row.expect("the database") as u32;
        assert_eq!(
            trace.files[row as usize].file_type,
            FileType::SqliteDatabase
        );
        let mut parts: Vec<(u64, u32)> = trace
            .segments
            .iter()
            .filter(|segment| segment.file == Some(row) && segment.class == Class::FileData)
            .map(|segment| (segment.file_offset_bytes.expect("content"), segment.bytes))
            .collect();
        parts.sort_unstable();
        let mut end = 0;
        for (offset_bytes, bytes) in parts {
            assert_eq!(offset_bytes, end);
            end += u64::from(bytes);
        }
        assert_eq!(end, 300_000u64.next_multiple_of(1024));
    }

    #[test]
    fn bytes_before_and_behind_the_filesystem_are_outside_of_it() {
        let map = owner_map();
        let mut trace = one_request(Evidence::None);
        imported(&mut trace, &map);
        let ends = [trace.segments.first(), trace.segments.last()];
        let ends = ends.map(|end| end.map(|it| (it.class, it.evidence, it.bytes)));
        let outside =
            |sectors: u32| Some((Class::OutsideFilesystem, Evidence::None, sectors * 512));
        assert_eq!(ends, [outside(16), outside(8)]);
        assert_eq!(Explained::of(&trace).unknown, 24 * 512);
        let before = trace.segments.clone();
        imported(&mut trace, &map);
        assert_eq!(trace.segments, before);
    }

    #[test]
    fn what_the_kernel_said_stands() {
        let map = owner_map();
        let mut trace = one_request(Evidence::PageCache);
        let before = trace.segments.clone();
        imported(&mut trace, &map);
        assert_eq!(trace.segments, before);
    }
}

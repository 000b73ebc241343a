//! What every block of an image is, as dumpe2fs and debugfs tell it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use iostep_model::Class;

use super::{Image, field};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub class: Class,
    pub inode: Option<u64>,
    pub file_block: Option<u64>,
    pub unwritten: bool,
}

/// A use of the filesystem's own.
fn own(class: Class) -> Use {
    Use {
        class,
        inode: None,
        file_block: None,
        unwritten: false,
    }
}

/// `17` or `17-20`.
fn range(text: &str) -> RangeInclusive<u64> {
    let number = |text: &str| {
        text.parse::<u64>()
            .unwrap_or_else(|_| panic!("number {text:?}"))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    number(first)..=number(last)
}

/// dumpe2fs's list of structures, by block. The journal is not among them.
pub fn layout(dump: &str) -> BTreeMap<u64, Use> {
    const LABELS: [(&str, Class); 9] = [
        ("Primary superblock at ", Class::Superblock),
        ("Backup superblock at ", Class::Superblock),
        ("Group descriptors at ", Class::GroupDescriptor),
        ("Group descriptor at ", Class::GroupDescriptor),
        ("Reserved GDT blocks at ", Class::GroupDescriptor),
        ("Block bitmap at ", Class::BlockBitmap),
        ("Inode bitmap at ", Class::InodeBitmap),
        ("Inode table at ", Class::InodeTable),
        ("MMP block number: ", Class::OtherMetadata),
    ];
    let mut uses = BTreeMap::new();
    for part in dump.lines().flat_map(|line| line.trim().split(", ")) {
        let found = LABELS
            .iter()
            .find_map(|(label, class)| Some((part.strip_prefix(label)?, *class)));
        if let Some((place, class)) = found {
            let place = place.split_whitespace().next().expect("a place");
            uses.extend(range(place).map(|block| (block, own(class))));
        }
    }
    uses
}

/// dumpe2fs's lists of what is free, by their label: the indented ones.
pub fn free<'a>(dump: &'a str, label: &str) -> impl Iterator<Item = u64> + 'a {
    let label = label.to_owned();
    dump.lines()
        .filter_map(move |line| line.strip_prefix(&label))
        .flat_map(|list| list.split(", "))
        .filter(|part| !part.is_empty())
        .flat_map(range)
}

pub fn inodes(dump: &str) -> Vec<u64> {
    let free: std::collections::HashSet<u64> = free(dump, "  Free inodes: ").collect();
    let count = field(dump, "Inode count:");
    (1..=count).filter(|inode| !free.contains(inode)).collect()
}

/// The blocks of one inode, as debugfs's `stat` prints them; `content` is the class of its data.
fn inode_uses(inode: u64, stat: &str, content: Class, uses: &mut BTreeMap<u64, Use>) {
    let acl = stat.lines().find_map(|line| {
        let place = line.split("File ACL: ").nth(1)?;
        place.split_whitespace().next()?.parse::<u64>().ok()
    });
    let of = |class, file_block, unwritten| Use {
        class,
        inode: Some(inode),
        file_block,
        unwritten,
    };
    if let Some(block) = acl.filter(|&block| block != 0) {
        uses.entry(block)
            .or_insert(of(Class::Attribute, None, false));
    }
    let list = stat
        .split_once("EXTENTS:\n")
        .or_else(|| stat.split_once("BLOCKS:\n"))
        .map_or("", |(_, list)| list);
    let list = list.lines().next().unwrap_or("");
    for part in list.split(", ").filter(|part| !part.is_empty()) {
        let (logical, place) = part
            .strip_prefix('(')
            .and_then(|part| part.split_once("):"))
            .unwrap_or_else(|| panic!("part {part:?} of inode {inode}"));
        let class = match logical.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "ETB" => Some(Class::ExtentBlock),
            "IND" | "DIND" | "TIND" => Some(Class::IndirectBlock),
            _ => None,
        };
        if let Some(class) = class {
            uses.extend(range(place).map(|block| (block, of(class, None, false))));
            continue;
        }
        let written = logical.trim_end_matches("[u]");
        let unwritten = written != logical;
        let pairs = range(written).zip(range(place));
        uses.extend(
            pairs.map(|(file_block, block)| (block, of(content, Some(file_block), unwritten))),
        );
    }
}

/// What every block of the filesystem is.
pub fn owners(image: &Image) -> BTreeMap<u64, Use> {
    let dump = image.dumpe2fs();
    let inodes = inodes(&dump);
    let requests: String = inodes.iter().map(|n| format!("stat <{n}>\n")).collect();
    let said = image.debugfs_all(&requests);
    let mut uses = BTreeMap::new();
    let system = system_inodes(&dump);
    for stat in said.split("debugfs: stat <").skip(1) {
        let inode: u64 = stat
            .split('>')
            .next()
            .and_then(|number| number.parse().ok())
            .expect("the request is repeated");
        let content = if inode == 8 {
            Class::LogOther
        } else if system.contains(&inode) {
            Class::SystemFile
        } else if stat.contains("Type: directory") {
            Class::Directory
        } else {
            Class::FileData
        };
        inode_uses(inode, stat, content, &mut uses);
    }
    // The journal is the filesystem's, not a file's.
    for used in uses.values_mut().filter(|used| used.inode == Some(8)) {
        *used = own(used.class);
    }
    uses.extend(layout(&dump));
    uses
}

fn system_inodes(dump: &str) -> Vec<u64> {
    let mut system: Vec<u64> = (1..11).filter(|&inode| inode != 2).collect();
    for label in [
        "User quota inode:",
        "Group quota inode:",
        "Project quota inode:",
        "Orphan file inode:",
    ] {
        if dump.lines().any(|line| line.starts_with(label)) {
            system.push(field(dump, label));
        }
    }
    system
}

/// Every path of every inode in use.
pub fn paths(image: &Image) -> BTreeMap<u64, Vec<String>> {
    let inodes = inodes(&image.dumpe2fs());
    let list: Vec<String> = inodes.iter().map(u64::to_string).collect();
    let said = image.debugfs(&format!("ncheck {}", list.join(" ")));
    // ncheck goes by directory entries, and the root has none.
    let mut paths = BTreeMap::from([(2, vec!["/".to_owned()])]);
    for line in said.lines().skip(1) {
        let (inode, path) = line.split_once('\t').expect("two columns");
        // debugfs before 1.47.1 begins paths below the root with two slashes.
        let path = format!("/{}", path.trim_start_matches('/'));
        let inode: u64 = inode.parse().expect("an inode number");
        paths.entry(inode).or_insert_with(Vec::new).push(path);
    }
    paths
}

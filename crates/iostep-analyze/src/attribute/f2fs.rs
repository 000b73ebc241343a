//! f2fs: nodes by their footer, metadata by its place.

use iostep_model::event::{Content, Event, IoRef};
use iostep_model::table::Segment;
use iostep_model::{Class, Evidence, FileKey, Operation};
use rustc_hash::FxHashMap;

use super::names::Names;
use super::volumes::Volume;

/// Which inode a node belongs to, by the nodes that were written: one that is read is seen before
/// its content.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    inodes: FxHashMap<u32, u64>,
}

impl Nodes {
    /// Collects the nodes that were written to a volume.
    pub(super) fn learn(volume: &Volume<'_>, events: &[Event]) -> Nodes {
        let queues = events.iter().filter_map(|event| match event.io()? {
            (device, IoRef::Queue(queue)) if volume.holds(device, queue.sector) => Some(queue),
            _ => None,
        });
        let contents = queues.flat_map(|queue| queue.segments.iter().map(|s| &s.content));
        let known = contents.filter_map(|content| match content {
            Content::F2fsNode {
                node,
                inode: Some(inode),
                ..
            } => Some((*node, *inode)),
            _ => None,
        });
        Nodes {
            inodes: known.collect(),
        }
    }

    /// A node block, with the file that it belongs to.
    pub(super) fn piece(
        &self,
        (names, volume): (&Names, u16),
        bytes: u32,
        mono_ns: u64,
        (node, inode, generation): (u32, Option<u64>, Option<u32>),
    ) -> Segment {
        let known = inode.or_else(|| self.inodes.get(&node).copied());
        // An inode's own node has its number.
        let number = known.unwrap_or(u64::from(node));
        let file = match generation {
            Some(generation) => names.file_of(volume, FileKey::plain(number, generation)),
            None => names.file_with_inode(volume, number, mono_ns),
        };
        let evidence = match inode {
            Some(_) => Evidence::BlockHeader,
            None => Evidence::PageCache,
        };
        Segment {
            file,
            ..Segment::of(bytes, Class::NodeBlock, evidence)
        }
    }
}

/// A page of the metadata's own inode, by what the layout reserves its place for. In the main area
/// that inode holds blocks that garbage collection moves without looking into them: those of
/// encrypted and compressed files (`move_data_block`, fs/f2fs/gc.c). Without a layout nothing tells
/// the one from the other.
pub(super) fn metadata(
    bytes: u32,
    has_layout: bool,
    reserved: Option<Class>,
    operation: Operation,
) -> Segment {
    match reserved {
        Some(class) => Segment::of(bytes, class, Evidence::LayoutRange),
        None if has_layout && operation.is_write() => {
            Segment::of(bytes, Class::FileData, Evidence::PageCache)
        }
        // Recovery reads nodes this way.
        None => Segment::of(bytes, Class::OtherMetadata, Evidence::PageCache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::Flags;
    use iostep_model::event::{self, File, Queue};

    fn file(inode: u64, generation: u32, mono_ns: u64) -> Event {
        Event::File(File {
            mono_ns,
            file: FileKey::plain(inode, generation),
            mode: 0o100_644,
            path: Some(format!("/{inode}.{generation}")),
            unlinked: false,
            birth_wall_ns: None,
        })
    }

    fn written(node: u32, inode: u64) -> Event {
        Event::Queue(Queue {
            mono_ns: 5,
            sector: 0,
            bytes: 4096,
            operation: Operation::Write,
            flags: Flags::default(),
            pid: 1,
            tgid: 1,
            sync: None,
            segments: vec![event::Segment {
                bytes: 4096,
                content: Content::F2fsNode {
                    node,
                    inode: Some(inode),
                    generation: None,
                },
                dirtier: None,
            }],
        })
    }

    fn path(events: &[Event], mono_ns: u64, node: (u32, Option<u64>, Option<u32>)) -> String {
        let names = Names::learn(events);
        let manifest = iostep_model::fixture::empty().manifest;
        let volume = super::super::volumes::of(&manifest).remove(0);
        let piece = Nodes::learn(&volume, events).piece((&names, 0), 4096, mono_ns, node);
        let (files, _) = names.into_tables();
        let path = piece.file.and_then(|row| files[row as usize].path.clone());
        path.unwrap_or_default()
    }

    #[test]
    fn an_inode_is_told_by_its_generation_and_other_nodes_by_the_time() {
        let events = [file(12, 1, 10), file(12, 2, 20)];
        assert_eq!(path(&events, 30, (12, Some(12), Some(1))), "/12.1");
        assert_eq!(path(&events, 15, (40, Some(12), None)), "/12.1");
        assert_eq!(path(&events, 25, (40, Some(12), None)), "/12.2");
        assert_eq!(path(&events, 25, (40, Some(13), None)), "");
    }

    #[test]
    fn a_node_that_is_read_is_known_from_when_it_was_written() {
        let events = [file(12, 1, 10), written(40, 12)];
        assert_eq!(path(&events, 30, (40, None, None)), "/12.1");
        assert_eq!(path(&events, 30, (12, None, None)), "/12.1");
        assert_eq!(path(&events, 30, (41, None, None)), "");
    }

    #[test]
    fn metadata_outside_its_areas_is_moved_data() {
        let class = |reserved, operation| metadata(4096, true, reserved, operation).class;
        let checkpoint = Some(Class::Checkpoint);
        assert_eq!(class(checkpoint, Operation::Write), Class::Checkpoint);
        assert_eq!(class(None, Operation::Write), Class::FileData);
        assert_eq!(class(None, Operation::Read), Class::OtherMetadata);
    }

    #[test]
    fn metadata_is_no_data_where_no_layout_tells() {
        let piece = metadata(4096, false, None, Operation::Write);
        assert_eq!(piece.class, Class::OtherMetadata);
    }
}

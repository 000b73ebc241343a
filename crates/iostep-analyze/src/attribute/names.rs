//! Files and threads by identity.

use iostep_model::FileKey;
use iostep_model::event::{self, Event, FactRef, IoRef};
use iostep_model::table::{File, ProcessRow, is_no_name};
use rustc_hash::FxHashMap;

use super::file_type;
use super::volumes::Places;

/// A thread is told about just after the event that made it known, and its comm changes with
/// exec: the row that is meant may be this much younger than the event.
const ROW_LAG_NS: u64 = 200_000;

/// Type bits of `i_mode` (include/uapi/linux/stat.h).
const S_IFMT: u16 = 0o170_000;
const S_IFDIR: u16 = 0o040_000;

/// The files and threads of a recording.
#[derive(Debug, Default)]
pub(crate) struct Names {
    files: Vec<File>,
    /// By volume.
    by_key: FxHashMap<(u16, FileKey), u32>,
    /// When a file was told about, by inode number.
    by_inode: FxHashMap<(u16, u64), Vec<(u64, u32)>>,
    processes: Vec<ProcessRow>,
    by_pid: FxHashMap<u32, Vec<u32>>,
}

impl Names {
    /// Collects every file and thread that the events name or mention, of one filesystem.
    #[cfg(test)]
    pub(super) fn learn(events: &[Event]) -> Names {
        Names::learn_at(&Places::default(), events)
    }

    /// The same of those that lie in these places.
    pub(super) fn learn_at(places: &Places<'_>, events: &[Event]) -> Names {
        let mut names = Names::default();
        for event in events {
            if let Some((volume, fact)) = event.fact() {
                names.collect(volume, fact);
            }
            match event {
                Event::Process(process) => names.add_process(process.clone().into()),
                Event::Cgroup(cgroup) => names.add_cgroup(cgroup),
                _ => {}
            }
            if let Some((device, IoRef::Queue(queue))) = event.io() {
                names.mention(places.volume_at(device, queue.sector), queue);
            }
        }
        for ((volume, _), row) in &names.by_key {
            names.files[*row as usize].volume = places.row_of(*volume);
        }
        file_type::assign(&mut names.files);
        names
    }

    fn collect(&mut self, volume: u16, fact: FactRef<'_>) {
        match fact {
            FactRef::File(file) => self.add_file(volume, file),
            FactRef::FileDeleted { mono_ns, file } => {
                let row = self.file_row(volume, file);
                row.deleted_ns.get_or_insert(mono_ns);
            }
            FactRef::SyncEnter(enter) => {
                if let Some(file) = enter.file {
                    self.file_row(volume, file);
                }
            }
            _ => {}
        }
    }

    fn mention(&mut self, volume: u16, queue: &event::Queue) {
        for segment in &queue.segments {
            match &segment.content {
                event::Content::File { file, .. }
                | event::Content::BlockMap { file }
                | event::Content::JournalBlock {
                    home_file: Some((file, _)),
                    ..
                } => {
                    self.file_row(volume, *file);
                }
                event::Content::F2fsNode {
                    inode: Some(inode),
                    generation: Some(generation),
                    ..
                } => {
                    self.file_row(volume, FileKey::plain(*inode, *generation));
                }
                _ => {}
            }
        }
    }

    fn add_file(&mut self, volume: u16, file: &event::File) {
        let row = self.file_row(volume, file.file);
        row.mode = file.mode;
        if let Some(path) = &file.path {
            let before = row.path.replace(path.clone());
            let before = before.filter(|before| !is_no_name(before, file.file));
            // Of all that it had, the first; none where it has that again.
            let first = row.first_path.take().or(before);
            row.first_path = first.filter(|first| first != path);
        }
        row.birth_wall_ns = file.birth_wall_ns.or(row.birth_wall_ns);
        row.deleted_ns = match file.unlinked {
            true => row.deleted_ns.or(Some(file.mono_ns)),
            // linkat(2) names what O_TMPFILE made.
            false => None,
        };
        if let Some(row) = self.file_of(volume, file.file) {
            let told = self.by_inode.entry((volume, file.file.inode)).or_default();
            told.push((file.mono_ns, row));
        }
    }

    fn file_row(&mut self, volume: u16, key: FileKey) -> &mut File {
        let index = *self.by_key.entry((volume, key)).or_insert_with(|| {
            let index = self.files.len() as u32;
            self.files.push(File {
                key,
                path: None,
                mode: 0,
                file_type: iostep_model::FileType::Other,
                birth_wall_ns: None,
                deleted_ns: None,
                volume: None,
                first_path: None,
            });
            index
        });
        &mut self.files[index as usize]
    }

    fn add_process(&mut self, process: ProcessRow) {
        let rows = self.by_pid.entry(process.pid).or_default();
        rows.push(self.processes.len() as u32);
        self.processes.push(process);
    }

    /// A thread that moves has a row for each group.
    fn add_cgroup(&mut self, cgroup: &event::Cgroup) {
        let rows = self.by_pid.get(&cgroup.pid);
        let Some(last) = rows.and_then(|rows| rows.last()) else {
            return;
        };
        let row = &mut self.processes[*last as usize];
        let is_new = row.cgroup_id.is_none() && row.cgroup.is_none();
        let placed = ProcessRow {
            mono_ns: if is_new { row.mono_ns } else { cgroup.mono_ns },
            cgroup_id: cgroup.id,
            cgroup: cgroup.path.clone(),
            ..row.clone()
        };
        if is_new {
            *row = placed;
        } else if (row.cgroup_id, &row.cgroup) != (placed.cgroup_id, &placed.cgroup) {
            self.add_process(placed);
        }
    }

    /// The row of a file of the only filesystem.
    pub(crate) fn file(&self, key: FileKey) -> Option<u32> {
        self.file_of(0, key)
    }

    /// The row of a file on a volume.
    pub(crate) fn file_of(&self, volume: u16, key: FileKey) -> Option<u32> {
        self.by_key.get(&(volume, key)).copied()
    }

    /// The row of the file that had an inode number at a time; the first one for a time before
    /// any was told about.
    pub(crate) fn file_with_inode(&self, volume: u16, inode: u64, mono_ns: u64) -> Option<u32> {
        let told = self.by_inode.get(&(volume, inode))?;
        let after = told.partition_point(|(at, _)| *at <= mono_ns);
        told.get(after.saturating_sub(1)).map(|(_, row)| *row)
    }

    /// True if the file is a directory.
    pub(crate) fn is_directory(&self, row: u32) -> bool {
        self.files[row as usize].mode & S_IFMT == S_IFDIR
    }

    /// The row of a thread under the name, and in the control group, that it had at a time.
    pub(crate) fn process(&self, pid: u32, mono_ns: u64) -> Option<u32> {
        let rows = self.by_pid.get(&pid)?;
        let after = rows.partition_point(|row| {
            self.processes[*row as usize].mono_ns <= mono_ns.saturating_add(ROW_LAG_NS)
        });
        rows.get(after.saturating_sub(1)).copied()
    }

    /// A thread's description.
    pub(crate) fn process_at(&self, row: u32) -> &ProcessRow {
        &self.processes[row as usize]
    }

    /// True if the thread is a jbd2 commit thread.
    pub(crate) fn is_jbd2(&self, pid: u32, mono_ns: u64) -> bool {
        self.process(pid, mono_ns).is_some_and(|row| {
            let process = self.process_at(row);
            process.kernel && process.comm.starts_with("jbd2/")
        })
    }

    /// True if the thread writes f2fs's checkpoints for others.
    pub(crate) fn is_f2fs_checkpoint(&self, pid: u32, mono_ns: u64) -> bool {
        self.process(pid, mono_ns).is_some_and(|row| {
            let process = self.process_at(row);
            process.kernel && process.comm.starts_with("f2fs_ckpt-")
        })
    }

    pub(super) fn into_tables(self) -> (Vec<File>, Vec<ProcessRow>) {
        (self.files, self.processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mono_ns: u64, generation: u32, path: &str, unlinked: bool) -> Event {
        Event::File(event::File {
            mono_ns,
            file: FileKey::plain(12, generation),
            mode: 0o100_600,
            path: Some(path.into()),
            unlinked,
            birth_wall_ns: None,
        })
    }

    #[test]
    fn a_thread_that_moves_to_another_control_group_has_a_row_for_each() {
        let pid = 7;
        let named = |mono_ns: u64, comm: &str| {
            Event::Process(event::Process {
                mono_ns,
                pid,
                tgid: pid,
                parent_tgid: 1,
                comm: comm.into(),
                kernel: false,
                command_line: None,
            })
        };
        let placed = |mono_ns: u64, id: u64, path: &str| {
            Event::Cgroup(event::Cgroup {
                mono_ns,
                pid,
                id: Some(id),
                path: Some(path.into()),
            })
        };
        let ms = 1_000_000;
        let events = [
            named(ms, "sh"),
            placed(ms + 1, 20, "/one"),
            placed(5 * ms, 20, "/one"),
            placed(9 * ms, 30, "/two"),
            named(13 * ms, "app"),
            placed(13 * ms + 1, 30, "/two"),
        ];
        let names = Names::learn(&events);
        let at = |mono_ns: u64| {
            let row = names.process_at(names.process(pid, mono_ns).expect("a row"));
            (&row.comm[..], row.cgroup_id, row.cgroup.as_deref())
        };
        assert_eq!(at(6 * ms), ("sh", Some(20), Some("/one")));
        assert_eq!(at(10 * ms), ("sh", Some(30), Some("/two")));
        assert_eq!(at(14 * ms), ("app", Some(30), Some("/two")));
        assert_eq!(names.into_tables().1.len(), 3);
    }

    fn both(file: &File) -> (Option<&str>, Option<&str>, bool) {
        let (path, first) = (file.path.as_deref(), file.first_path.as_deref());
        (path, first, file.deleted_ns.is_some())
    }

    #[test]
    fn a_renamed_file_has_its_last_path_and_keeps_its_first() {
        let gone = Event::FileDeleted {
            mono_ns: 9,
            file: FileKey::plain(12, 1),
        };
        let events = [
            // Written under a temporary name, replaced by the next version and gone.
            told(1, 1, "/conf.tmp", false),
            told(2, 1, "/conf", false),
            told(3, 2, "/conf.tmp", false),
            told(4, 2, "/conf", false),
            // A log that is rotated while it is written.
            told(5, 3, "/app.log", false),
            told(6, 3, "/app.log.1", false),
            told(7, 3, "/app.log.2", false),
            // There and back.
            told(7, 4, "/a", false),
            told(8, 4, "/b", false),
            told(9, 4, "/a", false),
            gone,
            // No name is no first name.
            told(9, 5, "/#12", true),
            told(10, 5, "/made", false),
        ];
        let (files, _) = Names::learn(&events).into_tables();
        let found: Vec<_> = files.iter().map(both).collect();
        let expected = [
            (Some("/conf"), Some("/conf.tmp"), true),
            (Some("/conf"), Some("/conf.tmp"), false),
            (Some("/app.log.2"), Some("/app.log"), false),
            (Some("/a"), None, false),
            (Some("/made"), None, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_that_is_linked_later_is_not_deleted() {
        let events = [
            told(1, 7, "/#12", true),
            told(2, 7, "/one", false),
            told(3, 8, "/#12", true),
        ];
        let (files, _) = Names::learn(&events).into_tables();
        let expected = [(Some("/one"), None), (Some("/#12"), Some(3))];
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_deref(), file.deleted_ns))
            .collect();
        assert_eq!(found, expected);
    }
}

//! Threads and processes, and what they share.

use iostep_model::syscall::{HandleId, ProcessId, ThreadId};
use rustc_hash::FxHashMap;

use super::descriptors::Table;
use super::mapping::Mappings;
use super::pool::{Pool, Slot};
use super::requests::Request;

/// A thread that lives.
#[derive(Debug)]
pub(super) struct Task {
    /// Its number in the recording, once a kept call names it.
    pub(super) id: Option<ThreadId>,
    pub(super) name: String,
    pub(super) process: Slot,
    pub(super) descriptors: Slot,
    pub(super) directory: Slot,
    /// Its clone was seen, so it shares what that said.
    pub(super) born: bool,
    /// Its number in its own PID namespace, if that was told.
    pub(super) own_number: Option<u32>,
}

/// What the threads of a process have in common, whatever clone was told.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// Its number in the recording, once a kept call names one of its threads.
    pub(super) id: Option<ProcessId>,
    pub(super) tids: Vec<u32>,
    pub(super) mappings: Mappings,
    /// Of io_submit, in the order in which they were handed in.
    pub(super) requests: Vec<Request>,
}

/// Where paths of a thread begin, absolute.
#[derive(Clone, Debug, Default)]
pub(super) struct Directories {
    /// Those that are relative.
    pub(super) current: Box<[u8]>,
    /// The others (chroot(2)); empty for the root of the machine.
    pub(super) root: Box<[u8]>,
}

impl Directories {
    pub(super) fn root_or_slash(&self) -> &[u8] {
        match self.root.is_empty() {
            true => b"/",
            false => &self.root,
        }
    }
}

/// Every thread that lives.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) by_tid: FxHashMap<u32, Task>,
    pub(super) processes: Pool<Process>,
    pub(super) descriptors: Pool<Table>,
    pub(super) directories: Pool<Directories>,
}

/// What a new thread shares with the one that made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) process: bool,
    pub(super) descriptors: bool,
    pub(super) directory: bool,
}

impl Tasks {
    /// The thread, a new one in a process of its own if it was never seen. `directory` is where it
    /// is then.
    pub(super) fn get(&mut self, tid: u32, directory: &[u8]) -> &mut Task {
        let Tasks {
            by_tid,
            processes,
            descriptors,
            directories,
        } = self;
        by_tid.entry(tid).or_insert_with(|| Task {
            id: None,
            name: String::new(),
            process: processes.add(Process {
                tids: vec![tid],
                ..Process::default()
            }),
            descriptors: descriptors.add(Table::default()),
            directory: directories.add(Directories {
                current: directory.into(),
                root: Box::default(),
            }),
            born: false,
            own_number: None,
        })
    }

    /// A thread that `parent`, which lives, made.
    pub(super) fn add_child(&mut self, parent: u32, child: u32, shares: Shares) {
        let parent = &self.by_tid[&parent];
        let process = if shares.process {
            self.processes.share(parent.process)
        } else {
            let mappings = self.processes[parent.process].mappings.clone();
            self.processes.add(Process {
                mappings,
                ..Process::default()
            })
        };
        let descriptors = if shares.descriptors {
            self.descriptors.share(parent.descriptors)
        } else {
            let copy = self.descriptors[parent.descriptors].inherited();
            self.descriptors.add(copy)
        };
        let directory = if shares.directory {
            self.directories.share(parent.directory)
        } else {
            let copy = self.directories[parent.directory].clone();
            self.directories.add(copy)
        };
        let task = Task {
            id: None,
            name: parent.name.clone(),
            process,
            descriptors,
            directory,
            born: true,
            own_number: None,
        };
        self.processes[process].tids.push(child);
        self.by_tid.insert(child, task);
    }

    /// A thread that did something before its clone was told: it has what it did, and beside it
    /// what `parent`, which lives, gave it. Gives the files of a table that it does not share.
    pub(super) fn adopt(&mut self, parent: u32, child: u32, shares: Shares) -> Box<[HandleId]> {
        let Some(orphan) = self.by_tid.remove(&child) else {
            return Box::default();
        };
        let given = self.descriptors[self.by_tid[&parent].descriptors].inherited();
        let directory = self.directories[orphan.directory].clone();
        self.processes[orphan.process].tids.clear();
        let process_id = self.processes[orphan.process].id;
        self.processes.release(orphan.process);
        self.directories.release(orphan.directory);
        let own = self.descriptors.release(orphan.descriptors);
        self.add_child(parent, child, shares);
        let task = &mut self.by_tid.entry(child);
        let std::collections::hash_map::Entry::Occupied(task) = task else {
            return Box::default();
        };
        let task = task.get_mut();
        task.id = orphan.id;
        task.own_number = orphan.own_number;
        let mut own = own.unwrap_or_default();
        if shares.descriptors {
            let table = &mut self.descriptors[task.descriptors];
            table.adopt(&own);
            return Box::default();
        }
        self.processes[task.process].id = process_id;
        if &*directory.current != super::UNKNOWN_DIRECTORY {
            self.directories[task.directory] = directory;
        }
        let adopted = own.adopt(&given);
        self.descriptors[task.descriptors] = own;
        adopted
    }

    /// Takes a thread away. Gives the table that nobody else has, if that was so.
    pub(super) fn remove(&mut self, tid: u32) -> Option<Table> {
        let task = self.by_tid.remove(&tid)?;
        let tids = &mut self.processes[task.process].tids;
        tids.retain(|other| *other != tid);
        self.processes.release(task.process);
        self.directories.release(task.directory);
        self.descriptors.release(task.descriptors)
    }

    /// Gives a thread another number, which nobody has yet. False if that is not so.
    pub(super) fn renumber(&mut self, from: u32, to: u32) -> bool {
        if self.by_tid.contains_key(&to) {
            return false;
        }
        let Some(task) = self.by_tid.remove(&from) else {
            return false;
        };
        for tid in &mut self.processes[task.process].tids {
            if *tid == from {
                *tid = to;
            }
        }
        self.by_tid.insert(to, task);
        true
    }

    /// The thread that `caller` means by a number: where it is in a PID namespace of its own, that
    /// is the number there.
    pub(super) fn named_by(&self, caller: u32, number: u32) -> Option<u32> {
        let own = |tid: u32| self.by_tid.get(&tid).and_then(|task| task.own_number);
        let inside = own(caller).is_some_and(|own| own != caller);
        let known = self.by_tid.contains_key(&number).then_some(number);
        if !inside && known.is_some() {
            return known;
        }
        let mut same = self.by_tid.keys().filter(|tid| own(**tid) == Some(number));
        match (same.next(), same.next()) {
            (Some(tid), None) => Some(*tid),
            (None, _) => known,
            // Several namespaces have such a number.
            (Some(_), Some(_)) => None,
        }
    }

    /// The other threads of a thread's process.
    pub(super) fn siblings(&self, tid: u32) -> Vec<u32> {
        let Some(task) = self.by_tid.get(&tid) else {
            return Vec::new();
        };
        let tids = self.processes[task.process].tids.iter().copied();
        tids.filter(|other| *other != tid).collect()
    }

    /// Gives a thread a table of its own, as exec does. True if it had shared one.
    pub(super) fn unshare_descriptors(&mut self, tid: u32) -> bool {
        let Some(task) = self.by_tid.get_mut(&tid) else {
            return false;
        };
        if !self.descriptors.is_shared(task.descriptors) {
            return false;
        }
        let copy = self.descriptors[task.descriptors].inherited();
        self.descriptors.release(task.descriptors);
        task.descriptors = self.descriptors.add(copy);
        true
    }
}

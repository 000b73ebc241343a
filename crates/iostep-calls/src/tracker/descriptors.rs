//! A table of descriptors, as it changes with the calls of several threads.
//!
//! Events come when calls end, but the kernel frees a number somewhere inside close, and gives a new
//! one somewhere inside open. So a call can end when its number means something else already: close
//! of 5, still flushing, while another thread opens 5; a read of 5 that ends after its close. Each
//! number therefore remembers what it was before, and a call means what its number was when it began.

use iostep_model::syscall::HandleId;
use rustc_hash::FxHashMap;

/// Input, output and errors come from whoever started the program.
pub(super) const STANDARD_STREAMS: std::ops::RangeInclusive<i32> = 0..=2;

/// What a descriptor points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// An open file of the recording.
    File(HandleId),
    /// Something whose calls are left out, for this reason.
    LeftOut(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) is: Opened,
    pub(super) close_on_exec: bool,
    /// When the call that made it ended.
    pub(super) since_ns: u64,
}

/// What a number was before.
#[derive(Clone, Copy, Debug)]
struct Before {
    is: Opened,
    /// When the call that took it away ended, or the one that used its number again.
    until_ns: u64,
    /// Its close has not ended: another call got the number first.
    closing: bool,
}

/// The descriptors of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    entries: FxHashMap<i32, Entry>,
    before: FxHashMap<i32, Before>,
    /// It is known from its beginning, with nothing but the standard streams.
    whole: bool,
}

/// What a number is, to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// This.
    Is(Opened),
    /// Nothing now: it was closed.
    Closed,
    /// It was never seen.
    Never,
}

impl Table {
    /// What `number` is to a call that began at `start_ns`.
    pub(super) fn get(&self, number: i32, start_ns: u64) -> Lookup {
        let entry = self.entries.get(&number);
        if let Some(entry) = entry.filter(|entry| entry.since_ns <= start_ns) {
            return Lookup::Is(entry.is);
        }
        match (self.before.get(&number), entry) {
            (Some(before), _) if start_ns < before.until_ns => Lookup::Is(before.is),
            (_, Some(entry)) => Lookup::Is(entry.is),
            (Some(_), None) => Lookup::Closed,
            (None, None) => Lookup::Never,
        }
    }

    /// A new descriptor. If the number is in use, its close will end later, or was lost.
    pub(super) fn insert(&mut self, number: i32, entry: Entry) {
        if let Some(old) = self.entries.insert(number, entry) {
            let before = Before {
                is: old.is,
                until_ns: entry.since_ns,
                closing: true,
            };
            self.before.insert(number, before);
        }
    }

    /// Takes away what a close that began at `start_ns` and ended at `end_ns` means.
    pub(super) fn close(&mut self, number: i32, start_ns: u64, end_ns: u64) -> Option<Opened> {
        if let Some(before) = self.before.get_mut(&number) {
            let newer = self.entries.get(&number).map(|entry| entry.since_ns);
            if before.closing && newer.is_some_and(|since_ns| start_ns < since_ns) {
                before.closing = false;
                return Some(before.is);
            }
        }
        self.replace(number, end_ns)
    }

    /// Takes away what is there now: dup2 closes it at once.
    pub(super) fn replace(&mut self, number: i32, end_ns: u64) -> Option<Opened> {
        let old = self.entries.remove(&number)?;
        let before = Before {
            is: old.is,
            until_ns: end_ns,
            closing: false,
        };
        self.before.insert(number, before);
        Some(old.is)
    }

    /// The recording begins with this process's program.
    pub(super) fn begins(&mut self) {
        self.whole = true;
    }

    /// The two lowest numbers that are free; none if others may be in use than those that are known.
    pub(super) fn two_free(&self) -> Option<[i32; 2]> {
        let is_free = |number: &i32| {
            let is_stream = STANDARD_STREAMS.contains(number) && !self.before.contains_key(number);
            !is_stream && !self.entries.contains_key(number)
        };
        let mut free = (0..=i32::MAX).filter(is_free);
        let two = [free.next()?, free.next()?];
        self.whole.then_some(two)
    }

    /// The entry of a number, to change it.
    pub(super) fn entry(&mut self, number: i32) -> Option<&mut Entry> {
        self.entries.get_mut(&number)
    }

    /// The numbers from `first` to `last` that are in use, in order.
    pub(super) fn numbers(&self, first: u32, last: u32) -> Vec<i32> {
        let range = first..=last;
        let mut numbers: Vec<i32> = self.entries.keys().copied().collect();
        numbers.retain(|&number| u32::try_from(number).is_ok_and(|n| range.contains(&n)));
        numbers.sort_unstable();
        numbers
    }

    /// Takes away what exec closes, in the order of the numbers.
    pub(super) fn close_on_exec(&mut self, end_ns: u64) -> Vec<HandleId> {
        let mut numbers = self.numbers(0, u32::MAX);
        numbers.retain(|number| self.entries[number].close_on_exec);
        let closed = numbers.iter().filter_map(|n| self.replace(*n, end_ns));
        closed.filter_map(Opened::file).collect()
    }

    /// The open files, as often as there are descriptors of each, in the order of the numbers.
    pub(super) fn files(&self) -> Box<[HandleId]> {
        let numbers = self.numbers(0, u32::MAX);
        let entries = numbers.iter().map(|number| self.entries[number].is);
        entries.filter_map(Opened::file).collect()
    }

    /// Like [`Table::files`], and what is still being closed: nobody will tell of it any more.
    pub(super) fn all_files(&self) -> Box<[HandleId]> {
        let closing = self.before.values().filter(|before| before.closing);
        let mut closing: Vec<HandleId> = closing.filter_map(|before| before.is.file()).collect();
        closing.sort_unstable();
        self.files().iter().copied().chain(closing).collect()
    }

    /// A copy for a new process, whose numbers have no past.
    pub(super) fn inherited(&self) -> Table {
        Table {
            entries: self.entries.clone(),
            before: FxHashMap::default(),
            whole: self.whole,
        }
    }

    /// Takes over what `parent` has and this has not: its clone was told late. Gives the files.
    pub(super) fn adopt(&mut self, parent: &Table) -> Box<[HandleId]> {
        let mut adopted = Vec::new();
        self.whole |= parent.whole;
        for number in parent.numbers(0, u32::MAX) {
            if !self.entries.contains_key(&number) && !self.before.contains_key(&number) {
                self.entries.insert(number, parent.entries[&number]);
                adopted.extend(parent.entries[&number].is.file());
            }
        }
        adopted.into()
    }
}

impl Opened {
    /// The open file, if it is one.
    pub(super) fn file(self) -> Option<HandleId> {
        match self {
            Opened::File(handle) => Some(handle),
            Opened::LeftOut(_) => None,
        }
    }
}

//! In which order lines of several texts are told, each of which strace -ff wrote of one thread: by
//! their times, and by what was before whatever the clock says. A thread makes its first line after the
//! clone that made it, and a wait for a process returns after its last.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use iostep_model::syscall::raw::Returned;
use rustc_hash::{FxHashMap, FxHashSet};

use super::follow::is_clone;
use super::line::{self, Body};
use super::{prefix, split};

/// What a line says of other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A clone returned this number.
    Made(u32),
    /// The process of this number has ended.
    Ended(u32),
    Nobody,
}

/// Reads a line, without its end.
pub(super) fn about(text: &[u8]) -> About {
    let Some((_, rest)) = prefix::split(text) else {
        return About::Nobody;
    };
    let Body::Call(text) = line::body(rest) else {
        return About::Nobody;
    };
    let waits = [&b"wait4("[..], b"waitpid(", b"waitid("];
    let waits = waits.iter().any(|name| text.starts_with(name));
    if !waits && !is_clone(text) {
        return About::Nobody;
    }
    let Some(call) = split::call(text) else {
        return About::Nobody;
    };
    let number = |value| u32::try_from(value).unwrap_or(0);
    let number = match (call.returned, call.translated) {
        (Returned::Value(_), Some(child)) => child,
        (Returned::Value(value), None) => number(value),
        _ => 0,
    };
    // One that was stopped, or goes on, has not ended. waitid says whom in its structure.
    let lives = [&b"WIFSTOPPED"[..], b"WIFCONTINUED"];
    let lives = lives
        .iter()
        .any(|word| memchr::memmem::find(text, word).is_some());
    match (number, waits) {
        (0, _) => About::Nobody,
        (number, false) => About::Made(number),
        (_, true) if lives || call.name == b"waitid" => About::Nobody,
        (number, true) => About::Ended(number),
    }
}

/// The numbers that clones return in the first lines of a text.
pub(super) fn made(start: &[u8]) -> impl Iterator<Item = u32> {
    let lines = start.split(|byte| *byte == b'\n');
    lines.filter_map(|text| match about(text.trim_ascii_end()) {
        About::Made(number) => Some(number),
        _ => None,
    })
}

/// Texts by what is told next. A text is named by its place.
#[derive(Debug, Default)]
pub(super) struct Merge {
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// The text of each thread.
    by_number: FxHashMap<u32, usize>,
    /// Texts of threads that no clone made yet, by when they seem to begin.
    unborn: BTreeSet<(u64, usize)>,
    /// Texts at a wait for a process, with the text of that.
    waiting: Vec<(usize, usize)>,
    ended: FxHashSet<usize>,
    /// Threads are told after the clones that make them.
    by_clones: bool,
}

impl Merge {
    /// Of texts of these threads. `root`: the text that begins with the command, if clones are in the
    /// texts; then all other threads are made by some.
    pub(super) fn new(numbers: impl Iterator<Item = Option<u32>>, by_clones: bool) -> Merge {
        let numbers = numbers.enumerate();
        let by_number = numbers.filter_map(|(text, number)| Some((number?, text)));
        Merge {
            by_number: by_number.collect(),
            by_clones,
            ..Merge::default()
        }
    }

    /// A text has its first line, with this time.
    pub(super) fn begins(&mut self, text: usize, at_ns: u64, is_root: bool) {
        match self.by_clones && !is_root {
            true => drop(self.unborn.insert((at_ns, text))),
            false => self.goes_on(text, at_ns),
        }
    }

    /// A text has a further line, with this time.
    pub(super) fn goes_on(&mut self, text: usize, at_ns: u64) {
        self.ready.push(Reverse((at_ns, text)));
    }

    /// The text whose line is told next.
    pub(super) fn next(&mut self) -> Option<usize> {
        if let Some(Reverse((_, text))) = self.ready.pop() {
            return Some(text);
        }
        // No clone told of it: its line is missing, or has another number.
        if let Some((_, text)) = self.unborn.pop_first() {
            return Some(text);
        }
        self.waiting.pop().map(|(text, _)| text)
    }

    /// Lets a text wait for that of a process, if that has not ended. False if it need not.
    pub(super) fn waits_for(&mut self, text: usize, number: u32) -> bool {
        let Some(of) = self.by_number.get(&number).copied() else {
            return false;
        };
        let waits =
            self.by_clones && of != text && !self.ended.contains(&of) && !self.is_unborn(of);
        if waits {
            self.waiting.push((text, of));
        }
        waits
    }

    /// The text of a process, if it was told to its end.
    pub(super) fn ended(&self, number: u32) -> Option<usize> {
        let text = self.by_number.get(&number).copied();
        text.filter(|text| self.ended.contains(text))
    }

    fn is_unborn(&self, text: usize) -> bool {
        self.unborn.iter().any(|(_, other)| *other == text)
    }

    /// A clone returned this number: the text that begins by it. In a PID namespace the number is of none,
    /// and then it is the first that no clone told of.
    pub(super) fn born(&mut self, number: u32) -> Option<usize> {
        let first = self.unborn.first().copied();
        let found = match self.by_number.get(&number) {
            Some(text) => self.unborn.iter().find(|(_, other)| other == text).copied(),
            None => first,
        }?;
        self.unborn.remove(&found);
        Some(found.1)
    }

    /// A text is at its end: those that waited for it.
    pub(super) fn ends(&mut self, text: usize) -> Vec<usize> {
        self.ended.insert(text);
        let (woken, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, of)| *of == text);
        self.waiting = waiting;
        woken.into_iter().map(|(text, _)| text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_whom_they_made_and_whose_end_they_saw() {
        for (text, expected) in [
            (
                "1.5 clone(child_stack=NULL, flags=SIGCHLD) = 12 <0.1>",
                About::Made(12),
            ),
            (
                "fork() = -1 EAGAIN (Resource temporarily unavailable)",
                About::Nobody,
            ),
            ("vfork() = 3 /* 14 in strace's PID NS */", About::Made(14)),
            (
                "10:00:00 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 12",
                About::Ended(12),
            ),
            ("wait4(-1, NULL, WNOHANG, NULL) = 0", About::Nobody),
            (
                "wait4(-1, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], WSTOPPED, NULL) = 12",
                About::Nobody,
            ),
            ("read(3, \"clone(\", 6) = 12", About::Nobody),
            ("+++ exited with 0 +++", About::Nobody),
        ] {
            assert_eq!(about(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_text_comes_after_the_clone_that_made_its_thread_and_before_the_end_of_a_wait_for_it() {
        let mut merge = Merge::new([Some(1), Some(2), Some(9)].into_iter(), true);
        merge.begins(0, 100, true);
        merge.begins(1, 10, false);
        merge.begins(2, 20, false);
        assert_eq!(merge.next(), Some(0));
        assert_eq!(merge.born(2), Some(1));
        merge.goes_on(1, 110);
        assert!(merge.waits_for(0, 2));
        assert_eq!(merge.next(), Some(1));
        assert_eq!(merge.ends(1), [0]);
        assert!(!merge.waits_for(0, 2), "it has ended");
        // The number of another namespace.
        assert_eq!(merge.born(3), Some(2));
        assert_eq!(merge.born(3), None);
        assert_eq!(merge.next(), None);
    }

    #[test]
    fn a_text_of_which_nothing_tells_is_told_last() {
        let mut merge = Merge::new([Some(1), Some(2)].into_iter(), true);
        merge.begins(0, 100, true);
        merge.begins(1, 10, false);
        assert_eq!(
            [merge.next(), merge.next(), merge.next()],
            [Some(0), Some(1), None]
        );
    }
}

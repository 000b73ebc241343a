//! Numbers of threads in other PID namespaces.
//!
//! A line begins with the number that strace itself has for a thread, and a call's result is what
//! the program got: in a container, clone returns the number there. With --pidns-translation strace
//! writes the other one behind it (src/pidns.c, `printpid_translation`). Without, the child is
//! known by its first line: it is a thread that no clone told of.

use std::collections::VecDeque;

/// Numbers of children whose clone returned the number of another thread: no thread has such
/// (`PID_MAX_LIMIT`, include/linux/threads.h).
const FIRST_STAND_IN: u32 = 1 << 31;

/// Children that were told and have made no line yet.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    /// By the order of their clones, in which the kernel gives numbers in all namespaces.
    unseen: VecDeque<Child>,
    /// Some thread is in another namespace.
    several: bool,
    /// The text begins with the exec of the command that strace ran: every other thread is a
    /// child of one in it.
    whole: bool,
    /// How much greater the numbers of the child found last are for strace.
    distance: Option<i64>,
    stand_ins: u32,
}

/// A child that was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Child {
    /// By this number.
    pub(super) told: u32,
    /// What clone returned.
    pub(super) returned: u32,
    parent: u32,
}

impl Namespaces {
    /// `whole`: the text begins with the exec of the command that strace ran.
    pub(super) fn new(whole: bool) -> Namespaces {
        Namespaces {
            whole,
            ..Namespaces::default()
        }
    }

    /// strace says what the number that a clone returned is for it.
    pub(super) fn translated(&mut self) {
        self.several = true;
    }

    /// A clone returned a number of which no line was yet; it is told by that.
    pub(super) fn returned(&mut self, parent: u32, returned: u32) {
        self.unseen.push_back(Child {
            told: returned,
            returned,
            parent,
        });
    }

    /// A clone returned the number of a thread that was there before. Gives the number to tell.
    pub(super) fn collided(&mut self, parent: u32, returned: u32) -> u32 {
        self.several = true;
        let told = FIRST_STAND_IN + self.stand_ins;
        self.stand_ins = (self.stand_ins + 1) % FIRST_STAND_IN;
        self.unseen.push_back(Child {
            told,
            returned,
            parent,
        });
        told
    }

    /// True if a child was told by this number and has made no line.
    pub(super) fn is_unseen(&self, tid: u32) -> bool {
        self.unseen.iter().any(|child| child.told == tid)
    }

    /// A thread made its first line. True if it was told by its number.
    pub(super) fn seen(&mut self, tid: u32) -> bool {
        let found = self.unseen.iter().position(|child| child.told == tid);
        found.and_then(|at| self.unseen.remove(at)).is_some()
    }

    /// A thread of which no clone told made its first line: whose child it is.
    pub(super) fn stranger(&mut self, tid: u32) -> Option<Child> {
        let may_be = |child: &Child| self.is_other(child.parent, child.returned);
        let distance = |child: &Child| i64::from(tid) - i64::from(child.returned);
        let same = |child: &Child| may_be(child) && self.distance == Some(distance(child));
        let mut unseen = self.unseen.iter();
        let at = unseen.position(same);
        let at = at.or_else(|| self.unseen.iter().position(may_be))?;
        let child = self.unseen.remove(at)?;
        self.distance = Some(distance(&child));
        self.several = true;
        Some(child)
    }

    /// True if every child that was told has made a line.
    pub(super) fn all_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// True if the number that a clone of `parent` returned may be one of another namespace: in its
    /// own a child has a greater number than its parent, as long as they do not begin again.
    pub(super) fn is_other(&self, parent: u32, returned: u32) -> bool {
        self.whole || self.several || returned < parent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_in_the_order_of_their_clones_or_by_their_distance() {
        let mut namespaces = Namespaces::default();
        for returned in [2, 3, 4] {
            namespaces.returned(500, returned);
        }
        assert_eq!(namespaces.stranger(501).map(|child| child.told), Some(2));
        assert_eq!(namespaces.stranger(503).map(|child| child.told), Some(4));
        assert!(namespaces.seen(3));
        assert_eq!(namespaces.stranger(504), None);
    }

    #[test]
    fn a_number_of_the_same_namespace_is_waited_for() {
        let mut namespaces = Namespaces::default();
        namespaces.returned(500, 501);
        assert_eq!(
            namespaces.stranger(900),
            None,
            "it may have been attached to"
        );
        namespaces.whole = true;
        assert_eq!(namespaces.stranger(900).map(|child| child.told), Some(501));
    }
}

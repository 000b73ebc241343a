//! Things that several threads share until the last of them is gone.

/// The number of a thing in a [`Pool`]; used again after the last owner gave it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// Things with a count of their owners. Indices instead of `Rc`, so that a tracker can move to
/// another thread.
#[derive(Debug)]
pub(super) struct Pool<T> {
    slots: Vec<Option<(T, u32)>>,
    free: Vec<usize>,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Pool<T> {
    /// A new thing with one owner.
    pub(super) fn add(&mut self, thing: T) -> Slot {
        let slot = Some((thing, 1));
        match self.free.pop() {
            Some(index) => {
                self.slots[index] = slot;
                Slot(index)
            }
            None => {
                self.slots.push(slot);
                Slot(self.slots.len() - 1)
            }
        }
    }

    /// One owner more.
    pub(super) fn share(&mut self, slot: Slot) -> Slot {
        if let Some((_, owners)) = &mut self.slots[slot.0] {
            *owners += 1;
        }
        slot
    }

    /// One owner less; the thing itself if that was the last.
    pub(super) fn release(&mut self, slot: Slot) -> Option<T> {
        let held = &mut self.slots[slot.0];
        match held {
            Some((_, owners)) if *owners > 1 => {
                *owners -= 1;
                None
            }
            _ => {
                self.free.push(slot.0);
                held.take().map(|(thing, _)| thing)
            }
        }
    }

    /// True if somebody else owns it too.
    pub(super) fn is_shared(&self, slot: Slot) -> bool {
        matches!(&self.slots[slot.0], Some((_, owners)) if *owners > 1)
    }

    /// The numbers of everything that has an owner.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let slots = self.slots.iter().enumerate();
        let owned = slots.filter(|(_, held)| held.is_some());
        owned.map(|(index, _)| Slot(index)).collect()
    }

    /// Everything that has an owner.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten().map(|(thing, _)| thing)
    }
}

const OWNED: &str = "whoever holds a slot owns what is in it";

impl<T> std::ops::Index<Slot> for Pool<T> {
    type Output = T;

    fn index(&self, slot: Slot) -> &T {
        &self.slots[slot.0].as_ref().expect(OWNED).0
    }
}

impl<T> std::ops::IndexMut<Slot> for Pool<T> {
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.slots[slot.0].as_mut().expect(OWNED).0
    }
}

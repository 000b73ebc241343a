//! Which cells are run where.

use std::collections::BTreeSet;

use iostep_lab::environment::{Choice, Mountable, On};
use iostep_model::lab::Cell;

/// Every cell with what is to be done with it.
pub struct Schedule {
    /// In the lab's order.
    pub cells: Vec<(Cell, Choice)>,
    /// Blocks whose cells need a device that can be polled.
    pub polled: BTreeSet<String>,
}

impl Schedule {
    /// Looks at this machine.
    pub fn of(cells: Vec<Cell>, on: &On, journal: bool, polled: BTreeSet<String>) -> Schedule {
        let mut mountable = Mountable::new();
        let chosen = cells.into_iter().map(|cell| {
            let choice = mountable.choose(&cell, on, journal, &polled);
            (cell, choice)
        });
        Schedule {
            cells: chosen.collect(),
            polled,
        }
    }

    /// Has guests do what this machine does not allow.
    pub fn move_to_guests(&mut self) {
        for (_, choice) in &mut self.cells {
            if *choice == Choice::Here {
                *choice = Choice::Guest;
            }
        }
    }

    /// True if anything will be mounted by this process.
    pub fn needs_mounts(&self, on: &On) -> bool {
        let mut cells = self.cells.iter();
        let here = cells.any(|(_, choice)| *choice == Choice::Here);
        here && !matches!(on, On::Directory(_))
    }
}

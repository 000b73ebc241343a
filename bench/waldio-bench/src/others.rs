//! How much of the CPUs other programs used, which is what spoils a comparison.

use anyhow::{Context, Result};

/// Ticks since the machine and this process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    user: u64,
    own_user: u64,
}

impl Ticks {
    /// Now. Only user mode counts: kernel threads have none, and what the kernel does for a loop
    /// device is the bench's own.
    pub fn now() -> Result<Ticks> {
        let machine = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let own = std::fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
        Ticks::parse(&machine, &own).context("/proc/stat is not what it used to be")
    }

    fn parse(machine: &str, own: &str) -> Option<Ticks> {
        // A process without a terminal has a group of -1 there.
        let numbers = |text: &str| -> Vec<u64> {
            let words = text.split_whitespace();
            let signed = words.map_while(|word| word.parse::<i64>().ok());
            signed.map(|number| number.max(0).unsigned_abs()).collect()
        };
        let machine = numbers(machine.lines().next()?.strip_prefix("cpu ")?);
        // After the name and the state: utime is the 12th, cutime the 14th number.
        let own = numbers(own.rsplit_once(") ")?.1.get(2..)?);
        Some(Ticks {
            all: machine.iter().take(8).sum(),
            user: machine.first()? + machine.get(1)?,
            own_user: own.get(10)? + own.get(12)?,
        })
    }

    /// The share of others since then, in percent.
    pub fn others_since(self, before: Ticks) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let user = self.user.saturating_sub(before.user);
        let own = self.own_user.saturating_sub(before.own_user);
        Some(user.saturating_sub(own) as f64 * 100.0 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "7 (a) name) S 1 2 3 4 -1 6 7 8 9 10 100 12 200 14 15";

    #[test]
    fn own_time_is_that_of_this_process_and_its_children() {
        let ticks = Ticks::parse("cpu  1000 10 1 2000 0 0 0 0 9 9\ncpu0 1\n", OWN);
        let expected = Ticks {
            all: 3011,
            user: 1010,
            own_user: 300,
        };
        assert_eq!(ticks, Some(expected));
    }

    #[test]
    fn others_have_what_is_left_of_user_mode() {
        let at = |all, user, own_user| Ticks {
            all,
            user,
            own_user,
        };
        assert_eq!(at(200, 60, 20).others_since(at(0, 0, 0)), Some(20.0));
        assert_eq!(at(200, 20, 30).others_since(at(0, 0, 0)), Some(0.0));
        assert_eq!(at(5, 5, 5).others_since(at(5, 5, 5)), None);
    }
}

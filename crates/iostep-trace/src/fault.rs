//! Faults that are made on purpose, to see that the self-check finds them.

use std::str::FromStr;

/// One fault in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// At which point of a request's way.
    pub point: Point,
    /// What goes wrong.
    pub kind: FaultKind,
    /// At which event there since the trace began, counted from 1.
    pub number: u64,
}

/// A point of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A bio is queued.
    Queue,
    /// A request goes to the driver.
    Issue,
    /// A request comes back.
    Complete,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The kernel does not run the program.
    Skip,
    /// It runs twice.
    Twice,
    /// The program sees a byte too many.
    Byte,
    /// The record is lost on its way to the recording.
    Lose,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let help = || format!("{text:?} is not POINT:KIND:NUMBER, such as complete:skip:100");
        let mut words = text.splitn(3, ':');
        let mut word = || words.next().ok_or_else(help);
        let point = match word()? {
            "queue" => Point::Queue,
            "issue" => Point::Issue,
            "complete" => Point::Complete,
            _ => return Err(help()),
        };
        let kind = match word()? {
            "skip" => FaultKind::Skip,
            "twice" => FaultKind::Twice,
            "byte" => FaultKind::Byte,
            "lose" => FaultKind::Lose,
            _ => return Err(help()),
        };
        let number = word()?.parse().map_err(|_| help())?;
        Ok(Fault {
            point,
            kind,
            number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_point_a_kind_and_a_number() {
        let fault = Fault {
            point: Point::Issue,
            kind: FaultKind::Twice,
            number: 7,
        };
        assert_eq!("issue:twice:7".parse(), Ok(fault));
        for wrong in [
            "",
            "issue:twice",
            "issue:never:7",
            "nowhere:skip:7",
            "issue:skip:x",
        ] {
            assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
        }
    }
}

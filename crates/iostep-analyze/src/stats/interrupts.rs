//! Interrupts while the trace ran, and the device's share (ATC'13 figure 2(f)).

use iostep_model::manifest::Interrupt;
use serde::Serialize;

use super::amount::ratio;

/// Interrupts over all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interrupts {
    pub total: u64,
    /// The traced device's.
    pub of_device: u64,
    /// `of_device / total`; nothing if none was counted or no line is the device's: a loop
    /// device has no interrupt of its own.
    pub device_share: Option<f64>,
    /// By line of `/proc/interrupts`, the busiest first; quiet lines are left out.
    pub sources: Vec<Interrupt>,
}

impl Interrupts {
    /// Sums up the manifest's counts.
    pub fn of(interrupts: &[Interrupt]) -> Interrupts {
        let mut sources: Vec<Interrupt> =
            interrupts.iter().filter(|i| i.count > 0).cloned().collect();
        sources.sort_by_key(|interrupt| std::cmp::Reverse(interrupt.count));
        let sum = |of: fn(&&Interrupt) -> bool| -> u64 {
            let counts = sources.iter().filter(of).map(|i| i.count);
            counts.fold(0, u64::saturating_add)
        };
        let (total, of_device) = (sum(|_| true), sum(|i| i.of_device));
        let known = interrupts.iter().any(|i| i.of_device);
        Interrupts {
            total,
            of_device,
            device_share: ratio(of_device, total).filter(|_| known),
            sources,
        }
    }
}

//! Interrupts while a trace ran (ATC'13 figure 2(f)).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use iostep_model::manifest::Interrupt;

use crate::error::{Error, Result};
use crate::target::Target;

const PATH: &str = "/proc/interrupts";

/// The lines of `/proc/interrupts`, summed over CPUs.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    lines: Vec<(String, String, u64)>,
}

/// Reads the counters now.
///
/// Errors: `Io`.
pub fn read() -> Result<Reading> {
    let text = fs::read_to_string(PATH).map_err(Error::io(PATH, "read"))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Reading {
    let mut lines = Vec::new();
    for line in text.lines().skip(1) {
        let Some((label, rest)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counts = words.iter().map_while(|word| word.parse::<u64>().ok());
        let cpus = counts.clone().count();
        let total = counts.sum();
        lines.push((label.trim().to_owned(), words[cpus..].join(" "), total));
    }
    Reading { lines }
}

/// What came between two readings, with the device's own lines marked. A loop device has none:
/// its I/O is another device's.
pub fn between(before: &Reading, after: &Reading, target: &Target) -> Vec<Interrupt> {
    let earlier: HashMap<&str, u64> = before
        .lines
        .iter()
        .map(|(label, _, count)| (label.as_str(), *count))
        .collect();
    let owner = Owner::of(&target.disk_sysfs);
    after
        .lines
        .iter()
        .map(|(label, description, count)| Interrupt {
            label: label.clone(),
            description: description.clone(),
            count: count.saturating_sub(*earlier.get(label.as_str()).unwrap_or(&0)),
            of_device: owner.has(label, description),
        })
        .filter(|interrupt| interrupt.count > 0)
        .collect()
}

/// Whose interrupts are the disk's: the lines of the hardware devices above it in sysfs.
#[derive(Debug, Default)]
struct Owner {
    numbers: HashSet<String>,
    names: HashSet<String>,
}

impl Owner {
    fn of(disk_sysfs: &Path) -> Owner {
        let mut owner = Owner::default();
        let Ok(device) = fs::canonicalize(disk_sysfs.join("device")) else {
            return owner;
        };
        let mut at: Option<PathBuf> = Some(device);
        while let Some(dir) = at.filter(|dir| dir.starts_with("/sys/devices")) {
            owner
                .names
                .extend(dir.file_name().map(|n| n.to_string_lossy().into_owned()));
            if let Ok(entries) = fs::read_dir(dir.join("msi_irqs")) {
                let numbers = entries
                    .flatten()
                    .map(|e| e.file_name().to_string_lossy().into());
                owner.numbers.extend::<Vec<String>>(numbers.collect());
            } else if let Ok(number) = fs::read_to_string(dir.join("irq")) {
                owner.numbers.insert(number.trim().to_owned());
            }
            if !owner.numbers.is_empty() {
                break;
            }
            at = dir.parent().map(Path::to_owned);
        }
        owner.numbers.remove("0");
        owner
    }

    fn has(&self, label: &str, description: &str) -> bool {
        self.numbers.contains(label)
            || description.split_ascii_whitespace().any(|word| {
                let word = word.trim_end_matches(',');
                self.names.contains(word)
                    || self.names.contains(word.split('-').next().unwrap_or(""))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_summed_over_cpus_and_keep_their_description() {
        let text = "           CPU0       CPU1\n  24:        10         5   PCI-MSI-0000:00:04.0   1-edge      virtio1-req.0\n NMI:          1          2   Non-maskable interrupts\n ERR:          0\n";
        let reading = parse(text);
        assert_eq!(reading.lines[0].0, "24");
        assert_eq!(reading.lines[0].2, 15);
        assert!(reading.lines[0].1.ends_with("virtio1-req.0"));
        assert_eq!(reading.lines[2].2, 0);
    }

    #[test]
    fn a_device_is_known_by_the_name_before_the_queue() {
        let owner = Owner {
            numbers: HashSet::new(),
            names: HashSet::from(["virtio1".to_owned()]),
        };
        assert!(owner.has("24", "PCI-MSI 1-edge virtio1-req.0"));
        assert!(!owner.has("25", "PCI-MSI 1-edge virtio2-req.0"));
    }
}

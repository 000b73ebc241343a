//! How much of a disk's life is used up, where it tells.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::attribute::{node, text};
use super::sysfs::SysfsDisk;
use super::{Bus, Disk, nvme};

/// What a disk says of its wear, in its own units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// NVMe's "percentage used", percent of the rated life: 100 is all of it, 255 the most it says.
    pub used_percent: Option<u8>,
    /// UFS and eMMC, memory of type A and B: 1 is up to 10 % of the life used, 10 up to 100 %, 11
    /// more than that; 0 is not defined.
    pub life_time_a: Option<u8>,
    pub life_time_b: Option<u8>,
    /// UFS and eMMC, the reserved blocks: 1 is normal, 2 is 80 % used, 3 is urgent; 0 is not defined.
    pub pre_eol: Option<u8>,
}

/// What a disk says now; `None` if it says nothing.
pub(super) fn read(root: &Path, disk: &Disk) -> Option<Health> {
    let found = match disk.bus? {
        Bus::Nvme => Health {
            used_percent: nvme::percentage_used(&node(root, &disk.name)?),
            ..Health::default()
        },
        Bus::Ufs => {
            let place = SysfsDisk::of(&root.join("sys"), &disk.name)?;
            let descriptor = place.controller()?.join("health_descriptor");
            let field = |name: &str| number(&text(&descriptor.join(name))?);
            Health {
                used_percent: None,
                life_time_a: field("life_time_estimation_a"),
                life_time_b: field("life_time_estimation_b"),
                pre_eol: field("eol_info"),
            }
        }
        Bus::Emmc => {
            let card = SysfsDisk::of(&root.join("sys"), &disk.name)?.device?;
            let both = text(&card.join("life_time")).unwrap_or_default();
            let mut both = both.split_ascii_whitespace().map(number);
            Health {
                used_percent: None,
                life_time_a: both.next().flatten(),
                life_time_b: both.next().flatten(),
                pre_eol: number(&text(&card.join("pre_eol_info")).unwrap_or_default()),
            }
        }
        Bus::Scsi | Bus::Ata | Bus::Usb | Bus::Sd | Bus::Virtio => return None,
    };
    (found != Health::default()).then_some(found)
}

/// `0x0b`.
fn number(text: &str) -> Option<u8> {
    u8::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_none_is_not_taken_for_one() {
        assert_eq!(number("0x0b\n"), Some(11));
        for text in ["", "0x", "11", "0x1ff", "0x-1"] {
            assert_eq!(number(text), None, "{text:?}");
        }
    }
}

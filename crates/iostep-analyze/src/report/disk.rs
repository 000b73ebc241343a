//! The hardware below, in words.

use iostep_model::SECTOR_BYTES;
use iostep_model::disk::{Disk, Health};
use iostep_model::host::Android;
use iostep_model::manifest::Device;
use iostep_report::quantity::bytes;

/// A disk: `nvme0n1: ACME SSD 980 (NVMe, vendor 0x144d, firmware 5B2Q, 931 GiB)`.
pub(crate) fn label(disk: &Disk) -> String {
    let (number, vendor) = match &disk.vendor {
        Some(number) if number.starts_with("0x") => (Some(format!("vendor {number}")), None),
        vendor => (None, vendor.clone()),
    };
    let names: Vec<String> = [vendor, disk.model.clone()].into_iter().flatten().collect();
    let facts: Vec<String> = [
        disk.bus.map(|bus| bus.to_string()),
        number,
        disk.firmware
            .as_ref()
            .map(|text| format!("firmware {text}")),
        disk.capacity_bytes.map(bytes),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (names, facts) = (names.join(" "), facts.join(", "));
    match (names.is_empty(), facts.is_empty()) {
        (true, true) => disk.name.clone(),
        (true, false) => format!("{} ({facts})", disk.name),
        (false, true) => format!("{}: {names}", disk.name),
        (false, false) => format!("{}: {names} ({facts})", disk.name),
    }
}

/// All disks in one line; `None` if none is known.
pub(crate) fn line(disks: &[Disk]) -> Option<String> {
    let labels: Vec<String> = disks.iter().map(label).collect();
    (!labels.is_empty()).then(|| labels.join("; "))
}

/// A device: `loop0 of 1 GiB, rotating, write cache volatile, FUA no, scheduler none`.
pub(crate) fn device(device: &Device) -> String {
    format!(
        "{} of {}, {}, write cache {}, FUA {}, scheduler {}",
        device.name,
        bytes(device.sectors.saturating_mul(SECTOR_BYTES)),
        either(device.rotational, "rotating", "not rotating"),
        either(device.volatile_write_cache, "volatile", "none or safe"),
        either(device.fua, "yes", "no"),
        device.scheduler.as_deref().unwrap_or("unknown"),
    )
}

fn either(known: Option<bool>, yes: &'static str, no: &'static str) -> &'static str {
    match known {
        Some(true) => yes,
        Some(false) => no,
        None => "unknown",
    }
}

/// How worn the disks are that tell: `nvme0n1: 3 % of its life used before, 4 % of its life used
/// after`.
pub(crate) fn health(disks: &[Disk]) -> Option<String> {
    let told = disks.iter().filter_map(|disk| {
        let (before, after) = (disk.health_before.as_ref(), disk.health_after.as_ref());
        let words = match (before, after) {
            (Some(before), Some(after)) if before != after => {
                format!("{} before, {} after", wear(before), wear(after))
            }
            (before, after) => wear(before.or(after)?),
        };
        Some(format!("{}: {words}", disk.name))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn wear(health: &Health) -> String {
    let life = |memory: &str, value: Option<u8>| match value? {
        0 => None,
        tenths @ 1..=10 => {
            let (from, to) = ((tenths - 1) * 10, tenths * 10);
            Some(format!("{from} to {to} % of memory {memory} used"))
        }
        _ => Some(format!("more than all of memory {memory} used")),
    };
    let reserve = match health.pre_eol {
        Some(1) => Some("reserved blocks normal"),
        Some(2) => Some("80 % of the reserved blocks used"),
        Some(3) => Some("hardly a reserved block left"),
        _ => None,
    };
    let words: Vec<String> = [
        health
            .used_percent
            .map(|used| format!("{used} % of its life used")),
        life("A", health.life_time_a),
        life("B", health.life_time_b),
        reserve.map(str::to_owned),
    ]
    .into_iter()
    .flatten()
    .collect();
    match words.is_empty() {
        true => "wear not defined".into(),
        false => words.join(", "),
    }
}

/// A build of Android: `Android 14 on ACME Phone 8 Pro (acme/ph8/ph8:14/AP1A/1:user/release-keys)`.
pub(crate) fn android(build: &Android) -> String {
    let or_not = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let maker = build.manufacturer.as_ref().or(build.brand.as_ref());
    let model = build.model.as_ref().or(build.device.as_ref());
    let phone: Vec<&str> = maker.into_iter().chain(model).map(String::as_str).collect();
    let mut line = format!("Android {}", or_not(&build.release));
    if !phone.is_empty() {
        line.push_str(&format!(" on {}", phone.join(" ")));
    }
    if let Some(fingerprint) = &build.fingerprint {
        line.push_str(&format!(" ({fingerprint})"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::disk::Bus;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn what_is_not_known_leaves_no_gap() {
        let mut disk = Disk {
            name: "vda".into(),
            ..Disk::default()
        };
        assert_eq!(label(&disk), "vda");
        disk.bus = Some(Bus::Virtio);
        disk.vendor = some("0x1af4");
        assert_eq!(label(&disk), "vda (virtio, vendor 0x1af4)");
        disk.vendor = some("ACME");
        disk.model = some("One");
        assert_eq!(label(&disk), "vda: ACME One (virtio)");
        disk.bus = None;
        assert_eq!(label(&disk), "vda: ACME One");
        assert_eq!(line(&[]), None);
        assert_eq!(health(&[disk]), None);
    }

    #[test]
    fn wear_is_told_once_unless_it_changed() {
        let at = |used| {
            Some(Health {
                used_percent: Some(used),
                ..Health::default()
            })
        };
        let mut disk = Disk {
            name: "nvme0n1".into(),
            health_before: at(3),
            health_after: at(3),
            ..Disk::default()
        };
        let told = |disk: &Disk| health(std::slice::from_ref(disk));
        assert_eq!(told(&disk), some("nvme0n1: 3 % of its life used"));
        disk.health_after = at(4);
        let both = "nvme0n1: 3 % of its life used before, 4 % of its life used after";
        assert_eq!(told(&disk), some(both));
    }

    #[test]
    fn tenths_are_told_as_the_range_that_they_stand_for() {
        let health = |a, b, eol| Health {
            used_percent: None,
            life_time_a: Some(a),
            life_time_b: Some(b),
            pre_eol: Some(eol),
        };
        let worn = "0 to 10 % of memory A used, more than all of memory B used, \
                    80 % of the reserved blocks used";
        assert_eq!(wear(&health(1, 11, 2)), worn);
        assert_eq!(wear(&health(0, 0, 0)), "wear not defined");
    }

    #[test]
    fn a_phone_is_named_by_what_is_known() {
        let mut build = Android {
            release: some("14"),
            ..Android::default()
        };
        assert_eq!(android(&build), "Android 14");
        build.brand = some("acme");
        build.model = some("Phone 8");
        build.fingerprint = some("a/b/c:14");
        assert_eq!(android(&build), "Android 14 on acme Phone 8 (a/b/c:14)");
    }
}

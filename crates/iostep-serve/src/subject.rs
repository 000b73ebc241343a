//! What a result is of: the test that was made, and the device that it was made on.

use std::sync::LazyLock;

use iostep_analyze::bench::work as work_of;
use iostep_model::bench::{Document, FileJob, Job, SqliteJob, Target};
use iostep_model::printable::is_printable;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Settings that say where, how long and how often, and not what.
const NO_PART: [&str; 9] = [
    "cpus",
    "directory",
    "files",
    "keep",
    "limits",
    "reuse",
    "seed",
    "target",
    "verify",
];

/// The name of a test: the generator, and each setting that is not its default, by name, as
/// `sqlite,journal=wal,threads=4`. Two jobs of one name ask for the same work, for whatever time.
pub fn test(job: &Job) -> String {
    // Every upload is asked for its name.
    static DEFAULTS: LazyLock<[Value; 2]> =
        LazyLock::new(|| defaults().map(|job| serde_json::to_value(job).unwrap_or_default()));
    let [file, sqlite] = &*DEFAULTS;
    let default = match job {
        Job::File(_) => file,
        Job::Sqlite(_) => sqlite,
    };
    let own = serde_json::to_value(job).unwrap_or_default();
    let mut name = own["kind"].as_str().unwrap_or_default().to_owned();
    let mut settings = Vec::new();
    differences("", &own, default, &mut settings);
    settings.sort();
    for setting in settings {
        name.push(',');
        name.push_str(&setting);
    }
    name
}

fn defaults() -> [Job; 2] {
    let mut sqlite = SqliteJob::new(".");
    sqlite.settle();
    [
        Job::File(FileJob::new(Target::Directory(".".into()))),
        Job::Sqlite(sqlite),
    ]
}

/// What an operation of a test is called, by the test's name.
pub fn work(name: &str) -> &'static str {
    let [file, sqlite] = defaults();
    let is_sqlite = name.split(',').next() == Some(&test(&sqlite));
    work_of(if is_sqlite { &sqlite } else { &file })
}

/// `key=value` for whatever differs, with the names of the objects around it before it.
fn differences(place: &str, own: &Value, default: &Value, found: &mut Vec<String>) {
    let Value::Object(fields) = own else {
        let value = match own {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        found.push(format!("{place}={value}"));
        return;
    };
    for (key, value) in fields {
        let is_part = !place.is_empty() || !NO_PART.contains(&key.as_str());
        if is_part && default.get(key) != Some(value) {
            let place = match place {
                "" => key.clone(),
                place => format!("{place}.{key}"),
            };
            differences(&place, value, &default[key], found);
        }
    }
}

/// A device with its software, as far as it is known; empty texts and 0 are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Who made the phone; empty for other machines.
    pub vendor: String,
    /// What people call it.
    pub model: String,
    /// The storage in it: its vendor and model.
    pub part: String,
    /// The storage's firmware.
    pub firmware: String,
    /// The storage's capacity.
    pub capacity_bytes: u64,
    /// Android's release.
    pub android: String,
    /// The kernel's release.
    pub kernel: String,
}

/// What is ranked: a phone and its storage, whatever software is on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Product {
    pub vendor: String,
    pub model: String,
    pub part: String,
    pub capacity_bytes: u64,
}

impl Product {
    /// What people call it: the phone, or the storage where there is none.
    pub fn name(&self) -> String {
        let phone = [&self.vendor[..], &self.model].join(" ");
        let names = [phone.trim(), &self.part];
        let name = names.into_iter().find(|name| !name.is_empty());
        name.unwrap_or("unknown").to_owned()
    }

    /// Its four parts between `~`, as addresses have them. Where a part has what parts it, or what
    /// is not printable, there are `%` and two digits for each byte of that.
    pub fn key(&self) -> String {
        let capacity = self.capacity_bytes.to_string();
        let parts = [&self.vendor, &self.model, &self.part, &capacity];
        let mut key = String::new();
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                key.push('~');
            }
            for letter in part.chars() {
                match matches!(letter, '~' | '%') || !is_printable(letter) {
                    false => key.push(letter),
                    true => letter
                        .encode_utf8(&mut [0; 4])
                        .bytes()
                        .for_each(|byte| key += &format!("%{byte:02X}")),
                }
            }
        }
        key
    }

    /// `None` for what is no [`Product::key`].
    pub fn of_key(key: &str) -> Option<Product> {
        let decoded = |part| Some(percent_decode_str(part).decode_utf8().ok()?.into_owned());
        let parts: Option<Vec<String>> = key.split('~').map(decoded).collect();
        let [vendor, model, part, capacity] = parts?.try_into().ok()?;
        let product = Product {
            vendor,
            model,
            part,
            capacity_bytes: capacity.parse().ok()?,
        };
        (product.key() == key).then_some(product)
    }
}

impl Device {
    /// What it is without its software.
    pub fn product(&self) -> Product {
        Product {
            vendor: self.vendor.clone(),
            model: self.model.clone(),
            part: self.part.clone(),
            capacity_bytes: self.capacity_bytes,
        }
    }

    /// The device that a result was measured on. Where several disks are below the filesystem, it is
    /// that of the first; where they are of different kinds, none is named.
    pub fn of(document: &Document) -> Device {
        let environment = &document.environment;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let first = environment.disks.first();
        let disk = first.filter(|first| environment.disks.iter().all(|disk| disk.is_like(first)));
        let disk = disk.cloned().unwrap_or_default();
        let android = environment.host.android.clone().unwrap_or_default();
        let part = [text(&disk.vendor), text(&disk.model)].join(" ");
        Device {
            vendor: text(&android.manufacturer),
            model: text(&android.model),
            part: part.trim().to_owned(),
            firmware: text(&disk.firmware),
            // SQLite's integers are signed.
            capacity_bytes: disk.capacity_bytes.unwrap_or(0).min(i64::MAX as u64),
            android: text(&android.release),
            kernel: environment.host.kernel.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::bench::{Access, Pace, Sync};
    use iostep_model::disk::Disk;
    use iostep_model::host::Android;
    use iostep_model::pragma::Journal;

    #[test]
    fn a_test_is_named_by_what_is_not_the_default() {
        let mut job = FileJob::new(Target::Directory("/mnt".into()));
        assert_eq!(test(&Job::File(job.clone())), "file");
        job.access = Access::RandomWrite;
        job.sync = Sync::Fdatasync;
        job.measurement.pace = Pace {
            think_ns: 5,
            ..Pace::default()
        };
        job.measurement.limits.time_ns = Some(7);
        job.measurement.seed = 3;
        let name = "file,access=random-write,pace.think_ns=5,sync=fdatasync";
        assert_eq!(test(&Job::File(job)), name);
        let mut job = SqliteJob::new("/data");
        job.settle();
        job.journal = Journal::Waldio;
        job.threads = 4;
        let name = "sqlite,journal=waldio,threads=4";
        assert_eq!(test(&Job::Sqlite(job)), name);
    }

    #[test]
    fn a_product_is_found_by_its_key_whatever_its_name_is() {
        let product = Product {
            vendor: "Ma~ker".into(),
            model: "50 % \u{202e}phone/\n".into(),
            part: String::new(),
            capacity_bytes: 128 << 30,
        };
        let key = product.key();
        assert!(key.chars().all(is_printable), "{key}");
        assert_eq!(Product::of_key(&key), Some(product));
        for wrong in [
            "",
            "a~b~c",
            "a~b~c~d",
            "a~b~c~1~2",
            "a~b~%4~1",
            "a~b~%41~1",
            "a~b~c~01",
        ] {
            assert_eq!(Product::of_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_operation_is_called_what_its_generator_calls_it() {
        assert_eq!(work("file,sync=fdatasync"), "operation");
        assert_eq!(work("sqlite,journal=wal"), "transaction");
    }

    #[test]
    fn a_device_is_named_by_the_phone_and_its_storage() {
        let mut document = crate::fixture::file(1);
        let device = Device::of(&document);
        assert_eq!((&device.part[..], &device.vendor[..]), ("ACME Flash 1", ""));
        assert_eq!(device.capacity_bytes, 1 << 40);
        document.environment.host.android = Some(Android {
            manufacturer: Some("Maker".into()),
            model: Some("Phone".into()),
            release: Some("14".into()),
            ..Android::default()
        });
        document.environment.disks.push(Disk {
            model: Some("Other".into()),
            ..Disk::default()
        });
        let device = Device::of(&document);
        assert_eq!((&device.part[..], &device.model[..]), ("", "Phone"));
        assert_eq!(device.android, "14");
    }
}

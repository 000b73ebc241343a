//! Where a row comes from: the device, its hardware, and what ran on it. Every table has these.

use bytes::Bytes;
use iostep_model::columnar::Written;
use iostep_model::disk::Disk;
use iostep_model::host::Host;

use crate::column::{Cell, Column, Group, int};
use crate::hidden::Key;
use crate::options::Options;

/// What is known of a place before its disk is.
pub(crate) struct Surroundings<'a> {
    pub host: &'a Host,
    pub filesystem: Option<&'a str>,
    pub options: &'a Options,
    pub key: &'a Key,
}

impl Origin {
    pub(crate) fn of(place: &Surroundings<'_>, disk: Option<&Disk>) -> Origin {
        let Surroundings { host, options, .. } = place;
        let android = host.android.as_ref();
        let said = |own: &Option<String>, android: Option<&String>| {
            text(own.as_ref().or(android).map(String::as_str))
        };
        let part = disk.map(|disk| {
            let names = [disk.vendor.as_deref(), disk.model.as_deref()];
            let names: Vec<&str> = names.into_iter().flatten().map(str::trim).collect();
            names.join(" ")
        });
        Origin {
            device_id: match &options.device {
                Some(device) => place.key.hide("device", device),
                None => Bytes::new(),
            },
            manufacturer: text(android.and_then(|a| a.manufacturer.as_deref())),
            model: said(&options.model, android.and_then(|a| a.model.as_ref())),
            bus: text(disk.and_then(|disk| disk.bus).map(|bus| bus.name())),
            part: text(part.as_deref()),
            firmware: text(disk.and_then(|disk| disk.firmware.as_deref())),
            capacity_bytes: disk.and_then(|disk| disk.capacity_bytes).map(int),
            release: said(&options.release, android.and_then(|a| a.release.as_ref())),
            kernel: text(Some(&host.kernel)),
            machine: text(Some(&host.machine)),
            filesystem: text(place.filesystem),
            fill_percent: options.fill_percent.map(i64::from),
        }
    }
}

/// A text of its own; empty for what is not known.
pub(crate) fn text(text: Option<&str>) -> Bytes {
    Bytes::copy_from_slice(text.unwrap_or_default().as_bytes())
}

macro_rules! origin {
    ($($column:ident: $cell:ty,)*) => {
        /// The columns that every table has.
        pub(crate) struct Origin {
            $(pub(crate) $column: $cell,)*
        }

        pub(crate) fn columns() -> Vec<Column> {
            vec![$(Column { name: stringify!($column), kind: <$cell as Cell>::KIND },)*]
        }

        /// Writes the columns of rows, whose origins `origins` gives each time anew.
        pub(crate) fn write<'a, I: Iterator<Item = &'a Origin>>(
            group: &mut Group<'_>,
            origins: impl Fn() -> I,
        ) -> Written {
            $(<$cell as Cell>::write(group, origins().map(|origin| origin.$column.clone()))?;)*
            Ok(())
        }
    };
}

origin! {
    device_id: Bytes,
    manufacturer: Bytes,
    model: Bytes,
    bus: Bytes,
    part: Bytes,
    firmware: Bytes,
    capacity_bytes: Option<i64>,
    release: Bytes,
    kernel: Bytes,
    machine: Bytes,
    filesystem: Bytes,
    fill_percent: Option<i64>,
}

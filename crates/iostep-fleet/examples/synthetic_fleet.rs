//! Makes a lake of synthetic devices, the same at every call, and tells how fast it was: what
//! `make bench-fleet` and the questions' comparison run on. Each trace is written beside the lake and
//! added from there; the time is that of adding.
//!
//! ```text
//! cargo run --release -p iostep-fleet --example synthetic_fleet -- LAKE SEGMENTS
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use iostep_fleet::{Lake, Options, Table, identity};
use iostep_model::class::FileType;
use iostep_model::disk::{Bus, Disk, Health};
use iostep_model::fixture;
use iostep_model::host::Android;
use iostep_model::operation::Operation;
use iostep_model::store;
use iostep_model::table::Trace;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

const DAY_NS: u64 = 86_400_000_000_000;
/// 2026-09-01 in UTC.
const FIRST_DAY_NS: u64 = 20_697 * DAY_NS;
/// Requests of a trace, which has up to twice as many.
const REQUESTS: usize = 25_000;
/// Days between two traces of a device.
const STEP_DAYS: u64 = 7;
const MODELS: [(&str, &str, &str, u64); 4] = [
    ("SM-G920F", "KLUBG4G1BD-B0B1", "0100", 1),
    ("Pixel 8", "H9HCNNNBKUMLXR", "0311", 2),
    ("XQ-DE54", "THGJFJT1E45BATP", "0002", 3),
    ("moto g54", "SDINFDO4-128G", "1269", 5),
];
const APPS: [&str; 6] = [
    "com.example.mail",
    "com.example.chat",
    "org.example.maps",
    "com.example.photos",
    "net.example.notes",
    "com.example.shop",
];

/// Numbers of splitmix64 (Steele, Lea and Flood, 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(lake), Some(segments)) = (arguments.next(), arguments.next()) else {
        return Err("usage: synthetic_fleet LAKE SEGMENTS".into());
    };
    let segments: u64 = segments.parse()?;
    let lake = Lake::create(Path::new(&lake))?;
    let root = lake.root().canonicalize()?;
    let place = TempDir::new_in(root.parent().unwrap_or(&root))?;
    let (mut added, mut traces) = (0, 0_u64);
    let (mut adding, mut processor) = (Duration::ZERO, Duration::ZERO);
    while added < segments {
        let (trace, options) = device(traces / 6, traces % 6);
        store::write(place.path(), &trace)?;
        let (start, start_of_processor) = (Instant::now(), processor_time());
        // The trace is found by its content, as by `iostep fleet add`, and added by its number.
        identity(place.path())?;
        let done = lake.add_trace(
            place.path(),
            &format!("{traces:064x}"),
            &options,
            &|| Ok(()),
        )?;
        adding += start.elapsed();
        processor += processor_time() - start_of_processor;
        added += done
            .segments
            .max(u64::from(!done.new) * trace.segments.len() as u64);
        traces += 1;
    }
    let seconds = adding.as_secs_f64();
    eprintln!(
        "add: {traces} traces, {added} segments, {seconds:.1} s, {:.0} segments/s, {:.1} CPU s",
        added as f64 / seconds,
        processor.as_secs_f64()
    );
    for table in Table::ALL {
        eprintln!("{}: {:?}", table.name(), lake.totals(table)?);
    }
    Ok(())
}

/// What this process has had of the processors.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The trace of a device in a week, and what is known of the device.
fn device(device: u64, week: u64) -> (Trace, Options) {
    let mut numbers = Numbers(device * 1000 + week);
    let requests = REQUESTS + numbers.next(REQUESTS as u64) as usize;
    let mut trace = fixture::sqlite_on_ext4(requests);
    let (model, part, firmware, speed) = MODELS[(device % MODELS.len() as u64) as usize];
    let manifest = &mut trace.manifest;
    manifest.clocks.wall_ns = FIRST_DAY_NS + week * STEP_DAYS * DAY_NS + numbers.next(DAY_NS / 2);
    manifest.end_mono_ns = Some(manifest.clocks.mono_ns + DAY_NS);
    manifest.host.android = Some(phone(model, week));
    manifest.disks = vec![disk(part, firmware, (device % 10) as u8)];
    if let Some(filesystem) = &mut manifest.filesystem {
        filesystem.kind = match device.is_multiple_of(3) {
            true => "f2fs".into(),
            false => "ext4".into(),
        };
    }
    // Every fifth device becomes slower.
    let slower = if device.is_multiple_of(5) {
        1 + week
    } else {
        1
    };
    let fill = 40 + (device * 13 % 60) as u8;
    let full = if fill > 90 { 2 } else { 1 };
    for request in &mut trace.requests {
        if let Some(complete_ns) = &mut request.complete_ns {
            let own_ns = complete_ns.saturating_sub(request.issue_ns);
            let factor = match request.operation {
                Operation::Flush => speed * slower,
                _ => speed * full,
            };
            *complete_ns = request.issue_ns + own_ns * factor + numbers.next(own_ns.max(1));
        }
    }
    for sync in &mut trace.syncs {
        if let Some(exit_ns) = &mut sync.exit_ns {
            let own_ns = exit_ns.saturating_sub(sync.enter_ns);
            *exit_ns = sync.enter_ns + own_ns * speed * slower + numbers.next(own_ns.max(1));
        }
    }
    if device.is_multiple_of(2) {
        let journals = trace.files.iter_mut();
        let journals = journals.filter(|file| file.file_type == FileType::SqliteJournal);
        journals.for_each(|file| file.deleted_ns = trace.manifest.end_mono_ns);
    }
    for process in trace.processes.iter_mut().filter(|process| !process.kernel) {
        process.comm = APPS[numbers.next(APPS.len() as u64) as usize].into();
    }
    let options = Options {
        device: Some(format!("device {device}")),
        fill_percent: Some(fill),
        ..Options::default()
    };
    (trace, options)
}

/// A phone, and the release that its week brought.
fn phone(model: &str, week: u64) -> Android {
    let release = if week < 3 { "15" } else { "16" };
    Android {
        manufacturer: Some("Example".into()),
        brand: None,
        model: Some(model.into()),
        device: None,
        release: Some(release.into()),
        fingerprint: None,
    }
}

/// Its storage, used up to a tenth more with each number.
fn disk(part: &str, firmware: &str, used: u8) -> Disk {
    Disk {
        name: "sda".into(),
        bus: Some(Bus::Ufs),
        vendor: Some("Example".into()),
        model: Some(part.into()),
        firmware: Some(firmware.into()),
        capacity_bytes: Some(128 << 30),
        write_cache: None,
        fua: Some(true),
        rotational: Some(false),
        health_before: None,
        health_after: Some(Health {
            used_percent: None,
            life_time_a: Some(1 + used),
            life_time_b: Some(1),
            pre_eol: Some(1),
        }),
    }
}

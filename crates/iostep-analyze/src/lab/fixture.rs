//! Small results, made by hand.

use iostep_model::bench::Cpu;
use iostep_model::class::Class;
use iostep_model::fixture;
use iostep_model::lab::{
    Cell, CellResult, ClassCount, Environment, Filesystem, Lab, Latency, Medium, PatternRequest,
    Run, State, Workload, WorkloadKind,
};
use iostep_model::manifest::{Counters, Totals};
use iostep_model::operation::Operation;

/// A run of a second whose operations make so many writes of so many bytes each.
pub fn run(operations: u64, writes_each: u64, bytes_a_write: u64) -> Run {
    let ios = operations * writes_each;
    Run {
        elapsed_ns: 1_000_000_000,
        operations,
        latency: Some(Latency {
            count: operations,
            p50_ns: 1_000_000_000 / operations.max(1),
            p99_ns: 1_000_000_000,
            max_ns: 1_000_000_000,
        }),
        sync_latency: Some(Latency {
            count: operations,
            p50_ns: 50_000,
            p99_ns: 80_000,
            max_ns: 90_000,
        }),
        device: Some(Counters {
            write: Totals {
                ios,
                bytes: ios * bytes_a_write,
            },
            flush: Totals {
                ios: operations,
                bytes: 0,
            },
            ..Counters::default()
        }),
        cpu: Some(Cpu {
            voluntary_switches: 2 * operations,
            ..Cpu::default()
        }),
        write_requests: Some(ios),
        ..Run::default()
    }
}

/// A complete cell of a loop device with one run. `filesystem`, `switches`, `workload` and
/// `cpu-load` are what they say, everything else is a flag of the workload.
pub fn cell(axes: &[(&str, &str)]) -> CellResult {
    let value = |name| {
        axes.iter()
            .find(|(axis, _)| *axis == name)
            .map(|(_, value)| *value)
    };
    let own = [
        "filesystem",
        "switches",
        "workload",
        "cpu-load",
        "traced",
        "turns",
    ];
    let flags = axes.iter().filter(|(axis, _)| !own.contains(axis));
    let filesystem: Filesystem = value("filesystem")
        .unwrap_or("ext4")
        .parse()
        .expect("a name");
    let switches = value("switches").unwrap_or("");
    let kind: WorkloadKind = value("workload")
        .unwrap_or("sqlite")
        .parse()
        .expect("a name");
    let mut named = vec![
        ("filesystem".to_owned(), filesystem.name().to_owned()),
        ("switches".to_owned(), switches.to_owned()),
    ];
    named.extend(
        flags
            .clone()
            .map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())),
    );
    let arguments: Vec<String> = flags
        .map(|(axis, value)| format!("--{axis}={value}"))
        .collect();
    let cell = Cell {
        key: format!("{axes:?}"),
        axes: named,
        switches: switches.parse().expect("switches"),
        workload: Workload { kind, arguments },
        trace: value("traced") == Some("yes"),
        cpu_load: value("cpu-load").map_or(0, |load| load.parse().expect("a number")),
        turns: value("turns").unwrap_or_default().to_owned(),
        ..fixture::cell(filesystem, kind, &[])
    };
    CellResult {
        cell,
        state: State::Complete,
        environment: Some(environment(Medium::Loop)),
        runs: vec![run(100, 3, 4096)],
    }
}

/// Of a loop device, or of an emulated guest.
pub fn environment(place: Medium) -> Environment {
    let in_guest = place == Medium::Guest;
    Environment {
        place,
        emulated: in_guest,
        host: iostep_model::host::Host {
            kernel: if in_guest { "6.1.0" } else { "6.18.0" }.into(),
            machine: "x86_64".into(),
            processor: "a processor".into(),
            cpus: 2,
            android: None,
        },
        device: None,
        disks: Vec::new(),
        device_model: String::new(),
        mounted: "ext4 rw".into(),
        commands: vec!["mkfs.ext4 /dev/loop0".into()],
        tools: Vec::new(),
        iostep_version: "0.1.0".into(),
        iostep_commit: None,
        sqlite_version: Some("3.50.0".into()),
        start_wall_ns: 0,
    }
}

/// The same cell with so many operations a second.
pub fn at_rate(mut result: CellResult, per_second: u64) -> CellResult {
    result.runs = vec![run(per_second, 3, 4096)];
    result
}

pub fn lab(name: &str, results: &[CellResult]) -> Lab {
    Lab {
        name: name.into(),
        title: "a lab".into(),
        cells: results.iter().map(|result| result.cell.clone()).collect(),
        analysis: iostep_lab::builtin::analysis(name),
    }
}

/// So many bytes written of a class, in one request.
pub fn written(class: Class, bytes: u64) -> ClassCount {
    ClassCount {
        class: Some(class),
        operation: Operation::Write,
        bytes,
        requests: 1,
    }
}

/// A write of a class.
pub fn request(issue_ns: u64, sector: u64, sectors: u64, class: Class) -> PatternRequest {
    PatternRequest {
        issue_ns,
        step: 0,
        sector,
        sectors,
        operation: Operation::Write,
        fua: class == Class::LogCommit,
        class: Some(class),
        file: (class == Class::FileData).then(|| "file-0".to_owned()),
    }
}

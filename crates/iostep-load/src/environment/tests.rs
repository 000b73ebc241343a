use super::fake::Root;
use super::*;

use iostep_model::bench::{FileJob, Sync, Target};
use proptest::prelude::*;

/// A job that nothing speaks against.
pub fn file_job() -> FileJob {
    FileJob {
        file_bytes: 1 << 20,
        sync: Sync::Fsync,
        ..FileJob::new(Target::Directory("/mnt".into()))
    }
}

#[test]
fn here_is_what_the_kernel_says() {
    let here = here(Path::new("/"));
    let said = |path: &str| std::fs::read_to_string(path).expect("the kernel says it");
    assert_eq!(here.host.kernel, said("/proc/sys/kernel/osrelease").trim());
    let status = said("/proc/self/status");
    let mask = text::value(&status, "Cpus_allowed", ':').expect("it is there");
    let ones: u32 = mask
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(u32::count_ones)
        .sum();
    assert_eq!(here.host.cpus, ones);
    assert_eq!(here.memory_bytes % 1024, 0);
    let pages = rustix::system::sysinfo();
    assert_eq!(
        here.memory_bytes,
        pages.totalram as u64 * u64::from(pages.mem_unit)
    );
}

#[test]
fn an_app_is_told_from_a_shell_and_from_a_container() {
    let is = |seccomp: &str, program: &str| {
        let status = format!("Name:\tx\nSeccomp:\t{seccomp}\nSeccomp_filters:\t1\n");
        is_android_app(Root::with(&[("proc/self/status", &status), (program, "")]).path())
    };
    assert!(is("2", "system/bin/app_process64"));
    assert!(is("2", "system/bin/app_process32"));
    assert!(!is("0", "system/bin/app_process64"));
    assert!(!is("2", "usr/bin/sh"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let all = [
        ("proc/stat", "cpu 1"),
        ("proc/vmstat", "a 1"),
        ("sys/block/sda/stat", ""),
    ];
    assert_eq!(machine::unreadable(Root::with(&all).path()), None);
    let paths = |files| match machine::unreadable(Root::with(files).path()) {
        Some(Warning::Unreadable { paths }) => paths,
        other => panic!("{other:?}"),
    };
    assert_eq!(paths(&all[1..]), [Path::new("/proc/stat")]);
    assert_eq!(paths(&all[..2]), [Path::new("/sys/block")]);
    let empty = [("proc/stat", ""), all[1], all[2]];
    assert_eq!(paths(&empty), [Path::new("/proc/stat")]);
}

#[test]
fn an_empty_machine_is_unknown_and_spoils_nothing_else() {
    let root = Root::new();
    let here = here(root.path());
    assert_eq!(
        (here.host.processor.as_str(), here.memory_bytes),
        ("unknown", 0)
    );
    let warnings = Before::take(root.path()).warnings(&Job::File(file_job()), &here, &[]);
    assert_eq!(warnings, Vec::from_iter(machine::unreadable(root.path())));
}

#[test]
fn a_processor_has_a_name_on_every_architecture() {
    let name = |cpuinfo: &str| machine::processor(Root::with(&[("proc/cpuinfo", cpuinfo)]).path());
    let x86 = "processor\t: 0\nvendor_id\t: V\nmodel name\t: A CPU @ 2.00GHz\ncpu MHz\t: 1996\n";
    assert_eq!(name(x86), "A CPU @ 2.00GHz");
    assert_eq!(
        name("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"),
        "POWER9, altivec supported"
    );
    assert_eq!(
        name("Processor\t: ARMv7\nHardware\t: A Phone's Chip\n"),
        "A Phone's Chip"
    );
    let core = |part: &str| format!("processor : 0\nCPU implementer : 0x41\nCPU part : {part}\n\n");
    let arm = [core("0xd05"), core("0xd05"), core("0xd0d")].concat();
    assert_eq!(name(&arm), "2 x ARM 0x41/0xd05, 1 x ARM 0x41/0xd0d");
    let board = Root::with(&[
        ("proc/cpuinfo", &core("0xd08")),
        ("sys/firmware/devicetree/base/model", "A Board Rev 1.4\0"),
    ]);
    assert_eq!(
        machine::processor(board.path()),
        "A Board Rev 1.4 (1 x ARM 0x41/0xd08)"
    );
}

#[test]
fn memory_and_clock_are_read() {
    let root = Root::with(&[
        (
            "proc/meminfo",
            "MemTotal:        8131404 kB\nMemFree: 1 kB\n",
        ),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        ),
    ]);
    assert_eq!(machine::memory_bytes(root.path()), 8_131_404 * 1024);
    assert_eq!(machine::clock_source(root.path()), "tsc");
}

#[test]
fn only_governors_that_let_the_frequency_vary_are_told() {
    let root = Root::new();
    let policy = |number: u32, governor: &str, cpus: &str, least: &str| {
        let file = |name: &str| format!("sys/devices/system/cpu/cpufreq/policy{number}/{name}");
        root.put(&file("scaling_governor"), governor);
        root.put(&file("affected_cpus"), cpus);
        root.put(&file("scaling_min_freq"), least);
        root.put(&file("scaling_max_freq"), "3000000\n");
    };
    policy(0, "performance\n", "0 1\n", "800000\n");
    policy(2, "schedutil\n", "2 3 4\n", "800000\n");
    policy(5, "schedutil\n", "5\n", "800000\n");
    policy(6, "ondemand\n", "6\n", "3000000\n");
    let expected = Warning::CpuGovernor {
        governor: "schedutil".into(),
        cpus: 4,
    };
    assert_eq!(machine::warnings(root.path()), [expected]);
}

#[test]
fn a_battery_counts_if_it_is_the_machines_and_alone() {
    let supply = |files: &[(&str, &str)]| {
        let root = Root::new();
        for (path, text) in files {
            root.put(&format!("sys/class/power_supply/{path}"), text);
        }
        machine::warnings(root.path())
    };
    let battery = [("BAT0/type", "Battery\n"), ("BAT0/status", "Discharging\n")];
    assert_eq!(supply(&battery), [Warning::OnBattery]);
    let charger = [("AC/type", "Mains\n"), ("AC/online", "1\n")];
    assert_eq!(supply(&[battery, charger].concat()), []);
    let unplugged = [("AC/type", "Mains\n"), ("AC/online", "0\n")];
    assert_eq!(supply(&[battery, unplugged].concat()), [Warning::OnBattery]);
    assert_eq!(supply(&[battery[0], ("BAT0/status", "Full\n")]), []);
    let of_mouse = [battery[0], battery[1], ("BAT0/scope", "Device\n")];
    assert_eq!(supply(&of_mouse), []);
}

proptest! {
    #[test]
    fn no_text_of_the_kernel_makes_a_reader_fail(bytes: Vec<u8>, words in "[a-z0-9:()\\- \n]*") {
        for text in [bytes.as_slice(), words.as_bytes()] {
            let root = Root::new();
            for path in [
                "proc/cpuinfo",
                "proc/meminfo",
                "proc/vmstat",
                "proc/1/stat",
                "sys/firmware/devicetree/base/model",
                "sys/class/power_supply/BAT0/type",
                "sys/class/block/loop0/loop/backing_file",
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                "sys/devices/system/cpu/cpufreq/policy0/affected_cpus",
            ] {
                root.put(path, text);
            }
            let here = here(root.path());
            prop_assert!(!here.host.processor.is_empty());
            let before = Before::take(root.path());
            before.warnings(&Job::File(file_job()), &here, &[]);
        }
    }
}

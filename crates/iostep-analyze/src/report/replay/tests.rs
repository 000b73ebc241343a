//! The report of a replay.

use iostep_model::disk::{Bus, Disk};
use iostep_model::manifest::Device;
use iostep_model::replay::{Settings, Threads, Timing};
use iostep_report::document::Detail;
use iostep_report::text::Style;

use crate::replay::{
    About, Difference, Document, Progress, Quantiles, Reason, Run, Summary, Target,
};

fn page(document: &Document) -> String {
    super::document(document).html()
}

fn document() -> Document {
    let settings = Settings {
        timing: Timing::Original,
        speed: 1.0,
        threads: Threads::Original,
    };
    let mut summary = Summary::empty(settings);
    summary.progress = [(1, 0, 5), (2, 1000, 1200)]
        .map(|(calls, recorded_ns, replayed_ns)| Progress {
            calls,
            recorded_ns,
            replayed_ns,
        })
        .to_vec();
    summary.differences.push(Difference {
        syscall: "read".to_owned(),
        recorded: "17".to_owned(),
        replayed: "-EIO".to_owned(),
        reason: Reason::Target,
        count: 1,
        first_call: 1,
    });
    let recording = About {
        path: "app.trace".to_owned(),
        recorder: "iostep".to_owned(),
        machine: String::new(),
        command: vec!["app".to_owned()],
        threads: 1,
        calls: 2,
        lost: 0,
        cut_at_line: None,
        load_ns: 0,
    };
    let target = Target {
        directory: "/mnt/a".to_owned(),
        filesystem: Some("ext4".to_owned()),
        device: None,
        disks: Vec::new(),
        runs: vec![Run {
            summary,
            block: None,
        }],
    };
    Document::new(Vec::new(), recording, vec![target])
}

#[test]
fn both_courses_are_drawn() {
    let page = page(&document());
    assert_eq!(page.matches("class=\"line series-").count(), 2);
    assert!(page.contains("recorded"));
}

#[test]
fn what_is_to_be_compared_stands_in_one_row() {
    let mut document = document();
    let quantiles = Quantiles::of(&mut [1_000, 2_000]);
    document.targets[0].runs[0].summary.lateness.waited = quantiles;
    document.targets.push(Target {
        directory: "/mnt/b".to_owned(),
        ..document.targets[0].clone()
    });
    let page = page(&document);
    let start = page.find("<div class=\"plots\">").expect("plots");
    let row = &page[start..][..page[start..].find("</div>").expect("their end")];
    let titles: Vec<&str> = row.split("<h3>").skip(1).collect();
    let titles: Vec<&str> = titles
        .iter()
        .map(|text| &text[..text.find("</h3>").expect("its end")])
        .collect();
    assert_eq!(titles.len(), 3, "{titles:?}");
    assert_eq!(titles[0], "calls over time");
    assert_eq!(titles[2], "lateness, /mnt/b (ext4)");
    assert_eq!(page.matches("<div class=\"plots\">").count(), 1);
}

#[test]
fn a_result_is_read_as_it_was_written_and_other_versions_are_refused() {
    let path = std::path::Path::new("r.json");
    let written = document();
    let text = serde_json::to_string(&written).expect("JSON");
    assert_eq!(Document::from_json(path, &text).expect("the same"), written);
    for (version, expected) in [
        ("0", "schema version 0"),
        ("2", "schema 2; expected at most 1"),
    ] {
        let other = text.replacen(
            "\"schema_version\":1",
            &format!("\"schema_version\":{version}"),
            1,
        );
        let error = Document::from_json(path, &other).expect_err("another version");
        assert!(error.to_string().contains(expected), "{error}");
    }
    for damaged in ["", "{}", "[1]", "{\"schema_version\":1}"] {
        let error = Document::from_json(path, damaged).expect_err("no result");
        assert!(
            error.to_string().contains("no result of a replay"),
            "{error}"
        );
    }
}

#[test]
fn the_device_and_the_disk_below_a_target_are_named() {
    let mut document = document();
    let text = |document: &Document| {
        let report = super::document(document);
        report.text(Detail::Brief, Style::default())
    };
    assert!(!text(&document).contains("device  "));
    let target = &mut document.targets[0];
    target.device = Some(Device {
        name: "loop0".to_owned(),
        sectors: 2_097_152,
        rotational: Some(true),
        ..Device::default()
    });
    target.disks = vec![Disk {
        name: "vda".to_owned(),
        bus: Some(Bus::Virtio),
        ..Disk::default()
    }];
    let text = text(&document);
    let device = "device      loop0 of 1 GiB, rotating, write cache unknown, FUA unknown, ";
    assert!(text.contains(device), "{text}");
    assert!(text.contains("disk        vda (virtio)\n"), "{text}");
}

use iostep_model::fixture;

use super::*;
use crate::report::page::well_formed;

fn page_of(trace: &Trace) -> String {
    let page = page(trace, &Summary::of(trace));
    well_formed(&page);
    page
}

#[test]
fn a_summary_reads_well() {
    let summary = Summary::of(&fixture::sqlite_on_ext4(120));
    insta::assert_snapshot!(render(&summary, Detail::Full, Style::default()));
}

#[test]
fn what_matters_fits_a_screen() {
    let mut trace = fixture::sqlite_on_ext4(400);
    let file = trace.files[0].clone();
    for number in 0..50 {
        let mut file = file.clone();
        file.path = Some(format!("/app/{}/{number}.db", "deep/".repeat(30)));
        file.key.inode += 1000 + number;
        trace.files.push(file);
    }
    let files = trace.files.len() as u32;
    for (number, segment) in (0..).zip(&mut trace.segments) {
        segment.file = segment.file.map(|file| file + number * 7 % (files - file));
    }
    let command = trace.manifest.command.as_mut().expect("a command");
    command.argv.push("an-argument ".repeat(20));
    let style = Style {
        columns: 80,
        ..Style::default()
    };
    let text = render(&Summary::of(&trace), Detail::Brief, style);
    assert!((24..=39).contains(&text.lines().count()), "{text}");
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
    let begin: Vec<&str> = text.lines().take(9).map(str::trim_start).collect();
    assert!(begin[2].starts_with("check passed: "), "{text}");
    assert!(begin[5].starts_with("written "), "{text}");
    assert!(begin[8].starts_with("journaling of journal "), "{text}");
}

#[test]
fn an_empty_summary_is_its_head() {
    let summary = Summary::of(&fixture::empty());
    insta::assert_snapshot!(render(&summary, Detail::Brief, Style::default()));
}

#[test]
fn a_check_without_the_devices_counters_says_so() {
    let mut trace = fixture::sqlite_on_ext4(10);
    trace.manifest.check.device = None;
    let text = render(&Summary::of(&trace), Detail::Brief, Style::default());
    assert!(text.contains("lost; the device has no counters"), "{text}");
}

#[test]
fn a_failed_check_is_the_first_line() {
    let mut trace = fixture::sqlite_on_ext4(10);
    trace.manifest.check.lost_events = 312;
    trace.manifest.check.differences =
        vec!["device counted 40960 written bytes more than were completed".into()];
    let text = render(&Summary::of(&trace), Detail::Brief, Style::default());
    let expected = "CHECK FAILED: lost 312 events; \
                    device counted 40960 written bytes more than were completed";
    assert_eq!(text.lines().next(), Some(expected));
}

#[test]
fn what_is_pinned_is_described_in_the_picture() {
    let page = page_of(&fixture::sqlite_on_ext4(10));
    let place = |text: &str| page.find(text).expect(text);
    assert!(place("data-part=\"canvas\"") < place("data-part=\"details\""));
    assert!(place("data-part=\"details\"") < place("data-part=\"overview\""));
}

#[test]
fn a_failed_check_is_the_first_of_a_page() {
    let mut trace = fixture::sqlite_on_ext4(20);
    assert!(!page_of(&trace).contains("role=\"alert\""));
    trace.manifest.check.lost_events = 312;
    let page = page_of(&trace);
    let main = page.split_once("<main>").expect("a main part").1;
    assert!(
        main.trim_start()
            .starts_with("<section class=\"alarm\" role=\"alert\"")
    );
    assert!(main.contains("CHECK FAILED: lost 312 events"));
}

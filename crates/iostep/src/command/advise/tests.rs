use super::*;
use crate::command::parsed;
use iostep_load::transactions::facts;

fn args(arguments: &[&str]) -> Args {
    parsed(arguments).expect("valid flags")
}

fn subject() -> Subject {
    Subject {
        directory: "/mnt".into(),
        database: None,
        filesystem: "ext4".into(),
        mount_point: "/mnt".into(),
        mount_options: "rw".into(),
        is_loop: false,
    }
}

fn keys(arguments: &[&str]) -> anyhow::Result<Vec<String>> {
    let args = args(arguments);
    let place = place(&args, &subject(), None)?;
    let planned = plan(&args, &place, &subject())?;
    Ok(planned
        .into_iter()
        .map(|(candidate, _)| candidate.key)
        .collect())
}

#[test]
fn flags_come_before_the_recording_and_that_before_the_database() {
    let habit = Habit {
        journal: Some(Journal::Truncate),
        synchronous: Some(Synchronous::Normal),
        ..Habit::default()
    };
    let of = |arguments: &[&str], habit: Option<&Habit>| {
        let (setting, _) = present(&args(arguments).present, &subject(), habit);
        (setting.journal, setting.synchronous)
    };
    let flags = ["/mnt", "--journal=wal", "--synchronous=extra"];
    assert_eq!(of(&flags, Some(&habit)), (Journal::Wal, Synchronous::Extra));
    let recorded = (Journal::Truncate, Synchronous::Normal);
    assert_eq!(of(&["/mnt"], Some(&habit)), recorded);
    assert_eq!(of(&["/mnt"], None), (Journal::Delete, Synchronous::Full));
}

#[test]
fn a_loss_is_a_bound_on_the_candidates() {
    let kept = keys(&["/mnt", "--max-loss", "nothing"]).expect("candidates");
    assert!(kept.contains(&"wal-full".to_owned()), "{kept:?}");
    for gone in [
        "wal-normal",
        "waldio-group",
        "delete-off",
        "mount-barrier=0",
    ] {
        assert!(!kept.contains(&gone.to_owned()), "{kept:?}");
    }
}

#[test]
fn candidates_are_chosen_by_their_keys() {
    let chosen = keys(&["/mnt", "--candidates", "waldio-full,wal-full"]).expect("candidates");
    assert_eq!(chosen, ["wal-full", "waldio-full"]);
    let error = keys(&["/mnt", "--candidates", "walrus"]).expect_err("no such candidate");
    let line = error.to_string();
    assert!(
        line.starts_with("walrus: no candidate here; choose of truncate-full, "),
        "{line}"
    );
}

#[test]
fn what_makes_no_sense_is_bad_usage() {
    for arguments in [
        &["/mnt", "--max-loss", "everything"][..],
        &["/mnt", "--journal", "walrus"],
        &["/mnt", "--operation", "read"],
        &["/mnt", "--record", "0"],
        &["/mnt", "--threads", "65"],
        &["/mnt", "--checkpoint", "0"],
        &["/mnt", "--rounds", "1"],
        &[],
    ] {
        assert!(parsed::<Args>(arguments).is_err(), "{arguments:?}");
    }
    let error = keys(&["/mnt", "--time", "400ms"]).expect_err("too short");
    assert!(
        error
            .downcast_ref::<Error>()
            .is_some_and(|e| matches!(e, Error::Usage { .. }))
    );
}

#[test]
fn links_to_a_database_lead_to_its_own_directory() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let database = place.path().join("app.db");
    std::fs::write(&database, b"").expect("a file");
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&database, &link).expect("a link");
    let subject = Subject::of(&link).expect("a database");
    let directory = std::fs::canonicalize(place.path()).expect("it is there");
    assert_eq!(subject.directory, directory);
    assert_eq!(subject.name(), Some(&b"app.db"[..]));
    let expected = facts::read(&directory.join("app.db"), std::time::Duration::ZERO);
    assert_eq!(subject.database, expected.ok());
    let missing = Subject::of(&elsewhere.path().join("no.db")).expect_err("nothing there");
    assert!(missing.to_string().contains("no.db: "), "{missing}");
}

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::fixture;
use crate::ranking;
use crate::upload::Upload;

const RATE: &str = "operations_per_second";

struct Fixture {
    _directory: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

fn place() -> Fixture {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data");
    let store = Store::create(&path).expect("a store");
    Fixture {
        _directory: directory,
        path,
        store,
    }
}

fn upload(share: f64) -> Upload {
    let document = fixture::scaled(fixture::file(2), share);
    let text = serde_json::to_vec(&document).expect("JSON");
    Upload::read(&text).expect("a result")
}

fn add(store: &Store, share: f64, key: u8) -> (Id, Outcome) {
    let upload = upload(share);
    let id = upload.id;
    let change = Change::add(upload, [key; 32]).expect("packed");
    (id, store.change(&change).expect("added"))
}

fn ranked(store: &Store) -> Vec<ranking::Place> {
    let test = "file,access=random-write,sync=fdatasync";
    places_of(&Readers::new(store.clone()), (test, RATE), None)
}

fn places_of(
    readers: &Readers,
    measure: (&str, &str),
    filesystem: Option<&str>,
) -> Vec<ranking::Place> {
    let conditions = Conditions {
        filesystem: filesystem.unwrap_or_default().into(),
        ..Conditions::default()
    };
    let ranked = readers.ranking(measure, &conditions, Better::Higher);
    let groups = ranked.expect("a ranking").groups;
    groups.iter().map(|it| it.place.clone()).collect()
}

/// What is counted as results come and go is what there is.
fn expect_tally(store: &Store) {
    let db = store.connect().expect("a connection");
    let all = |sql: &str| -> Vec<(i64, State, i64)> {
        let mut statement = db.prepare(sql).expect("a query");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.expect("rows")
            .collect::<rusqlite::Result<_>>()
            .expect("a row")
    };
    assert_eq!(
        all("SELECT test, state, results FROM tally WHERE results <> 0 ORDER BY 1, 2"),
        all("SELECT test, state, count(*) FROM submission GROUP BY 1, 2 ORDER BY 1, 2")
    );
}

#[test]
fn the_same_result_is_kept_once_and_read_back_as_it_was() {
    let Fixture { store, .. } = &place();
    let (id, first) = add(store, 1.0, 1);
    assert_eq!(first, Outcome::Done);
    let state = State::Valid;
    for (key, is_own) in [(1, true), (2, false)] {
        let known = Outcome::Known { is_own, state };
        assert_eq!(add(store, 1.0, key), (id, known));
    }
    let readers = Readers::new(store.clone());
    let Record::Kept(found, body) = readers.submission(&id).expect("an answer") else {
        panic!("it is kept");
    };
    assert_eq!(body, upload(1.0).body);
    assert_eq!((found.state, &found.reasons[..]), (State::Valid, &[][..]));
    assert_eq!(found.device, upload(1.0).device);
    assert_eq!(
        readers.submission(&[0; 32]).expect("an answer"),
        Record::Missing
    );
}

#[test]
fn pages_of_a_list_have_each_result_once() {
    let Fixture { store, .. } = &place();
    for number in 0..7 {
        add(store, 1.0 - f64::from(number) / 10.0, 1);
    }
    let readers = Readers::new(store.clone());
    let mut filter = Filter {
        limit: 3,
        state: Some(State::Valid),
        filesystem: Some("ext4".into()),
        device: Some("ACME Flash 1".into()),
        test: Some("file,access=random-write,sync=fdatasync".into()),
        ..Filter::default()
    };
    let mut numbers = Vec::new();
    loop {
        let page = readers.list(&filter).expect("a page");
        numbers.extend(page.results.iter().map(|it| it.number));
        filter.before = page.next_before;
        if filter.before.is_none() {
            break;
        }
    }
    assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1]);
    filter.filesystem = Some("xfs".into());
    assert_eq!(readers.list(&filter).expect("a page").results, []);
}

#[test]
fn five_installations_make_a_rank_and_what_an_operator_doubts_makes_none() {
    let Fixture { store, .. } = &place();
    let ids: Vec<Id> = (0..5)
        .map(|number| add(store, 1.0 - f64::from(number) / 10.0, number as u8).0)
        .collect();
    let places = ranked(store);
    assert_eq!(places.len(), 1);
    assert_eq!((places[0].rank, places[0].installations), (Some(1), 5));
    let decide = |state, reason: &str| {
        let change = Change::Decide {
            id: ids[0],
            state,
            reason: reason.into(),
        };
        store.change(&change).expect("decided")
    };
    assert_eq!(decide(State::Quarantined, "too fast"), Outcome::Done);
    let places = ranked(store);
    assert_eq!((places[0].rank, places[0].installations), (None, 4));
    let readers = Readers::new(store.clone());
    let Record::Kept(found, _) = readers.submission(&ids[0]).expect("an answer") else {
        panic!("it is kept");
    };
    assert_eq!(found.state, State::Quarantined);
    assert_eq!(found.reasons[0].text, "too fast");
    assert_eq!(decide(State::Valid, ""), Outcome::Done);
    assert_eq!(ranked(store)[0].rank, Some(1));
    let states = readers.states().expect("states");
    assert_eq!(states, [(State::Valid, 5)]);
}

#[test]
fn only_the_token_of_its_sender_takes_a_result_back() {
    let Fixture { store, .. } = &place();
    let (id, _) = add(store, 1.0, 1);
    let secret = store.secret().expect("a secret");
    let remove = |token| {
        let change = Change::Remove {
            id,
            key_may: KeyMay {
                secret: secret.clone(),
                token,
            },
        };
        store.change(&change).expect("an answer")
    };
    let token = secret.token(&id, &[1; 32]);
    assert_eq!(remove(secret.token(&id, &[2; 32])), Outcome::Forbidden);
    assert_eq!(remove([0; 32]), Outcome::Forbidden);
    assert_eq!(remove(token), Outcome::Done);
    assert_eq!(remove(token), Outcome::Missing);
    let readers = Readers::new(store.clone());
    assert_eq!(readers.submission(&id).expect("an answer"), Record::Gone);
    let left = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let db = store.connect().expect("a connection");
        db.query_row(&sql, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!(["submission", "metric", "installation"].map(left), [0; 3]);
    assert_eq!(add(store, 1.0, 3), (id, Outcome::Done));
    assert_eq!(left("gone"), 0);
}

#[test]
fn whoever_takes_a_result_back_does_not_get_rid_of_an_operators_word() {
    let Fixture { store, .. } = &place();
    let (id, _) = add(store, 1.0, 1);
    let text = "made up";
    let decide = Change::Decide {
        id,
        state: State::Delisted,
        reason: text.into(),
    };
    store.change(&decide).expect("decided");
    let secret = store.secret().expect("a secret");
    let token = secret.token(&id, &[1; 32]);
    let remove = Change::Remove {
        id,
        key_may: KeyMay { secret, token },
    };
    assert_eq!(store.change(&remove).expect("removed"), Outcome::Done);
    // Whoever it is that brings it again.
    let (_, outcome) = add(store, 1.0, 2);
    let Outcome::Decided { state, reasons } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((state, &reasons[0].text[..]), (State::Delisted, text));
    assert_eq!(ranked(store), []);
    let readers = Readers::new(store.clone());
    let found = readers.find(&id).expect("an answer").expect("kept");
    assert_eq!((found.state, found.reasons), (State::Delisted, reasons));
    expect_tally(store);
}

#[test]
fn nobody_else_may_look_into_it() {
    let Fixture { path, store, .. } = &place();
    let _lock = store.lock().expect("the lock");
    add(store, 1.0, 1);
    let open = store.connect().expect("a connection");
    let mode = |path: &Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(path), 0o700);
    let mut files = 0;
    for entry in path.read_dir().expect("a directory") {
        let file = entry.expect("an entry").path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        files += 1;
    }
    assert!(files >= 3, "{files}");
    drop(open);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("changed");
    let error = Store::open(path).expect_err("it is refused").to_string();
    assert!(error.ends_with("or name another directory"), "{error}");
    let error = store.lock().expect_err("one is enough").to_string();
    assert!(error.contains("another server uses this store"), "{error}");
}

#[test]
fn a_link_is_no_database() {
    let Fixture { path, store, .. } = &place();
    let elsewhere = path.with_file_name("elsewhere");
    std::fs::rename(store.database(), &elsewhere).expect("moved");
    symlink(&elsewhere, store.database()).expect("a link");
    for error in [Store::open(path), Store::create(path)] {
        let error = error.expect_err("it is refused").to_string();
        assert!(
            error.contains("it is a link, or no regular file"),
            "{error}"
        );
    }
    assert!(Store::open(&path.join("missing")).is_err());
}

#[test]
fn the_schema_of_the_future_is_left_as_it_is() {
    let Fixture { path, store, .. } = &place();
    let db = store.connect().expect("a connection");
    db.pragma_update(None, "user_version", 99).expect("set");
    drop(db);
    let error = Store::open(path).expect_err("it is refused").to_string();
    assert!(error.contains("its schema is 99"), "{error}");
}

#[test]
fn a_backup_is_a_plain_database_that_replaces_nothing() {
    let Fixture { path, store, .. } = &place();
    add(store, 1.0, 1);
    let copy = path.with_file_name("copy.db");
    store.back_up(&copy).expect("a copy");
    let mode = copy.metadata().expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let db = Connection::open(&copy).expect("a database");
    let count: i64 = db
        .query_row("SELECT count(*) FROM submission", [], |row| row.get(0))
        .expect("a number");
    assert_eq!(count, 1);
    let error = store.back_up(&copy).expect_err("it is there").to_string();
    assert!(error.contains("cannot create"), "{error}");
    // Below a directory that is a link, as those are that systemd makes.
    let link = path.with_file_name("link");
    std::fs::create_dir(path.with_file_name("other")).expect("a directory");
    std::os::unix::fs::symlink("other", &link).expect("a link");
    store.back_up(&link.join("copy.db")).expect("a copy");
    assert!(path.with_file_name("other").join("copy.db").is_file());
}

#[test]
fn what_a_lake_has_is_known_of_that_lake_alone() {
    let Fixture { store, .. } = &place();
    add(store, 1.0, 1);
    add(store, 0.9, 2);
    let readers = Readers::new(store.clone());
    let missing = || readers.for_lake(0, 10).expect("an answer").len();
    let change = |change: Change| store.change(&change).expect("changed");
    let fill = |lake: &str, anew| {
        let lake = lake.into();
        change(Change::FillLake { lake, anew })
    };
    let has = |lake: &str| {
        let (numbers, lake) = (vec![1, 2], lake.into());
        change(Change::InLake { numbers, lake })
    };
    let (done, forbidden) = (Outcome::Done, Outcome::Forbidden);
    assert_eq!(has("a"), forbidden);
    assert_eq!(
        (fill("a", false), has("a"), missing()),
        (done.clone(), done.clone(), 0)
    );
    assert_eq!(
        (fill("b", false), fill("b", true)),
        (forbidden.clone(), forbidden.clone())
    );
    assert_eq!(change(Change::FillNone), done);
    // As of a server that still adds to the lake before.
    assert_eq!(
        (has("a"), fill("a", false)),
        (forbidden.clone(), forbidden.clone())
    );
    change(Change::ForgetLake { first: 0, below: 2 });
    assert_eq!(missing(), 1);
    change(Change::ForgetLake { first: 2, below: 3 });
    assert_eq!((missing(), fill("b", true)), (2, done.clone()));
    // And of somebody who began to fill another one at the same time.
    assert_eq!(fill("c", true), forbidden);
    assert_eq!((has("a"), has("b"), missing()), (forbidden, done, 0));
}

#[test]
fn what_a_killed_backup_left_is_removed_by_the_next_one_and_nothing_else_is() {
    let Fixture { path, store, .. } = &place();
    let beside = |name: &str| path.with_file_name(name);
    let others = [
        ".copy.db.part-x",
        ".copy.db.part-",
        ".copy.db",
        ".other.db.part-1",
    ];
    let left = [".copy.db.part-1", ".copy.db.part-1-journal"];
    let write_all = || {
        for name in others.iter().chain(&left) {
            std::fs::write(beside(name), "a part").expect("written");
        }
    };
    let are_there = |names: &[&str]| {
        let mut names = names.iter();
        names.all(|it| beside(it).symlink_metadata().is_ok())
    };
    write_all();
    std::os::unix::fs::symlink("/dev/null", beside(".copy.db.part-3")).expect("a link");
    // Somebody else is at one.
    let other = place::Part::create(&beside("another.db")).expect("a part");
    store.back_up(&beside("copy.db")).expect("a copy");
    assert!(are_there(&others) && are_there(&left));
    drop(other);
    std::fs::remove_file(beside("copy.db")).expect("removed");
    store.back_up(&beside("copy.db")).expect("a copy");
    assert!(are_there(&others) && are_there(&[".copy.db.part-3"]));
    assert!(left.iter().all(|it| !beside(it).exists()));
}

#[test]
fn a_ranking_is_what_the_store_says_whoever_changed_it() {
    let Fixture { path, store, .. } = &place();
    let readers = Readers::new(store.clone());
    let test = "file,access=random-write,sync=fdatasync";
    let ranked = |filesystem| places_of(&readers, (test, RATE), filesystem);
    assert_eq!(ranked(None), []);
    let mut ids = Vec::new();
    for number in 0..6_u8 {
        ids.push(add(store, 1.0 - f64::from(number) / 20.0, number).0);
        let places = ranked(None);
        assert_eq!(places[0].installations, u64::from(number) + 1);
        // Readers that never saw the store before have the same.
        let anew = Readers::new(store.clone());
        assert_eq!(places_of(&anew, (test, RATE), None), places);
    }
    assert_eq!(ranked(Some("ext4")), ranked(None));
    assert_eq!(ranked(Some("xfs")), []);
    let before = ranked(None);
    // As a command of the operator does, in another process.
    let other = Store::open(path).expect("a store");
    let decide = |state| {
        let (id, reason) = (ids[0], "a reason".into());
        let change = Change::Decide { id, state, reason };
        assert_eq!(other.change(&change).expect("decided"), Outcome::Done);
    };
    for state in [State::Delisted, State::Quarantined] {
        decide(state);
        assert_eq!(ranked(None)[0].installations, 5);
        assert!(ranked(Some("ext4"))[0].best < before[0].best);
        decide(State::Valid);
        assert_eq!(ranked(None), before);
    }
    let secret = other.secret().expect("a secret");
    for (number, id) in (0_u8..).zip(ids) {
        let token = secret.token(&id, &[number; 32]);
        let key_may = KeyMay {
            secret: secret.clone(),
            token,
        };
        let change = Change::Remove { id, key_may };
        assert_eq!(other.change(&change).expect("removed"), Outcome::Done);
    }
    assert_eq!(ranked(None), []);
}

#[test]
fn only_so_many_rankings_are_kept() {
    let Fixture { store, .. } = &place();
    add(store, 1.0, 1);
    let readers = Readers::new(store.clone());
    let measures = iostep_analyze::bench::Measure::all().map(|it| it.to_string());
    let filesystems = [None, Some("ext4")];
    for measure in measures {
        for filesystem in filesystems {
            let test = "file,access=random-write,sync=fdatasync";
            assert!(places_of(&readers, (test, &measure), filesystem).len() <= 1);
        }
    }
    assert!(readers.rankings.count() <= 64);
}

/// Ten installations, which differ by less than a third.
fn add_honest(store: &Store) {
    for number in 0..10_u8 {
        let share = 1.0 - f64::from(number) / 30.0;
        assert_eq!(add(store, share, number).1, Outcome::Done);
    }
}

#[test]
fn a_tail_that_is_far_shorter_than_all_others_is_doubted_at_the_usual_rate() {
    let Fixture { store, .. } = &place();
    add_honest(store);
    let with_tail = |times: f64| {
        let mut upload = upload(0.9 + times / 1e6);
        let mut figures = upload.figures.iter_mut();
        let tail = figures.find(|it| it.measure == "total_p99_ns");
        tail.expect("a tail").value *= times;
        let change = Change::add(upload, [10; 32]).expect("packed");
        store.change(&change).expect("changed")
    };
    // Of a full device.
    assert_eq!(with_tail(20.0), Outcome::Done);
    let Outcome::Doubted(reason) = with_tail(0.1) else {
        panic!("it is not doubted");
    };
    assert!(
        reason.text.contains("99 of 100 operations ended are"),
        "{}",
        reason.text
    );
}

#[test]
fn what_is_far_from_all_others_waits_for_an_operator_whose_word_stays() {
    let Fixture { store, .. } = &place();
    add_honest(store);
    // Twice as slow is an old one.
    assert_eq!(add(store, 0.4, 10).1, Outcome::Done);
    let (id, outcome) = add(store, 0.05, 11);
    let Outcome::Doubted(reason) = outcome else {
        panic!("it is doubted: {outcome:?}");
    };
    assert_eq!(reason.code, "outlier");
    assert!(
        reason.text.contains("of 11 other installations"),
        "{}",
        reason.text
    );
    let readers = Readers::new(store.clone());
    let kept = || match readers.submission(&id).expect("an answer") {
        Record::Kept(found, _) => (found.state, found.reasons.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(), (State::Quarantined, vec![reason]));
    assert_eq!(ranked(store)[0].installations, 11);
    let change = Change::Decide {
        id,
        state: State::Valid,
        reason: String::new(),
    };
    assert_eq!(store.change(&change).expect("decided"), Outcome::Done);
    assert_eq!(kept(), (State::Valid, Vec::new()));
    assert_eq!(ranked(store)[0].installations, 12);
    let state = State::Valid;
    let known = Outcome::Known {
        is_own: true,
        state,
    };
    assert_eq!(add(store, 0.05, 11), (id, known));
    assert_eq!(kept(), (State::Valid, Vec::new()));
    // Many results of one installation are one.
    let many: Vec<Outcome> = (0..20)
        .map(|it| add(store, 0.06 + f64::from(it) / 1000.0, 11).1)
        .collect();
    assert!(many.iter().all(|it| matches!(it, Outcome::Doubted(_))));
    expect_tally(store);
}

#[test]
fn a_store_of_the_first_schema_becomes_one_of_this() {
    let Fixture { path, store, .. } = &place();
    let ids: Vec<Id> = (0..6)
        .map(|it| add(store, 1.0 - f64::from(it) / 20.0, it as u8).0)
        .collect();
    let before = ranked(store);
    let old = path.with_file_name("old");
    schema::tests::make_first(store, &old);
    let store = Store::open(&old).expect("a store");
    assert_eq!(ranked(&store), before);
    let readers = Readers::new(store.clone());
    let filter = Filter {
        device: Some("ACME Flash 1".into()),
        filesystem: Some("ext4".into()),
        limit: 50,
        ..Filter::default()
    };
    let found = readers.list(&filter).expect("a list").results;
    let found: Vec<String> = found.into_iter().rev().map(|it| it.id).collect();
    let expected: Vec<String> = ids.iter().map(|id| iostep_model::hex::encode(id)).collect();
    assert_eq!(found, expected);
    let test = "file,access=random-write,sync=fdatasync";
    assert_eq!(places_of(&readers, (test, RATE), Some("ext4")), before);
    // It goes on from there.
    add(&store, 0.5, 7);
    assert_eq!(ranked(&store)[0].installations, 7);
    expect_tally(&store);
}

#[test]
fn a_history_has_the_values_and_when_each_came() {
    let place = place();
    for key in 1..=4 {
        add(&place.store, 1.0 + f64::from(key) / 100.0, key);
    }
    let product = ranked(&place.store)[0].product();
    let readers = Readers::new(place.store.clone());
    let asked = ("file,access=random-write,sync=fdatasync", RATE);
    let mut values: Vec<f64> = Vec::new();
    for sample in readers.samples(asked, &product).expect("read") {
        assert_eq!(sample.device.product(), product);
        values.push(sample.value);
    }
    assert_eq!(values.len(), 4);
    let history = readers.history(asked, &product).expect("read");
    let dated: Vec<f64> = history.iter().map(|it| it.sample.value).collect();
    assert_eq!(dated, values);
    let page = readers.results_of(&product, None, 9).expect("read").results;
    let mut received: Vec<i64> = history.iter().map(|it| it.received).collect();
    let mut expected: Vec<i64> = page.iter().map(|it| it.received).collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert_eq!(received, expected);
}

#[test]
fn nobody_alone_makes_the_others_of_a_device_unseen() {
    let Fixture { store, .. } = &place();
    add_honest(store);
    let mut one = upload(1.0);
    for number in 0..400_u32 {
        one.id[..4].copy_from_slice(&number.to_le_bytes());
        // Results of the same device, and others of as many.
        if number % 2 == 0 {
            one.device.firmware = format!("{number}");
        } else {
            one.device.firmware = upload(1.0).device.firmware;
        }
        let change = Change::add(one.clone(), [20; 32]).expect("packed");
        assert_eq!(store.change(&change).expect("added"), Outcome::Done);
    }
    let Outcome::Doubted(reason) = add(store, 0.05, 21).1 else {
        panic!("it is not doubted");
    };
    let others = "of 11 other installations";
    assert!(reason.text.contains(others), "{}", reason.text);
}

/// The name of the variable that makes [`migrating_child`] bring a store to this schema.
const CHILD: &str = "IOSTEP_TEST_SERVE_CHILD";

/// What is killed.
#[test]
fn migrating_child() {
    if let Some(path) = std::env::var_os(CHILD) {
        Store::open(Path::new(&path)).expect("migrated");
    }
}

fn migrate(path: &Path) -> std::process::Child {
    let program = std::env::current_exe().expect("a program");
    let mut command = std::process::Command::new(program);
    command
        .args(["store::tests::migrating_child", "--exact"])
        .env(CHILD, path)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts")
}

fn copy_store(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    rustix::fs::mkdir(to, rustix::fs::Mode::RWXU).expect("a directory");
    for file in std::fs::read_dir(from).expect("files") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
}

#[test]
fn a_migration_that_is_killed_at_any_moment_loses_nothing() {
    let kills = std::env::var("IOSTEP_KILLS").map_or(30, |it| it.parse().expect("a number"));
    let place = place();
    for number in 0..200_u8 {
        add(&place.store, 1.0 - f64::from(number) / 1e3, number);
    }
    let expected = ranked(&place.store);
    let (old, work) = (
        place.path.with_file_name("old"),
        place.path.with_file_name("work"),
    );
    schema::tests::make_first(&place.store, &old);
    let number = |db: &Connection, sql: &str| -> i64 {
        db.query_row(sql, [], |row| row.get(0)).expect("a number")
    };
    // A whole life first: the moments spread over it, whatever its speed.
    copy_store(&old, &work);
    let began = std::time::Instant::now();
    assert!(migrate(&work).wait().expect("its end").success());
    let life = began.elapsed();
    let mut versions = std::collections::BTreeSet::new();
    for kill in 0..kills {
        copy_store(&old, &work);
        let mut child = migrate(&work);
        std::thread::sleep(life.mul_f64(f64::from(kill * 37 % 100) / 90.0));
        child.kill().expect("it can be");
        child.wait().expect("its end");
        {
            let store = Store {
                database: work.join("store.db"),
                log: Log::Waldio,
            };
            let db = store.connect().expect("a connection");
            versions.insert(number(&db, "PRAGMA user_version"));
            let sound: String = db
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .expect("an answer");
            assert_eq!(sound, "ok");
            assert_eq!(number(&db, "SELECT count(*) FROM submission"), 200);
        }
        let store = Store::open(&work).expect("migrated");
        assert_eq!(ranked(&store), expected);
        expect_tally(&store);
    }
    println!("killed at the versions {versions:?}");
}

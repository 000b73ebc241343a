use std::path::PathBuf;

use iostep_model::lab::Filesystem;

use super::*;

fn accept(_: WorkloadKind, _: &[String]) -> Result<(), (String, String)> {
    Ok(())
}

fn lab(text: &str) -> Lab {
    parse(Path::new("dir/mine.toml"), text, &accept).unwrap_or_else(|error| panic!("{error}"))
}

fn arguments(text: &str) -> Vec<String> {
    let cells = lab(text).cells.into_iter();
    cells
        .map(|cell| cell.workload.arguments.join(" "))
        .collect()
}

fn refused(text: &str) -> String {
    let error = parse(Path::new("mine.toml"), text, &accept).expect_err(text);
    assert!(matches!(error, Error::Usage { .. }), "{error}");
    error.to_string()
}

const SQLITE: &str = "[[cells]]\nfilesystem='ext4'\nworkload='sqlite'\n";
const COMMAND: &str = "[[cells]]\nfilesystem='ext4'\nworkload='command'\ncommand='sync now'\n";
const FILE: &str = "[[cells]]\nfilesystem='ext4'\nworkload='file'\n";

#[test]
fn lists_are_crossed_and_name_the_axes() {
    let lab = lab(r#"
        title = "Mine"
        [defaults]
        workload = "sqlite"
        transactions = 100
        [[cells]]
        filesystem = ["ext4", "f2fs"]
        journal = ["delete", "wal"]
        device-size = "512MiB"
        mkfs-options = ["-O", "quota"]
        trace = true
        pattern = 3
        cpu-load = 2
        repeat = 5
    "#);
    assert_eq!((lab.name.as_str(), lab.title.as_str()), ("mine", "Mine"));
    assert_eq!(lab.cells.len(), 4);
    let last = &lab.cells[3];
    assert_eq!(label(last), "cells-1 filesystem=f2fs journal=wal");
    assert_eq!(last.axis("switches"), Some(""));
    assert_eq!(last.argument("transactions"), Some("100"));
    assert_eq!(last.storage.filesystem, Filesystem::F2fs);
    assert_eq!(last.storage.device_bytes, 512 << 20);
    assert_eq!(last.storage.mkfs_options, ["-O", "quota"]);
    assert_eq!(
        (last.trace, last.pattern, last.cpu_load, last.repeat),
        (true, 3, 2, 5)
    );
}

#[test]
fn switches_of_sqlite_are_its_flags() {
    let text =
        format!("{SQLITE}journal='truncate'\nswitches=['', 'F', 'W', 'F+E+W', 'waldio', 'F+A']");
    let expected = [
        "--journal=truncate --fsync",
        "--journal=truncate",
        "--journal=wal --fsync",
        "--journal=wal",
        "--journal=waldio",
        "--journal=truncate --batch-atomic",
    ];
    assert_eq!(arguments(&text), expected);
    let lab = lab(&text);
    let external: Vec<bool> = lab
        .cells
        .iter()
        .map(|c| c.storage.external_journal)
        .collect();
    assert_eq!(external, [false, false, false, true, false, false]);
}

#[test]
fn waldio_flushes_by_itself_also_as_a_journal_mode() {
    assert_eq!(
        arguments(&format!("{SQLITE}journal='waldio'")),
        ["--journal=waldio"]
    );
}

#[test]
fn switches_of_files_are_their_flags() {
    let text = format!("{FILE}switches=['', 'F', 'F+P']");
    let expected = [
        "--sync=fsync",
        "--sync=fdatasync",
        "--sync=fdatasync --polled --transfer=direct",
    ];
    assert_eq!(arguments(&text), expected);
    let own = format!("{FILE}sync=['none', 'osync']");
    assert_eq!(arguments(&own), ["--sync=none", "--sync=osync"]);
}

#[test]
fn what_is_wrong_is_named_with_its_file_block_and_key() {
    let sqlite = |rest: &str| format!("{SQLITE}{rest}");
    for (text, expected) in [
        (String::new(), "mine.toml: no cells"),
        ("[[cells]]\n".into(), "block 1: filesystem: missing"),
        (
            "[[cells]]\nfilesystem='ext4'".into(),
            "block 1: workload: missing",
        ),
        (
            "[[cells]]\nfilesystem='zfs'".into(),
            "block 1: filesystem: zfs: no filesystem",
        ),
        (format!("x=1\n{SQLITE}"), "mine.toml: x: no such table"),
        (format!("name='a/b'\n{SQLITE}"), "name: \"a/b\""),
        (
            sqlite("switches='Q'"),
            "block 1: switches: \"Q\": no switch",
        ),
        (sqlite("switches='W+waldio'"), "two journal modes"),
        (sqlite("fsync=true"), "fsync: switch F"),
        (sqlite("batch-atomic=true"), "batch-atomic: switch A"),
        (sqlite("output='x'"), "output: no setting of a cell"),
        (sqlite("submit='http://x'"), "submit: no setting of a cell"),
        (sqlite("keep=true"), "keep: no setting of a cell"),
        (sqlite("command='true'"), "command: another workload"),
        (sqlite("env=['A=1', '=2']"), "env: =2: no NAME=value"),
        (
            COMMAND.replace("command='sync now'", ""),
            "command: missing",
        ),
        (
            format!("{COMMAND}trace=true"),
            "trace: a command is not traced",
        ),
        (sqlite("device-size='big'"), "device-size: big: no size"),
        (sqlite("device-size=0"), "device-size: 0: no size"),
        (sqlite("repeat=0"), "repeat: 0: no number from 1 to"),
        (sqlite("repeat=-1"), "repeat: -1: no number"),
        (sqlite("cpu-load=99999"), "cpu-load: 99999"),
        (sqlite("trace='yes'"), "trace: neither true nor false"),
        (sqlite("pattern=3"), "pattern: nothing is traced"),
        (sqlite("mkfs-options=[1]"), "mkfs-options: no list of texts"),
        (sqlite("recording='x'"), "recording: only a replay"),
        (sqlite("seed=[1, 1]"), "the same as"),
        (
            format!("{FILE}sync='fsync'\nswitches='F'"),
            "sync: switch F",
        ),
        (
            "[[cells]]\nfilesystem='xfs'\nworkload='replay'".into(),
            "recording: missing",
        ),
    ] {
        is_refused(&text, expected);
    }
}

fn is_refused(text: &str, expected: &str) {
    let error = refused(text);
    assert!(error.contains(expected), "{text}: {error}");
    let is_line = error.starts_with("mine.toml: ") && !error.contains('\n');
    assert!(is_line, "{error}");
}

#[test]
fn what_is_wrong_with_a_view_a_claim_or_a_paper_is_named() {
    for (text, expected) in [
        ("[[views]]\ntitle='x'", "views 1: missing field `rows`"),
        (
            "[[views]]\ntitle='x'\nrows=['jornal']\nmeasures=[]",
            "views 1: jornal: no cell has it",
        ),
        (
            "[[claims]]\nname='x'\nclaim='x'\nconditions=[{measure='ios'}]",
            "claims 1: a condition needs one of least-of",
        ),
        (
            "[[papers]]\npaper='x'\nplace='x'\nmeasure='ios'\naxes=['switches']\nnumbers=3",
            "papers 1: numbers: they have not as many names",
        ),
    ] {
        is_refused(&format!("{SQLITE}{text}"), expected);
    }
}

#[test]
fn what_is_shown_has_defaults_too() {
    let text = "[view-defaults]\nrows=['switches']\nmeasures=['ios']\n\
                [[views]]\ntitle='a'\n[[views]]\ntitle='b'\nrows=['filesystem']\n";
    let views = lab(&format!("{SQLITE}{text}")).analysis.views;
    let rows: Vec<&str> = views.iter().map(|view| view.rows[0].as_str()).collect();
    assert_eq!(rows, ["switches", "filesystem"]);
}

#[test]
fn whoever_reads_the_flags_may_refuse_them() {
    let check = |kind: WorkloadKind, arguments: &[String]| match arguments {
        [only] if kind == WorkloadKind::Sqlite && only == "--fsync" => {
            Err(("fsync: never".to_owned(), "leave it".to_owned()))
        }
        other => panic!("{kind} {other:?}"),
    };
    let error = parse(Path::new("mine.toml"), SQLITE, &check).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "mine.toml: block 1: fsync: never; leave it"
    );
}

#[test]
fn a_key_is_the_cells_and_not_its_places() {
    let key = |text: &str| lab(text).cells.remove(0).key;
    let before = key("[[cells]]\nfilesystem='xfs'\nworkload='sqlite'\njournal='wal'\nrecord=10");
    let moved = key(
        "[defaults]\nrecord=[10]\n[[cells]]\nname='x'\njournal='wal'\nworkload='sqlite'\nfilesystem='xfs'",
    );
    assert_eq!(before, moved);
    assert_eq!(before.len(), 16);
    for other in [
        "filesystem='btrfs'",
        "workload='file'",
        "journal='off'",
        "repeat=2",
        "trace=true",
        "env='A=1'",
        "turns='x'",
    ] {
        let (name, _) = other.split_once('=').expect("a setting");
        let text = "filesystem='xfs'\nworkload='sqlite'\njournal='wal'\nrecord=10\n";
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with(name))
            .collect();
        let changed = format!("[[cells]]\n{}\n{other}", lines.join("\n"));
        assert_ne!(key(&changed), before, "{other}");
    }
}

#[test]
fn a_recording_is_known_by_its_content() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    for (name, content) in [("a", "calls"), ("b", "calls"), ("c", "other calls")] {
        std::fs::write(file(name), content).expect("written");
    }
    let cell = |name: &str| {
        let text = format!("[[cells]]\nfilesystem='xfs'\nworkload='replay'\nrecording='{name}'");
        let lab: PathBuf = file("replay.toml");
        parse(&lab, &text, &accept).map(|mut lab| lab.cells.remove(0))
    };
    let found = |name| cell(name).expect("it is there");
    assert_eq!(found("a").key, found("b").key);
    assert_ne!(found("a").key, found("c").key);
    assert_eq!(found("a").workload.arguments, [file("a").to_string_lossy()]);
    for none in ["d", "/dev/zero", "."] {
        assert!(cell(none).is_err(), "{none}");
    }
}

#[test]
fn a_command_has_its_own_arguments_and_flags_and_lies_on_the_path_or_beside_the_lab() {
    let found = arguments(&format!("{COMMAND}writers=[1, 2]\nagain=true"));
    assert_eq!(
        found,
        [
            "sync now --writers=1 --again",
            "sync now --writers=2 --again"
        ]
    );
    let beside = "[[cells]]\nfilesystem='ext4'\nworkload='command'\ncommand='./a/b c'";
    let found = lab(beside).cells.remove(0).workload.arguments;
    let path = std::path::absolute("dir/a/b").expect("a path");
    assert_eq!(Path::new(&found[0]), path);
    assert_eq!(found[1], "c");
    let key = |text: &str| {
        parse(Path::new(text), beside, &accept)
            .expect("a lab")
            .cells[0]
            .key
            .clone()
    };
    assert_eq!(key("x/mine.toml"), key("y/mine.toml"));
}

#[test]
fn cells_that_take_turns_are_chosen_together() {
    let text = format!(
        "{SQLITE}turns='a'\nlabel='one'\nseed=[1, 2]\n{SQLITE}seed=3\n\
         [[cells]]\nfilesystem=['ext4', 'xfs']\nworkload='sqlite'\nturns='a'\nseed=4\n"
    );
    let lab = lab(&text);
    assert_eq!(lab.cells[0].value("label").as_deref(), Some("one"));
    assert_eq!(lab.cells[0].value("turns").as_deref(), Some("a"));
    let all: Vec<&Cell> = lab.cells.iter().collect();
    let together = [vec![all[0], all[1], all[3]], vec![all[2]], vec![all[4]]];
    assert_eq!(in_turns(&all), together);
    let chosen = select(&lab, None, &[all[3].key.clone()]).expect("cells");
    assert_eq!(chosen, together[0]);
    let parts = ["1/2", "2/2"].map(|text| select(&lab, text.parse().ok(), &[]).expect("cells"));
    let whole = |part: &Vec<&Cell>| [0, 1, 3].map(|number| part.contains(&all[number]));
    assert!(
        parts
            .iter()
            .all(|part| whole(part) == [part.contains(&all[0]); 3])
    );
    assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), 5);
}

#[test]
fn shards_take_every_cell_once() {
    let seeds: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let lab = lab(&format!("{SQLITE}seed=[{}]", seeds.join(",")));
    let shard = |text: &str| {
        let shard: Shard = text.parse().expect(text);
        let cells = select(&lab, Some(shard), &[]).expect("cells");
        cells
            .iter()
            .map(|cell| cell.key.clone())
            .collect::<Vec<_>>()
    };
    let parts = ["1/3", "2/3", "3/3"].map(shard);
    assert_eq!(parts.each_ref().map(Vec::len), [7, 7, 6]);
    let mut all = parts.concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 20);
    assert_eq!(shard("1/1").len(), 20);
    for text in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1/2/3"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}

#[test]
fn cells_are_chosen_by_their_keys() {
    let lab = lab(&format!("{SQLITE}seed=[1, 2, 3]"));
    let keys = [lab.cells[2].key.clone(), lab.cells[0].key.clone()];
    let chosen = select(&lab, None, &keys).expect("cells");
    assert_eq!(chosen, [&lab.cells[0], &lab.cells[2]]);
    let error = select(&lab, None, &["x".into()]).expect_err("no such key");
    assert!(
        error.to_string().contains("no cell of mine has this key"),
        "{error}"
    );
}

#[test]
fn another_number_of_repetitions_is_another_cell() {
    let once = lab(SQLITE);
    let again = with_repeat(once.clone(), 3);
    assert_eq!(again.cells[0].repeat, 3);
    assert_ne!(again.cells[0].key, once.cells[0].key);
    assert_eq!(with_repeat(once.clone(), 1), once);
}

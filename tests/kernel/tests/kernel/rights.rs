//! With whose rights what is done.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep::{self, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;

use crate::case::Case;
use crate::faults::wait_until;
use crate::stage::{self, Stage};

const SYS_ADMIN: u64 = 1 << 21;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let case = |name: &str, body: fn() -> anyhow::Result<()>| Case::new(name, needs.clone(), body);
    vec![
        case("a command of another user has their rights", other_user),
        case("a user that is not there is bad usage", no_user),
        case("who records has fewer rights than root", fewer_rights),
    ]
}

/// What is run: a trace, or a recording in one of the two ways.
const COMMANDS: [&[&str]; 3] = [
    &["trace"],
    &["record", "--via", "bpf"],
    &["record", "--via", "ptrace"],
];

struct Fixture {
    stage: Stage,
    place: tempfile::TempDir,
}

impl Fixture {
    fn new() -> anyhow::Result<Fixture> {
        let ground = Fixture {
            stage: Stage::new(Kind::Ext4, &[], "")?,
            place: tempfile::tempdir()?,
        };
        fs::set_permissions(ground.place.path(), fs::Permissions::from_mode(0o777))?;
        Ok(ground)
    }

    fn of(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn words(&self, command: &[&str], flags: &[&str], script: &str) -> Vec<PathBuf> {
        let mut words: Vec<PathBuf> = command.iter().map(PathBuf::from).collect();
        if command[0] == "trace" {
            words.push(self.stage.root().to_owned());
        }
        words.extend(["-o".into(), self.of("result")]);
        words.extend(flags.iter().map(PathBuf::from));
        words.extend(["--", "sh", "-c", script].map(PathBuf::from));
        words
    }

    fn clear(&self) -> anyhow::Result<()> {
        for entry in fs::read_dir(self.place.path())?.flatten() {
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

/// The lines of proc_pid_status(5).
fn status(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, values)| (name, values.split_whitespace().collect()))
        .collect()
}

fn other_user() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let ids = std::process::Command::new("id").arg("nobody").output()?;
    ensure!(ids.status.success(), "there is no user nobody");
    let id = |flag: &str| -> anyhow::Result<String> {
        let output = std::process::Command::new("id")
            .args([flag, "nobody"])
            .output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    for command in COMMANDS {
        let script = format!(
            "cat /proc/self/status > {0}; echo $USER $LOGNAME $HOME > {1}",
            ground.of("status").display(),
            ground.of("variables").display()
        );
        let words = ground.words(command, &["--user", "nobody"], &script);
        iostep::run(words)?.success()?;
        let text = fs::read_to_string(ground.of("status"))?;
        let found = status(&text);
        ensure!(found["Uid"] == vec![id("-u")?; 4], "{command:?}: {text}");
        ensure!(found["Gid"] == vec![id("-g")?; 4], "{command:?}: {text}");
        let mut groups: Vec<String> = found["Groups"].iter().map(ToString::to_string).collect();
        let groups_of = id("-G")?;
        let mut expected: Vec<String> = groups_of.split(' ').map(Into::into).collect();
        groups.sort();
        expected.sort();
        ensure!(groups == expected, "{command:?}: {text}");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            ensure!(found[set] == ["0000000000000000"], "{command:?}: {text}");
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        let line = passwd.lines().find(|line| line.starts_with("nobody:"));
        let home = line
            .and_then(|line| line.split(':').nth(5))
            .context("a home")?;
        let variables = fs::read_to_string(ground.of("variables"))?;
        ensure!(
            variables == format!("nobody nobody {home}\n"),
            "{variables}"
        );
        ground.clear()?;
    }
    Ok(())
}

fn no_user() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let script = format!("touch {}", ground.of("ran").display());
    for command in COMMANDS {
        let words = ground.words(command, &["--user", "no-such-user"], &script);
        iostep::run(words)?.refused(&[2], "--user no-such-user: there is no such user")?;
        ensure!(
            fs::read_dir(ground.place.path())?.count() == 0,
            "{command:?}"
        );
    }
    Ok(())
}

/// The capabilities that the threads of a process can use, all together.
fn rights(process: i32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let texts = threads.flatten().map(|thread| {
        let path: &Path = &thread.path();
        fs::read_to_string(path.join("status")).unwrap_or_default()
    });
    let sets = texts.flat_map(|text| {
        let found = status(&text);
        let of = |set| {
            let digits = found.get(set).and_then(|values| values.first());
            digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        };
        [of("CapEff"), of("CapPrm")]
    });
    sets.flatten().fold(0, |all, set| all | set)
}

fn fewer_rights() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let own = rights(std::process::id() as i32);
    ensure!(own & SYS_ADMIN != 0, "this test has few rights itself");
    for command in COMMANDS {
        let go_on = ground.of("go-on");
        let script = format!(
            "grep CapEff /proc/self/status > {0}; touch {1}; \
             while [ ! -e {2} ]; do sleep 0.05; done; echo x > {3}/f; sync {3}/f",
            ground.of("capabilities").display(),
            ground.of("runs").display(),
            go_on.display(),
            ground.stage.root().display()
        );
        let running = Running::start(ground.words(command, &[], &script))?;
        wait_until("the command", || ground.of("runs").exists())?;
        let process = running.pid().as_raw_nonzero().get();
        wait_until("fewer rights", || rights(process) & SYS_ADMIN == 0)?;
        println!("    {command:?}: {:#x} of {own:#x}", rights(process));
        fs::write(&go_on, "")?;
        running.finish()?.success()?;
        let of_command = fs::read_to_string(ground.of("capabilities"))?;
        let digits = of_command.split_whitespace().nth(1).context("a set")?;
        ensure!(
            u64::from_str_radix(digits, 16)? == own,
            "{command:?}: {of_command}"
        );
        ground.clear()?;
    }
    Ok(())
}

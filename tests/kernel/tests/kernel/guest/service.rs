//! `iostep-serve.service` and the package's scripts, beside a systemd that is a guest's own: the
//! first process of namespaces whose root is this machine's with nothing to start but the unit.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::requirement::Requirement;
use serde_json::Value;

use super::{LIMIT, Programs};
use crate::case::Case;
use crate::faults::wait_until;

#[allow(
    dead_code,
    reason = "of the server's own tests; one result is asked for here"
)]
#[path = "../../../../../crates/iostep-serve/src/fixture.rs"]
mod fixture;

/// Before the names of the tests that systemd runs.
pub const UNDER_SYSTEMD: &str = "under systemd";

/// Has a systemd run the command after `$1`, the packaging's directory, and ends as it does.
///
/// The root is an overlay without what this machine would start, and without its settings of the
/// unit. It is pivoted to: below a chroot(2) the unit's user namespace cannot be made.
const BOOT: &str = r#"
set -e
packaging=$1 base=/tmp/booted root=/tmp/booted/root
shift
mkdir $base
mount -t tmpfs none $base
mkdir $base/upper $base/work $root
mount -t overlay -o lowerdir=/,upperdir=$base/upper,workdir=$base/work none $root
cd $root
units=usr/lib/systemd/system
rm -rf usr/lib/systemd/system-generators $units/*.wants etc/systemd/system/* etc/systemd/*.conf.d \
    etc/default/iostep-serve var/lib/private var/lib/iostep-serve var/lib/iostep-lake \
    var/lib/iostep-backup var/log/journal
# A machine without one is new, and what is preset would be enabled.
echo 00000000000000000000000000000001 > etc/machine-id
: > etc/fstab
cp $packaging/iostep-serve.service $units/
touch usr/bin/iostep
mount --bind "$IOSTEP_BIN" usr/bin/iostep
mkdir -p etc/systemd/journald.conf.d var/log/journal
cat > etc/systemd/journald.conf.d/own.conf << END
[Journal]
Storage=persistent
ReadKMsg=no
Audit=no
END
{ printf exec; printf " '%s'" "$@"; } > command
cat > etc/systemd/system/command.service << END
[Unit]
Wants=multi-user.target
Requires=dbus.socket systemd-journald.service systemd-journal-flush.service
After=dbus.socket systemd-journald.service systemd-journal-flush.service basic.target
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=/bin/sh /command
PassEnvironment=PATH HOME IOSTEP_BIN IOSTEP_GUEST IOSTEP_REQUIRE
StandardOutput=append:/printed
StandardError=inherit
END
touch printed
status=0
IOSTEP_BIN=/usr/bin/iostep container=iostep \
    unshare --mount --pid --fork --net --ipc --uts --cgroup sh -e -c '
    mount --rbind /dev dev
    mount -t proc none proc
    mount -t sysfs -o ro none sys
    mount -t cgroup2 none sys/fs/cgroup
    for directory in run tmp var/tmp; do mount -t tmpfs none $directory; done
    chmod 755 run
    pivot_root . mnt
    umount -l /mnt
    exec /lib/systemd/systemd --unit=command.service --log-target=journal' || status=$?
cat printed
[ $status = 0 ] || journalctl --no-pager -D var/log/journal -n 60 >&2
exit $status
"#;

const ADDRESS: &str = "127.0.0.1:7370";
const OPTIONS: &str = "/etc/default/iostep-serve";
const UNIT: &str = "/usr/lib/systemd/system/iostep-serve.service";
const DROP_INS: &str = "/etc/systemd/system/iostep-serve.service.d";
const STATE: &str = "/var/lib/private";
const STORE: &str = "/var/lib/private/iostep-serve";
const LAKE: &str = "/var/lib/private/iostep-lake";
/// What a user can be whom systemd makes up (doc/UIDS-GIDS of systemd).
const DYNAMIC_USERS: RangeInclusive<u32> = 61184..=65519;
/// A system call that the unit would have fail ends the process: nothing needs one.
const STRICT: &str = "[Service]\nSystemCallErrorNumber=kill\n";

/// The test of the host.
pub fn cases(needs: impl Fn(&[&'static str]) -> Vec<Requirement>) -> Vec<Case> {
    let name = "systemd runs iostep-serve.service as docs/serve.md says";
    let needs = needs(&["systemd-run", "dbus-daemon"]);
    vec![Case::new(name, needs, || {
        let boot = ["sh", "-c", BOOT, "sh", &repository("packaging")];
        Programs::own()?.run(&boot, &[], &[UNDER_SYSTEMD], LIMIT)
    })]
}

/// Those that systemd runs.
pub fn cases_under_systemd() -> Vec<Case> {
    let case = |name: &str, run: fn(&Service) -> anyhow::Result<()>| {
        Case::new(name, [Requirement::Root], move || {
            let service = Service::new()?;
            run(&service).with_context(|| service.log().unwrap_or_default())?;
            service.is_without_complaints()
        })
    };
    vec![
        case("the server has a user, a directory and no rights", rights),
        case("what was sent outlives each end of the server", kept),
        case("a lake has a directory of its own", lake),
        case("options are those of their file", options),
        case(
            "wrong options end the server, and nothing else does",
            failed,
        ),
        case("the package starts, restarts and ends the server", package),
    ]
}

fn repository(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The unit, as if it had just been installed.
struct Service {
    /// Bytes of the log that are of earlier tests.
    earlier: usize,
}

impl Service {
    fn new() -> anyhow::Result<Service> {
        for path in [DROP_INS, STATE] {
            if Path::new(path).exists() {
                fs::remove_dir_all(path)?;
            }
        }
        if Path::new(OPTIONS).exists() {
            fs::remove_file(OPTIONS)?;
        }
        systemctl(&["daemon-reload"])?;
        let earlier = whole_log()?.len();
        Ok(Service { earlier })
    }

    /// Adds to the unit, as `systemctl edit` does.
    fn edit(&self, name: &str, text: &str) -> anyhow::Result<()> {
        fs::create_dir_all(DROP_INS)?;
        fs::write(format!("{DROP_INS}/{name}.conf"), text)?;
        systemctl(&["daemon-reload"])?;
        Ok(())
    }

    fn start(&self) -> anyhow::Result<u32> {
        systemctl(&["start", "iostep-serve"])?;
        anyhow::ensure!(answers(ADDRESS), "it was started, and does not answer");
        self.is_up()
    }

    /// Waits for its answer, and tells its process.
    fn is_up(&self) -> anyhow::Result<u32> {
        self.is_up_at(ADDRESS)
    }

    fn is_up_at(&self, address: &str) -> anyhow::Result<u32> {
        let before = self.shown("NRestarts")?;
        let ends = || -> anyhow::Result<bool> {
            Ok(self.shown("NRestarts")? != before || self.shown("ActiveState")? == "failed")
        };
        let is_told = || answers(address) || ends().unwrap_or(true);
        wait_until("the server to answer", is_told)?;
        let state = (self.shown("ActiveState")?, self.shown("NRestarts")?);
        anyhow::ensure!(state == ("active".into(), before), "{state:?}");
        Ok(self.shown("MainPID")?.parse()?)
    }

    fn becomes(&self, property: &str, value: &str) -> anyhow::Result<()> {
        let is_so = || self.shown(property).is_ok_and(|found| found == value);
        wait_until(&format!("{property} to be {value}"), is_so)
    }

    fn shown(&self, property: &str) -> anyhow::Result<String> {
        systemctl(&["show", "--value", "-p", property, "iostep-serve"])
    }

    /// What it said in this test, and systemd of it.
    fn log(&self) -> anyhow::Result<String> {
        let log = whole_log()?;
        Ok(log.get(self.earlier..).unwrap_or_default().to_owned())
    }

    /// Nothing was refused that it or systemd tried.
    fn is_without_complaints(&self) -> anyhow::Result<()> {
        let log = self.log()?;
        let complaints = [
            "not permitted",
            "denied",
            "/SYS",
            "Failed to set up",
            "Unknown key",
        ];
        let is_one = |line: &&str| complaints.iter().any(|it| line.contains(it));
        let found = log.lines().find(is_one);
        anyhow::ensure!(found.is_none() && !log.is_empty(), "{found:?} in: {log}");
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // There is nothing to do for most.
        for command in ["disable", "stop", "reset-failed"] {
            let _ = systemctl(&[command, "iostep-serve"]);
        }
    }
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let outcome = Outcome::from(output.with_context(|| program.to_owned())?).success();
    let outcome = outcome.with_context(|| format!("{program} {arguments:?}"))?;
    Ok(outcome.stdout.trim().to_owned())
}

fn whole_log() -> anyhow::Result<String> {
    said("journalctl", &["--sync"])?;
    let words = ["--no-pager", "-q", "-o", "cat", "-u", "iostep-serve"];
    said("journalctl", &words)
}

fn systemctl(arguments: &[&str]) -> anyhow::Result<String> {
    said("systemctl", arguments)
}

/// True if a server there says that it is well.
fn answers(address: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        let request = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// The block of this kind in the page's chapter.
fn documented(kind: &str) -> anyhow::Result<String> {
    let page = fs::read_to_string(repository("docs/serve.md"))?;
    let (_, chapter) = page
        .split_once("\n## As a service\n")
        .context("no chapter")?;
    let begin = format!("\n```{kind}\n");
    let (_, block) = chapter.split_once(&begin).context("no block")?;
    let (block, _) = block.split_once("\n```").context("no end")?;
    Ok(block.to_owned())
}

/// Sends a result that counts, of two runs, each time another one. Tells its ID.
fn submit(number: u32) -> anyhow::Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    let share = 1.0 - f64::from(number) / 1e4;
    let document = fixture::scaled(fixture::file(2), share);
    fs::write(file.path(), serde_json::to_vec(&document)?)?;
    submit_file(&file.path().to_string_lossy())
}

fn submit_file(path: &str) -> anyhow::Result<String> {
    let outcome = iostep::run(["submit", path, "--to", &format!("http://{ADDRESS}")])?;
    let stdout = outcome.success()?.stdout;
    let id = stdout
        .split_once("kept as ")
        .and_then(|(_, id)| id.get(..64));
    Ok(id.with_context(|| stdout.clone())?.to_owned())
}

/// The operator's documented commands, which end with the list, tell of these results alone.
fn lists(ids: &[&str]) -> anyhow::Result<()> {
    let listed = said("sh", &["-e", "-c", &documented("sh")?])?;
    let are_there = ids.iter().all(|id| listed.contains(id));
    let rows = listed.lines().filter(|line| line.contains("file,"));
    let is_same = are_there && rows.count() == ids.len();
    anyhow::ensure!(is_same, "{ids:?}: {listed}");
    Ok(())
}

fn rights(service: &Service) -> anyhow::Result<()> {
    let version = systemctl(&["--version"])?;
    println!("    {}", version.lines().next().unwrap_or_default());
    let pid = service.start()?;
    let uid = fs::metadata(format!("/proc/{pid}"))?.uid();
    println!("    user {uid}");
    anyhow::ensure!(DYNAMIC_USERS.contains(&uid), "{uid}");
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let ids = [uid; 4].map(|id| id.to_string()).join("\t");
    let none = "0000000000000000";
    let expected = [
        ("Uid", &ids[..]),
        ("Gid", &ids),
        ("CapInh", none),
        ("CapPrm", none),
        ("CapEff", none),
        ("CapBnd", none),
        ("CapAmb", none),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    for (name, value) in expected {
        let is_so = status.contains(&format!("\n{name}:\t{value}\n"));
        anyhow::ensure!(is_so, "{name} is not {value}: {status}");
    }
    let users = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user"));
    let is_apart = users(&pid.to_string())? != users("self")?;
    anyhow::ensure!(is_apart, "it sees this machine's users");
    for (path, mode) in [(STORE, 0o40700), (&format!("{STORE}/store.db"), 0o100_600)] {
        let found = fs::metadata(path)?;
        let found = (found.uid(), found.gid(), found.mode());
        anyhow::ensure!(found == (uid, uid, mode), "{path}: {found:?}");
    }
    let link = fs::read_link("/var/lib/iostep-serve")?;
    anyhow::ensure!(link == Path::new("private/iostep-serve"), "{link:?}");
    writes_nowhere_else(pid)
}

/// On whatever outlives it, a process can write into the store alone.
fn writes_nowhere_else(pid: u32) -> anyhow::Result<()> {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo"))?;
    let mut writable = Vec::new();
    for line in mounts.lines() {
        let (mount, filesystem) = line.split_once(" - ").context("a mount")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        let [point, options] = [fields[4], fields[5]];
        let is_gone = ["tmpfs ", "proc ", "devpts "]
            .iter()
            .any(|kind| filesystem.starts_with(kind));
        if options.starts_with("rw") && !is_gone {
            writable.push(point);
        }
    }
    anyhow::ensure!(writable == [STORE], "{mounts}");
    Ok(())
}

fn kept(service: &Service) -> anyhow::Result<()> {
    service.edit("strict", STRICT)?;
    let first = service.start()?;
    let place = tempfile::tempdir()?;
    let here = place.path().to_string_lossy();
    let measured = format!("{here}/measured.json");
    let bench = ["bench", "file", &here, "--size", "64KiB", "-q", "-o"];
    iostep::run(bench.iter().chain([&&measured[..]]))?.success()?;
    let ids = [submit_file(&measured)?, submit(0)?];
    let ids = [&ids[0][..], &ids[1]];
    lists(&ids)?;
    anyhow::ensure!(service.is_up()? == first, "it was started again");

    systemctl(&["kill", "--kill-who=main", "-s", "KILL", "iostep-serve"])?;
    service.becomes("NRestarts", "1")?;
    let second = service.is_up()?;
    lists(&ids)?;
    systemctl(&["restart", "iostep-serve"])?;
    let third = service.is_up()?;
    anyhow::ensure!(first != second && second != third, "it is still that one");
    let last = submit(1)?;
    systemctl(&["stop", "iostep-serve"])?;
    // 1 is CLD_EXITED.
    for (property, value) in [
        ("ActiveState", "inactive"),
        ("Result", "success"),
        ("ExecMainCode", "1"),
        ("ExecMainStatus", "0"),
    ] {
        let found = service.shown(property)?;
        anyhow::ensure!(found == value, "{property} is {found}");
    }
    anyhow::ensure!(!answers(ADDRESS), "somebody answers");
    // Which starts it.
    lists(&[ids[0], ids[1], &last])
}

fn lake(service: &Service) -> anyhow::Result<()> {
    service.edit("strict", STRICT)?;
    service.edit("override", &documented("ini")?)?;
    service.start()?;
    submit(0)?;
    systemctl(&["restart", "iostep-serve"])?;
    let rows = || -> anyhow::Result<Value> {
        let info = iostep::run(["fleet", "info", LAKE, "--json"])?.success()?;
        let info: Value = serde_json::from_str(&info.stdout)?;
        Ok(info["results"]["rows"].clone())
    };
    wait_until("the lake's first rows", || {
        rows().is_ok_and(|rows| rows == 2)
    })?;
    service.is_up()?;
    submit(1)?;
    // The operator's list with another command, and with both directories.
    let list = documented("sh")?;
    let (before, _) = list.rsplit_once("iostep serve list").context("no list")?;
    let (one, both) = (
        "=iostep-serve -p State",
        "='iostep-serve iostep-lake' -p State",
    );
    let both = before.replace(one, both);
    anyhow::ensure!(both != before, "{list}");
    let put = "iostep serve lake --data /var/lib/iostep-serve /var/lib/iostep-lake";
    said("sh", &["-e", "-c", &format!("{both}{put}")])?;
    let found = rows()?;
    anyhow::ensure!(found == 4, "{found} rows");
    let (store, lake) = (fs::metadata(STORE)?, fs::metadata(LAKE)?);
    let of_lake = (lake.uid(), lake.mode());
    anyhow::ensure!(of_lake == (store.uid(), 0o40700), "{of_lake:?}");
    backed_up(store.uid())?;
    service.is_up()?;
    Ok(())
}

/// A copy of the store lies where the manual has it put.
fn backed_up(user: u32) -> anyhow::Result<()> {
    let manual = fs::read_to_string(repository("docs/serve.md"))?;
    let (_, command) = manual
        .split_once("second one, which is then below `/var/lib/private`:\n\n```sh\n")
        .context("no command")?;
    let (command, _) = command.split_once("```").context("no end")?;
    said("sh", &["-e", "-c", command])?;
    let copy = format!("{STATE}/iostep-backup/copy.db");
    let found = fs::metadata(&copy).context(copy.clone())?;
    let found = (found.uid(), found.mode());
    anyhow::ensure!(found == (user, 0o100600), "{found:?}");
    anyhow::ensure!(fs::read(copy)?.starts_with(b"SQLite format 3\0"));
    Ok(())
}

fn options(service: &Service) -> anyhow::Result<()> {
    let other = "127.0.0.1:7371";
    let line = format!("IOSTEP_SERVE_OPTIONS=--behind-proxy --listen {other}\n");
    fs::write(OPTIONS, line)?;
    systemctl(&["start", "iostep-serve"])?;
    service.is_up_at(other)?;
    anyhow::ensure!(!answers(ADDRESS), "it is where it was not told to be");
    Ok(())
}

fn failed(service: &Service) -> anyhow::Result<()> {
    // What it lacks comes later.
    let listener = TcpListener::bind(ADDRESS)?;
    let told = systemctl(&["start", "iostep-serve"]);
    anyhow::ensure!(told.is_err(), "what does not begin was said to be there");
    service.becomes("NRestarts", "1")?;
    drop(listener);
    wait_until("the server to answer", || answers(ADDRESS))?;
    systemctl(&["stop", "iostep-serve"])?;

    fs::write(OPTIONS, "IOSTEP_SERVE_OPTIONS=--no-such-option\n")?;
    let told = systemctl(&["start", "iostep-serve"]);
    anyhow::ensure!(told.is_err(), "it takes every option");
    service.becomes("ActiveState", "failed")?;
    for (property, value) in [("ExecMainStatus", "2"), ("NRestarts", "0")] {
        let found = service.shown(property)?;
        anyhow::ensure!(found == value, "{property} is {found}");
    }
    Ok(())
}

fn package(service: &Service) -> anyhow::Result<()> {
    // Nobody gets a server who did not ask for one.
    for old in ["", "0.1.0-1"] {
        script("postinst", &["configure", old])?;
        let state = state()?;
        anyhow::ensure!(state == ["inactive", "disabled"], "{state:?}");
    }
    systemctl(&["enable", "iostep-serve"])?;
    // As at a boot.
    systemctl(&["start", "multi-user.target"])?;
    let first = service.is_up()?;
    let id = submit(0)?;
    script("prerm", &["upgrade", "0.1.0-2"])?;
    anyhow::ensure!(service.is_up()? == first, "nothing is there to replace it");
    script("postrm", &["upgrade", "0.1.0-2"])?;
    script("postinst", &["configure", "0.1.0-1"])?;
    anyhow::ensure!(service.is_up()? != first, "it is still the old one");

    fs::write(OPTIONS, "IOSTEP_SERVE_OPTIONS=\n")?;
    script("prerm", &["remove"])?;
    let state = state()?;
    anyhow::ensure!(state == ["inactive", "disabled"], "{state:?}");
    let unit = fs::read(UNIT)?;
    fs::remove_file(UNIT)?;
    let removed = without_unit(service);
    fs::write(UNIT, unit)?;
    systemctl(&["daemon-reload"])?;
    removed?;
    // Installed again it has what was sent.
    lists(&[&id])
}

/// What dpkg does when the files are gone.
fn without_unit(service: &Service) -> anyhow::Result<()> {
    let removed = script("postrm", &["remove"])?;
    anyhow::ensure!(removed.stderr.is_empty(), "{removed:?}");
    let loaded = service.shown("LoadState")?;
    anyhow::ensure!(loaded == "not-found", "{loaded}");
    anyhow::ensure!(Path::new(OPTIONS).exists(), "only a purge removes them");
    let purged = script("postrm", &["purge"])?;
    anyhow::ensure!(purged.stderr.contains(STORE), "{purged:?}");
    anyhow::ensure!(!Path::new(OPTIONS).exists(), "they are left");
    Ok(())
}

/// Runs a script of the package, as dpkg does.
fn script(name: &str, arguments: &[&str]) -> anyhow::Result<Outcome> {
    let path = repository(&format!("packaging/debian/{name}"));
    let output = Command::new(path).args(arguments).output()?;
    Outcome::from(output).success()
}

/// Whether the unit runs, and whether it does at the next boot.
fn state() -> anyhow::Result<[String; 2]> {
    let said = |verb: &str| -> anyhow::Result<String> {
        let ask = Command::new("systemctl")
            .args([verb, "iostep-serve"])
            .output()?;
        Ok(String::from_utf8(ask.stdout)?.trim().to_owned())
    };
    Ok([said("is-active")?, said("is-enabled")?])
}

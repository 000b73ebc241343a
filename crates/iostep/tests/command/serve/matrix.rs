//! Results of `iostep lab run` and `iostep bench run`, brought to a server.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::*;
use crate::names;

/// A lab of quick cells with these seeds, one of them for whatever filesystem the directory is on.
fn lab(seeds: &str) -> String {
    format!(
        "[[cells]]\nworkload='file'\nsize='64KiB'\nsync='fdatasync'\nseed=[{seeds}]\n\
         filesystem=['ext4', 'xfs', 'btrfs', 'f2fs', 'fat32', 'nilfs2']\n"
    )
}

/// A directory on a disk, since there is no lab on a tmpfs, with a file of TOML.
fn directory(name: &str, text: &str) -> TempDir {
    let place = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    std::fs::write(place.path().join(name), text).expect("written");
    place
}

/// Runs the lab in that directory, whose results come into `out`.
fn run_lab(place: &TempDir, url: &str) -> Output {
    let run = [
        "lab",
        "run",
        "lab.toml",
        "--results=out",
        "--on=.",
        "--submit",
    ];
    iostep(place, &[&run[..], &[url]].concat())
}

/// The files that can be sent later.
fn sendable(place: &TempDir) -> Vec<String> {
    let bench = place.path().join("out/bench");
    assert!(
        bench.is_dir(),
        "no cell ran: {} is on none of a lab's filesystems; choose another CARGO_TARGET_DIR",
        place.path().display()
    );
    names(&bench)
}

fn listed(place: &TempDir) -> Vec<Value> {
    let list = iostep(place, &["serve", "list", "--data", "data", "--json"]);
    json(&list)["results"].as_array().expect("a list").clone()
}

/// A server that answers uploads as it is told, and then takes them.
struct Told {
    url: String,
    /// The statuses of uploads to come.
    answers: Arc<Mutex<VecDeque<u16>>>,
    /// How often it was connected to.
    connections: Arc<Mutex<u32>>,
}

impl Told {
    fn start(answers: &[u16]) -> Told {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let told = Told {
            url: format!("http://{address}"),
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
            connections: Arc::default(),
        };
        let answers = Arc::clone(&told.answers);
        let connections = Arc::clone(&told.connections);
        // It ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                *connections.lock().expect("nobody died") += 1;
                // Whoever asks may have gone.
                let _ = stream.and_then(|stream| answer(stream, &answers));
            }
        });
        told
    }

    fn connections(&self) -> u32 {
        *self.connections.lock().expect("nobody died")
    }

    fn answers_left(&self) -> usize {
        self.answers.lock().expect("nobody died").len()
    }
}

/// The answer to one request. An upload that is answered with 0 is not answered.
fn answer(mut stream: TcpStream, answers: &Mutex<VecDeque<u16>>) -> std::io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    input.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().expect("a length"),
            Some(_) => {}
            None => break,
        }
    }
    std::io::copy(&mut input.take(length), &mut std::io::sink())?;
    let (status, body) = match first.starts_with("POST") {
        false => (200, format!("{{\"nonce\": \"{}\"}}", "0".repeat(80))),
        true => {
            let status = answers.lock().expect("nobody died").pop_front();
            match status.unwrap_or(201) {
                0 => return Ok(()),
                201 => {
                    let accepted = serde_json::json!({
                        "id": "1d", "created": true, "state": "valid", "reasons": [], "test": "file",
                        "delete_token": "t0ken",
                    });
                    (201, accepted.to_string())
                }
                status => {
                    let error = serde_json::json!({"error": {"message": "as it was told"}});
                    (status, error.to_string())
                }
            }
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status} So\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_lab_brings_what_bench_measured_alone_and_sends_it_again_when_asked() {
    let more = "[[cells]]\nworkload='file'\nsize='64KiB'\nturns='x'\nrepeat=2\n\
                access=['write', 'append']\n\
                filesystem=['ext4', 'xfs', 'btrfs', 'f2fs', 'fat32', 'nilfs2']\n\
                [[cells]]\nworkload='file'\nsize='64KiB'\ncpu-load=1\n\
                filesystem=['ext4', 'xfs', 'btrfs', 'f2fs', 'fat32', 'nilfs2']\n";
    let place = directory("lab.toml", &format!("{}{more}", lab("1, 2")));
    let server = Server::start(place.path());
    let output = run_lab(&place, &server.url);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.starts_with("iostep: 6 of 30 cells are not sent to http://"),
        "{told}"
    );
    let files = sendable(&place);
    assert_eq!(files.len(), 4, "{told}");
    for file in &files {
        assert!(
            told.contains(&format!("out/bench/{file}: kept as ")),
            "{told}"
        );
    }
    assert_eq!(told.matches("token that takes it back: ").count(), 4);
    let runs = files.iter().map(|file| {
        let path = place.path().join("out/bench").join(file);
        Document::read(&path).expect("a result").runs.len()
    });
    let mut runs: Vec<usize> = runs.collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 1, 2, 2]);
    assert_eq!(listed(&place).len(), 4);

    // What is done is not sent by the lab again, and by the command as often as somebody likes.
    let output = run_lab(&place, &server.url);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!said(&output).contains(" as "), "{}", said(&output));
    for results in ["out", "out/lab.json"] {
        let output = iostep(&place, &["submit", results, "--to", &server.url]);
        let status = if results == "out" { Some(0) } else { Some(2) };
        assert_eq!(output.status.code(), status, "{}", said(&output));
        let again = crate::text(&output.stdout).matches("was there already");
        assert_eq!(again.count(), if results == "out" { 4 } else { 0 });
    }
    let merge = ["lab", "merge", "out", "--results", "all"];
    assert!(iostep(&place, &merge).status.success());
    let output = iostep(&place, &["submit", "all", "--to", &server.url, "--json"]);
    assert_eq!(json(&output).as_array().map(Vec::len), Some(4));
    assert_eq!(listed(&place).len(), 4);
}

#[test]
fn what_a_lab_could_not_bring_is_sent_later() {
    let place = directory("lab.toml", &lab("1, 2, 3"));
    let output = run_lab(&place, "ftp://x");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("ftp://x"), "{}", said(&output));
    assert!(!place.path().join("out").exists());

    // It is asked once between two cells, and once more at the end.
    let silent = Told::start(&[0, 0, 0, 0, 0, 0]);
    let output = run_lab(&place, &silent.url);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(sendable(&place).len(), 3, "{told}");
    assert_eq!(told.matches("it goes on").count(), 1, "{told}");
    assert_eq!(silent.answers_left(), 4, "{told}");
    assert_eq!(silent.connections(), 4, "{told}");
    let hint = format!(
        "iostep: 3 results not sent; iostep submit out --to {} sends all\n",
        silent.url
    );
    assert!(told.ends_with(&hint), "{told}");
    assert!(!told.contains("cells have no complete result"), "{told}");

    // A lab that goes on brings what it measures.
    std::fs::write(place.path().join("lab.toml"), lab("1, 2, 3, 4")).expect("written");
    let server = Server::start(place.path());
    let output = run_lab(&place, &server.url);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(listed(&place).len(), 1);
    let output = iostep(&place, &["submit", "out", "--to", &server.url, "--json"]);
    let created = json(&output);
    let created = created.as_array().expect("a list").iter();
    assert_eq!(created.filter(|one| one["created"] == true).count(), 3);
    assert_eq!(listed(&place).len(), 4);

    // What is damaged keeps nothing else away.
    let damaged = &sendable(&place)[0];
    std::fs::write(place.path().join("out/bench").join(damaged), "{}").expect("written");
    let output = iostep(&place, &["submit", "out", "--to", &server.url]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(damaged.as_str()), "{told}");
    let kept = String::from_utf8_lossy(&output.stdout);
    assert_eq!(kept.matches("was there already").count(), 3, "{kept}");
}

#[test]
fn a_server_that_has_no_time_gets_a_labs_results_at_the_end_and_one_that_refuses_does_not() {
    let place = directory("lab.toml", &lab("1, 2, 3"));
    // The first is too often twice, and then taken, the second is refused.
    let server = Told::start(&[429, 429, 201, 422]);
    let output = run_lab(&place, &server.url);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(server.answers_left(), 0, "{told}");
    assert_eq!(told.matches("kept as 1d, valid").count(), 2, "{told}");
    assert_eq!(told.matches("json: as it was told\n").count(), 1, "{told}");
    assert!(!told.contains("not sent"), "{told}");
}

#[test]
fn many_results_are_sent_as_fast_as_the_server_takes_them() {
    let place = directory("lab.toml", &lab("1, 2, 3"));
    let silent = Told::start(&[0, 0]);
    assert_eq!(run_lab(&place, &silent.url).status.code(), Some(1));
    let server = Told::start(&[429, 201, 503]);
    let output = iostep(&place, &["submit", "out", "--to", &server.url, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let kept: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(server.answers_left(), 0);
    // The third was not tried.
    assert_eq!(server.connections(), 6, "{}", said(&output));
}

#[test]
fn cells_of_a_job_file_are_brought_and_sent_later_by_their_files() {
    let place = directory(
        "jobs.toml",
        "[[job]]\nname='quick'\nworkload='file'\ntarget='.'\nsize='64KiB'\nseed=[1, 2]\n",
    );
    let run = |url: &str| {
        let run = ["bench", "run", "jobs.toml", "--results=out", "--submit"];
        iostep(&place, &[&run[..], &[url]].concat())
    };
    assert_eq!(run("ftp://x").status.code(), Some(2));
    assert!(!place.path().join("out").exists());
    let mut server = Server::start(place.path());
    let output = run(&server.url);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(said(&output).matches(": kept as ").count(), 2);
    assert_eq!(listed(&place).len(), 2);

    std::fs::remove_dir_all(place.path().join("out")).expect("it is there");
    assert!(server.signal(Signal::TERM).success());
    let output = run(&server.url);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let hint = "iostep: 2 results not sent; iostep submit out/*.json --to ";
    assert!(told.contains(hint), "{told}");
    let server = Server::start(place.path());
    let ends = |name: &String| name.ends_with(".json");
    let files = names(&place.path().join("out")).into_iter().filter(ends);
    let files: Vec<String> = files.map(|name| format!("out/{name}")).collect();
    let mut submit = vec!["submit", "--to", &server.url];
    submit.extend(files.iter().map(String::as_str));
    assert!(iostep(&place, &submit).status.success());
    assert_eq!(listed(&place).len(), 4);
}

#[test]
fn a_lab_without_a_result_of_bench_alone_has_nothing_to_send() {
    let place = directory("lab.toml", &lab("1").replace("seed=[1]", "switches='E'"));
    let server = Told::start(&[]);
    let output = run_lab(&place, &server.url);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = iostep(&place, &["submit", "out", "--to", &server.url]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("out: no cell of it has"),
        "{}",
        said(&output)
    );
    assert_eq!(server.connections(), 0);
}

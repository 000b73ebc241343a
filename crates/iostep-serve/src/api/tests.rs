mod described;
mod hostile;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use iostep_analyze::bench::Summary;
use iostep_model::bench::Document;
use iostep_model::hex;
use serde_json::Value;

use super::*;
use crate::client::{Accepted, Client, Fault};
use crate::signature::{self, KEY, NONCE, SIGNATURE};
use crate::{fixture, server};

/// A server of its own, which ends with the test.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _place: tempfile::TempDir,
}

impl Running {
    fn start() -> Running {
        Running::with(Limits::none())
    }

    fn with(limits: Limits) -> Running {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::create(&place.path().join("data")).expect("a store");
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let any = "127.0.0.1:0".parse().expect("an address");
            let stop = move || asked.load(Ordering::Relaxed);
            let ready = move |address| sender.send(address).expect("somebody waits");
            server::run(&store, any, limits, stop, ready).expect("it runs");
        });
        Running {
            address: receiver.recv().expect("an address"),
            stop,
            thread: Some(thread),
            _place: place,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn client(&self, key: u8) -> Client {
        Client::new(&self.url(), [key; 32]).expect("a URL")
    }

    /// Status and text of the answer to a request in bytes.
    fn raw(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream.write_all(request).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
        (status.unwrap_or(0), body.unwrap_or_default().to_owned())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let (status, body) = self.raw(request.as_bytes());
        let answer = serde_json::from_str(&body).unwrap_or_default();
        described::check("GET", path, status, &answer);
        (status, answer)
    }

    fn nonce(&self) -> crate::nonce::Nonce {
        let (status, answer) = self.get("/api/v1/nonce");
        assert_eq!(status, 200);
        hex::decode(answer["nonce"].as_str().expect("a text")).expect("a nonce")
    }

    /// An upload of a body that is signed as it should be, and sent otherwise if that is asked for.
    fn post(&self, nonce: &crate::nonce::Nonce, body: &[u8], sent: &Sent) -> (u16, Value) {
        let private = [1; 32];
        let signature = signature::sign(&private, nonce, body);
        let head = format!(
            "POST /api/v1/results HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             {KEY}: {}\r\n{NONCE}: {}\r\n{SIGNATURE}: {}\r\ncontent-length: {}\r\n{}\r\n",
            hex::encode(&signature::public(&private)),
            hex::encode(nonce),
            hex::encode(&signature),
            sent.length.unwrap_or(sent.body.len()),
            sent.more
        );
        let (status, answer) = self.raw(&[head.as_bytes(), &sent.body].concat());
        let answer = serde_json::from_str(&answer).unwrap_or_default();
        described::check("POST", "/api/v1/results", status, &answer);
        (status, answer)
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ended well");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What of an upload really goes over the wire.
#[derive(Default)]
struct Sent {
    body: Vec<u8>,
    length: Option<usize>,
    more: &'static str,
}

impl Sent {
    fn plain(body: &[u8]) -> Sent {
        Sent {
            body: body.to_vec(),
            ..Sent::default()
        }
    }
}

fn file(document: &Document) -> Vec<u8> {
    let summary = Summary::of(document);
    serde_json::to_vec(&serde_json::json!({ "result": document, "summary": summary }))
        .expect("JSON")
}

fn submit(client: &Client, share: f64) -> Accepted {
    let document = fixture::scaled(fixture::file(2), share);
    client.submit(&file(&document)).expect("it is taken")
}

#[test]
fn each_route_is_described_and_nothing_else_is() {
    let description = openapi::description();
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            assert!(operation["responses"].is_object(), "{method} {path}");
            described.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let there = routes().into_iter();
    let there: BTreeSet<String> = there
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert_eq!(described, there);
    let text = description.to_string();
    for reference in text.split("\"$ref\":\"#/").skip(1) {
        let pointer = reference.split('"').next().unwrap_or_default();
        let found = description.pointer(&format!("/{pointer}"));
        assert!(found.is_some(), "{pointer}");
    }
}

#[test]
fn an_upload_is_kept_once_read_back_and_taken_back() {
    let running = Running::start();
    let client = running.client(1);
    let first = submit(&client, 1.0);
    assert!(first.created);
    assert_eq!((&first.state[..], &first.reasons[..]), ("valid", &[][..]));
    let again = submit(&client, 1.0);
    assert!(!again.created);
    assert_eq!(again.id, first.id);
    assert_eq!(again.delete_token, first.delete_token);
    let other = submit(&running.client(2), 1.0);
    assert_eq!((&other.id, &other.delete_token), (&first.id, &None));

    let path = format!("/api/v1/results/{}", first.id);
    let (status, whole) = running.get(&path);
    assert_eq!(status, 200);
    assert_eq!(whole["submission"]["id"], first.id[..]);
    let kept = whole["result"].to_string();
    let upload = crate::upload::Upload::read(kept.as_bytes()).expect("a result");
    assert_eq!(hex::encode(&upload.id), first.id);
    let own = Summary::of(&fixture::file(2)).estimates[0].median;
    assert_eq!(
        whole["summary"]["estimates"][0]["median"].as_f64(),
        Some(own)
    );

    let (_, page) = running.get("/api/v1/results?state=valid&limit=10");
    assert_eq!(page["results"].as_array().map(Vec::len), Some(1));
    let refused = client.remove(&first.id, &"0".repeat(64));
    assert!(matches!(refused, Err(Fault::Refused { status: 403, .. })));
    let token = first.delete_token.expect("a token");
    client.remove(&first.id, &token).expect("taken back");
    assert_eq!(running.get(&path).0, 410);
    assert_eq!(
        running
            .get(&format!("/api/v1/results/{}", "0".repeat(64)))
            .0,
        404
    );
}

#[test]
fn a_ranking_counts_installations_and_says_of_what() {
    let running = Running::start();
    for number in 0..5_u8 {
        let share = 1.0 - f64::from(number) / 10.0;
        submit(&running.client(number), share);
    }
    let (status, tests) = running.get("/api/v1/tests");
    assert_eq!(status, 200);
    let test = "file,access=random-write,sync=fdatasync";
    assert_eq!(tests["tests"][0]["test"], test);
    assert_eq!(tests["tests"][0]["results"], 5);
    let path = format!("/api/v1/ranking?test={test}&filesystem=ext4");
    let (status, ranking) = running.get(&path);
    assert_eq!(status, 200);
    let place = &ranking["places"][0];
    assert_eq!(
        (&place["rank"], &place["installations"]),
        (&1.into(), &5.into())
    );
    let best = Summary::of(&fixture::file(2)).estimates[0].median;
    assert_eq!(place["best"].as_f64(), Some(best));
    assert_eq!(
        (&ranking["devices"], &ranking["next_offset"]),
        (&1.into(), &Value::Null)
    );
    assert_eq!(running.get("/api/v1/ranking?test=x&measure=luck").0, 400);
    assert_eq!(running.get("/api/v1/ranking?test=x&limit=0").0, 400);
    assert_eq!(running.get("/api/v1/ranking?tset=x").0, 400);
    assert_eq!(running.get("/api/v1/results?limit=501").0, 400);
    assert_eq!(running.get("/api/v1/results?state=odd").0, 400);
    assert_eq!(running.get("/api/v1/results/%ff").0, 400);
}

#[test]
fn a_ranking_has_pages_and_a_model_its_place_among_all() {
    let running = Running::start();
    for (device, model) in ["A", "B", "C"].into_iter().enumerate() {
        for number in 0..5_u8 {
            let share = 1.0 - (device as f64) / 4.0 - f64::from(number) / 100.0;
            let mut document = fixture::scaled(fixture::file(2), share);
            document.environment.disks[0].model = Some(model.into());
            let client = running.client(10 * device as u8 + number);
            client.submit(&file(&document)).expect("taken");
        }
    }
    let path = "/api/v1/ranking?test=file,access=random-write,sync=fdatasync";
    let parts = |page: &Value| -> Vec<String> {
        let places = page["places"].as_array().expect("places").iter();
        let part = |it: &Value| it["part"].as_str().unwrap_or_default().to_owned();
        places.map(part).collect()
    };
    let (_, whole) = running.get(path);
    let all = parts(&whole);
    assert_eq!(all.len(), 3, "{whole}");
    let (_, first) = running.get(&format!("{path}&limit=2"));
    assert_eq!(parts(&first), all[..2]);
    assert_eq!(
        (&first["devices"], &first["next_offset"]),
        (&3.into(), &2.into())
    );
    let (_, second) = running.get(&format!("{path}&limit=2&offset=2"));
    assert_eq!(parts(&second), all[2..]);
    assert_eq!(second["next_offset"], Value::Null);
    let (_, beyond) = running.get(&format!("{path}&offset=18446744073709551615"));
    assert_eq!(parts(&beyond), [""; 0]);
    // None of these is a phone, and an empty name is any.
    let (_, of_any) = running.get(&format!("{path}&model="));
    assert_eq!(parts(&of_any), all);
    let (_, of_none) = running.get(&format!("{path}&model=N9"));
    assert_eq!((parts(&of_none).len(), &of_none["devices"]), (0, &0.into()));
}

#[test]
fn what_is_not_signed_for_this_body_and_this_nonce_is_refused() {
    let running = Running::start();
    let body = file(&fixture::file(1));
    let nonce = running.nonce();
    let changed = [&body[..], b" "].concat();
    let (status, answer) = running.post(&nonce, &body, &Sent::plain(&changed));
    assert_eq!(
        (status, &answer["error"]["code"]),
        (401, &"signature".into())
    );
    let (status, _) = running.post(&nonce, &body, &Sent::plain(&body));
    assert_eq!(status, 201);
    let (status, answer) = running.post(&nonce, &body, &Sent::plain(&body));
    assert_eq!((status, &answer["error"]["code"]), (401, &"nonce".into()));
    let (status, answer) = running.post(&[0; 40], &body, &Sent::plain(&body));
    assert_eq!((status, &answer["error"]["code"]), (401, &"nonce".into()));
    let unsigned = b"POST /api/v1/results HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
        content-length: 2\r\n\r\n{}";
    assert_eq!(running.raw(unsigned).0, 401);
}

#[test]
fn bodies_that_are_cut_too_long_or_a_bomb_are_refused_and_the_server_goes_on() {
    let running = Running::start();
    let body = file(&fixture::file(1));
    let post = |sent: &Sent| {
        let nonce = running.nonce();
        let signed = &sent.body;
        running.post(&nonce, signed, sent)
    };
    let mut cut = Sent::plain(&body[..body.len() / 2]);
    cut.length = Some(body.len());
    let (status, answer) = post(&cut);
    assert_eq!((status, &answer["error"]["code"]), (400, &"cut_off".into()));
    let half = Sent::plain(&body[..body.len() / 2]);
    assert_eq!(post(&half).0, 422);
    let mut long = Sent::plain(b"");
    long.length = Some(MOST_SENT_BYTES + 1);
    let (status, answer) = post(&long);
    assert_eq!(
        (status, &answer["error"]["code"]),
        (413, &"too_long".into())
    );
    let bomb = vec![b' '; MOST_BYTES + 1];
    let mut bomb = Sent::plain(&zstd::bulk::compress(&bomb, 3).expect("packed"));
    bomb.more = "content-encoding: zstd\r\n";
    assert_eq!(post(&bomb).0, 413);
    let mut damaged = Sent::plain(&body);
    damaged.more = "content-encoding: gzip\r\n";
    assert_eq!(post(&damaged).0, 400);
    damaged.more = "content-encoding: br\r\n";
    assert_eq!(post(&damaged).0, 415);
    let mut false_claim = fixture::file(1);
    false_claim.runs[0].operations *= 2;
    let (status, answer) = post(&Sent::plain(&file(&false_claim)));
    assert_eq!(status, 422);
    assert!(answer["error"]["reasons"][0].is_string(), "{answer}");
    assert_eq!(post(&Sent::plain(&body)).0, 201);
    assert_eq!(running.get("/healthz").0, 200);
    let (_, text) = running.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(
        text.contains("iostep_serve_uploads_total{outcome=\"created\"} 1\n"),
        "{text}"
    );
    for (status, code, count) in [
        (400, "cut_off", 1),
        (413, "too_long", 2),
        (415, "encoding", 1),
        (422, "refused", 2),
    ] {
        let line = format!(
            "iostep_serve_refused_uploads_total{{status=\"{status}\",code=\"{code}\"}} {count}\n"
        );
        assert!(text.contains(&line), "{line}: {text}");
    }
}

/// A server that takes two uploads of one, and whom it tells that a third is too many.
fn takes_two(limits: Limits, whom: &str) -> Running {
    let running = Running::with(limits);
    let client = running.client(1);
    submit(&client, 1.0);
    submit(&client, 0.9);
    let third = file(&fixture::scaled(fixture::file(2), 0.8));
    let Err(Fault::Refused { status, message }) = client.submit(&third) else {
        panic!("it is taken");
    };
    let expected = format!("too many uploads of this {whom}; try again later");
    assert_eq!((status, message), (429, expected));
    running
}

#[test]
fn an_address_that_sends_too_often_is_told_so() {
    let per_address = 2;
    let limits = Limits {
        per_address,
        ..Limits::none()
    };
    takes_two(limits, "address");
}

#[test]
fn an_installation_that_sends_too_often_is_told_so_and_no_other_one() {
    let per_installation = 2;
    let limits = Limits {
        per_installation,
        ..Limits::none()
    };
    let running = takes_two(limits, "installation");
    assert!(submit(&running.client(2), 0.8).created);
}

#[test]
fn an_address_that_sends_too_much_in_a_day_is_told_so() {
    let body = file(&fixture::file(1));
    let most = 2 * body.len() as u64 + 10;
    let running = Running::with(Limits {
        bytes_per_day: most,
        ..Limits::none()
    });
    for expected in [201, 200, 429] {
        let (status, answer) = running.post(&running.nonce(), &body, &Sent::plain(&body));
        assert_eq!(status, expected, "{answer}");
    }
    // So is one that sends what is refused.
    let long = vec![b'x'; 2 * body.len()];
    let mut cut = Sent::plain(&long);
    cut.length = Some(3 * body.len());
    let (status, answer) = running.post(&running.nonce(), &long, &cut);
    assert_eq!(status, 429, "{answer}");
    // What is short goes on.
    let (status, _) = running.post(&running.nonce(), b"{}", &Sent::plain(b"{}"));
    assert_eq!(status, 422);
}

#[test]
fn an_address_that_asks_too_often_is_told_so_by_each_page_and_can_still_send() {
    let running = Running::with(Limits {
        questions_per_address: 3,
        ..Limits::none()
    });
    submit(&running.client(1), 1.0);
    for path in ["/", "/api/v1/tests", "/api/v1/results"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(running.raw(request.as_bytes()).0, 200, "{path}");
    }
    let id = "0".repeat(64);
    for path in [
        "/",
        "/search?q=x",
        "/methodology",
        "/compare",
        "/device/x",
        &format!("/result/{id}"),
        "/api/v1/tests",
        "/api/v1/results",
        &format!("/api/v1/results/{id}"),
        "/api/v1/ranking?test=x",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(running.address).expect("connected");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        assert!(text.starts_with("HTTP/1.1 429 "), "{path}: {text}");
        assert!(text.contains("\r\nretry-after: "), "{path}: {text}");
        assert!(text.contains("too many requests of this address"), "{text}");
    }
    assert!(submit(&running.client(1), 0.9).created);
    assert_eq!(running.get("/healthz").0, 200);
}

#[test]
fn what_is_no_page_says_so_in_json() {
    let running = Running::start();
    for (path, status, code) in [
        ("/api/v2/results", 404, "no_page"),
        ("/api/v1/results/x", 400, "id"),
    ] {
        let (found, answer) = running.get(path);
        assert_eq!((found, &answer["error"]["code"]), (status, &code.into()));
    }
    let put = b"PUT /api/v1/results HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(running.raw(put).0, 405);
}

#[test]
fn the_end_waits_for_nobody_who_is_idle() {
    let mut running = Running::start();
    let idle = TcpStream::connect(running.address).expect("connected");
    submit(&running.client(1), 1.0);
    running.end();
    assert!(TcpStream::connect(running.address).is_err());
    drop(idle);
}

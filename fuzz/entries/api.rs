//! What a server of results answers to any bytes on a connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use iostep_model::hex;
use iostep_serve::api::Limits;
use iostep_serve::signature::{self, KEY, KEY_BYTES, NONCE, SIGNATURE};
use iostep_serve::store::{Change, Store};
use iostep_serve::upload::Upload;
use iostep_serve::{nonce, server};

/// Results that the server has.
const RESULTS: [&[u8]; 2] = [
    include_bytes!("../../crates/iostep/tests/old-0.1/file.json"),
    include_bytes!("../../crates/iostep/tests/old-0.1/sqlite.json"),
];
/// How each script of a page begins: the page's own, and data.
const OWN_SCRIPTS: [&str; 2] = [" type=\"module\" src=\"/", " type=\"application/json\" id="];
/// Whoever sends.
const PRIVATE: [u8; KEY_BYTES] = [5; KEY_BYTES];

/// Sends the bytes to a server. Bytes that begin with `sign` are a part of an upload's head, and after an
/// empty line its body, which is signed as it has to be. Returns the status; 0 without an answer.
pub fn run(bytes: &[u8]) -> u16 {
    let request = bytes.strip_prefix(b"sign").map_or(bytes.to_vec(), signed);
    let answer = ask(&request);
    if answer.is_empty() {
        // What is no request at all is not answered.
        return 0;
    }
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1."), "{text}");
    // Whoever asks is told to go on before.
    let text = match text.split_once("\r\n\r\n") {
        Some((head, rest)) if head.starts_with("HTTP/1.1 100 ") => rest,
        _ => &text,
    };
    if text.is_empty() {
        return 0;
    }
    let status = text.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.unwrap_or(0);
    assert!((200..500).contains(&status), "{text}");
    // No part of a request is one of a page.
    let is_page = text.contains("content-type: text/html");
    for script in text.split("<script").skip(1).filter(|_| is_page) {
        let mut own = OWN_SCRIPTS.iter();
        assert!(own.any(|own| script.starts_with(own)), "{text}");
    }
    status
}

/// All that the server answers until it ends the connection.
fn ask(request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address()).expect("the server is there");
    let minute = Some(Duration::from_secs(60));
    stream.set_read_timeout(minute).expect("set");
    // It may have ended the connection before it got all.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("no answer within a minute")
        }
        _ => answer,
    }
}

fn signed(rest: &[u8]) -> Vec<u8> {
    let end = rest.windows(4).position(|it| it == b"\r\n\r\n");
    let (head, body) = end.map_or((&rest[..0], rest), |at| (&rest[..at], &rest[at + 4..]));
    let answer = ask(b"GET /api/v1/nonce HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let digits = answer.split("\"nonce\":\"").nth(1).expect("a nonce");
    let nonce: Option<nonce::Nonce> = hex::decode(&digits[..2 * nonce::BYTES]);
    let nonce = nonce.expect("hexadecimal digits");
    let signature = signature::sign(&PRIVATE, &nonce, body);
    let line = format!(
        "POST /api/v1/results HTTP/1.1\r\nhost: x\r\n{KEY}: {}\r\n{NONCE}: {}\r\n{SIGNATURE}: {}\r\n\
         content-length: {}\r\n",
        hex::encode(&signature::public(&PRIVATE)),
        hex::encode(&nonce),
        hex::encode(&signature),
        body.len(),
    );
    [line.as_bytes(), head, b"\r\n\r\n", body].concat()
}

/// Where the server of this process is; it lives as long.
fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let place = tempfile::tempdir().expect("a temporary directory");
        let store = Store::create(&place.path().join("data")).expect("a store");
        for result in RESULTS {
            let upload = Upload::read(result).expect("a result");
            let change = Change::add(upload, [1; 32]).expect("packed");
            store.change(&change).expect("kept");
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let any = "127.0.0.1:0".parse().expect("an address");
            let ready = |address| sender.send(address).expect("somebody waits");
            let ended = server::run(&store, any, Limits::none(), || false, ready);
            drop(place);
            panic!("the server ended: {ended:?}");
        });
        receiver.recv().expect("the server began")
    })
}

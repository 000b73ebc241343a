//! Those who want nothing measured.

use super::*;

/// Long enough for a test's own requests on a busy machine, and not longer.
const SHORT: Patience = Patience {
    head: Duration::from_secs(2),
    body: Duration::from_secs(2),
    answer: Duration::from_secs(2),
};

fn impatient() -> Running {
    Running::with(Limits {
        patience: SHORT,
        ..Limits::none()
    })
}

fn connect(running: &Running) -> TcpStream {
    TcpStream::connect(running.address).expect("connected")
}

/// What comes until the server closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is broken off has ended too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn metric(running: &Running, name: &str) -> u64 {
    let (_, text) = running.raw(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(&format!("iostep_serve_{name} ")));
    value.and_then(|it| it.parse().ok()).expect("a number")
}

/// Waits until the server has no connection but the one that asks.
fn wait_until_alone(running: &Running) {
    while metric(running, "connections") > 1 {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn heads_and_bodies_that_do_not_come_are_not_waited_for() {
    let running = impatient();
    let silent = connect(&running);
    let mut half = connect(&running);
    half.write_all(b"GET /healthz HTTP/1.1\r\nhost: ")
        .expect("sent");
    let mut idle = connect(&running);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        .expect("sent");
    let mut slow = connect(&running);
    let nonce = running.nonce();
    let signature = signature::sign(&[1; 32], &nonce, b"");
    let head = format!(
        "POST /api/v1/results HTTP/1.1\r\nhost: x\r\n{KEY}: {}\r\n{NONCE}: {}\r\n\
         {SIGNATURE}: {}\r\ncontent-length: 1000\r\n\r\n{{",
        hex::encode(&signature::public(&[1; 32])),
        hex::encode(&nonce),
        hex::encode(&signature),
    );
    slow.write_all(head.as_bytes()).expect("sent");
    // Each of these returns once the server closes.
    let slow = rest(slow);
    assert!(slow.starts_with("HTTP/1.1 408 "), "{slow}");
    assert!(slow.contains("\"slow\""), "{slow}");
    let _ = (rest(silent), rest(half));
    let idle = rest(idle);
    assert_eq!(idle.matches("HTTP/1.1 200 ").count(), 1, "{idle}");
    wait_until_alone(&running);
}

#[test]
fn whoever_takes_no_answer_is_not_served_for_ever() {
    let running = impatient();
    let mut greedy = connect(&running);
    greedy.set_nonblocking(true).expect("set");
    let request = b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    // Until what is asked for is more than both ends keep.
    let mut left = 64 << 20;
    while left > 0 {
        match greedy.write(&request) {
            Ok(count) => left -= count.min(left),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(left > 0, "the server took all");
    wait_until_alone(&running);
    drop(greedy);
}

#[test]
fn nobody_alone_keeps_all_others_away() {
    let running = Running::start();
    let many: Vec<TcpStream> = (0..600).map(|_| connect(&running)).collect();
    // Another address of this machine.
    let other = std::net::TcpListener::bind("127.0.0.2:0");
    let is_there = other.is_ok();
    drop(other);
    assert!(is_there, "127.0.0.0/8 is this machine");
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    );
    let socket = socket.expect("a socket");
    let from: SocketAddr = "127.0.0.2:0".parse().expect("an address");
    rustix::net::bind(&socket, &from).expect("bound");
    rustix::net::connect(&socket, &running.address).expect("connected");
    let mut stream = TcpStream::from(socket);
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let answer = rest(stream);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("iostep_serve_connections 129\n"),
        "{answer}"
    );
    assert!(
        answer.contains("iostep_serve_turned_away_total 472\n"),
        "{answer}"
    );
    drop(many);
}

/// An upload that no key signed, said to be for somebody else.
fn forwarded(running: &Running, names: &str) -> u16 {
    let request = format!(
        "POST /api/v1/results HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{names}\
         content-length: 0\r\n\r\n"
    );
    running.raw(request.as_bytes()).0
}

#[test]
fn what_a_sender_says_of_its_address_counts_only_behind_a_proxy() {
    let limits = |behind_proxy| Limits {
        per_address: 2,
        behind_proxy,
        ..Limits::none()
    };
    let open = Running::with(limits(false));
    let answers: Vec<u16> = (0..3)
        .map(|it| forwarded(&open, &format!("x-forwarded-for: 192.0.2.{it}\r\n")))
        .collect();
    assert_eq!(answers, [401, 401, 429]);
    let proxied = Running::with(limits(true));
    for it in 0..3 {
        let names = format!("x-forwarded-for: 192.0.2.{it}\r\n");
        assert_eq!(forwarded(&proxied, &names), 401);
    }
    // The client's own words come first, in its header or in one before it.
    for (it, expected) in [(0, 401), (1, 429), (2, 429)] {
        let names = format!("x-forwarded-for: 198.51.100.{it}, 192.0.2.0\r\n");
        assert_eq!(forwarded(&proxied, &names), expected);
        let names = format!("x-forwarded-for: 198.51.100.{it}\r\nx-forwarded-for: 192.0.2.0\r\n");
        assert_eq!(forwarded(&proxied, &names), 429);
    }
    // As some proxies write it.
    for address in ["192.0.2.8:5555", "[2001:db8::1]:443", "[2001:db8:1::1]"] {
        let names = format!("x-forwarded-for: {address}\r\n");
        assert_eq!(forwarded(&proxied, &names), 401, "{address}");
    }
    for names in ["", "x-forwarded-for: me\r\n", "x-forwarded-for: ,\r\n"] {
        let _ = forwarded(&proxied, names);
    }
    assert_eq!(forwarded(&proxied, ""), 429);
}

#[test]
fn a_request_ends_where_all_agree_that_it_ends() {
    let running = Running::start();
    let hidden = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";
    for (framing, most_answers) in [
        // Chunks say where it ends; what follows is a request of its own, as any proxy would have it.
        (
            "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            2,
        ),
        ("content-length: 0\r\ncontent-length: 40\r\n\r\n", 1),
        ("content-length: +40\r\n\r\n", 1),
        ("content-length: 4 0\r\n\r\n", 1),
        ("content-length: 99999999999999999999\r\n\r\n", 1),
        ("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 1),
        ("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 1),
        ("transfer-encoding : chunked\r\n\r\n0\r\n\r\n", 1),
        ("transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 1),
        ("a: b\r\n\tcontent-length: 40\r\n\r\n", 2),
    ] {
        let request = format!("POST /api/v1/results HTTP/1.1\r\nhost: x\r\n{framing}{hidden}");
        let mut stream = connect(&running);
        stream.write_all(request.as_bytes()).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("shut");
        let answers = rest(stream);
        let count = answers.matches("HTTP/1.1 ").count();
        assert!(count <= most_answers, "{framing:?}: {answers}");
        assert!(!answers.contains("HTTP/1.1 2"), "{framing:?}: {answers}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(1 << 20));
    let mut stream = connect(&running);
    // It may be closed before all is sent.
    let _ = stream.write_all(long.as_bytes());
    let answer = rest(stream);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    assert_eq!(running.get("/healthz").0, 200);
}

#[test]
fn names_of_a_device_are_words_and_no_commands() {
    let running = Running::start();
    let mut document = fixture::file(1);
    let name = "\u{1b}[2J</script><script>alert(1)</script>'; DROP TABLE submission; --\0\u{202e}";
    document.environment.disks[0].vendor = None;
    document.environment.disks[0].model = Some(name.into());
    let accepted = running.client(1).submit(&file(&document)).expect("taken");
    let (_, whole) = running.get(&format!("/api/v1/results/{}", accepted.id));
    assert_eq!(whole["submission"]["device"]["part"], name.trim());
    let request = format!(
        "GET /api/v1/results/{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        accepted.id
    );
    let mut stream = connect(&running);
    stream.write_all(request.as_bytes()).expect("sent");
    let answer = rest(stream);
    assert!(
        answer.contains("x-content-type-options: nosniff"),
        "{answer}"
    );
    assert!(
        answer.contains("content-type: application/json"),
        "{answer}"
    );
    assert!(!answer.contains('\u{1b}'), "{answer}");
}

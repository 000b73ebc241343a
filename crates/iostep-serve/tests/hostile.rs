//! Requests that nobody thought of.

#[path = "../../../fuzz/entries/api.rs"]
mod api;
#[path = "../../../fuzz/entries/mangle.rs"]
mod mangle;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;

use mangle::mangle;
use mutate::Random;

const SEEDS: u64 = 4_000;

/// A request of each kind.
fn requests() -> Vec<Vec<u8>> {
    let paths = [
        "/",
        "/?test=sqlite&measure=total_p99_ns&filesystem=ext4&kernel=6&page=1",
        "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/search?q=%22%3E%3Cscript%3E",
        "/device/~~ACME%20Flash~0",
        "/compare?device=~~a~0&device=~~b~1",
        "/result/00",
        "/methodology",
        "/healthz",
        "/metrics",
        "/api/v1/openapi.json",
        "/api/v1/nonce",
        "/api/v1/results?state=valid&test=file&limit=2&before=9",
        "/api/v1/results/0000000000000000000000000000000000000000000000000000000000000000",
        "/api/v1/tests",
        "/api/v1/ranking?test=file&measure=operations_per_second&part=x&android=14",
        "/%00/..%2f/\u{202e}",
    ];
    let get = |path: &&str| {
        format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept: text/html\r\nconnection: close\r\n\r\n")
            .into_bytes()
    };
    let mut requests: Vec<Vec<u8>> = paths.iter().map(get).collect();
    for head in [
        "DELETE /api/v1/results/00 HTTP/1.1\r\nhost: x\r\niostep-delete-token: 00",
        "POST /api/v1/results HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
        "POST /api/v1/results HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0",
    ] {
        requests.push(format!("{head}\r\n\r\n").into_bytes());
    }
    let result = include_bytes!("../../iostep/tests/old-0.1/file.json");
    let frame = zstd::bulk::compress(result, 1).expect("packed");
    let stream = zstd::encode_all(&result[..], 1).expect("packed");
    for (encoding, body) in [
        ("identity", &result[..]),
        ("zstd", &frame),
        ("zstd", &stream),
        ("gzip", b"\x1f\x8b"),
    ] {
        let head = format!("signconnection: close\r\ncontent-encoding: {encoding}\r\n\r\n");
        requests.push([head.as_bytes(), body].concat());
    }
    requests
}

#[test]
fn no_request_is_more_than_the_server_can_bear() {
    // A task that dies leaves its connection without an answer, as one that is no request.
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default(panic);
        std::process::abort();
    }));
    let requests = requests();
    for request in &requests {
        assert_ne!(api::run(request), 0, "{request:?}");
    }
    // The server has the result whose uploads these are.
    let uploads = requests
        .iter()
        .filter(|request| request.starts_with(b"sign"));
    let statuses: Vec<u16> = uploads.map(|request| api::run(request)).collect();
    assert_eq!(statuses, [200, 200, 200, 400]);
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let request = requests[random.below(requests.len())].clone();
        api::run(&mangle(request, &mut random));
    }
    // It is still there.
    assert_eq!(api::run(&requests[0]), 200);
}

//! What `bench/serve` measures with: a server whose log may be SQLite's own, many clients at once,
//! a store of many results, and a ranking of them.

use std::cmp::Reverse;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use iostep_model::bench::Document;
use iostep_model::disk::Disk;
use iostep_model::hex;
use iostep_serve::api::Limits;
use iostep_serve::signature::{self, KEY, NONCE, SIGNATURE};
use iostep_serve::store::{Change, Store, Writer};
use iostep_serve::subject::Product;
use iostep_serve::upload::{self, Upload};
use iostep_serve::{nonce, server};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: load serve waldio|stock DIR
       load upload HOST:PORT RESULT CLIENTS SECONDS [RATE]
       load fill DIR RESULT COUNT
       load rank HOST:PORT TEST TIMES";

/// Devices and installations of the results that are made: some devices are more common than others.
const DEVICES: u64 = 500;
const INSTALLATIONS: u64 = 200_000;
/// Changes that wait for the store at once while it is filled.
const WAITING: u64 = 256;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", log, directory] => serve(log, Path::new(directory)),
        ["upload", address, result, clients, seconds] => {
            upload(address, result, clients.parse()?, seconds.parse()?, None)
        }
        ["upload", address, result, clients, seconds, rate] => upload(
            address,
            result,
            clients.parse()?,
            seconds.parse()?,
            Some(rate.parse()?),
        ),
        ["fill", directory, result, count] => fill(Path::new(directory), result, count.parse()?),
        ["rank", address, test, times] => rank(address, test, times.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// Serves until standard input ends; prints the address.
fn serve(log: &str, directory: &Path) -> Result<()> {
    let store = match log {
        "waldio" => Store::create(directory)?,
        "stock" => Store::create_stock(directory)?,
        _ => return Err(USAGE.into()),
    };
    static ENDED: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ENDED.store(true, Ordering::Relaxed);
    });
    let any = "127.0.0.1:0".parse()?;
    let ready = |address| println!("{address}");
    server::run(
        &store,
        any,
        Limits::none(),
        || ENDED.load(Ordering::Relaxed),
        ready,
    )?;
    Ok(())
}

/// splitmix64: the same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// What is sent of a file of `iostep bench -o`, as if a quiet machine with a disk of its own had measured
/// it: one that is not ranked is less work.
fn result(path: &str) -> Result<Document> {
    let sent = upload::to_send(&std::fs::read(path)?)?;
    let mut document = Document::parse(Path::new(path), &sent)?;
    document.warnings.clear();
    for run in &mut document.runs {
        run.cpu.machine = None;
    }
    document.environment.disks = vec![Disk {
        name: "sda".into(),
        model: Some("Bench".into()),
        capacity_bytes: Some(1 << 40),
        ..Disk::default()
    }];
    let reasons = Upload::read(&serde_json::to_vec(&document)?)?.reasons;
    match reasons.first() {
        None => Ok(document),
        Some(reason) => Err(format!("{path} would not be ranked: {}", reason.text).into()),
    }
}

/// A connection that stays.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn new(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// The status and the body of the answer to a request.
    fn ask(&mut self, head: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
        let request = format!(
            "{head}\r\nhost: bench\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.0
            .get_mut()
            .write_all(&[request.as_bytes(), body].concat())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).ok_or("no answer")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok((status, answer))
    }
}

impl Connection {
    /// Asks the same several times: the milliseconds that each answer took, and the last one's body.
    fn times(&mut self, head: &str, times: usize) -> Result<(Vec<f64>, Vec<u8>)> {
        let mut took_ms = Vec::new();
        let mut last = Vec::new();
        for _ in 0..times {
            let before = Instant::now();
            let (status, body) = self.ask(head, b"")?;
            took_ms.push(before.elapsed().as_secs_f64() * 1e3);
            last = body;
            if status != 200 {
                return Err(String::from_utf8_lossy(&last).into());
            }
        }
        Ok((took_ms, last))
    }
}

/// What clients send at once.
struct Load<'a> {
    address: &'a str,
    result: Document,
    /// Results of each: more than are sent.
    many: u64,
    time: Duration,
    clients: u64,
    /// Uploads a second of all of them, each begun when it is due; `None`: each when the one before is done.
    rate: Option<f64>,
    start: Barrier,
}

/// What came of one client's uploads.
#[derive(Default)]
struct Sent {
    taken_ns: Vec<u64>,
    took: Duration,
    /// How often it was told to try again.
    refused: u64,
}

impl Load<'_> {
    /// Packed results, each of another machine.
    fn bodies(&self, number: u64) -> std::io::Result<Vec<Vec<u8>>> {
        (0..self.many)
            .map(|count| {
                let mut another = self.result.clone();
                another.environment.memory_bytes = number * self.many + count + 1;
                zstd::bulk::compress(&serde_json::to_vec(&another)?, 1)
            })
            .collect()
    }

    /// When an upload begins, or has to: what waits for its turn is late.
    fn begin(&self, start: Instant, client: u64, upload: u64) -> Instant {
        let Some(rate) = self.rate else {
            return Instant::now();
        };
        let turn = (upload * self.clients + client) as f64;
        let due = start + Duration::from_secs_f64(turn / rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due
    }

    fn client(&self, number: u64) -> Result<Sent> {
        // Before the start: it is done by many machines elsewhere.
        let bodies = self.bodies(number)?;
        let mut private = [7; 32];
        private[..8].copy_from_slice(&number.to_le_bytes());
        let key = hex::encode(&signature::public(&private));
        let mut connection = Connection::new(self.address)?;
        let mut sent = Sent::default();
        self.start.wait();
        let start = Instant::now();
        for (upload, body) in (0..).zip(&bodies) {
            let before = self.begin(start, number, upload);
            if before - start > self.time {
                break;
            }
            let (_, answer) = connection.ask("GET /api/v1/nonce HTTP/1.1", b"")?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let nonce = answer["nonce"]
                .as_str()
                .and_then(hex::decode::<{ nonce::BYTES }>);
            let nonce = nonce.ok_or("no nonce")?;
            let head = format!(
                "POST /api/v1/results HTTP/1.1\r\ncontent-encoding: zstd\r\n{KEY}: {key}\r\n\
                 {NONCE}: {}\r\n{SIGNATURE}: {}",
                hex::encode(&nonce),
                hex::encode(&signature::sign(&private, &nonce, body))
            );
            let (status, answer) = connection.ask(&head, body)?;
            match status {
                201 => sent.taken_ns.push(before.elapsed().as_nanos() as u64),
                503 => sent.refused += 1,
                _ => return Err(String::from_utf8_lossy(&answer).into()),
            }
        }
        sent.took = start.elapsed();
        Ok(sent)
    }
}

/// Uploads results by clients at once; prints uploads a second, the median and the 99th percentile of
/// the milliseconds from when the nonce is asked for, or is to be, to the answer, and how many were to be
/// tried again.
fn upload(address: &str, path: &str, clients: u64, seconds: u64, rate: Option<f64>) -> Result<()> {
    let load = Load {
        address,
        result: result(path)?,
        many: 4_000 * seconds / clients + 1,
        time: Duration::from_secs(seconds),
        clients,
        rate,
        start: Barrier::new(clients as usize),
    };
    let load = &load;
    let sent = std::thread::scope(|scope| -> Result<Vec<Sent>> {
        let threads: Vec<_> = (0..clients)
            .map(|number| scope.spawn(move || load.client(number)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.map_err(|_| "a client died")?).collect()
    })?;
    let took = sent.iter().map(|it| it.took).max().unwrap_or_default();
    let refused: u64 = sent.iter().map(|it| it.refused).sum();
    let mut taken_ns: Vec<u64> = sent.into_iter().flat_map(|it| it.taken_ns).collect();
    if taken_ns.len() as u64 >= load.many * clients {
        return Err("all results were sent before the time was over".into());
    }
    taken_ns.sort_unstable();
    let at = |share: f64| {
        let place = (taken_ns.len() as f64 * share).ceil() as usize;
        let taken_ns = taken_ns.get(place.saturating_sub(1));
        *taken_ns.unwrap_or(&0) as f64 / 1e6
    };
    println!(
        "{:.1} {:.2} {:.2} {refused}",
        taken_ns.len() as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
    );
    Ok(())
}

/// Fills a store with results of many devices and installations. Prints the test's name.
fn fill(directory: &Path, path: &str, count: u64) -> Result<()> {
    let one = Upload::read(&serde_json::to_vec(&result(path)?)?)?;
    let Change::Add { packed, .. } = Change::add(one.clone(), [0; 32])? else {
        return Err("an upload is something else".into());
    };
    let writer = Writer::start(Store::create(directory)?)?;
    let mut random = Random(1);
    let (sender, answers) = mpsc::channel();
    for number in 0..count + WAITING {
        if number >= WAITING {
            answers.recv()??;
        }
        if number >= count {
            continue;
        }
        let mut another = one.clone();
        another.body = Vec::new();
        another.reasons = Vec::new();
        for part in another.id.chunks_mut(8) {
            part.copy_from_slice(&random.next().to_le_bytes());
        }
        let device = (random.share() * random.share() * DEVICES as f64) as u64;
        let installation = random.next() % INSTALLATIONS;
        another.device.vendor = format!("Vendor {}", device % 20);
        another.device.model = format!("Phone {device}");
        another.device.part = format!("Part {}", device % 50);
        another.device.firmware = format!("{}", random.next() % 3);
        for figure in &mut another.figures {
            figure.value *= (1.0 + device as f64 / DEVICES as f64) * (0.8 + 0.4 * random.share());
        }
        // Of an installation that has one phone.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&installation.to_le_bytes());
        key[8..16].copy_from_slice(&device.to_le_bytes());
        let change = Change::Add {
            upload: Box::new(another),
            packed: packed.clone(),
            key,
        };
        let sender = sender.clone();
        let reply = Box::new(move |outcome: std::result::Result<_, std::sync::Arc<_>>| {
            let done = outcome
                .map(drop)
                .map_err(|error: std::sync::Arc<iostep_serve::Error>| error.to_string());
            let _ = sender.send(done);
        });
        if !writer.change(change, reply) {
            return Err("the store takes no more".into());
        }
    }
    println!("{}", one.test);
    Ok(())
}

/// How many devices are compared.
const COMPARED: usize = 5;

/// Asks for a ranking, then for its page, that of the device of most results, and a comparison of the
/// five of most; prints the milliseconds of the first time, the median and the greatest of the others, the
/// same two of each page, the devices, the results, and how many the device and the compared ones have.
fn rank(address: &str, test: &str, times: usize) -> Result<()> {
    let mut connection = Connection::new(address)?;
    let (mut took_ms, answer) = connection.times(
        &format!("GET /api/v1/ranking?test={test} HTTP/1.1"),
        times + 1,
    )?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let places = answer["places"].as_array().ok_or("no ranking")?;
    let first = took_ms.remove(0);
    let mut most: Vec<&Value> = places.iter().collect();
    most.sort_by_key(|place| Reverse(place["results"].as_u64()));
    most.truncate(COMPARED);
    let keys: Vec<String> = most.iter().map(|place| key(place)).collect();
    let best = places.first().ok_or("no device")?;
    let pages = [
        (format!("/?test={test}&page=1"), best),
        (format!("/device/{}", keys[0]), most[0]),
        (
            format!("/compare?device={}", keys.join("&device=")),
            most[0],
        ),
    ];
    let mut all = vec![took_ms];
    for (page, shown) in pages {
        let (took_ms, page) = connection.times(&format!("GET {page} HTTP/1.1"), times)?;
        let model = shown["model"].as_str().ok_or("no model")?;
        if !String::from_utf8_lossy(&page).contains(model) {
            return Err(format!("a page is without {model}").into());
        }
        all.push(took_ms);
    }
    print!("{first:.1}");
    for mut took_ms in all {
        took_ms.sort_by(f64::total_cmp);
        let (median, most) = (took_ms[took_ms.len() / 2], took_ms[took_ms.len() - 1]);
        print!(" {median:.2} {most:.2}");
    }
    let results = |place: &&Value| place["results"].as_u64();
    println!(
        " {} {} {} {}",
        places.len(),
        places
            .iter()
            .filter_map(|place| results(&place))
            .sum::<u64>(),
        results(&most[0]).unwrap_or_default(),
        most.iter().filter_map(results).sum::<u64>(),
    );
    Ok(())
}

/// A ranked device's name in addresses.
fn key(place: &Value) -> String {
    let text = |name: &str| place[name].as_str().unwrap_or_default().to_owned();
    let product = Product {
        vendor: text("vendor"),
        model: text("model"),
        part: text("part"),
        capacity_bytes: place["capacity_bytes"].as_u64().unwrap_or_default(),
    };
    // Of those that are made here, no name has anything else.
    product.key().replace(' ', "%20")
}

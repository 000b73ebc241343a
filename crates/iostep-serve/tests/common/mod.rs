//! A server with the results of many devices, for tests of its pages.

// Each test uses its own part of this.
#![allow(dead_code)]

#[path = "../../src/fixture.rs"]
mod fixture;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use iostep_model::bench::{Document, Warning};
use iostep_model::hex;
use iostep_model::host::Android;
use iostep_serve::api::Limits;
use iostep_serve::server;
use iostep_serve::store::{Change, State, Store};
use iostep_serve::subject::{Device, Product};
use iostep_serve::upload::Upload;
use rusqlite::{Connection, OpenFlags};

/// What somebody who means harm calls their device. The server takes it: it is printable as hardware's
/// names are, or becomes so where it is shown.
pub const HOSTILE: &str = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=\"x\u{202e}~%&\n";

/// A server that ends with the test.
pub struct Running {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _place: tempfile::TempDir,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// A header's value; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(it, _)| it.eq_ignore_ascii_case(name));
        found.next().map_or("", |(_, value)| value)
    }
}

impl Running {
    /// With what `fill` puts into its store.
    pub fn start(fill: impl FnOnce(&Fleet)) -> Running {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::create(&place.path().join("data")).expect("a store");
        fill(&Fleet(store.clone()));
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let any = "127.0.0.1:0".parse().expect("an address");
            let stop = move || asked.load(Ordering::Relaxed);
            let ready = move |address| sender.send(address).expect("somebody waits");
            server::run(&store, any, Limits::none(), stop, ready).expect("it runs");
        });
        Running {
            address: receiver.recv().expect("an address"),
            stop,
            thread: Some(thread),
            _place: place,
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    pub fn ask(&self, method: &str, path: &str, more: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn json(&self, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.get(path).body).expect("JSON")
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

/// A store to be filled.
pub struct Fleet(Store);

/// The phones of [`Fleet::many`]: maker, model, storage, its capacity in GiB, Android, kernel, how
/// fast it is, and how many have one.
type Phone = (
    &'static str,
    &'static str,
    &'static str,
    u64,
    &'static str,
    &'static str,
    f64,
    u32,
);
const PHONES: [Phone; 12] = [
    (
        "Nordlicht",
        "N9 Pro",
        "SAMSUNG KLUFG8R1EM",
        256,
        "16",
        "6.6.77-android15-8",
        6.1,
        19,
    ),
    (
        "Nordlicht",
        "N9",
        "SKhynix H9HQ21AFAM",
        128,
        "16",
        "6.6.77-android15-8",
        5.2,
        16,
    ),
    (
        "Acme",
        "Rocket 12",
        "KIOXIA THGJFJT1E45",
        256,
        "15",
        "6.1.118-android14-11",
        4.4,
        14,
    ),
    (
        "Acme",
        "Rocket 12 Lite",
        "Micron MT128GAXAT4U31",
        128,
        "15",
        "6.1.118-android14-11",
        2.9,
        12,
    ),
    (
        "Blauwal",
        "Fold 5G Ultra Limited Edition",
        "SAMSUNG KLUEG8UHGC",
        512,
        "15",
        "5.15.167-android13-8",
        4.9,
        9,
    ),
    (
        "Blauwal",
        "A3",
        "SKhynix HCG8a4",
        64,
        "13",
        "4.19.191-perf",
        0.55,
        11,
    ),
    (
        "Kiesel",
        "K2",
        "SAMSUNG DUTA42",
        32,
        "11",
        "4.14.186",
        0.31,
        8,
    ),
    (
        "Kiesel",
        "K4",
        "YMTC Y0S128",
        128,
        "14",
        "5.10.209-android12-9",
        1.6,
        7,
    ),
    (
        "Pinie",
        "One",
        "MICRON 0Z7M08",
        64,
        "14",
        "5.10.209-android12-9",
        0.9,
        6,
    ),
    ("", "", "WDC PC SN740 SDDPNQD", 512, "", "6.18.0", 9.5, 5),
    (
        "Pinie",
        "Two",
        "KIOXIA THGJFGT1E45",
        128,
        "16",
        "6.6.77-android15-8",
        3.7,
        4,
    ),
    (
        "Möwe",
        "Küste 7",
        "PHISON PS8229",
        128,
        "15",
        "6.1.118-android14-11",
        2.2,
        1,
    ),
];

/// Beyond the fastest of them: a result can be made slower and stay true, not faster.
const FASTEST: f64 = 14.0;

impl Fleet {
    /// Some hundreds of results of a dozen devices over five months: two tests, two filesystems,
    /// several firmwares, with some that do not count.
    pub fn many(&self) {
        self.first(PHONES.len());
    }

    /// Those of the first devices.
    pub fn first(&self, devices: usize) {
        let mut installation = 0_u32;
        for (phone, (vendor, model, part, gib, android, kernel, speed, count)) in
            (0_u32..).zip(PHONES).take(devices)
        {
            for unit in 0..count {
                installation += 1;
                for visit in 0..1 + unit % 2 {
                    let luck = f64::from((unit * 37 + visit * 11 + phone * 5) % 23) / 100.0 - 0.11;
                    // A newer firmware is faster.
                    let firmware = if unit % 3 == 0 { "0500" } else { "0300" };
                    let share =
                        speed / FASTEST * (1.0 + luck) * if unit % 3 == 0 { 1.25 } else { 1.0 };
                    let day = (unit * 13 + visit * 41 + phone * 3) % 150;
                    for (kind, document) in [fixture::file(2), fixture::sqlite(2)]
                        .into_iter()
                        .enumerate()
                    {
                        let mut document = fixture::scaled(document, share);
                        name(
                            &mut document,
                            (vendor, model),
                            part,
                            (firmware, gib << 30),
                            (android, kernel),
                        );
                        if let Some(filesystem) = &mut document.environment.filesystem {
                            filesystem.kind = if phone % 3 == 1 { "ext4" } else { "f2fs" }.into();
                        }
                        document.environment.memory_bytes +=
                            u64::from(installation) * 2 + kind as u64;
                        if (unit + visit) % 11 == 10 {
                            document.warnings.push(Warning::Steal { share: 0.25 });
                        }
                        self.add(&document, installation, day);
                    }
                }
            }
        }
    }

    /// Five installations of a device all of whose names are [`HOSTILE`], and one that does not count.
    pub fn hostile(&self) -> Product {
        let mut product = Product::default();
        for number in 0..6 {
            let mut document = fixture::scaled(fixture::sqlite(2), 1.0 - f64::from(number) / 20.0);
            name(
                &mut document,
                (HOSTILE, HOSTILE),
                HOSTILE,
                (HOSTILE, 1 << 30),
                (HOSTILE, HOSTILE),
            );
            if let Some(filesystem) = &mut document.environment.filesystem {
                filesystem.kind = HOSTILE.into();
            }
            document.environment.host.processor = HOSTILE.into();
            document.environment.host.machine = HOSTILE.into();
            document.environment.clock_source = HOSTILE.into();
            document.iostep_version = HOSTILE.into();
            if number == 5 {
                document
                    .warnings
                    .push(Warning::Compression { by: HOSTILE.into() });
            }
            product = Device::of(&document).product();
            self.add(&document, 1000 + number, number);
        }
        product
    }

    /// A result of an installation, received so many days after the start of a year. Returns its ID.
    pub fn add(&self, document: &Document, installation: u32, day: u32) -> String {
        let text = serde_json::to_vec(document).expect("JSON");
        let upload = Upload::read(&text).expect("a result");
        let id = upload.id;
        let mut key = [0; 32];
        key[..4].copy_from_slice(&installation.to_le_bytes());
        let change = Change::add(upload, key).expect("packed");
        self.0.change(&change).expect("kept");
        waldio::register(false).expect("waldio");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let db = Connection::open_with_flags_and_vfs(self.0.database(), flags, waldio::VFS);
        let received = 1_767_225_600 + i64::from(day) * 86_400 + i64::from(installation) * 600;
        db.expect("a database")
            .execute(
                "UPDATE submission SET received = ?1 WHERE id = ?2",
                rusqlite::params![received, id],
            )
            .expect("dated");
        hex::encode(&id)
    }

    /// The ID of a result of a machine that nobody else has.
    pub fn of_nobody(&self) -> String {
        self.add(&fixture::file(3), 5000, 10)
    }

    /// An operator's decision.
    pub fn decide(&self, id: &str, state: State, reason: &str) {
        let id = hex::decode(id).expect("an ID");
        let change = Change::Decide {
            id,
            state,
            reason: reason.into(),
        };
        self.0.change(&change).expect("decided");
    }

    /// The directory of screenshots, if somebody wants to see pages.
    pub fn screenshots() -> Option<PathBuf> {
        std::env::var_os("IOSTEP_SCREENSHOTS").map(PathBuf::from)
    }
}

fn name(
    document: &mut Document,
    (vendor, model): (&str, &str),
    part: &str,
    (firmware, capacity_bytes): (&str, u64),
    (android, kernel): (&str, &str),
) {
    let environment = &mut document.environment;
    environment.host.kernel = kernel.into();
    environment.host.android = (!vendor.is_empty()).then(|| Android {
        manufacturer: Some(vendor.into()),
        model: Some(model.into()),
        release: Some(android.into()),
        ..Android::default()
    });
    let disk = &mut environment.disks[0];
    let (maker, model) = part.split_once(' ').unwrap_or(("", part));
    (disk.vendor, disk.model) = (Some(maker.into()), Some(model.into()));
    disk.firmware = Some(firmware.into());
    disk.capacity_bytes = Some(capacity_bytes);
}

/// The name of a device in a path or a query.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

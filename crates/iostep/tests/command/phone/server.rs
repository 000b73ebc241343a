//! A server of adb with one phone, which is a directory of this machine: it speaks what adb's own
//! client asks (SERVICES.TXT and SYNC.TXT of the Android Open Source Project, packages/modules/adb).

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

const FEATURES: &str = "shell_v2,cmd,stat_v2";
/// Of adb's protocol, in hexadecimal: 1.0.41.
const VERSION: &str = "0029";
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const EXIT: u8 = 3;

/// What the server does for the phone.
pub struct Phone {
    /// Where its programs are, before this machine's.
    pub programs: PathBuf,
    /// False for a phone that is not there.
    pub is_there: bool,
    /// What was copied to it.
    pub pushed: Mutex<Vec<String>>,
}

impl Phone {
    /// True once a program on it, or a test, made a file of that name beside the programs.
    fn is(&self, state: &str) -> bool {
        self.programs.join(state).exists()
    }

    /// From then on connections end without a word, as when its cable is pulled.
    fn is_unplugged(&self) -> bool {
        self.is("unplugged")
    }
}

/// Serves until the process ends. Gives the port.
pub fn start(phone: Arc<Phone>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let phone = Arc::clone(&phone);
            // A client that goes away has what it wanted.
            thread::spawn(move || serve(client, &phone));
        }
    });
    port
}

fn serve(mut client: TcpStream, phone: &Phone) -> io::Result<()> {
    loop {
        let request = request(&mut client)?;
        match request.as_str() {
            "host:version" => return okay(&mut client, VERSION),
            "host:features" => return okay(&mut client, FEATURES),
            asked if asked.starts_with("host-serial:") => return okay(&mut client, FEATURES),
            _ if !phone.is_there => return fail(&mut client, "no devices/emulators found"),
            asked if asked.starts_with("host:tport:") => {
                client.write_all(b"OKAY")?;
                client.write_all(&1_u64.to_le_bytes())?;
            }
            "sync:" => {
                client.write_all(b"OKAY")?;
                return sync(client, phone);
            }
            asked => {
                let Some((_, line)) = asked
                    .split_once(',')
                    .filter(|_| asked.starts_with("shell,"))
                else {
                    return fail(
                        &mut client,
                        &format!("{asked}: the test has no such service"),
                    );
                };
                let (_, line) = line.split_once("raw:").expect("without a terminal");
                client.write_all(b"OKAY")?;
                return shell(client, phone, line);
            }
        }
    }
}

/// Four hexadecimal digits, and so many bytes.
fn request(client: &mut TcpStream) -> io::Result<String> {
    let length = String::from_utf8_lossy(&bytes(client, 4)?).into_owned();
    let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
    Ok(String::from_utf8_lossy(&bytes(client, length)?).into_owned())
}

fn bytes(client: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(client: &mut TcpStream) -> io::Result<u32> {
    let mut bytes = [0; 4];
    client.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn okay(client: &mut TcpStream, answer: &str) -> io::Result<()> {
    write!(client, "OKAY{:04x}{answer}", answer.len())
}

fn fail(client: &mut TcpStream, why: &str) -> io::Result<()> {
    write!(client, "FAIL{:04x}{why}", why.len())
}

/// `shell,v2,raw:LINE`: packets of a byte that says what they are, a length, and bytes.
fn shell(client: TcpStream, phone: &Phone, line: &str) -> io::Result<()> {
    let path = format!("{}:/usr/bin:/bin", phone.programs.display());
    // What starts these tests in the background may have them ignore SIGINT; a phone does not.
    let mut process = Command::new("/usr/bin/env")
        .args(["--default-signal=INT,QUIT", "sh", "-c", line])
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let client = Mutex::new(client);
    if phone.is("garbled") {
        let nonsense = [&[STDOUT][..], &u32::MAX.to_le_bytes(), b"and no more"].concat();
        return client.into_inner().expect("no panic").write_all(&nonsense);
    }
    let packet = |kind: u8, bytes: &[u8]| {
        if phone.is_unplugged() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let length = u32::try_from(bytes.len()).expect("short").to_le_bytes();
        let whole = [&[kind], &length[..], bytes].concat();
        client.lock().expect("no panic").write_all(&whole)
    };
    let send_all = |kind: u8, mut from: Box<dyn Read + Send>| {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if packet(kind, &buffer[..length]).is_err() {
                return;
            }
        }
    };
    let (out, err) = (process.stdout.take(), process.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| send_all(STDOUT, Box::new(out.expect("a pipe"))));
        scope.spawn(|| send_all(STDERR, Box::new(err.expect("a pipe"))));
    });
    let code = process.wait()?.code().unwrap_or(255);
    packet(EXIT, &[code.to_le_bytes()[0]])?;
    let mut client = client.into_inner().expect("no panic");
    client.shutdown(Shutdown::Write)?;
    // Closed with something unread, the connection would lose what is on its way.
    io::copy(&mut client, &mut io::sink())?;
    Ok(())
}

/// `sync:`: four letters, a length, and a path.
fn sync(mut client: TcpStream, phone: &Phone) -> io::Result<()> {
    loop {
        let what = bytes(&mut client, 4)?;
        let length = number(&mut client)?;
        if what == b"QUIT" {
            return Ok(());
        }
        let asked = bytes(&mut client, length as usize)?;
        let path = String::from_utf8_lossy(&asked).into_owned();
        match &what[..] {
            b"STA2" | b"LST2" => stat(&mut client, &what, Path::new(&path))?,
            b"RECV" => receive(&mut client, Path::new(&path))?,
            b"SEND" => {
                let (path, _mode) = path.rsplit_once(',').expect("path and mode");
                phone.pushed.lock().expect("no panic").push(path.to_owned());
                send(&mut client, phone, Path::new(path))?;
            }
            other => panic!("{:?} is not known", String::from_utf8_lossy(other)),
        }
    }
}

fn stat(client: &mut TcpStream, what: &[u8], path: &Path) -> io::Result<()> {
    const NO_SUCH_FILE: u32 = 2;
    let found = fs::metadata(path).ok();
    let field = |of: fn(&fs::Metadata) -> u64| found.as_ref().map_or(0, of);
    let error = found.as_ref().map_or(NO_SUCH_FILE, |_| 0);
    let mode = found.as_ref().map_or(0, MetadataExt::mode);
    let mut answer = what.to_vec();
    answer.extend(error.to_le_bytes());
    answer.extend(field(MetadataExt::dev).to_le_bytes());
    answer.extend(field(MetadataExt::ino).to_le_bytes());
    answer.extend(mode.to_le_bytes());
    // Links, user and group.
    answer.extend([0; 12]);
    answer.extend(field(MetadataExt::size).to_le_bytes());
    // Times of access, modification and change.
    answer.extend([0; 24]);
    client.write_all(&answer)
}

fn receive(client: &mut TcpStream, path: &Path) -> io::Result<()> {
    const MOST_BYTES: usize = 64 << 10;
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) => return refuse(client, &error.to_string()),
    };
    for part in content.chunks(MOST_BYTES) {
        client.write_all(b"DATA")?;
        client.write_all(&(part.len() as u32).to_le_bytes())?;
        client.write_all(part)?;
    }
    client.write_all(b"DONE\0\0\0\0")
}

fn refuse(client: &mut TcpStream, why: &str) -> io::Result<()> {
    client.write_all(b"FAIL")?;
    client.write_all(&(why.len() as u32).to_le_bytes())?;
    client.write_all(why.as_bytes())
}

fn send(client: &mut TcpStream, phone: &Phone, path: &Path) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    loop {
        let what = bytes(client, 4)?;
        let length = number(client)?;
        if what == b"DONE" {
            break;
        }
        file.write_all(&bytes(client, length as usize)?)?;
    }
    if phone.is("full") {
        return refuse(client, "write failed: No space left on device");
    }
    client.write_all(b"OKAY\0\0\0\0")
}

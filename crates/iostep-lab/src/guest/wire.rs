//! What the host and the agent in the guest say to each other, over one virtio-serial port.
//!
//! A message is a byte for its kind, the length of its content as 32 bits (little endian), and
//! the content. The agent speaks first, so that nothing is sent to a port that nobody has opened.

use std::io::{self, Read, Write};

/// The port's name.
pub(super) const PORT: &str = "iostep";
/// No argument of a command can be longer (`MAX_ARG_STRLEN` of Linux); nor is any message.
const LONGEST: usize = 128 << 10;

/// From the host to the agent, in any order up to `Run`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A directory of the host to mount at the same path; the first has the tag `share0`.
    Share(Vec<u8>),
    /// The version of the kernel, whose modules have a tag of their own.
    Modules(Vec<u8>),
    /// A device to wait for.
    Device(Vec<u8>),
    /// `NAME=VALUE`.
    Environment(Vec<u8>),
    /// The working directory.
    Directory(Vec<u8>),
    /// The program, then its arguments.
    Argument(Vec<u8>),
    Run,
}

/// From the agent to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The guest is up; the release of its kernel.
    Up(Vec<u8>),
    /// The command starts.
    Started,
    /// A piece of the command's standard output.
    Stdout(Vec<u8>),
    /// A piece of its standard error.
    Stderr(Vec<u8>),
    /// It ended with this status.
    Exited(u8),
    /// A signal ended it.
    Killed(u8),
    /// The agent cannot do it: a text.
    Failed(Vec<u8>),
}

/// A message of either side.
pub(super) trait Message: Sized {
    fn encode(&self) -> (u8, &[u8]);
    /// `None` if there is no such message.
    fn decode(kind: u8, content: Vec<u8>) -> Option<Self>;
}

impl Message for Order {
    fn encode(&self) -> (u8, &[u8]) {
        match self {
            Order::Share(path) => (b's', path),
            Order::Modules(version) => (b'm', version),
            Order::Device(path) => (b'd', path),
            Order::Environment(setting) => (b'e', setting),
            Order::Directory(path) => (b'w', path),
            Order::Argument(text) => (b'a', text),
            Order::Run => (b'r', &[]),
        }
    }

    fn decode(kind: u8, content: Vec<u8>) -> Option<Order> {
        Some(match kind {
            b's' => Order::Share(content),
            b'm' => Order::Modules(content),
            b'd' => Order::Device(content),
            b'e' => Order::Environment(content),
            b'w' => Order::Directory(content),
            b'a' => Order::Argument(content),
            b'r' => Order::Run,
            _ => return None,
        })
    }
}

impl Message for Report {
    fn encode(&self) -> (u8, &[u8]) {
        match self {
            Report::Up(release) => (b'U', release),
            Report::Started => (b'S', &[]),
            Report::Stdout(bytes) => (b'O', bytes),
            Report::Stderr(bytes) => (b'E', bytes),
            Report::Exited(status) => (b'X', std::slice::from_ref(status)),
            Report::Killed(signal) => (b'K', std::slice::from_ref(signal)),
            Report::Failed(text) => (b'F', text),
        }
    }

    fn decode(kind: u8, content: Vec<u8>) -> Option<Report> {
        Some(match kind {
            b'U' => Report::Up(content),
            b'S' => Report::Started,
            b'O' => Report::Stdout(content),
            b'E' => Report::Stderr(content),
            b'X' => Report::Exited(*content.first()?),
            b'K' => Report::Killed(*content.first()?),
            b'F' => Report::Failed(content),
            _ => return None,
        })
    }
}

/// Errors: those of writing; `InvalidInput` for a content that is too long.
pub(super) fn send(mut to: impl Write, message: &impl Message) -> io::Result<()> {
    let (kind, content) = message.encode();
    if content.len() > LONGEST {
        let reason = format!("{} bytes are too long; at most {LONGEST}", content.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let mut bytes = vec![kind];
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    to.write_all(&bytes)
}

/// Errors: those of reading; `UnexpectedEof` at the end; `InvalidData` for what is no message.
pub(super) fn receive<M: Message>(mut from: impl Read) -> io::Result<M> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [kind, length @ ..] = head;
    let length = u32::from_le_bytes(length) as usize;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "what came is no message");
    if length > LONGEST {
        return Err(broken());
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    M::decode(kind, content).ok_or_else(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back_whatever_bytes_they_hold() {
        let orders = [
            Order::Share(b"/a b".to_vec()),
            Order::Modules(b"/m".to_vec()),
            Order::Device(b"/dev/vda".to_vec()),
            Order::Environment(b"A=\n".to_vec()),
            Order::Directory(Vec::new()),
            Order::Argument(vec![0xff, b'\'', 0x80]),
            Order::Run,
        ];
        let reports = [
            Report::Up(b"6.1".to_vec()),
            Report::Started,
            Report::Stdout(vec![0; 70_000]),
            Report::Stderr(Vec::new()),
            Report::Exited(3),
            Report::Killed(9),
            Report::Failed(b"no".to_vec()),
        ];
        let mut bytes = Vec::new();
        for order in &orders {
            send(&mut bytes, order).expect("memory takes all");
        }
        for report in &reports {
            send(&mut bytes, report).expect("memory takes all");
        }
        let mut rest = bytes.as_slice();
        assert!(
            orders
                .iter()
                .all(|o| receive::<Order>(&mut rest).expect("whole") == *o)
        );
        assert!(
            reports
                .iter()
                .all(|r| receive::<Report>(&mut rest).expect("whole") == *r)
        );
        let end = receive::<Report>(&mut rest).expect_err("the end");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_message_is_refused_and_nothing_is_reserved_for_it() {
        for bytes in [&b"?\0\0\0\0"[..], b"O\xff\xff\xff\xff", b"X\0\0\0\0"] {
            let error = receive::<Report>(bytes).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        assert!(send(io::sink(), &Order::Argument(vec![0; LONGEST + 1])).is_err());
    }
}

//! The body of an upload, of bounded size and in bounded time.

use std::future::poll_fn;
use std::io::Read;
use std::pin::pin;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};

use super::answer::Failure;
use super::{MOST_BYTES, MOST_SENT_BYTES};
use crate::packing;

/// The largest window of zstd that is given memory: 8 MiB, as its format asks of every reader.
const WINDOW_LOG: u32 = 23;

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Gzip,
    Zstd,
}

impl Encoding {
    /// Errors: for one that is not taken.
    pub fn of(headers: &HeaderMap) -> Result<Encoding, Failure> {
        let value = headers.get(header::CONTENT_ENCODING);
        // RFC 9110, section 8.4.1: whatever the case.
        let value = value.map(|value| value.as_bytes().to_ascii_lowercase());
        match value.as_deref() {
            None | Some(b"identity") => Ok(Encoding::Plain),
            Some(b"gzip") => Ok(Encoding::Gzip),
            Some(b"zstd") => Ok(Encoding::Zstd),
            Some(_) => Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "encoding",
                "the content encoding is not taken; send gzip, zstd, or none",
            )),
        }
    }
}

fn too_long(what: &str, most: usize) -> Failure {
    let text = format!("the body is longer than {most} bytes{what}");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_long", text)
}

/// All of a body as it is sent, within `patience`. Each part is counted as it comes.
///
/// Errors: it is too long, too slow, or was cut off; that of `count`.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    patience: Duration,
    mut count: impl FnMut(usize) -> Result<(), Failure>,
) -> Result<Vec<u8>, Failure> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MOST_SENT_BYTES as u64) {
        return Err(too_long("", MOST_SENT_BYTES));
    }
    let all = async {
        let mut body = pin!(body);
        let mut bytes = Vec::new();
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| {
                Failure::new(StatusCode::BAD_REQUEST, "cut_off", "the body was cut off")
            })?;
            if let Ok(data) = frame.into_data() {
                count(data.len())?;
                if bytes.len() + data.len() > MOST_SENT_BYTES {
                    return Err(too_long("", MOST_SENT_BYTES));
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    };
    let received = tokio::time::timeout(patience, all).await;
    received.unwrap_or_else(|_| {
        let text = format!("the body took more than {} s", patience.as_secs());
        Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "slow", text))
    })
}

/// What a body says.
///
/// Errors: it is damaged, or gets too long.
pub fn unpack(bytes: Vec<u8>, encoding: Encoding) -> Result<Vec<u8>, Failure> {
    let too_long = || too_long(" once it is unpacked", MOST_BYTES);
    let read = match encoding {
        Encoding::Plain => return Ok(bytes),
        Encoding::Gzip => read(flate2::read::MultiGzDecoder::new(&bytes[..])),
        Encoding::Zstd => match packing::unpacked_bytes(&bytes) {
            Some(length) if length > MOST_BYTES => return Err(too_long()),
            Some(length) => packing::unpack(&bytes, length),
            None => zstd::Decoder::with_buffer(&bytes[..]).and_then(|mut unpack| {
                unpack.window_log_max(WINDOW_LOG)?;
                read(unpack)
            }),
        },
    };
    let text = read.map_err(|error| {
        let text = format!("the body cannot be unpacked: {error}");
        Failure::new(StatusCode::BAD_REQUEST, "damaged", text)
    })?;
    match text.len() > MOST_BYTES {
        true => Err(too_long()),
        false => Ok(text),
    }
}

/// All there is, but not much more than is taken.
fn read(unpacked: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut first = unpacked.take(MOST_BYTES as u64 + 1);
    first.read_to_end(&mut text).map(|_| text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut pack = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        pack.write_all(bytes).expect("packed");
        pack.finish().expect("packed")
    }

    #[test]
    fn what_is_packed_comes_out_and_a_bomb_does_not() {
        let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 19).expect("packed");
        // Without the length before it.
        let stream = |bytes: &[u8]| zstd::encode_all(bytes, 19).expect("packed");
        let bomb = vec![b' '; MOST_BYTES + 1];
        for (encoding, small, large) in [
            (Encoding::Gzip, gzip(b"text"), gzip(&bomb)),
            (Encoding::Zstd, zstd(b"text"), zstd(&bomb)),
            (Encoding::Zstd, stream(b"text"), stream(&bomb)),
        ] {
            assert!(large.len() < MOST_SENT_BYTES / 100);
            assert_eq!(unpack(small.clone(), encoding), Ok(b"text".to_vec()));
            let refused = too_long(" once it is unpacked", MOST_BYTES);
            assert_eq!(unpack(large, encoding), Err(refused));
            let cut = small[..small.len() - 2].to_vec();
            assert!(unpack(cut, encoding).is_err(), "{encoding:?}");
            assert!(unpack(b"text".to_vec(), encoding).is_err(), "{encoding:?}");
        }
    }
}

//! How much of the server's time and room one sender may take.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode};

use super::answer::Failure;
use super::{App, Limits};
use crate::limits::{Limit, network};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The header in which a proxy says whose request it is.
const FORWARDED: &str = "x-forwarded-for";

/// Who asks, as the connection or a proxy says. It is kept as long as limits need it, in memory.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Of whom requests are counted together; `None` for whoever calls without a connection, as a test.
pub(super) type Sender = Option<[u8; 16]>;

/// What is left to each.
#[derive(Debug)]
pub(super) struct Allowance {
    behind_proxy: bool,
    bytes_per_day: u64,
    uploads: Limit<[u8; 16]>,
    questions: Limit<[u8; 16]>,
    bytes: Limit<[u8; 16]>,
    installations: Limit<[u8; 32]>,
}

impl Allowance {
    pub fn new(limits: &Limits) -> Allowance {
        Allowance {
            behind_proxy: limits.behind_proxy,
            bytes_per_day: limits.bytes_per_day,
            uploads: Limit::new(limits.per_address.into(), MINUTE),
            questions: Limit::new(limits.questions_per_address.into(), MINUTE),
            bytes: Limit::new(limits.bytes_per_day, DAY),
            installations: Limit::new(limits.per_installation.into(), MINUTE),
        }
    }

    /// Who sends a request.
    pub fn sender(&self, headers: &HeaderMap, extensions: &Extensions) -> Sender {
        let peer = extensions.get::<Peer>().map(|peer| peer.0);
        let told = headers.get_all(FORWARDED).iter().next_back();
        let told = told.and_then(|it| address(it.to_str().ok()?.rsplit(',').next()?.trim()));
        let address = match self.behind_proxy {
            true => told.or(peer),
            false => peer,
        };
        address.map(network)
    }

    /// Counts an upload, or something else that takes its turn in the store's thread.
    ///
    /// Errors: it is one too many.
    pub fn upload(&self, sender: Sender, now: Instant) -> Result<(), Failure> {
        let taken = sender.map_or(Ok(()), |it| self.uploads.take(it, 1, now));
        taken.map_err(|retry| too_often("too many uploads of this address", retry))
    }

    /// Counts a part of a body.
    ///
    /// Errors: there was more of this address than the server has room for.
    pub fn bytes(&self, sender: Sender, bytes: usize, now: Instant) -> Result<(), Failure> {
        let taken = sender.map_or(Ok(()), |it| self.bytes.take(it, bytes as u64, now));
        let what = format!(
            "more than {} bytes of this address in a day",
            self.bytes_per_day
        );
        taken.map_err(|retry| too_often(&what, retry))
    }

    /// Counts an upload of an installation.
    ///
    /// Errors: it is one too many.
    pub fn installation(&self, key: [u8; 32], now: Instant) -> Result<(), Failure> {
        let taken = self.installations.take(key, 1, now);
        taken.map_err(|retry| too_often("too many uploads of this installation", retry))
    }
}

/// An address as proxies write it: alone, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let of_socket = || text.parse::<SocketAddr>().ok().map(|it| it.ip());
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(text).parse().ok().or_else(of_socket)
}

fn too_often(what: &str, retry: Duration) -> Failure {
    let text = format!("{what}; try again later");
    Failure::later(StatusCode::TOO_MANY_REQUESTS, "too_often", text, retry)
}

/// Somebody who asks for what the store has to be read for, and has not asked too often.
pub struct Reader;

impl FromRequestParts<Arc<App>> for Reader {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Reader, Failure> {
        let allowance = &app.allowance;
        let sender = allowance.sender(&parts.headers, &parts.extensions);
        let now = Instant::now();
        let taken = sender.map_or(Ok(()), |it| allowance.questions.take(it, 1, now));
        taken.map_err(|retry| too_often("too many requests of this address", retry))?;
        Ok(Reader)
    }
}

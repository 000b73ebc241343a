//! Whoever brings results.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use iostep_model::hex;
use iostep_model::name_service;
use rustix::fs::{Mode, OFlags};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::new_file;
use crate::nonce::{self, Nonce};
use crate::packing::pack;
use crate::signature::{self, DELETE_TOKEN, KEY, KEY_BYTES, NONCE, SIGNATURE};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest answer to an upload.
const ANSWER_BYTES: u64 = 1 << 20;

/// A server, and the key by which it knows this installation.
pub struct Client {
    agent: ureq::Agent,
    /// Without a slash at its end.
    url: String,
    private: [u8; KEY_BYTES],
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Client").field(&self.url).finish()
    }
}

/// Why something was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The address is none of a server.
    #[error("{0}")]
    Usage(String),
    /// The server could not be asked, or answered nothing that a server of results does.
    #[error("{url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// The server does not take it.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        message: String,
    },
}

/// What the server says of a result that it took.
#[derive(Clone, Debug, Deserialize)]
pub struct Accepted {
    pub id: String,
    pub created: bool,
    pub state: String,
    pub reasons: Vec<crate::check::Reason>,
    pub test: String,
    pub delete_token: Option<String>,
}

#[derive(Deserialize)]
struct NonceAnswer {
    nonce: String,
}

impl Client {
    /// Errors: `Usage` for a URL that is not of HTTP.
    pub fn new(url: &str, private: [u8; KEY_BYTES]) -> std::result::Result<Client, Fault> {
        let rest = url.strip_prefix("http://");
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(Fault::Usage(format!(
                "{url}: expected http://HOST[:PORT]; for https name a proxy of this machine that \
                 speaks it"
            )));
        }
        // Requests look the host up in threads of their own.
        name_service::use_sources_inside();
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Ok(Client {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            private,
        })
    }

    /// Brings a result, which is kept for good when this returns.
    ///
    /// Errors: `Unreachable`, `Refused`.
    pub fn submit(&self, result: &[u8]) -> std::result::Result<Accepted, Fault> {
        let answer = self.agent.get(self.at("/api/v1/nonce")).call();
        let nonce: NonceAnswer = self.taken(answer)?;
        let nonce: Nonce = hex::decode::<{ nonce::BYTES }>(&nonce.nonce)
            .ok_or_else(|| self.unreachable("it is no server of results"))?;
        let body = pack(result);
        let body = body.map_err(|error| self.unreachable(error))?;
        let signature = signature::sign(&self.private, &nonce, &body);
        let answer = self
            .agent
            .post(self.at("/api/v1/results"))
            .header("content-type", "application/json")
            .header("content-encoding", "zstd")
            .header(KEY, hex::encode(&signature::public(&self.private)))
            .header(NONCE, hex::encode(&nonce))
            .header(SIGNATURE, hex::encode(&signature))
            .send(&body[..]);
        self.taken(answer)
    }

    /// Takes a result back.
    ///
    /// Errors: `Unreachable`, `Refused`.
    pub fn remove(&self, id: &str, token: &str) -> std::result::Result<(), Fault> {
        let answer = self
            .agent
            .delete(self.at(&format!("/api/v1/results/{id}")))
            .header(DELETE_TOKEN, token)
            .call();
        let _: Value = self.taken(answer)?;
        Ok(())
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn unreachable(&self, reason: impl ToString) -> Fault {
        Fault::Unreachable {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }

    fn taken<T: serde::de::DeserializeOwned>(
        &self,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> std::result::Result<T, Fault> {
        let mut answer = answer.map_err(|error| self.unreachable(error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES);
        let body = body
            .read_to_vec()
            .map_err(|error| self.unreachable(error))?;
        let none = |error| self.unreachable(format!("it is no server of results: {error}"));
        let value: Value = serde_json::from_slice(&body).map_err(none)?;
        if !status.is_success() {
            let message = value["error"]["message"].as_str();
            return Err(Fault::Refused {
                status: status.as_u16(),
                message: message.unwrap_or("no reason is given").to_owned(),
            });
        }
        serde_json::from_value(value).map_err(none)
    }
}

/// The installation's private key: of a file, which is made with a new one if it is not there, for
/// its owner alone.
///
/// Errors: `Refused` for a file that holds no key; `Io`.
pub fn key(path: &Path) -> Result<[u8; KEY_BYTES]> {
    if let Some(key) = read_key(path)? {
        return Ok(key);
    }
    match make_key(path) {
        // Somebody who began at the same time made it.
        Err(error) => read_key(path)?.ok_or(error),
        made => made,
    }
}

/// What a file holds, if it is there.
fn read_key(path: &Path) -> Result<Option<[u8; KEY_BYTES]>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Error::io(path, "open")(errno)),
    };
    let mut text = String::new();
    // More than a key has, so that what is longer is told.
    let mut file = File::from(file).take(4 * KEY_BYTES as u64);
    file.read_to_string(&mut text)
        .map_err(Error::io(path, "read"))?;
    let key = hex::decode(text.trim_end()).ok_or_else(|| Error::Refused {
        path: path.to_owned(),
        what: "it holds no key".into(),
        hint: "remove it, or name another file with --key",
    })?;
    Ok(Some(key))
}

/// Makes a key at a name that nothing has.
fn make_key(path: &Path) -> Result<[u8; KEY_BYTES]> {
    let private = nonce::random().map_err(Error::io(path, "make random numbers for"))?;
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(Error::io(directory, "make"))?;
    let part = directory.join(iostep_model::directory::unique(".iostep-key-"));
    let mut file = new_file::create_private(&part).map_err(Error::io(path, "create"))?;
    let text = hex::encode(&private) + "\n";
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| iostep_model::directory::give_to_caller(&file))
        .and_then(|()| file.sync_all())
        .map_err(Error::io(path, "write"));
    let named = written.and_then(|()| new_file::give_name(&part, path));
    if named.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    named.map(|()| private)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("iostep/key");
        let private = key(&path).expect("a key");
        assert_eq!(key(&path).expect("the same"), private);
        let mode = path.metadata().expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "hi\n").expect("written");
        let error = key(&path).expect_err("no key").to_string();
        assert!(error.contains("it holds no key"), "{error}");
    }

    #[test]
    fn of_many_who_begin_at_once_one_makes_the_key() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("iostep/key");
        let keys: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| key(&path))).collect();
            let all = all.into_iter().map(|it| it.join().expect("no panic"));
            all.map(|it| it.expect("a key")).collect()
        });
        assert_eq!(keys.len(), 1);
        assert_eq!(keys.first(), Some(&key(&path).expect("the same")));
    }

    #[test]
    fn a_server_is_one_of_http() {
        for url in ["https://example.org", "example.org", "http://", "http:///x"] {
            assert!(matches!(Client::new(url, [0; 32]), Err(Fault::Usage(_))));
        }
        let client = Client::new("http://localhost:1/", [0; 32]).expect("a URL");
        assert_eq!(client.at("/x"), "http://localhost:1/x");
    }
}

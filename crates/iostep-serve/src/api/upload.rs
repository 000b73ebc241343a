//! Results that come, and that their senders take back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode};
use iostep_model::hex;
use serde::Serialize;
use tokio::sync::oneshot;

use super::answer::{Failure, json};
use super::body::{self, Encoding};
use super::metrics::Outcome as Counted;
use super::{Answer, App, Shared};
use crate::check::Reason;
use crate::log;
use crate::nonce::{self, Fault, Nonce};
use crate::signature::{self, DELETE_TOKEN, KEY, NONCE, SIGNATURE};
use crate::store::{Change, KeyMay, Outcome, State as Counts};
use crate::upload::{Id, Refusal, Upload};

/// What an upload's sender is told.
#[derive(Serialize)]
struct Accepted {
    id: String,
    /// True if it was not there before.
    created: bool,
    state: Counts,
    /// Why it is not ranked.
    reasons: Vec<Reason>,
    test: String,
    /// Takes it back; null for the result of another installation.
    delete_token: Option<String>,
}

/// Who sent something, and that it was really them.
struct Signed {
    key: [u8; signature::KEY_BYTES],
    nonce: Nonce,
    signature: [u8; signature::SIGNATURE_BYTES],
}

/// `POST /api/v1/results`.
pub async fn upload(State(app): Shared, request: Request) -> Answer {
    let answer = accept(&app, request).await;
    if let Err(failure) = &answer {
        app.metrics.refused(failure.kind());
    }
    answer
}

async fn accept(app: &Arc<App>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let sender = app.allowance.sender(&parts.headers, &parts.extensions);
    let now = Instant::now();
    app.allowance.upload(sender, now)?;
    let signed = signed(&parts.headers)?;
    let encoding = Encoding::of(&parts.headers)?;
    app.nonces.check(&signed.nonce, now).map_err(unfit_nonce)?;
    let count = |bytes| app.allowance.bytes(sender, bytes, Instant::now());
    let sent = body::receive(&parts.headers, body, app.limits.patience.body, count).await?;
    let key = signed.key;
    let read = move |app: &App| {
        let upload = read(app, &signed, sent, encoding)?;
        let said = (upload.id, upload.test.clone(), upload.reasons.clone());
        let change = Change::add(upload, key);
        let change = change.map_err(|error| Failure::internal(error.to_string()))?;
        Ok((said, change))
    };
    let ((id, test, mut reasons), change) = app.work(read).await?;
    let outcome = changed(app, change).await?;
    let fresh = match reasons.is_empty() {
        true => Counts::Valid,
        false => Counts::Invalid,
    };
    let (status, created, state, is_own) = match outcome {
        Outcome::Known { is_own, state } => (StatusCode::OK, false, state, is_own),
        Outcome::Doubted(reason) => {
            reasons.push(reason);
            (StatusCode::CREATED, true, Counts::Quarantined, true)
        }
        Outcome::Decided {
            state,
            reasons: decided,
        } => {
            reasons = decided;
            (StatusCode::CREATED, true, state, true)
        }
        Outcome::Done | Outcome::Missing | Outcome::Forbidden => {
            (StatusCode::CREATED, true, fresh, true)
        }
    };
    app.metrics.uploaded(match created {
        true => Counted::Created,
        false => Counted::Known,
    });
    let name = hex::encode(&id);
    let what = if created { "kept" } else { "known" };
    log::line(&format!("{what} {name} {state}: {test}"));
    let accepted = Accepted {
        delete_token: is_own.then(|| hex::encode(&app.secret.token(&id, &key))),
        id: name,
        created,
        state,
        reasons,
        test,
    };
    Ok(json(status, &accepted))
}

fn signed(headers: &HeaderMap) -> Result<Signed, Failure> {
    Ok(Signed {
        key: digits(headers, KEY)?,
        nonce: digits(headers, NONCE)?,
        signature: digits(headers, SIGNATURE)?,
    })
}

fn digits<const N: usize>(headers: &HeaderMap, name: &str) -> Result<[u8; N], Failure> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.and_then(hex::decode).ok_or_else(|| {
        let text = format!(
            "header {name}: expected {} digits 0-9a-f; iostep submit signs uploads",
            2 * N
        );
        Failure::new(StatusCode::UNAUTHORIZED, "unsigned", text)
    })
}

fn unfit_nonce(fault: Fault) -> Failure {
    let text = match fault {
        Fault::Unknown => "the nonce is none of this server's, or of before its start",
        Fault::Ended => "the nonce is too old",
        Fault::Used => "the nonce was used before",
        Fault::Many => return busy(),
    };
    let text = format!("{text}; get one from /api/v1/nonce for each upload");
    Failure::new(StatusCode::UNAUTHORIZED, "nonce", text)
}

/// Makes a result of what was sent, by whoever has the key.
fn read(app: &App, signed: &Signed, sent: Vec<u8>, encoding: Encoding) -> Result<Upload, Failure> {
    if !signature::is_of(&signed.key, &signed.nonce, &sent, &signed.signature) {
        return Err(Failure::new(
            StatusCode::UNAUTHORIZED,
            "signature",
            "the signature is not the key's for this nonce and this body",
        ));
    }
    let now = Instant::now();
    app.nonces.take(&signed.nonce, now).map_err(unfit_nonce)?;
    // A key has proved to be its owner's by now.
    app.allowance.installation(signed.key, now)?;
    let text = body::unpack(sent, encoding)?;
    Upload::read(&text).map_err(|Refusal { reasons }| Failure::refused(reasons))
}

fn busy() -> Failure {
    let text = "too many uploads wait; try again later";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Failure::later(status, "busy", text, Duration::from_secs(1))
}

/// Waits until a change is durable.
async fn changed(app: &App, change: Change) -> Result<Outcome, Failure> {
    let (sender, receiver) = oneshot::channel();
    let reply = Box::new(move |outcome| {
        // Whoever asked may have gone.
        let _ = sender.send(outcome);
    });
    if !app.writer.change(change, reply) {
        return Err(busy());
    }
    match receiver.await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error)) => Err(Failure::of_store(&error)),
        Err(_) => Err(Failure::internal("the store's thread died")),
    }
}

/// The name of a result in a path, whatever is there.
pub type Name = Result<Path<String>, PathRejection>;

/// Errors: it is none.
pub fn id_of(name: Name) -> Result<Id, Failure> {
    // What is no text is no name either.
    id(&name.map_or_else(|_| String::new(), |Path(name)| name))
}

/// The name of a result.
///
/// Errors: it is none.
pub fn id(text: &str) -> Result<Id, Failure> {
    hex::decode(text).ok_or_else(|| {
        let text = "a result is named by 64 digits 0-9a-f";
        Failure::new(StatusCode::BAD_REQUEST, "id", text)
    })
}

/// `DELETE /api/v1/results/{id}`.
pub async fn remove(
    State(app): Shared,
    name: Name,
    extensions: Extensions,
    headers: HeaderMap,
) -> Answer {
    let id = id_of(name)?;
    // It takes its turn in the store's thread as an upload does.
    let sender = app.allowance.sender(&headers, &extensions);
    app.allowance.upload(sender, Instant::now())?;
    let forbidden = || {
        let text = format!("header {DELETE_TOKEN} is not what the upload's sender was told");
        Failure::new(StatusCode::FORBIDDEN, "token", text)
    };
    let token = headers.get(DELETE_TOKEN).and_then(|it| it.to_str().ok());
    let token = token.and_then(hex::decode).ok_or_else(forbidden)?;
    let secret = app.secret.clone();
    let key_may = KeyMay { secret, token };
    match changed(&app, Change::Remove { id, key_may }).await? {
        Outcome::Done => {
            let name = hex::encode(&id);
            log::line(&format!("taken back {name}"));
            Ok(json(StatusCode::OK, &serde_json::json!({ "id": name })))
        }
        Outcome::Missing => Err(Failure::missing()),
        Outcome::Forbidden
        | Outcome::Known { .. }
        | Outcome::Doubted(_)
        | Outcome::Decided { .. } => Err(forbidden()),
    }
}

/// Digits of a nonce.
pub const NONCE_DIGITS: usize = 2 * nonce::BYTES;

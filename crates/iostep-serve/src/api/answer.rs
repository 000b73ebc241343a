//! Answers in JSON, also those that say why not.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rusqlite::ErrorCode;
use serde::Serialize;

use crate::error::Error;
use crate::log;

/// A value as the answer.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
    let mut response = (status, text).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// Why a request is not answered as its sender wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    status: StatusCode,
    /// A word for programs.
    code: &'static str,
    /// What is wrong and what to do, for people.
    message: String,
    /// A line for each fault of a result.
    reasons: Vec<String>,
    retry: Option<Duration>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reasons: &'a [String],
}

impl Failure {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            status,
            code,
            message: message.into(),
            reasons: Vec::new(),
            retry: None,
        }
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Its status, and its word for programs.
    pub fn kind(&self) -> (u16, &'static str) {
        (self.status.as_u16(), self.code)
    }

    /// Something in the server failed: the operator is told what, and others only that.
    pub fn internal(reason: impl Into<String>) -> Failure {
        log::line(&format!("error: {}", reason.into()));
        let text = "the server failed; its log says how";
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", text)
    }

    /// A result that cannot be true, with what is wrong in it.
    pub fn refused(reasons: Vec<String>) -> Failure {
        let text = format!("the result is not taken: {}", reasons.join("; "));
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Failure {
            reasons,
            ..Failure::new(status, "refused", text)
        }
    }

    /// Too many ask, or one too often.
    pub fn later(
        status: StatusCode,
        code: &'static str,
        text: impl Into<String>,
        retry: Duration,
    ) -> Failure {
        Failure {
            retry: Some(retry),
            ..Failure::new(status, code, text)
        }
    }

    /// Says in an answer's head when to come again, where that helps.
    pub fn say_when(&self, headers: &mut HeaderMap) {
        if let Some(retry) = self.retry {
            let seconds = retry.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }

    /// No result has that name.
    pub fn missing() -> Failure {
        let text = "there is no such result";
        Failure::new(StatusCode::NOT_FOUND, "missing", text)
    }

    /// What the store said.
    pub fn of_store(error: &Error) -> Failure {
        match error {
            Error::Full { .. } => {
                log::line(&format!("error: {error}"));
                let text = "the server has no room left; nothing was kept, try again later";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Failure::later(status, "full", text, Duration::from_secs(60))
            }
            Error::Database { source, .. }
                if source.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) =>
            {
                log::line(&format!("error: {error}"));
                let text = "another process uses the store; try again later";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Failure::later(status, "busy", text, Duration::from_secs(10))
            }
            error => Failure::internal(error.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = Details {
            code: self.code,
            message: &self.message,
            reasons: &self.reasons,
        };
        let mut response = json(self.status, &Body { error });
        self.say_when(response.headers_mut());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_room_the_answer_is_to_try_again() {
        let failure = Failure::of_store(&Error::Full { path: "x".into() });
        let response = failure.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "60");
    }

    #[test]
    fn while_another_process_has_the_store_the_answer_is_to_try_again() {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        let source = rusqlite::Error::SqliteFailure(busy, None);
        let path = "x".into();
        let failure = Failure::of_store(&Error::Database { path, source });
        let response = failure.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "10");
    }
}

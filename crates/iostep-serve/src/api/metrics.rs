//! What the server did, for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Shared;

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Answers by the first digit of their status, from 1.
    answers: [AtomicU64; 5],
    uploads: [AtomicU64; 3],
    /// Connections that were not taken.
    turned_away: AtomicU64,
}

/// What came of an upload.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    Created,
    Known,
    Refused,
}

impl Metrics {
    pub(super) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = class
            .checked_sub(1)
            .and_then(|class| self.answers.get(class))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn uploaded(&self, outcome: Outcome) {
        self.uploads[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was one too many.
    pub fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }
}

/// `GET /metrics`.
pub async fn show(State(app): Shared) -> Response {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (metrics, writer) = (&app.metrics, app.writer.counts());
    let mut text = String::new();
    let mut counter = |name: &str, help: &str, values: &[(String, u64)]| {
        // A text takes whatever is written to it.
        let _ = writeln!(text, "# HELP iostep_serve_{name} {help}");
        let _ = writeln!(text, "# TYPE iostep_serve_{name} counter");
        for (labels, value) in values {
            let _ = writeln!(text, "iostep_serve_{name}{labels} {value}");
        }
    };
    let answers = (1..).zip(&metrics.answers);
    let answers: Vec<_> = answers
        .map(|(class, count)| (format!("{{status=\"{class}xx\"}}"), of(count)))
        .collect();
    counter("answers_total", "Answers by status.", &answers);
    let outcomes = ["created", "known", "refused"].iter().zip(&metrics.uploads);
    let outcomes: Vec<_> = outcomes
        .map(|(name, count)| (format!("{{outcome=\"{name}\"}}"), of(count)))
        .collect();
    counter("uploads_total", "Uploads by what came of them.", &outcomes);
    let plain = |count: &AtomicU64| [(String::new(), of(count))];
    counter(
        "commits_total",
        "Transactions of the store that are durable.",
        &plain(&writer.commits),
    );
    counter(
        "changes_total",
        "Changes in these transactions.",
        &plain(&writer.changes),
    );
    counter(
        "failed_commits_total",
        "Transactions of the store that failed.",
        &plain(&writer.failures),
    );
    counter(
        "turned_away_total",
        "Connections beyond the limit.",
        &plain(&metrics.turned_away),
    );
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

//! What the server did, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Shared;

/// Counters since the start, and what there is now.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Answers by the first digit of their status, from 1.
    answers: [AtomicU64; 5],
    uploads: [AtomicU64; 2],
    /// Uploads that were refused, by status and code.
    refused: Mutex<BTreeMap<(u16, &'static str), u64>>,
    /// Connections that there are.
    connections: AtomicU64,
    /// Connections that were not taken.
    turned_away: AtomicU64,
}

/// What came of an upload that was taken.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    Created,
    Known,
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

    pub(super) fn refused(&self, kind: (u16, &'static str)) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(kind).or_default() += 1;
    }

    /// A connection was taken.
    pub fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection ended.
    pub fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
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
    let mut all_of = |kind: &str, name: &str, help: &str, values: &[(String, u64)]| {
        // A text takes whatever is written to it.
        let _ = writeln!(text, "# HELP iostep_serve_{name} {help}");
        let _ = writeln!(text, "# TYPE iostep_serve_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "iostep_serve_{name}{labels} {value}");
        }
    };
    let plain = |count: &AtomicU64| [(String::new(), of(count))];
    all_of(
        "gauge",
        "connections",
        "Connections that there are.",
        &plain(&metrics.connections),
    );
    let mut counter =
        |name: &str, help: &str, values: &[(String, u64)]| all_of("counter", name, help, values);
    let answers = (1..).zip(&metrics.answers);
    let answers: Vec<_> = answers
        .map(|(class, count)| (format!("{{status=\"{class}xx\"}}"), of(count)))
        .collect();
    counter("answers_total", "Answers by status.", &answers);
    let outcomes = ["created", "known"].iter().zip(&metrics.uploads);
    let outcomes: Vec<_> = outcomes
        .map(|(name, count)| (format!("{{outcome=\"{name}\"}}"), of(count)))
        .collect();
    counter(
        "uploads_total",
        "Uploads that were taken, by what came of them.",
        &outcomes,
    );
    let refused = metrics.refused.lock();
    let refused = refused.unwrap_or_else(PoisonError::into_inner).clone();
    let refused: Vec<_> = refused
        .into_iter()
        .map(|((status, code), count)| (format!("{{status=\"{status}\",code=\"{code}\"}}"), count))
        .collect();
    counter(
        "refused_uploads_total",
        "Uploads that were not taken, by status and code of the answer.",
        &refused,
    );
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
        "refused_changes_total",
        "Changes that the store refused, each alone.",
        &plain(&writer.refused),
    );
    counter(
        "turned_away_total",
        "Connections beyond the limit.",
        &plain(&metrics.turned_away),
    );
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

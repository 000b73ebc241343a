//! What the server did, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Shared;
use crate::store::Counts;

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

/// What Prometheus reads.
#[derive(Default)]
struct Text(String);

impl Text {
    fn add(&mut self, kind: &str, name: &str, help: &str, values: &[(String, u64)]) {
        let text = &mut self.0;
        // A text takes whatever is written to it.
        let _ = writeln!(text, "# HELP iostep_serve_{name} {help}");
        let _ = writeln!(text, "# TYPE iostep_serve_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "iostep_serve_{name}{labels} {value}");
        }
    }

    fn counter(&mut self, name: &str, help: &str, values: &[(String, u64)]) {
        self.add("counter", name, help, values);
    }
}

fn of(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn plain(count: &AtomicU64) -> [(String, u64); 1] {
    [(String::new(), of(count))]
}

/// `GET /metrics`.
pub async fn show(State(app): Shared) -> Response {
    let metrics = &app.metrics;
    let mut text = Text::default();
    let answers = (1..).zip(&metrics.answers);
    let answers: Vec<_> = answers
        .map(|(class, count)| (format!("{{status=\"{class}xx\"}}"), of(count)))
        .collect();
    text.counter("answers_total", "Answers by status.", &answers);
    let outcomes = ["created", "known"].iter().zip(&metrics.uploads);
    let outcomes: Vec<_> = outcomes
        .map(|(name, count)| (format!("{{outcome=\"{name}\"}}"), of(count)))
        .collect();
    let help = "Uploads that were taken, by what came of them.";
    text.counter("uploads_total", help, &outcomes);
    let refused = metrics.refused.lock();
    let refused = refused.unwrap_or_else(PoisonError::into_inner).clone();
    let refused: Vec<_> = refused
        .into_iter()
        .map(|((status, code), count)| {
            let labels = format!("{{status=\"{status}\",code=\"{code}\"}}");
            (labels, count)
        })
        .collect();
    let help = "Uploads that were not taken, by status and code of the answer.";
    text.counter("refused_uploads_total", help, &refused);
    let connections = plain(&metrics.connections);
    text.add(
        "gauge",
        "connections",
        "Connections that there are.",
        &connections,
    );
    let turned_away = plain(&metrics.turned_away);
    text.counter(
        "turned_away_total",
        "Connections beyond the limit.",
        &turned_away,
    );
    of_store(&mut text, app.writer.counts());
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, kind)], text.0).into_response()
}

fn of_store(text: &mut Text, counts: &Counts) {
    for (name, help, count) in [
        (
            "commits_total",
            "Transactions of the store that are durable.",
            &counts.commits,
        ),
        (
            "changes_total",
            "Changes in these transactions.",
            &counts.changes,
        ),
        (
            "failed_commits_total",
            "Transactions of the store that failed.",
            &counts.failures,
        ),
        (
            "refused_changes_total",
            "Changes that the store refused, each alone.",
            &counts.refused,
        ),
    ] {
        text.counter(name, help, &plain(count));
    }
}

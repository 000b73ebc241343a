//! What the store is asked.

use std::path::Path as FilePath;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use iostep_analyze::bench::Summary;
use iostep_model::bench::Document;
use serde::{Deserialize, Serialize};

use super::answer::{Failure, json};
use super::{Answer, Reader, Shared, upload};
use crate::ranking::{Better, Conditions, LEAST_INSTALLATIONS, Place, better_of};
use crate::store::{Filter, Record, State as Counts, Submission};

/// Results of a page.
const PAGE: u32 = 50;
/// Devices of a ranking, which take less.
const PLACES: u32 = 500;
pub(super) const MOST_OF_PAGE: u32 = 500;
/// What is ranked if nothing else is asked for.
pub const MEASURE: &str = "operations_per_second";

/// `GET /healthz`: the store can be read.
pub async fn health(State(app): Shared) -> Answer {
    app.work(|app| {
        app.readers
            .touch()
            .map_err(|error| Failure::of_store(&error))
    })
    .await?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "status": "ok" })))
}

/// What its sender took back.
pub fn gone() -> Failure {
    let text = "its sender took this result back";
    Failure::new(StatusCode::GONE, "gone", text)
}

/// A result with its figures, which are worked out anew. A file of it is one of `iostep bench -o`.
#[derive(Serialize)]
struct Whole {
    submission: Submission,
    result: Document,
    summary: Summary,
}

/// `GET /api/v1/results/{id}`.
pub async fn one(State(app): Shared, _: Reader, name: upload::Name) -> Answer {
    let id = upload::id_of(name)?;
    app.work(move |app| {
        let record = app.readers.submission(&id);
        match record.map_err(|error| Failure::of_store(&error))? {
            Record::Missing => Err(Failure::missing()),
            Record::Gone => Err(gone()),
            Record::Kept(submission, body) => {
                let result = Document::parse(FilePath::new(&submission.id), &body);
                let result = result.map_err(|error| Failure::internal(error.to_string()))?;
                let whole = Whole {
                    submission: *submission,
                    summary: Summary::of(&result),
                    result,
                };
                Ok(json(StatusCode::OK, &whole))
            }
        }
    })
    .await
}

/// What may be asked of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    state: Option<String>,
    test: Option<String>,
    filesystem: Option<String>,
    device: Option<String>,
    before: Option<i64>,
    limit: Option<u32>,
}

fn asked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Failure> {
    let bad = |error: QueryRejection| {
        let text = error.body_text();
        Failure::new(StatusCode::BAD_REQUEST, "query", text)
    };
    query.map(|Query(query)| query).map_err(bad)
}

/// How many there may be on a page.
///
/// Errors: it is none of those.
fn limit(asked: Option<u32>, usual: u32) -> Result<u32, Failure> {
    match asked.unwrap_or(usual) {
        limit @ 1..=MOST_OF_PAGE => Ok(limit),
        _ => {
            let text = format!("limit: expected 1 to {MOST_OF_PAGE}");
            Err(Failure::new(StatusCode::BAD_REQUEST, "query", text))
        }
    }
}

/// `GET /api/v1/results`.
pub async fn list(
    State(app): Shared,
    _: Reader,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Answer {
    let query = asked(query)?;
    let bad = |text: String| Failure::new(StatusCode::BAD_REQUEST, "query", text);
    let state = query.state.as_deref().map(str::parse::<Counts>);
    let limit = limit(query.limit, PAGE)?;
    let filter = Filter {
        state: state.transpose().map_err(bad)?,
        test: query.test,
        filesystem: query.filesystem,
        device: query.device,
        before: query.before,
        limit,
    };
    app.work(move |app| {
        let page = app.readers.list(&filter);
        let page = page.map_err(|error| Failure::of_store(&error))?;
        Ok(json(StatusCode::OK, &page))
    })
    .await
}

/// A test that there are valid results of.
#[derive(Serialize)]
struct TestAnswer {
    test: String,
    results: u64,
}

/// `GET /api/v1/tests`.
pub async fn tests(State(app): Shared, _: Reader) -> Answer {
    app.work(|app| {
        let tests = app.readers.tests();
        let tests = tests.map_err(|error| Failure::of_store(&error))?;
        let tests: Vec<TestAnswer> = tests
            .into_iter()
            .map(|(test, results)| TestAnswer { test, results })
            .collect();
        Ok(json(StatusCode::OK, &serde_json::json!({ "tests": tests })))
    })
    .await
}

/// What may be asked of a ranking.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankingQuery {
    test: String,
    measure: Option<String>,
    filesystem: Option<String>,
    kernel: Option<String>,
    android: Option<String>,
    part: Option<String>,
    model: Option<String>,
    limit: Option<u32>,
    offset: Option<usize>,
}

#[derive(Serialize)]
struct RankingAnswer {
    test: String,
    measure: String,
    better: Better,
    filesystem: Option<String>,
    kernel: Option<String>,
    android: Option<String>,
    part: Option<String>,
    model: Option<String>,
    /// A device of fewer has no rank.
    least_installations: usize,
    /// Of that model, if one was asked for.
    devices: usize,
    places: Vec<Place>,
    /// The next page's; null on the last one.
    next_offset: Option<usize>,
}

/// `GET /api/v1/ranking`.
pub async fn ranking(
    State(app): Shared,
    _: Reader,
    query: Result<Query<RankingQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let query = asked(query)?;
    let measure = query.measure.unwrap_or_else(|| MEASURE.to_owned());
    let better = better_of(&measure).ok_or_else(|| {
        let text = "measure: there is none of that name; results have them under summary.estimates";
        Failure::new(StatusCode::BAD_REQUEST, "query", text)
    })?;
    let limit = limit(query.limit, PLACES)? as usize;
    app.work(move |app| {
        let asked = |text: &Option<String>| text.clone().unwrap_or_default();
        let conditions = Conditions {
            filesystem: asked(&query.filesystem),
            kernel: asked(&query.kernel),
            android: asked(&query.android),
            part: asked(&query.part),
        };
        let ranked = app
            .readers
            .ranking((&query.test, &measure), &conditions, better);
        let ranked = ranked.map_err(|error| Failure::of_store(&error))?;
        // A device's place is the one among all of them.
        let model = asked(&query.model);
        let is_asked = |place: &&Place| model.is_empty() || model == place.model;
        let places: Vec<&Place> = ranked.groups.iter().map(|it| &it.place).collect();
        let places: Vec<&Place> = places.into_iter().filter(is_asked).collect();
        let offset = query.offset.unwrap_or(0);
        let next = offset.saturating_add(limit);
        let answer = RankingAnswer {
            test: query.test,
            measure,
            better,
            filesystem: query.filesystem,
            kernel: query.kernel,
            android: query.android,
            part: query.part,
            model: query.model,
            least_installations: LEAST_INSTALLATIONS,
            devices: places.len(),
            next_offset: (next < places.len()).then_some(next),
            places: places
                .into_iter()
                .skip(offset)
                .take(limit)
                .cloned()
                .collect(),
        };
        Ok(json(StatusCode::OK, &answer))
    })
    .await
}

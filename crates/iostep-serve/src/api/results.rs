//! What the store is asked.

use std::path::Path as FilePath;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use iostep_analyze::bench::Summary;
use iostep_model::bench::Document;
use serde::{Deserialize, Serialize};

use super::answer::{Failure, json};
use super::{Answer, Shared, upload};
use crate::ranking::{Better, Conditions, LEAST_INSTALLATIONS, Place, better_of};
use crate::store::{Filter, Record, State as Counts, Submission};

/// Results of a page.
const PAGE: u32 = 50;
const MOST_OF_PAGE: u32 = 500;
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
pub async fn one(State(app): Shared, Path(name): Path<String>) -> Answer {
    let id = upload::id(&name)?;
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

/// `GET /api/v1/results`.
pub async fn list(State(app): Shared, query: Result<Query<ListQuery>, QueryRejection>) -> Answer {
    let query = asked(query)?;
    let bad = |text: String| Failure::new(StatusCode::BAD_REQUEST, "query", text);
    let state = query.state.as_deref().map(str::parse::<Counts>);
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MOST_OF_PAGE).contains(&limit) {
        return Err(bad(format!("limit: expected 1 to {MOST_OF_PAGE}")));
    }
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
pub async fn tests(State(app): Shared) -> Answer {
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
    /// A device of fewer has no rank.
    least_installations: usize,
    places: Vec<Place>,
}

/// `GET /api/v1/ranking`.
pub async fn ranking(
    State(app): Shared,
    query: Result<Query<RankingQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let query = asked(query)?;
    let measure = query.measure.unwrap_or_else(|| MEASURE.to_owned());
    let better = better_of(&measure).ok_or_else(|| {
        let text = "measure: there is none of that name; results have them under summary.estimates";
        Failure::new(StatusCode::BAD_REQUEST, "query", text)
    })?;
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
        let answer = RankingAnswer {
            test: query.test,
            measure,
            better,
            filesystem: query.filesystem,
            kernel: query.kernel,
            android: query.android,
            part: query.part,
            least_installations: LEAST_INSTALLATIONS,
            places: ranked.groups.iter().map(|it| it.place.clone()).collect(),
        };
        Ok(json(StatusCode::OK, &answer))
    })
    .await
}

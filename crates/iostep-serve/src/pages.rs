//! The pages: what the API answers, for people. They are plain HTML that a browser needs no script
//! for; every text of an upload goes through the one escaper of `iostep-report`.

mod compare;
mod device;
mod figures;
mod link;
mod markdown;
mod methodology;
mod question;
mod ranking;
mod result;
mod search;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use iostep_model::hex;
use iostep_report::document::{self, Document, Section, Site};
use sha2::{Digest, Sha256};

use crate::api::{self, App, Failure, Reader};
use question::Question;

/// Nothing but our own style, script and icon, forms that ask us, and no frame around it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const STYLE: &str = "/iostep.css";
const SCRIPT: &str = "/iostep.js";
const ICON: &str = "/icon.svg";
const SEARCH: &str = "/search";
/// A device as a stack of layers, in one colour for both themes.
const ICON_SVG: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0072b2" d="M1 2h14v3H1zM1 6.5h14v3H1zM1 11h14v3H1z"/></svg>"##;
/// The pages that every page leads to.
const PAGES: [(&str, &str); 3] = [
    ("/", "Ranking"),
    ("/methodology", "Methodology"),
    ("/api/v1/openapi.json", "API"),
];

/// What a page shows.
type Show = fn(&App, &Question) -> Result<Document, Failure>;

/// The pages: where each is, what may be asked of it, and what it shows.
const ROUTES: [(&str, &[&str], Show); 6] = [
    ("/", &ranking::ASKED, ranking::show),
    ("/device/{key}", &device::ASKED, device::show),
    ("/compare", &compare::ASKED, compare::show),
    ("/result/{id}", &[], result::show),
    (SEARCH, &["q"], search::show),
    ("/methodology", &[], methodology::show),
];

/// All pages, and what is said of one that is not there.
pub fn router() -> Router<Arc<App>> {
    let mut router = Router::new();
    for (path, asked, show) in ROUTES {
        let handler = async move |State(app): State<Arc<App>>,
                                  may_ask: Result<Reader, Failure>,
                                  name: Result<Path<String>, PathRejection>,
                                  uri: Uri,
                                  headers: HeaderMap| {
            let name = name.map_or_else(|_| String::new(), |Path(name)| name);
            let question = may_ask.and_then(|_| Question::read(name, &uri, asked));
            let shown = match question {
                Ok(question) => {
                    app.work(move |app| Ok((show(app, &question)?, question)))
                        .await
                }
                Err(failure) => Err(failure),
            };
            match shown {
                Ok((document, question)) => {
                    let word = question.one("q").unwrap_or_default();
                    let site = Site {
                        search: (SEARCH, word),
                        ..SITE
                    };
                    fresh(
                        &headers,
                        "text/html; charset=utf-8",
                        document.served(&site).into(),
                    )
                }
                Err(failure) => failed(&failure),
            }
        };
        router = router.route(path, get(handler));
    }
    router
        .route(STYLE, get(style))
        .route(SCRIPT, get(script))
        .route(ICON, get(icon))
        .fallback(nothing)
}

const SITE: Site<'static> = Site {
    pages: &PAGES,
    search: (SEARCH, ""),
    style: STYLE,
    script: SCRIPT,
    icon: ICON,
};

async fn style(headers: HeaderMap) -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(document::style);
    fresh(&headers, "text/css; charset=utf-8", TEXT.as_bytes().into())
}

async fn script(headers: HeaderMap) -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(document::script);
    fresh(
        &headers,
        "text/javascript; charset=utf-8",
        TEXT.as_bytes().into(),
    )
}

async fn icon(headers: HeaderMap) -> Response {
    fresh(&headers, "image/svg+xml", ICON_SVG.as_bytes().into())
}

/// Programs that ask for what is not there are told in JSON, people in words.
async fn nothing(uri: Uri) -> Response {
    let failure = api::no_page();
    match uri.path().starts_with("/api/") {
        true => failure.into_response(),
        false => failed(&failure),
    }
}

/// A page that says why there is not the one that was asked for.
fn failed(failure: &Failure) -> Response {
    let status = failure.status();
    let mut section = Section::new(status.canonical_reason().unwrap_or("Failed"));
    section.alarms.push(failure.message().to_owned());
    let page = Document::of(section).served(&SITE);
    let mut response = (status, page).into_response();
    guard(response.headers_mut(), "text/html; charset=utf-8");
    failure.say_when(response.headers_mut());
    response
}

/// What a browser keeps until it has changed; it asks each time.
fn fresh(asked: &HeaderMap, kind: &'static str, body: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", &hex::encode(&Sha256::digest(&body))[..32]);
    let known = asked
        .get(header::IF_NONE_MATCH)
        .and_then(|it| it.to_str().ok());
    let is_known = known.is_some_and(|known| known.split(',').any(|it| it.trim() == tag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body.into_response(),
    };
    let headers = response.headers_mut();
    guard(headers, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn guard(headers: &mut HeaderMap, kind: &'static str) {
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

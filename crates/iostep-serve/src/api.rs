//! The HTTP API, version 1; `openapi` describes it.

mod allowance;
mod answer;
mod body;
mod metrics;
mod openapi;
mod results;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::error::Result;
use crate::nonce::{GOOD, Nonces};
use crate::store::{Readers, Secret, Store, Writer};
use allowance::Allowance;
use answer::json;

pub use allowance::{Peer, Reader};
pub use answer::Failure;
pub use metrics::Metrics;
pub use results::{MEASURE, gone};
pub use upload::id;

/// The longest body that is taken, as it is sent.
pub const MOST_SENT_BYTES: usize = 1 << 20;
/// The longest one once it is unpacked.
pub const MOST_BYTES: usize = 4 << 20;

/// What an operator decides.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Uploads of one address, or of one IPv6 network, in a minute.
    pub per_address: u32,
    /// Uploads of one installation in a minute.
    pub per_installation: u32,
    /// Requests of one address that the store is read for, in a minute.
    pub questions_per_address: u32,
    /// Bytes of bodies, as they are sent, of one address in a day.
    pub bytes_per_day: u64,
    /// Addresses are those that a proxy before the server tells.
    pub behind_proxy: bool,
    pub patience: Patience,
}

impl Limits {
    /// More than any test or benchmark asks for.
    pub fn none() -> Limits {
        Limits {
            per_address: u32::MAX,
            per_installation: u32::MAX,
            questions_per_address: u32::MAX,
            bytes_per_day: u64::MAX,
            behind_proxy: false,
            patience: Patience::default(),
        }
    }
}

/// How long others may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request, and for the next request on a connection.
    pub head: Duration,
    /// For a body.
    pub body: Duration,
    /// For taking anything of an answer.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            head: Duration::from_secs(15),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(30),
        }
    }
}

/// What every answer is made of.
#[derive(Debug)]
pub struct App {
    readers: Readers,
    writer: Writer,
    secret: Secret,
    nonces: Nonces,
    limits: Limits,
    allowance: Allowance,
    metrics: Metrics,
    /// Threads that work out figures or read the store at the same time: more would not be faster,
    /// and each takes memory.
    workers: Semaphore,
}

impl App {
    /// Starts the store's thread.
    ///
    /// Errors: those of the store; `Io` if the system has no random numbers.
    pub fn new(store: &Store, limits: Limits) -> Result<App> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let no_random = crate::Error::io(store.database(), "make random numbers for");
        Ok(App {
            readers: Readers::new(store.clone()),
            writer: Writer::start(store.clone())?,
            secret: store.secret()?,
            nonces: Nonces::new().map_err(no_random)?,
            allowance: Allowance::new(&limits),
            limits,
            metrics: Metrics::default(),
            workers: Semaphore::new(2 * cpus),
        })
    }

    pub fn readers(&self) -> &Readers {
        &self.readers
    }

    /// Does something that takes a thread for a while.
    pub async fn work<T: Send + 'static>(
        self: &Arc<App>,
        work: impl FnOnce(&App) -> std::result::Result<T, Failure> + Send + 'static,
    ) -> std::result::Result<T, Failure> {
        let permit = self.workers.acquire().await;
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        drop(permit);
        done.map_err(|_| Failure::internal("a thread died"))?
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// The state of handlers.
type Shared = State<Arc<App>>;
/// What a handler answers.
type Answer = std::result::Result<Response, Failure>;

/// A way to ask: the method, of which a test makes sure that it is described, the path, and who
/// answers.
type Route = (Method, &'static str, MethodRouter<Arc<App>>);

fn routes() -> Vec<Route> {
    vec![
        (Method::GET, "/healthz", get(results::health)),
        (Method::GET, "/metrics", get(metrics::show)),
        (Method::GET, "/api/v1/openapi.json", get(openapi::show)),
        (Method::GET, "/api/v1/nonce", get(nonce)),
        (Method::POST, "/api/v1/results", post(upload::upload)),
        (Method::GET, "/api/v1/results", get(results::list)),
        (Method::GET, "/api/v1/results/{id}", get(results::one)),
        (
            Method::DELETE,
            "/api/v1/results/{id}",
            delete(upload::remove),
        ),
        (Method::GET, "/api/v1/tests", get(results::tests)),
        (Method::GET, "/api/v1/ranking", get(results::ranking)),
    ]
}

/// All of the API beside other pages, whose fallback tells of what is neither.
pub fn router(app: Arc<App>, pages: Router<Arc<App>>) -> Router {
    let mut router = pages;
    for (_, path, handler) in routes() {
        router = router.route(path, handler);
    }
    router
        .method_not_allowed_fallback(|request: Request| async move {
            let text = format!("{} is not for this page", request.method());
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method", text)
        })
        .layer(axum::middleware::map_response_with_state(
            Arc::clone(&app),
            counted,
        ))
        .with_state(app)
}

/// Counts an answer, and keeps browsers from taking it for something else.
async fn counted(State(app): Shared, mut response: Response) -> Response {
    app.metrics.answered(response.status());
    let nosniff = axum::http::HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", nosniff);
    response
}

/// What is not there.
pub fn no_page() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "no_page", "there is no such page")
}

/// A number that an upload is signed with.
#[derive(Serialize)]
struct NonceAnswer {
    nonce: String,
    /// How long it is good.
    seconds: u64,
}

async fn nonce(State(app): Shared) -> Answer {
    let nonce = app.nonces.give(std::time::Instant::now());
    let nonce = nonce.map_err(|error| Failure::internal(error.to_string()))?;
    Ok(json(
        StatusCode::OK,
        &NonceAnswer {
            nonce: iostep_model::hex::encode(&nonce),
            seconds: GOOD.as_secs(),
        },
    ))
}

#[cfg(test)]
mod tests;

//! The server: connections, and its end.

mod connections;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

use crate::api::{self, App, Limits, Patience, Peer};
use crate::error::{Error, Result};
use crate::log;
use crate::pages;
use crate::store::Store;
use connections::ConnectionLimit;

/// Connections at once: more are turned away, since each may hold a body.
const MOST_CONNECTIONS: usize = 512;
/// Those of one address: nobody alone keeps all others away. A proxy has all of them.
const MOST_OF_ONE: usize = 128;
/// The longest head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// How often somebody looks whether the end was asked for.
const TICK: Duration = Duration::from_millis(50);
/// How long requests under way may take once it was.
const GRACE: Duration = Duration::from_secs(10);

/// Answers requests until `stop` says so, and those under way then. `ready` is called with the
/// address once connections are taken.
///
/// Errors: `Refused` if another server uses the store; those of the store; `Io` if the address
/// cannot be had.
pub fn run(
    store: &Store,
    listen: SocketAddr,
    limits: Limits,
    stop: impl Fn() -> bool,
    ready: impl FnOnce(SocketAddr),
) -> Result<()> {
    let _lock = store.lock()?;
    let app = Arc::new(App::new(store, limits)?);
    let name = || PathBuf::from(listen.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("serve")
        .build()
        .map_err(Error::io(name(), "start threads for"))?;
    let done = runtime.block_on(async {
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(Error::io(name(), "listen at"))?;
        let address = listener.local_addr();
        ready(address.map_err(Error::io(name(), "listen at"))?);
        serve(&listener, &app, stop).await;
        Ok(())
    });
    // Whatever does not end by then has not been acknowledged.
    runtime.shutdown_timeout(GRACE);
    done
}

async fn serve(listener: &TcpListener, app: &Arc<App>, stop: impl Fn() -> bool) {
    let router = api::router(Arc::clone(app), pages::router());
    let graceful = GracefulShutdown::new();
    let limits = app.limits();
    let limit = ConnectionLimit::new(
        MOST_CONNECTIONS,
        match limits.behind_proxy {
            true => MOST_CONNECTIONS,
            false => MOST_OF_ONE,
        },
    );
    while !stop() {
        let Ok(accepted) = tokio::time::timeout(TICK, listener.accept()).await else {
            continue;
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Without descriptors it would be the same at once.
                log::line(&format!("error: cannot accept a connection: {error}"));
                tokio::time::sleep(TICK).await;
                continue;
            }
        };
        let Some(admitted) = limit.admit(peer.ip()) else {
            app.metrics().turned_away();
            continue;
        };
        let connection = connection(stream, peer, router.clone(), limits.patience);
        let connection = graceful.watch(connection);
        let app = Arc::clone(app);
        app.metrics().connected();
        tokio::spawn(async move {
            // Whoever broke it off knows.
            let _ = connection.await;
            app.metrics().disconnected();
            drop(admitted);
        });
    }
    if tokio::time::timeout(GRACE, graceful.shutdown())
        .await
        .is_err()
    {
        log::line("error: requests that did not end in time were broken off");
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: axum::Router,
    patience: Patience,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::HttpService<
        Incoming,
        ResBody = Body,
        Error = Infallible,
        Future = impl Future<Output = std::result::Result<Response, Infallible>>,
    >,
> {
    // Answers are short: none waits for more. Without it they would only be later.
    let _ = stream.set_nodelay(true);
    // Whoever takes nothing of an answer would keep it and the connection for ever.
    let _ = set_tcp_user_timeout(&stream, patience.answer.as_millis() as u32);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer.ip()));
        router.clone().call(request.map(Body::new))
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(HEAD_BYTES)
        // Whoever has sent all may say so.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
}

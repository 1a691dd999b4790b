//! Answers over HTTP: the only file that knows how.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::console::Console;
use super::metrics::{MEDIA_TYPE, Metrics};
use super::status::status;
use crate::failure::Failure;

/// What the server answers from.
#[derive(Clone)]
struct Sources {
    console: Arc<Console>,
    metrics: Arc<Metrics>,
}

/// Opens the port, or says why that is not possible; gives where it listens.
///
/// # Errors
/// The address is none, or taken.
pub(crate) fn listen(address: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    });
    listener.map_err(|error| {
        Failure::with_hint(
            format!("cannot serve the status at {address}: {error}"),
            "another service has the port, or the address is not of this machine; set --listen (status.listen) to another HOST:PORT, to port 0 for any free one, or to \"\" for none",
        )
    })
}

/// Serves until the process ends, on a thread of its own: a run that hangs can still be asked.
///
/// # Errors
/// No thread can be started.
pub(crate) fn serve(listener: TcpListener, console: Arc<Console>, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let router = Router::new()
        .route("/metrics", get(metrics_text))
        .route("/status", get(status_json))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Sources { console, metrics });
    let serving = async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, router).await
    };
    let serve = move || {
        if let Err(error) = runtime.block_on(serving) {
            tracing::error!("the status is served no more: {error}");
        }
    };
    std::thread::Builder::new().name("status".to_owned()).spawn(serve).map(|_| ())
}

async fn metrics_text(State(Sources { console, metrics }): State<Sources>) -> Response {
    match metrics.text(&console.overview()) {
        Ok(text) => ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn status_json(State(Sources { console, .. }): State<Sources>) -> Response {
    let text = format!("{:#}\n", status(&console.overview()));
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

async fn healthz(State(Sources { console, .. }): State<Sources>) -> Response {
    answer(console.overview().hangs())
}

async fn readyz(State(Sources { console, .. }): State<Sources>) -> Response {
    answer(console.overview().not_ready())
}

/// Yes, or why not.
fn answer(why_not: Option<String>) -> Response {
    match why_not {
        None => (StatusCode::OK, "ok\n".to_owned()).into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use fleetdiff_pipeline::run::pulse::Vitals;

    use super::super::metrics::tests::overview;
    use super::*;
    use crate::command::watch::done::Done;

    #[test]
    fn a_worker_that_hangs_is_a_reason_to_start_the_process_again() {
        let code = |seconds_ago: &[u64]| {
            let mut vitals = Vitals::at_start(Instant::now());
            for (worker, &seconds) in seconds_ago.iter().enumerate() {
                vitals.workers.insert(worker, Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap());
            }
            answer(overview(vitals, Done::default()).hangs()).status().as_u16()
        };
        assert_eq!(code(&[]), 200, "it has only begun");
        assert_eq!(code(&[1, 119]), 200, "a long look takes less");
        assert_eq!(code(&[1, 121]), 503, "one worker is enough: nothing closes without it");
    }
}

//! Callbacks: requests of peers, which their plugins read.

use crate::incoming;
use crate::peers::{RunningPeer, Shared};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use engine::{EngineAnswer, Event, ReplyTo};
use hooks::{CallbackAnswer, CallbackRequest, PeerReceipt, PluginResponse};
use model::{AddressBytes, Dlr, Message, Refusal, Timestamp};
use ports::{PassedApi, PassedOnMarker};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Maximum size of a callback's body, in octets.
const MAX_BODY: usize = 256 << 10;
/// Maximum time for the engine to store what a callback reports.
const STORE_TIMEOUT: Duration = Duration::from_secs(20);
/// Headers of a plugin's response that the host itself sets.
const OWN_HEADERS: [HeaderName; 3] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION];

type CallbackResponse = Response<Body>;

/// A response without a call of the plugin.
fn refuse(status: StatusCode, why: &'static str) -> CallbackResponse {
    let mut response = (status, format!("{why}\n")).into_response();
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/peers/{peer}/callback", any(callback))
        .route("/v1/peers/{peer}/callback/{*rest}", any(callback))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "unknown path") })
        .with_state(shared)
}

async fn callback(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(path): Path<HashMap<String, String>>,
    request: Request,
) -> CallbackResponse {
    let name = path.get("peer").map(String::as_str).unwrap_or_default();
    let peer = shared.peer(name).filter(|peer| peer.options.callbacks);
    let Some(peer) = peer else { return pass_on(&shared, name, remote, request).await };
    let counts = &peer.counts.callbacks;
    if !peer.callback_rate.lock().take(1, Instant::now()) {
        counts.limited.fetch_add(1, Relaxed);
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too many callbacks");
    }
    let Ok(_permit) = peer.callback_permits.clone().try_acquire_owned() else {
        counts.limited.fetch_add(1, Relaxed);
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many callbacks at a time");
    };
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        counts.limited.fetch_add(1, Relaxed);
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "at most 256 KiB are allowed");
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let request = CallbackRequest {
        peer: peer.name.clone(),
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: body.into(),
    };
    let (asked, called_peer) = (shared.clone(), peer.clone());
    let read = tokio::task::spawn_blocking(move || read(&asked, &called_peer, &request)).await;
    let (answer, messages) = match read {
        Ok(Ok(read)) => read,
        Ok(Err(why)) => {
            counts.failed.fetch_add(1, Relaxed);
            if let Some(suppressed) = peer.log.take(Instant::now()) {
                tracing::warn!(peer = &*peer.name, why, suppressed, "callback failed");
            }
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the callback cannot be read");
        }
        Err(_) => {
            counts.failed.fetch_add(1, Relaxed);
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the callback cannot be read");
        }
    };
    let (receipt_count, message_count) = (answer.receipts.len() as u64, messages.len() as u64);
    if let Some(note) = &answer.note
        && let Some(suppressed) = peer.log.take(Instant::now())
    {
        tracing::info!(peer = &*peer.name, note = &**note, suppressed, "callback");
    }
    if let Err(refusal) = store(&shared, &peer, &answer.receipts, messages).await {
        counts.failed.fetch_add(1, Relaxed);
        return refusal;
    }
    let result = if answer.response.status < 400 { &counts.accepted } else { &counts.refused };
    result.fetch_add(1, Relaxed);
    counts.receipts.fetch_add(receipt_count, Relaxed);
    counts.messages.fetch_add(message_count, Relaxed);
    response(answer)
}

/// Passes a callback of a peer with another home on to the leader of the home. The response to callbacks of a peer that does not exist
/// and of a peer without callbacks is the same, so that clients cannot find out names.
async fn pass_on(shared: &Shared, peer: &str, remote: SocketAddr, request: Request) -> CallbackResponse {
    let was_passed_on = request.extensions().get::<PassedOnMarker>().is_some();
    let elsewhere = shared.registry.pass_on().filter(|_| !was_passed_on);
    let elsewhere = elsewhere.and_then(|pass_on| Some((pass_on, pass_on.callbacks_elsewhere(peer)?)));
    let Some((pass_on, partition)) = elsewhere else {
        return refuse(StatusCode::NOT_FOUND, "unknown path");
    };
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "at most 256 KiB are allowed");
    };
    let request = Request::from_parts(head, body);
    pass_on.request(partition, PassedApi::PeerCallbacks, remote, request).await.unwrap_or_else(|error| {
        tracing::warn!(peer, partition, %error, "callback not passed on to the leader of its peer's home");
        refuse(StatusCode::SERVICE_UNAVAILABLE, "the callback is not stored yet")
    })
}

/// Lets the plugin read the callback, and routes the messages in it. Blocks.
fn read(
    shared: &Shared,
    peer: &RunningPeer,
    request: &CallbackRequest,
) -> Result<(CallbackAnswer, Vec<Message>), String> {
    let answer = shared.plugins.callback(request)?;
    let expires_at = Timestamp::now() + peer.options.mo_validity;
    let messages = answer.messages.iter().map(|one| incoming::message(one, peer.options.peer, expires_at));
    let mut messages = messages.collect::<Result<Vec<_>, _>>()?;
    shared.routing.route_many(&mut messages.iter_mut().collect::<Vec<_>>());
    Ok((answer, messages))
}

fn dlr(receipt: &PeerReceipt) -> Dlr {
    // Without plus signs, like the addresses of messages.
    let number = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        AddressBytes::from_slice(text.strip_prefix('+').unwrap_or(text).as_bytes())
    };
    Dlr {
        id: receipt.id.clone(),
        state: receipt.state,
        intermediate: !receipt.state.is_final(),
        error: receipt.error,
        network_error: None,
        done_at: receipt.at,
        from: number(&receipt.subscriber),
        to: number(&receipt.sender),
    }
}

/// Passes the receipts and messages to the engine, and waits until they are durable.
async fn store(
    shared: &Shared,
    peer: &RunningPeer,
    receipts: &[PeerReceipt],
    messages: Vec<Message>,
) -> Result<(), CallbackResponse> {
    if receipts.is_empty() && messages.is_empty() {
        return Ok(());
    }
    let id = peer.options.peer;
    let events = |reply: &mut dyn FnMut() -> ReplyTo| {
        let mut events: Vec<Event> = Vec::new();
        events.extend(receipts.iter().map(|one| Event::Dlr { peer: id, dlr: dlr(one), reply: reply() }));
        let accept = |message| Event::Accept { message: Box::new(message), reply: reply() };
        events.extend(messages.into_iter().map(accept));
        events
    };
    let Ok(answers) = shared.engine_client.request_all(&*shared.core, STORE_TIMEOUT, events).await else {
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "the callback is not stored yet"));
    };
    let mut refused: Option<Refusal> = None;
    for answer in answers {
        match answer {
            EngineAnswer::Accepted(_) => return Ok(()),
            EngineAnswer::Refused(refusal) => refused = Some(refusal),
            _ => {}
        }
    }
    let Some(refusal) = refused else { return Ok(()) };
    if let Some(suppressed) = peer.log.take(Instant::now()) {
        tracing::warn!(peer = &*peer.name, ?refusal, suppressed, "message of a peer refused");
    }
    Err(match refusal {
        Refusal::Rejected(_) | Refusal::Expired => {
            refuse(StatusCode::UNPROCESSABLE_ENTITY, "the message is refused")
        }
        _ => refuse(StatusCode::SERVICE_UNAVAILABLE, "the message is not accepted now"),
    })
}

/// The plugin's response. A header that HTTP does not allow is left out.
fn response(answer: CallbackAnswer) -> CallbackResponse {
    let PluginResponse { status, headers, body } = answer.response;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
            && !OWN_HEADERS.contains(&name)
        {
            response.headers_mut().append(name, value);
        }
    }
    response
}

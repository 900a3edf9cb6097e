//! Pages that update themselves, with a fake API.

use crate::page_requests::get;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use futures_util::StreamExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::fake_api::FakeApi;
use tower::ServiceExt as _;

#[tokio::test]
async fn a_live_stream_ends_with_its_session_and_permission() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = ended.clone();
        let api = FakeApi::appliance(2, 2).router().layer(middleware::from_fn(
            move |request: Request<Body>, next: Next| {
                let over = seen.load(Ordering::Relaxed);
                async move { if over { status.into_response() } else { next.run(request).await } }
            },
        ));
        let console = console::router(api);
        let request = Request::get("/live?of=queues")
            .header(header::COOKIE, "switchyard-session=admin")
            .body(Body::empty())
            .unwrap();
        let mut body = console.oneshot(request).await.unwrap().into_body().into_data_stream();
        let first = body.next().await.unwrap().unwrap();
        assert!(first.starts_with(b"data:"), "{first:?}");
        ended.store(true, Ordering::Relaxed);
        // Only keep-alive comments may precede the last event, and nothing follows it.
        let rest = tokio::time::timeout(Duration::from_secs(60), body.collect::<Vec<_>>()).await;
        let rest: Vec<_> = rest.unwrap().into_iter().map(Result::unwrap).collect();
        let (last, before) = rest.split_last().unwrap();
        assert!(last.starts_with(b"event: reload") || last.starts_with(b"event:reload"), "{last:?}");
        assert!(before.iter().all(|chunk| chunk.starts_with(b":")), "{before:?}");
    }
}

/// A live page without a session is told to reload; the reload redirects to the login, with the page as the target.
#[tokio::test]
async fn a_live_page_without_a_session_reloads() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    let request = Request::get("/live?of=queues").body(Body::empty()).unwrap();
    let answer = console.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.starts_with("event: reload") || body.starts_with("event:reload"), "{body:?}");
    let page = get(&console, "/queues", "").await;
    assert_eq!((page.status, page.location.as_str()), (StatusCode::SEE_OTHER, "/login?next=%2Fqueues"));
}

#[tokio::test]
async fn live_regions_are_sent_as_events_with_ids() {
    let console = console::router(FakeApi::appliance(2, 2).router());
    for path in [
        "/live?of=overview",
        "/live?of=overview&id=day",
        "/live?of=messages&id=%3Faccount%3Dacme",
        "/live?of=hook&id=router",
        "/live?of=peer&id=north",
        "/live?of=gateway&id=unicom",
        "/live?of=account&id=acme",
        "/live?of=queues",
        "/live?of=message&id=2",
        "/live?of=networks",
    ] {
        let request = Request::get(path)
            .header(header::COOKIE, "switchyard-session=admin")
            .body(Body::empty())
            .unwrap();
        let answer = console.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream", "{path}");
        let mut body = answer.into_body().into_data_stream();
        let first = futures_util::StreamExt::next(&mut body).await.unwrap().unwrap();
        let first = String::from_utf8(first.to_vec()).unwrap();
        let page: serde_json::Value =
            serde_json::from_str(first.trim().strip_prefix("data:").unwrap().trim()).unwrap();
        assert!(
            page[0]["id"].is_string() && page[0]["html"].as_str().is_some_and(|html| !html.is_empty()),
            "{path}"
        );
    }
}

//! Arbitrary bodies through the HTTP interface for business systems, up to the engine: no panic, no half-parsed message is
//! accepted, and every answer can be parsed by its reader.
#![no_main]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, header};
use base64::Engine as _;
use business::{Business, BusinessAccountOptions, BusinessOptions};
use engine::{EngineAnswer, EngineCommand, Event, ReplyTo};
use libfuzzer_sys::fuzz_target;
use model::{
    Address, Leg, Message, MessageId, MessageKind, PeerId, PluginVersion, Refusal, RoutingDecision, Verdict,
};
use ports::{EventSink, LinkRegistry, Routing};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::runtime::Runtime;
use tower::ServiceExt;

const SHOP: PeerId = PeerId(1);
const MAX_SEGMENTS: usize = 4;
const BATCH: usize = 20;

/// A fake engine that accepts well-formed messages.
struct FakeEngine {
    registry: Arc<LinkRegistry>,
    next: AtomicU64,
}

impl FakeEngine {
    fn answer(&self, to: ReplyTo, answer: EngineAnswer) {
        self.registry.dispatch(vec![EngineCommand::Answer { to, answer }]);
    }
}

impl EventSink for FakeEngine {
    fn push(&self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::AcceptMany { messages, reply, .. } => {
                    assert!((1..=BATCH).contains(&messages.len()), "{} messages", messages.len());
                    messages.iter().for_each(check);
                    let ids = messages.iter().map(|_| Ok(MessageId(self.next.fetch_add(1, Relaxed))));
                    self.answer(reply, EngineAnswer::AcceptedMany(ids.collect()));
                }
                Event::Query { reply, .. } | Event::SettleUncertain { reply, .. } => {
                    self.answer(reply, EngineAnswer::Refused(Refusal::UnknownMessage));
                }
                _ => {}
            }
        }
    }
}

/// Properties of every accepted message.
fn check(message: &Message) {
    assert!(matches!(message.kind, MessageKind::Text));
    assert_eq!(message.origin, SHOP);
    let digits = message.destination.text();
    assert!((3..=20).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()), "{digits}");
    assert!(!message.source.text().is_empty());
    let octets = &message.text.octets;
    assert!(octets.len() <= MAX_SEGMENTS * 153 && (octets.len() <= 140 || !message.text.udhi));
    if message.text.udhi {
        assert!(sgip::text::header(octets).is_some(), "a header longer than its message");
    }
    assert!(message.expires_at >= message.scheduled.unwrap_or_default());
    // Private values can be read back completely.
    let fields = sgip::SgipFields::read(&message.tlvs);
    let mut again = bytes::BytesMut::new();
    fields.append_to(&mut again);
    assert_eq!(again, message.tlvs);
}

struct FixedRouting;

impl Routing for FixedRouting {
    fn route(&self, message: &mut Message) {
        let by = Arc::new(PluginVersion { plugin: "fuzz".into(), version: "1".into() });
        message.routed = RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(2))]), by);
    }
}

struct BusinessFixture {
    runtime: Runtime,
    router: Router,
    login: String,
    _business: Business,
}

impl BusinessFixture {
    fn new() -> Self {
        // A clock that jumps over every wait: long polls and timeouts cost nothing.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("no runtime");
        let entered = runtime.enter();
        let registry = Arc::new(LinkRegistry::new());
        let core = Arc::new(FakeEngine { registry: registry.clone(), next: AtomicU64::new(1) });
        let business =
            Business::new(BusinessOptions::default(), core, Arc::new(FixedRouting), registry, None)
                .expect("no business");
        let hash = ports::hash_password(b"secret").expect("no hash");
        let mut account = BusinessAccountOptions::new("shop", SHOP, &hash);
        account.source.default = Some(Address::new(0, 1, b"10655"));
        (account.max_segments, account.batch) = (MAX_SEGMENTS, BATCH);
        business.set_account(account).expect("no account");
        drop(entered);
        let login = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("shop:secret"));
        Self { runtime, router: business.router(), login, _business: business }
    }

    fn ask(&self, path: &str, key: Option<&str>, body: &[u8]) -> (Response<()>, String) {
        let request = Request::post(path).header(header::AUTHORIZATION, &self.login);
        let request = match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        };
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let request = request.extension(ConnectInfo(remote)).body(Body::from(body.to_vec()));
        let request = request.expect("we made a bad request");
        self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let (parts, body) = response.into_parts();
            let body = to_bytes(body, 64 << 20).await.expect("an answer without an end");
            (
                Response::from_parts(parts, ()),
                String::from_utf8(body.to_vec()).expect("an answer that is not UTF-8"),
            )
        })
    }
}

thread_local! {
    static FIXTURE: BusinessFixture = BusinessFixture::new();
}

/// XML 1.0 §2.2.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, body)) = input.split_first() else { return };
    FIXTURE.with(|fixture| {
        let (path, key) = match which % 6 {
            0 => ("/xmlrpc", None),
            1 => ("/v1/messages", None),
            2 => ("/v1/messages", Some("order 7")),
            3 => ("/v1/messages/states", None),
            4 => ("/v1/inbox/acknowledge", None),
            _ => ("/RPC2", None),
        };
        let (response, text) = fixture.ask(path, key, body);
        let status = response.status().as_u16();
        if path.starts_with("/v1") {
            let document: serde_json::Value = serde_json::from_str(&text).expect("an answer that is no JSON");
            assert_ne!(status, 500, "{text}");
            if status >= 400 {
                assert_eq!(document["status"], status);
                assert!(document["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
            }
        } else {
            assert_eq!(status, 200);
            assert!(text.chars().all(is_xml), "an answer that is no XML: {text:?}");
            assert!(text.trim_end().ends_with("</methodResponse>"), "{text}");
            assert!(!text.contains("internal: "), "{text}");
        }
    });
});

//! Any body through the doors of business systems, from HTTP to what reaches the engine: no panic, nothing half-read is
//! accepted, and every answer is one that its reader can read.
#![no_main]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, header};
use base64::Engine as _;
use business::{AccountOptions, Business, BusinessOptions};
use doors::{Core, Hub, Routing};
use engine::{Answer, Command, Event, ReplyTo};
use libfuzzer_sys::fuzz_target;
use model::{Address, DecidedBy, Kind, Leg, Message, MessageId, PeerId, Refusal, Routed, Verdict};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::runtime::Runtime;
use tower::ServiceExt;

const SHOP: PeerId = PeerId(1);
const PARTS: usize = 4;
const BATCH: usize = 20;

/// Takes what is well-formed, and knows nothing.
struct Taker {
    hub: Arc<Hub>,
    next: AtomicU64,
}

impl Taker {
    fn answer(&self, to: ReplyTo, answer: Answer) {
        self.hub.dispatch(vec![Command::Answer { to, answer }]);
    }
}

impl Core for Taker {
    fn push(&self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::AcceptMany { messages, reply, .. } => {
                    assert!((1..=BATCH).contains(&messages.len()), "{} messages", messages.len());
                    messages.iter().for_each(check);
                    let ids = messages.iter().map(|_| Ok(MessageId(self.next.fetch_add(1, Relaxed))));
                    self.answer(reply, Answer::AcceptedMany(ids.collect()));
                }
                Event::Query { reply, .. } | Event::Settle { reply, .. } => {
                    self.answer(reply, Answer::Refused(Refusal::UnknownMessage));
                }
                _ => {}
            }
        }
    }
}

/// What holds of every message that is accepted.
fn check(message: &Message) {
    assert!(matches!(message.kind, Kind::Text));
    assert_eq!(message.origin, SHOP);
    let digits = message.destination.text();
    assert!((3..=20).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()), "{digits}");
    assert!(!message.source.text().is_empty());
    let octets = &message.text.octets;
    assert!(octets.len() <= PARTS * 153 && (octets.len() <= 140 || !message.text.udhi));
    if message.text.udhi {
        assert!(sgip::text::header(octets).is_some(), "a header longer than its message");
    }
    assert!(message.expires_at >= message.scheduled.unwrap_or_default());
    // What is private is read back whole.
    let fields = sgip::Fields::read(&message.tlvs);
    let mut again = bytes::BytesMut::new();
    fields.append_to(&mut again);
    assert_eq!(again, message.tlvs);
}

struct Anywhere;

impl Routing for Anywhere {
    fn route(&self, _: &Message) -> Routed {
        let by = Arc::new(DecidedBy { plugin: "fuzz".into(), version: "1".into() });
        Routed {
            verdict: Verdict::Forward(vec![Leg::to(PeerId(2))]),
            by,
            note: None,
            quote: None,
            seen: None,
            faulted: None,
        }
    }
}

struct House {
    runtime: Runtime,
    router: Router,
    login: String,
    _business: Business,
}

impl House {
    fn new() -> Self {
        // A clock that leaps over every wait: long polls and patience cost nothing.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("no runtime");
        let entered = runtime.enter();
        let hub = Arc::new(Hub::new());
        let core = Arc::new(Taker { hub: hub.clone(), next: AtomicU64::new(1) });
        let business =
            Business::new(BusinessOptions::default(), Arc::default(), core, Arc::new(Anywhere), hub).expect("no business");
        let hash = doors::hash_password(b"secret").expect("no hash");
        let mut account = AccountOptions::new("shop", SHOP, &hash);
        account.source.default = Some(Address::new(0, 1, b"10655"));
        (account.parts, account.batch) = (PARTS, BATCH);
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
    static HOUSE: House = House::new();
}

/// XML 1.0 §2.2.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, body)) = input.split_first() else { return };
    HOUSE.with(|house| {
        let (path, key) = match which % 6 {
            0 => ("/xmlrpc", None),
            1 => ("/v1/messages", None),
            2 => ("/v1/messages", Some("order 7")),
            3 => ("/v1/messages/states", None),
            4 => ("/v1/inbox/acknowledge", None),
            _ => ("/RPC2", None),
        };
        let (response, text) = house.ask(path, key, body);
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

//! Calls and pushes over real HTTP, with a real engine that stores nothing.

use base64::Engine as _;
use business::{
    Business, BusinessAccountOptions, BusinessOptions, PushFormat, PushOptions, SIGNATURE_HEADER, signature,
};
use engine::{
    Engine, EngineAnswer, EngineCommand, Event, Output, PeerSettings, ReplyTo, Settings, UncertainPolicy,
};
use model::{
    Dlr, DlrState, Leg, LinkId, Message, MessageId, Moment, Now, Outcome, PeerId, PeerMessageId,
    PluginVersion, Refusal, RejectReason, RoutingDecision, Timestamp, Verdict,
};
use parking_lot::Mutex;
use ports::{EventSink, LinkRegistry, Routing};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::api_document::check_answer_of;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const SHOP: PeerId = PeerId(1);
const GATEWAY: PeerId = PeerId(2);
const TIMEOUT: Duration = Duration::from_secs(20);

/// A real engine; its output is discarded.
struct TestCore {
    engine: Mutex<Engine>,
    registry: Arc<LinkRegistry>,
    started: Instant,
}

impl TestCore {
    fn now(&self) -> Now {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap();
        Now { wall: Timestamp(1_795_000_000_000 + passed), mono: Moment(1_000_000 + passed) }
    }

    fn run(&self, events: Vec<Event>) {
        let mut engine = self.engine.lock();
        let mut out = Output::default();
        let now = self.now();
        for event in events {
            engine.apply(now, event, &mut out);
        }
        engine.advance(now, &mut out);
        engine.seal(&mut out);
        for command in self.registry.dispatch(out.commands) {
            match command {
                // There is no store: a message that is not in memory does not exist.
                EngineCommand::LookUp { to, .. } => {
                    let answer = EngineAnswer::Refused(Refusal::UnknownMessage);
                    self.registry.dispatch(vec![EngineCommand::Answer { to, answer }]);
                }
                other => panic!("unexpected command: {other:?}"),
            }
        }
    }
}

impl EventSink for TestCore {
    fn push(&self, events: Vec<Event>) {
        self.run(events);
    }
}

struct RouteToGateway;

impl Routing for RouteToGateway {
    fn route(&self, message: &mut Message) {
        let by = Arc::new(PluginVersion { plugin: "test".into(), version: "1".into() });
        let verdict = if message.destination.text().starts_with("999") {
            Verdict::Reject(RejectReason::NoRoute)
        } else {
            Verdict::Forward(vec![Leg::to(if message.origin == SHOP { GATEWAY } else { SHOP })])
        };
        message.routed = RoutingDecision::new(verdict, by);
    }
}

struct Fixture {
    business: Business,
    core: Arc<TestCore>,
    address: SocketAddr,
    /// The gateway's link and the commands sent to it.
    gateway: LinkId,
    sent: ports::LinkHandle,
    account: BusinessAccountOptions,
}

async fn fixture(change: impl FnOnce(&mut BusinessAccountOptions)) -> Fixture {
    let registry = Arc::new(LinkRegistry::new());
    let core = Arc::new(TestCore {
        engine: Mutex::new(Engine::new(Settings::default())),
        registry: registry.clone(),
        started: Instant::now(),
    });
    let mut shop = PeerSettings::new(SHOP);
    (shop.addressee, shop.sends_dlrs, shop.uncertainty) = (true, false, UncertainPolicy::SendAgain);
    shop.retry = vec![Duration::from_millis(50)];
    core.run(vec![Event::Peer(shop), Event::Peer(PeerSettings::new(GATEWAY))]);
    let ticking = Arc::downgrade(&core);
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        while let Some(core) = ticking.upgrade() {
            core.run(Vec::new());
            drop(core);
            tick.tick().await;
        }
    });
    let mut sent = ports::LinkHandle::register(core.clone(), registry.clone(), ports::Protocol::Smpp);
    let (gateway, mut events) = (sent.link(), Vec::new());
    sent.announce(GATEWAY, 1000, &mut events);
    core.run(events);
    let business =
        Business::new(BusinessOptions::default(), core.clone(), Arc::new(RouteToGateway), registry, None)
            .unwrap();
    let hash = ports::hash_password(b"secret").unwrap();
    let mut account = BusinessAccountOptions::new("shop", SHOP, &hash);
    account.source.default = Some(model::Address::new(0, 1, b"10655"));
    change(&mut account);
    business.set_account(account.clone()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = business.router().into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    Fixture { business, core, address, gateway, sent, account }
}

impl Fixture {
    /// Makes a request on a blocking thread. An answer of the JSON interface must conform to the OpenAPI document.
    async fn request(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, Value) {
        self.request_as("shop:secret", method, path, key, body).await
    }

    async fn request_as(
        &self,
        who: &str,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let url = format!("http://{}{path}", self.address);
        let login = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(who));
        let mut request =
            ureq::http::Request::builder().method(method).uri(url).header("Authorization", login);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let request = request.body(body.to_owned()).unwrap();
        let response = tokio::task::spawn_blocking(move || {
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
                .timeout_global(Some(TIMEOUT))
                .build()
                .into();
            let mut response = agent.run(request).unwrap();
            (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
        });
        let (status, text) = response.await.unwrap();
        let Ok(body) = serde_json::from_str(&text) else { return (status, Value::String(text)) };
        if path.starts_with("/v1") {
            check_answer_of(business::document(), method, path, status, Some(&body)).unwrap();
        }
        (status, body)
    }

    async fn submit(&self, body: Value) -> (u16, Value) {
        self.request("POST", "/v1/messages", None, &body.to_string()).await
    }

    /// The next message sent to the gateway.
    async fn sent(&mut self) -> Arc<Message> {
        loop {
            let batch = tokio::time::timeout(TIMEOUT, self.sent.recv()).await.unwrap();
            for delivery in batch {
                if let ports::LinkCommand::Send { message, .. } = delivery {
                    return message;
                }
            }
        }
    }

    /// The gateway accepts a message and sends a DLR.
    fn send_dlr(&self, id: MessageId, state: DlrState) {
        let peer_id = PeerMessageId::new(id.to_string().as_bytes());
        let link = self.gateway;
        let outcome = Outcome::Accepted { ids: vec![peer_id.clone()] };
        let dlr = Dlr {
            id: peer_id,
            state,
            intermediate: false,
            error: 0,
            network_error: None,
            done_at: None,
            from: Default::default(),
            to: Default::default(),
        };
        let reply = ReplyTo { link, token: 0 };
        self.core.run(vec![Event::Outcome { link, id, outcome }, Event::Dlr { peer: GATEWAY, dlr, reply }]);
    }
}

fn id_of(result: &Value) -> MessageId {
    result["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_call_returns_ids_and_may_be_repeated_with_its_idempotency_key() {
    let mut fixture = fixture(|_| {}).await;
    let body = json!({ "to": ["8613012345678", "8613112345678"], "text": "hi" }).to_string();
    let (status, first) = fixture.request("POST", "/v1/messages", Some("order-7"), &body).await;
    assert_eq!(status, 202, "{first}");
    let (status, again) = fixture.request("POST", "/v1/messages", Some("order-7"), &body).await;
    assert_eq!((status, &again), (202, &first));
    assert_eq!(fixture.core.engine.lock().totals().accepted, 2, "no message was accepted twice");
    let other = json!({ "to": "8613012345678", "text": "other" }).to_string();
    let (status, problem) = fixture.request("POST", "/v1/messages", Some("order-7"), &other).await;
    assert_eq!((status, &problem["title"]), (409, &json!("key-reused")));
    assert_eq!(fixture.sent().await.text.octets, "hi");
    let id = id_of(&first["messages"][0]);
    let (status, state) = fixture.request("GET", &format!("/v1/messages/{id}"), None, "").await;
    assert_eq!((status, &state["state"]), (200, &json!("enroute")));
    assert_eq!(fixture.request("GET", "/v1/messages/1999999999", None, "").await.0, 404);
    assert_eq!(fixture.request("GET", "/v1/messages/x", None, "").await.0, 404);
}

#[tokio::test]
async fn an_invalid_call_is_rejected_with_all_field_errors() {
    let fixture = fixture(|_| {}).await;
    let (status, problem) = fixture
        .submit(json!({ "messages": [
            { "to": "8613012345678", "text": "good" },
            { "to": "nobody", "text": "x" },
            { "to": "123", "text": "x", "coding": "utf-7" },
        ] }))
        .await;
    assert_eq!((status, problem["errors"].as_array().map(Vec::len)), (422, Some(2)), "{problem}");
    assert_eq!(problem["errors"][0]["field"], "messages[1].to");
    assert_eq!(fixture.core.engine.lock().totals().accepted, 0);
    // Routing rejects messages one by one; if none is accepted, the whole call is rejected.
    let (status, results) = fixture.submit(json!({ "to": ["8613012345678", "9991"], "text": "x" })).await;
    assert_eq!(status, 202);
    assert_eq!(
        (results["messages"][1]["error"].clone(), id_of(&results["messages"][0])),
        (json!("rejected"), MessageId::FIRST)
    );
    let (status, problem) = fixture.submit(json!({ "to": "9991", "text": "x" })).await;
    assert_eq!((status, &problem["title"]), (422, &json!("rejected")));
    for (body, status) in [("{", 400), ("[]", 422), ("{\"messages\": 1}", 422), ("\u{0}", 400)] {
        assert_eq!(fixture.request("POST", "/v1/messages", None, body).await.0, status, "{body:?}");
    }
    assert_eq!(fixture.request_as("shop:wrong", "POST", "/v1/messages", None, "{}").await.0, 401);
    assert_eq!(fixture.request_as("nobody:secret", "POST", "/xmlrpc", None, "").await.0, 401);
    assert_eq!(fixture.request("GET", "/nowhere", None, "").await.0, 404);
}

#[tokio::test]
async fn ambiguous_input_is_rejected() {
    let fixture = fixture(|_| {}).await;
    let good = json!({ "to": "8613012345678", "text": "hi" }).to_string();
    let with =
        |headers: &'static [(&'static str, &'static str)], method: &'static str, path: &str, body: String| {
            let url = format!("http://{}{path}", fixture.address);
            let login = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("shop:secret"));
            let mut request =
                ureq::http::Request::builder().method(method).uri(url).header("Authorization", login);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(body).unwrap();
            async move {
                let response = tokio::task::spawn_blocking(move || {
                    let agent: ureq::Agent = ureq::Agent::config_builder()
                        .http_status_as_error(false)
                        .timeout_global(Some(TIMEOUT))
                        .build()
                        .into();
                    agent.run(request).unwrap().status().as_u16()
                });
                response.await.unwrap()
            }
        };
    let twice: &[_] = &[("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    assert_eq!(with(twice, "POST", "/v1/messages", good.clone()).await, 400);
    assert_eq!(with(&[("Content-Encoding", "gzip")], "POST", "/v1/messages", good.clone()).await, 415);
    assert_eq!(with(&[("Content-Encoding", "gzip")], "POST", "/xmlrpc", good.clone()).await, 415);
    let doubled = r#"{"to": "8613012345678", "to": "8613112345678", "text": "hi"}"#.to_owned();
    assert_eq!(with(&[], "POST", "/v1/messages", doubled).await, 400);
    assert_eq!(fixture.core.engine.lock().totals().accepted, 0);
    assert_eq!(with(&[("Content-Encoding", "identity")], "POST", "/v1/messages", good).await, 202);
}

/// A HEAD request would not show the leased items.
#[tokio::test]
async fn a_head_request_leases_nothing() {
    let mut fixture = fixture(|_| {}).await;
    let (_, accepted) = fixture.submit(json!({ "to": "8613012345678", "text": "hi" })).await;
    fixture.sent().await;
    fixture.send_dlr(id_of(&accepted["messages"][0]), DlrState::Delivered);
    assert_eq!(fixture.request("HEAD", "/v1/inbox?max=10&wait=5", None, "").await.0, 405);
    let (status, batch) = fixture.request("GET", "/v1/inbox?max=10&wait=5", None, "").await;
    assert_eq!((status, batch["items"].as_array().map(Vec::len)), (200, Some(1)), "{batch}");
}

#[tokio::test]
async fn rate_and_size_are_limited() {
    let fixture = fixture(|account| (account.rate, account.burst) = (Some(0.001), 2)).await;
    let body = json!({ "to": ["8613012345678", "8613112345678"], "text": "x" });
    assert_eq!(fixture.submit(body.clone()).await.0, 202);
    assert_eq!(fixture.submit(body).await.0, 429);
    let large = "x".repeat((4 << 20) + 1);
    assert_eq!(fixture.request("POST", "/v1/messages", None, &large).await.0, 413);
}

#[tokio::test]
async fn xml_rpc_offers_the_same_operations() {
    let mut fixture = fixture(|_| {}).await;
    let call = |method: &str, parameters: &str| {
        format!(
            "<?xml version='1.0'?><methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>"
        )
    };
    let text = |value: Value| value.as_str().unwrap().to_owned();
    let message = "<param><value><struct><member><name>to</name><value><string>8613012345678</string></value></member>\
                   <member><name>text</name><value><string>hi</string></value></member></struct></value></param>";
    let (status, answer) = fixture.request("POST", "/xmlrpc", None, &call("sms.submit", message)).await;
    let answer = text(answer);
    assert!(status == 200 && answer.contains("1000000000"), "{answer}");
    assert_eq!(fixture.sent().await.text.octets, "hi");
    let whole = message.replace("<string>8613012345678</string>", "<int>8613012345678</int>");
    let whole = call("sms.submit", &format!("{whole}<param><value><nil/></value></param>"));
    let answer = text(fixture.request("POST", "/xmlrpc", None, &whole).await.1);
    assert!(!answer.contains("fault"), "{answer}");
    assert_eq!(&*fixture.sent().await.destination.value, b"8613012345678");
    let bad = message.replace("8613012345678", "nobody");
    let answer = text(fixture.request("POST", "/RPC2", None, &call("sms.submit", &bad)).await.1);
    assert!(answer.contains("faultCode") && answer.contains("<i4>3</i4>"), "{answer}");
    let answer = text(fixture.request("POST", "/RPC2", None, &call("no.such", "")).await.1);
    assert!(answer.contains("-32601"), "{answer}");
    let answer = text(fixture.request("POST", "/RPC2", None, "<html>").await.1);
    assert!(answer.contains("-32700"), "{answer}");
    let answer = text(fixture.request("POST", "/RPC2", None, &call("system.listMethods", "")).await.1);
    assert!(answer.contains("sms.submitMany"), "{answer}");
}

#[tokio::test]
async fn multicalls_are_limited_to_the_batch_size() {
    let fixture = fixture(|account| account.batch = 3).await;
    for (calls, is_taken) in [(3, true), (4, false)] {
        let list = "<value><struct></struct></value>".repeat(calls);
        let list = format!("<param><value><array><data>{list}</data></array></value></param>");
        let body = format!(
            "<methodCall><methodName>system.multicall</methodName><params>{list}</params></methodCall>"
        );
        let (_, answer) = fixture.request("POST", "/RPC2", None, &body).await;
        let answer = answer.as_str().unwrap_or_default();
        assert_eq!(answer.contains("at most 3 are allowed"), !is_taken, "{answer}");
        assert_eq!(answer.matches("faultCode").count(), if is_taken { calls } else { 1 }, "{answer}");
    }
}

#[tokio::test]
async fn fetched_items_are_offered_again_until_acknowledged() {
    let mut fixture = fixture(|account| account.lease = Duration::from_secs(600)).await;
    let (_, results) =
        fixture.submit(json!({ "to": "8613012345678", "text": "x", "reference": "order 7" })).await;
    let id = id_of(&results["messages"][0]);
    fixture.sent().await;
    let (_, nothing) = fixture.request("GET", "/v1/inbox", None, "").await;
    assert_eq!(nothing["items"], json!([]));
    fixture.send_dlr(id, DlrState::Delivered);
    let (_, fetched) = fixture.request("GET", "/v1/inbox?wait=5", None, "").await;
    let item = &fetched["items"][0];
    assert_eq!(
        (&item["type"], &item["message_id"], &item["state"]),
        (&json!("dlr"), &json!(id.to_string()), &json!("delivered"))
    );
    assert_eq!((&item["to"], &item["reference"]), (&json!("8613012345678"), &json!("order 7")));
    // Leased items are not offered again; acknowledging nothing releases them.
    assert_eq!(fixture.request("GET", "/v1/inbox", None, "").await.1["items"], json!([]));
    let none = json!({ "batch": fetched["batch"], "ids": [] }).to_string();
    assert_eq!(
        fixture.request("POST", "/v1/inbox/acknowledge", None, &none).await.1,
        json!({ "acknowledged": 0 })
    );
    let (_, again) = fixture.request("GET", "/v1/inbox?wait=5", None, "").await;
    assert_eq!(&again["items"][0], item);
    let all = json!({ "batch": again["batch"] }).to_string();
    assert_eq!(
        fixture.request("POST", "/v1/inbox/acknowledge", None, &all).await.1,
        json!({ "acknowledged": 1 })
    );
    assert_eq!(fixture.request("POST", "/v1/inbox/acknowledge", None, &all).await.0, 404);
    assert_eq!(fixture.request("GET", "/v1/inbox", None, "").await.1["items"], json!([]));
    assert_eq!(fixture.core.engine.lock().live(), 0, "all messages have ended");
}

#[tokio::test]
async fn an_expired_lease_offers_its_items_again() {
    let mut fixture = fixture(|account| account.lease = Duration::from_millis(100)).await;
    let (_, results) = fixture.submit(json!({ "to": "8613012345678", "text": "x" })).await;
    fixture.sent().await;
    fixture.send_dlr(id_of(&results["messages"][0]), DlrState::Expired);
    let (_, first) = fixture.request("GET", "/v1/inbox?wait=5", None, "").await;
    let (_, second) = fixture.request("GET", "/v1/inbox?wait=10", None, "").await;
    assert_eq!(first["items"], second["items"]);
    assert_eq!(first["items"][0]["state"], "expired");
}

/// A push that arrived: selected headers and the body.
#[derive(Debug)]
struct PushRequest {
    signature: String,
    body: String,
}

/// A business system that responds with the given statuses, then with 200.
async fn shop(statuses: Vec<u16>) -> (String, UnboundedReceiver<PushRequest>) {
    let (sender, requests) = unbounded_channel();
    let statuses = Arc::new(Mutex::new(std::collections::VecDeque::from(statuses)));
    let take = move |headers: axum::http::HeaderMap, body: String| {
        let (sender, statuses): (UnboundedSender<PushRequest>, _) = (sender.clone(), statuses.clone());
        async move {
            let signature = headers[SIGNATURE_HEADER].to_str().unwrap().to_owned();
            let status = statuses.lock().pop_front().unwrap_or(200);
            let _ = sender.send(PushRequest { signature, body });
            let answer = "<methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>";
            (axum::http::StatusCode::from_u16(status).unwrap(), answer)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sms", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/sms", axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, requests)
}

fn push_to(url: &str, format: PushFormat, window: usize) -> PushOptions {
    PushOptions {
        url: url.to_owned(),
        format,
        secret: "key".to_owned(),
        window,
        timeout: Duration::from_secs(5),
        dlr_urls: Vec::new(),
    }
}

async fn next(requests: &mut UnboundedReceiver<PushRequest>) -> PushRequest {
    tokio::time::timeout(TIMEOUT, requests.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn dlrs_are_signed_and_pushed_again_until_accepted() {
    let (url, mut requests) = shop(vec![500, 503]).await;
    let mut fixture = fixture(|account| account.push = Some(push_to(&url, PushFormat::Json, 1))).await;
    let (_, results) = fixture.submit(json!({ "to": "8613012345678", "text": "x" })).await;
    fixture.sent().await;
    fixture.send_dlr(id_of(&results["messages"][0]), DlrState::Delivered);
    let first = next(&mut requests).await;
    let seconds: u64 = first.signature[2..].split(',').next().unwrap().parse().unwrap();
    assert_eq!(first.signature, signature("key", seconds, first.body.as_bytes()));
    let item: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!((&item["type"], &item["state"]), (&json!("dlr"), &json!("delivered")));
    assert_eq!(next(&mut requests).await.body, first.body);
    assert_eq!(next(&mut requests).await.body, first.body);
    fixture.business.shutdown(Duration::from_secs(5)).await;
    let state = &fixture.business.states()[0];
    let push = state.push.as_ref().unwrap();
    assert_eq!((push.pushed, push.failures, &push.last_error), (1, 2, &None));
    assert_eq!(fixture.core.engine.lock().live(), 0);
}

#[tokio::test]
async fn a_rejected_item_waits_while_the_next_is_pushed() {
    let (url, mut requests) = shop(vec![400]).await;
    let mut fixture = fixture(|account| account.push = Some(push_to(&url, PushFormat::XmlRpc, 1))).await;
    for text in ["one", "two"] {
        let (_, results) = fixture.submit(json!({ "to": "8613012345678", "text": text })).await;
        fixture.sent().await;
        fixture.send_dlr(id_of(&results["messages"][0]), DlrState::Delivered);
    }
    let bodies =
        [next(&mut requests).await.body, next(&mut requests).await.body, next(&mut requests).await.body];
    assert!(bodies[0].contains("<methodName>sms.dlr</methodName>"), "{}", bodies[0]);
    assert_ne!(bodies[0], bodies[1]);
    assert!(bodies[2] == bodies[0], "the refused message was pushed again");
}

#[tokio::test]
async fn an_invalid_url_is_rejected_with_the_account_name() {
    let fixture = fixture(|_| {}).await;
    let account = BusinessAccountOptions {
        push: Some(push_to("ftp://x", PushFormat::Json, 1)),
        ..fixture.account.clone()
    };
    let error = fixture.business.set_account(account).unwrap_err();
    assert!(error.to_string().contains("must be an http or https URL"), "{error}");
}

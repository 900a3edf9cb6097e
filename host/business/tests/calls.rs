//! Calls and pushes over real HTTP, with a real engine behind them that commits to nowhere.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that fails is to stop here"
)]

use base64::Engine as _;
use business::{
    AccountOptions, Business, BusinessOptions, PushFormat, PushOptions, SIGNATURE_HEADER, signature,
};
use doors::{Core, Hub, Routing};
use engine::{Answer, Command, Engine, Event, Output, PeerSettings, ReplyTo, Settings, Uncertainty};
use model::{
    DecidedBy, Leg, LinkId, Message, MessageId, Moment, Now, Outcome, PeerId, PeerMessageId, Receipt,
    ReceiptState, Refusal, RejectReason, Routed, Timestamp, Verdict,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const SHOP: PeerId = PeerId(1);
const GATEWAY: PeerId = PeerId(2);
const PATIENCE: Duration = Duration::from_secs(20);

/// A real engine; what it writes is gone at once.
struct Memory {
    engine: Mutex<Engine>,
    hub: Arc<Hub>,
    began: Instant,
}

impl Memory {
    fn now(&self) -> Now {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap();
        Now { wall: Timestamp(1_795_000_000_000 + passed), mono: Moment(1_000_000 + passed) }
    }

    fn run(&self, events: Vec<Event>) {
        let mut engine = self.engine.lock();
        let mut out = Output::default();
        let now = self.now();
        for event in events {
            engine.apply(now, event, &mut out);
        }
        engine.settle(now, &mut out);
        engine.seal(&mut out);
        for command in self.hub.dispatch(out.commands) {
            match command {
                // What is not in memory is nowhere.
                Command::LookUp { to, .. } => {
                    let answer = Answer::Refused(Refusal::UnknownMessage);
                    self.hub.dispatch(vec![Command::Answer { to, answer }]);
                }
                other => panic!("memory is never short here, and nothing is held: {other:?}"),
            }
        }
    }
}

impl Core for Memory {
    fn push(&self, events: Vec<Event>) {
        self.run(events);
    }
}

struct ToGateway;

impl Routing for ToGateway {
    fn route(&self, message: &Message) -> Routed {
        let by = Arc::new(DecidedBy { plugin: "test".into(), version: "1".into() });
        let verdict = if message.destination.text().starts_with("999") {
            Verdict::Reject(RejectReason::NoRoute)
        } else {
            Verdict::Forward(vec![Leg::to(if message.origin == SHOP { GATEWAY } else { SHOP })])
        };
        Routed { verdict, by, note: None, sender: None, quote: None, seen: None, faulted: None }
    }
}

struct House {
    business: Business,
    core: Arc<Memory>,
    address: SocketAddr,
    /// The gateway's link, and what it was given.
    gateway: LinkId,
    sent: doors::Deliveries,
    account: AccountOptions,
}

async fn house(change: impl FnOnce(&mut AccountOptions)) -> House {
    let hub = Arc::new(Hub::new());
    let core = Arc::new(Memory {
        engine: Mutex::new(Engine::new(Settings::default())),
        hub: hub.clone(),
        began: Instant::now(),
    });
    let mut shop = PeerSettings::new(SHOP);
    (shop.addressee, shop.receipts, shop.uncertainty) = (true, false, Uncertainty::SendAgain);
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
    let (gateway, sent) = hub.add();
    core.run(vec![Event::LinkUp { link: gateway, peer: GATEWAY, window: 1000 }]);
    let business =
        Business::new(BusinessOptions::default(), Arc::default(), core.clone(), Arc::new(ToGateway), hub)
            .unwrap();
    let hash = doors::hash_password(b"secret").unwrap();
    let mut account = AccountOptions::new("shop", SHOP, &hash);
    account.source.default = Some(model::Address::new(0, 1, b"10655"));
    change(&mut account);
    business.set_account(account.clone()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = business.router().into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, app).await });
    House { business, core, address, gateway, sent, account }
}

impl House {
    /// A call, off the runtime's threads: the client blocks.
    async fn ask(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, Value) {
        self.ask_as("shop:secret", method, path, key, body).await
    }

    async fn ask_as(
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
        let asked = tokio::task::spawn_blocking(move || {
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
                .timeout_global(Some(PATIENCE))
                .build()
                .into();
            let mut response = agent.run(request).unwrap();
            (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
        });
        let (status, text) = asked.await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn submit(&self, body: Value) -> (u16, Value) {
        self.ask("POST", "/v1/messages", None, &body.to_string()).await
    }

    /// The next message that the gateway is given.
    async fn sent(&mut self) -> Arc<Message> {
        loop {
            let batch = tokio::time::timeout(PATIENCE, self.sent.recv()).await.unwrap().unwrap();
            for delivery in batch {
                if let doors::Delivery::Send { message, .. } = delivery {
                    return message;
                }
            }
        }
    }

    /// The gateway takes a message and reports on it.
    fn report(&self, id: MessageId, state: ReceiptState) {
        let peer_id = PeerMessageId::new(id.to_string().as_bytes());
        let link = self.gateway;
        let outcome = Outcome::Accepted { ids: vec![peer_id.clone()] };
        let receipt = Receipt {
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
        self.core.run(vec![
            Event::Outcome { link, id, outcome },
            Event::Receipt { peer: GATEWAY, receipt, reply },
        ]);
    }
}

fn id_of(result: &Value) -> MessageId {
    result["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_call_is_answered_with_ids_and_may_be_repeated_under_its_key() {
    let mut house = house(|_| {}).await;
    let body = json!({ "to": ["8613012345678", "8613112345678"], "text": "hi" }).to_string();
    let (status, first) = house.ask("POST", "/v1/messages", Some("order-7"), &body).await;
    assert_eq!(status, 202, "{first}");
    let (status, again) = house.ask("POST", "/v1/messages", Some("order-7"), &body).await;
    assert_eq!((status, &again), (202, &first));
    assert_eq!(house.core.engine.lock().totals().accepted, 2, "nothing was accepted twice");
    let other = json!({ "to": "8613012345678", "text": "other" }).to_string();
    let (status, problem) = house.ask("POST", "/v1/messages", Some("order-7"), &other).await;
    assert_eq!((status, &problem["title"]), (409, &json!("key-reused")));
    assert_eq!(house.sent().await.text.octets, "hi");
    let id = id_of(&first["messages"][0]);
    let (status, state) = house.ask("GET", &format!("/v1/messages/{id}"), None, "").await;
    assert_eq!((status, &state["state"]), (200, &json!("enroute")));
    assert_eq!(house.ask("GET", "/v1/messages/1999999999", None, "").await.0, 404);
    assert_eq!(house.ask("GET", "/v1/messages/x", None, "").await.0, 404);
}

#[tokio::test]
async fn a_call_is_refused_whole_with_every_reason() {
    let house = house(|_| {}).await;
    let (status, problem) = house
        .submit(json!({ "messages": [
            { "to": "8613012345678", "text": "good" },
            { "to": "nobody", "text": "x" },
            { "to": "123", "text": "x", "coding": "utf-7" },
        ] }))
        .await;
    assert_eq!((status, problem["errors"].as_array().map(Vec::len)), (422, Some(2)), "{problem}");
    assert_eq!(problem["errors"][0]["field"], "messages[1].to");
    assert_eq!(house.core.engine.lock().totals().accepted, 0);
    // Routing's word is one a message; where nobody is accepted it is the call's.
    let (status, results) = house.submit(json!({ "to": ["8613012345678", "9991"], "text": "x" })).await;
    assert_eq!(status, 202);
    assert_eq!(
        (results["messages"][1]["error"].clone(), id_of(&results["messages"][0])),
        (json!("rejected"), MessageId::FIRST)
    );
    let (status, problem) = house.submit(json!({ "to": "9991", "text": "x" })).await;
    assert_eq!((status, &problem["title"]), (422, &json!("rejected")));
    for (body, status) in [("{", 400), ("[]", 422), ("{\"messages\": 1}", 422), ("\u{0}", 400)] {
        assert_eq!(house.ask("POST", "/v1/messages", None, body).await.0, status, "{body:?}");
    }
    assert_eq!(house.ask_as("shop:wrong", "POST", "/v1/messages", None, "{}").await.0, 401);
    assert_eq!(house.ask_as("nobody:secret", "POST", "/xmlrpc", None, "").await.0, 401);
    assert_eq!(house.ask("GET", "/nowhere", None, "").await.0, 404);
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    let house = house(|_| {}).await;
    let good = json!({ "to": "8613012345678", "text": "hi" }).to_string();
    let with =
        |headers: &'static [(&'static str, &'static str)], method: &'static str, path: &str, body: String| {
            let url = format!("http://{}{path}", house.address);
            let login = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("shop:secret"));
            let mut request =
                ureq::http::Request::builder().method(method).uri(url).header("Authorization", login);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(body).unwrap();
            async move {
                let asked = tokio::task::spawn_blocking(move || {
                    let agent: ureq::Agent = ureq::Agent::config_builder()
                        .http_status_as_error(false)
                        .timeout_global(Some(PATIENCE))
                        .build()
                        .into();
                    agent.run(request).unwrap().status().as_u16()
                });
                asked.await.unwrap()
            }
        };
    let twice: &[_] = &[("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    assert_eq!(with(twice, "POST", "/v1/messages", good.clone()).await, 400);
    assert_eq!(with(&[("Content-Encoding", "gzip")], "POST", "/v1/messages", good.clone()).await, 415);
    assert_eq!(with(&[("Content-Encoding", "gzip")], "POST", "/xmlrpc", good.clone()).await, 415);
    let doubled = r#"{"to": "8613012345678", "to": "8613112345678", "text": "hi"}"#.to_owned();
    assert_eq!(with(&[], "POST", "/v1/messages", doubled).await, 400);
    assert_eq!(house.core.engine.lock().totals().accepted, 0);
    assert_eq!(with(&[("Content-Encoding", "identity")], "POST", "/v1/messages", good).await, 202);
}

/// Who asks with HEAD sees nothing of what it would lease.
#[tokio::test]
async fn a_head_request_takes_no_lease() {
    let mut house = house(|_| {}).await;
    let (_, accepted) = house.submit(json!({ "to": "8613012345678", "text": "hi" })).await;
    house.sent().await;
    house.report(id_of(&accepted["messages"][0]), ReceiptState::Delivered);
    assert_eq!(house.ask("HEAD", "/v1/inbox?max=10&wait=5", None, "").await.0, 405);
    let (status, batch) = house.ask("GET", "/v1/inbox?max=10&wait=5", None, "").await;
    assert_eq!((status, batch["items"].as_array().map(Vec::len)), (200, Some(1)), "{batch}");
}

#[tokio::test]
async fn rate_and_size_are_limited() {
    let house = house(|account| (account.rate, account.burst) = (Some(0.001), 2)).await;
    let body = json!({ "to": ["8613012345678", "8613112345678"], "text": "x" });
    assert_eq!(house.submit(body.clone()).await.0, 202);
    assert_eq!(house.submit(body).await.0, 429);
    let large = "x".repeat((4 << 20) + 1);
    assert_eq!(house.ask("POST", "/v1/messages", None, &large).await.0, 413);
}

#[tokio::test]
async fn xml_rpc_says_the_same() {
    let mut house = house(|_| {}).await;
    let call = |method: &str, parameters: &str| {
        format!(
            "<?xml version='1.0'?><methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>"
        )
    };
    let text = |value: Value| value.as_str().unwrap().to_owned();
    let message = "<param><value><struct><member><name>to</name><value><string>8613012345678</string></value></member>\
                   <member><name>text</name><value><string>hi</string></value></member></struct></value></param>";
    let (status, answer) = house.ask("POST", "/xmlrpc", None, &call("sms.submit", message)).await;
    let answer = text(answer);
    assert!(status == 200 && answer.contains("1000000000"), "{answer}");
    assert_eq!(house.sent().await.text.octets, "hi");
    let whole = message.replace("<string>8613012345678</string>", "<int>8613012345678</int>");
    let whole = call("sms.submit", &format!("{whole}<param><value><nil/></value></param>"));
    let answer = text(house.ask("POST", "/xmlrpc", None, &whole).await.1);
    assert!(!answer.contains("fault"), "{answer}");
    assert_eq!(&*house.sent().await.destination.value, b"8613012345678");
    let bad = message.replace("8613012345678", "nobody");
    let answer = text(house.ask("POST", "/RPC2", None, &call("sms.submit", &bad)).await.1);
    assert!(answer.contains("faultCode") && answer.contains("<i4>3</i4>"), "{answer}");
    let answer = text(house.ask("POST", "/RPC2", None, &call("no.such", "")).await.1);
    assert!(answer.contains("-32601"), "{answer}");
    let answer = text(house.ask("POST", "/RPC2", None, "<html>").await.1);
    assert!(answer.contains("-32700"), "{answer}");
    let answer = text(house.ask("POST", "/RPC2", None, &call("system.listMethods", "")).await.1);
    assert!(answer.contains("sms.submitMany"), "{answer}");
}

#[tokio::test]
async fn calls_within_a_call_are_as_many_as_its_messages_may_be() {
    let house = house(|account| account.batch = 3).await;
    for (calls, is_taken) in [(3, true), (4, false)] {
        let list = "<value><struct></struct></value>".repeat(calls);
        let list = format!("<param><value><array><data>{list}</data></array></value></param>");
        let body = format!(
            "<methodCall><methodName>system.multicall</methodName><params>{list}</params></methodCall>"
        );
        let (_, answer) = house.ask("POST", "/RPC2", None, &body).await;
        let answer = answer.as_str().unwrap_or_default();
        assert_eq!(answer.contains("at most 3 are taken"), !is_taken, "{answer}");
        assert_eq!(answer.matches("faultCode").count(), if is_taken { calls } else { 1 }, "{answer}");
    }
}

#[tokio::test]
async fn what_was_fetched_comes_again_until_it_is_acknowledged() {
    let mut house = house(|account| account.lease = Duration::from_secs(600)).await;
    let (_, results) =
        house.submit(json!({ "to": "8613012345678", "text": "x", "reference": "order 7" })).await;
    let id = id_of(&results["messages"][0]);
    house.sent().await;
    let (_, nothing) = house.ask("GET", "/v1/inbox", None, "").await;
    assert_eq!(nothing["items"], json!([]));
    house.report(id, ReceiptState::Delivered);
    let (_, fetched) = house.ask("GET", "/v1/inbox?wait=5", None, "").await;
    let item = &fetched["items"][0];
    assert_eq!(
        (&item["type"], &item["message_id"], &item["state"]),
        (&json!("report"), &json!(id.to_string()), &json!("delivered"))
    );
    assert_eq!((&item["to"], &item["reference"]), (&json!("8613012345678"), &json!("order 7")));
    // Under the lease nobody else gets it; acknowledging nothing gives it back.
    assert_eq!(house.ask("GET", "/v1/inbox", None, "").await.1["items"], json!([]));
    let none = json!({ "batch": fetched["batch"], "ids": [] }).to_string();
    assert_eq!(house.ask("POST", "/v1/inbox/acknowledge", None, &none).await.1, json!({ "acknowledged": 0 }));
    let (_, again) = house.ask("GET", "/v1/inbox?wait=5", None, "").await;
    assert_eq!(&again["items"][0], item);
    let all = json!({ "batch": again["batch"] }).to_string();
    assert_eq!(house.ask("POST", "/v1/inbox/acknowledge", None, &all).await.1, json!({ "acknowledged": 1 }));
    assert_eq!(house.ask("POST", "/v1/inbox/acknowledge", None, &all).await.0, 404);
    assert_eq!(house.ask("GET", "/v1/inbox", None, "").await.1["items"], json!([]));
    assert_eq!(house.core.engine.lock().live(), 0, "everything has ended");
}

#[tokio::test]
async fn a_lease_that_ends_offers_its_items_again() {
    let mut house = house(|account| account.lease = Duration::from_millis(100)).await;
    let (_, results) = house.submit(json!({ "to": "8613012345678", "text": "x" })).await;
    house.sent().await;
    house.report(id_of(&results["messages"][0]), ReceiptState::Expired);
    let (_, first) = house.ask("GET", "/v1/inbox?wait=5", None, "").await;
    let (_, second) = house.ask("GET", "/v1/inbox?wait=10", None, "").await;
    assert_eq!(first["items"], second["items"]);
    assert_eq!(first["items"][0]["state"], "expired");
}

/// What came at a business system: the headers of interest and the body.
#[derive(Debug)]
struct Came {
    signature: String,
    body: String,
}

/// A business system that answers with the statuses that it is told, then with 200.
async fn shop(statuses: Vec<u16>) -> (String, UnboundedReceiver<Came>) {
    let (sender, came) = unbounded_channel();
    let statuses = Arc::new(Mutex::new(std::collections::VecDeque::from(statuses)));
    let take = move |headers: axum::http::HeaderMap, body: String| {
        let (sender, statuses): (UnboundedSender<Came>, _) = (sender.clone(), statuses.clone());
        async move {
            let signature = headers[SIGNATURE_HEADER].to_str().unwrap().to_owned();
            let status = statuses.lock().pop_front().unwrap_or(200);
            let _ = sender.send(Came { signature, body });
            let answer = "<methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>";
            (axum::http::StatusCode::from_u16(status).unwrap(), answer)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sms", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/sms", axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, came)
}

fn push_to(url: &str, format: PushFormat, window: usize) -> PushOptions {
    PushOptions {
        url: url.to_owned(),
        format,
        secret: "key".to_owned(),
        window,
        timeout: Duration::from_secs(5),
    }
}

async fn next(came: &mut UnboundedReceiver<Came>) -> Came {
    tokio::time::timeout(PATIENCE, came.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn reports_are_pushed_signed_and_again_until_they_are_taken() {
    let (url, mut came) = shop(vec![500, 503]).await;
    let mut house = house(|account| account.push = Some(push_to(&url, PushFormat::Json, 1))).await;
    let (_, results) = house.submit(json!({ "to": "8613012345678", "text": "x" })).await;
    house.sent().await;
    house.report(id_of(&results["messages"][0]), ReceiptState::Delivered);
    let first = next(&mut came).await;
    let seconds: u64 = first.signature[2..].split(',').next().unwrap().parse().unwrap();
    assert_eq!(first.signature, signature("key", seconds, first.body.as_bytes()));
    let item: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!((&item["type"], &item["state"]), (&json!("report"), &json!("delivered")));
    assert_eq!(next(&mut came).await.body, first.body);
    assert_eq!(next(&mut came).await.body, first.body);
    house.business.shutdown(Duration::from_secs(5)).await;
    let state = &house.business.states()[0];
    let push = state.push.as_ref().unwrap();
    assert_eq!((push.pushed, push.failures, &push.last_error), (1, 2, &None));
    assert_eq!(house.core.engine.lock().live(), 0);
}

#[tokio::test]
async fn what_is_refused_waits_and_the_next_goes_on() {
    let (url, mut came) = shop(vec![400]).await;
    let mut house = house(|account| account.push = Some(push_to(&url, PushFormat::XmlRpc, 1))).await;
    for text in ["one", "two"] {
        let (_, results) = house.submit(json!({ "to": "8613012345678", "text": text })).await;
        house.sent().await;
        house.report(id_of(&results["messages"][0]), ReceiptState::Delivered);
    }
    let bodies = [next(&mut came).await.body, next(&mut came).await.body, next(&mut came).await.body];
    assert!(bodies[0].contains("<methodName>sms.report</methodName>"), "{}", bodies[0]);
    assert_ne!(bodies[0], bodies[1]);
    assert!(bodies[2] == bodies[0], "the refused one came again");
}

#[tokio::test]
async fn an_url_that_is_none_is_refused_by_name() {
    let house = house(|_| {}).await;
    let account =
        AccountOptions { push: Some(push_to("ftp://x", PushFormat::Json, 1)), ..house.account.clone() };
    let error = house.business.set_account(account).unwrap_err();
    assert!(error.to_string().contains("must be an http or https URL"), "{error}");
}

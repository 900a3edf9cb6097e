//! A peer that speaks HTTP: `http-peer` submits to an API that the test serves, and reads its callbacks.

use anyhow::{Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{ApiReaction, Fixture, SmsApi, TIMEOUT, steps, until};
use serde_json::{Value, json};

/// The document of the peer, for the API at this URL.
fn policy(url: &str) -> String {
    format!(
        "[request]\nurl = \"{url}messages\"\nbearer = \"token\"\n\
         json = {{ to = \"+{{destination}}\", from = \"{{source}}\", text = \"{{text}}\", key = \"{{key}}\" }}\n\
         [accepted]\nwhere = {{ \"/status\" = \"queued\" }}\nid = \"/message_id\"\n\
         [[refused]]\nstatus = [402]\nclass = \"queue-full\"\nretry-after = \"50ms\"\n\
         [receipts]\ncheck = {{ secret = \"callback\", query = \"key\" }}\nid = \"/id\"\nstate = \"/state\"\n\
         states = {{ delivered = \"delivered\", failed = \"undeliverable\" }}\nerror = \"/error\"\n\
         subscriber = \"/to\"\nsender = \"/from\"\n\
         [messages]\npath = \"/incoming\"\nform = \"form\"\ncheck = {{ secret = \"callback\", query = \"key\" }}\n\
         source = \"/From\"\ndestination = \"/To\"\ntext = \"/Body\"\n"
    )
}

struct PeerFixture {
    api: SmsApi,
    config: TestDaemonConfig,
    callbacks: String,
}

impl PeerFixture {
    /// The account `acme`, and the peer `upstream` with more keys.
    fn new(fixture: &Fixture, keys: &str) -> Result<Self> {
        let api = SmsApi::start()?;
        let mut config = fixture.config()?;
        let document = fixture.folder().join("upstream.toml");
        std::fs::write(&document, policy(&api.base_url()))?;
        let (component, port) = (fixture.guest("http_peer"), free_port()?);
        config.account("acme", "").tables(&format!(
            "[peer-callbacks]\nlisten = \"127.0.0.1:{port}\"\n\
             [[plugin-peer]]\nname = \"upstream\"\nwindow = 2\ncallbacks = true\nretry = [\"20ms\"]\n\
             default-account = \"acme\"\ncomponent = {component:?}\npolicy = {document:?}\n{keys}\n\
             [plugin-peer.grants]\nhttp = [\"{}\"]\nhttp-timeout = \"60s\"\n\
             [[plugin-peer.secret]]\nname = \"token\"\nvalue = \"t0ken\"\n\
             [[plugin-peer.secret]]\nname = \"callback\"\nvalue = \"c411\"\n",
            api.base_url()
        ));
        Ok(Self { api, config, callbacks: format!("http://127.0.0.1:{port}/v1/peers/") })
    }

    fn call(&self, path: &str, content_type: &str, body: &str) -> Result<(u16, String)> {
        let request = ureq::post(format!("{}{path}", self.callbacks));
        let request = request.config().http_status_as_error(false).build();
        let mut answer = request.content_type(content_type).send(body)?;
        Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
    }

    /// A receipt; returns the status of the answer.
    fn receipt(&self, key: &str, receipt: &Value) -> Result<u16> {
        Ok(self.call(&format!("upstream/callback?key={key}"), "application/json", &receipt.to_string())?.0)
    }

    /// Waits until the API has received this many requests.
    fn wait_for_requests(&self, count: usize) -> Result<()> {
        until("the requests", || Ok(self.api.requests().len() >= count))
    }
}

fn esme(appliance: &TestDaemon, receipts: bool) -> Result<Probe> {
    Probe::bind(appliance.smpp(), "acme", PASSWORD, "86", receipts)
}

fn submit(esme: &mut Probe, number: u64) -> Result<String> {
    esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))
}

fn wait_for_state(appliance: &TestDaemon, id: &str, state: &str) -> Result<Value> {
    appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == state)
}

#[test]
fn a_message_goes_to_the_api_and_its_receipt_comes_back() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = PeerFixture::new(&fixture, "")?;
    let appliance = peer.config.start()?;
    let mut esme = esme(&appliance, true)?;
    let id = submit(&mut esme, 1)?;
    wait_for_state(&appliance, &id, "responded")?;
    let [request] = &peer.api.requests()[..] else { panic!("{:?}", peer.api.requests()) };
    assert_eq!((&*request.line, &*request.authorization), ("POST /messages", "Bearer t0ken"));
    assert_eq!((&request.body["to"], &request.body["from"]), (&json!("+860000000001"), &json!("10655")));
    assert_eq!(request.body["key"], format!("{id}-1"));

    let receipt = json!({ "id": "api-1", "state": "delivered" });
    assert_eq!(peer.receipt("guess", &receipt)?, 403);
    assert_eq!(peer.call("nobody/callback", "text/plain", "")?.0, 404);
    assert_eq!(peer.call("upstream/callback/other?key=c411", "text/plain", "")?.0, 404);
    assert_eq!(peer.receipt("c411", &json!({ "id": "api-1" }))?, 400);
    assert_eq!(peer.call("upstream/callback", "text/plain", &"x".repeat(300_000))?.0, 413);
    // The answer comes when the receipt is durable.
    assert_eq!(peer.receipt("c411", &receipt)?, 200);
    wait_for_state(&appliance, &id, "delivered")?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert!(esme.delivered[0].contains("stat:DELIVRD"), "{}", esme.delivered[0]);

    // A subscriber's message that no route matches goes to the default account.
    let body = "From=%2B8613000000001&To=10655&Body=ja+bitte";
    let (status, answer) =
        peer.call("upstream/callback/incoming?key=c411", "application/x-www-form-urlencoded", body)?;
    assert_eq!(status, 200, "{answer}");

    let figures = appliance.get("/v1/plugin-peers")?[0].clone();
    let callbacks = json!({
        "accepted": 2, "refused": 3, "failed": 0, "limited": 1, "receipts": 1, "messages": 1,
    });
    ensure!(figures["peer"] == "upstream" && figures["plugin"] == "http-peer", "{figures:#}");
    ensure!(figures["accepted"] == 1 && figures["in_flight"] == 0 && figures["window"] == 2, "{figures:#}");
    ensure!(figures["callbacks"] == callbacks && figures["last_failure"] == Value::Null, "{figures:#}");
    let metrics = appliance.metrics()?;
    let metric = |name: &str| metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let name = "switchyard_plugin_peer_callbacks_total{peer=\"upstream\",result=\"refused\"}";
    ensure!(metric(name) == Some(3.0), "{metrics:?}");
    Ok(())
}

#[test]
fn refusals_are_final_or_retried() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = PeerFixture::new(&fixture, "dlrs = false")?;
    let appliance = peer.config.start()?;
    let mut esme = esme(&appliance, false)?;
    peer.api.react(&[ApiReaction::Status(400)]);
    let id = submit(&mut esme, 1)?;
    let trace = wait_for_state(&appliance, &id, "failed")?;
    ensure!(trace.to_string().contains("code 400 of its API"), "{trace:#}");
    assert_eq!(peer.api.requests().len(), 1, "{trace:#}");
    // Throttled by status, and by a rule that sets the duration.
    peer.api.react(&[ApiReaction::Status(429), ApiReaction::Status(402), ApiReaction::Status(302)]);
    let id = submit(&mut esme, 2)?;
    let trace = wait_for_state(&appliance, &id, "relayed")?;
    assert_eq!(peer.api.requests().len(), 5, "{trace:#}");
    Ok(())
}

#[test]
fn without_an_answer_a_message_is_uncertain_and_not_repeated() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = PeerFixture::new(&fixture, "")?;
    let appliance = peer.config.start()?;
    let mut esme = esme(&appliance, true)?;
    peer.api.react(&[ApiReaction::Cut, ApiReaction::Status(500)]);
    let cut = submit(&mut esme, 1)?;
    wait_for_state(&appliance, &cut, "uncertain")?;
    let failed = submit(&mut esme, 2)?;
    wait_for_state(&appliance, &failed, "uncertain")?;
    // Other messages continue, and these are not sent again.
    let next = submit(&mut esme, 3)?;
    wait_for_state(&appliance, &next, "responded")?;
    assert_eq!(peer.api.requests().len(), 3);
    // A receipt settles it by its numbers, since no id is known.
    let receipt = json!({ "id": "lost", "state": "delivered", "to": "+860000000001", "from": "10655" });
    assert_eq!(peer.receipt("c411", &receipt)?, 200);
    wait_for_state(&appliance, &cut, "delivered")?;
    let trace = wait_for_state(&appliance, &failed, "uncertain")?;
    ensure!(steps(&trace).contains(&"unanswered: outcome unknown"), "{trace:#}");
    Ok(())
}

#[test]
fn a_message_whose_request_a_kill_interrupts_is_uncertain() -> Result<()> {
    let fixture = Fixture::new()?;
    let peer = PeerFixture::new(&fixture, "")?;
    let appliance = peer.config.start()?;
    let mut first = esme(&appliance, false)?;
    peer.api.react(&[ApiReaction::Hang]);
    let id = submit(&mut first, 1)?;
    peer.wait_for_requests(1)?;
    let appliance = appliance.kill()?.start()?;
    wait_for_state(&appliance, &id, "uncertain")?;
    let next = submit(&mut esme(&appliance, false)?, 2)?;
    wait_for_state(&appliance, &next, "relayed")?;
    assert_eq!(peer.api.requests().len(), 2);
    Ok(())
}

/// The `toml` blocks of the guide's page.
fn guide_blocks() -> Result<Vec<String>> {
    let page = std::fs::read_to_string(workspace::root().join("docs/guide/http-peers.md"))?;
    let blocks = page.split("```toml\n").skip(1);
    Ok(blocks.filter_map(|block| block.split_once("```").map(|(block, _)| block.to_owned())).collect())
}

#[test]
fn the_example_of_the_guide_works() -> Result<()> {
    let fixture = Fixture::new()?;
    let api = SmsApi::start()?;
    let blocks = guide_blocks()?;
    let [configuration, document] = &blocks[..] else { panic!("{} blocks", blocks.len()) };
    let at = |text: &str| text.replace("https://sms.example/", &api.base_url());
    let folder = fixture.folder();
    std::fs::write(folder.join("aggregator.toml"), at(document))?;
    std::fs::write(folder.join("aggregator.token"), "t0ken\n")?;
    std::fs::write(folder.join("aggregator.callback"), "c411\n")?;
    let port = free_port()?;
    let here = |name: &str| folder.join(name).display().to_string();
    let configuration = at(configuration)
        .replace("target/plugins/http_peer.wasm", &fixture.guest("http_peer").display().to_string())
        .replace("policies/aggregator.toml", &here("aggregator.toml"))
        .replace("/etc/switchyard/aggregator.token", &here("aggregator.token"))
        .replace("/etc/switchyard/aggregator.callback", &here("aggregator.callback"))
        .replace("127.0.0.1:8082", &format!("127.0.0.1:{port}"));
    let mut config = fixture.config()?;
    let route = "[default]\nlegs = [{ peer = \"aggregator\" }]\n";
    config.router(&fixture.guest("prefix_router"), route)?.account("acme", "").tables(&configuration);
    let appliance = config.start()?;
    let mut esme = esme(&appliance, true)?;
    let id = submit(&mut esme, 1)?;
    wait_for_state(&appliance, &id, "responded")?;
    let [request] = &api.requests()[..] else { panic!("{:?}", api.requests()) };
    assert_eq!((&*request.line, &*request.authorization), ("POST /messages", "Bearer t0ken"));
    let callback = request.body["status_url"].as_str().unwrap_or_default();
    assert_eq!(callback, "https://gateway.example/v1/peers/aggregator/callback?key=c411");
    let receipt = json!({ "message_id": "api-1", "status": "failed", "error_code": 34 }).to_string();
    let url = callback.replace("https://gateway.example", &format!("http://127.0.0.1:{port}"));
    assert_eq!(ureq::post(url).send(receipt)?.status(), 200);
    wait_for_state(&appliance, &id, "failed")?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert!(esme.delivered[0].contains("stat:UNDELIV"), "{}", esme.delivered[0]);
    // The secrets are in no answer of the API.
    let shown =
        appliance.get("/v1/configuration")?.to_string() + &appliance.get("/v1/hooks/peer")?.to_string();
    ensure!(!shown.contains("t0ken") && !shown.contains("c411"), "{shown}");
    Ok(())
}

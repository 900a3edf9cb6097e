//! Gateways and plugin peers that have a home: one partition has their links, and the other submits to it.

use crate::nodes::{ClusterFixture, PEER_KEYS, queue};
use crate::passed_on::wait_until_nodes_know_leaders;
use crate::shared_state::change;
use anyhow::{Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::sgip::{log_in, start_gateway, start_sp};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{SmsApi, TIMEOUT, steps, until};
use serde_json::json;

const USER: &str = "8613012345678";
const NO_LINK: &str = "no connection to the home partition of the peer";

/// Whether a node has a link that the account or peer of this name has opened.
fn is_logged_in(node: &TestDaemon, name: &str) -> Result<bool> {
    let links = node.get("/v1/links")?;
    Ok(links.as_array().into_iter().flatten().any(|link| link["peer"] == name && link["role"] == "server"))
}

#[test]
fn a_gateway_has_its_logins_submits_and_reports_at_its_home() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let (mut gateway, unicom) = start_gateway(&json!({}))?;
    let (mut sp, corp) = start_sp()?;
    let node = |name: &str, partition: u8| -> Result<TestDaemonConfig> {
        let mut config = fixture.partition_node_with(name, partition, &[], PEER_KEYS)?;
        config
            .gateway("unicom", unicom, "partition = 0\ndefault-account = \"corp\"")
            .account("corp", &format!("partition = 1\nmo-partitions = [0]\n{corp}"))
            .native("unicom");
        Ok(config)
    };
    let zero = node("a", 0)?.start()?;
    let one = node("b", 1)?.start()?;
    wait_until_nodes_know_leaders([&zero, &one])?;
    // Both log in at the wrong leader.
    log_in(&mut gateway, one.config().sgip().port(), "smg", "its")?;
    log_in(&mut sp, zero.config().sgip().port(), "corp", PASSWORD)?;
    assert_eq!((is_logged_in(&zero, "unicom")?, is_logged_in(&one, "unicom")?), (true, false));
    assert_eq!((is_logged_in(&zero, "corp")?, is_logged_in(&one, "corp")?), (false, true));

    // The fields of SGIP pass, too.
    let submit = |text: &str| {
        json!({ "submit": {
            "sp_number": "10655", "user_numbers": [USER], "corp_id": "12345", "service_type": "TEST", "fee_type": 2,
            "fee_value": "15", "reserve": "4c494e4b30303031", "text": text } })
    };
    sp.send_action(&submit("one"))?;
    let sent = sp.expect("sent")?;
    assert_eq!(sp.expect("answered")?["result"], 0);
    let taken = gateway.expect("taken")?;
    let fields =
        ["text", "corp_id", "service_type", "fee_type", "fee_value", "reserve"].map(|name| &taken[name]);
    let expected = ["one", "12345", "TEST", "2", "15", "4c494e4b30303031"];
    for (value, expected) in fields.into_iter().zip(expected) {
        assert_eq!(value.as_str().map_or_else(|| value.to_string(), str::to_owned), expected, "{taken}");
    }
    gateway.send_action(&json!({ "report": {
        "sequence": taken["sequence"], "user": USER, "state": 2, "error": 29 } }))?;
    assert_eq!(gateway.expect("answered")?["result"], 0);
    let report = sp.expect_matching("taken", |event| event["command"] == "report")?;
    assert_eq!((&report["submit_sequence"], &report["error_code"]), (&sent["sequence"], &json!(29)));

    // A subscriber's message to the account of the other partition.
    gateway
        .send_action(&json!({ "deliver": { "user_number": USER, "sp_number": "10655", "text": "ja" } }))?;
    assert_eq!(gateway.expect("answered")?["result"], 0);
    let delivered = sp.expect_matching("taken", |event| event["command"] == "deliver")?;
    assert_eq!((&delivered["text"], &delivered["user_number"]), (&json!("ja"), &json!(USER)));

    // A refusal has the gateway's meaning of the code.
    gateway.send_action(&json!({ "set": { "result": 6 } }))?;
    sp.send_action(&submit("refused"))?;
    assert_eq!(sp.expect("answered")?["result"], 0);
    let report = sp.expect_matching("taken", |event| event["command"] == "report")?;
    assert_eq!(report["state"], 2, "{report}");
    let page = one.get("/v1/messages?account=corp&state=failed&limit=1")?;
    let id = page["messages"][0]["id"].as_str().unwrap_or_default();
    let trace = one.get(&format!("/v1/messages/{id}"))?;
    ensure!(steps(&trace).contains(&"refused by the peer: 6: illegal mobile number"), "{trace:#}");
    gateway.send_action(&json!({ "set": { "result": 0 } }))?;

    // Without the home, messages wait.
    let home = zero.kill()?;
    log_in(&mut sp, one.config().sgip().port(), "corp", PASSWORD)?;
    sp.send_action(&submit("later"))?;
    until("the queue names the home", || Ok(queue(&one, "unicom")?["blocked_by"] == NO_LINK))?;
    let zero = home.start()?;
    let later = gateway.expect_matching("taken", |event| event["text"] == "later")?;
    assert!(later["duplicate"].is_null(), "{later}");

    // The other partition becomes the home, and the next login is passed on to it.
    log_in(&mut gateway, zero.config().sgip().port(), "smg", "its")?;
    change(&zero, &json!({ "gateway": { "unicom": { "partition": 1 } } }))?;
    until("the former home has no connection of the gateway", || Ok(!is_logged_in(&zero, "unicom")?))?;
    sp.send_action(&submit("moved"))?;
    let moved = gateway.expect_matching("taken", |event| event["text"] == "moved")?;
    log_in(&mut gateway, zero.config().sgip().port(), "smg", "its")?;
    assert_eq!((is_logged_in(&zero, "unicom")?, is_logged_in(&one, "unicom")?), (false, true));
    gateway.send_action(&json!({ "report": {
        "sequence": moved["sequence"], "user": USER, "state": 0, "error": 0 } }))?;
    sp.expect_matching("taken", |event| event["command"] == "report" && event["state"] == 0)?;
    drop((zero, one));
    Ok(())
}

#[test]
fn a_plugin_submits_at_the_home_of_its_peer() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let (api, callbacks) = (SmsApi::start()?, [free_port()?, free_port()?]);
    let document = fixture.base.folder().join("api.toml");
    std::fs::write(
        &document,
        format!(
            "[request]\nurl = \"{}messages\"\njson = {{ to = \"{{destination}}\", text = \"{{text}}\" }}\n\
             [accepted]\nid = \"/message_id\"\n\
             [receipts]\ncheck = {{ secret = \"callback\", query = \"key\" }}\nid = \"/id\"\nstate = \"/state\"\n\
             states = {{ delivered = \"delivered\" }}\n\
             [messages]\npath = \"/incoming\"\nform = \"form\"\ncheck = {{ secret = \"callback\", query = \"key\" }}\n\
             source = \"/From\"\ndestination = \"/To\"\ntext = \"/Body\"\n",
            api.base_url()
        ),
    )?;
    let node = |name: &str, partition: u8| -> Result<TestDaemonConfig> {
        let mut config = fixture.partition_node_with(name, partition, &["peer-callbacks"], PEER_KEYS)?;
        let port = callbacks[usize::from(partition)];
        config.account("north", "partition = 1\nmo-partitions = [0]").native("api").tables(&format!(
            "[peer-callbacks]\nlisten = \"127.0.0.1:{port}\"\n\
             [[plugin-peer]]\nname = \"api\"\npartition = 0\ncallbacks = true\ndefault-account = \"north\"\n\
             component = {:?}\npolicy = {document:?}\n\
             [plugin-peer.grants]\nhttp = [\"{}\"]\n\
             [[plugin-peer.secret]]\nname = \"callback\"\nvalue = \"c411\"\n",
            fixture.base.guest("http_peer"),
            api.base_url()
        ));
        Ok(config)
    };
    let zero = node("a", 0)?.start()?;
    let one = node("b", 1)?.start()?;
    let mut esme = Probe::bind(one.smpp(), "north", PASSWORD, "86", true)?;
    let id = esme.submit(7)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let trace = format!("/v1/messages/{id}");
    one.wait_until(TIMEOUT, &trace, |trace| trace["state"] == "responded")?;
    let [request] = &api.requests()[..] else { panic!("{:?}", api.requests()) };
    assert_eq!(request.body["to"], "860000000007");
    let listed = one.get("/v1/plugin-peers")?;
    assert_eq!(listed, json!([]), "the home has its link");

    // The leader of the other partition passes callbacks on to the home.
    let call = |partition: usize, path: &str, body: &str, content_type: &str| -> Result<u16> {
        let url = format!("http://127.0.0.1:{}/v1/peers/{path}", callbacks[partition]);
        let called = ureq::post(url).config().http_status_as_error(false).build();
        Ok(called.content_type(content_type).send(body)?.status().as_u16())
    };
    let receipt = json!({ "id": "api-1", "state": "delivered" }).to_string();
    assert_eq!(call(1, "api/callback", &receipt, "application/json")?, 403, "without the key");
    assert_eq!(call(1, "other/callback?key=c411", &receipt, "application/json")?, 404);
    assert_eq!(call(1, "api/callback?key=c411", &receipt, "application/json")?, 200);
    one.wait_until(TIMEOUT, &trace, |trace| trace["state"] == "delivered")?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert!(esme.delivered[0].contains("stat:DELIVRD"), "{}", esme.delivered[0]);
    let body = "From=%2B8613000000001&To=10655&Body=ja";
    let incoming = "api/callback/incoming?key=c411";
    assert_eq!(call(0, incoming, body, "application/x-www-form-urlencoded")?, 200);
    esme.wait_for_delivered(2, TIMEOUT)?;
    assert_eq!(esme.delivered[1], "ja");

    // Without the home, the peer is asked to repeat the callback.
    drop(zero);
    assert_eq!(call(1, "api/callback?key=c411", &receipt, "application/json")?, 503);
    drop(one);
    Ok(())
}

//! A change of the configuration between third-party ESMEs and SMSCs.

use crate::configuration::{bound, patch};
use anyhow::{Context, Result};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, Peer, TIMEOUT, until};
use serde_json::{Value, json};

#[test]
fn dlrs_of_a_group_find_their_messages_after_its_first_peer_is_removed() -> Result<()> {
    let fixture = Fixture::new()?;
    let smsc = || -> Result<(Peer, std::net::SocketAddr)> {
        let mut smsc = Peer::node("upstream.js", &json!({}))?;
        let port = smsc.expect("listening")?["port"].as_u64().context("no port")?;
        Ok((smsc, std::net::SocketAddr::from(([127, 0, 0, 1], u16::try_from(port)?))))
    };
    let ((mut first, first_at), (mut second, second_at)) = (smsc()?, smsc()?);
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("first").account("acme", "");
    config.peer("first", first_at, "group = \"carrier\"").peer("second", second_at, "group = \"carrier\"");
    let appliance = config.start()?;
    let acme = json!({ "port": appliance.smpp().port(), "system_id": "acme", "password": PASSWORD });
    let mut esme = Peer::python("esme.py", &acme)?;
    assert_eq!(esme.expect("bound")?["status"], 0);
    let mut submit = |number: &str| -> Result<(String, String)> {
        esme.send_action(&json!({ "text": "hello", "from": "10655", "to": number, "receipt": true }))?;
        let name = |event: Value| Ok(event["id"].as_str().context("no id")?.to_owned());
        let id: Result<String> = name(esme.expect("answer")?);
        Ok((id?, name(first.expect("submit")?)?))
    };
    let (one, two) = (submit("8613800000001")?, submit("8613800000002")?);
    for (id, _) in [&one, &two] {
        appliance
            .wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |message| message["state"] == "responded")?;
    }
    patch(&appliance, &json!({ "router": { "static-peer": "second" }, "peer": { "first": null } }))?;
    let mut dlr = |appliance: &TestDaemon, (id, peer_id): &(String, String)| -> Result<()> {
        until("a bind", || Ok(bound(appliance, "second")? == 1))?;
        let text = format!(
            "id:{peer_id} sub:001 dlvrd:001 submit date:2601011200 done date:2601011200 stat:DELIVRD err:000 text:"
        );
        second.send_action(&json!({ "mo": {
            "source_addr": "8613800000001", "destination_addr": "10655", "esm_class": 4, "short_message": text,
        } }))?;
        let delivered = |message: &Value| message["state"] == "delivered";
        appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), delivered)?;
        Ok(())
    };
    dlr(&appliance, &one)?;
    // A restarted daemon knows the group of a peer that is not configured any more.
    let (_, config) = appliance.stop()?;
    dlr(&config.start()?, &two)
}

//! The default screen, `firewall`, before a router: refused messages, passed messages, and the texts at the recipient.

use anyhow::{Result, ensure};
use behaviour_tests::{Fixture, RawConnection, bind};
use serde_json::json;
use testkit::test_daemon::PASSWORD;

const SUBMIT_SM: u32 = 0x0000_0004;
const DELIVER_SM: u32 = 0x0000_0005;
const RESPONSE: u32 = 0x8000_0000;
/// ESME_RINVSRCADR (SMPP 3.4 §5.1.3).
const INVALID_SOURCE: u32 = 0x0A;

const POLICY: &str = r#"
[[rule]]
name = "registry"
unregistered = "senders"
then = "reject"
reason = "invalid-source"

[[rule]]
name = "dlt"
destinations = "91"
dlt = { templates = "templates" }
then = "reject"
reason = "invalid-source"

[[rule]]
name = "links"
domains = "evil.example"
then = "replace"
with = "[removed]"
tags = { link = "evil" }
"#;

fn tlv(tag: u16, value: &[u8]) -> Vec<u8> {
    [&tag.to_be_bytes(), &(value.len() as u16).to_be_bytes(), value].concat()
}

/// A submit_sm from an alphanumeric sender (SMPP 3.4 §4.4.1).
fn submit(source: &str, destination: &str, text: &str, tlvs: &[u8]) -> Vec<u8> {
    let length = [text.len() as u8];
    // From the end of the destination to sm_length.
    let fields = b"\0\0\0\0\0\0\0\0\0\0";
    let parts = [
        &b"\0\x05\0"[..],
        source.as_bytes(),
        b"\0\x01\x01",
        destination.as_bytes(),
        fields,
        &length,
        text.as_bytes(),
        tlvs,
    ];
    parts.concat()
}

#[test]
fn messages_are_screened_before_they_are_routed() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("receiver", "");
    let appliance = config.start()?;
    appliance.ask("PUT", "/v1/tables/senders?kind=exact", b"acme/ACME,\n*/info,\n")?;
    appliance.ask("PUT", "/v1/tables/templates?kind=exact", b"1107,Your code is {#var#}.\n")?;
    let tables = json!({ "grants": { "tables": ["senders", "templates"] } });
    bind(&appliance, "screen", "firewall", &fixture.component("firewall")?, POLICY, &tables)?;
    let router = "note attribute link\nforward receiver";
    bind(&appliance, "router", "examiner", &fixture.component("test_examiner")?, router, &json!({}))?;
    let (mut receiver, mut esme) =
        (RawConnection::connect(appliance.smpp())?, RawConnection::connect(appliance.smpp())?);
    ensure!(receiver.bind("receiver", PASSWORD)? == 0 && esme.bind("acme", PASSWORD)? == 0, "not bound");

    let ids = [tlv(0x1400, b"1001"), tlv(0x1401, b"1107")].concat();
    // Sender, number, text, whether with the ids, and the delivered text.
    let asked = [
        ("ACME", "4917012345678", "hello", false, Some("hello")),
        ("OTHER", "4917012345678", "hello", false, None),
        ("INFO", "4917012345678", "hello again", false, Some("hello again")),
        ("ACME", "919812345678", "Your code is 1234.", false, None),
        ("ACME", "919812345678", "Your code is 1234.", true, Some("Your code is 1234.")),
        ("ACME", "4917012345678", "see http://www.evil.example/x now", false, Some("see [removed] now")),
    ];
    let mut last = String::new();
    for (sequence, (source, destination, text, has_ids, expected)) in (2..).zip(asked) {
        let tlvs = if has_ids { &ids[..] } else { &[] };
        esme.send_pdu(SUBMIT_SM, sequence, &submit(source, destination, text, tlvs))?;
        let (id, status, _, body) = esme.receive()?;
        let expected_status = if expected.is_some() { 0 } else { INVALID_SOURCE };
        ensure!((id, status) == (SUBMIT_SM | RESPONSE, expected_status), "{source} {text}: {status:#x}");
        let Some(expected) = expected else { continue };
        last = String::from_utf8_lossy(&body).trim_end_matches('\0').to_owned();
        let (id, _, sequence, body) = receiver.receive()?;
        receiver.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
        let shown = String::from_utf8_lossy(&body);
        ensure!(id == DELIVER_SM && shown.contains(expected), "{text}: {shown:?}");
        ensure!(!shown.contains("evil"), "{shown:?}");
    }
    // The router saw the tag.
    let trace = appliance.get(&format!("/v1/messages/{last}"))?;
    ensure!(trace["routing"].to_string().contains("evil"), "{trace:#}");

    // A new row of the table takes effect at once.
    appliance.ask("PUT", "/v1/tables/senders?kind=exact", b"acme/OTHER,\n")?;
    for (sequence, (source, expected)) in (20..).zip([("OTHER", 0), ("ACME", INVALID_SOURCE)]) {
        esme.send_pdu(SUBMIT_SM, sequence, &submit(source, "4917012345678", "hello", &[]))?;
        let (_, status, ..) = esme.receive()?;
        ensure!(status == expected, "{source}: {status:#x}");
    }
    Ok(())
}

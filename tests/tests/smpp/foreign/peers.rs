//! Messages, delivery receipts and MO between third-party ESMEs and SMSCs, through the real binary.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Capture, Fixture, Kannel, Peer};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

fn loopback(port: &Value) -> Result<SocketAddr> {
    let port = u16::try_from(port.as_u64().context("no port")?)?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The SMSC of npm `smpp`.
fn upstream(options: &Value) -> Result<(Peer, SocketAddr)> {
    let mut upstream = Peer::node("upstream.js", options)?;
    let address = loopback(&upstream.expect("listening")?["port"])?;
    Ok((upstream, address))
}

/// A daemon between the account `acme` and this upstream.
fn start_between(fixture: &Fixture, address: SocketAddr, keys: &str) -> Result<TestDaemon> {
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, &format!("default-account = \"acme\"\n{keys}"));
    config.start()
}

fn esme(port: u16) -> Value {
    json!({ "port": port, "system_id": "acme", "password": PASSWORD })
}

fn wait_until_bound(mut peer: Peer) -> Result<Peer> {
    let answer = peer.expect("bound")?;
    ensure!(answer["status"] == 0, "the bind was answered by {answer}");
    Ok(peer)
}

/// A field (`id:…`, `stat:…`) in the text of a delivery receipt (SMPP 3.4 Appendix B).
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.split_once(&format!("{name}:")).and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default()
}

#[test]
fn smpplib_submits_and_gets_delivery_receipts() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({ "receipts": true }))?;
    let appliance = start_between(&fixture, address, "")?;
    let mut esme = wait_until_bound(Peer::python("esme.py", &esme(appliance.smpp().port()))?)?;
    esme.send_action(
        &json!({ "text": "hello", "from": "10655", "to": "8613800000000", "receipt": true, "tag": 1 }),
    )?;
    let answer = esme.expect("answer")?;
    assert_eq!((&answer["status"], &answer["tag"]), (&json!(0), &json!(1)));
    let id = answer["id"].as_str().context("no id")?.to_owned();
    let submit = upstream.expect("submit")?;
    assert_eq!(submit["text"], "hello");
    assert_eq!((&submit["source"], &submit["destination"]), (&json!("10655"), &json!("8613800000000")));
    let receipt = esme.expect("deliver")?;
    assert_eq!(receipt["esm_class"].as_u64().map(|class| class & 0x3c), Some(4));
    assert_eq!((&receipt["source"], &receipt["destination"]), (&json!("8613800000000"), &json!("10655")));
    let text = receipt["text"].as_str().context("no text")?;
    assert_eq!((field(text, "id"), field(text, "stat")), (id.as_str(), "DELIVRD"), "{text}");
    assert_eq!(upstream.expect("receipt-answered")?["status"], 0);
    Ok(())
}

#[test]
fn smpplib_sends_a_long_text_and_its_segments_arrive_unchanged() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({}))?;
    let appliance = start_between(&fixture, address, "")?;
    let mut esme = wait_until_bound(Peer::python("esme.py", &esme(appliance.smpp().port()))?)?;
    let text = "0123456789".repeat(35);
    esme.send_action(&json!({ "text": text, "from": "10655", "to": "8613800000000", "tag": 1 }))?;
    let (mut parts, mut references) = (Vec::new(), Vec::new());
    for part in 1..=3 {
        assert_eq!(esme.expect("answer")?["status"], 0);
        let submit = upstream.expect("submit")?;
        assert_eq!(submit["esm_class"].as_u64().map(|class| class & 0x40), Some(0x40), "{submit}");
        let udh = submit["udh"].as_str().context("no UDH")?.to_owned();
        assert!(udh.starts_with("0003") && udh.ends_with(&format!("03{part:02}")), "{udh}");
        references.push(udh[4..6].to_owned());
        parts.push(submit["text"].as_str().context("no text")?.to_owned());
    }
    assert_eq!(parts.concat(), text);
    assert!(references.iter().all(|reference| *reference == references[0]), "{references:?}");
    Ok(())
}

#[test]
fn npm_smpp_submits_payload_and_ucs2_and_gets_mo_without_a_route() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({ "receipts": true }))?;
    let appliance = start_between(&fixture, address, "")?;
    let mut esme = wait_until_bound(Peer::node("esme.js", &esme(appliance.smpp().port()))?)?;
    let to = json!({ "source_addr": "10655", "destination_addr": "8613800000000" });
    let with = |more: Value| {
        let mut all = to.clone();
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        all
    };
    let payload = "p".repeat(1000);
    esme.send_action(&json!({ "tag": "payload", "submit": with(json!({ "message_payload": payload })) }))?;
    assert_eq!(esme.expect("answer")?["status"], 0);
    assert_eq!(upstream.expect("submit")?["text"], payload);
    esme.send_action(
        &json!({ "tag": "ucs2", "submit": with(json!({ "data_coding": 8, "short_message": "你好" })) }),
    )?;
    assert_eq!(esme.expect("answer")?["status"], 0);
    let submit = upstream.expect("submit")?;
    assert_eq!((&submit["text"], &submit["data_coding"]), (&json!("你好"), &json!(8)));

    upstream.send_action(&json!({ "mo": { "source_addr": "8613800000000", "destination_addr": "acme-mo", "short_message": "back" } }))?;
    // The policy would send it back to its origin: it goes to the peer's default account instead.
    assert_eq!(upstream.expect("mo-answered")?["status"], 0);
    let mo = esme.expect("deliver")?;
    assert_eq!((&mo["text"], &mo["source"]), (&json!("back"), &json!("8613800000000")));
    Ok(())
}

#[test]
fn an_mo_is_routed_to_an_account() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({}))?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, "");
    config.router(
        &fixture.guest("prefix_router"),
        "[[route]]\nprefix = \"10655\"\nlegs = [{ peer = \"acme\" }]\n[default]\nlegs = [{ peer = \"upstream\" }]\n",
    )?;
    let appliance = config.start()?;
    upstream.expect("bind")?;
    // No ESME is bound yet: it waits.
    upstream.send_action(&json!({ "mo": { "source_addr": "8613800000000", "destination_addr": "10655", "short_message": "early" } }))?;
    assert_eq!(upstream.expect("mo-answered")?["status"], 0);
    let mut esme = wait_until_bound(Peer::node("esme.js", &esme(appliance.smpp().port()))?)?;
    let mo = esme.expect("deliver")?;
    assert_eq!(
        (&mo["text"], &mo["source"], &mo["destination"]),
        (&json!("early"), &json!("8613800000000"), &json!("10655"))
    );
    assert_eq!(mo["esm_class"], 0);
    Ok(())
}

#[test]
fn receipts_match_hexadecimal_message_ids() -> Result<()> {
    let fixture = Fixture::new()?;
    let (_upstream, address) = upstream(&json!({ "receipts": true, "ids": "hex" }))?;
    let appliance = start_between(&fixture, address, "message-id = \"hex-to-decimal\"")?;
    let mut esme = wait_until_bound(Peer::node("esme.js", &esme(appliance.smpp().port()))?)?;
    let submit = json!({ "source_addr": "10655", "destination_addr": "8613800000000", "short_message": "x", "registered_delivery": 1 });
    esme.send_action(&json!({ "submit": submit }))?;
    let id = esme.expect("answer")?["id"].as_str().context("no id")?.to_owned();
    let text = esme.expect("deliver")?["text"].as_str().context("no text")?.to_owned();
    assert_eq!((field(&text, "id"), field(&text, "stat")), (id.as_str(), "DELIVRD"));
    Ok(())
}

#[test]
fn a_refusal_of_the_peer_is_reported_in_the_receipt() -> Result<()> {
    let fixture = Fixture::new()?;
    // 0x0B: RINVDSTADR
    let (_upstream, address) = upstream(&json!({ "status": 11 }))?;
    let appliance = start_between(&fixture, address, "")?;
    let mut esme = wait_until_bound(Peer::node("esme.js", &esme(appliance.smpp().port()))?)?;
    let submit = json!({ "source_addr": "10655", "destination_addr": "8613800000000", "short_message": "x", "registered_delivery": 1 });
    esme.send_action(&json!({ "submit": submit }))?;
    assert_eq!(esme.expect("answer")?["status"], 0);
    let text = esme.expect("deliver")?["text"].as_str().context("no text")?.to_owned();
    assert!(["UNDELIV", "REJECTD"].contains(&field(&text, "stat")), "{text}");
    Ok(())
}

#[test]
fn kannel_submits_and_gets_its_reports_and_an_mo() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({ "receipts": true }))?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, "");
    config.router(
        &fixture.guest("prefix_router"),
        "[[route]]\nprefix = \"10655\"\nlegs = [{ peer = \"acme\" }]\n[default]\nlegs = [{ peer = \"upstream\" }]\n",
    )?;
    let appliance = config.start()?;
    let kannel = Kannel::start(
        fixture.folder(),
        &Kannel::smsc_group("OURS", appliance.smpp().port(), "acme", PASSWORD, ""),
    )?;
    kannel.wait_until_online("OURS")?;
    kannel.submit("10655", "8613800000000", "from Kannel")?;
    assert_eq!(upstream.expect("submit")?["text"], "from Kannel");
    // 8: accepted by the SMSC, 1: delivered (Kannel's user guide, delivery reports).
    kannel.expect_call(|call| call.starts_with("/dlr?type=8"))?;
    kannel.expect_call(|call| call.starts_with("/dlr?type=1"))?;
    let long = "z".repeat(200);
    kannel.submit("10655", "8613800000000", &long)?;
    let parts = [upstream.expect("submit")?, upstream.expect("submit")?];
    let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(joined, long);
    upstream.send_action(&json!({ "mo": { "source_addr": "8613800000000", "destination_addr": "10655", "short_message": "to Kannel" } }))?;
    let call = kannel.expect_call(|call| call.starts_with("/mo"))?;
    assert!(call.contains("from=8613800000000") && call.contains("text=to+Kannel"), "{call}");
    Ok(())
}

/// Kannel is an ESME on both sides: it takes messages for its account and submits them to its other SMSC.
#[test]
fn kannel_as_the_upstream_relays_to_the_next_smsc() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut last, address) = upstream(&json!({}))?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("kannel", "");
    config.router(&fixture.guest("prefix_router"), "[default]\nlegs = [{ peer = \"kannel\" }]\n")?;
    let appliance = config.start()?;
    let centres = Kannel::smsc_group(
        "OURS",
        appliance.smpp().port(),
        "kannel",
        PASSWORD,
        "reroute-smsc-id = NEXT\ndenied-smsc-id = NEXT",
    ) + "\n"
        + &Kannel::smsc_group("NEXT", address.port(), "relay", "secret", "allowed-smsc-id = NEXT");
    let kannel = Kannel::start(fixture.folder(), &centres)?;
    kannel.wait_until_online("OURS")?;
    kannel.wait_until_online("NEXT")?;
    let mut esme = wait_until_bound(Peer::python("esme.py", &esme(appliance.smpp().port()))?)?;
    for number in 0..20 {
        let text = format!("message {number}");
        esme.send_action(&json!({ "text": text, "from": "10655", "to": "8613800000000", "tag": number }))?;
    }
    let mut texts = Vec::new();
    for _ in 0..20 {
        assert_eq!(esme.expect("answer")?["status"], 0);
        texts.push(last.expect("submit")?["text"].as_str().context("no text")?.to_owned());
    }
    texts.sort_by_key(|text| text.trim_start_matches("message ").parse::<u32>().unwrap_or(u32::MAX));
    let wanted: Vec<_> = (0..20).map(|number| format!("message {number}")).collect();
    assert_eq!(texts, wanted);
    Ok(())
}

#[test]
fn check_150_tshark_finds_nothing_wrong_with_what_we_send() -> Result<()> {
    let fixture = Fixture::new()?;
    let (mut upstream, address) = upstream(&json!({ "receipts": true }))?;
    let towards_upstream = Capture::start(address)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", towards_upstream.address(), "enquire-interval = \"1s\"");
    config.router(
        &fixture.guest("prefix_router"),
        "[[route]]\nprefix = \"10655\"\nlegs = [{ peer = \"acme\" }]\n[default]\nlegs = [{ peer = \"upstream\" }]\n",
    )?;
    let appliance = config.start()?;
    let towards_us = Capture::start(appliance.smpp())?;
    let mut esme = wait_until_bound(Peer::node("esme.js", &esme(towards_us.address().port()))?)?;
    let to = json!({ "source_addr": "10655", "destination_addr": "8613800000000", "registered_delivery": 1 });
    let mut send = |more: Value| -> Result<()> {
        let mut all = to.clone();
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        esme.send_action(&json!({ "submit": all }))?;
        ensure!(esme.expect("answer")?["status"] == 0, "refused");
        esme.expect("deliver")?;
        upstream.expect("submit")?;
        Ok(())
    };
    send(json!({ "short_message": "plain" }))?;
    send(json!({ "message_payload": "long ".repeat(200) }))?;
    send(json!({ "data_coding": 8, "short_message": "你好" }))?;
    send(json!({ "esm_class": 0x40, "short_message": { "udh": "0500034201", "text": "part" } }))?;
    send(
        json!({ "short_message": "sar", "sar_msg_ref_num": 7, "sar_total_segments": 2, "sar_segment_seqnum": 1 }),
    )?;
    // Refusals have headers without bodies.
    esme.send_action(
        &json!({ "raw": "query_sm", "fields": { "message_id": "nothing", "source_addr": "10655" } }),
    )?;
    ensure!(esme.expect("answer")?["status"] != 0, "a message was found that is not there");
    esme.send_action(&json!({ "raw": "data_sm", "fields": { "source_addr": "10655", "destination_addr": "8613800000000" } }))?;
    ensure!(esme.expect("answer")?["status"] != 0, "data_sm without a text was accepted");
    upstream.send_action(&json!({ "mo": { "source_addr": "8613800000000", "destination_addr": "10655", "short_message": "MO" } }))?;
    esme.expect_matching("deliver", |mo| mo["text"] == "MO")?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());

    let seen = towards_us.check(fixture.folder())?;
    for id in ["0x80000009", "0x80000004", "0x00000005", "0x80000003", "0x80000103"] {
        assert!(
            seen.iter().any(|name| name == id),
            "{id} is not in the capture of our ESME's side: {seen:?}"
        );
    }
    let seen = towards_upstream.check(fixture.folder())?;
    for id in ["0x00000009", "0x00000004", "0x80000005"] {
        assert!(
            seen.iter().any(|name| name == id),
            "{id} is not in the capture of our peer's side: {seen:?}"
        );
    }
    Ok(())
}

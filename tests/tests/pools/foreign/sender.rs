//! Senders from a shared pool, end to end: a router leases a number of the pool as the sender of a message. No other
//! message gets that number until the message has ended and the number is released.

use crate::sender::{POOL, add};
use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, Peer, shipped_policy, steps};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

const NUMBER: &str = "+8613800138000";

/// The state of the number.
fn number_state(appliance: &TestDaemon) -> Result<Value> {
    appliance.get(&format!("{POOL}/numbers/{}", NUMBER.replace('+', "%2B")))
}

fn holder(appliance: &TestDaemon) -> Result<Option<String>> {
    Ok(number_state(appliance)?["message"].as_str().map(str::to_owned))
}

struct Esme(Peer);

impl Esme {
    fn bind(appliance: &TestDaemon) -> Result<Self> {
        let options = json!({ "port": appliance.smpp().port(), "system_id": "shop", "password": PASSWORD });
        let mut peer = Peer::node("esme.js", &options)?;
        ensure!(peer.expect("bound")?["status"] == 0);
        Ok(Self(peer))
    }

    /// Submits a text as `SUPPORT`; returns its id.
    fn submit(&mut self, tag: u64) -> Result<String> {
        let fields = json!({
            "source_addr_ton": 5, "source_addr": "SUPPORT", "destination_addr": "8613900000001",
            "registered_delivery": 1, "short_message": format!("text {tag}"),
        });
        self.0.send_action(&json!({ "submit": fields, "tag": tag }))?;
        let answer = self.0.expect_matching("answer", |answer| answer["tag"] == tag)?;
        ensure!(answer["status"] == 0, "{answer}");
        Ok(answer["id"].as_str().context("no id")?.to_owned())
    }
}

/// The next text that the SMSC receives; returns the SMSC's id.
fn arrived(upstream: &mut Peer, text: &str) -> Result<String> {
    let submit = upstream.expect("submit")?;
    assert_eq!(submit["text"], text, "{submit}");
    assert_eq!((&submit["source"], &submit["source_ton"]), (&json!("8613800138000"), &json!(1)), "{submit}");
    Ok(submit["id"].as_str().context("no id")?.to_owned())
}

/// The SMSC reports the delivery of a text, to the number that it was shown.
fn delivered(upstream: &mut Peer, id: &str) -> Result<()> {
    let words = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2611210800 done date:2611210800 stat:DELIVRD err:000 text:"
    );
    upstream.send_action(&json!({ "mo": {
        "source_addr": "8613900000001", "destination_addr": "8613800138000", "esm_class": 4, "short_message": words,
    } }))?;
    ensure!(upstream.expect("mo-answered")?["status"] == 0);
    Ok(())
}

fn trace(appliance: &TestDaemon, id: &str) -> Result<Value> {
    appliance.get(&format!("/v1/messages/{id}"))
}

#[test]
fn a_message_holds_its_number_until_it_ends_and_the_next_message_waits() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut upstream = Peer::node("upstream.js", &json!({}))?;
    let port = u16::try_from(upstream.expect("listening")?["port"].as_u64().context("no port")?)?;
    let mut config = fixture.config()?;
    config.router(&fixture.guest("shared_sender"), &shipped_policy("shared-sender")?)?;
    config.account("shop", "").peer("upstream", SocketAddr::from(([127, 0, 0, 1], port)), "");
    let appliance = config.start()?;
    add(&appliance, NUMBER)?;
    let mut esme = Esme::bind(&appliance)?;

    let first = esme.submit(1)?;
    let upstreams_first = arrived(&mut upstream, "text 1")?;
    let number = number_state(&appliance)?;
    assert_eq!((&number["state"], &number["holder"]), (&json!("busy+up"), &json!("shop")), "{number:#}");
    assert_eq!(number["message"], json!(first), "{number:#}");

    let second = esme.submit(2)?;
    let third = esme.submit(3)?;
    let waiting = trace(&appliance, &second)?;
    assert!(
        steps(&waiting).iter().any(|step| step.starts_with("no sender available in pool support-line")),
        "{waiting:#}"
    );
    assert_eq!(holder(&appliance)?, Some(first.clone()));

    delivered(&mut upstream, &upstreams_first)?;
    // The submitter's DLR has the sender that it submitted.
    let receipt = esme.0.expect("deliver")?;
    assert_eq!((&receipt["destination"], &receipt["source"]), (&json!("SUPPORT"), &json!("8613900000001")));
    let upstreams_second = arrived(&mut upstream, "text 2")?;
    assert_eq!(holder(&appliance)?, Some(second.clone()), "it went in the order of acceptance");

    // A crash releases no number, and the waiting messages keep their order.
    let appliance = appliance.kill()?.start()?;
    assert_eq!(holder(&appliance)?, Some(second.clone()));
    upstream.expect("bind")?;
    delivered(&mut upstream, &upstreams_second)?;
    let upstreams_third = arrived(&mut upstream, "text 3")?;
    assert_eq!(holder(&appliance)?, Some(third));
    delivered(&mut upstream, &upstreams_third)?;
    appliance.wait_until(Duration::from_secs(60), POOL, |pool| pool["ready"] == 1)?;
    assert_eq!(number_state(&appliance)?["state"], "idle+up");

    let trace = trace(&appliance, &second)?;
    let taken = format!("sender: {NUMBER}, from pool support-line");
    assert!(steps(&trace).contains(&taken.as_str()), "{trace:#}");
    let verdict = trace["routing"]["verdict"].as_str().unwrap_or_default();
    assert!(verdict.contains("sender from pool support-line, otherwise hold"), "{trace:#}");
    let history = appliance.get(&format!("{POOL}/history"))?;
    let changes: Vec<(&Value, &Value)> = history["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| (&entry["event"], &entry["by"]))
        .take(6)
        .collect();
    let (call, hangup, message) = (json!("call"), json!("hangup"), json!("message"));
    let pair = [(&hangup, &message), (&call, &message)];
    assert_eq!(changes, [pair, pair, pair].concat(), "{history:#}");
    Ok(())
}

#[test]
fn without_a_free_number_a_message_is_refused_or_keeps_its_sender() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut upstream = Peer::node("upstream.js", &json!({}))?;
    let port = u16::try_from(upstream.expect("listening")?["port"].as_u64().context("no port")?)?;
    let mut config = fixture.config()?;
    let share = |pool: &str, from: &str, without: &str| {
        format!(
            "[[share]]\npool = {pool:?}\nfrom = [{from:?}]\npeers = [\"upstream\"]\nwithout-number = {without:?}\n"
        )
    };
    let policy = share("nowhere", "STRICT", "reject") + &share("support-line", "EASY", "keep-sender");
    config.router(&fixture.guest("shared_sender"), &policy)?;
    config.account("shop", "").peer("upstream", SocketAddr::from(([127, 0, 0, 1], port)), "");
    let appliance = config.start()?;
    let mut esme = Esme::bind(&appliance)?;
    let submit = |from: &str| json!({ "source_addr": from, "destination_addr": "8613900000001", "short_message": "x" });
    esme.0.send_action(&json!({ "submit": submit("STRICT"), "tag": 1 }))?;
    // ESME_RTHROTTLED: a number may become free later.
    assert_eq!(esme.0.expect("answer")?["status"], 0x58);
    esme.0.send_action(&json!({ "submit": submit("EASY"), "tag": 2 }))?;
    assert_eq!(esme.0.expect("answer")?["status"], 0);
    assert_eq!(upstream.expect("submit")?["source"], "EASY");
    Ok(())
}

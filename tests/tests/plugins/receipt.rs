//! `second-chance` over SMPP: a message without a delivery goes to its next leg, its submitter gets one DLR and is
//! charged once; late DLRs, a killed daemon, DLRs that are changed or distrusted.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, RawConnection, TIMEOUT, bind, shipped_policy, steps};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use testkit::test_daemon::{PASSWORD, TestDaemon};

const SUBMIT_SM: u32 = 0x0000_0004;
const DELIVER_SM: u32 = 0x0000_0005;
const ENQUIRE_LINK: u32 = 0x0000_0015;
const RESPONSE: u32 = 0x8000_0000;
/// Price of a message by the shipped price list, in millionths.
const PRICE: i64 = 50_000;

const POLICY: &str = r#"
[[rule]]
prefix = "49"
wait = "1s"
next-leg = ["undeliverable"]

[[rule]]
prefix = "43"
peer = "north"
wait = "1s"
suspect-below = "1h"

[[remap]]
peer = "south"
state = "unknown"
errors = [34]
to-state = "rejected"
to-error = 12
"#;

const LEGS: &str = "[default]\nlegs = [{ peer = \"north\" }, { peer = \"south\", rank = 1 }]\n";

/// An SMSC that the test controls.
struct Smsc {
    listener: TcpListener,
    link: Option<RawConnection>,
    sequence: u32,
}

impl Smsc {
    fn listen() -> Result<Self> {
        Ok(Self { listener: TcpListener::bind("127.0.0.1:0")?, link: None, sequence: 100 })
    }

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Accepts the daemon's bind.
    fn accept(&mut self) -> Result<()> {
        let mut link = RawConnection::accepted(self.listener.accept()?.0)?;
        let (id, _, sequence, _) = link.receive()?;
        ensure!(id == 9, "{id:#x} is no bind_transceiver");
        link.send_pdu(id | RESPONSE, sequence, b"smsc\0")?;
        self.link = Some(link);
        Ok(())
    }

    /// The next PDU with this command id.
    fn receive(&mut self, wanted: u32) -> Result<u32> {
        let link = self.link.as_mut().context("not bound")?;
        loop {
            let (id, _, sequence, _) = link.receive()?;
            if id == wanted {
                return Ok(sequence);
            }
            ensure!(id == ENQUIRE_LINK, "{id:#x} instead of {wanted:#x}");
            link.send_pdu(id | RESPONSE, sequence, &[])?;
        }
    }

    /// Takes a message under this id.
    fn take(&mut self, id: &str) -> Result<()> {
        let sequence = self.receive(SUBMIT_SM)?;
        let link = self.link.as_mut().context("not bound")?;
        link.send_pdu(SUBMIT_SM | RESPONSE, sequence, format!("{id}\0").as_bytes())
    }

    /// Sends a DLR (SMPP 3.4 appendix B), and waits until the daemon has answered.
    fn dlr(&mut self, id: &str, state: &str, error: u16) -> Result<()> {
        let text = format!(
            "id:{id} sub:001 dlvrd:001 submit date:2611281200 done date:2611281201 stat:{state} err:{error:03} text:"
        );
        let head = b"\0\x01\x014917012345678\0\x01\x01100\0\x04\0\0\0\0\0\0\0\0";
        let body = [&head[..], &[text.len() as u8], text.as_bytes()].concat();
        self.sequence += 1;
        let link = self.link.as_mut().context("not bound")?;
        link.send_pdu(DELIVER_SM, self.sequence, &body)?;
        self.receive(DELIVER_SM | RESPONSE).map(drop)
    }
}

/// A submit_sm that asks for a DLR (SMPP 3.4 §4.4.1).
fn submission(destination: &str) -> Vec<u8> {
    let head = format!("\0\x01\x01100\0\x01\x01{destination}\0\0\0\0\0\0\x01\0\0\0\x05hello");
    head.into_bytes()
}

struct Esme {
    link: RawConnection,
    sequence: u32,
}

impl Esme {
    fn bind(appliance: &TestDaemon) -> Result<Self> {
        let mut link = RawConnection::connect(appliance.smpp())?;
        ensure!(link.bind("acme", PASSWORD)? == 0, "acme is not bound");
        Ok(Self { link, sequence: 1 })
    }

    /// Submits a message; returns its id. No DLR may come before.
    fn submit(&mut self, destination: &str) -> Result<String> {
        self.sequence += 1;
        self.link.send_pdu(SUBMIT_SM, self.sequence, &submission(destination))?;
        let (id, status, _, body) = self.link.receive()?;
        ensure!((id, status) == (SUBMIT_SM | RESPONSE, 0), "{id:#x}, status {status:#x}");
        Ok(String::from_utf8(body.strip_suffix(&[0]).context("no NUL behind the id")?.to_vec())?)
    }

    /// The next DLR, which must be of this message.
    fn dlr(&mut self, of: &str) -> Result<String> {
        let (id, _, sequence, body) = self.link.receive()?;
        ensure!(id == DELIVER_SM, "{id:#x}");
        self.link.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
        let text = String::from_utf8_lossy(&body).into_owned();
        ensure!(text.contains(&format!("id:{of} ")), "a DLR of another message than {of}: {text}");
        Ok(text)
    }
}

struct Setup {
    appliance: TestDaemon,
    north: Smsc,
    south: Smsc,
    esme: Esme,
}

impl Setup {
    fn open(fixture: &Fixture) -> Result<Self> {
        let (mut north, mut south) = (Smsc::listen()?, Smsc::listen()?);
        let mut config = fixture.config()?;
        config
            .router(&fixture.guest("prefix_router"), LEGS)?
            .account("acme", "")
            .archive("sqlite:archive.db")
            .peer("north", north.address()?, "links = 1")
            .peer("south", south.address()?, "links = 1");
        let appliance = config.start()?;
        north.accept()?;
        south.accept()?;
        let component = fixture.component("second_chance")?;
        bind(&appliance, "receipt", "second-chance", &component, POLICY, &json!({}))?;
        bind(
            &appliance,
            "biller",
            "prepaid",
            &fixture.component("prepaid")?,
            &shipped_policy("prices")?,
            &json!({}),
        )?;
        for operation in [json!({ "credit": 0 }), json!({ "fund": 1_000_000 })] {
            let mut operation = operation;
            operation["reason"] = "a test".into();
            let key = operation.to_string();
            let (status, answer) = appliance.ledger("acme", &key, &operation)?;
            ensure!(status == 200, "{operation}: {status} {answer}");
        }
        let esme = Esme::bind(&appliance)?;
        Ok(Self { appliance, north, south, esme })
    }

    /// Kills the daemon and starts it again.
    fn kill(mut self) -> Result<Self> {
        self.appliance = self.appliance.kill()?.start()?;
        self.north.accept()?;
        self.south.accept()?;
        self.esme = Esme::bind(&self.appliance)?;
        Ok(self)
    }

    fn trace(&self, id: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        self.appliance.wait_until(TIMEOUT, &format!("/v1/messages/{id}"), holds)
    }

    fn captured(&self) -> Result<Option<i64>> {
        let account = self.appliance.get("/v1/ledger/acme")?;
        ensure!(account["reserved"] == 0, "{account}");
        Ok(account["captured"].as_i64())
    }

    /// Checks that no other DLR has arrived: the next one is that of a new message.
    fn expect_no_other_dlr(&mut self) -> Result<()> {
        let id = self.esme.submit("861234")?;
        self.north.take("fence")?;
        self.north.dlr("fence", "DELIVRD", 0)?;
        self.esme.dlr(&id).map(drop)
    }
}

fn has_step(trace: &Value, beginning: &str) -> bool {
    steps(trace).iter().any(|step| step.starts_with(beginning))
}

#[test]
fn a_message_without_a_dlr_takes_its_next_leg_and_has_one_dlr_and_one_charge() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = Setup::open(&fixture)?;
    let id = setup.esme.submit("4917012345678")?;
    setup.north.take("n1")?;
    setup.south.take("s1")?;
    setup.south.dlr("s1", "DELIVRD", 0)?;
    let dlr = setup.esme.dlr(&id)?;
    ensure!(dlr.contains("stat:DELIVRD"), "{dlr}");
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    for step in [
        "waiting for a DLR until ",
        "no final DLR in time",
        "decided by second-chance ",
        "next leg: south",
        "DLR: Delivered",
    ] {
        ensure!(has_step(&trace, step), "{step}: {trace:#}");
    }
    assert_eq!(setup.captured()?, Some(PRICE));
    // The first peer's DLR is late: the submitter gets no second DLR, and does not pay twice.
    setup.north.dlr("n1", "DELIVRD", 0)?;
    setup.expect_no_other_dlr()?;
    assert_eq!(setup.captured()?, Some(2 * PRICE), "with the other message");
    assert_eq!(setup.appliance.metric("switchyard_receipt_next_legs_total")?, 1.0);
    Ok(())
}

#[test]
fn a_late_delivery_of_the_first_leg_ends_the_message_after_a_crash_too() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = Setup::open(&fixture)?;
    for crash in [false, true] {
        let id = setup.esme.submit("4917012345678")?;
        setup.north.take(&format!("n{crash}"))?;
        setup.south.take(&format!("s{crash}"))?;
        setup.trace(&id, |trace| has_step(trace, "accepted by the peer, id \"s"))?;
        if crash {
            setup = setup.kill()?;
        }
        setup.north.dlr(&format!("n{crash}"), "DELIVRD", 0)?;
        let dlr = setup.esme.dlr(&id)?;
        ensure!(dlr.contains("stat:DELIVRD"), "{dlr}");
        let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
        ensure!(has_step(&trace, "late DLR from north: Delivered"), "{trace:#}");
        // The second peer's own DLR arrives too late.
        setup.south.dlr(&format!("s{crash}"), "UNDELIV", 11)?;
        setup.expect_no_other_dlr()?;
    }
    assert_eq!(setup.captured()?, Some(4 * PRICE), "two messages, and two others");
    Ok(())
}

#[test]
fn a_wait_survives_a_crash() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = Setup::open(&fixture)?;
    let id = setup.esme.submit("4917012345678")?;
    setup.north.take("n1")?;
    setup.trace(&id, |trace| has_step(trace, "waiting for a DLR until "))?;
    setup = setup.kill()?;
    setup.south.take("s1")?;
    setup.south.dlr("s1", "UNDELIV", 11)?;
    let dlr = setup.esme.dlr(&id)?;
    ensure!(dlr.contains("stat:UNDELIV") && dlr.contains("err:011"), "{dlr}");
    setup.expect_no_other_dlr()?;
    Ok(())
}

#[test]
fn a_dlr_is_changed_and_another_is_not_believed() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = Setup::open(&fixture)?;
    let id = setup.esme.submit("436601234")?;
    setup.north.take("n1")?;
    // Faster than any network.
    setup.north.dlr("n1", "DELIVRD", 0)?;
    setup.south.take("s1")?;
    setup.south.dlr("s1", "UNKNOWN", 34)?;
    let dlr = setup.esme.dlr(&id)?;
    ensure!(dlr.contains("stat:REJECTD") && dlr.contains("err:012"), "{dlr}");
    let trace = setup.trace(&id, |trace| trace["finished"] == true)?;
    for step in [
        "DLR not believed",
        "next leg: south",
        "DLR: Unknown, error 34",
        "DLR changed to: Rejected, error 12",
    ] {
        ensure!(has_step(&trace, step), "{step}: {trace:#}");
    }
    let metrics = setup.appliance.metrics()?;
    let suspected = metrics.iter().find(|(name, _)| name.starts_with("switchyard_peer_dlrs_suspected_total"));
    ensure!(suspected.is_some_and(|(name, value)| name.contains("north") && *value == 1.0), "{suspected:?}");
    Ok(())
}

/// Without times that could pass during the test.
const PATIENT: &str = "[[rule]]\nwait = \"1h\"\nnext-leg = [\"undeliverable\"]\n";

/// Runs a replay of the last messages with this document; returns its report.
fn replay(setup: &Setup, policy: &str) -> Result<Value> {
    let version = setup.appliance.get("/v1/hooks/receipt")?["live"]["chain"][0]["version"].clone();
    let request = json!({
        "hook": "receipt", "last": 100, "plugin": "second-chance", "version": version, "policy": policy,
    });
    let started = setup.appliance.call::<Value>("POST", "/v1/replays", &request)?;
    let path = format!("/v1/replays/{}", started["id"].as_str().context("no id")?);
    let ended = setup.appliance.wait_until(TIMEOUT, &path, |replay| replay["state"] != "running")?;
    ensure!(ended["state"] == "done", "{ended:#}");
    Ok(ended["report"].clone())
}

#[test]
fn a_replay_repeats_each_call_about_a_message_after_a_crash_too() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = Setup::open(&fixture)?;
    let component = fixture.component("second_chance")?;
    bind(&setup.appliance, "receipt", "second-chance", &component, PATIENT, &json!({}))?;
    let id = setup.esme.submit("4917012345678")?;
    setup.north.take("n1")?;
    setup.trace(&id, |trace| has_step(trace, "waiting for a DLR until "))?;
    setup = setup.kill()?;
    setup.north.dlr("n1", "UNDELIV", 11)?;
    setup.south.take("s1")?;
    setup.south.dlr("s1", "DELIVRD", 0)?;
    setup.esme.dlr(&id)?;
    setup.trace(&id, |trace| trace["finished"] == true)?;
    setup.appliance.wait_until(TIMEOUT, "/v1/archive", |archive| {
        archive["archived"].as_u64() >= Some(1) && archive["backlog"] == 0
    })?;

    // Two acceptances and two DLRs.
    let report = replay(&setup, PATIENT)?;
    let counts = |report: &Value| [&report["messages"], &report["same"], &report["exact"]].map(Value::clone);
    ensure!(counts(&report) == [json!(4), json!(4), json!(4)], "{report:#}");
    let report = replay(&setup, "[[rule]]\nwait = \"1h\"\n")?;
    ensure!(counts(&report) == [json!(4), json!(3), json!(2)], "{report:#}");
    let group = &report["groups"][0];
    ensure!(group["from"] == "DLR undeliverable, error 11: next leg", "{report:#}");
    ensure!(group["to"] == "DLR undeliverable, error 11: accept", "{report:#}");
    ensure!(group["examples"][0]["id"] == *id && group["examples"][0]["exact"] == true, "{report:#}");
    let later = &report["inexact"][0];
    ensure!(
        later["because"] == "an earlier decision on the message is another" && later["count"] == 2,
        "{report:#}"
    );

    // The same calls as cases for the policy's author.
    let request = json!({ "message": id, "chain": [{ "plugin": "second-chance" }] });
    let cases = setup.appliance.call::<Value>("POST", "/v1/hooks/receipt/cases", &request)?;
    let cases = cases.as_array().context("no cases")?;
    ensure!(cases.len() == 4 && cases.iter().all(|case| case["inexact"].is_null()), "{cases:#?}");
    let text = cases[1]["case"].as_str().unwrap_or_default();
    ensure!(text.contains("expect = \"next-leg\"") && text.contains("undeliverable"), "{text}");
    Ok(())
}

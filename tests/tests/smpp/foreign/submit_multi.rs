//! One id applies to all destinations of a submit_multi (SMPP 3.4 §4.5.2): in delivery receipts, query_sm and
//! cancel_sm, before and after a kill, and after archiving. ESME and SMSC are npm `smpp`.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, free_port};
use behaviour_tests::{Fixture, Peer, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

const SOURCE: &str = "10655";
const NUMBERS: [&str; 3] = ["8613800000001", "8613800000002", "8613800000003"];

/// message_state (SMPP 3.4 §5.2.28).
const ENROUTE: u64 = 1;
const DELIVERED: u64 = 2;
const DELETED: u64 = 4;
const UNDELIVERABLE: u64 = 5;

/// command_status (SMPP 3.4 §5.1.3).
const CANCEL_FAILED: u64 = 0x11;
const REPLACE_FAILED: u64 = 0x13;

fn bind_esme(appliance: &TestDaemon) -> Result<Peer> {
    let options = json!({ "port": appliance.smpp().port(), "system_id": "acme", "password": PASSWORD });
    let mut esme = Peer::node("esme.js", &options)?;
    let answer = esme.expect("bound")?;
    ensure!(answer["status"] == 0, "the bind was answered by {answer}");
    Ok(esme)
}

fn ask(esme: &mut Peer, command: &str, fields: &Value) -> Result<Value> {
    esme.send_action(&json!({ "raw": command, "fields": fields, "tag": command }))?;
    esme.expect("answer")
}

/// Submits to all numbers; returns the id of the submission.
fn submit(esme: &mut Peer) -> Result<String> {
    let destinations = NUMBERS.map(|number| {
        json!({ "dest_flag": 1, "dest_addr_ton": 1, "dest_addr_npi": 1, "destination_addr": number })
    });
    let fields = json!({
        "source_addr": SOURCE, "dest_address": destinations, "short_message": "to all of you", "registered_delivery": 1,
    });
    let answer = ask(esme, "submit_multi", &fields)?;
    ensure!(answer["status"] == 0, "the submission was answered by {answer}");
    Ok(answer["id"].as_str().context("no id")?.to_owned())
}

/// The reported state, and whether a final date is reported.
fn state(esme: &mut Peer, id: &str) -> Result<(u64, bool)> {
    let answer = ask(esme, "query_sm", &json!({ "message_id": id, "source_addr": SOURCE }))?;
    ensure!(answer["status"] == 0 && answer["id"] == id, "the query was answered by {answer}");
    let ended = answer["final_date"].as_str().is_some_and(|date| !date.is_empty());
    Ok((answer["message_state"].as_u64().context("no state")?, ended))
}

fn cancel(esme: &mut Peer, id: &str, destination: &str) -> Result<u64> {
    let fields = json!({ "message_id": id, "source_addr": SOURCE, "destination_addr": destination });
    ask(esme, "cancel_sm", &fields)?["status"].as_u64().context("no status")
}

/// The next delivery receipt: destination, id and state. Its text and its TLV have the same id.
fn receipt(esme: &mut Peer) -> Result<(String, String, String)> {
    let receipt = esme.expect("deliver")?;
    let text = receipt["text"].as_str().context("no text")?;
    let field = |name: &str| {
        let rest = text.split_once(&format!("{name}:")).map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned()
    };
    ensure!(receipt["destination"] == SOURCE, "{receipt}");
    ensure!(receipt["receipted_message_id"] == field("id"), "{receipt}");
    let source = receipt["source"].as_str().context("no source")?.to_owned();
    Ok((source, field("id"), field("stat")))
}

fn report_from_network(upstream: &mut Peer, (number, id): (&str, &str), stat: &str) -> Result<()> {
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2611240000 done date:2611240001 stat:{stat} err:000 text:"
    );
    let receipt =
        json!({ "source_addr": number, "destination_addr": SOURCE, "esm_class": 4, "short_message": text });
    upstream.send_action(&json!({ "mo": receipt }))?;
    ensure!(upstream.expect("mo-answered")?["status"] == 0, "the receipt was refused");
    Ok(())
}

fn shown(appliance: &TestDaemon, id: u64) -> Result<Value> {
    appliance.get(&format!("/v1/messages/{id}"))
}

/// The ids of a submission's messages, newest first.
fn found(appliance: &TestDaemon, submission: &str) -> Result<Vec<u64>> {
    let page = appliance.get(&format!("/v1/messages?submission={submission}"))?;
    ensure!(page["next"].is_null(), "{page}");
    let rows = page["messages"].as_array().context("no messages")?;
    rows.iter().map(|row| Ok(row["id"].as_str().context("no id")?.parse()?)).collect()
}

/// The SMSC's message id for each number.
fn taken(upstream: &mut Peer) -> Result<BTreeMap<String, String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
    let one = |_| {
        let submit = upstream.expect("submit")?;
        Ok((text(&submit["destination"])?, text(&submit["id"])?))
    };
    NUMBERS.iter().map(one).collect()
}

#[test]
fn receipts_and_queries_use_the_submission_id_also_after_a_kill_and_archiving() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut upstream = Peer::node("upstream.js", &json!({ "receipts": false }))?;
    let port = upstream.expect("listening")?["port"].as_u64().context("no port")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?));
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, "").archive("sqlite:archive.db");
    let appliance = config.start()?;
    let mut esme = bind_esme(&appliance)?;

    let id = submit(&mut esme)?;
    let first: u64 = id.parse()?;
    let others = taken(&mut upstream)?;
    assert_eq!(others.keys().collect::<Vec<_>>(), NUMBERS.iter().collect::<Vec<_>>());
    assert_eq!(state(&mut esme, &id)?, (ENROUTE, false));
    for number in 0..3 {
        until("the network has it, and that is on disk", || {
            Ok(shown(&appliance, first + number)?["state"] == "responded")
        })?;
        assert_eq!(shown(&appliance, first + number)?["submission"], json!(id));
    }
    assert_eq!(found(&appliance, &id)?, [first + 2, first + 1, first]);

    let appliance = appliance.kill()?.start()?;
    upstream.expect("bind")?;
    upstream.expect("bind")?;
    let mut esme = bind_esme(&appliance)?;
    assert_eq!(state(&mut esme, &id)?, (ENROUTE, false));
    for (number, stat) in NUMBERS.iter().zip(["DELIVRD", "UNDELIV", "DELIVRD"]) {
        assert_eq!(state(&mut esme, &id)?, (ENROUTE, false), "{number} has not ended");
        report_from_network(&mut upstream, (number, &others[*number]), stat)?;
        assert_eq!(receipt(&mut esme)?, ((*number).to_owned(), id.clone(), stat.to_owned()));
    }
    assert_eq!(state(&mut esme, &id)?, (UNDELIVERABLE, true));

    let appliance = appliance.kill()?.start()?;
    let mut esme = bind_esme(&appliance)?;
    assert_eq!(state(&mut esme, &id)?, (UNDELIVERABLE, true));
    until("all are archived", || {
        let history = appliance.get("/v1/history")?;
        Ok(history["messages"].as_array().is_some_and(|messages| messages.len() == 3)
            && appliance.get("/v1/archive")?["backlog"] == 0)
    })?;
    assert_eq!(state(&mut esme, &id)?, (UNDELIVERABLE, true));
    assert_eq!(shown(&appliance, first + 1)?["submission"], json!(id));
    assert_eq!(found(&appliance, &id)?, [first + 2, first + 1, first]);
    assert_eq!(found(&appliance, &(first + 1).to_string())?, [0; 0]);
    assert_eq!(cancel(&mut esme, &id, "")?, CANCEL_FAILED);
    Ok(())
}

#[test]
fn a_submission_is_delivered_if_all_its_messages_are() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut upstream = Peer::node("upstream.js", &json!({ "receipts": true }))?;
    let port = upstream.expect("listening")?["port"].as_u64().context("no port")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?));
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, "");
    let appliance = config.start()?;
    let mut esme = bind_esme(&appliance)?;
    let id = submit(&mut esme)?;
    let mut reported_numbers = Vec::new();
    for _ in NUMBERS {
        let (number, of, stat) = receipt(&mut esme)?;
        assert_eq!((of.as_str(), stat.as_str()), (id.as_str(), "DELIVRD"));
        reported_numbers.push(number);
    }
    reported_numbers.sort_unstable();
    assert_eq!(reported_numbers, NUMBERS);
    assert_eq!(state(&mut esme, &id)?, (DELIVERED, true));
    Ok(())
}

#[test]
fn one_or_all_destinations_are_cancelled_also_after_a_kill() -> Result<()> {
    let fixture = Fixture::new()?;
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", nobody, "");
    let appliance = config.start()?;
    let mut esme = bind_esme(&appliance)?;
    let id = submit(&mut esme)?;
    let appliance = appliance.kill()?.start()?;
    let mut esme = bind_esme(&appliance)?;

    let replacement = json!({ "message_id": id, "source_addr": SOURCE, "short_message": "other" });
    assert_eq!(ask(&mut esme, "replace_sm", &replacement)?["status"], REPLACE_FAILED);
    assert_eq!(cancel(&mut esme, &id, NUMBERS[1])?, 0);
    assert_eq!(receipt(&mut esme)?, (NUMBERS[1].to_owned(), id.clone(), "DELETED".to_owned()));
    assert_eq!(state(&mut esme, &id)?, (ENROUTE, false));
    assert_eq!(cancel(&mut esme, &id, NUMBERS[1])?, CANCEL_FAILED);

    let appliance = appliance.kill()?.start()?;
    let mut esme = bind_esme(&appliance)?;
    assert_eq!(cancel(&mut esme, &id, "")?, 0);
    for number in [NUMBERS[0], NUMBERS[2]] {
        assert_eq!(receipt(&mut esme)?, (number.to_owned(), id.clone(), "DELETED".to_owned()));
    }
    assert_eq!(state(&mut esme, &id)?, (DELETED, true));
    assert_eq!(cancel(&mut esme, &id, "")?, CANCEL_FAILED);
    Ok(())
}

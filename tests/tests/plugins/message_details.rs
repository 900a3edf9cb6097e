//! The fields of a message that a router reads and changes, and the fault report when the router fails.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, RawConnection, bind};
use serde_json::json;
use testkit::test_daemon::PASSWORD;

const SUBMIT_SM: u32 = 0x0000_0004;
const DELIVER_SM: u32 = 0x0000_0005;
const RESPONSE: u32 = 0x8000_0000;

fn tlv(tag: u16, value: &[u8]) -> Vec<u8> {
    [&tag.to_be_bytes(), &(value.len() as u16).to_be_bytes(), value].concat()
}

/// A submit_sm with these TLVs (SMPP 3.4 §4.4.1).
fn submit(destination: &str, tlvs: &[u8]) -> Vec<u8> {
    let mut body = b"\0\x01\x01100\0\x01\x01".to_vec();
    body.extend_from_slice(destination.as_bytes());
    // From the end of the destination to sm_length.
    body.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\x05hello");
    body.extend_from_slice(tlvs);
    body
}

#[test]
fn tlvs_of_customers_pass_and_a_router_changes_them() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "attributes = { brand = \"B12345\" }").account("receiver", "");
    let appliance = config.start()?;
    let policy = "note tlv 1501\nnote attribute brand\nset-tlv 1402 campaign\nremove-tlv 1401\nattribute tier gold\nforward receiver";
    bind(&appliance, "router", "examiner", &fixture.component("test_examiner")?, policy, &json!({}))?;
    let (mut receiver, mut esme) =
        (RawConnection::connect(appliance.smpp())?, RawConnection::connect(appliance.smpp())?);
    ensure!(receiver.bind("receiver", PASSWORD)? == 0 && esme.bind("acme", PASSWORD)? == 0, "not bound");

    let tlvs = [tlv(0x1501, b"theirs"), tlv(0x1401, b"brand"), tlv(0x0204, &[0, 9])].concat();
    esme.send_pdu(SUBMIT_SM, 2, &submit("4917012345678", &tlvs))?;
    let (id, status, _, body) = esme.receive()?;
    ensure!((id, status) == (SUBMIT_SM | RESPONSE, 0), "{id:#x}, status {status:#x}");
    let message = String::from_utf8(body.strip_suffix(&[0]).context("no NUL behind the id")?.to_vec())?;
    let (id, _, sequence, body) = receiver.receive()?;
    ensure!(id == DELIVER_SM, "{id:#x}");
    receiver.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
    let expected = [tlv(0x1501, b"theirs"), tlv(0x0204, &[0, 9]), tlv(0x1402, b"campaign")].concat();
    ensure!(body.ends_with(&[b"\x05hello", &expected[..]].concat()), "{body:02x?}");

    let trace = appliance.get(&format!("/v1/messages/{message}"))?;
    let routing = trace["routing"].to_string();
    ensure!(routing.contains("theirs|B12345"), "{routing}");
    let words = "TLV 0x1402 set, TLV 0x1401 removed, attribute tier set";
    ensure!(routing.contains(words), "{routing}");
    Ok(())
}

#[test]
fn an_account_requires_tlvs_and_adds_those_of_its_brand() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "tlv-rules = { required = [\"1400\"], defaults = { 1401 = \"brand\" } }");
    config.account("receiver", "");
    let appliance = config.start()?;
    bind(
        &appliance,
        "router",
        "examiner",
        &fixture.component("test_examiner")?,
        "forward receiver",
        &json!({}),
    )?;
    let (mut receiver, mut esme) =
        (RawConnection::connect(appliance.smpp())?, RawConnection::connect(appliance.smpp())?);
    ensure!(receiver.bind("receiver", PASSWORD)? == 0 && esme.bind("acme", PASSWORD)? == 0, "not bound");
    esme.send_pdu(SUBMIT_SM, 2, &submit("4917012345678", &[]))?;
    let (_, status, ..) = esme.receive()?;
    // ESME_RMISSINGOPTPARAM (SMPP 3.4 §5.1.3).
    ensure!(status == 0xC3, "status {status:#x}");
    esme.send_pdu(SUBMIT_SM, 3, &submit("4917012345678", &tlv(0x1400, b"entity")))?;
    let (_, status, ..) = esme.receive()?;
    ensure!(status == 0, "status {status:#x}");
    let (id, _, sequence, body) = receiver.receive()?;
    receiver.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
    let expected = [tlv(0x1400, b"entity"), tlv(0x1401, b"brand")].concat();
    ensure!(id == DELIVER_SM && body.ends_with(&expected), "{id:#x}: {body:02x?}");
    Ok(())
}

#[test]
fn a_fault_becomes_a_case_that_repeats_it() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    // The host's answers are recorded for replays, which need an archive.
    config.account("acme", "attributes = { brand = \"B12345\" }").archive("sqlite:archive.db");
    let appliance = config.start()?;
    let policy = "note attribute brand\npanic no such route";
    let reject = json!({ "on-fault": "reject" });
    bind(&appliance, "router", "examiner", &fixture.component("test_examiner")?, policy, &reject)?;
    let mut esme = RawConnection::connect(appliance.smpp())?;
    ensure!(esme.bind("acme", PASSWORD)? == 0, "not bound");
    esme.send_pdu(SUBMIT_SM, 2, &submit("4917012345678", &tlv(0x1401, b"brand")))?;
    let (id, status, ..) = esme.receive()?;
    ensure!(id == SUBMIT_SM | RESPONSE && status != 0, "{id:#x}, status {status:#x}");

    let hook = appliance.get("/v1/hooks/router")?;
    let fault = &hook["faults"][0]["examples"][0];
    let report = fault["report"].as_str().context("no report")?;
    ensure!(report.contains("lib.rs:") && report.ends_with("no such route"), "{report}");
    let function = fault["stack"][0]["function"].as_str().context("no stack")?;
    ensure!(function.ends_with("test_examiner::fail"), "{fault}");
    ensure!(!fault["question"].to_string().contains("4917012345678"), "{fault}");

    let folder = tempfile::tempdir()?;
    let cases = folder.path().join("cases.toml");
    let output =
        fixture.command(&appliance).args(["plugin", "case", "router", "--append"]).arg(&cases).output()?;
    let stderr = String::from_utf8(output.stderr)?;
    ensure!(output.status.success(), "{stderr}");
    let case = std::fs::read_to_string(&cases)?;
    for words in
        ["4917012345678", "\"hello\"", "1401 = \"brand\"", "brand = \"B12345\"", "panic no such route"]
    {
        ensure!(case.contains(words), "{words}: {case}");
    }
    let mut test = std::process::Command::new(fixture.binary());
    let output = test
        .args(["plugin", "test"])
        .arg(fixture.guest("test_examiner"))
        .arg("--cases")
        .arg(&cases)
        .output()?;
    let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success() && printed.contains("1 cases, all right"), "{case}\n{printed}");

    let audit = appliance.get("/v1/audit")?.to_string();
    ensure!(audit.contains("GET /v1/hooks/{hook}/faults/{id}/case"), "{audit}");
    Ok(())
}

//! Programs that others wrote: the crate `cmppprotocol` and PyPI `pycmpp` as SPs, and Wireshark's decoder.

use anyhow::{Context, Result};
use behaviour_tests::china::{ChinaGatewayFixture, Dialect};
use behaviour_tests::{Capture, CaptureProtocol, Peer, TIMEOUT};
use cmppprotocol::{CmppConfig, CmppConnection, CmppProtocolParams, Event, SubmitOptions};
use serde_json::json;
use std::collections::BTreeSet;

const USER: &str = "13800138000";

/// An appliance for SPs of this dialect, with a gateway that reports on every message.
fn appliance(
    dialect: Dialect,
    keys: &str,
) -> Result<(ChinaGatewayFixture, Peer, behaviour_tests::test_daemon::TestDaemon)> {
    // Both SPs use the local time of their machine as China's.
    let mut china = ChinaGatewayFixture::new(dialect, keys, "clock-tolerance = \"0s\"")?;
    let (gateway, address) = Dialect::Cmpp3.gateway(&json!({ "report": "after" }))?;
    china.config.tables(&Dialect::Cmpp3.gateway_section("mobile", address, "")).native("mobile");
    let appliance = china.config.start()?;
    Ok((china, gateway, appliance))
}

#[test]
fn the_crate_cmppprotocol_submits_a_long_text_and_gets_its_reports() -> Result<()> {
    let (china, mut gateway, _appliance) = appliance(Dialect::Cmpp2, "")?;
    let words = "很长的测试".repeat(30);
    let config = CmppConfig {
        host: "127.0.0.1".to_owned(),
        port: china.port.into(),
        account: "901234".to_owned(),
        password: "1234".to_owned(),
        version: cmppprotocol::CMPP_VERSION_20,
        // It refuses a gateway that does not prove the password.
        protocol_params: CmppProtocolParams::default(),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let (ids, reported) = runtime.block_on(async {
        let connection = CmppConnection::connect(config).await?;
        let mut events = connection.take_events().await.context("no events")?;
        let options = SubmitOptions::new("SVC", "901234", "10655", USER).registered_delivery(1);
        let parts = connection.submit(&options, &words, None).await?.len();
        let (mut ids, mut reported) = (BTreeSet::new(), BTreeSet::new());
        while ids.len() < parts || reported.len() < parts {
            match tokio::time::timeout(TIMEOUT, events.recv()).await?.context("the connection ended")? {
                Event::SubmitResp { msg_id, result, .. } => {
                    anyhow::ensure!(result == 0, "result {result}");
                    ids.insert(Event::msg_id_hex(&msg_id));
                }
                Event::Deliver(deliver) => {
                    let report = deliver.report().context("not a report")?;
                    anyhow::ensure!(report.stat == "DELIVRD", "{}", report.stat);
                    reported.insert(report.msg_id_hex());
                }
                event => anyhow::bail!("{event:?}"),
            }
        }
        connection.close().await;
        anyhow::Ok((ids, reported))
    })?;
    assert_eq!((ids.len(), &ids), (3, &reported));
    let parts: Vec<_> = (0..3).map(|_| gateway.expect("submitted")).collect::<Result<_>>()?;
    let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(joined, words);
    Ok(())
}

#[test]
fn pypi_pycmpp_submits_short_and_long_texts() -> Result<()> {
    // It leaves the source address empty.
    let (china, mut gateway, _appliance) = appliance(Dialect::Cmpp2, "source = { default = \"10655\" }")?;
    let options = json!({ "port": china.port, "name": "901234", "password": "1234" });
    let mut sp = Peer::python("cmpp_sp.py", &options)?;
    assert_eq!(sp.expect("connected")?["status"], 0);
    sp.expect("tested")?;
    sp.send_action(&json!({ "submit": "您好", "to": [USER] }))?;
    assert_eq!(sp.expect("answered")?["status"], 0);
    let taken = gateway.expect("submitted")?;
    assert_eq!((&taken["text"], &taken["source"]), (&json!("您好"), &json!("10655")));
    let words = "很长的测试".repeat(30);
    sp.send_action(&json!({ "submit": words, "to": [USER] }))?;
    let mut joined = String::new();
    while joined.chars().count() < words.chars().count() {
        assert_eq!(sp.expect("answered")?["status"], 0);
        let part = gateway.expect("submitted")?;
        assert_eq!(part["udhi"], 1);
        joined.push_str(part["text"].as_str().context("a text")?);
    }
    assert_eq!(joined, words);
    Ok(())
}

#[test]
fn wireshark_reads_what_we_write_in_both_roles() -> Result<()> {
    let mut china = ChinaGatewayFixture::new(Dialect::Cmpp3, "", "")?;
    let (mut gateway, address) = Dialect::Cmpp3.gateway(&json!({ "report": "after" }))?;
    let towards_gateway = Capture::start_for(CaptureProtocol::Cmpp, address)?;
    let section =
        Dialect::Cmpp3.gateway_section("mobile", towards_gateway.address(), "default-account = \"sp\"");
    china.config.tables(&section).native("mobile");
    let appliance = china.config.start()?;
    let towards_us = Capture::start_for(CaptureProtocol::Cmpp, ([127, 0, 0, 1], china.port).into())?;
    assert_eq!(china.log_in(&json!({ "port": towards_us.address().port() }))?["status"], 0);
    china.sp.send_action(&json!({ "link_test": true }))?;
    china.sp.expect("link_tested")?;
    for text in ["您好".to_owned(), "很长的测试".repeat(30)] {
        china.sp.send_action(&json!({ "submit": { "destinations": [USER], "text": text, "report": 1 } }))?;
        assert_eq!(china.sp.expect("answered")?["status"], 0);
    }
    for _ in 0..4 {
        china.sp.expect("reported")?;
    }
    gateway.send_action(&json!({ "deliver": { "source": USER, "destination": "10655", "text": "谢谢" } }))?;
    china.sp.expect("delivered")?;
    appliance.stop()?;
    for capture in [towards_gateway, towards_us] {
        let rows = capture.decode(china.fixture.folder(), "cmpp", &["cmpp.Command_Id"])?;
        let commands: BTreeSet<String> = rows.into_iter().flatten().flatten().collect();
        // Login, submission, delivery and logout, with their answers.
        for command in [1_u32, 4, 5, 2].into_iter().flat_map(|command| [command, command | 1 << 31]) {
            assert!(commands.contains(&format!("0x{command:08x}")), "{command:#x} is not in {commands:?}");
        }
    }
    Ok(())
}

//! From an SP with one protocol to a gateway with another one, through the appliance.

use anyhow::{Context, Result};
use behaviour_tests::china::{ChinaGatewayFixture, Dialect};
use behaviour_tests::{Peer, TIMEOUT};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

const USER: &str = "13800138000";

/// An SP and a gateway with the appliance between them; replies go to the SP.
fn chain(from: Dialect, to: Dialect, options: &Value, keys: &str) -> Result<(ChinaGatewayFixture, Peer)> {
    let mut china = ChinaGatewayFixture::new(from, "", "")?;
    let (gateway, address) = to.gateway(options)?;
    let keys = format!("default-account = \"sp\"\nretry = [\"1s\"]\n{keys}");
    china.config.tables(&to.gateway_section("mobile", address, &keys)).native("mobile");
    Ok((china, gateway))
}

#[test]
fn check_68_every_protocol_reaches_every_other() -> Result<()> {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let (mut china, mut gateway) = chain(from, to, &json!({ "report": "after" }), "")?;
            let _appliance = china.config.start()?;
            assert_eq!(gateway.expect("login")?["status"], 0);
            assert_eq!(china.log_in(&json!({}))?["status"], 0);
            let submit = json!({ "destinations": [USER], "text": "您好", "format": 15, "report": 1,
                "link_id": "LINK0001", "service": "TEST", "fee_code": "000010" });
            china.sp.send_action(&json!({ "submit": submit }))?;
            let answer = china.sp.expect("answered")?;
            assert_eq!(answer["status"], 0);
            let taken = gateway.expect("submitted")?;
            assert_eq!((&taken["text"], &taken["format"]), (&json!("您好"), &json!(15)), "{from:?} {to:?}");
            assert_eq!((&taken["service"], &taken["fee_code"]), (&json!("TEST"), &json!("000010")));
            // 2.0 has no LinkID.
            let has_link_id = ![from, to].contains(&Dialect::Cmpp2);
            if has_link_id {
                assert_eq!(taken["link_id"], "LINK0001");
            }
            // The report to the SP has the SP's own id, and not the gateway's.
            let report = china.sp.expect("reported")?;
            assert_eq!((&report["submission"], &report["stat"]), (&answer["id"], &json!("DELIVRD")));
            assert_ne!(taken["id"], answer["id"]);
            let number = if from == Dialect::Smgp { &report["source"] } else { &report["number"] };
            assert_eq!(number, USER, "{report}");

            let deliver =
                json!({ "source": USER, "destination": "10655", "text": "谢谢", "link_id": "LINK0002" });
            gateway.send_action(&json!({ "deliver": deliver }))?;
            let reply = china.sp.expect("delivered")?;
            assert_eq!((&reply["text"], &reply["source"]), (&json!("谢谢"), &json!(USER)));
            assert_eq!(reply["destination"], "10655");
            if has_link_id {
                assert_eq!(reply["link_id"], "LINK0002");
            }
        }
    }
    Ok(())
}

#[test]
fn a_message_goes_to_an_sgip_gateway_and_its_report_comes_back() -> Result<()> {
    for from in Dialect::ALL {
        let mut china = ChinaGatewayFixture::new(from, "", "")?;
        let role = json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05,
            "report": "after", "states": [[2, 29]] });
        let mut gateway = Peer::plain_python("sgip.py", &role)?;
        let port = gateway.expect("listening")?["port"].as_u64().context("no port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?));
        china.config.gateway("unicom", address, "").native("unicom");
        let _appliance = china.config.start()?;
        let port = china.config.sgip().port();
        gateway.send_action(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        assert_eq!(china.log_in(&json!({}))?["status"], 0);
        let submit = json!({ "destinations": [USER], "text": "您好", "report": 1 });
        china.sp.send_action(&json!({ "submit": submit }))?;
        let answer = china.sp.expect("answered")?;
        let taken = gateway.expect_matching("taken", |event| event["command"] == "submit")?;
        assert_eq!(taken["text"], "您好");
        let report = china.sp.expect("reported")?;
        assert_eq!((&report["submission"], &report["stat"]), (&answer["id"], &json!("UNDELIV")), "{report}");
    }
    Ok(())
}

#[test]
fn check_64_parts_stay_parts_whether_they_have_a_header_or_not() -> Result<()> {
    for (from, to) in
        [(Dialect::Cmpp2, Dialect::Smgp), (Dialect::Cmpp3, Dialect::Cmpp2), (Dialect::Smgp, Dialect::Cmpp3)]
    {
        let (mut china, mut gateway) = chain(from, to, &json!({ "report": "after" }), "")?;
        let _appliance = china.config.start()?;
        assert_eq!(china.log_in(&json!({}))?["status"], 0);
        // Two segments that have only a number and a total.
        for number in [1, 2] {
            let submit = json!({ "destinations": [USER], "text": format!("part {number}"), "report": 1,
                "pk_total": 2, "pk_number": number });
            china.sp.send_action(&json!({ "submit": submit }))?;
            assert_eq!(china.sp.expect("answered")?["status"], 0);
        }
        let parts: Vec<Value> = (0..2).map(|_| gateway.expect("submitted")).collect::<Result<_>>()?;
        for (part, number) in parts.iter().zip(1..) {
            assert_eq!(part["text"], format!("part {number}"), "{part}");
            assert_eq!(
                (&part["part"]["total"], &part["part"]["number"]),
                (&json!(2), &json!(number)),
                "{part}"
            );
            assert_eq!((&part["pk_total"], &part["pk_number"]), (&json!(2), &json!(number)), "{part}");
            assert_eq!(part["part"]["reference"], parts[0]["part"]["reference"]);
        }
        // A long text that the SP has split.
        let words = "很长的测试".repeat(30);
        china.sp.send_action(&json!({ "submit": { "destinations": [USER], "text": words, "report": 1 } }))?;
        let parts: Vec<Value> = (0..3).map(|_| gateway.expect("submitted")).collect::<Result<_>>()?;
        let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!(joined, words);
        for _ in 0..5 {
            assert_eq!(china.sp.expect("reported")?["stat"], "DELIVRD");
        }
    }
    Ok(())
}

/// Moment at which the daemon is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    /// After the SP has its answer; the gateway is not connected.
    Accepted,
    /// While the gateway owes its answer.
    Submitted,
    /// After the gateway's answer, before its report.
    Answered,
    /// After the report, while the SP's answer is missing.
    Reported,
}

#[test]
fn check_70_killed_at_every_step_nothing_is_lost() -> Result<()> {
    for (from, to) in [(Dialect::Cmpp3, Dialect::Smgp), (Dialect::Smgp, Dialect::Cmpp2)] {
        for kill in [Kill::Accepted, Kill::Submitted, Kill::Answered, Kill::Reported] {
            run_kill_case(from, to, kill)
                .with_context(|| format!("{from:?} to {to:?}, killed at {kill:?}"))?;
        }
    }
    Ok(())
}

fn run_kill_case(from: Dialect, to: Dialect, kill: Kill) -> Result<()> {
    let options = match kill {
        Kill::Accepted => json!({ "login_status": 200 }),
        Kill::Submitted => json!({ "hold": true }),
        Kill::Answered | Kill::Reported => json!({}),
    };
    let (mut china, mut gateway) = chain(from, to, &options, "")?;
    let appliance = china.config.start()?;
    let silent = if matches!(kill, Kill::Reported) { 1 } else { 0 };
    assert_eq!(china.log_in(&json!({ "deliver_silent": silent }))?["status"], 0);
    china.sp.send_action(&json!({ "submit": { "destinations": [USER], "text": "once", "report": 1 } }))?;
    let answer = china.sp.expect("answered")?;
    assert_eq!(answer["status"], 0);
    let report = |gateway: &mut Peer, taken: &Value| {
        gateway.send_action(&json!({ "report": { "id": taken["id"], "number": USER, "stat": "DELIVRD" } }))
    };
    let mut taken = None;
    if !matches!(kill, Kill::Accepted) {
        taken = Some(gateway.expect("submitted")?);
    }
    if matches!(kill, Kill::Answered | Kill::Reported) {
        appliance.wait_until(TIMEOUT, "/v1/queues", |queues| {
            queues.as_array().is_some_and(|queues| queues.iter().any(|queue| queue["awaiting_dlr"] == 1))
        })?;
    }
    if let (Kill::Reported, Some(taken)) = (kill, &taken) {
        report(&mut gateway, taken)?;
        china.sp.expect("reported")?;
    }
    appliance.kill()?;
    gateway.send_action(&json!({ "set": { "login_status": null, "hold": false } }))?;
    china.sp.expect("closed")?;
    let _appliance = china.config.start()?;
    assert_eq!(china.log_in(&json!({}))?["status"], 0);
    let taken = match taken {
        Some(taken) => taken,
        None => gateway.expect("submitted")?,
    };
    if !matches!(kill, Kill::Reported) {
        report(&mut gateway, &taken)?;
    }
    let reported = china.sp.expect("reported")?;
    assert_eq!((&reported["submission"], &reported["stat"]), (&answer["id"], &json!("DELIVRD")));
    gateway.send_action(&json!({ "count": true }))?;
    // An uncertain message waits for its report and is not repeated.
    assert_eq!(gateway.expect("counts")?["new"], 1);
    Ok(())
}

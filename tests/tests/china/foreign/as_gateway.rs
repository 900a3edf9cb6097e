//! The appliance as a gateway, with an SP, and an SMSC that accepts everything.

use anyhow::{Context, Result, ensure};
use behaviour_tests::china::{ChinaGatewayFixture, Dialect};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::TestDaemon;
use behaviour_tests::{TIMEOUT, until};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const USER: &str = "13800138000";

/// Statuses of a refused login: wrong name, wrong password, version, connections.
fn login_statuses(dialect: Dialect) -> (u32, u32, u32, u32) {
    match dialect {
        Dialect::Cmpp2 | Dialect::Cmpp3 => (2, 3, 4, 5),
        Dialect::Smgp => (21, 21, 22, 2),
    }
}

/// An SMSC that sends a DLR for every message.
struct Upstream {
    sink: Sink,
}

impl Upstream {
    fn start(china: &mut ChinaGatewayFixture) -> Result<(Self, TestDaemon)> {
        let tally = Arc::new(Tally::new(10));
        let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
        china.config.peer("upstream", sink.address(), "").native("upstream");
        let appliance = china.config.start()?;
        Ok((Self { sink }, appliance))
    }

    /// Messages that have arrived.
    fn messages(&self) -> u64 {
        self.sink.message_count()
    }
}

/// `MMDDHHMMSS` in China, this many seconds from now.
fn timestamp(seconds: i64) -> Result<u64> {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?;
    let china = time::OffsetDateTime::from_unix_timestamp(now + 8 * 3600 + seconds)?;
    let (month, day) = (u64::from(u8::from(china.month())), u64::from(china.day()));
    let (hour, minute) = (u64::from(china.hour()), u64::from(china.minute()));
    Ok((((month * 100 + day) * 100 + hour) * 100 + minute) * 100 + u64::from(china.second()))
}

#[test]
fn logins_are_proved_and_refused_in_the_protocols_terms() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaGatewayFixture::new(dialect, "", "inbound-connections = 2")?;
        let (_upstream, appliance) = Upstream::start(&mut china)?;
        let (name, password, version, busy) = login_statuses(dialect);
        let octets = if dialect == Dialect::Cmpp2 { 30 } else { 33 };
        let mut refused = |options: Value, status: u32| -> Result<()> {
            let answer = china.log_in(&options)?;
            ensure!(answer["status"] == status, "{dialect:?} {options}: {answer}");
            china.sp.expect("closed")?;
            Ok(())
        };
        refused(json!({ "name": "000000" }), name)?;
        refused(json!({ "name": "901234", "password": "wrong" }), password)?;
        refused(json!({ "password": "1234", "timestamp": timestamp(11 * 60)? }), password)?;
        refused(json!({ "timestamp": timestamp(-11 * 60)? }), password)?;
        refused(json!({ "timestamp": null, "version": 0x40 }), version)?;
        let back = if dialect == Dialect::Cmpp2 { 0x20 } else { 0x30 };
        // A login with a clock that is wrong by nine minutes; the same again later is a replay.
        let late = json!({ "version": back, "timestamp": timestamp(-9 * 60)? });
        let answer = china.log_in(&late)?;
        assert_eq!((&answer["status"], &answer["octets"]), (&json!(0), &json!(octets)), "{answer}");
        assert_eq!((&answer["proof"], &answer["version"]), (&json!(true), &json!(back)), "{answer}");
        // With an unpadded proof; then the limit of connections is reached.
        let answer = china.log_in(&json!({ "timestamp": null, "unpadded": true }))?;
        assert_eq!(answer["status"], 0, "{answer}");
        let answer = china.log_in(&json!({ "timestamp": timestamp(5)? }))?;
        assert_eq!(answer["status"], busy, "{answer}");
        let links: Value = appliance.get("/v1/links")?;
        let ours = links.as_array().context("links")?.iter().filter(|link| link["peer"] == "sp");
        assert_eq!(ours.count(), 2);
    }
    Ok(())
}

#[test]
fn submissions_get_ids_reports_and_repetitions_the_same_answer() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaGatewayFixture::new(dialect, "", "")?;
        let (upstream, _appliance) = Upstream::start(&mut china)?;
        assert_eq!(china.log_in(&json!({}))?["status"], 0);
        // One Submit to three subscribers; the same octets twice more.
        let users = [USER, "13800138001", "8613800138002"];
        let submit = json!({ "destinations": users, "text": "您好", "report": 1 });
        china.sp.send_action(&json!({ "submit": submit, "tag": "three", "times": 3 }))?;
        let answers: Vec<Value> = (0..3).map(|_| china.sp.expect("answered")).collect::<Result<_>>()?;
        assert!(
            answers.iter().all(|answer| answer["status"] == 0 && answer["id"] == answers[0]["id"]),
            "{answers:#?}"
        );
        let mut reports: Vec<Value> = (0..3).map(|_| china.sp.expect("reported")).collect::<Result<_>>()?;
        reports.sort_by_key(|report| report["submission"].to_string());
        // The ids follow the first.
        assert_eq!(reports[0]["submission"], answers[0]["id"]);
        let ids: HashSet<_> = reports.iter().map(|report| report["submission"].to_string()).collect();
        assert_eq!(ids.len(), 3);
        for report in &reports {
            assert_eq!(report["stat"], "DELIVRD");
            let length = match dialect {
                Dialect::Cmpp2 => 60,
                Dialect::Cmpp3 => 71,
                Dialect::Smgp => 122,
            };
            assert_eq!(report["length"], length, "{report}");
        }
        assert_eq!(upstream.messages(), 3);
        // No report is requested, so none is sent. With the value 2, it would be a billing record for nobody.
        china
            .sp
            .send_action(&json!({ "submit": { "destinations": [USER], "text": "quiet", "report": 0 } }))?;
        assert_eq!(china.sp.expect("answered")?["status"], 0);
        if dialect != Dialect::Smgp {
            china
                .sp
                .send_action(&json!({ "submit": { "destinations": [USER], "text": "bill", "report": 2 } }))?;
            assert_eq!(china.sp.expect("answered")?["status"], 9);
        }
        china.sp.send_action(&json!({ "submit": { "destinations": ["12x"], "text": "bad" } }))?;
        let wrong = if dialect == Dialect::Smgp { 47 } else { 13 };
        assert_eq!(china.sp.expect("answered")?["status"], wrong);
        china.sp.send_action(
            &json!({ "submit": { "destinations": [USER], "text": "bad", "valid_time": "soon" } }),
        )?;
        let wrong = if dialect == Dialect::Smgp { 44 } else { 1 };
        assert_eq!(china.sp.expect("answered")?["status"], wrong);
        until("the fourth message", || Ok(upstream.messages() == 4))?;
        china.sp.send_action(&json!({ "exit": true }))?;
        china.sp.expect("exit")?;
        china.sp.send_action(&json!({ "count": true }))?;
        let counts = china.sp.expect("counts")?;
        assert_eq!((&counts["reports"], &counts["duplicate_reports"]), (&json!(3), &json!(0)), "{counts}");
    }
    Ok(())
}

#[test]
fn an_account_has_its_rate_its_window_and_its_sources() -> Result<()> {
    for dialect in Dialect::ALL {
        let keys = "rate = 20.0\nburst = 20\nsource = { allow = [\"10655*\"] }";
        let mut china = ChinaGatewayFixture::new(dialect, keys, "inbound-window = 4")?;
        let (upstream, appliance) = Upstream::start(&mut china)?;
        assert_eq!(china.log_in(&json!({ "window": 100 }))?["status"], 0);
        let submit = json!({ "destinations": [USER], "text": "no", "source": "10086" });
        china.sp.send_action(&json!({ "submit": submit }))?;
        let source = if dialect == Dialect::Smgp { 46 } else { 10 };
        assert_eq!(china.sp.expect("answered")?["status"], source);
        china
            .sp
            .send_action(&json!({ "burst": { "count": 200, "first": 13_800_000_000_u64, "text": "x" } }))?;
        let burst = china.sp.expect("burst")?;
        let throttled = dialect.throttled().to_string();
        let (accepted, refused) =
            (burst["accepted"].as_u64().unwrap_or(0), burst["refused"][&throttled].as_u64());
        assert_eq!(accepted + refused.context("nothing was refused")?, 200, "{burst}");
        assert!(accepted >= 20, "{burst}");
        until("all accepted messages", || Ok(upstream.messages() == accepted))?;
        let refusals = appliance.get("/v1/refusals?account=sp")?;
        assert!(refusals.to_string().contains(dialect.protocol()), "{refusals}");
    }
    Ok(())
}

#[test]
fn reports_wait_for_the_sp_and_are_repeated_until_it_takes_them() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaGatewayFixture::new(dialect, "", "response-timeout = \"300ms\"")?;
        let (upstream, appliance) = Upstream::start(&mut china)?;
        assert_eq!(china.log_in(&json!({ "deliver_result": dialect.throttled() }))?["status"], 0);
        let submit = json!({ "destinations": [USER], "text": "one", "report": 1 });
        china.sp.send_action(&json!({ "submit": submit }))?;
        let answer = china.sp.expect("answered")?;
        let first = china.sp.expect("reported")?;
        assert_eq!(first["submission"], answer["id"]);
        // A temporary refusal: the Deliver is repeated, with the same id.
        china.sp.send_action(&json!({ "set": { "deliver_result": 0, "deliver_silent": 1 } }))?;
        let again = china.sp.expect("reported")?;
        assert_eq!((&again["id"], &again["submission"]), (&first["id"], &answer["id"]));
        // Silence: it comes again.
        assert_eq!(china.sp.expect("reported")?["submission"], answer["id"]);
        // While the SP is disconnected, its reports wait.
        china.sp.send_action(&json!({ "exit": true }))?;
        china.sp.expect("exit")?;
        appliance.wait_until(TIMEOUT, "/v1/links", |links| {
            links.as_array().is_some_and(|links| links.iter().all(|link| link["peer"] != "sp"))
        })?;
        assert_eq!(upstream.messages(), 1);
    }
    Ok(())
}

#[test]
fn check_35_a_login_of_smgp_may_be_for_one_direction() -> Result<()> {
    let mut china = ChinaGatewayFixture::new(Dialect::Smgp, "", "")?;
    let (upstream, _appliance) = Upstream::start(&mut china)?;
    // A connection that only receives may not submit.
    let receiver = china.log_in(&json!({ "mode": 1 }))?;
    assert_eq!(receiver["status"], 0);
    let submit = json!({ "destinations": [USER], "text": "one", "report": 1 });
    china.sp.send_action(&json!({ "submit": submit }))?;
    assert_eq!(china.sp.expect("answered")?["status"], 11);
    // A connection that only submits gets no reports: they are sent on the other one.
    let mut other = Dialect::Smgp.peer("sp", &json!({ "source": "10655" }))?;
    other.send_action(&json!({ "connect": { "port": china.port, "mode": 0 } }))?;
    assert_eq!(other.expect("logged_in")?["status"], 0);
    other.send_action(&json!({ "submit": submit }))?;
    let answer = other.expect("answered")?;
    assert_eq!(answer["status"], 0);
    assert_eq!(china.sp.expect("reported")?["submission"], answer["id"]);
    assert_eq!(upstream.messages(), 1);
    Ok(())
}

//! The appliance as an SP, with a gateway and a business system.

use anyhow::{Context, Result};
use behaviour_tests::TIMEOUT;
use behaviour_tests::china::{ChinaSpFixture, Dialect};
use serde_json::{Value, json};
use std::collections::HashSet;

const USER: &str = "13800138000";

#[test]
fn a_text_goes_out_and_its_report_and_a_reply_come_back() -> Result<()> {
    for dialect in Dialect::ALL {
        let keys = "submit-fields = { service = \"TEST\", fee-type = \"02\", fee-code = \"000010\" }";
        let mut china = ChinaSpFixture::new(dialect, &json!({ "report": "after" }), keys)?;
        let appliance = china.start()?;
        let id = china.submit(USER, "您好, hello")?;
        let taken = china.gateway.expect("submitted")?;
        assert_eq!((&taken["text"], &taken["source"]), (&json!("您好, hello"), &json!("10655")));
        assert_eq!((&taken["destinations"], &taken["service"]), (&json!([USER]), &json!("TEST")));
        // "Per message" has another code in SMGP.
        let fee_type = if dialect == Dialect::Smgp { "01" } else { "02" };
        assert_eq!((&taken["fee_type"], &taken["fee_code"]), (&json!(fee_type), &json!("000010")));
        assert_eq!(china.dlr(&id)?["state"], "delivered");
        assert_eq!(china.gateway.expect("answered")?["status"], 0);

        china.gateway.send_action(&json!({ "deliver": {
            "source": USER, "destination": "10655", "text": "谢谢", "format": 15, "link_id": "LINK0001" },
            "times": 3 }))?;
        let reply = china.pushed(|push| push["type"] == "reply")?;
        assert_eq!((&reply["text"], &reply["from"]), (&json!("谢谢"), &json!(USER)));
        // 2.0 has no LinkID.
        let link_id = if dialect == Dialect::Cmpp2 { Value::Null } else { json!("LINK0001") };
        assert_eq!(reply["link_id"], link_id);
        // The gateway repeats its Deliver: it is answered each time, and pushed once.
        for _ in 0..3 {
            assert_eq!(china.gateway.expect("answered")?["status"], 0);
        }
        china
            .gateway
            .send_action(&json!({ "deliver": { "source": USER, "destination": "10655", "text": "end" } }))?;
        assert_eq!(china.pushed(|push| push["type"] == "reply")?["text"], "end");
        let (status, _) = appliance.stop()?;
        assert!(status.success());
        // An orderly end.
        assert_eq!(china.gateway.expect("exit")?["by"], "peer");
    }
    Ok(())
}

#[test]
fn a_long_text_is_one_message_in_parts() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaSpFixture::new(dialect, &json!({ "report": "after" }), "")?;
        let _appliance = china.start()?;
        let words = "很长的测试😀".repeat(25);
        let id = china.submit(USER, &words)?;
        let parts: Vec<Value> = (0..3).map(|_| china.gateway.expect("submitted")).collect::<Result<_>>()?;
        let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!(joined, words);
        let ids: HashSet<_> = parts.iter().map(|part| part["id"].to_string()).collect();
        assert_eq!(ids.len(), 3);
        for (part, number) in parts.iter().zip(1..) {
            assert_eq!((&part["pk_total"], &part["pk_number"]), (&json!(3), &json!(number)));
            assert_eq!((&part["udhi"], &part["part"]["total"]), (&json!(1), &json!(3)));
            assert_eq!(part["part"]["reference"], parts[0]["part"]["reference"]);
        }
        let dlr = china.dlr(&id)?;
        assert_eq!((&dlr["state"], &dlr["segments"]), (&json!("delivered"), &json!(3)));
    }
    Ok(())
}

#[test]
fn a_text_gets_the_signature_that_the_network_wants() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaSpFixture::new(dialect, &json!({}), "signature = \"商店\"")?;
        let _appliance = china.start()?;
        china.submit(USER, "hello")?;
        assert_eq!(china.gateway.expect("submitted")?["text"], "【商店】hello");
        china.submit(USER, "【商店】您好")?;
        assert_eq!(china.gateway.expect("submitted")?["text"], "【商店】您好");
        // Before the text is split: with it, these are 71 characters.
        china.submit(USER, &"您".repeat(67))?;
        let parts: Vec<Value> = (0..2).map(|_| china.gateway.expect("submitted")).collect::<Result<_>>()?;
        let joined: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!(joined, format!("【商店】{}", "您".repeat(67)));
    }
    Ok(())
}

#[test]
fn check_48_a_status_of_a_vendors_own_has_three_attempts() -> Result<()> {
    for (dialect, status) in [(Dialect::Cmpp3, 150), (Dialect::Smgp, 200)] {
        let mut china = ChinaSpFixture::new(dialect, &json!({ "result": status }), "")?;
        let _appliance = china.start()?;
        let id = china.submit(USER, "hello")?;
        let dlr = china.dlr(&id)?;
        assert_eq!((&dlr["state"], &dlr["error"]), (&json!("failed"), &json!(status)), "{dlr}");
        china.gateway.send_action(&json!({ "count": true }))?;
        assert_eq!(china.gateway.expect("counts")?["refused"], 3);
    }
    Ok(())
}

#[test]
fn a_report_on_nothing_is_answered() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaSpFixture::new(dialect, &json!({}), "")?;
        let appliance = china.start()?;
        let id = if dialect == Dialect::Smgp { "01006107080907000017" } else { "be5098018a890001" };
        china.gateway.send_action(&json!({ "report": { "id": id, "number": USER, "stat": "DELIVRD" } }))?;
        assert_eq!(china.gateway.expect("answered")?["status"], 0);
        let orphans = appliance.get("/v1/dlrs/orphans")?;
        assert_eq!((&orphans["total"], &orphans["dlrs"][0]["state"]), (&json!(1), &json!("delivered")));
    }
    Ok(())
}

#[test]
fn a_report_may_come_before_the_answer_twice_and_on_another_connection() -> Result<()> {
    for dialect in Dialect::ALL {
        let options = json!({ "report": "before", "double": true, "report_on": "other" });
        let mut china = ChinaSpFixture::new(dialect, &options, "connections = 2")?;
        let _appliance = china.start()?;
        assert_eq!(china.gateway.expect("login")?["status"], 0);
        for number in 0..5 {
            let id = china.submit(USER, &format!("text {number}"))?;
            assert_eq!(china.dlr(&id)?["state"], "delivered");
        }
    }
    Ok(())
}

#[test]
fn an_unanswered_request_is_repeated_with_its_sequence() -> Result<()> {
    for dialect in Dialect::ALL {
        let options = json!({ "silent": 1 });
        let mut china = ChinaSpFixture::new(dialect, &options, "response-timeout = \"300ms\"")?;
        let _appliance = china.start()?;
        let id = china.submit(USER, "hello")?;
        let first = china.gateway.expect("submitted")?;
        let again = china.gateway.expect("submitted")?;
        assert_eq!((&again["sequence"], &again["duplicate"]), (&first["sequence"], &json!(true)));
        china
            .gateway
            .send_action(&json!({ "report": { "id": again["id"], "number": USER, "stat": "DELIVRD" } }))?;
        assert_eq!(china.dlr(&id)?["state"], "delivered");
    }
    Ok(())
}

#[test]
fn after_a_cut_a_message_waits_for_its_report_and_is_not_repeated() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaSpFixture::new(dialect, &json!({ "cut": 1 }), "")?;
        let appliance = china.start()?;
        let id = china.submit(USER, "hello")?;
        let taken = china.gateway.expect("submitted")?;
        let path = format!("/v1/messages/{id}");
        appliance.wait_until(TIMEOUT, &path, |trace| trace["state"] == "uncertain")?;
        assert_eq!(china.gateway.expect("login")?["status"], 0);
        // The report refers to an id that was never answered; its numbers identify the message.
        china
            .gateway
            .send_action(&json!({ "report": { "id": taken["id"], "number": USER, "stat": "DELIVRD" } }))?;
        assert_eq!(china.dlr(&id)?["state"], "delivered");
        china.gateway.send_action(&json!({ "count": true }))?;
        assert_eq!(china.gateway.expect("counts")?["new"], 1);
    }
    Ok(())
}

#[test]
fn flow_control_loses_nothing() -> Result<()> {
    for dialect in Dialect::ALL {
        let options = json!({ "flow_every": 10, "report": "after", "quiet": true });
        let mut china = ChinaSpFixture::new(dialect, &options, "")?;
        let _appliance = china.start()?;
        let ids: Vec<String> =
            (0..40).map(|number| china.submit(USER, &format!("text {number}"))).collect::<Result<_>>()?;
        for id in ids {
            assert_eq!(china.dlr(&id)?["state"], "delivered");
        }
        china.gateway.send_action(&json!({ "count": true }))?;
        let counts = china.gateway.expect("counts")?;
        assert_eq!(counts["accepted"], 40, "{counts}");
        assert!(counts["most_unanswered"].as_u64().context("a count")? <= 16, "{counts}");
    }
    Ok(())
}

#[test]
fn each_word_of_a_report_has_its_state() -> Result<()> {
    for dialect in Dialect::ALL {
        let mut china = ChinaSpFixture::new(dialect, &json!({}), "")?;
        let _appliance = china.start()?;
        for (word, state, error) in [
            ("DELIVRD", "delivered", 0),
            ("EXPIRED", "expired", 0),
            ("UNDELIV", "failed", 0),
            ("REJECTD", "rejected", 0),
            ("MK:0012", "failed", 12),
            ("NOSEND", "failed", 0),
        ] {
            let id = china.submit(USER, word)?;
            let taken = china.gateway.expect("submitted")?;
            // "Accepted" is not final: the later report counts.
            for stat in ["ACCEPTD", word] {
                china.gateway.send_action(
                    &json!({ "report": { "id": taken["id"], "number": USER, "stat": stat, "err": "000" } }),
                )?;
            }
            let dlr = china.dlr(&id)?;
            assert_eq!(
                (&dlr["state"], &dlr["error"]),
                (&json!(state), &json!(error)),
                "{dialect:?} {word}: {dlr}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_refused_login_and_a_gateway_without_proof_are_reported() -> Result<()> {
    for dialect in Dialect::ALL {
        let china = ChinaSpFixture::new(dialect, &json!({ "password": "other" }), "")?;
        let appliance = china.config.start()?;
        let refused = |links: &Value| links[0]["last_error"].to_string().contains("authentication failed");
        appliance.wait_until(TIMEOUT, "/v1/links", refused)?;

        let mut china = ChinaSpFixture::new(dialect, &json!({ "no_proof": true }), "")?;
        let appliance = china.start()?;
        let id = china.submit(USER, "hello")?;
        let path = format!("/v1/messages/{id}");
        appliance.wait_until(TIMEOUT, &path, |trace| trace["state"] == "responded")?;
        let test = appliance.ask("POST", "/v1/peers/mobile/test", b"{}")?;
        assert!(test.to_string().contains("does not prove"), "{test}");

        let strict = ChinaSpFixture::new(dialect, &json!({ "no_proof": true }), "gateway-proof = true")?;
        let appliance = strict.config.start()?;
        let refused =
            |links: &Value| links[0]["last_error"].to_string().contains("does not prove the password");
        appliance.wait_until(TIMEOUT, "/v1/links", refused)?;
    }
    Ok(())
}

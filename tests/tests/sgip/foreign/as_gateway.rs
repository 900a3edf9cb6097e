//! The appliance as a gateway, between an SP and a gateway in Python that were written from the specification alone.

use anyhow::{Context, Result};
use behaviour_tests::sgip::GatewayFixture;
use serde_json::{Value, json};

const USERS: [&str; 3] = ["8613012345678", "8613112345678", "8613212345678"];

/// A Submit for one user.
fn submit(text: &str) -> Value {
    json!({ "submit": {
        "sp_number": "10655", "user_numbers": [USERS[0]], "corp_id": "12345", "service_type": "TEST", "text": text },
        "tag": text })
}

#[test]
fn a_submit_of_three_users_is_one_answer_and_three_reports() -> Result<()> {
    let mut relay = GatewayFixture::new(&json!({}), "")?;
    let _appliance = relay.start()?;
    relay.sp.send_action(&json!({ "submit": {
        "sp_number": "10655", "user_numbers": USERS, "text": "你好", "message_coding": 15, "reserve": "4c494e4b30303031" } }))?;
    let sent = relay.sp.expect("sent")?;
    assert_eq!(relay.sp.expect("answered")?["result"], 0);
    for (number, (state, error)) in [(0, 0), (2, 29), (0, 0)].into_iter().enumerate() {
        let taken =
            relay.gateway.expect_matching("taken", |event| event["user_numbers"][0] == USERS[number])?;
        assert_eq!((&taken["text"], &taken["sp_number"]), (&json!("你好"), &json!("10655")));
        assert_eq!(taken["user_numbers"].as_array().map(Vec::len), Some(1), "one user a Submit");
        assert_eq!(taken["reserve"], "4c494e4b30303031");
        assert_ne!(taken["sequence"], sent["sequence"]);
        relay.gateway.send_action(&json!({ "report": {
            "sequence": taken["sequence"], "user": USERS[number], "state": state, "error": error } }))?;
        assert_eq!(relay.gateway.expect("answered")?["result"], 0);
        let report = relay.sp.expect_matching("taken", |event| event["user_number"] == USERS[number])?;
        assert_eq!(report["submit_sequence"], sent["sequence"]);
        assert_eq!((&report["state"], &report["error_code"]), (&json!(state), &json!(error)));
        assert_eq!(report["report_type"], 0);
        assert_eq!(report["sequence"][0], 205_502, "a sequence of our own node");
    }
    Ok(())
}

#[test]
fn a_repetition_gets_the_same_answer_and_no_second_effect() -> Result<()> {
    let mut relay = GatewayFixture::new(&json!({}), "")?;
    let appliance = relay.start()?;
    let mut once = submit("once");
    once["times"] = json!(2);
    relay.sp.send_action(&once)?;
    let first = relay.sp.expect("answered")?;
    let second = relay.sp.expect("answered")?;
    assert_eq!((&first["result"], &second["result"]), (&json!(0), &json!(0)));
    let mut other = submit("another");
    other["submit"]["sequence"] = first["sequence"].clone();
    relay.sp.send_action(&other)?;
    assert_eq!(relay.sp.expect("answered")?["result"], 9);
    // Also on another connection, and by a daemon that was killed in between.
    appliance.kill()?;
    let _appliance = relay.start()?;
    let mut again = once.clone();
    again["submit"]["sequence"] = first["sequence"].clone();
    again["times"] = json!(1);
    relay.sp.send_action(&again)?;
    assert_eq!(relay.sp.expect("answered")?["result"], 0);
    relay.sp.send_action(&submit("the last"))?;
    let mut texts = Vec::new();
    loop {
        let taken = relay.gateway.expect("taken")?;
        // The kill may have made our own Submit uncertain: the gateway recognises its repetition.
        if taken["duplicate"].is_null() {
            texts.push(taken["text"].clone());
        }
        if taken["text"] == "the last" {
            break;
        }
    }
    assert_eq!(texts, ["once", "the last"]);
    Ok(())
}

#[test]
fn invalid_submits_are_refused_with_the_right_code() -> Result<()> {
    let mut relay = GatewayFixture::new(&json!({}), "")?;
    let _appliance = relay.start()?;
    let mut nobody = submit("nobody");
    nobody["submit"]["user_numbers"] = json!([]);
    relay.sp.send_action(&nobody)?;
    assert_eq!(relay.sp.expect("answered")?["result"], 5);
    let mut empty = submit("no number");
    empty["submit"]["user_numbers"] = json!([""]);
    relay.sp.send_action(&empty)?;
    assert_ne!(relay.sp.expect("answered")?["result"], 0);
    // More octets than the 2048 of the specification, but a hundred users as allowed.
    let users: Vec<_> = (0..100).map(|number| format!("86130000000{number:02}")).collect();
    let mut hundred = submit("to a hundred");
    hundred["submit"]["user_numbers"] = json!(users);
    relay.sp.send_action(&hundred)?;
    assert_eq!(relay.sp.expect("answered")?["result"], 0);
    let mut came = Vec::new();
    for _ in 0..100 {
        let taken = relay.gateway.expect("taken")?;
        assert_eq!(taken["text"], "to a hundred");
        came.push(taken["user_numbers"][0].as_str().context("no user")?.to_owned());
    }
    came.sort();
    assert_eq!(came, users);
    // A Deliver is well-formed, but not for a gateway; the link stays up.
    relay.sp.send_action(
        &json!({ "send": { "command": "deliver", "user_number": USERS[0], "sp_number": "10655" } }),
    )?;
    let answer = relay.sp.expect("answered")?;
    assert_eq!(answer["command"], "deliver_resp");
    assert_ne!(answer["result"], 0);
    relay.sp.send_action(&submit("still here"))?;
    assert_eq!(relay.sp.expect("answered")?["result"], 0);
    Ok(())
}

#[test]
fn segments_keep_their_headers_and_their_reports() -> Result<()> {
    let mut relay = GatewayFixture::new(&json!({ "report": "after" }), "")?;
    let _appliance = relay.start()?;
    let words = "一条很长的短信".repeat(20);
    relay.sp.send_action(&submit(&words))?;
    let mut sequences = Vec::new();
    let mut whole = vec![String::new(); 3];
    for _ in 0..3 {
        sequences.push(relay.sp.expect("sent")?["sequence"].clone());
        assert_eq!(relay.sp.expect("answered")?["result"], 0);
        let taken = relay.gateway.expect("taken")?;
        assert_eq!((&taken["tp_udhi"], &taken["part"]["total"]), (&json!(1), &json!(3)));
        let number = taken["part"]["number"].as_u64().context("no number")? as usize;
        whole[number - 1] = taken["text"].as_str().context("no text")?.to_owned();
    }
    assert_eq!(whole.concat(), words);
    for sequence in &sequences {
        let report = relay.sp.expect_matching("taken", |event| event["submit_sequence"] == *sequence)?;
        assert_eq!((&report["state"], &report["user_number"]), (&json!(0), &json!(USERS[0])));
    }
    Ok(())
}

#[test]
fn a_reply_waits_for_the_sps_listener_and_keeps_its_link_id() -> Result<()> {
    let mut relay = GatewayFixture::new(&json!({}), "response-timeout = \"500ms\"")?;
    let _appliance = relay.start()?;
    let deliver = |text: &str| {
        json!({ "deliver": { "user_number": USERS[0], "sp_number": "10655", "text": text, "message_coding": 15,
            "reserve": "4c494e4b30303031" } })
    };
    relay.gateway.send_action(&deliver("退订"))?;
    assert_eq!(relay.gateway.expect("answered")?["result"], 0);
    let taken = relay.sp.expect("taken")?;
    assert_eq!((&taken["command"], &taken["text"]), (&json!("deliver"), &json!("退订")));
    assert_eq!((&taken["user_number"], &taken["sp_number"]), (&json!(USERS[0]), &json!("10655")));
    assert_eq!((&taken["reserve"], &taken["sequence"][0]), (&json!("4c494e4b30303031"), &json!(205_502)));
    // Unanswered, then cut, then refused at the login: each time it is repeated with the same sequence.
    relay.sp.send_action(&json!({ "set": { "silent": 1, "cut": 1 } }))?;
    relay.gateway.send_action(&deliver("again"))?;
    let first = relay.sp.expect("taken")?;
    let again = relay.sp.expect("taken")?;
    assert_eq!((&again["sequence"], &again["duplicate"]), (&first["sequence"], &json!(true)));
    relay.sp.send_action(&json!({ "set": { "bind_result": 3 }, "drop": "taken" }))?;
    relay.gateway.send_action(&deliver("late"))?;
    relay.gateway.expect_matching("answered", |event| event["result"] == 0)?;
    relay.sp.expect_matching("bound", |event| event["result"] == 3)?;
    relay.sp.send_action(&json!({ "set": { "bind_result": 0 } }))?;
    relay.sp.expect_matching("taken", |event| event["text"] == "late")?;
    Ok(())
}

//! The appliance as an SP, with a gateway and a business system that use only Python's standard library: requirements of the
//! protocol document and known pitfalls.

use anyhow::{Context, Result};
use behaviour_tests::TIMEOUT;
use behaviour_tests::sgip::{SpFixture, raw};
use serde_json::{Value, json};
use std::collections::HashSet;

const USER: &str = "8613012345678";

fn text(words: &str) -> Value {
    json!({ "to": USER, "text": words })
}

/// Sequences and texts of the next Submits.
fn take(platform: &mut SpFixture, count: usize) -> Result<Vec<Value>> {
    (0..count).map(|_| platform.submitted()).collect()
}

#[test]
fn the_window_is_respected_and_answers_may_come_in_reverse_order() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "hold": true }), "window = 4", "")?;
    let appliance = platform.start()?;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(platform.submit(&text(&format!("text {number}")))?);
    }
    take(&mut platform, 4)?;
    platform.gateway.send_action(&json!({ "answer": "backwards" }))?;
    take(&mut platform, 2)?;
    platform.gateway.send_action(&json!({ "answer": "backwards", "count": true }))?;
    let counts = platform.gateway.expect("counts")?;
    assert_eq!((&counts["taken"]["most_unanswered"], &counts["taken"]["submit"]), (&json!(4), &json!(6)));
    for id in ids {
        appliance
            .wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["state"] == "responded")?;
    }
    Ok(())
}

#[test]
fn an_unanswered_command_is_repeated_with_its_sequence() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "silent": 1 }), "response-timeout = \"300ms\"", "")?;
    let _appliance = platform.start()?;
    platform.submit(&text("hello"))?;
    let first = platform.submitted()?;
    let again = platform.submitted()?;
    assert_eq!((&again["sequence"], &again["duplicate"]), (&first["sequence"], &json!(true)));
    platform.report(&first, 0, 0)?;
    assert_eq!(platform.pushed(|push| push["type"] == "dlr")?["state"], "delivered");
    Ok(())
}

#[test]
fn a_link_cut_within_a_window_causes_no_duplicates() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "hold": true }), "", "")?;
    let _appliance = platform.start()?;
    let mut ids = HashSet::new();
    for number in 0..5 {
        ids.insert(platform.submit(&text(&format!("text {number}")))?);
    }
    let first = take(&mut platform, 5)?;
    platform.gateway.send_action(&json!({ "set": { "hold": false }, "drop": "taken" }))?;
    let again = take(&mut platform, 5)?;
    let sequences = |events: &[Value]| -> HashSet<String> {
        events.iter().map(|event| event["sequence"].to_string()).collect()
    };
    assert_eq!(sequences(&first), sequences(&again));
    assert!(again.iter().all(|event| event["duplicate"] == true), "{again:#?}");
    for submit in &first {
        platform.report(submit, 0, 0)?;
    }
    for _ in 0..5 {
        let push = platform.pushed(|push| push["type"] == "dlr")?;
        let id = push["message_id"].as_str().context("no id")?;
        assert!(push["state"] == "delivered" && ids.remove(id), "{push}");
    }
    Ok(())
}

#[test]
fn a_report_may_come_before_the_answer_and_more_than_once() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "hold": true }), "", "")?;
    let _appliance = platform.start()?;
    let id = platform.submit(&text("hello"))?;
    let submit = platform.submitted()?;
    platform.report(&submit, 1, 0)?;
    platform.report(&submit, 0, 0)?;
    for _ in 0..2 {
        assert_eq!(platform.gateway.expect("answered")?["result"], 0);
    }
    platform.gateway.send_action(&json!({ "answer": "forwards" }))?;
    let push = platform.pushed(|push| push["type"] == "dlr" && push["final"] == true)?;
    assert_eq!((&push["message_id"], &push["state"]), (&json!(id), &json!("delivered")));
    // The same octets again, and as a new command. Both are answered with 0, and no second push results.
    platform
        .gateway
        .send_action(&json!({ "report": { "sequence": submit["sequence"], "user": USER }, "times": 2 }))?;
    for _ in 0..2 {
        assert_eq!(platform.gateway.expect("answered")?["result"], 0);
    }
    let last = platform.submit(&text("the last"))?;
    platform.gateway.send_action(&json!({ "answer": "forwards", "set": { "hold": false } }))?;
    let submit = platform.submitted()?;
    platform.gateway.send_action(&json!({ "answer": "forwards" }))?;
    platform.report(&submit, 0, 0)?;
    let next = platform.pushed(|push| push["type"] == "dlr" && push["final"] == true)?;
    assert_eq!(next["message_id"], last);
    Ok(())
}

#[test]
fn segments_of_a_long_text_are_separate_submits_and_one_dlr() -> Result<()> {
    let mut platform = SpFixture::new(&json!({}), "", "")?;
    let _appliance = platform.start()?;
    let words = "很长的测试😀".repeat(25);
    let mut reported = Vec::new();
    for (last, state) in [((0, 0), "delivered"), ((2, 29), "failed")] {
        let id = platform.submit(&text(&words))?;
        let parts = take(&mut platform, 3)?;
        let mut whole: Vec<_> = parts.iter().map(|part| (part["part"]["number"].as_u64(), part)).collect();
        whole.sort_by_key(|(number, _)| *number);
        let joined: String = whole.iter().filter_map(|(_, part)| part["text"].as_str()).collect();
        assert_eq!(joined, words);
        let sequences: HashSet<_> = parts.iter().map(|part| part["sequence"].to_string()).collect();
        assert_eq!(sequences.len(), 3);
        for part in &parts {
            assert_eq!((&part["tp_udhi"], &part["message_coding"]), (&json!(1), &json!(8)));
            assert_eq!(part["part"]["reference"], parts[0]["part"]["reference"]);
        }
        for part in &parts[..2] {
            platform.report(part, 0, 0)?;
        }
        platform.report(&parts[2], last.0, last.1)?;
        let push = platform.pushed(|push| push["type"] == "dlr")?;
        assert_eq!((&push["message_id"], &push["state"]), (&json!(id), &json!(state)), "{push}");
        assert_eq!(push["segments"], 3);
        reported.push(push["error"].clone());
    }
    assert_eq!(reported, [json!(0), json!(29)]);
    Ok(())
}

#[test]
fn refusals_are_retried_or_final_by_their_code() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "refuse_after": 0, "refusal": 88 }), "", "")?;
    let _appliance = platform.start()?;
    let id = platform.submit(&text("too fast"))?;
    let refused = platform.submitted()?;
    assert_eq!(refused["result"], 88);
    platform.gateway.send_action(&json!({ "set": { "refuse_after": null } }))?;
    // The gateway remembers refused commands: only a new sequence can get another answer.
    let taken = platform.gateway.expect_matching("taken", |event| event["result"] == 0)?;
    assert_ne!(taken["sequence"], refused["sequence"]);
    platform.report(&taken, 0, 0)?;
    let push = platform.pushed(|push| push["type"] == "dlr")?;
    assert_eq!((&push["message_id"], &push["state"]), (&json!(id), &json!("delivered")));

    platform.gateway.send_action(&json!({ "set": { "result": 6 } }))?;
    let id = platform.submit(&text("wrong number"))?;
    let refused = platform.gateway.expect_matching("taken", |event| event["text"] == "wrong number")?;
    assert_eq!(refused["result"], 6);
    let push = platform.pushed(|push| push["type"] == "dlr")?;
    assert_eq!((&push["message_id"], &push["final"], &push["error"]), (&json!(id), &json!(true), &json!(6)));
    assert_ne!(push["state"], "delivered");
    Ok(())
}

#[test]
fn fields_of_the_call_are_fields_of_the_submit() -> Result<()> {
    let keys = "fields = { corp-id = \"12345\", service-type = \"TEST\", fee-type = 1 }";
    let mut platform = SpFixture::new(&json!({}), keys, "")?;
    let _appliance = platform.start()?;
    platform.submit(&json!({ "to": "13012345678", "text": "你好", "coding": "gbk",
        "sgip": { "fee_type": 2, "fee_value": "10", "link_id": "LINK0001", "mo_related": 1 } }))?;
    let submit = platform.submitted()?;
    assert_eq!(submit["user_numbers"], json!([USER]), "86 is put in front");
    assert_eq!((&submit["message_coding"], &submit["content"]), (&json!(15), &json!("c4e3bac3")));
    assert_eq!((&submit["corp_id"], &submit["service_type"]), (&json!("12345"), &json!("TEST")));
    assert_eq!((&submit["fee_type"], &submit["fee_value"]), (&json!(2), &json!("10")));
    assert_eq!((&submit["mo_relate_to_mt_flag"], &submit["report_flag"]), (&json!(1), &json!(1)));
    assert_eq!((&submit["reserve"], &submit["sp_number"]), (&json!("4c494e4b30303031"), &json!("10655")));
    assert_eq!(submit["sequence"][0], 3_010_012_345_u32);
    Ok(())
}

#[test]
fn a_gateways_quirks_are_supported() -> Result<()> {
    let keys = "version = \"1.3\"\nudhi = \"0x40\"\nadd-86 = false\nlink-id = false";
    let mut platform = SpFixture::new(&json!({}), keys, "")?;
    let _appliance = platform.start()?;
    let words = "测".repeat(100);
    platform.submit(&json!({ "to": "13012345678", "text": words, "sgip": { "link_id": "LINK0001" } }))?;
    let mut whole = String::new();
    for part in take(&mut platform, 2)? {
        assert_eq!(part["tp_udhi"], 0x40);
        assert_eq!(
            (&part["user_numbers"], &part["reserve"]),
            (&json!(["13012345678"]), &json!("0000000000000000"))
        );
        whole.push_str(part["text"].as_str().context("no text")?);
    }
    assert_eq!(whole, words);
    // Commands that an SP has no use for are answered nevertheless.
    platform.gateway.send_action(&json!({ "send": {
        "command": "user_rpt", "sp_number": "10655", "user_number": USER, "user_condition": 1 } }))?;
    let answer = platform.gateway.expect("answered")?;
    assert_eq!((&answer["command"], &answer["result"]), (&json!("user_rpt_resp"), &json!(0)));
    Ok(())
}

#[test]
fn a_reply_is_pushed_once_by_xml_rpc_and_its_repetition_gets_the_same_answer() -> Result<()> {
    let mut platform = SpFixture::new(&json!({}), "", "format = \"xml-rpc\"")?;
    let _appliance = platform.start()?;
    platform.business.send_action(&json!({ "fail": [500, "close"] }))?;
    let deliver = json!({ "user_number": USER, "sp_number": "10655", "text": "退订", "message_coding": 15,
        "sequence": [101_001, 1_120_203_225, 7] });
    platform.gateway.send_action(&json!({ "deliver": deliver, "times": 2 }))?;
    for _ in 0..2 {
        assert_eq!(platform.gateway.expect("answered")?["result"], 0);
    }
    let mut other = deliver;
    other["text"] = json!("另外");
    platform.gateway.send_action(&json!({ "deliver": other }))?;
    assert_eq!(platform.gateway.expect("answered")?["result"], 9, "another text under the same sequence");
    let mut seen = HashSet::new();
    for answered in [json!(500), json!("close"), json!(200)] {
        let push = platform.business.expect("push")?;
        assert_eq!((&push["format"], &push["method"]), (&json!("xmlrpc"), &json!("sms.reply")));
        assert_eq!((&push["answered"], &push["signature"]), (&answered, &json!("good")));
        assert_eq!((&push["body"]["text"], &push["body"]["from"]), (&json!("退订"), &json!(USER)));
        seen.insert(push["body"]["id"].to_string());
    }
    assert_eq!(seen.len(), 1, "a repetition has the same id");
    platform
        .gateway
        .send_action(&json!({ "deliver": { "user_number": USER, "sp_number": "10655", "text": "next" } }))?;
    assert_eq!(platform.pushed(|_| true)?["text"], "next", "an accepted reply is not pushed again");
    Ok(())
}

#[test]
fn a_temporarily_refused_login_is_retried_and_nothing_is_lost() -> Result<()> {
    let mut platform = SpFixture::new(&json!({ "bind_result": 3 }), "", "")?;
    let _appliance = platform.start()?;
    platform.submit(&text("hello"))?;
    for _ in 0..2 {
        assert_eq!(platform.gateway.expect("bound")?["result"], 3);
    }
    platform.gateway.send_action(&json!({ "set": { "bind_result": 0 } }))?;
    assert_eq!(platform.submitted()?["text"], "hello");
    Ok(())
}

fn bind(login_type: u8, name: &str, password: &str, counter: u32) -> Result<String> {
    let field =
        |text: &str| format!("{:0<32}", text.bytes().map(|each| format!("{each:02x}")).collect::<String>());
    Ok(format!(
        "0000003d00000001{}{login_type:02x}{}{}0000000000000000",
        sequence(counter),
        field(name),
        field(password)
    ))
}

fn sequence(counter: u32) -> String {
    format!("00018a8942c4f1d9{counter:08x}")
}

#[test]
fn logins_at_our_listener_are_authenticated() -> Result<()> {
    let mut platform = SpFixture::new(&json!({}), "", "")?;
    let appliance = platform.start()?;
    for (login, result) in [(bind(2, "smg", "wrong", 1)?, 1), (bind(4, "smg", "its", 1)?, 4)] {
        let mut raw = raw(appliance.config())?;
        raw.send_action(&json!({ "hex": login }))?;
        let answer = raw.expect("pdu")?;
        assert_eq!((&answer["command"], &answer["result"]), (&json!("bind_resp"), &json!(result)));
        raw.expect("closed")?;
    }
    let mut raw = raw(appliance.config())?;
    // Octet by octet, two commands in one piece, and an unexpected answer.
    raw.send_action(&json!({ "hex": bind(2, "smg", "its", 1)?, "chunk": 1 }))?;
    assert_eq!(raw.expect("pdu")?["result"], 0);
    let unasked = format!("0000001d80000003{}000000000000000000", sequence(9));
    raw.send_action(&json!({ "hex": format!("{unasked}{}", bind(2, "smg", "its", 2)?) }))?;
    assert_eq!(raw.expect("pdu")?["result"], 2);
    // A Submit is well-formed, but not for an SP.
    let submit = format!("000000a400000003{}{}", sequence(3), "00".repeat(42) + "01" + &"00".repeat(101));
    raw.send_action(&json!({ "hex": submit }))?;
    let answer = raw.expect("pdu")?;
    assert_eq!(answer["command"], "submit_resp");
    assert_ne!(answer["result"], 0);
    raw.send_action(&json!({ "hex": format!("0000001400000002{}", sequence(4)) }))?;
    assert_eq!(raw.expect("pdu")?["command"], "unbind_resp");
    raw.expect("closed")?;
    Ok(())
}

#[test]
fn malformed_commands_close_the_connection_without_an_answer() -> Result<()> {
    let mut platform = SpFixture::new(&json!({}), "", "")?;
    let appliance = platform.start()?;
    let deliver = |length: u32, text: u32| {
        format!(
            "{length:08x}00000004{}{}{text:08x}6869{}",
            sequence(5),
            "31".repeat(42) + "000000",
            "00".repeat(8)
        )
    };
    let wrong = [
        ("a length of 19", format!("0000001300000004{}", sequence(5))),
        ("a length of 0", format!("0000000000000004{}", sequence(5))),
        ("a length of 4 GiB", format!("ffffffff00000004{}", sequence(5))),
        ("a command that is none", format!("0000001400000099{}", sequence(5))),
        ("a text longer than its PDU", deliver(79, 200)),
        ("a PDU longer than its text", deliver(79, 1)),
        ("an Unbind with a body", format!("0000001600000002{}0000", sequence(5))),
    ];
    for (what, octets) in wrong {
        let mut raw = raw(appliance.config())?;
        raw.send_action(&json!({ "hex": bind(2, "smg", "its", 1)? }))?;
        assert_eq!(raw.expect("pdu")?["result"], 0, "{what}");
        raw.send_action(&json!({ "hex": octets }))?;
        raw.expect("closed").with_context(|| what.to_owned())?;
        let more = raw.collect("pdu", std::time::Duration::ZERO);
        assert!(more.is_empty(), "{what}: {more:?}");
    }
    let mut early = raw(appliance.config())?;
    early.send_action(&json!({ "hex": deliver(79, 2) }))?;
    early.expect("closed").context("a command before the login")?;
    platform.gateway.send_action(
        &json!({ "deliver": { "user_number": USER, "sp_number": "10655", "text": "still here" } }),
    )?;
    assert_eq!(platform.pushed(|_| true)?["text"], "still here");
    Ok(())
}

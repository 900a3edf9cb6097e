//! The Python SGIP nodes against each other: verifies the test instruments.

use anyhow::{Context, Result};
use behaviour_tests::Peer;
use serde_json::{Value, json};

const SP_NODE: u32 = 3_010_012_345;

/// A gateway and an SP that know each other's ports.
fn both(gateway: Value, sp: Value) -> Result<(Peer, Peer)> {
    let with = |mut options: Value, role: &str, node: u32| {
        options["role"] = json!(role);
        options["node"] = json!(node);
        options["name"] = json!("fakename");
        options["password"] = json!("1234");
        Peer::plain_python("sgip.py", &options)
    };
    let mut gateway = with(gateway, "gateway", 101_001)?;
    let mut sp = with(sp, "sp", SP_NODE)?;
    let login = |port: &Value| json!({ "dial": { "port": port, "name": "fakename", "password": "1234" } });
    let (up, down) = (gateway.expect("listening")?, sp.expect("listening")?);
    sp.send_action(&login(&up["port"]))?;
    gateway.send_action(&login(&down["port"]))?;
    assert_eq!(sp.expect("dialled")?["result"], 0);
    assert_eq!(gateway.expect("dialled")?["result"], 0);
    Ok((gateway, sp))
}

fn submit(text: &str) -> Value {
    json!({ "submit": { "sp_number": "10655", "user_numbers": ["8613012345678"], "text": text }, "tag": text })
}

#[test]
fn a_submit_a_report_and_a_deliver_are_exchanged() -> Result<()> {
    let (mut gateway, mut sp) = both(json!({ "report": "after", "states": [[1, 0], [2, 29]] }), json!({}))?;
    assert_eq!(gateway.expect("bound")?["login_type"], 1);
    assert_eq!(sp.expect("bound")?["login_type"], 2);
    sp.send_action(&submit("测试 with a very long tail ".repeat(6).trim()))?;
    let mut sequences = Vec::new();
    for number in 1..=3 {
        let taken = gateway.expect("taken")?;
        assert_eq!(
            (&taken["part"]["number"], &taken["part"]["total"], &taken["tp_udhi"]),
            (&json!(number), &json!(3), &json!(1))
        );
        assert_eq!(taken["sequence"][0], SP_NODE);
        let answer = sp.expect("answered")?;
        assert_eq!((&answer["result"], &answer["sequence"]), (&json!(0), &taken["sequence"]));
        sequences.push(taken["sequence"].clone());
    }
    for sequence in &sequences {
        for (state, error) in [(1, 0), (2, 29)] {
            let report = sp.expect_matching("taken", |event| event["submit_sequence"] == *sequence)?;
            assert_eq!((&report["state"], &report["error_code"]), (&json!(state), &json!(error)));
            assert_eq!(report["user_number"], "8613012345678");
            assert_ne!(report["sequence"], *sequence);
            let answered = gateway.expect_matching("answered", |event| event["about"] == *sequence)?;
            assert_eq!(answered["result"], 0);
        }
    }
    gateway.send_action(&json!({ "deliver": {
        "user_number": "8613012345678", "sp_number": "10655", "text": "好", "message_coding": 15,
        "reserve": "4c494e4b30303031" } }))?;
    let deliver = sp.expect("taken")?;
    assert_eq!((&deliver["text"], &deliver["content"]), (&json!("好"), &json!("bac3")));
    assert_eq!(deliver["reserve"], "4c494e4b30303031");
    assert_eq!(gateway.expect("answered")?["command"], "deliver_resp");
    sp.send_action(&json!({ "unbind": true }))?;
    gateway.expect("unbound")?;
    sp.expect("unbound")?;
    Ok(())
}

#[test]
fn a_repetition_gets_the_same_answer_also_on_another_connection() -> Result<()> {
    let (mut gateway, mut sp) = both(json!({ "cut": 1 }), json!({}))?;
    sp.send_action(&submit("once"))?;
    let first = gateway.expect("taken")?;
    assert!(first["duplicate"].is_null());
    assert_eq!(sp.expect("resent")?["sequence"], first["sequence"]);
    let again = gateway.expect("taken")?;
    assert_eq!((&again["sequence"], &again["duplicate"]), (&first["sequence"], &json!(true)));
    assert_eq!(sp.expect("answered")?["result"], 0);
    let mut other = submit("another text");
    other["submit"]["sequence"] = first["sequence"].clone();
    sp.send_action(&other)?;
    assert_eq!(gateway.expect("taken")?["conflict"], true);
    assert_eq!(sp.expect("answered")?["result"], 9);
    gateway.send_action(
        &json!({ "report": { "sequence": first["sequence"], "user": "8613012345678" }, "times": 2 }),
    )?;
    assert!(sp.expect("taken")?["duplicate"].is_null());
    assert_eq!(sp.expect("taken")?["duplicate"], true);
    gateway.expect_matching("answered", |event| event["times"] == 2)?;
    Ok(())
}

#[test]
fn the_window_is_respected_and_answers_come_in_any_order() -> Result<()> {
    let (mut gateway, mut sp) = both(json!({ "hold": true }), json!({ "window": 5 }))?;
    for number in 0..8 {
        sp.send_action(&submit(&format!("text {number}")))?;
    }
    for number in 1..=5 {
        assert_eq!(gateway.expect("taken")?["unanswered"], number);
    }
    gateway.send_action(&json!({ "answer": "backwards" }))?;
    for number in (0..5).rev() {
        assert_eq!(sp.expect("answered")?["tag"], format!("text {number}"));
    }
    for _ in 0..3 {
        gateway.expect("taken")?;
    }
    gateway.send_action(&json!({ "set": { "hold": false, "refuse_after": 9 }, "answer": "forwards" }))?;
    for number in 5..8 {
        assert_eq!(sp.expect("answered")?["tag"], format!("text {number}"));
    }
    for (number, result) in [(8, 0), (9, 88)] {
        sp.send_action(&submit(&format!("text {number}")))?;
        assert_eq!(sp.expect("answered")?["result"], result);
    }
    gateway.send_action(&json!({ "count": true }))?;
    let counts = gateway.expect("counts")?;
    assert_eq!((&counts["taken"]["submit"], &counts["taken"]["most_unanswered"]), (&json!(10), &json!(5)));
    Ok(())
}

#[test]
fn commands_to_a_silent_gateway_are_repeated_with_the_same_sequence() -> Result<()> {
    let (mut gateway, mut sp) = both(json!({ "silent": 1 }), json!({ "timeout": 0.1 }))?;
    sp.send_action(&submit("hello"))?;
    let first = gateway.expect("taken")?;
    let again = gateway.expect("taken")?;
    assert_eq!((&again["sequence"], &again["duplicate"]), (&first["sequence"], &json!(true)));
    assert_eq!(sp.expect("answered")?["result"], 0);
    Ok(())
}

#[test]
fn binds_are_authenticated() -> Result<()> {
    for (options, result) in [
        (json!({ "name": "fakename", "password": "wrong" }), 1),
        (json!({ "name": "fakename", "password": "1234" }), 4),
    ] {
        let mut gateway = Peer::plain_python(
            "sgip.py",
            &json!({ "role": "gateway", "name": "fakename", "password": "1234" }),
        )?;
        let mut dial = options;
        dial["port"] = gateway.expect("listening")?["port"].clone();
        let mut sp = Peer::plain_python("sgip.py", &json!({ "role": "sp", "dial": dial, "login_type": 2 }))?;
        sp.send_action(&json!({ "dial": {} }))?;
        assert_eq!(sp.expect("dialled")?["result"], result);
        assert_eq!(gateway.expect("closed")?["bound"], false);
    }
    Ok(())
}

/// The worked examples that the codec must reproduce exactly.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "bind",
        "0000003d00000001b36924b942c4f1d9000000010166616b656e616d650000000000000000313233340000000000000000000000\
         000000000000000000",
    ),
    ("bind_resp", "0000001d80000001b36924b942c4f1d900000001000000000000000000"),
    (
        "submit",
        "000000a800000003b36924b942c4f1da000000023130363535393132333435000000000000000000003030303030303030303030\
         30303030303030303030013836313330313233343536373800000000000000003132333435544553540000000000000130000000\
         000030000000000000020000000000000000000000000000000000000000000000000000000000000000000100000f0000000004\
         c4e3bac30000000000000000",
    ),
    (
        "submit",
        "000000c300000003b36924b942c4f1db000000033130363535393132333435000000000000000000000000000000000000000000\
         00000000000000000000023836313330313233343536373800000000000000003836313331313233343536373800000000000000\
         00313233343554455354000000000000023130000000003000000000000002093236313233313233353935393033322b00000000\
         00000000000000000000000000000108000000000a0500032d02014f60597d0000000000000000",
    ),
    (
        "report",
        "000000400000000500018a8942c4f2250000000bb36924b942c4f1da000000020038363133303132333435363738000000000000\
         000000000000000000000000",
    ),
    (
        "report",
        "000000400000000500018a8942c4f2260000000cb36924b942c4f1db000000030038363133313132333435363738000000000000\
         0000021d0000000000000000",
    ),
    (
        "deliver",
        "000000510000000400018a8942c4f2270000000d3836313330313233343536373800000000000000003130363535393132333435\
         0000000000000000000000000f00000004b2e2cad40000000000000000",
    ),
    (
        "bind",
        "0000003d0000000100018a8942c4f2240000000a0266616b656e616d650000000000000000313233340000000000000000000000\
         000000000000000000",
    ),
    ("unbind", "000000140000000200018a8942c4f2280000000e"),
    ("unbind_resp", "000000148000000200018a8942c4f2280000000e"),
];

#[test]
fn the_codec_reproduces_examples_and_refuses_wrong_lengths() -> Result<()> {
    let mut codec = Peer::plain_python("sgip.py", &json!({ "role": "codec" }))?;
    for (command, hex) in EXAMPLES {
        codec.send_action(&json!({ "decode": hex }))?;
        let decoded = codec.expect("decoded")?;
        assert_eq!(decoded["command"], *command);
        codec.send_action(&json!({ "encode": decoded }))?;
        assert_eq!(codec.expect("encoded")?["hex"], *hex);
        let length = hex.len() / 2 + 1;
        codec.send_action(
            &json!({ "decode": format!("{length:08x}{}00", hex.get(8..).context("no header")?) }),
        )?;
        codec.expect("broken")?;
    }
    Ok(())
}

//! The Python business system against itself: it must reject a wrong signature before its verdict on others counts.

use anyhow::Result;
use behaviour_tests::Peer;
use serde_json::{Value, json};

fn business() -> Result<(Peer, u64)> {
    let mut business = Peer::plain_python("business.py", &json!({ "secret": "key" }))?;
    let port = business.expect("listening")?["port"].as_u64().unwrap_or_default();
    Ok((business, port))
}

/// Pushes to itself; returns the received push and the status of its answer.
fn push(business: &mut Peer, port: u64, headers: &Value, body: &str) -> Result<(Value, Value)> {
    business.send_action(&json!({ "http": {
        "url": format!("http://127.0.0.1:{port}/in"), "method": "POST", "headers": headers, "body": body } }))?;
    Ok((business.expect("push")?, business.expect("http")?["status"].clone()))
}

#[test]
fn signatures_are_checked() -> Result<()> {
    let (mut business, port) = business()?;
    let (seen, status) = push(&mut business, port, &json!({}), "{}")?;
    assert_eq!((&seen["signature"], &status), (&json!("missing"), &json!(401)));
    let old = json!({ "Switchyard-Signature":
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        "t=1700000000,v1=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03" });
    let (seen, _) = push(&mut business, port, &old, r#"{"a":1}"#)?;
    assert_eq!((&seen["signature"], &seen["body"]["a"]), (&json!("old"), &json!(1)));
    let (seen, _) = push(&mut business, port, &old, r#"{"a":2}"#)?;
    assert_eq!(seen["signature"], "bad");
    Ok(())
}

#[test]
fn it_fails_as_configured_and_calls_with_the_library() -> Result<()> {
    let mut business = Peer::plain_python("business.py", &json!({}))?;
    let port = business.expect("listening")?["port"].clone();
    business.send_action(&json!({ "fail": [500, "close", "fault"] }))?;
    let url = format!("http://127.0.0.1:{port}/");
    let call = json!({ "rpc": { "url": url, "method": "sms.reply", "args": [{ "text": "好", "n": 1 }] } });
    let outcome = |business: &mut Peer| -> Result<(Value, Value)> {
        business.send_action(&call)?;
        Ok((business.expect("push")?, business.expect("rpc")?))
    };
    let (seen, refused) = outcome(&mut business)?;
    assert_eq!((&seen["method"], &seen["body"]["text"]), (&json!("sms.reply"), &json!("好")));
    assert_eq!((&seen["answered"], &refused["error"]), (&json!(500), &json!(500)));
    // The library itself retries once when the connection breaks.
    let (seen, fault) = outcome(&mut business)?;
    assert_eq!((&seen["answered"], &fault["fault"]), (&json!("close"), &json!(1)));
    assert_eq!(business.expect("push")?["answered"], "fault");
    let (seen, taken) = outcome(&mut business)?;
    assert_eq!((&seen["answered"], &taken["result"]), (&json!(200), &json!(true)));
    Ok(())
}

//! PyPI `twilio`, an independent client, changes only its base URL.

use anyhow::{Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::PASSWORD;
use behaviour_tests::{Fixture, Peer, SmsApi, bind, until};
use serde_json::json;
use std::sync::Arc;

/// As a real one: AC, and 32 digits.
const SID: &str = "AC00000000000000000000000000000001";

#[test]
fn pypi_twilio_creates_messages() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.business_account("shop", "", "").native("upstream").peer(
        "upstream",
        sink.address(),
        "dlrs = false",
    );
    config.tables("[[business.front-end]]\npath = \"/2010-04-01\"\nplugin = \"twilio-front-end\"\n");
    let appliance = config.start()?;
    let component = fixture.component("twilio_front_end")?;
    let policy = behaviour_tests::shipped_policy("twilio-front-end")?;
    bind(&appliance, "front-end", "twilio-front-end", &component, &policy, &json!({}))?;

    let base = format!("http://{}", appliance.config().business());
    let options = |token: &str| json!({ "base": base, "account": SID, "token": token });
    let mut client = Peer::python("twilio_client.py", &options(PASSWORD))?;
    client.expect("ready")?;
    let text = "Grüße an 你";
    client.send_action(&json!({ "to": "+15558675310", "from": "+15017122661", "body": text }))?;
    let created = client.expect("created")?;
    ensure!(created["sid"].as_str().is_some_and(|sid| sid.starts_with("SM") && sid.len() == 34), "{created}");
    ensure!(created["status"] == "queued" && created["body"] == text, "{created}");
    ensure!(created["num_segments"] == "1" && created["to"] == "+15558675310", "{created}");
    until("the message is at the SMSC", || Ok(sink.message_count() == 1))?;

    client.send_action(&json!({ "to": "nobody", "from": "+15017122661", "body": "no" }))?;
    let refused = client.expect("refused")?;
    ensure!(refused["status"] == 400 && refused["code"] == 21_211, "{refused}");
    let mut stranger = Peer::python("twilio_client.py", &options("wrong"))?;
    stranger.expect("ready")?;
    stranger.send_action(&json!({ "to": "+15558675310", "from": "+15017122661", "body": "no" }))?;
    let refused = stranger.expect("refused")?;
    ensure!(refused["status"] == 401 && refused["code"] == 20_003, "{refused}");
    ensure!(sink.message_count() == 1, "nothing else was sent");
    Ok(())
}

#[test]
fn pypi_twilio_verifies_status_callbacks() -> Result<()> {
    let fixture = Fixture::new()?;
    let api = SmsApi::start()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    let url = api.base_url();
    // The AuthToken of the client is the password of the account, and the secret of its push.
    let push =
        format!("push = {{ url = \"{url}own\", secret = \"{PASSWORD}\", dlr-urls = [\"{url}dlr*\"] }}\n");
    let mut config = fixture.config()?;
    config.business_account("shop", "", &push).native("upstream").peer("upstream", sink.address(), "");
    config.tables("[[business.front-end]]\npath = \"/2010-04-01\"\nplugin = \"twilio-front-end\"\n");
    let appliance = config.start()?;
    let component = fixture.component("twilio_front_end")?;
    let policy = behaviour_tests::shipped_policy("twilio-front-end")?;
    bind(&appliance, "front-end", "twilio-front-end", &component, &policy, &json!({}))?;

    let base = format!("http://{}", appliance.config().business());
    let options = json!({ "base": base, "account": SID, "token": PASSWORD });
    let mut client = Peer::python("twilio_client.py", &options)?;
    client.expect("ready")?;
    let callback = format!("{url}dlr?order=7&name=Gr%C3%BC%C3%9Fe");
    client.send_action(
        &json!({ "to": "+15558675310", "from": "+15017122661", "body": "Hi", "callback": callback }),
    )?;
    client.expect("created")?;
    until("the DLR is pushed", || Ok(!api.requests().is_empty()))?;
    let request = api.requests().remove(0);
    ensure!(request.line == "POST /dlr?order=7&name=Gr%C3%BC%C3%9Fe", "{request:?}");
    let mut validate = |form: &str| -> Result<bool> {
        client.send_action(
            &json!({ "validate": callback, "form": form, "signature": request.twilio_signature }),
        )?;
        Ok(client.expect("validated")?["right"] == true)
    };
    ensure!(validate(&request.text)?, "{request:?}");
    let forged = request.text.replace("MessageStatus=delivered", "MessageStatus=failed");
    ensure!(forged != request.text && !validate(&forged)?, "a forged status has the right signature");
    Ok(())
}

//! HTTP APIs of other products, served by plugins: requests of Kannel's and Jasmin's documentation with curl's means, wrong
//! passwords, malformed requests, plugins that trap, a crash after the acceptance, and candidates.

use anyhow::{Context, Result, ensure};
use behaviour_tests::{Fixture, RawConnection, bind, until, upload};
use serde_json::{Value, json};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};

const DELIVER_SM: u32 = 0x0000_0005;
const RESPONSE: u32 = 0x8000_0000;

const PATHS: &str = r#"
[[business.front-end]]
path = "/cgi-bin/sendsms"
plugin = "kannel-front-end"
[[business.front-end]]
path = "/send"
plugin = "jasmin-front-end"
[[business.front-end]]
path = "/moody"
plugin = "moody"
"#;

/// An appliance whose account `shop` submits over HTTP to `receiver`.
fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    let mut config = fixture.config()?;
    config
        .business_account("shop", "source = { default = \"10655\" }", "")
        .account("receiver", "")
        .tables(PATHS);
    config.native("receiver");
    Ok(config)
}

fn bind_default(fixture: &Fixture, appliance: &TestDaemon, name: &str) -> Result<()> {
    let component = fixture.component(&name.replace('-', "_"))?;
    let policy = behaviour_tests::shipped_policy(name)?;
    bind(appliance, "front-end", name, &component, &policy, &json!({})).map(drop)
}

/// Sends a request; returns the status and the body of the response.
fn get(appliance: &TestDaemon, path: &str) -> Result<(u16, String)> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent.get(format!("http://{}{path}", appliance.config().business())).call()?;
    Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
}

/// The next message at the receiver.
fn take(link: &mut RawConnection) -> Result<String> {
    let (id, _, sequence, body) = link.receive()?;
    ensure!(id == DELIVER_SM, "{id:#x}");
    link.send_pdu(DELIVER_SM | RESPONSE, sequence, &[0])?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn receiver(appliance: &TestDaemon) -> Result<RawConnection> {
    let mut link = RawConnection::connect(appliance.smpp())?;
    ensure!(link.bind("receiver", PASSWORD)? == 0, "the receiver is not bound");
    Ok(link)
}

#[test]
fn requests_of_kannel_and_jasmin_are_answered_in_their_formats() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let unbound = get(&appliance, "/send?username=shop&password=secret&to=8613012345678&content=hi")?;
    ensure!(unbound.0 == 503, "{unbound:?}");
    for name in ["kannel-front-end", "jasmin-front-end"] {
        bind_default(&fixture, &appliance, name)?;
    }
    let live = appliance.get("/v1/hooks/front-end")?;
    let bound = live["live"]["chain"].as_array().map(Vec::len);
    ensure!(bound == Some(2), "the second activation kept the first: {live:#}");

    let kannel = |query: &str| get(&appliance, &format!("/cgi-bin/sendsms?{query}"));
    let accepted = kannel("username=shop&password=secret&to=8613012345678&text=Hello+Kannel&dlr-mask=0")?;
    assert_eq!(accepted, (202, "0: Accepted for delivery".to_owned()));
    let wrong = kannel("username=shop&password=wrong&to=8613012345678&text=no")?;
    assert_eq!(wrong, (403, "Authorization failed for sendsms".to_owned()));
    let malformed = kannel("username=shop&password=secret&to=8613012345678&text=%ff")?;
    assert_eq!(malformed, (400, "Charset conversion failed, rejected".to_owned()));
    let garbage = kannel("username=shop&password=secret&to=nobody&text=no")?;
    assert_eq!(garbage, (400, "Garbage 'to' field, rejected.".to_owned()));

    let (status, success) =
        get(&appliance, "/send?username=shop&password=secret&to=8613012345679&content=Hello+Jasmin")?;
    let id = success.strip_prefix("Success \"").and_then(|rest| rest.strip_suffix('"'));
    let id = id.with_context(|| format!("{status}: {success}"))?.to_owned();
    let wrong = get(&appliance, "/send?username=nobody&password=x&to=8613012345679&content=no")?;
    assert_eq!(wrong, (403, "Error \"Authentication failure for username:nobody\"".to_owned()));
    // The appliance's own API stays at its paths.
    assert_eq!(get(&appliance, "/v1/messages/1")?.0, 401);
    assert_eq!(get(&appliance, "/sendx")?.0, 404);

    let mut link = receiver(&appliance)?;
    let texts = [take(&mut link)?, take(&mut link)?];
    ensure!(texts[0].contains("Hello Kannel") && texts[1].contains("Hello Jasmin"), "{texts:?}");
    // The trace names the plugin and its version.
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    ensure!(
        trace["routing"]["note"].as_str().is_some_and(|note| note.starts_with("front end jasmin-front-end ")),
        "{trace:#}"
    );
    let metrics = appliance.metrics()?;
    let calls = metrics.iter().filter(|(name, _)| name.contains("business") && name.contains("front-end"));
    ensure!(calls.count() > 0, "no metric counts front ends");
    Ok(())
}

#[test]
fn a_plugin_that_traps_hurts_nobody() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let tolerant = json!({ "tolerance": { "faults": 0, "window-ms": 1 } });
    bind(&appliance, "front-end", "moody", &fixture.component("test_moody_front_end")?, "trap", &tolerant)?;
    bind_default(&fixture, &appliance, "kannel-front-end")?;
    let ask = |query: &str| get(&appliance, &format!("/moody?login=shop&password=secret&text=hi&to={query}"));
    // Nothing is accepted before the trap.
    let (status, body) = ask("8613012345671&bad=read")?;
    ensure!(status == 503 && body.contains("nothing was accepted"), "{status}: {body}");
    // The message is accepted; an error would make the customer send it again.
    let (status, body) = ask("8613012345672&bad=reply")?;
    let confirmed: Value = serde_json::from_str(&body)?;
    ensure!(status == 202 && confirmed["accepted"].as_array().map(Vec::len) == Some(1), "{status}: {body}");
    let wrong = get(&appliance, "/moody?login=shop&password=wrong&text=hi&to=8613012345673&bad=reply")?;
    ensure!(wrong.0 == 401, "{wrong:?}");
    ensure!(ask("8613012345674")?.0 == 200, "the next request is served");
    let kannel = "/cgi-bin/sendsms?username=shop&password=secret&to=8613012345675&text=hi";
    assert_eq!(get(&appliance, kannel)?.0, 202);
    let mut link = receiver(&appliance)?;
    let mut arrived = String::new();
    for _ in 0..3 {
        arrived.push_str(&take(&mut link)?);
    }
    for (number, is_there) in [(1, false), (2, true), (3, false), (4, true), (5, true)] {
        ensure!(arrived.contains(&format!("861301234567{number}")) == is_there, "{number} in {arrived}");
    }
    // The faults are shown without the password.
    let hook = appliance.get("/v1/hooks/front-end")?;
    ensure!(hook.to_string().contains("GET /moody") && !hook.to_string().contains("secret"), "{hook:#}");
    Ok(())
}

#[test]
fn an_accepted_submission_survives_a_crash_before_the_response() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    // The front end never finishes its response.
    let slow = json!({ "deadline-ms": 60_000, "tolerance": { "faults": 0, "window-ms": 1 } });
    bind(&appliance, "front-end", "moody", &fixture.component("test_moody_front_end")?, "loop", &slow)?;
    let address = appliance.config().business();
    let waiting = std::thread::spawn(move || {
        let query = "login=shop&password=secret&text=kept&to=8613012345678&bad=reply";
        ureq::get(format!("http://{address}/moody?{query}")).call().map(drop).is_err()
    });
    until("the message is accepted", || {
        Ok(appliance.get("/v1/business")?.to_string().contains("\"accepted\":1"))
    })?;
    let appliance = appliance.kill()?.start()?;
    ensure!(waiting.join().is_ok_and(|failed| failed), "the customer got no response");
    ensure!(take(&mut receiver(&appliance)?)?.contains("kept"), "the message was lost");
    Ok(())
}

#[test]
fn a_candidate_is_compared_without_a_second_submission() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    bind_default(&fixture, &appliance, "kannel-front-end")?;
    let version = upload(&appliance, "kannel-front-end", &fixture.component("kannel_front_end")?)?;
    let trial = json!({ "mode": "shadow", "plugin": "kannel-front-end", "version": version, "policy": "default-charset = 'ISO-8859-1'" });
    appliance.ask("POST", "/v1/hooks/front-end/candidate", trial.to_string().as_bytes())?;
    let send = |text: &str| {
        get(
            &appliance,
            &format!("/cgi-bin/sendsms?username=shop&password=secret&to=8613012345678&text={text}"),
        )
    };
    ensure!(send("same")?.0 == 202 && send("%C3%A4")?.0 == 202, "both are accepted");
    until("both are compared", || {
        let comparison = &appliance.get("/v1/hooks/front-end")?["candidate"]["comparison"];
        Ok(comparison["compared"] == 4 && comparison["same"] == 3)
    })?;
    let mut link = receiver(&appliance)?;
    take(&mut link)?;
    take(&mut link)?;
    ensure!(send("last")?.0 == 202, "accepted");
    ensure!(take(&mut link)?.contains("last"), "each message was submitted once");
    Ok(())
}

//! DLRs that go to URLs of Kannel's, Jasmin's and Twilio's requests, over a crash; and URLs that an account may not name.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{ApiReaction, ApiRequest, Fixture, SmsApi, bind, until};
use serde_json::json;
use std::sync::Arc;

const PATHS: &str = r#"
[[business.front-end]]
path = "/cgi-bin/sendsms"
plugin = "kannel-front-end"
[[business.front-end]]
path = "/send"
plugin = "jasmin-front-end"
[[business.front-end]]
path = "/2010-04-01"
plugin = "twilio-front-end"
"#;

/// A secret in the URLs, which no log may show.
const SECRET: &str = "u-r-l-secret";

/// An appliance whose account `shop` may set DLR URLs of the API below `dlr`, and whose account `open` may set those of
/// all public hosts at its port.
fn config(fixture: &Fixture, api: &SmsApi, sink: &Sink) -> Result<TestDaemonConfig> {
    let push = |pattern: &str| {
        let url = api.base_url();
        format!("push = {{ url = \"{url}own\", secret = \"key\", window = 8, dlr-urls = [\"{pattern}\"] }}\n")
    };
    let mut config = fixture.config()?;
    config
        .business_account(
            "shop",
            "source = { default = \"10655\" }",
            &push(&format!("{}dlr/*", api.base_url())),
        )
        .business_account(
            "open",
            "source = { default = \"10655\" }",
            &push(&format!("{}*", api.base_url().replace("127.0.0.1", "*"))),
        )
        .peer("upstream", sink.address(), "")
        .tables(PATHS)
        .native("upstream");
    Ok(config)
}

fn bind_all(fixture: &Fixture, appliance: &TestDaemon) -> Result<()> {
    for name in ["kannel-front-end", "jasmin-front-end", "twilio-front-end"] {
        let component = fixture.component(&name.replace('-', "_"))?;
        bind(appliance, "front-end", name, &component, &behaviour_tests::shipped_policy(name)?, &json!({}))?;
    }
    Ok(())
}

/// Sends a form; returns the status and the body of the response.
fn post(
    appliance: &TestDaemon,
    path: &str,
    login: Option<&str>,
    form: &[(&str, &str)],
) -> Result<(u16, String)> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent.post(format!("http://{}{path}", appliance.config().business()));
    if let Some(login) = login {
        request = request.header("authorization", login);
    }
    let mut response = request.send_form(form.iter().copied())?;
    Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
}

fn kannel(appliance: &TestDaemon, account: &str, url: &str) -> Result<(u16, String)> {
    let form = [
        ("username", account),
        ("password", PASSWORD),
        ("to", "8613012345671"),
        ("text", "Hello Kannel"),
        ("dlr-mask", "3"),
        ("dlr-url", url),
    ];
    post(appliance, "/cgi-bin/sendsms", None, &form)
}

fn jasmin(appliance: &TestDaemon, url: &str) -> Result<(u16, String)> {
    let form = [
        ("username", "shop"),
        ("password", PASSWORD),
        ("to", "8613012345672"),
        ("content", "Hello Jasmin"),
        ("dlr-level", "2"),
        ("dlr-url", url),
    ];
    post(appliance, "/send", None, &form)
}

fn twilio(appliance: &TestDaemon, url: &str) -> Result<(u16, String)> {
    let form = [("To", "+8613012345673"), ("Body", "Hello Twilio"), ("StatusCallback", url)];
    // shop:secret
    let login = Some("Basic c2hvcDpzZWNyZXQ=");
    post(appliance, "/2010-04-01/Accounts/shop/Messages.json", login, &form)
}

fn request(requests: &[ApiRequest], line: &str) -> Result<ApiRequest> {
    let found = requests.iter().rev().find(|request| request.line.starts_with(line));
    found.cloned().with_context(|| format!("no request {line}: {requests:?}"))
}

#[test]
fn dlrs_go_to_the_urls_of_requests_over_a_crash() -> Result<()> {
    let fixture = Fixture::new()?;
    let api = SmsApi::start()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    let appliance = config(&fixture, &api, &sink)?.start()?;
    bind_all(&fixture, &appliance)?;
    // The customer is down, and after the crash takes each DLR.
    api.react(&[ApiReaction::Status(503); 3]);
    let url = |name: &str| format!("{}dlr/{name}?key={SECRET}", api.base_url());
    let sent = kannel(&appliance, "shop", &format!("{}&status=%d&to=%p&from=%P&answer=%A", url("kannel")))?;
    assert_eq!(sent, (202, "0: Accepted for delivery".to_owned()));
    let (status, sent) = jasmin(&appliance, &url("jasmin"))?;
    let id = sent.strip_prefix("Success \"").and_then(|rest| rest.strip_suffix('"'));
    let id = id.with_context(|| format!("{status}: {sent}"))?.to_owned();
    let (status, created) = twilio(&appliance, &url("twilio"))?;
    ensure!(status == 201, "{status}: {created}");
    until("each DLR was pushed once", || Ok(api.requests().len() >= 3))?;
    until("the failures are counted", || {
        Ok(appliance.get("/v1/business")?.to_string().contains("\"failures\":3"))
    })?;
    let log = appliance.log(10_000);
    ensure!(!log.contains(SECRET) && log.contains("push rejected"), "the log: {log}");

    api.react(&[ApiReaction::Text("ACK/Jasmin"); 3]);
    let appliance = appliance.kill()?.start()?;
    until("each DLR is acknowledged", || {
        Ok(appliance.get("/v1/business")?.to_string().contains("\"pushed\":3"))
    })?;
    let requests = api.requests();
    ensure!(requests.len() == 6, "nothing is pushed twice: {requests:?}");
    let kannel = request(&requests[3..], "GET /dlr/kannel")?.line;
    ensure!(
        kannel.starts_with(&format!(
            "GET /dlr/kannel?key={SECRET}&status=1&to=8613012345671&from=10655&answer=id%3A"
        )) && kannel.contains("stat%3ADELIVRD"),
        "{kannel}"
    );
    let jasmin = request(&requests[3..], "POST /dlr/jasmin")?.text;
    ensure!(
        jasmin.starts_with(&format!("id={id}&id_smsc="))
            && jasmin.contains("&message_status=DELIVRD&level=2&"),
        "{jasmin}"
    );
    let twilio = request(&requests[3..], "POST /dlr/twilio")?.text;
    let sid =
        serde_json::from_str::<serde_json::Value>(&created)?["sid"].as_str().unwrap_or_default().to_owned();
    ensure!(
        twilio.starts_with(&format!(
            "MessageSid={sid}&SmsSid={sid}&AccountSid=shop&From=10655&To=%2B8613012345673"
        )) && twilio.ends_with("&MessageStatus=delivered&SmsStatus=delivered"),
        "{twilio}"
    );
    ensure!(!appliance.log(10_000).contains(SECRET), "the log shows a URL");
    Ok(())
}

#[test]
fn a_request_names_no_url_that_the_account_may_not_name() -> Result<()> {
    let fixture = Fixture::new()?;
    let api = SmsApi::start()?;
    let tally = Arc::new(Tally::new(10));
    let sink = Sink::start(SinkOptions { receipts: true, ..SinkOptions::default() }, &tally)?;
    let appliance = config(&fixture, &api, &sink)?.start()?;
    bind_all(&fixture, &appliance)?;
    for url in [format!("{}other", api.base_url()), "http://evil.example/dlr/".to_owned()] {
        assert_eq!(kannel(&appliance, "shop", &url)?, (403, "DLR-URL not allowed, rejected".to_owned()));
        let (status, refused) = jasmin(&appliance, &url)?;
        ensure!(status == 400 && refused.contains("[dlr-url]"), "{status}: {refused}");
        let (status, refused) = twilio(&appliance, &url)?;
        ensure!(status == 400 && refused.contains("\"code\":21609"), "{status}: {refused}");
    }
    // A private address, literally and by name.
    assert_eq!(kannel(&appliance, "open", &format!("{}dlr/", api.base_url()))?.0, 403);
    ensure!(sink.message_count() == 0, "nothing was accepted");
    let by_name = format!("{}dlr/", api.base_url()).replace("127.0.0.1", "localhost");
    assert_eq!(kannel(&appliance, "open", &by_name)?.0, 202);
    until("the push is refused", || {
        Ok(appliance.get("/v1/business")?.to_string().contains("no public address"))
    })?;
    ensure!(api.requests().is_empty(), "the appliance called a private address: {:?}", api.requests());
    Ok(())
}

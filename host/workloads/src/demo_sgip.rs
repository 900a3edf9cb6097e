//! `cargo xtask demo --sgip`: the SGIP platform end to end, with a sample business system and gateway.

use super::demo::{DemoSetup, Options};
use anyhow::{Context, Result, ensure};
use api::{FinishedMessageView, HistoryPageView};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::sample::{SampleBusiness, SampleGateway};
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};

const SECRET: &str = "sample-secret";
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn run(options: &Options) -> Result<()> {
    let DemoSetup { binary, guests, folder } = DemoSetup::new(options, "demo-sgip")?;
    let component = guests.join("prefix_router.wasm");
    let shop = SampleBusiness::start(SECRET)?;
    let mut config = TestDaemonConfig::new(&binary, &folder)?;
    let gateway = SampleGateway::start(config.sgip())?;
    let business = format!("push = {{ url = {:?}, secret = {SECRET:?} }}", shop.url());
    config
        .archive("sqlite:archive.db")
        .business_account("shop", "source = { default = \"10655\" }", &business)
        .gateway(
            "unicom",
            gateway.address(),
            "default-account = \"shop\"\nfields = { corp-id = \"12345\", service-type = \"DEMO\" }",
        )
        .tables("[[opt-out]]\nlanguage = \"en\"\nstop = [\"STOP\"]\nstart = [\"START\"]\n");
    let policy = "[default]\nlegs = [{ peer = \"unicom\" }]\nnote = \"everything to the gateway\"\n";
    let appliance = config.router(&component, policy)?.start()?;
    println!("demo: the appliance is up; business systems submit at http://{}", config.business());
    println!("demo: its SGIP listener is on {}, the sample gateway on {}", config.sgip(), gateway.address());

    let call = json!({ "to": "8613012345678", "text": "您好, hello", "reference": "order 7" });
    let (status, answer) = submit(&config, &call, Some("order-7"))?;
    println!("demo: the business system submits {call}\n      and is answered {status}: {answer}");
    ensure!(status == 202, "not accepted");
    let (_, again) = submit(&config, &call, Some("order-7"))?;
    ensure!(again == answer, "the repeated request got another answer");
    println!(
        "demo: repeated with the same idempotency key, it gets the same answer, and nothing is sent twice"
    );

    let submit_ = gateway.submits().recv_timeout(TIMEOUT).context("no Submit came")?;
    println!(
        "demo: the gateway received a Submit from {} for {}: {:?} (coding {})",
        String::from_utf8_lossy(&submit_.sp_number),
        String::from_utf8_lossy(&submit_.users[0]),
        sgip::text::decode(submit_.coding, &submit_.content),
        submit_.coding
    );
    let report = shop.pushes().recv_timeout(TIMEOUT).context("no DLR was pushed")?;
    println!("demo: its Report is pushed to the business system, signed:\n      {report}");
    ensure!(report["state"] == "delivered" && report["reference"] == "order 7", "not the expected DLR");

    gateway.deliver("8613012345678", "10655", "thanks")?;
    let reply = shop.pushes().recv_timeout(TIMEOUT).context("no reply was pushed")?;
    println!("demo: a subscriber's reply is pushed too:\n      {reply}");
    ensure!(reply["text"] == "thanks", "not the expected reply");

    gateway.deliver("8613012345678", "10655", "STOP")?;
    shop.pushes().recv_timeout(TIMEOUT).context("no STOP was pushed")?;
    let (status, refused) = submit(&config, &call, None)?;
    println!(
        "demo: after STOP the next text for that subscriber is refused with {status}: {}",
        refused["detail"]
    );
    ensure!(status == 422, "not refused");

    let id = answer["messages"][0]["id"].as_str().context("an id")?.to_owned();
    let found = archived(&appliance, "8613012345678", &id)?;
    println!("demo: the archive's record of the first message:\n{:#}", json!(found));
    let statistics = appliance.get("/v1/statistics?by=day")?;
    println!("demo: statistics of the day:\n{statistics:#}");
    if options.exit {
        let (status, _) = appliance.stop()?;
        ensure!(status.success(), "the appliance stopped with {status}");
        println!("demo: done");
        return Ok(());
    }
    let http = config.http();
    println!("\nIt runs until Ctrl-C. To explore:\n");
    println!(
        "  curl -s -u shop:{PASSWORD} -H 'Idempotency-Key: k1' -d '{{\"to\": \"8613012345679\", \"text\": \"hi\"}}' http://{}/v1/messages",
        config.business()
    );
    println!("  TOKEN=$(cat {})", appliance.config().data().join("token").display());
    for path in [
        "/v1/history?number=8613012345678&trace=1",
        "/v1/history/export?format=csv",
        "/v1/business",
        "/v1/opt-outs",
    ] {
        println!("  curl -s -H \"Authorization: Bearer $TOKEN\" 'http://{http}{path}'");
    }
    appliance.wait_for_end();
    Ok(())
}

/// A call of the business system.
pub(super) fn submit(config: &TestDaemonConfig, body: &Value, key: Option<&str>) -> Result<(u16, Value)> {
    // base64 of "shop:" and the password.
    let login = format!("Basic {}", encode(format!("shop:{PASSWORD}").as_bytes()));
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request =
        agent.post(format!("http://{}/v1/messages", config.business())).header("Authorization", login);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let mut response = request.send(body.to_string())?;
    let text = response.body_mut().read_to_string()?;
    Ok((response.status().as_u16(), serde_json::from_str(&text)?))
}

fn encode(octets: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(octets)
}

/// The archive's record of a message, once the pump has written it.
pub(super) fn archived(appliance: &TestDaemon, number: &str, id: &str) -> Result<FinishedMessageView> {
    let path = format!("/v1/history?number={number}&trace=1");
    let page = appliance.read_until(TIMEOUT, &path, |page: &HistoryPageView| {
        page.messages.iter().any(|message| message.id == id)
    })?;
    page.messages.into_iter().find(|message| message.id == id).context("the record")
}

//! `cargo xtask demo --china`: a business system reaches the subscribers of all three Chinese networks, each through a
//! sample gateway with the network's protocol.

use super::demo::{DemoSetup, Options};
use super::demo_sgip::{TIMEOUT, archived, submit};
use anyhow::{Context, Result, ensure};
use cmpp::Cmpp;
use serde_json::{Value, json};
use smgp::Smgp;
use sp_session::{SpProtocol, Submission};
use testkit::sample::{SampleBusiness, SampleGateway};
use testkit::sample_sp::SampleSpGateway;
use testkit::test_daemon::{PASSWORD, TestDaemonConfig};

const SECRET: &str = "sample-secret";

/// Numbers of the three networks.
const MOBILE: &str = "13800138000";
const TELECOM: &str = "13300133000";
const UNICOM: &str = "13000130000";

/// Replies do not go to a subscriber, so no route matches them: they go to the gateways' default account.
const POLICY: &str = "[[route]]\nprefix = \"138\"\nlegs = [{ peer = \"mobile\" }]\nnote = \"China Mobile: CMPP\"\n\n\
    [[route]]\nprefix = \"133\"\nlegs = [{ peer = \"telecom\" }]\nnote = \"China Telecom: SMGP\"\n\n\
    [[route]]\nprefix = \"130\"\nlegs = [{ peer = \"unicom\" }]\nnote = \"China Unicom: SGIP\"\n";

pub(crate) fn run(options: &Options) -> Result<()> {
    let DemoSetup { binary, guests, folder } = DemoSetup::new(options, "demo-china")?;
    let component = guests.join("prefix_router.wasm");
    let shop = SampleBusiness::start(SECRET)?;
    let mut config = TestDaemonConfig::new(&binary, &folder)?;
    let unicom = SampleGateway::start(config.sgip())?;
    let (mobile, telecom) = (SampleSpGateway::<Cmpp>::start()?, SampleSpGateway::<Smgp>::start()?);
    let business = format!("push = {{ url = {:?}, secret = {SECRET:?} }}", shop.url());
    config
        .archive("sqlite:archive.db")
        .business_account("shop", "source = { default = \"10655\" }", &business)
        .gateway("unicom", unicom.address(), "default-account = \"shop\"");
    for (name, protocol, address) in
        [("mobile", "cmpp", mobile.address()), ("telecom", "smgp", telecom.address())]
    {
        config.tables(&format!(
            "[[gateway]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\naddress = \"{address}\"\n\
             login-name = \"901234\"\nlogin-password = \"pw\"\ndefault-account = \"shop\"\n\
             submit-fields = {{ service = \"DEMO\" }}\n"
        ));
    }
    let appliance = config.router(&component, POLICY)?.start()?;
    println!("demo: the appliance is up; business systems submit at http://{}", config.business());
    println!(
        "demo: China Mobile's gateway is on {} (CMPP 3.0), China Telecom's on {} (SMGP 3.0), China Unicom's on {} (SGIP 1.2)",
        mobile.address(),
        telecom.address(),
        unicom.address()
    );
    for name in ["peer=mobile", "peer=telecom"] {
        appliance.wait_for_line(TIMEOUT, |text| text.contains("bound") && text.contains(name))?;
    }

    let mut first = None;
    for user in [MOBILE, TELECOM, UNICOM] {
        let call = json!({ "to": user, "text": "您好, hello", "reference": format!("order {user}") });
        let (status, answer) = submit(&config, &call, None)?;
        ensure!(status == 202, "not accepted: {answer}");
        println!("demo: the business system submits {call}");
        match user {
            MOBILE => show::<Cmpp>("CMPP", &mobile)?,
            TELECOM => show::<Smgp>("SMGP", &telecom)?,
            _ => {
                let taken = unicom.submits().recv_timeout(TIMEOUT).context("no Submit came by SGIP")?;
                let text = sgip::text::decode(taken.coding, &taken.content);
                println!("demo: the gateway received by SGIP: {text:?} (coding {})", taken.coding);
            }
        }
        let report = pushed(&shop, "its DLR")?;
        ensure!(
            report["state"] == "delivered" && report["reference"] == call["reference"],
            "not the expected DLR: {report}"
        );
        println!("demo: its report is pushed to the business system, signed:\n      {report}");
        first.get_or_insert(answer);
    }

    mobile.deliver(MOBILE, "10655", "thanks by CMPP");
    println!("demo: a subscriber's reply is pushed too:\n      {}", reply(&shop, "thanks by CMPP")?);
    telecom.deliver(TELECOM, "10655", "谢谢");
    println!("demo: and another:\n      {}", reply(&shop, "谢谢")?);
    unicom.deliver(UNICOM, "10655", "thanks by SGIP")?;
    println!("demo: and the third:\n      {}", reply(&shop, "thanks by SGIP")?);

    let id = first.context("an answer")?["messages"][0]["id"].as_str().context("an id")?.to_owned();
    let found = archived(&appliance, MOBILE, &id)?;
    println!("demo: the archive's record of the first message:\n{:#}", json!(found));
    if options.exit {
        let (status, _) = appliance.stop()?;
        ensure!(status.success(), "the appliance stopped with {status}");
        println!("demo: done");
        return Ok(());
    }
    println!("\nIt runs until Ctrl-C. To explore:\n");
    println!(
        "  curl -s -u shop:{PASSWORD} -d '{{\"to\": \"{MOBILE}\", \"text\": \"hi\"}}' http://{}/v1/messages",
        config.business()
    );
    println!("  TOKEN=$(cat {})", appliance.config().data().join("token").display());
    for path in ["/v1/links", "/v1/queues", "/v1/history?trace=1"] {
        println!("  curl -s -H \"Authorization: Bearer $TOKEN\" 'http://{}{path}'", config.http());
    }
    appliance.wait_for_end();
    Ok(())
}

fn show<P: SpProtocol>(protocol: &str, gateway: &SampleSpGateway<P>) -> Result<()> {
    let taken: Submission = gateway
        .submissions()
        .recv_timeout(TIMEOUT)
        .with_context(|| format!("no Submit came by {protocol}"))?;
    let text = sgip::text::decode(taken.content.format, &taken.content.octets);
    println!("demo: the gateway received by {protocol}: {text:?} (coding {})", taken.content.format);
    Ok(())
}

fn pushed(shop: &SampleBusiness, what: &str) -> Result<Value> {
    shop.pushes().recv_timeout(TIMEOUT).with_context(|| format!("{what} was not pushed"))
}

fn reply(shop: &SampleBusiness, text: &str) -> Result<Value> {
    let reply = pushed(shop, "a reply")?;
    ensure!(reply["text"] == text, "not the expected reply: {reply}");
    Ok(reply)
}

//! `cargo xtask demo --gsm`: phones that send and receive through the real OsmoHLR. The MSC and its phones are
//! simulated, since a real MSC requires a radio network.

use super::demo::{DemoSetup, Options};
use anyhow::{Context, Result, ensure};
use api::TraceView;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use testkit::load::Probe;
use testkit::load::gsm::{MoAnswer, MoSender, MscOptions, MtBehaviour, SimulatedMsc, Subscribers};
use testkit::osmocom::Hlr;
use testkit::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of the service centre, as on a SIM.
const CENTRE: &str = "19990014444";
/// The digits after the country code.
const ALICE: u64 = 5_551_230_001;
const BOB: u64 = 5_551_230_002;

/// Numbers of this network are routed to the home network; messages to the account's short number go to the account.
const ROUTES: &str = "[[route]]\nprefix = \"1555123\"\nhome = true\nnote = \"a phone of ours\"\n\n\
                      [[route]]\nprefix = \"10655\"\nlegs = [{ peer = \"demo\" }]\nnote = \"the account's number\"\n\n\
                      [default]\nreject = \"no-route\"\n";

pub(crate) fn run(options: &Options) -> Result<()> {
    workspace::packages::install(|package| package == "osmo-hlr")?;
    let DemoSetup { binary, guests, folder } = DemoSetup::new(options, "demo-gsm")?;
    let component = guests.join("prefix_router.wasm");
    let hlr = Hlr::start(&folder)?;
    for subscriber in [ALICE, BOB] {
        hlr.subscriber(&Subscribers::imsi_digits(subscriber), &number(subscriber))?;
    }
    println!(
        "demo: osmo-hlr is up on {}, with two subscribers: Alice is +{}, Bob is +{}",
        hlr.gsup(),
        number(ALICE),
        number(BOB)
    );

    let proxy = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut config = TestDaemonConfig::new(&binary, &folder)?;
    let resolver = component.with_file_name("hlr_resolver.wasm");
    config
        .archive("sqlite:archive.db")
        .account("demo", "")
        .tables(&format!(
            "[[gsm]]\nname = \"phones\"\nlisten = \"{proxy}\"\nhlr = \"{}\"\nctrl = \"{}\"\nservice-centre = \"{CENTRE}\"\n",
            hlr.gsup(),
            hlr.ctrl()
        ))
        .tables(&format!(
            "[resolver]\nplugin = \"hlr-resolver\"\ncomponent = {:?}\npolicy = {:?}\n[resolver.grants]\nhlr = true\n",
            resolver.display().to_string(),
            workspace::root().join("policies/hlr.toml").display().to_string()
        ));
    let appliance = config.router(&component, ROUTES)?.start()?;
    println!("demo: the appliance is up between MSC and HLR: MSCs connect to {proxy}");

    let mut phones = MscOptions::new(proxy, "MSC-1");
    (phones.range, phones.keep) = (ALICE..BOB + 1, true);
    let msc = SimulatedMsc::start(phones)?;
    msc.wait_for_located(2, TIMEOUT)?;
    println!("demo: an MSC has connected, and osmo-hlr has located both phones there; it says of Alice:");
    let shown = hlr.show(&Subscribers::imsi_digits(ALICE))?;
    for line in shown.lines().filter(|line| ["MSISDN", "VLR"].iter().any(|word| line.contains(word))) {
        println!("      {}", line.trim());
    }

    let mut esme = Probe::bind(appliance.smpp(), "demo", PASSWORD, "1", true)?;
    let refused = |status: u32| anyhow::anyhow!("refused with status {status:#x}");
    let id = esme.submit_to(ALICE, 1)?.map_err(refused)?;
    println!(
        "demo: an ESME submits message {id} for Alice; her number is looked up over CTRL, and her phone receives it:"
    );
    print_texts(&msc, 1)?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    println!("demo: the ESME receives the delivery receipt:\n      {}", esme.delivered[0]);

    let alice =
        MoSender { subscriber: ALICE, number: &number(ALICE), centre: CENTRE, reference: 1, report: false };
    answered(msc.submit(&alice, &number(BOB), "Hello Bob, this is Alice.", TIMEOUT))?;
    println!(
        "demo: Alice sends a message to Bob; it is acknowledged when it is on disk, and Bob's phone receives it:"
    );
    print_texts(&msc, 2)?;

    answered(msc.submit(&MoSender { reference: 2, ..alice }, "10655", "Thank you", TIMEOUT))?;
    esme.wait_for_delivered(2, TIMEOUT)?;
    println!("demo: Alice answers the ESME, which gets:\n      {}", esme.delivered[1]);

    msc.behave(MtBehaviour::Full(Duration::from_secs(1)), Duration::ZERO);
    let id = esme.submit_to(BOB, 2)?.map_err(refused)?;
    msc.wait_for_arrivals(3, TIMEOUT)?;
    println!(
        "demo: the memory of Bob's phone is full: it refuses message {id}, which waits in the appliance"
    );
    msc.wait_for_accepted(3, TIMEOUT)?;
    println!(
        "demo: a second later the phone reports that memory is available, and receives the message immediately:"
    );
    print_texts(&msc, 4)?;
    let path = format!("/v1/messages/{id}");
    let trace = appliance
        .read_until(TIMEOUT, &path, |trace: &TraceView| trace.finished)
        .or_else(|_| appliance.read(&path))?;
    println!("demo: the steps of its trace:\n{:#}", json!(trace.steps));
    println!("demo: statistics of the network:\n{:#}", appliance.get("/v1/gsm")?);

    if options.exit {
        let (status, _) = appliance.stop()?;
        ensure!(status.success(), "the appliance stopped with {status}");
        println!("demo: done");
        return Ok(());
    }
    print_next_steps(&appliance, &hlr);
    appliance.wait_for_end();
    Ok(())
}

fn number(subscriber: u64) -> String {
    Subscribers::new(0, "1").msisdn(subscriber)
}

fn answered(answer: MoAnswer) -> Result<()> {
    ensure!(answer == MoAnswer::Accepted, "the phone's message was not accepted: {answer:?}");
    Ok(())
}

/// Waits for this many short messages in all, and prints the last one.
fn print_texts(msc: &SimulatedMsc, count: usize) -> Result<()> {
    msc.wait_for_arrivals(count, TIMEOUT)?;
    let report = msc.report();
    let arrival = report.arrivals.last().context("a short message")?;
    println!("      {:015}: {:?}", arrival.imsi, arrival.text().context("a text")?);
    Ok(())
}

fn print_next_steps(appliance: &TestDaemon, hlr: &Hlr) {
    let config = appliance.config();
    println!("\nIt runs until Ctrl-C. To explore:\n");
    println!("  TOKEN=$(cat {})", config.data().join("token").display());
    for path in ["/v1/gsm", "/v1/queues", "/v1/history?trace=1"] {
        println!("  curl -s -H \"Authorization: Bearer $TOKEN\" 'http://{}{path}'", config.http());
    }
    println!("  telnet {} 4258   # osmo-hlr", hlr.gsup().ip());
    println!("\n  an ESME of yours: {} system_id demo, password {PASSWORD}", appliance.smpp());
}

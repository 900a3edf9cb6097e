//! `cargo xtask demo --gsm`: phones that send and receive, through the real OsmoHLR. The MSC and its phones are a stand-in's:
//! a real one needs a radio side.

use super::demo::{Options, Prepared};
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::time::Duration;
use xtask::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use xtask::house;
use xtask::load::Probe;
use xtask::load::gsm::{Answers, MoAnswer, MscOptions, Phone, StandInMsc, Subscribers};
use xtask::osmocom::Hlr;

const PATIENCE: Duration = Duration::from_secs(30);
/// The number of the service centre, as SIMs have it.
const CENTRE: &str = "19990014444";
/// The digits behind the country code.
const ALICE: u64 = 5_551_230_001;
const BOB: u64 = 5_551_230_002;

/// Numbers of this network are at home; what phones send to the short number of the account goes there.
const ROUTES: &str = "[[route]]\nprefix = \"1555123\"\nhome = true\nnote = \"a phone of ours\"\n\n\
                      [[route]]\nprefix = \"10655\"\nlegs = [{ peer = \"demo\" }]\nnote = \"the account's number\"\n\n\
                      [default]\nreject = \"no-route\"\n";

pub(crate) fn run(options: &Options) -> Result<()> {
    super::setup::packages(|package| package == "osmo-hlr")?;
    let Prepared { binary, guests, folder } =
        Prepared::new(options, "demo-gsm", &["prefix-router", "hlr-resolver"])?;
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
    let mut blueprint = Blueprint::new(&binary, &folder)?;
    let resolver = component.with_file_name("hlr_resolver.wasm");
    blueprint
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
            house::root().join("policies/hlr.toml").display().to_string()
        ));
    let appliance = blueprint.router(&component, ROUTES)?.start()?;
    println!("demo: the appliance is up between MSC and HLR: MSCs have {proxy} for their HLR");

    let mut phones = MscOptions::new(proxy, "MSC-1");
    (phones.range, phones.keep) = (ALICE..BOB + 1, true);
    let msc = StandInMsc::start(phones)?;
    msc.wait_for_located(2, PATIENCE)?;
    println!("demo: an MSC has connected, and osmo-hlr has located both phones there; it says of Alice:");
    let shown = hlr.show(&Subscribers::imsi_digits(ALICE))?;
    for line in shown.lines().filter(|line| ["MSISDN", "VLR"].iter().any(|word| line.contains(word))) {
        println!("      {}", line.trim());
    }

    let mut esme = Probe::bind(appliance.smpp(), "demo", PASSWORD, "1", true)?;
    let refused = |status: u32| anyhow::anyhow!("refused with status {status:#x}");
    let id = esme.submit_to(ALICE, 1)?.map_err(refused)?;
    println!(
        "demo: an ESME submits message {id} for Alice; her number is looked up over CTRL, and her phone has it:"
    );
    show(&msc, 1)?;
    esme.wait_for_delivered(1, PATIENCE)?;
    println!("demo: and the ESME has its receipt:\n      {}", esme.delivered[0]);

    let alice =
        Phone { subscriber: ALICE, number: &number(ALICE), centre: CENTRE, reference: 1, report: false };
    answered(msc.submit(&alice, &number(BOB), "Hello Bob, this is Alice.", PATIENCE))?;
    println!(
        "demo: Alice writes to Bob; her phone has its answer after the message is on disk, and Bob's phone gets it:"
    );
    show(&msc, 2)?;

    answered(msc.submit(&Phone { reference: 2, ..alice }, "10655", "Thank you", PATIENCE))?;
    esme.wait_for_delivered(2, PATIENCE)?;
    println!("demo: Alice answers the ESME, which gets:\n      {}", esme.delivered[1]);

    msc.behave(Answers::Full(Duration::from_secs(1)), Duration::ZERO);
    let id = esme.submit_to(BOB, 2)?.map_err(refused)?;
    msc.wait_for_arrivals(3, PATIENCE)?;
    println!("demo: Bob's phone is full: it refuses message {id}, which waits in our custody");
    msc.wait_for_taken(3, PATIENCE)?;
    println!("demo: a second later it has room and says so, and gets the message again at once:");
    show(&msc, 4)?;
    let path = format!("/v1/messages/{id}");
    let trace = appliance
        .wait_until(PATIENCE, &path, |trace| trace["state"] == "finished")
        .or_else(|_| appliance.get(&path))?;
    println!("demo: what became of it, step by step:\n{:#}", trace["steps"]);
    println!("demo: the network in figures:\n{:#}", appliance.get("/v1/gsm")?);

    if options.exit {
        let (status, _) = appliance.stop()?;
        ensure!(status.success(), "the appliance stopped with {status}");
        println!("demo: both ways work");
        return Ok(());
    }
    further(&appliance, &hlr);
    appliance.wait_for_end();
    Ok(())
}

fn number(subscriber: u64) -> String {
    Subscribers::new(0, "1").msisdn(subscriber)
}

fn answered(answer: MoAnswer) -> Result<()> {
    ensure!(answer == MoAnswer::Taken, "the phone's message was not taken: {answer:?}");
    Ok(())
}

/// Waits for so many short messages in all, and shows the last.
fn show(msc: &StandInMsc, count: usize) -> Result<()> {
    msc.wait_for_arrivals(count, PATIENCE)?;
    let report = msc.report();
    let arrival = report.arrivals.last().context("a short message")?;
    println!("      {:015}: {:?}", arrival.imsi, arrival.text().context("a text")?);
    Ok(())
}

fn further(appliance: &Appliance, hlr: &Hlr) {
    let blueprint = appliance.blueprint();
    println!("\nIt goes on until Ctrl-C. To look further:\n");
    println!("  TOKEN=$(cat {})", blueprint.data().join("token").display());
    for path in ["/v1/gsm", "/v1/queues", "/v1/history?trace=1"] {
        println!("  curl -s -H \"Authorization: Bearer $TOKEN\" 'http://{}{path}'", blueprint.http());
    }
    println!("  telnet {} 4258   # osmo-hlr", hlr.gsup().ip());
    println!("\n  an ESME of yours: {} system_id demo, password {PASSWORD}", appliance.smpp());
}

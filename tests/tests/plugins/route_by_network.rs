//! Routes by attributes that a lookup sets: the network that currently serves a number.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, bind, until};
use serde_json::{Value, json};
use std::sync::Arc;

const PEER: &str = "dlrs = false\nuncertain = \"send-again\"";
const NETWORKS: &str = "[[source]]\ntable = \"ported\"\n";

/// By their prefix, all these numbers would go south.
const ROUTES: &str = r#"
[[route]]
prefix = "86"
attributes = { mcc = "262", mnc = ["03", "07"] }
legs = [{ peer = "north" }]
note = "network 262-03"

[[route]]
prefix = "86"
attributes = { line-type = "fixed" }
reject = "invalid-destination"

[[route]]
prefix = "86"
attributes = { class = "marketing" }
legs = [{ peer = "north" }]
pace-buckets = [{ name = "marketing", amount = 1, zone = "UTC" }]
send-windows = [{ name = "always", zone = "UTC", opens = "00:00", closes = "24:00" }]

[default]
legs = [{ peer = "south" }]
"#;

const OFFERS: &str = r#"
[[destination]]
prefix = "86"
attributes = { mcc = "262", mnc = "03" }
offers = [{ peer = "south", cost = "0.01" }]

[[destination]]
prefix = "86"
offers = [{ peer = "north", cost = "0.02" }]
"#;

fn trace(appliance: &TestDaemon, id: &str) -> Result<Value> {
    appliance.get(&format!("/v1/messages/{id}"))
}

#[test]
fn the_network_of_a_number_decides_not_its_beginning() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(100));
    let (north, south) =
        (Sink::start(SinkOptions::default(), &tally)?, Sink::start(SinkOptions::default(), &tally)?);
    let mut config = fixture.config()?;
    config
        .account("acme", "")
        .account("shop", "attributes = { class = \"marketing\" }")
        .peer("north", north.address(), PEER)
        .peer("south", south.address(), PEER);
    let appliance = config.start()?;
    let rows = "860000000001,\"262-03,mobile\"\n860000000002,262-01\n860000000003,\"262-01,fixed\"\n";
    appliance.ask("PUT", "/v1/tables/ported?kind=exact", rows.as_bytes())?;
    let lookup = fixture.component("number_portability")?;
    let grants = json!({ "grants": { "tables": ["ported"] } });
    bind(&appliance, "lookup", "number-portability", &lookup, NETWORKS, &grants)?;
    let router = fixture.component("prefix_router")?;
    bind(&appliance, "router", "prefix-router", &router, ROUTES, &json!({}))?;

    let mut acme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "86", false)?;
    let mut submit =
        |number: u64| acme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"));
    let ported = submit(1)?;
    until("the ported number is served by north", || Ok(north.message_count() == 1))?;
    ensure!(trace(&appliance, &ported)?.to_string().contains("network 262-03"));
    submit(2)?;
    until("another network is served by south", || Ok(south.message_count() == 1))?;
    submit(4)?;
    until("so is a number of which nothing is known", || Ok(south.message_count() == 2))?;
    // A number that is asked about is refused after its acceptance.
    let fixed = submit(3)?;
    until("a fixed line is refused", || Ok(trace(&appliance, &fixed)?["state"] == "rejected"))?;

    // An attribute of the account, and the limits of its route.
    let mut shop = Probe::bind(appliance.smpp(), "shop", PASSWORD, "86", false)?;
    let mut ids = Vec::new();
    for number in [5, 6] {
        ids.push(shop.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?);
    }
    until("the first one passes", || Ok(north.message_count() == 2))?;
    let [_, second] = &ids[..] else { anyhow::bail!("{ids:?}") };
    until("the second one waits", || Ok(trace(&appliance, second)?["state"] == "paced"))?;
    let waits = trace(&appliance, second)?;
    let why = waits["waiting_for"].as_str().context("it waits for nothing")?;
    ensure!(why.contains("pace bucket marketing"), "{waits}");

    let least_cost = fixture.component("least_cost")?;
    bind(&appliance, "router", "least-cost", &least_cost, OFFERS, &json!({}))?;
    let mut submit =
        |number: u64| acme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"));
    submit(1)?;
    until("the cheapest offer of its network", || Ok(south.message_count() == 3))?;
    submit(2)?;
    until("the offer of other networks", || Ok(north.message_count() == 3))
}

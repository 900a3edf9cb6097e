//! A router for each of many tenants, compared to one router for all, in alternation.

use super::guests::Guests;
use super::programs::BenchPrograms;
use super::traffic::TrafficSetup;
use super::{Options, median};
use crate::tool_run::{POLICY as UPSTREAM, ToolRun};
use anyhow::Result;
use api::{ActivationRequest, BindingRecord, BindingRequest, PluginVersionView};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::load::SourceReport;

/// A policy that routes all messages to `north`.
const POLICY: &str = "[default]\nlegs = [{ peer = \"north\" }]\nnote = \"everything north\"\n";

pub(super) fn measure(
    programs: &BenchPrograms,
    tool_run: &ToolRun,
    guests: &Guests,
    options: &Options,
) -> Result<()> {
    let component = guests.default("prefix_router");
    let plugin =
        json!({ "name": "prefix-router", "hook": "router", "component": component, "policy": POLICY });
    let task = json!({ "tenants": {
        "tenants": options.tenants, "rounds": options.rounds, "calls": options.tenant_calls, "plugin": plugin
    } });
    let measured = programs.ask(&tool_run.folder.path().join("tenants"), &task)?;
    let number = |key: &str| measured[key].as_f64().unwrap_or(f64::NAN);
    let middle = |kind: &str, share: &str| {
        let rounds = measured[kind][share].as_array().into_iter().flatten();
        median(&rounds.filter_map(Value::as_f64).collect::<Vec<_>>())
    };
    println!("\n7. A router for each of {} tenants, compared with one router, by turns", options.tenants);
    println!(
        "  all bindings by one request: {:.0} ms, {:.1} MB; then one of them: {:.1} ms",
        number("activation"),
        number("memory") / 1e6,
        number("change")
    );
    println!("  A call, median of {} rounds of {} calls", options.rounds, options.tenant_calls);
    for (kind, what) in [
        ("one", "one router for all"),
        ("warm", "a router each, all warm"),
        ("few", "a router each, the default number of instances"),
    ] {
        println!("    {what:<48} p50 {:>8.2} µs  p99 {:>8.2} µs", middle(kind, "p50"), middle(kind, "p99"));
    }
    println!(
        "  p99 of a router each, compared with one router: {:+.0} %",
        (middle("warm", "p99") / middle("one", "p99") - 1.0) * 100.0
    );
    measure_answers(tool_run, guests, options)
}

/// Messages per second of all accounts together.
const RATE: f64 = 10_000.0;

/// Latency of answers to an account of each tenant at a steady rate: with one router for all, and with a router each.
fn measure_answers(tool_run: &ToolRun, guests: &Guests, options: &Options) -> Result<()> {
    println!(
        "  Answers to {} accounts, {RATE} messages a second over all ({} s each), p50 and p99 in ms",
        options.tenants, options.seconds
    );
    let one = start(tool_run, "one-router", options.tenants)?;
    let each = start(tool_run, "router-each", options.tenants)?;
    bind_tenants(&each, guests, options.tenants)?;
    let time = Duration::from_secs_f64(options.seconds);
    let run = |setup: &TrafficSetup| setup.run_accounts(options.tenants, RATE, time);
    // An uncounted run, in which instances are created, and files and heaps reach their size.
    run(&one)?;
    run(&each)?;
    let share = |report: &SourceReport, share: f64| report.answers.quantile(share).as_secs_f64() * 1e3;
    let mut ratios = Vec::new();
    for turn in 0..options.pairs {
        let (with_one, with_each);
        if turn % 2 == 0 {
            (with_one, with_each) = (run(&one)?, run(&each)?);
        } else {
            let first = run(&each)?;
            (with_one, with_each) = (run(&one)?, first);
        }
        println!(
            "    one router {:>6.2} {:>7.2}    a router each {:>6.2} {:>7.2}",
            share(&with_one, 0.5),
            share(&with_one, 0.99),
            share(&with_each, 0.5),
            share(&with_each, 0.99),
        );
        ratios.push(share(&with_each, 0.99) / share(&with_one, 0.99));
    }
    println!(
        "  p99 of answers, a router each against one: median {:+.0} % (aim: 20 %)",
        (median(&ratios) - 1.0) * 100.0
    );
    Ok(())
}

/// Starts an appliance with `tenants` tenants, an account for each, and one router.
fn start(tool_run: &ToolRun, folder: &str, tenants: usize) -> Result<TrafficSetup> {
    let mut config = tool_run.config(folder)?;
    config.router(&tool_run.component, UPSTREAM)?;
    config.listener("connections = 100000\nconnections-per-address = 100000\nunbound-connections = 100000");
    // Up to half of the instances may be idle ones of tenants.
    config.tables(&format!("[plugins]\ninstances = {}", (tenants * 2 + 64).min(4096)));
    for n in 0..tenants {
        config.tables(&format!("[[tenant]]\nname = \"tenant{n}\""));
        config.account(&format!("shop{n}"), &format!("tenant = \"tenant{n}\""));
    }
    TrafficSetup::start(&mut config)
}

/// Binds a router with a policy of its own for each tenant.
fn bind_tenants(setup: &TrafficSetup, guests: &Guests, tenants: usize) -> Result<()> {
    let octets = std::fs::read(guests.default("prefix_router"))?;
    let uploaded: PluginVersionView = setup.appliance.upload("PUT", "/v1/plugins/prefix-router", &octets)?;
    let binding = |policy| BindingRequest {
        plugin: "prefix-router".to_owned(),
        version: Some(uploaded.version.clone()),
        policy: Some(policy),
        ..BindingRequest::default()
    };
    let of_tenant = |n: usize| BindingRequest {
        tenant: Some(format!("tenant{n}")),
        peers: Some(vec!["upstream".to_owned()]),
        ..binding(format!("# tenant{n}\n{UPSTREAM}"))
    };
    let request = ActivationRequest {
        chain: Some((0..tenants).map(of_tenant).chain([binding(UPSTREAM.to_owned())]).collect()),
        ..ActivationRequest::default()
    };
    setup.appliance.call::<BindingRecord>("POST", "/v1/hooks/router/activate", &request).map(drop)
}

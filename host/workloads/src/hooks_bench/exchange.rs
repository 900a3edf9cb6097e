//! Activations of large components under traffic.

use super::guests::Guests;
use super::programs::BenchPrograms;
use super::traffic::TrafficSetup;
use super::{Options, longest, median};
use crate::tool_run::{POLICY, ToolRun};
use anyhow::Result;
use api::{ActivationRequest, BindingRecord, PluginVersionView};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use testkit::guest;
use testkit::load::StopFlag;

/// Approximate size of the component.
const OCTETS: usize = 1 << 20;
/// Threads that call the router, and calls per second of each.
const CALLERS: (u32, u32) = (2, 5_000);
/// Messages per second through the daemon.
pub(super) const RATE: f64 = 5_000.0;

pub(super) fn measure(
    programs: &BenchPrograms,
    tool_run: &ToolRun,
    guests: &Guests,
    options: &Options,
) -> Result<()> {
    println!("\n3. Activations of a large component under traffic");
    let rust = std::fs::read(guests.default("prefix_router"))?;
    let javascript = std::fs::read(guests.example("js"))?;
    let (padded, real) = (
        format!("prefix-router, padded to {:.2} MB with an unused section", OCTETS as f64 / 1e6),
        format!("the example in JS: {:.2} MB, an interpreter's code", javascript.len() as f64 / 1e6),
    );
    let folder = tool_run.folder.path();
    calls(programs, folder, &padded, &rust, OCTETS, "router", ROUTE_ALL_POLICY, options.activations)?;
    let policy = guests.example_policy()?;
    // The component compiles slowly, and each activation compiles a new version: so there are fewer activations.
    calls(programs, folder, &real, &javascript, 0, "router", &policy, options.activations.div_ceil(4))?;
    sockets(tool_run, &padded, &rust, options)
}

/// A policy that routes all messages to `north`.
const ROUTE_ALL_POLICY: &str = "[default]\nlegs = [{ peer = \"north\" }]\nnote = \"everything north\"\n";

/// Router calls in a separate process: the longest call, with and without activations.
#[allow(clippy::too_many_arguments, reason = "parameters of one measurement")]
fn calls(
    programs: &BenchPrograms,
    folder: &Path,
    what: &str,
    component: &[u8],
    octets: usize,
    hook: &str,
    policy: &str,
    activations: usize,
) -> Result<()> {
    let versions = folder.join("versions");
    std::fs::create_dir_all(&versions)?;
    let mut plugins = Vec::new();
    for turn in 0..=activations {
        let path = versions.join(format!("{turn}.wasm"));
        std::fs::write(&path, guest::padded(component, &format!("turn {turn}"), octets))?;
        plugins.push(json!({ "name": "exchanged", "hook": hook, "component": path, "policy": policy }));
    }
    let task = json!({ "exchange": { "versions": plugins, "threads": CALLERS.0, "rate": CALLERS.1 } });
    let measured = programs.ask(&folder.join("exchanged"), &task)?;
    let times = |what: &str| -> Vec<f64> {
        measured[what].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let (uploads, activated) = (times("uploads"), times("activations"));
    println!("  {what}");
    println!(
        "    {} times: upload and compile p50 {:.0} ms, longest {:.0} ms; activate p50 {:.1} ms, longest {:.1} ms",
        activated.len(),
        median(&uploads),
        longest(&uploads),
        median(&activated),
        longest(&activated)
    );
    for (name, calls) in [("meanwhile", &measured["during"]), ("without", &measured["without"])] {
        let number = |what: &str| calls[what].as_f64().unwrap_or(f64::NAN);
        println!(
            "    {name:<10} {:>6} calls in {:>4.1} s: p50 {:.4} ms, p99.9 {:.3} ms, longest {:.2} ms; of more than 5 ms: {}",
            calls["calls"],
            number("seconds"),
            number("median"),
            number("p999"),
            number("longest"),
            calls["late"]
        );
    }
    Ok(())
}

/// The same through a daemon: latency of the answers to submissions.
fn sockets(tool_run: &ToolRun, what: &str, component: &[u8], options: &Options) -> Result<()> {
    let mut config = tool_run.config("exchange")?;
    config.router(&tool_run.component, POLICY)?;
    let setup = TrafficSetup::start(&mut config)?;
    println!("  the same component, in the daemon: {what}");
    let begun = Instant::now();
    let mut activated = Vec::new();
    let during = setup.run_steady(|appliance| {
        for turn in 0..options.activations {
            let octets = guest::padded(component, &format!("daemon {turn}"), OCTETS);
            let uploaded: PluginVersionView =
                appliance.upload("PUT", "/v1/plugins/prefix-router", &octets)?;
            let activation = ActivationRequest::of("prefix-router", &uploaded.version, POLICY);
            let begun = Instant::now();
            let _: BindingRecord = appliance.call("POST", "/v1/hooks/router/activate", &activation)?;
            activated.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    })?;
    let time = begun.elapsed();
    let without = setup.run_steady(|_| {
        StopFlag::default().pause(time);
        Ok(())
    })?;
    println!(
        "    {} activations by HTTP: p50 {:.1} ms, longest {:.1} ms",
        activated.len(),
        median(&activated),
        longest(&activated)
    );
    for (name, report) in [("meanwhile", &during), ("without", &without)] {
        let ms = |share| report.answers.quantile(share).as_secs_f64() * 1e3;
        println!(
            "    {name:<10} {:>6} submissions at {RATE:.0} a second: answered after p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, longest {:.1} ms",
            report.answers.count(),
            ms(0.5),
            ms(0.99),
            ms(0.999),
            report.answers.max().as_secs_f64() * 1e3
        );
    }
    Ok(())
}

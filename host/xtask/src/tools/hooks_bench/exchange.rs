//! Activations of large components under traffic.

use super::guests::Guests;
use super::measuring::Measuring;
use super::traffic::Line;
use super::{Options, longest, median};
use crate::tools::place::{POLICY, Place};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use xtask::guest;
use xtask::load::Stop;

/// A component of about this size is exchanged.
const OCTETS: usize = 1 << 20;
/// Threads that call the router, and calls a second of each.
const CALLERS: (u32, u32) = (2, 5_000);
/// Messages a second through the daemon.
pub(super) const RATE: f64 = 5_000.0;

pub(super) fn measure(
    measuring: &Measuring,
    place: &Place,
    guests: &Guests,
    options: &Options,
) -> Result<()> {
    println!("\n3. Activations of a large component under traffic");
    let rust = std::fs::read(guests.default("prefix_router"))?;
    let javascript = std::fs::read(guests.example("js"))?;
    let (padded, real) = (
        format!("prefix-router, filled up to {:.2} MB by a section that nobody reads", OCTETS as f64 / 1e6),
        format!("the example in JS: {:.2} MB, an interpreter's code", javascript.len() as f64 / 1e6),
    );
    let folder = place.folder.path();
    calls(measuring, folder, &padded, &rust, OCTETS, "router", POLICY_OF_ALL, options.activations)?;
    let policy = guests.example_policy()?;
    // Compiling it takes long, and every version is compiled: fewer of them.
    calls(measuring, folder, &real, &javascript, 0, "router", &policy, options.activations.div_ceil(4))?;
    sockets(place, &padded, &rust, options)
}

/// Everything north.
const POLICY_OF_ALL: &str = "[default]\nlegs = [{ peer = \"north\" }]\nnote = \"everything north\"\n";

/// Calls of the router in a process of their own: the longest of them, and without activations.
#[allow(clippy::too_many_arguments, reason = "what is measured, in a row")]
fn calls(
    measuring: &Measuring,
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
    let measured = measuring.ask(&folder.join("exchanged"), &task)?;
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

/// The same through a daemon: answers to submissions.
fn sockets(place: &Place, what: &str, component: &[u8], options: &Options) -> Result<()> {
    let mut blueprint = place.blueprint("exchange")?;
    blueprint.router(&place.component, POLICY)?;
    let line = Line::start(&mut blueprint)?;
    println!("  the same component, in the daemon: {what}");
    let begun = Instant::now();
    let mut activated = Vec::new();
    let during = line.steadily(|appliance| {
        for turn in 0..options.activations {
            let octets = guest::padded(component, &format!("daemon {turn}"), OCTETS);
            let uploaded = appliance.ask("PUT", "/v1/plugins/prefix-router", &octets)?;
            let wanted =
                json!({ "plugin": "prefix-router", "version": uploaded["version"], "policy": POLICY });
            let begun = Instant::now();
            appliance.ask("POST", "/v1/hooks/router/activate", wanted.to_string().as_bytes())?;
            activated.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    })?;
    let time = begun.elapsed();
    let without = line.steadily(|_| {
        Stop::default().pause(time);
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

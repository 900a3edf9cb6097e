//! A router for each of many tenants, compared with one router for all, by turns.

use super::guests::Guests;
use super::programs::BenchPrograms;
use super::{Options, median};
use crate::tool_run::ToolRun;
use anyhow::Result;
use serde_json::{Value, json};

/// A policy that sends everything to `north`.
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
    Ok(())
}

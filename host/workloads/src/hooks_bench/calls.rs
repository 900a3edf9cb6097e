//! Cost of a warm call, by hook and language.

use super::guests::Guests;
use super::programs::BenchPrograms;
use super::{Options, median};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The policy of the worked examples, in the format of `prefix-router`.
const ROUTES: &str = "[[route]]\nprefix = \"86\"\nlegs = [{ peer = \"south\" }]\nnote = \"prefix 86\"\n\
                      [[route]]\nprefix = \"8613\"\nlegs = [{ peer = \"north\" }]\nnote = \"prefix 8613\"\n\
                      [[route]]\nprefix = \"900\"\nreject = \"prohibited\"\nnote = \"prefix 900 is refused\"\n";

/// The policy of `firewall`, which searches each text for words and links.
const RULES: &str = "[[rule]]\nname = \"shorteners\"\ndomains = [\"bit.ly\", \"t.ly\"]\nthen = \"reject\"\n\
                     [[rule]]\nname = \"fraud\"\nwords = [\"you have won\", \"claim your prize\", \"lottery winner\"]\n\
                     then = \"quarantine\"\n";

/// The policy of `number-portability`: a table of 100,000 numbers returns the network.
const NETWORKS: &str = "[[source]]\ntable = \"networks\"\n";

/// Hook, default plugin, its policy.
const DEFAULTS: [(&str, &str, &str); 6] = [
    ("screen", "firewall", "rules"),
    ("lookup", "number-portability", "networks"),
    ("router", "prefix-router", "routes"),
    ("resolver", "table-resolver", "subscribers.toml"),
    ("delivery-policy", "retry-ladder", "retries.toml"),
    ("biller", "prepaid", "prices.toml"),
];

/// Messages per batch.
const BATCH: usize = 64;

const LANGUAGES: [&str; 4] = ["c", "go", "js", "python"];

/// The policy of a default plugin.
fn default_policy(guests: &Guests, hook: &str, file: &str) -> Result<String> {
    match hook {
        "screen" => Ok(RULES.to_owned()),
        "lookup" => Ok(NETWORKS.to_owned()),
        "router" => Ok(ROUTES.to_owned()),
        _ => guests.policy(file),
    }
}

pub(super) fn measure(programs: &BenchPrograms, guests: &Guests, options: &Options) -> Result<()> {
    let mut plugins = Vec::new();
    let mut add = |name: &str, hook: &str, component: &std::path::Path, policy: &str| {
        plugins.push(json!({ "name": name, "hook": hook, "component": component, "policy": policy }));
    };
    for (hook, plugin, policy) in DEFAULTS {
        let policy = default_policy(guests, hook, policy)?;
        add(plugin, hook, &guests.default(&plugin.replace('-', "_")), &policy);
        for language in LANGUAGES {
            if language == "python" && hook != "router" && !options.all {
                continue;
            }
            let (component, policy) = if hook == "router" {
                (guests.example(language), guests.example_policy()?)
            } else {
                (guests.made(hook, language), guests.template_policy(hook)?)
            };
            add(&format!("{hook}-{language}"), hook, &component, &policy);
        }
    }
    add("router-rust", "router", &guests.example("rust"), &guests.example_policy()?);
    for (hook, plugin, policy) in
        DEFAULTS.into_iter().filter(|(hook, ..)| ["screen", "router", "biller"].contains(hook))
    {
        let policy = default_policy(guests, hook, policy)?;
        let component = guests.default(&plugin.replace('-', "_"));
        let name = format!("{plugin}-{BATCH}");
        plugins.push(json!({
            "name": name, "hook": hook, "component": component, "policy": policy, "batch": BATCH
        }));
    }
    let task = json!({ "calls": {
        "rounds": options.rounds, "plugins": plugins, "native": guests.example_policy()? } });
    // The folder is kept between runs, since a Python plugin takes a minute to compile.
    let measured = programs.ask(&workspace::target().join("bench-library"), &task)?;
    let (mut cost, mut failed) = (BTreeMap::new(), Vec::new());
    for one in measured.as_array().context("no list")? {
        let rounds: Vec<f64> =
            one["nanoseconds"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        let name = one["name"].as_str().unwrap_or_default();
        match one["failed"].as_str() {
            Some(why) => failed.push(format!("{name}: {why}")),
            None => drop(cost.insert(name.to_owned(), median(&rounds))),
        }
    }
    let of = |name: &str| cost.get(name).copied().unwrap_or(f64::NAN);
    println!("\n1. A warm call, ns of processor time (median of {} rounds)", options.rounds);
    println!("  {:<18}{:>28}{:>10}{:>10}{:>10}{:>10}", "", "Rust", "C", "Go", "JS", "Python");
    for (hook, plugin, _) in DEFAULTS {
        let rust = format!("{plugin} {:>6.0}", of(plugin));
        let [c, go, js, python] = LANGUAGES.map(|language| match of(&format!("{hook}-{language}")) {
            cost if cost.is_nan() => "–".to_owned(),
            cost => format!("{cost:.0}"),
        });
        println!("  {hook:<18}{rust:>28}{c:>10}{go:>10}{js:>10}{python:>10}");
    }
    let together = |plugin: &str| of(&format!("{plugin}-{BATCH}"));
    println!(
        "  {BATCH} messages at a time: firewall {:.0} ns a message, prefix-router {:.0}, prepaid {:.0}.",
        together("firewall"),
        together("prefix-router"),
        together("prepaid")
    );
    println!("  A lookup whose answer is cached: {:.0} ns.", of("cached-lookup"));
    for why in failed {
        println!("  failed: {why}");
    }
    if !options.all {
        println!("  Python for other hooks is measured with --all.");
    }
    let (native, example, router) = (of("native"), of("router-rust"), of("prefix-router"));
    println!(
        "  Routers in C, Go, JS and Python are plugins/examples, with the policy of prefix-router; those of the other hooks are"
    );
    println!("  templates of `switchyard plugin new`, simpler than the default plugins.");
    println!(
        "  The same policy as a native function: {native:.0} ns; plugins/examples in Rust {example:.0} ns (beyond it"
    );
    println!("  {:.0}), prefix-router {router:.0} ns (beyond it {:.0}).", example - native, router - native);
    Ok(())
}

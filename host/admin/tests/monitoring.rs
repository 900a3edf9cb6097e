//! The dashboard and the alert rules that are shipped: they speak of metrics that there are, and the rules do what they say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn monitoring() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../appliance-image/monitoring")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(monitoring().join(name)).unwrap()
}

/// Names of metrics as they are scraped; of a histogram three.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for metric in admin::metrics::ALL {
        match metric.kind {
            admin::metrics::Type::Histogram => {
                known.extend(["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name)));
            }
            _ => {
                known.insert(metric.name.to_owned());
            }
        }
    }
    known
}

/// All words of a text that are names of ours.
fn named(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("switchyard_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_that_is_spoken_of_is_one() {
    let known = known();
    for file in ["dashboard.json", "alerts.yaml", "alerts_test.yaml"] {
        let named = named(&read(file));
        assert!(named.len() > 10, "{file} names only {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}, which METRICS.md does not have");
    }
}

#[test]
fn labels_in_selectors_are_those_of_the_metric() {
    for file in ["dashboard.json", "alerts.yaml"] {
        let text = read(file).replace("\\\"", "\"");
        for (at, _) in text.match_indices("switchyard_") {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap();
            let (name, rest) = rest.split_at(end);
            let Some((selector, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
                continue;
            };
            let metric = admin::metrics::ALL.iter().find(|metric| {
                name.strip_prefix(metric.name)
                    .is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
            });
            let labels = metric.unwrap_or_else(|| panic!("{file}: {name}")).labels;
            for matcher in selector.split(',') {
                let label = matcher.split(['=', '!', '~']).next().unwrap().trim();
                let ours = ["instance", "job", "le"].contains(&label) || labels.contains(&label);
                assert!(ours, "{file}: {name} has no label {label:?}");
            }
        }
    }
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "a panel's id is not its own");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            assert!(
                expression.contains("instance=~\"$instance\""),
                "{expression} is not of the chosen appliance"
            );
        }
    }
}

#[test]
fn every_alert_is_tested_and_fires_when_it_should() {
    let (rules, tests) = (read("alerts.yaml"), read("alerts_test.yaml"));
    let names = |text: &str, key: &str| -> BTreeSet<String> {
        text.lines()
            .filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix(key))
            .map(|name| name.trim().to_owned())
            .collect()
    };
    let alerts = names(&rules, "alert:");
    assert!(alerts.len() > 10);
    assert_eq!(alerts, names(&tests, "alertname:"));
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let output = Command::new("promtool")
            .args(arguments)
            .current_dir(monitoring())
            .output()
            .expect("promtool, of Debian's package prometheus: `cargo xtask setup` installs it");
        let words =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "promtool {arguments:?}:\n{words}");
    }
}

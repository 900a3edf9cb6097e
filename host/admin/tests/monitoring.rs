//! The dashboard and the alert rules that are shipped: they speak of metrics that there are, and the rules do what they say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// A page on which every metric with labels has samples of two peers, written by peer and not by metric.
fn page_of_two() -> String {
    let mut page = admin::metrics::Page::default();
    for peer in ["north", "so\"u\\th"] {
        for metric in admin::metrics::ALL.iter().filter(|metric| peer == "north" || !metric.labels.is_empty())
        {
            let labels: Vec<&str> = metric.labels.iter().map(|_| peer).collect();
            match metric.kind {
                admin::metrics::Type::Histogram => {
                    page.histogram(metric, &labels, &[0.5, 1.0], &[3, 0, 1], 2.5);
                }
                _ => page.put(metric, &labels, 1.0),
            }
        }
    }
    page.finish()
}

/// Reads a page as strictly as the text format 0.0.4 is written: a metric has one HELP, one TYPE after it, and then all of its
/// samples, each under labels of its own; buckets only grow, up to `+Inf`, which is the count.
fn read_strictly(page: &str) -> Result<usize, String> {
    let (mut metrics, mut series) = (BTreeSet::new(), BTreeSet::new());
    let (mut help, mut name, mut kind) = ("", "", "");
    let mut bucket: Option<f64> = None;
    if !page.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            help = text.split_once(' ').ok_or(line)?.0;
            if !metrics.insert(help) {
                return Err(format!("HELP once more: {line}"));
            }
            continue;
        }
        if let Some(text) = line.strip_prefix("# TYPE ") {
            (name, kind) = text.split_once(' ').ok_or(line)?;
            if name != help || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(format!("a TYPE that is not that of the HELP before it: {line}"));
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').ok_or(line)?;
        let value: f64 = value.parse().map_err(|_| format!("no number: {line}"))?;
        if !series.insert(key) {
            return Err(format!("a series twice: {line}"));
        }
        let (sample, labels) = key.split_once('{').unwrap_or((key, "}"));
        let mut labels = labels.strip_suffix('}').ok_or(line)?;
        let mut last = None;
        while !labels.is_empty() {
            let (label, rest) = labels.split_once("=\"").ok_or(line)?;
            if !label.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                return Err(format!("a label {label:?}: {line}"));
            }
            let mut escaped = false;
            let end = rest.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.ok_or(line)?;
            last = Some((label, &rest[..end]));
            labels = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
        }
        match (kind, sample.strip_prefix(name).ok_or(line)?) {
            ("counter" | "gauge", "") => {}
            ("histogram", "_bucket") => {
                if !matches!(last, Some(("le", _))) || bucket.is_some_and(|before| before > value) {
                    return Err(format!("not a bucket after {bucket:?}: {line}"));
                }
                bucket = Some(value);
            }
            ("histogram", "_sum") => {}
            ("histogram", "_count") if bucket.take() == Some(value) => {}
            _ => return Err(format!("not a sample of {name}: {line}")),
        }
    }
    Ok(metrics.len())
}

#[test]
fn a_page_with_two_peers_is_valid_exposition_format() {
    let page = page_of_two();
    assert_eq!(read_strictly(&page), Ok(admin::metrics::ALL.len()));
    let line = page.lines().last().unwrap();
    assert!(read_strictly(&format!("{page}{line}\n")).is_err(), "a series may be there twice");
    assert!(read_strictly(&format!("{page}{page}")).is_err(), "HELP may be there twice");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool, of Debian's package prometheus: `cargo xtask setup` installs it");
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(page.as_bytes()).unwrap();
    drop(input);
    let output = promtool.wait_with_output().unwrap();
    let words =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && words.is_empty(), "promtool check metrics:\n{words}");
}

//! The shipped dashboard and alert rules: they use existing metrics, and the rules fire as intended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn monitoring_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../appliance-image/monitoring")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(monitoring_folder().join(name)).unwrap()
}

/// The scraped metric names; three for a histogram.
fn scraped_metric_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for metric in admin::metrics::ALL {
        match metric.kind {
            admin::metrics::MetricType::Histogram => {
                names.extend(["bucket", "sum", "count"].map(|part| format!("{}_{part}", metric.name)));
            }
            _ => {
                names.insert(metric.name.to_owned());
            }
        }
    }
    names
}

/// All names of our metrics in a text.
fn metric_names_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("switchyard_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn monitoring_files_name_known_metrics() {
    let known = scraped_metric_names();
    for file in ["dashboard.json", "alerts.yaml", "alerts_test.yaml"] {
        let named = metric_names_in(&read(file));
        assert!(named.len() > 10, "{file} names only {named:?}");
        let unknown: Vec<_> = named.difference(&known).collect();
        assert!(
            unknown.is_empty(),
            "{file} names {unknown:?}, which docs/reference/metrics.md does not have"
        );
    }
}

#[test]
fn selector_labels_belong_to_the_metric() {
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
fn dashboard_is_complete() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have the same id");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            assert!(
                expression.contains("instance=~\"$instance\""),
                "{expression} does not select the chosen appliance"
            );
        }
    }
}

#[test]
fn every_alert_has_a_test() {
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
}

/// A page with samples of two peers for every labelled metric, written peer by peer.
fn two_peer_page() -> String {
    let mut page = admin::metrics::MetricsPage::default();
    for peer in ["north", "so\"u\\th"] {
        for metric in admin::metrics::ALL.iter().filter(|metric| peer == "north" || !metric.labels.is_empty())
        {
            let labels: Vec<&str> = metric.labels.iter().map(|_| peer).collect();
            match metric.kind {
                admin::metrics::MetricType::Histogram => {
                    page.histogram(metric, &labels, &[0.5, 1.0], &[3, 0, 1], 2.5);
                }
                _ => page.put(metric, &labels, 1.0),
            }
        }
    }
    page.finish()
}

/// Validates a page strictly against the text format 0.0.4: each metric has one HELP, then one TYPE, then all its samples, each
/// with unique labels; bucket counts grow up to `+Inf`, which equals the count.
fn read_strictly(page: &str) -> Result<usize, String> {
    let (mut metrics, mut series) = (BTreeSet::new(), BTreeSet::new());
    let (mut help, mut name, mut kind) = ("", "", "");
    let mut bucket: Option<f64> = None;
    if !page.ends_with('\n') {
        return Err("the last line has no newline".to_owned());
    }
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            help = text.split_once(' ').ok_or(line)?.0;
            if !metrics.insert(help) {
                return Err(format!("second HELP: {line}"));
            }
            continue;
        }
        if let Some(text) = line.strip_prefix("# TYPE ") {
            (name, kind) = text.split_once(' ').ok_or(line)?;
            if name != help || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(format!("TYPE does not match the HELP before it: {line}"));
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').ok_or(line)?;
        let value: f64 = value.parse().map_err(|_| format!("not a number: {line}"))?;
        if !series.insert(key) {
            return Err(format!("duplicate series: {line}"));
        }
        let (sample, labels) = key.split_once('{').unwrap_or((key, "}"));
        let mut labels = labels.strip_suffix('}').ok_or(line)?;
        let mut last = None;
        while !labels.is_empty() {
            let (label, rest) = labels.split_once("=\"").ok_or(line)?;
            if !label.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                return Err(format!("invalid label {label:?}: {line}"));
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
fn page_with_two_peers_is_valid_exposition_format() {
    let page = two_peer_page();
    assert_eq!(read_strictly(&page), Ok(admin::metrics::ALL.len()));
    let line = page.lines().last().unwrap();
    assert!(read_strictly(&format!("{page}{line}\n")).is_err(), "duplicate series accepted");
    assert!(read_strictly(&format!("{page}{page}")).is_err(), "second HELP accepted");
}

/// Prometheus' own tool.
mod foreign {
    use super::{monitoring_folder, two_peer_page};
    use std::io::Write;
    use std::process::{Command, Stdio};

    const INSTALL: &str = "promtool (Debian package prometheus; `cargo xtask setup` installs it)";

    #[test]
    fn every_alert_fires() {
        for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
            let output = Command::new("promtool")
                .args(arguments)
                .current_dir(monitoring_folder())
                .output()
                .expect(INSTALL);
            let words = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "promtool {arguments:?}:\n{words}");
        }
    }

    #[test]
    fn promtool_accepts_a_page_with_two_peers() {
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect(INSTALL);
        let mut input = promtool.stdin.take().unwrap();
        input.write_all(two_peer_page().as_bytes()).unwrap();
        drop(input);
        let output = promtool.wait_with_output().unwrap();
        let words =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && words.is_empty(), "promtool check metrics:\n{words}");
    }
}

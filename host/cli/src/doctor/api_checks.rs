//! Checks of the running appliance.

use crate::attention::{Finding, Level, attention};
use crate::format::{number, plural};
use crate::output::Failure;
use crate::snapshot::Snapshot;
use api::{Health, Problem, PumpState};
use client::{ClientError, ConnectionArgs};
use std::time::Duration;

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The areas that `attention` covers, each with the text for no findings.
const OK_TEXTS: [(&str, &str); 3] = [
    ("ready", "submissions are accepted"),
    ("uncertain", "no message is uncertain"),
    ("queues", "no queue is blocked"),
];

/// Checks the running appliance; returns whether it answered.
pub(super) fn check(connection: ConnectionArgs, version: &str, now: u64, found: &mut Vec<Finding>) -> bool {
    let api = match connection.connect() {
        Ok(api) => api.with_timeout(TIMEOUT),
        Err(error) => {
            let remedy = "set --token-file, or --config";
            found.push(Finding::new(Level::Error, "token", error.to_string().replace('\n', " "), remedy));
            return false;
        }
    };
    match api.read::<Health>("/v1/health") {
        Ok(health) if health.status == "ok" => {
            found.push(Finding::new(Level::Ok, "appliance", format!("{} answers", api.url()), ""));
        }
        Ok(_) | Err(ClientError::Refused(_) | ClientError::UnexpectedAnswer { .. }) => {
            let what = format!("the server at {} is not Switchyard", api.url());
            found.push(Finding::new(Level::Error, "appliance", what, "correct --url"));
            return false;
        }
        Err(error) => {
            let remedy = "to start it: systemctl start switchyard; to see its log: journalctl -u switchyard";
            let what = error.to_string();
            let what = what.lines().next().unwrap_or_default();
            found.push(Finding::new(Level::Error, "appliance", what, remedy));
            return false;
        }
    }
    match Snapshot::fetch_with_networks(&api) {
        Ok(snapshot) => {
            found.push(Finding::new(Level::Ok, "token", "the appliance accepts it", ""));
            check_snapshot(&snapshot, version, now, found);
        }
        Err(Failure::Appliance(ClientError::Refused(Problem { status: 401, .. }))) => {
            let remedy = "the root token is in DATA/token; switchyard token make creates others";
            found.push(Finding::new(Level::Error, "token", "the appliance rejects it", remedy));
        }
        Err(error) => {
            let remedy = "see its log: journalctl -u switchyard";
            found.push(Finding::new(Level::Error, "appliance", error.to_string().replace('\n', " "), remedy));
        }
    }
    true
}

fn check_snapshot(snapshot: &Snapshot, version: &str, now: u64, found: &mut Vec<Finding>) {
    let appliance_version = snapshot.status.version.as_str();
    found.push(if appliance_version == version {
        Finding::new(Level::Ok, "version", format!("{appliance_version}, command and appliance"), "")
    } else {
        let what = format!("the appliance has version {appliance_version}, and this command {version}");
        Finding::new(
            Level::Warning,
            "version",
            what,
            "restart the appliance after an upgrade, or upgrade this machine",
        )
    });
    let findings = attention(snapshot, now);
    let is_ok = |about: &str| findings.iter().all(|finding| finding.about != about);
    for (about, what) in OK_TEXTS {
        if is_ok(about) {
            found.push(Finding::new(Level::Ok, about, what, ""));
        }
    }
    if is_ok("links") {
        let (up, dialled) = snapshot.dialled_links();
        let what = format!("{up} of {dialled} to peers up, {} from accounts", snapshot.served_links());
        found.push(Finding::new(Level::Ok, "links", what, ""));
    }
    if is_ok("gsm") && !snapshot.networks.is_empty() {
        let connections: usize = snapshot.networks.iter().map(|network| network.connections.len()).sum();
        let networks = plural(snapshot.networks.len() as u64, "core network", "core networks");
        let what = format!("{networks}, {}", plural(connections as u64, "connection", "connections"));
        found.push(Finding::new(Level::Ok, "gsm", what, ""));
    }
    if is_ok("archive") {
        let what = match &snapshot.archive {
            None => "no archive; finished messages are kept for finished-retention".to_owned(),
            Some(pump) => format!("{}, {} behind", pump.state.name(), number(pump.backlog)),
        };
        found.push(Finding::new(Level::Ok, "archive", what, ""));
    }
    if is_ok("events") && !snapshot.event_sinks.is_empty() {
        let up = snapshot.event_sinks.iter().filter(|sink| sink.state != PumpState::Down).count();
        let what =
            format!("{up} of {}", plural(snapshot.event_sinks.len() as u64, "event sink", "event sinks"));
        found.push(Finding::new(Level::Ok, "events", format!("{what} up"), ""));
    }
    found.extend(findings);
}

//! The appliance while it is running.

use crate::attention::{Finding, Level, attention};
use crate::output::Failure;
use crate::picture::Picture;
use crate::table::plural;
use client::{At, ClientError};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `attention` finds something about, and what is said of it where nothing was found.
const ABOUT: [(&str, &str); 3] = [
    ("ready", "it takes traffic"),
    ("uncertain", "no message is in doubt"),
    ("queues", "nothing is held up that should not be"),
];

/// Asks the appliance; whether there is one.
pub(super) fn look(at: At, version: &str, now: u64, found: &mut Vec<Finding>) -> bool {
    let appliance = match at.reach() {
        Ok(appliance) => appliance.patience(PATIENCE),
        Err(error) => {
            let remedy = "name the token's file by --token-file, or the configuration by --config";
            found.push(Finding::new(Level::Error, "token", error.to_string().replace('\n', " "), remedy));
            return false;
        }
    };
    match appliance.get("/v1/health") {
        Ok(health) if health["status"] == "ok" => {
            found.push(Finding::new(Level::Ok, "appliance", format!("{} answers", appliance.url()), ""));
        }
        Ok(_) | Err(ClientError::Refused { .. }) => {
            let what = format!("what answers at {} is no switchyard", appliance.url());
            found.push(Finding::new(Level::Error, "appliance", what, "give the right --url"));
            return false;
        }
        Err(error) => {
            let remedy =
                "if it is to run: systemctl start switchyard; why it does not: journalctl -u switchyard";
            let what = error.to_string();
            let what = what.lines().next().unwrap_or_default();
            found.push(Finding::new(Level::Error, "appliance", what, remedy));
            return false;
        }
    }
    match Picture::take_all(&appliance) {
        Ok(picture) => {
            found.push(Finding::new(Level::Ok, "token", "the appliance takes it", ""));
            tell(&picture, version, now, found);
        }
        Err(Failure::Appliance(ClientError::Refused { status: 401, .. })) => {
            let remedy =
                "DATA/token has the one that it was started with; switchyard token make makes others";
            found.push(Finding::new(Level::Error, "token", "the appliance does not know it", remedy));
        }
        Err(error) => {
            let remedy = "journalctl -u switchyard says more";
            found.push(Finding::new(Level::Error, "appliance", error.to_string().replace('\n', " "), remedy));
        }
    }
    true
}

fn tell(picture: &Picture, version: &str, now: u64, found: &mut Vec<Finding>) {
    let theirs = picture.status["version"].as_str().unwrap_or("?");
    found.push(if theirs == version {
        Finding::new(Level::Ok, "version", format!("{theirs}, here and there"), "")
    } else {
        let what = format!("the appliance has version {theirs}, and this command {version}");
        Finding::new(
            Level::Warning,
            "version",
            what,
            "restart the appliance after an upgrade, or upgrade this machine",
        )
    });
    let wrong = attention(picture, now);
    let is_well = |about: &str| wrong.iter().all(|finding| finding.about != about);
    for (about, what) in ABOUT {
        if is_well(about) {
            found.push(Finding::new(Level::Ok, about, what, ""));
        }
    }
    if is_well("links") {
        let (up, dialled) = picture.dialled();
        let what = format!("{up} of {dialled} to peers up, {} from accounts", picture.served());
        found.push(Finding::new(Level::Ok, "links", what, ""));
    }
    if is_well("gsm") && !picture.networks().is_empty() {
        let count = |network: &serde_json::Value| network["connections"].as_array().map_or(0, Vec::len);
        let connections: usize = picture.networks().iter().map(count).sum();
        let networks = plural(picture.networks().len() as u64, "core network", "core networks");
        let what = format!("{networks}, {}", plural(connections as u64, "connection", "connections"));
        found.push(Finding::new(Level::Ok, "gsm", what, ""));
    }
    if is_well("archive") {
        let what = match picture.archive["state"].as_str() {
            None => "there is none; what has ended is kept for a while".to_owned(),
            Some(state) => format!("{state}, {} behind", crate::table::count(&picture.archive["backlog"])),
        };
        found.push(Finding::new(Level::Ok, "archive", what, ""));
    }
    found.extend(wrong);
}

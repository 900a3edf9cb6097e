//! What is not as it should be, in words, with what to do about it.

use crate::output::Tone;
use crate::picture::{Picture, is_up};
use crate::table::{octets, plural, sentence, span};
use client::terminal::visible;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A message of an account that has waited for so long is worth a word, in milliseconds: its account is not bound.
const LONG: u64 = 3_600_000;
/// Messages that the archive is behind with before that is worth a word.
const BEHIND: u64 = 100_000;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warning,
    /// Messages are held up or refused, or soon will be.
    Error,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Warning => Tone::Doubtful,
            Self::Error => Tone::Bad,
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What it is about, in a word or two: `links`, `disk` …
    pub(crate) about: &'static str,
    pub(crate) what: String,
    /// What to do; nothing where nothing is to be done.
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(
        level: Level,
        about: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level, about, what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn json(&self) -> Value {
        let remedy = (!self.remedy.is_empty()).then_some(&self.remedy);
        json!({ "level": self.level.word(), "about": self.about, "what": self.what, "remedy": remedy })
    }
}

fn text(value: &Value) -> String {
    visible(value.as_str().unwrap_or("?"))
}

/// What needs attention, the worst first. `now` is milliseconds since the epoch.
pub(crate) fn attention(picture: &Picture, now: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    whole(picture, &mut found);
    links(picture, &mut found);
    networks(picture, &mut found);
    queues(picture, now, &mut found);
    plugins(picture, &mut found);
    archive(&picture.archive, &mut found);
    pending(&picture.pending, now, &mut found);
    // The order in which they were found is that in which to look at them.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found
}

fn whole(picture: &Picture, found: &mut Vec<Finding>) {
    let draining = picture.drain["draining"] == true;
    if draining {
        let by = picture.drain["by"].as_str().map(|by| format!(" by {}", visible(by))).unwrap_or_default();
        found.push(Finding::new(
            Level::Warning,
            "drain",
            format!("the appliance is being drained{by}: nothing new is taken"),
            "when it is to take traffic again: switchyard drain stop",
        ));
    } else if let Some(reasons) = &picture.unready {
        let reasons = visible(&reasons.join("; "));
        let remedy = "its log says more; a start with millions of messages may take a minute";
        found.push(Finding::new(Level::Error, "ready", format!("it takes no traffic: {reasons}"), remedy));
    }
    if picture.status["disk_low"] == true {
        let free = octets(picture.status["disk_free"].as_u64().unwrap_or(0));
        found.push(Finding::new(
            Level::Error,
            "disk",
            format!("the disk is nearly full, {free} are left: submissions are refused, delivery goes on"),
            "make room on the disk of the data directory; nothing needs to be restarted",
        ));
    }
}

fn links(picture: &Picture, found: &mut Vec<Finding>) {
    // Of each peer that we dial: links, those that are up, and what the last of the others says.
    let mut peers: BTreeMap<&str, (usize, usize, Option<&str>)> = BTreeMap::new();
    for link in picture.links().iter().filter(|link| link["role"] == "client") {
        let (all, up, error) = peers.entry(link["peer"].as_str().unwrap_or("?")).or_default();
        *all += 1;
        if is_up(link) {
            *up += 1;
        } else if let Some(told) = link["last_error"].as_str() {
            *error = Some(told);
        }
    }
    for (peer, (all, up, error)) in peers {
        if up == all {
            continue;
        }
        let (peer, why) = (visible(peer), visible(error.unwrap_or("it is being dialled")));
        let remedy = format!("switchyard peer test {peer}");
        found.push(if up == 0 {
            Finding::new(Level::Error, "links", format!("no link to {peer} is up: {why}"), remedy)
        } else {
            let down = all - up;
            let are = if down == 1 { "is" } else { "are" };
            let what = format!("{down} of {all} links to {peer} {are} down: {why}");
            Finding::new(Level::Warning, "links", what, remedy)
        });
    }
}

/// Faults of GSM core networks, as the appliance tells them.
fn networks(picture: &Picture, found: &mut Vec<Finding>) {
    for network in picture.networks() {
        for fault in network["faults"].as_array().into_iter().flatten() {
            let level = if fault["level"] == "error" { Level::Error } else { Level::Warning };
            let what = format!("GSM network {}: {}", text(&network["name"]), text(&fault["what"]));
            found.push(Finding::new(level, "gsm", what, text(&fault["remedy"])));
        }
    }
}

fn queues(picture: &Picture, now: u64, found: &mut Vec<Finding>) {
    for queue in picture.queues() {
        let count = |name: &str| queue[name].as_u64().unwrap_or(0);
        let peer = text(&queue["peer"]);
        let brake = sentence(&queue["brake"]);
        let waiting = count("queued") + count("deferred");
        let waits = || plural(waiting, "message waits", "messages wait");
        if count("uncertain") > 0 {
            let uncertain = plural(count("uncertain"), "message is", "messages are");
            found.push(Finding::new(
                Level::Warning,
                "uncertain",
                format!("{uncertain} in doubt at {peer}: written to it and never answered"),
                format!("switchyard queue uncertain --peer {peer}, and then queue settle"),
            ));
        }
        if queue["configured"] == false && waiting > 0 {
            found.push(Finding::new(
                Level::Warning,
                "queues",
                format!("{} for {peer}, which is not in the configuration", waits()),
                format!(
                    "put it back into the configuration, or move them: switchyard queue rebind --peer {peer}"
                ),
            ));
        } else if brake.starts_with("suspended") && waiting > 0 {
            let what = format!("{} for {peer}: {brake}", waits());
            found.push(Finding::new(Level::Warning, "queues", what, "switchyard queue orders"));
        } else if brake.starts_with("the peer throttles") {
            let rate = queue["learnt_rate"].as_f64();
            let rate = rate.map_or_else(String::new, |rate| format!(" and gets {rate:.1} messages a second"));
            let what = format!("{peer} answers \"too fast\"{rate}: {} for it", waits());
            let remedy = "agree on a rate with the peer, and give it to the peer as `rate`";
            found.push(Finding::new(Level::Warning, "queues", what, remedy));
        }
        let dialled =
            picture.links().iter().any(|link| link["role"] == "client" && link["peer"] == queue["peer"]);
        let age = queue["oldest"].as_u64().map_or(0, |oldest| now.saturating_sub(oldest));
        if queue["configured"] != false && count("links") == 0 && waiting > 0 && !dialled && age >= LONG {
            let oldest = span(&age.into());
            found.push(Finding::new(
                Level::Warning,
                "queues",
                format!("{} for {peer}, which is not here, the oldest since {oldest}", waits()),
                format!("ask {peer} whether its system is up; switchyard account show {peer}"),
            ));
        }
    }
}

/// Faults since a plugin version began its work, and names in policies that nobody has.
fn plugins(picture: &Picture, found: &mut Vec<Finding>) {
    for (hook, unknown) in picture.unknown_references() {
        let (plugin, kind, name) = (text(&unknown["plugin"]), text(&unknown["kind"]), text(&unknown["name"]));
        found.push(Finding::new(
            Level::Warning,
            "plugins",
            format!("the policy of the {hook} {plugin} names {kind} {name}, which does not exist"),
            format!("add the {kind}, or correct the policy"),
        ));
    }
    for (hook, plugin) in picture.plugins() {
        // Counts by the kind of the fault.
        let faults = plugin["faults"].as_object().into_iter().flat_map(|kinds| kinds.values());
        let faults: u64 = faults.filter_map(Value::as_u64).sum();
        if faults > 0 {
            let (name, version) = (text(&plugin["plugin"]), text(&plugin["version"]));
            let calls = plural(plugin["calls"].as_u64().unwrap_or(0), "call", "calls");
            let role = if plugin["live"] == false { ", on trial," } else { "" };
            found.push(Finding::new(
                Level::Warning,
                "plugins",
                format!("the {hook} {name} {version}{role} has failed in {} of {calls}", plural(faults, "call", "calls")),
                "switchyard plugin status says how; switchyard plugin rollback goes back to the version before",
            ));
        }
    }
}

fn archive(archive: &Value, found: &mut Vec<Finding>) {
    let backlog = archive["backlog"].as_u64().unwrap_or(0);
    let refused = archive["refused"].as_u64().unwrap_or(0);
    if archive["state"] == "down" {
        let waits = plural(backlog, "message waits", "messages wait");
        found.push(Finding::new(
            Level::Error,
            "archive",
            format!("the archive takes nothing: {}; {waits} for it", text(&archive["error"])),
            "look at the data base; what waits is safe on the disk, and goes there by itself",
        ));
    } else if backlog > BEHIND {
        let what = format!("the archive is behind by {}", plural(backlog, "message", "messages"));
        let remedy = "if that grows, the data base is too slow for the traffic";
        found.push(Finding::new(Level::Warning, "archive", what, remedy));
    }
    if refused > 0 {
        let what = format!("the data base refuses {}", plural(refused, "message", "messages"));
        let remedy = "its log says why; what it refuses stays on the disk and is tried again";
        found.push(Finding::new(Level::Warning, "archive", what, remedy));
    }
}

fn pending(pending: &Value, now: u64, found: &mut Vec<Finding>) {
    if let Some(at) = pending["reverts-at"].as_u64() {
        let left = span(&at.saturating_sub(now).into());
        found.push(Finding::new(
            Level::Warning,
            "configuration",
            format!("version {} of the configuration reverts by itself in {left}", pending["version"]),
            "if it is as you want it: switchyard config confirm",
        ));
    }
}

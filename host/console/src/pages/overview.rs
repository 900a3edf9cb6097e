//! How the appliance is doing, and what somebody should look at.

use crate::ask::Refusal;
use crate::chart::{Line, bar, chart};
use crate::live::Region;
use crate::pages::standing::{Link, Queue, links, queues};
use crate::shell::{Room, live_page};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{
    ago, count, either, figure, number, octets, plural, sentence, span, state, text, version,
};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::Value;
use std::collections::HashSet;

/// What waits longer than this wants a look, in milliseconds.
const LONG: u64 = 10 * 60_000;
/// Samples over which a rate is taken.
const SMOOTH: usize = 5;
/// Things of one kind that are named one by one.
const NAMED: usize = 5;

pub(crate) async fn show(visit: Visit) -> Response {
    if !visit.may("read") {
        return Redirect::to("/messages").into_response();
    }
    let body = regions(&visit).await.map(|regions| {
        html! {
            h1.visually-hidden { "Overview" }
            @for (id, part) in regions { section.(id) id=(id) { (part) } }
        }
    });
    live_page(&visit, "Overview", Room::Overview, Some("/live?of=overview"), body)
}

pub(crate) async fn regions(visit: &Visit) -> Result<Vec<Region>, Refusal> {
    let (status, pulse, queues, links, hooks, drain, archive, networks, document) = tokio::join!(
        visit.get::<Value>("/v1/status"),
        visit.look("/v1/pulse"),
        queues(visit),
        links(visit),
        visit.look("/v1/hooks"),
        visit.look("/v1/drain"),
        visit.look("/v1/archive"),
        visit.look("/v1/gsm"),
        visit.console.documents.known(visit),
    );
    let (status, queues, links) = (status?, queues?, links?);
    let hooks = hooks.unwrap_or_default();
    let pulse = Pulse::read(pulse.as_ref());
    let wanted = attention(&Seen {
        status: &status,
        queues: &queues,
        links: &links,
        hooks: &hooks,
        drain: drain.as_ref(),
        archive: archive.as_ref(),
        networks: networks.as_ref(),
        document: document.as_deref().ok().map(|document| &document.about),
    });
    Ok(vec![
        ("figures", figures(&status, &pulse)),
        ("attention", html! { h2 { "What needs attention" } (wanted) }),
        ("charts", charts(&pulse)),
        ("glance", html! { (links_at_a_glance(&links)) (hooks_at_a_glance(&hooks)) }),
    ])
}

/// The last minutes, as rates.
struct Pulse {
    minutes: u64,
    accepted: Vec<Option<f64>>,
    delivered: Vec<Option<f64>>,
    failed: Vec<Option<f64>>,
    refused: Vec<Option<f64>>,
    waiting: Vec<Option<f64>>,
    commit: Vec<Option<f64>>,
    round_trip: Vec<Option<f64>>,
}

impl Pulse {
    fn read(pulse: Option<&Value>) -> Self {
        let nothing = Vec::new();
        let samples = pulse.and_then(|pulse| pulse["samples"].as_array()).unwrap_or(&nothing);
        let most = pulse.map_or(300, |pulse| pulse["most"].as_u64().unwrap_or(300)) as usize;
        let every = pulse.map_or(2_000, |pulse| pulse["every-ms"].as_u64().unwrap_or(2_000)).max(1);
        // What was before the first sample is not known; so a young appliance's line is on the right side.
        let missing = most.saturating_sub(samples.len());
        let line = |each: &dyn Fn(usize) -> Option<f64>| -> Vec<Option<f64>> {
            std::iter::repeat_n(None, missing).chain((0..samples.len()).map(each)).collect()
        };
        let delta = |at: usize, name: &str| {
            let (before, now) = (samples.get(at.checked_sub(1)?)?, samples.get(at)?);
            let change = now[name].as_f64()? - before[name].as_f64()?;
            (change >= 0.0).then_some(change)
        };
        // Over some samples, since few messages in a sample make a rate that jumps.
        let rate = |name: &'static str| {
            line(&|at| {
                let first = at.saturating_sub(SMOOTH);
                let changes = || (first + 1..=at).map(|at| Some((delta(at, name)?, delta(at, "at")?)));
                let (change, ms) = changes()
                    .try_fold((0.0, 0.0), |(change, ms), one| one.map(|(a, b)| (change + a, ms + b)))?;
                (ms > 0.0).then(|| change / ms * 1_000.0)
            })
        };
        Self {
            minutes: (most as u64 * every).div_ceil(60_000),
            accepted: rate("accepted"),
            delivered: rate("delivered"),
            failed: rate("failed"),
            refused: rate("refused"),
            waiting: line(&|at| samples[at]["waiting"].as_f64()),
            commit: line(&|at| {
                let commits = delta(at, "commits")?;
                (commits > 0.0).then(|| delta(at, "commit-us").map(|us| us / commits / 1_000.0))?
            }),
            round_trip: line(&|at| samples[at]["round-trip-us"].as_f64().map(|us| us / 1_000.0)),
        }
    }

    /// The last of a line.
    fn now(line: &[Option<f64>]) -> Option<f64> {
        line.iter().rev().find_map(|point| *point)
    }
}

fn figures(status: &Value, pulse: &Pulse) -> Markup {
    let tile = |name: &str, what: Markup, below: String| {
        html! { div.tile { span.name { (name) } strong { (what) } span.muted { (below) } } }
    };
    let rate = |line: &[Option<f64>]| match Pulse::now(line) {
        Some(rate) => html! { (figure(rate)) small { " /s" } },
        None => html! { "—" },
    };
    let totals = &status["totals"];
    let failed: u64 =
        ["failed", "expired", "rejected", "unknown"].iter().map(|name| number(totals, name)).sum();
    html! {
        (tile("Accepted", rate(&pulse.accepted), format!("{} since the start", count(number(totals, "accepted")))))
        (tile(
            "Delivered",
            rate(&pulse.delivered),
            format!("{} since the start", count(number(totals, "delivered") + number(totals, "relayed"))),
        ))
        (tile("Waiting", html! { (count(number(status, "waiting"))) }, "queued, deferred or on their way".to_owned()))
        (tile("Not delivered", rate(&pulse.failed), format!("{} since the start", count(failed))))
        (tile(
            "Up",
            html! { (span(number(status, "uptime_seconds") * 1_000)) },
            format!("{} {}, {} free", text(status, "name"), text(status, "version"), octets(number(status, "disk_free"))),
        ))
    }
}

fn charts(pulse: &Pulse) -> Markup {
    let line = |name, class, points: &Vec<Option<f64>>| Line { name, class, points: points.clone() };
    let minutes = pulse.minutes;
    html! {
        (chart("Throughput", "/s", minutes, &[line("accepted", "s1", &pulse.accepted), line("delivered", "s2", &pulse.delivered)]))
        (chart("Latency", "ms", minutes, &[line("to disk", "s1", &pulse.commit), line("peers' answers", "s2", &pulse.round_trip)]))
        (chart("Queue depth", "messages", minutes, &[line("waiting", "s1", &pulse.waiting)]))
        (chart("Failures", "/s", minutes, &[line("not delivered", "s3", &pulse.failed), line("refused", "s4", &pulse.refused)]))
    }
}

struct Seen<'a> {
    status: &'a Value,
    queues: &'a [Queue],
    links: &'a [Link],
    hooks: &'a Value,
    drain: Option<&'a Value>,
    archive: Option<&'a Value>,
    networks: Option<&'a Value>,
    /// What is said of the configuration.
    document: Option<&'a Value>,
}

/// One thing that somebody should look at: how bad, what, where, and what one does there.
struct Wanted {
    tone: &'static str,
    what: String,
    place: String,
    remedy: &'static str,
}

fn wanted(seen: &Seen<'_>) -> Vec<Wanted> {
    let mut all = Vec::new();
    let mut add = |tone, what: String, place: &str, remedy| {
        all.push(Wanted { tone, what, place: place.to_owned(), remedy });
    };
    let place = |name: &str| format!("/peers/{}", crate::ask::part(name));
    let now = crate::words::now();
    if seen.status["disk_low"].as_bool() == Some(true) {
        let free = octets(number(seen.status, "disk_free"));
        add(
            "bad",
            format!("The disk is nearly full ({free} free): submissions are refused, delivery goes on."),
            "/maintenance",
            "Make room",
        );
    }
    if let Some(at) = seen.document.and_then(|document| either(&document["pending"], "reverts-at").as_u64()) {
        let what = format!("The configuration goes back to what it was {} unless it is confirmed.", ago(at));
        add("warn", what, "/configuration", "Confirm or take back");
    }
    let restart =
        seen.document.and_then(|document| document["restart"].as_array()).map_or(0, Vec::len) as u64;
    if restart > 0 {
        let what =
            format!("{} only after the next start.", plural(restart, "setting counts", "settings count"));
        add("warn", what, "/configuration", "Look at them");
    }
    if seen.drain.is_some_and(|drain| drain["draining"].as_bool() == Some(true)) {
        let what = "The appliance is being drained: nothing new is taken, what waits goes out.".to_owned();
        add("warn", what, "/maintenance", "End the drain");
    }
    // A peer that has links and none of them up; one that has others is braked, and its queue says so.
    let up: HashSet<&str> =
        seen.links.iter().filter(|link| link.is_up()).map(|link| link.peer.as_str()).collect();
    let mut down: Vec<(&str, &Link)> = Vec::new();
    for link in seen.links.iter().filter(|link| link.role == "client" && !up.contains(link.peer.as_str())) {
        if down.len() <= NAMED && down.iter().all(|(name, _)| *name != link.peer) {
            down.push((&link.peer, link));
        }
    }
    for (name, link) in down.iter().take(NAMED) {
        let why = link.last_error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        // The peer is without any since the last of its links went down.
        let of_peer = seen.links.iter().filter(|link| link.peer == *name);
        let since = of_peer.filter_map(|link| link.down_since).max();
        let since = since.map(|at| format!(" for {}", span(now.saturating_sub(at)))).unwrap_or_default();
        let what = format!("{name} has no link up{since}{why}");
        let end = if what.ends_with(['.', '?', '!']) { "" } else { "." };
        add("bad", format!("{what}{end}"), &place(name), "Look at it, test it");
    }
    if down.len() > NAMED {
        add("bad", "More peers have no link up.".to_owned(), "/peers?state=down", "Show all of them");
    }
    for network in seen.networks.and_then(Value::as_array).into_iter().flatten() {
        for fault in network["faults"].as_array().into_iter().flatten().take(NAMED) {
            let what = format!("GSM network {}: {}.", text(network, "name"), text(fault, "what"));
            let tone = if text(fault, "level") == "error" { "bad" } else { "warn" };
            add(tone, what, "/networks", "Look at it");
        }
    }
    for hook in seen.hooks.as_array().into_iter().flatten() {
        let unknown = hook["unknown"].as_array().map(Vec::as_slice).unwrap_or_default();
        for one in unknown.iter().take(NAMED) {
            let what = format!(
                "The policy of {} names {} {}, which does not exist.",
                text(one, "plugin"),
                text(one, "kind"),
                text(one, "name")
            );
            add("warn", what, &format!("/policies/{}", text(hook, "hook")), "Correct it");
        }
    }
    let uncertain: u64 = seen.queues.iter().map(|queue| queue.uncertain).sum();
    if uncertain > 0 {
        let what = format!(
            "{} written to a peer and never answered: nobody knows whether it has them.",
            plural(uncertain, "message was", "messages were")
        );
        add("warn", what, "/uncertain", "Decide on them");
    }
    let mut old: Vec<_> = seen
        .queues
        .iter()
        .filter_map(|queue| Some((queue, now.saturating_sub(queue.oldest?))))
        .filter(|(queue, age)| *age > LONG && queue.queued > 0)
        .collect();
    old.sort_unstable_by_key(|(_, age)| std::cmp::Reverse(*age));
    for (queue, age) in old.iter().take(NAMED) {
        let what = format!(
            "{} for {}, the oldest for {}: {}.",
            plural(queue.queued, "message waits", "messages wait"),
            queue.peer,
            span(*age),
            sentence(&queue.brake)
        );
        add("warn", what, "/queues", "Suspend, move or wait");
    }
    let strays: u64 = seen.queues.iter().filter(|queue| !queue.configured).map(Queue::waiting).sum();
    if strays > 0 {
        let what = format!(
            "{} for peers that are no longer in the configuration.",
            plural(strays, "message waits", "messages wait")
        );
        add("warn", what, "/queues", "Move or cancel them");
    }
    for hook in seen.hooks.as_array().into_iter().flatten() {
        let name = text(hook, "hook");
        for event in hook["events"].as_array().into_iter().flatten().take(3) {
            let recent = event["at"].as_u64().is_some_and(|at| now.saturating_sub(at) < 3_600_000);
            let kind = text(event, "kind");
            if recent && matches!(kind, "faulty" | "rolled-back-by-itself" | "candidate-faulty") {
                let what = format!("The {name} was in trouble: {}", text(event, "what"));
                add("bad", what, &format!("/plugins/{name}"), "Look at its faults");
                break;
            }
        }
    }
    if let Some(archive) = seen.archive
        && text(archive, "state") == "down"
    {
        let what =
            format!("The archive is not reached: {}. Finished messages wait here.", text(archive, "error"));
        add("bad", what, "/archive", "Look at the archive");
    }
    all.sort_by_key(|one| one.tone != "bad");
    all
}

fn attention(seen: &Seen<'_>) -> Markup {
    let all = wanted(seen);
    html! {
        @if all.is_empty() {
            p.calm { span.dot.good aria-hidden="true" {} "Nothing. All links are up, nothing waits longer than it should." }
        } @else {
            ul.wanted {
                @for one in &all {
                    li.(one.tone) {
                        span.visually-hidden { (if one.tone == "bad" { "Bad: " } else { "Warning: " }) }
                        span { (one.what) }
                        a href=(one.place) { (one.remedy) }
                    }
                }
            }
        }
    }
}

fn links_at_a_glance(links: &[Link]) -> Markup {
    let up = links.iter().filter(|link| link.is_up()).count() as u64;
    let trying =
        links.iter().filter(|link| matches!(link.phase.as_str(), "connecting" | "binding")).count() as u64;
    let down = links.len() as u64 - up - trying;
    let mut shown: Vec<&Link> = links.iter().collect();
    shown.sort_by_key(|link| (link.is_up(), std::cmp::Reverse(link.in_flight)));
    let rows: Vec<_> = shown
        .iter()
        .take(8)
        .map(|link| {
            let path = if link.role == "client" { "/peers/" } else { "/accounts/" };
            vec![
                html! { a href=(format!("{path}{}", crate::ask::part(&link.peer))) { (link.peer) } },
                state(&link.phase),
                html! { (link.in_flight) " of " (link.window) },
                html! { (link.round_trip().map_or_else(|| "—".to_owned(), |ms| format!("{} ms", figure(ms)))) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Links" }
            p { (count(up)) " up, " (count(trying)) " connecting, " (count(down)) " down" }
            (bar("Share of links that are up, connecting and down", &[("good", up), ("warn", trying), ("bad", down)]))
            (table("Links, those that are down first", &["Peer", "State", "On their way", "Answer"], &rows, &html! {
                p { "There are no links yet. " a href="/peers/new" { "Add a peer" } " or " a href="/accounts/new" { "an account" } "." }
            }))
            @if links.len() > 8 { p { a href="/peers" { "All peers" } " · " a href="/accounts" { "all accounts" } } }
        }
    }
}

fn hooks_at_a_glance(hooks: &Value) -> Markup {
    let hooks = hooks.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let name = text(hook, "hook");
            let chain = hook["live"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            let faults: u64 = hook["counts"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["faults"].as_object())
                .flat_map(|faults| faults.values().filter_map(Value::as_u64))
                .sum();
            vec![
                html! { a href=(format!("/plugins/{name}")) { (name) } },
                html! {
                    @if chain.is_empty() { span.muted { "none" } }
                    @for one in chain { span.plugin { (text(one, "plugin")) " " (version(text(one, "version"))) } }
                },
                html! { @match hook["candidate"]["mode"].as_str() { Some(mode) => { (state(mode)) } None => { span.muted { "none" } } } },
                html! { (count(faults)) },
            ]
        })
        .collect();
    html! {
        div.card {
            h2 { "Plugins" }
            (table("Hooks and what serves them", &["Hook", "Live", "On trial", "Faults"], &rows, &html! { p { "No plugin decides anything." } }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(status: &Value, queues: &[Queue], links: &[Link]) -> Vec<String> {
        let hooks = json!([]);
        let seen = Seen {
            status,
            queues,
            links,
            hooks: &hooks,
            drain: None,
            archive: None,
            networks: None,
            document: None,
        };
        wanted(&seen).into_iter().map(|one| format!("{} {}", one.tone, one.what)).collect()
    }

    #[test]
    fn a_quiet_appliance_wants_nothing() {
        let link = Link { peer: "a".into(), role: "client".into(), phase: "bound".into(), ..Link::default() };
        let queue = Queue { peer: "a".into(), configured: true, ..Queue::default() };
        assert_eq!(seen(&json!({ "disk_low": false }), &[queue], &[link]), [""; 0]);
    }

    #[test]
    fn a_peer_is_down_when_none_of_its_links_is_up_and_it_is_told_once() {
        let link = |peer: &str, phase: &str| Link {
            peer: peer.into(),
            role: "client".into(),
            phase: phase.into(),
            last_error: Some("connection refused".into()),
            ..Link::default()
        };
        let links = [
            link("a", "backing-off"),
            link("a", "backing-off"),
            link("b", "bound"),
            link("b", "backing-off"),
        ];
        assert_eq!(seen(&json!({}), &[], &links), ["bad a has no link up: connection refused."]);
    }

    #[test]
    fn faults_of_core_networks_are_told() {
        let fault = |level: &str, what: &str| json!({ "level": level, "what": what, "remedy": "" });
        let networks =
            json!([{ "name": "home", "faults": [fault("warning", "two names"), fault("error", "no MSC")] }]);
        let (status, hooks) = (json!({}), json!([]));
        let seen = Seen {
            status: &status,
            queues: &[],
            links: &[],
            hooks: &hooks,
            drain: None,
            archive: None,
            networks: Some(&networks),
            document: None,
        };
        let told: Vec<_> =
            wanted(&seen).into_iter().map(|one| format!("{} {}", one.tone, one.what)).collect();
        assert_eq!(told, ["bad GSM network home: no MSC.", "warn GSM network home: two names."]);
    }

    #[test]
    fn doubt_and_age_and_strays_are_told_in_words() {
        let queues = [
            Queue { peer: "a".into(), configured: true, uncertain: 1, ..Queue::default() },
            Queue {
                peer: "b".into(),
                configured: true,
                queued: 2,
                oldest: Some(1),
                brake: "no link is up".into(),
                ..Queue::default()
            },
            Queue { peer: "c".into(), configured: false, deferred: 4, ..Queue::default() },
        ];
        let told = seen(&json!({}), &queues, &[]);
        assert!(told[0].starts_with("warn 1 message was written to a peer and never answered"), "{told:?}");
        assert!(told[1].contains("2 messages wait for b") && told[1].ends_with("no link is up."), "{told:?}");
        assert!(told[2].contains("4 messages wait for peers that are no longer"), "{told:?}");
    }

    #[test]
    fn rates_are_changes_over_time_and_a_restart_is_a_gap() {
        let sample = |at: u64, accepted: u64| json!({ "at": at, "accepted": accepted, "waiting": 3 });
        let pulse = json!({ "every-ms": 2000, "most": 4, "samples": [sample(0, 10), sample(2000, 30), sample(4000, 0)] });
        let pulse = Pulse::read(Some(&pulse));
        assert_eq!(pulse.accepted, [None, None, Some(10.0), None]);
        assert_eq!(pulse.waiting, [None, Some(3.0), Some(3.0), Some(3.0)]);
    }
}

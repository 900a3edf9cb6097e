//! From two looks at the appliance to what happens in between.

use crate::picture::{Picture, is_up};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;

/// Looks whose throughput is remembered for the curve.
const REMEMBERED: usize = 240;
/// Final states, as the totals call them.
const ENDS: [&str; 6] = ["delivered", "relayed", "failed", "expired", "rejected", "cancelled"];

/// Counts a second, and times of what happened in between two looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) accepted: f64,
    pub(super) submitted: f64,
    pub(super) ended: f64,
    pub(super) failed: f64,
    pub(super) refused: f64,
    /// A commit with its fsync, in milliseconds; nothing where there was none.
    pub(super) commit_ms: Option<f64>,
    /// Of each plugin that was called: hook, calls a second, microseconds of a call.
    pub(super) plugins: Vec<(String, f64, f64)>,
}

/// What is on the screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    pub(super) picture: Picture,
    pub(super) rates: Rates,
    /// Messages submitted a second, the newest last.
    pub(super) curve: VecDeque<u64>,
}

impl Scene {
    pub(super) fn of(picture: Picture) -> Self {
        Self { picture, ..Self::default() }
    }

    /// The next look, so long after the last.
    pub(super) fn next(&mut self, picture: Picture, after: Duration) {
        self.rates = rates(&self.picture, &picture, after.as_secs_f64().max(0.001));
        self.picture = picture;
        if self.curve.len() == REMEMBERED {
            self.curve.pop_front();
        }
        self.curve.push_back(self.rates.submitted.round() as u64);
    }

    /// For programs.
    pub(super) fn json(&self, now: u64) -> Value {
        let rates = &self.rates;
        let mut document = self.picture.figures();
        document["rates"] = json!({
            "accepted": rates.accepted, "submitted": rates.submitted, "ended": rates.ended,
            "failed": rates.failed, "refused": rates.refused,
        });
        document["commit-ms"] = json!(rates.commit_ms);
        let plugins = rates.plugins.iter();
        let plugins = plugins.map(|(hook, calls, us)| json!({ "hook": hook, "calls": calls, "us": us }));
        document["plugins"] = plugins.collect();
        document["queues"] = by_trouble(&self.picture, now).into_iter().cloned().collect();
        document["links"] = self.picture.links.clone();
        document
    }
}

fn rates(before: &Picture, after: &Picture, seconds: f64) -> Rates {
    let total = |picture: &Picture, name: &str| picture.status["totals"][name].as_u64().unwrap_or(0);
    // After a restart the counts begin anew: then there is nothing to compare with.
    let restarted = after.status["uptime_seconds"].as_u64() < before.status["uptime_seconds"].as_u64();
    let more = |name: &str| {
        if restarted { 0 } else { total(after, name).saturating_sub(total(before, name)) }
    };
    let a_second = |count: u64| count as f64 / seconds;
    let commits = more("commits");
    Rates {
        accepted: a_second(more("accepted")),
        submitted: a_second(more("submitted")),
        ended: a_second(ENDS.iter().map(|name| more(name)).sum()),
        failed: a_second(more("failed") + more("expired")),
        refused: a_second(more("refused")),
        commit_ms: (commits > 0).then(|| more("commit_us") as f64 / 1_000.0 / commits as f64),
        plugins: if restarted { Vec::new() } else { plugins(before, after, seconds) },
    }
}

fn plugins(before: &Picture, after: &Picture, seconds: f64) -> Vec<(String, f64, f64)> {
    let count = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
    let mut found = Vec::new();
    for (hook, plugin) in after.plugins().filter(|(_, plugin)| plugin["live"] != false) {
        let earlier = before.plugins().find(|(other, earlier)| {
            *other == hook && ["plugin", "version", "live"].iter().all(|name| earlier[*name] == plugin[*name])
        });
        let Some((_, earlier)) = earlier else { continue };
        let calls = count(plugin, "calls").saturating_sub(count(earlier, "calls"));
        if calls > 0 {
            let spent = count(plugin, "nanoseconds").saturating_sub(count(earlier, "nanoseconds"));
            found.push((hook.to_owned(), calls as f64 / seconds, spent as f64 / 1_000.0 / calls as f64));
        }
    }
    found
}

/// Queues, the worst first: without a link though something waits, then in doubt, then by the age of what waits.
pub(super) fn by_trouble(picture: &Picture, now: u64) -> Vec<&Value> {
    let mut queues: Vec<&Value> = picture.queues().iter().collect();
    queues.sort_by_cached_key(|queue| {
        let count = |name: &str| queue[name].as_u64().unwrap_or(0);
        let waits = count("queued") + count("deferred");
        let age = queue["oldest"].as_u64().map_or(0, |oldest| now.saturating_sub(oldest));
        let stuck = waits > 0 && count("links") == 0;
        let name = queue["peer"].as_str().unwrap_or_default().to_owned();
        (std::cmp::Reverse((stuck, count("uncertain") > 0, age / 1_000, waits)), name)
    });
    queues
}

/// Links, those that are down first.
pub(super) fn links(picture: &Picture) -> Vec<&Value> {
    let mut links: Vec<&Value> = picture.links().iter().collect();
    let name = |link: &Value| link["peer"].as_str().unwrap_or_default().to_owned();
    links.sort_by_cached_key(|link| (is_up(link), std::cmp::Reverse(link["in_flight"].as_u64()), name(link)));
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(uptime: u64, accepted: u64, commits: u64, calls: u64) -> Picture {
        Picture {
            status: json!({
                "uptime_seconds": uptime,
                "totals": {
                    "accepted": accepted, "submitted": accepted, "delivered": accepted / 2, "failed": accepted / 10,
                    "commits": commits, "commit_us": commits * 1_500,
                },
            }),
            hooks: json!([{
                "hook": "router",
                "counts": [{ "plugin": "r", "version": "1", "live": true, "calls": calls, "nanoseconds": calls * 7_000 }],
            }]),
            ..Picture::default()
        }
    }

    #[test]
    fn rates_are_what_came_in_between() {
        let mut scene = Scene::of(picture(10, 1_000, 100, 500));
        assert_eq!(scene.rates, Rates::default());
        scene.next(picture(12, 1_100, 110, 520), Duration::from_secs(2));
        let rates = &scene.rates;
        assert_eq!((rates.accepted, rates.ended, rates.failed), (50.0, 30.0, 5.0));
        assert_eq!(rates.commit_ms, Some(1.5));
        assert_eq!(rates.plugins, [("router".to_owned(), 10.0, 7.0)]);
        scene.next(picture(13, 1_100, 110, 520), Duration::from_secs(1));
        assert_eq!((scene.rates.accepted, scene.rates.commit_ms), (0.0, None));
        assert_eq!(scene.curve, [50, 0]);
    }

    #[test]
    fn a_restart_is_no_torrent() {
        let mut scene = Scene::of(picture(1_000, 5, 1, 1));
        scene.next(picture(1, 3_000, 100, 100), Duration::from_secs(1));
        assert_eq!(scene.rates, Rates::default());
        assert_eq!(scene.rates.commit_ms, None);
    }

    #[test]
    fn trouble_comes_first() {
        let queue = |peer: &str, queued: u64, links: u64, uncertain: u64, oldest: Option<u64>| json!({ "peer": peer, "queued": queued, "links": links, "uncertain": uncertain, "oldest": oldest });
        let picture = Picture {
            queues: json!([
                queue("idle", 0, 1, 0, None),
                queue("old", 5, 1, 0, Some(1_000)),
                queue("young", 500, 1, 0, Some(90_000)),
                queue("doubt", 0, 1, 2, None),
                queue("stuck", 1, 0, 0, Some(99_000)),
                queue("away", 0, 0, 0, None),
            ]),
            ..Picture::default()
        };
        let names: Vec<&str> =
            by_trouble(&picture, 100_000).iter().map(|queue| queue["peer"].as_str().unwrap()).collect();
        assert_eq!(names, ["stuck", "doubt", "old", "young", "away", "idle"]);
    }
}

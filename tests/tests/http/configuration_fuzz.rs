//! Ten thousand random or nearly valid documents for a running daemon.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{HASH, PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{Fixture, until};
use model::Random;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Number of documents.
const DOCUMENTS: u32 = 10_000;

/// Texts that are valid values somewhere, or nearly.
const TEXTS: [&str; 22] = [
    "",
    "acme",
    "upstream",
    "a b",
    "127.0.0.1:0",
    "localhost:1",
    "nowhere",
    "30s",
    "0s",
    "99999999999999d",
    "-1s",
    "64MiB",
    "99999999999999TiB",
    "send-again",
    "query",
    "transceiver",
    "10.0.0.0/8",
    "::1/129",
    "(unchanged)",
    "\u{0}\n\"'",
    "émile",
    "/dev/zero",
];

struct DocumentGenerator(Random);

impl DocumentGenerator {
    fn below(&mut self, most: usize) -> usize {
        self.0.between(0, most as u64) as usize
    }

    fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(100)),
            3 => json!(-1),
            4 => json!(u64::MAX),
            5 => json!(1.5e300),
            6 => json!("x".repeat(self.below(5000))),
            _ => json!(TEXTS[self.below(TEXTS.len())]),
        }
    }

    fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 1 } else { 4 }) {
            1 => (0..self.below(4)).map(|_| self.any(depth - 1)).collect(),
            2 => {
                let mut map = Map::new();
                for _ in 0..self.below(4) {
                    let key = KEYS[self.below(KEYS.len())];
                    map.insert(key.to_owned(), self.any(depth - 1));
                }
                Value::Object(map)
            }
            _ => self.scalar(),
        }
    }

    /// Changes something at any depth.
    fn mutate(&mut self, value: &mut Value) {
        let go_down = self.below(4) > 0;
        match value {
            Value::Object(map) if go_down && !map.is_empty() => {
                let place = self.below(map.len());
                if let Some((_, below)) = map.iter_mut().nth(place) {
                    self.mutate(below);
                }
            }
            Value::Array(list) if go_down && !list.is_empty() => {
                let place = self.below(list.len());
                self.mutate(&mut list[place]);
            }
            Value::Object(map) => match self.below(3) {
                0 => {
                    let place = self.below(map.len().max(1));
                    let key = map.keys().nth(place).cloned();
                    key.and_then(|key| map.remove(&key));
                }
                _ => {
                    let key = KEYS[self.below(KEYS.len())];
                    map.insert(key.to_owned(), self.any(3));
                }
            },
            Value::Array(list) => match self.below(3) {
                0 if !list.is_empty() => drop(list.remove(self.below(list.len()))),
                1 if !list.is_empty() => list.push(list[self.below(list.len())].clone()),
                _ => list.push(self.any(3)),
            },
            other => *other = self.any(2),
        }
    }
}

/// Keys of the document, and an unknown one.
const KEYS: [&str; 40] = [
    "appliance",
    "name",
    "data",
    "shutdown-timeout",
    "http",
    "listen",
    "listener",
    "account",
    "peer",
    "gateway",
    "gsm",
    "pool",
    "opt-out",
    "archive",
    "url",
    "router",
    "static-peer",
    "engine",
    "shell",
    "redis",
    "business",
    "password",
    "password-hash",
    "address",
    "links",
    "window",
    "rate",
    "retry",
    "tls",
    "bind",
    "networks",
    "source",
    "uncertain",
    "error-classes",
    "users",
    "configuration",
    "mode",
    "stop",
    "group",
    "nonsense",
];

fn send(
    appliance: &TestDaemon,
    method: &str,
    path: &str,
    version: u64,
    body: &Value,
) -> Result<(u16, Value)> {
    let tag = format!("\"{version}\"");
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let (status, text) = appliance.send(method, path, body.to_string().as_bytes(), &headers)?;
    Ok((status, serde_json::from_str(&text).with_context(|| format!("{status}: {text:.300}"))?))
}

#[test]
fn ten_thousand_documents_crash_nothing_and_none_is_half_applied() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(4_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "networks = [\"127.0.0.0/8\"]\nsource = { allow = [\"*\"] }");
    config.peer("upstream", sink.address(), "dlrs = false\nretry = [\"1s\", \"5s\"]");
    config
        .tables("[[pool]]\nname = \"numbers\"\n[[opt-out]]\nstop = [\"STOP\"]\n[engine]\ncountry = \"86\"\n");
    let appliance = config.start()?;
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    eprintln!("SEED={seed}");
    let mut generator = DocumentGenerator(Random::new(seed));
    let shown = |appliance: &TestDaemon| -> Result<(u64, Value)> {
        let mut current = appliance.get("/v1/configuration")?;
        Ok((current["version"].as_u64().context("no version")?, current["document"].take()))
    };
    let (mut version, mut document) = shown(&appliance)?;
    let first = document.clone();
    let mut with_secrets = document.clone();
    with_secrets["peer"][0]["password"] = PASSWORD.into();
    with_secrets["account"][0]["password-hash"] = HASH.into();
    let (mut taken, mut refused) = (0, 0);
    for turn in 0..DOCUMENTS {
        let mut wanted = if generator.below(10) == 0 { generator.any(5) } else { document.clone() };
        for _ in 0..=generator.below(3) {
            generator.mutate(&mut wanted);
        }
        // Some are validated first: both answers must agree.
        let said = if generator.below(4) == 0 {
            let (status, checked) = send(&appliance, "POST", "/v1/configuration/validate", version, &wanted)?;
            ensure!(status == 200, "turn {turn}: {status} {checked} for {wanted}");
            Some(checked)
        } else {
            None
        };
        let method = if generator.below(5) == 0 { "PATCH" } else { "PUT" };
        let (status, answer) = send(&appliance, method, "/v1/configuration", version, &wanted)?;
        if let Some(checked) = said.filter(|_| method == "PUT") {
            // A port may be in use; only that is detected later.
            let later = answer["problems"][0]["pointer"].as_str().is_some_and(|at| at.ends_with("/listen"));
            let agrees = (checked["valid"] == true) == (status == 200);
            ensure!(agrees || later, "turn {turn}: {checked} and then {status} {answer} for {wanted}");
        }
        match status {
            200 => {
                let (now, is) = shown(&appliance)?;
                let expected = if answer["changes"] == json!([]) { version } else { version + 1 };
                ensure!(
                    answer["version"] == now && now == expected,
                    "turn {turn}: {answer}, and {now} is in force"
                );
                (version, document) = (now, is);
                taken += 1;
                // Not too far from the start, or nothing would be nearly valid any more.
                if taken % 10 == 0 {
                    let (status, answer) =
                        send(&appliance, "PUT", "/v1/configuration", version, &with_secrets)?;
                    ensure!(status == 200, "turn {turn}: {status} {answer}");
                    (version, document) = shown(&appliance)?;
                    ensure!(document == first, "turn {turn}: {document}");
                }
            }
            422 => {
                ensure!(
                    answer["problems"].as_array().is_some_and(|all| !all.is_empty()),
                    "turn {turn}: {answer}"
                );
                refused += 1;
                if turn % 50 == 0 {
                    ensure!(
                        shown(&appliance)? == (version, document.clone()),
                        "turn {turn}: half of {wanted}"
                    );
                }
            }
            _ => anyhow::bail!("turn {turn}: {status} {answer} for {wanted}"),
        }
    }
    eprintln!("{taken} accepted, {refused} refused");
    ensure!(taken > 100 && refused > 1000, "{taken} accepted, {refused} refused: the test proves nothing");
    // After all that, the original account and peer still work.
    let (status, answer) = send(&appliance, "PUT", "/v1/configuration", version, &with_secrets)?;
    ensure!(status == 200, "{status} {answer}");
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.count) = (1, Some(500));
    let report = Source::start(&options, &tally)?.join()?;
    ensure!(report.refusals.is_empty(), "{:?}", report.refusals);
    until("all arrive", || Ok(tally.arrived_count() == 500))?;
    let (status, _) = appliance.stop()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

//! Guests that import WASI find an empty world; what they see and say goes the way of all plugins.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use arc_swap::ArcSwap;
use capabilities::{
    Counters, Fetch, FetchFailure, Grants, LogBudgets, MemoryValues, Request, Response, Shelf, ShelfOptions,
    TableHlr,
};
use hooks::{Binding, Board, Hooks, HooksOptions, Powers};
use model::{Directory, Hook, Message, Timestamp};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use support::{passes, plugin, root, run};

fn guest(name: &str) -> PathBuf {
    root().join("plugins/wasi-guests").join(name)
}

#[test]
fn a_guest_in_python_finds_nothing() {
    passes(&guest("python"), &guest("python").join("cases.toml"));
}

#[test]
fn a_guest_in_javascript_finds_nothing() {
    passes(&guest("js"), &guest("js").join("cases.toml"));
}

struct Nowhere;

impl Fetch for Nowhere {
    fn fetch(&self, _: &str, _: &Grants, _: Request) -> Result<Response, FetchFailure> {
        Err(FetchFailure::Unreachable("nowhere".to_owned()))
    }
}

/// The guest in Python, in the host.
struct House {
    hooks: Arc<Hooks>,
    version: String,
    _folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run(plugin().arg("build").arg(guest("python"))).unwrap();
        let shelf = Arc::new(Shelf::open(&folder.path().join("tables"), ShelfOptions::default()).unwrap());
        let powers = Powers {
            board: Arc::new(Board::default()),
            pools: Arc::default(),
            counters: Arc::new(Counters::default()),
            durable_counters: Arc::default(),
            values: Arc::new(MemoryValues::default()),
            fetch: Arc::new(Nowhere),
            hlr: Arc::new(TableHlr::new(shelf.clone())),
            shelf,
            lines: LogBudgets::default(),
        };
        let options = HooksOptions { instances: 8, ..HooksOptions::default() };
        let directory = Arc::new(ArcSwap::from_pointee(Directory::new()));
        let hooks = Hooks::open(&folder.path().join("plugins"), options, directory, powers).unwrap();
        let octets = std::fs::read(guest("python").join("test-ambient-python.wasm")).unwrap();
        let version = hooks.upload("guest", &octets, None).unwrap().version;
        Self { hooks, version, _folder: folder }
    }

    fn trial(&self, policy: &str, random: bool) -> hooks::Trial {
        let mut binding = Binding::new("guest", &self.version, policy);
        binding.grants.random = random;
        self.hooks.trial(Hook::Router, &[binding]).unwrap()
    }
}

fn message() -> Message {
    support::message("8613012345678")
}

/// What the log got.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(octets)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn time_and_chance_are_on_record_and_what_is_printed_is_in_the_log() {
    let house = House::new();
    let (then, later) = (Timestamp(1_800_000_000_000), Timestamp(1_900_000_000_000));
    let note = |tried: &hooks::Tried| tried.note.as_deref().unwrap().to_owned();

    let clock = house.trial("time", false);
    let told = clock.route(&message(), then, None);
    assert_eq!(note(&told), "1800000000000");
    let again = clock.route(&message(), later, told.seen.as_deref());
    assert_eq!((note(&again), again.missing), (note(&told), None));

    // Chance that is granted is chance, and a replay draws what was drawn.
    let chance = house.trial("random", true);
    let drawn = chance.route(&message(), then, None);
    assert_ne!(note(&drawn), note(&chance.route(&message(), then, None)));
    let again = chance.route(&message(), later, drawn.seen.as_deref());
    assert_eq!((note(&again), again.missing), (note(&drawn), None));
    let never = chance.route(&message(), later, Some(&[]));
    assert_eq!(never.missing, Some("a random number"));
    let fixed = house.trial("random", false);
    assert_eq!(note(&never), note(&fixed.route(&message(), then, None)));

    let talker = house.trial("say", false);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || talker.route(&message(), then, None));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("plugin says")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    for (line, said) in lines.iter().zip(["one line", "another line", "in trouble"]) {
        assert!(
            line.contains(said) && line.contains("plugin=\"guest\"") && line.contains(&house.version),
            "{line}"
        );
    }
}

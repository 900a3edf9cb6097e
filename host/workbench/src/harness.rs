//! The bench: the appliance's own host, with what a case gives in the place of the appliance's.

use crate::bench::{Answer, Bench, Exchange, Given, HttpFailure, PoolState, Question, Subscriber, TableKind};
use crate::words::Words;
use arc_swap::ArcSwap;
use capabilities::{Counters, DurableCounters, Fetch, FetchFailure, Hlr, HlrFailure, HlrSubscriber};
use capabilities::{LogBudgets, MemoryValues, Request, Response, Shelf, ShelfOptions, Values as _};
use hooks::{Binding, Board, HookError, Hooks, HooksOptions, PoolBoard, Powers};
use model::{Directory, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a component is called here.
const PLUGIN: &str = "plugin";
/// Stands for the peer of our own subscribers, which routers cannot name.
pub(crate) const HOME: &str = "(home)";

/// A component in the host.
pub(crate) struct Harness {
    folder: tempfile::TempDir,
    version: String,
    hook: model::Hook,
}

impl Harness {
    /// Takes a component, as an upload would.
    pub(crate) fn new(component: &[u8]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (hooks, _) = open(folder.path(), &Given::default(), &[])?;
        let info = hooks.upload(PLUGIN, component, None).map_err(|error| error.to_string())?;
        Ok(Self { folder, version: info.version, hook: info.hook })
    }
}

/// The host, with what a case gives, and what its questions name.
fn open(folder: &Path, given: &Given, questions: &[Question]) -> Result<(Arc<Hooks>, Directory), String> {
    let mut directory = Directory::new();
    let asked = questions.iter().flat_map(names);
    for name in std::iter::once(HOME).chain(given.peers.keys().map(String::as_str)).chain(asked) {
        directory.intern(name).map_err(|error| error.to_string())?;
    }
    let options = HooksOptions { instances: 8, home: directory.id(HOME), ..HooksOptions::default() };
    let powers = powers(&folder.join("tables"), given)?;
    let shared = Arc::new(ArcSwap::from_pointee(directory.clone()));
    let hooks = Hooks::open(&folder.join("plugins"), options, shared, powers);
    Ok((hooks.map_err(|error| error.to_string())?, directory))
}

/// Accounts and peers of a question, which the configuration would have too.
fn names(question: &Question) -> Vec<&str> {
    match question {
        Question::Configure | Question::Resolve(_) | Question::Settle(_) => Vec::new(),
        Question::Route(message) | Question::Price(message, None) => vec![&message.origin],
        Question::Price(message, Some(leg)) => vec![&message.origin, &leg.peer],
        Question::Next(message, attempt) => vec![&message.origin, &attempt.peer],
    }
}

fn powers(tables: &Path, given: &Given) -> Result<Powers, String> {
    // A case sees its own tables and nobody else's.
    if tables.exists() {
        std::fs::remove_dir_all(tables).map_err(|error| error.to_string())?;
    }
    let shelf = Shelf::open(tables, ShelfOptions::default()).map_err(|error| error.to_string())?;
    for (name, table) in &given.tables {
        let kind = match table.kind {
            TableKind::Exact => capabilities::TableKind::Exact,
            TableKind::Prefix => capabilities::TableKind::Prefix,
        };
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = table.rows.iter().map(|(key, value)| format!("{},{}\n", quoted(key), quoted(value)));
        let csv: String = rows.collect();
        shelf.put(name, kind, csv.as_bytes()).map_err(|error| format!("table {name:?}: {error}"))?;
    }
    let board = Board::default();
    let states = given
        .peers
        .iter()
        .map(|(name, peer)| (name.clone(), hooks::PeerState { links: peer.links, queued: peer.queued }));
    board.publish(states.collect());
    let pools = PoolBoard::default();
    let states = given.pools.iter().map(|(name, pool)| {
        let PoolState { ready, busy, down, total } = *pool;
        (name.clone(), hooks::PoolState { ready, busy, down, total })
    });
    pools.publish(states.collect());
    let counters = Counters::default();
    // A trial counts for itself, under this name.
    let space = counters.space(&format!("{PLUGIN}#shadow"));
    let durable_counters = DurableCounters::default();
    for counted in &given.counters {
        if let Some(grant) = given.grants.counters.iter().find(|grant| grant.name == counted.name) {
            let counter = durable_counters.counter(PLUGIN, grant).map_err(|error| error.to_string())?;
            counter.add(&counted.key, counted.amount, Timestamp(given.now));
            continue;
        }
        let window = Duration::from_millis(counted.window_ms);
        space.add(&counted.name, &counted.key, counted.amount, window, Timestamp(given.now));
    }
    let values = MemoryValues::default();
    for (key, value) in &given.kv {
        values
            .set(PLUGIN, key, value.as_bytes(), u64::MAX)
            .map_err(|error| format!("kv {key:?}: {error}"))?;
    }
    Ok(Powers {
        board: Arc::new(board),
        pools: Arc::new(pools),
        counters: Arc::new(counters),
        durable_counters: Arc::new(durable_counters),
        values: Arc::new(values),
        fetch: Arc::new(Others(given.http.clone())),
        shelf: Arc::new(shelf),
        hlr: Arc::new(Register(given.hlr.clone())),
        lines: LogBudgets::default(),
    })
}

/// Other systems, as a case has them.
struct Others(Vec<Exchange>);

impl Fetch for Others {
    fn fetch(
        &self,
        _plugin: &str,
        grants: &capabilities::Grants,
        request: Request,
    ) -> Result<Response, FetchFailure> {
        grants.check(&request)?;
        let found = self.0.iter().find(|one| one.method == request.method && one.url == request.url);
        let Some(found) = found else {
            let (method, url) = (request.method, request.url);
            return Err(FetchFailure::Unreachable(format!("no [[given.http]] answers {method} {url}")));
        };
        match found.failure {
            Some(HttpFailure::TimedOut) => Err(FetchFailure::TimedOut),
            Some(HttpFailure::TooLarge) => Err(FetchFailure::TooLarge),
            Some(HttpFailure::Unreachable) => Err(FetchFailure::Unreachable("no connection".to_owned())),
            None if found.body.len() > grants.limits.answer => Err(FetchFailure::TooLarge),
            None => Ok(Response {
                status: found.status,
                headers: found.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                body: found.body.clone().into_bytes(),
            }),
        }
    }
}

/// The home location register, as a case has it.
struct Register(BTreeMap<String, Subscriber>);

impl Hlr for Register {
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let found = self.0.get(msisdn.strip_prefix('+').unwrap_or(msisdn)).ok_or(HlrFailure::Unknown)?;
        Ok(HlrSubscriber { imsi: found.imsi.clone(), serving: found.serving.clone() })
    }
}

impl Bench for Harness {
    fn ask(&self, given: &Given, questions: &[Question]) -> Result<Answer, String> {
        let (hooks, directory) = open(self.folder.path(), given, questions)?;
        let mut binding = Binding::new(PLUGIN, &self.version, &given.policy);
        binding.grants = hooks::Grants {
            http: given.grants.http.clone(),
            kv: given.grants.kv,
            tables: given.grants.tables.clone(),
            hlr: given.grants.hlr,
            random: given.grants.random,
            counters: given.grants.counters.clone(),
            ..hooks::Grants::default()
        };
        binding.memory = given.memory.unwrap_or(binding.memory);
        binding.deadline = given.deadline_ms.map_or(binding.deadline, Duration::from_millis);
        let trial = match hooks.trial(self.hook, &[binding]) {
            Ok(trial) => trial,
            Err(HookError::Refused { why, .. }) => return Ok(Answer::Refused(why)),
            Err(error @ HookError::Faulty { .. }) => return Ok(Answer::Fault(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        let words = Words { directory: &directory, now: Timestamp(given.now) };
        let mut answer = Answer::Configured;
        for question in questions {
            answer = words.put(&trial, question);
        }
        Ok(answer)
    }
}

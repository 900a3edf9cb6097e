//! A measured server: it speaks the Redis protocol and has a pool.

use crate::tool_run::ToolRun;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::load::pools::{CallerOptions, CallerReport, Callers, Holders, RedisClient, RedisReply};
use testkit::load::{cpu_time_by_thread, process_cpu_time, resident_memory};
use testkit::redis::Redis;
use testkit::test_daemon::{TestDaemon, free_port};

/// The script that Redis runs. The appliance recognises it by its SHA-1.
const SCRIPT: &str = include_str!("script.lua");

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TargetKind {
    /// The appliance: answers are durable.
    Ours,
    /// Redis with default settings: answers are in memory.
    Redis,
    /// Redis with a log, and an fsync before each round of answers.
    RedisAlways,
}

impl TargetKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "Switchyard, durable",
            Self::Redis => "Redis, default",
            Self::RedisAlways => "Redis, fsync always",
        }
    }
}

enum Server {
    Redis(Redis),
    Ours(Box<TestDaemon>),
}

/// A running server.
pub(super) struct Target {
    pub(super) kind: TargetKind,
    server: Server,
    address: SocketAddr,
    script: String,
}

/// A pool on the server, filled with numbers.
pub(super) struct Pool {
    key: String,
    holders: Arc<Holders>,
}

/// One measurement.
pub(super) struct CallRates {
    pub(super) report: CallerReport,
    /// CPU microseconds of the server per call and hangup.
    pub(super) cost: f64,
    /// The same, by thread.
    pub(super) threads: BTreeMap<String, f64>,
}

/// Number of connections, batch size and threads.
#[derive(Clone, Copy)]
pub(super) struct ClientLoad {
    pub(super) connections: usize,
    pub(super) batch: usize,
    pub(super) threads: usize,
}

impl Target {
    /// Starts a server. A Redis server loads the script first, which returns its SHA-1.
    pub(super) fn start(
        kind: TargetKind,
        folder: &Path,
        tool_run: Option<&ToolRun>,
        script: &str,
    ) -> Result<Self> {
        let redis = |name: &str, settings: &[&str]| -> Result<(Server, SocketAddr)> {
            let redis = Redis::start(&folder.join(name), settings)?;
            ensure!(redis.load(SCRIPT)? == script, "the sum of the script");
            let address = redis.address();
            Ok((Server::Redis(redis), address))
        };
        let (server, address) = match kind {
            TargetKind::Redis => redis("redis", &[])?,
            TargetKind::RedisAlways => {
                redis("redis-always", &["--appendonly", "yes", "--appendfsync", "always"])?
            }
            TargetKind::Ours => {
                let tool_run = tool_run.context("the appliance was not built")?;
                let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
                let mut config = tool_run.config("pool")?;
                config.peer("upstream", SocketAddr::from(([127, 0, 0, 1], free_port()?)), "");
                config.native("upstream");
                config.tables(&format!("[redis]\nlisten = [\"{address}\"]\nscripts = [\"{script}\"]\n"));
                (Server::Ours(Box::new(config.start()?)), address)
            }
        };
        Ok(Self { kind, server, address, script: script.to_owned() })
    }

    /// The SHA-1 of the script, computed by a temporary Redis.
    pub(super) fn script(folder: &Path) -> Result<String> {
        Redis::start(&folder.join("sum"), &["--save", ""])?.load(SCRIPT)
    }

    fn id(&self) -> u32 {
        match &self.server {
            Server::Redis(redis) => redis.id(),
            Server::Ours(appliance) => appliance.id(),
        }
    }

    /// Memory, in octets.
    pub(super) fn memory(&self) -> Option<u64> {
        resident_memory(self.id())
    }

    /// Creates a pool with this many numbers, all idle and up.
    pub(super) fn pool(&self, name: &str, numbers: usize) -> Result<Pool> {
        let pool = Pool { key: format!("{{{name}}}"), holders: Arc::new(Holders::new(numbers)) };
        let load = ClientLoad { connections: 1, batch: 1, threads: 1 };
        Callers::fill(&self.ask(&pool, load, Duration::ZERO), &pool.holders)
            .with_context(|| self.context_text("while it was filled"))?;
        self.check(&pool)?;
        Ok(pool)
    }

    fn ask(&self, pool: &Pool, load: ClientLoad, time: Duration) -> CallerOptions {
        CallerOptions {
            address: self.address,
            pool: pool.key.clone(),
            script: self.script.clone(),
            connections: load.connections,
            batch: load.batch,
            threads: load.threads,
            warm_up: Duration::from_millis(500),
            time,
        }
    }

    /// Calls and hangs up for this time. Every call must get a free number, and at the end all numbers must be free.
    pub(super) fn measure(&self, pool: &Pool, load: ClientLoad, time: Duration) -> Result<CallRates> {
        let most = load.connections * load.batch;
        ensure!(
            pool.holders.numbers() > most,
            "{most} calls at a time, but only {} numbers",
            pool.holders.numbers()
        );
        let before = (process_cpu_time(self.id()), cpu_time_by_thread(self.id()));
        let report = Callers::run(&self.ask(pool, load, time), &pool.holders)
            .with_context(|| self.context_text("while it was called"))?;
        let after = (process_cpu_time(self.id()), cpu_time_by_thread(self.id()));
        report.clean().with_context(|| self.kind.name())?;
        self.check(pool)?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / report.calls as f64;
        let cost = after.0.unwrap_or_default().saturating_sub(before.0.unwrap_or_default());
        let threads = after.1.iter().map(|(name, time)| {
            (name.clone(), each(time.saturating_sub(before.1.get(name).copied().unwrap_or_default())))
        });
        Ok(CallRates { cost: each(cost), threads: threads.collect(), report })
    }

    /// Checks that all numbers are idle, up and in the list.
    fn check(&self, pool: &Pool) -> Result<()> {
        let all = RedisReply::Integer(pool.holders.numbers() as i64);
        let mut client = RedisClient::connect(self.address)?;
        let listed = client.ask(&["LLEN", &format!("{}:idle:up", pool.key)])?;
        let there = client.ask(&["HLEN", &format!("{}:numstate", pool.key)])?;
        ensure!(
            listed == all && there == all && pool.holders.held() == 0,
            "{}: {listed:?} on the list, {there:?} in the pool, of {all:?}; {} held",
            self.kind.name(),
            pool.holders.held()
        );
        Ok(())
    }

    fn context_text(&self, when: &str) -> String {
        let log = match &self.server {
            Server::Redis(redis) => redis.log(),
            Server::Ours(appliance) => appliance.log(20),
        };
        format!("{} {when}; its log ends:\n{log}", self.kind.name())
    }
}

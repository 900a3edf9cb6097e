//! What is asked: a server that speaks the Redis protocol, with a pool in it.

use crate::tools::place::Place;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use xtask::appliance::{Appliance, free_port};
use xtask::load::pools::{Answer, CallerOptions, CallerReport, Callers, Client, Holders};
use xtask::load::{process_time, resident, thread_times};
use xtask::redis::Redis;

/// The script that Redis runs. The appliance knows it by its sum.
const SCRIPT: &str = include_str!("script.lua");

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// The appliance: what is answered is on disk.
    Ours,
    /// Redis as it comes: what is answered is in memory.
    Redis,
    /// Redis with a log, and an fsync before each round of answers.
    RedisAlways,
}

impl Kind {
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
    Ours(Box<Appliance>),
}

/// A running server.
pub(super) struct Target {
    pub(super) kind: Kind,
    server: Server,
    address: SocketAddr,
    script: String,
}

/// A pool of one, full of numbers.
pub(super) struct Pool {
    key: String,
    holders: Arc<Holders>,
}

/// One measurement.
pub(super) struct Measured {
    pub(super) report: CallerReport,
    /// Processor microseconds of the server for each call and its hangup.
    pub(super) cost: f64,
    /// The same, by thread.
    pub(super) threads: BTreeMap<String, f64>,
}

/// How many there are of whom.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    pub(super) connections: usize,
    pub(super) batch: usize,
    pub(super) threads: usize,
}

impl Target {
    /// Starts it. The script is given to one of the Redis kind first: it says the sum.
    pub(super) fn start(kind: Kind, folder: &Path, place: Option<&Place>, script: &str) -> Result<Self> {
        let redis = |name: &str, settings: &[&str]| -> Result<(Server, SocketAddr)> {
            let redis = Redis::start(&folder.join(name), settings)?;
            ensure!(redis.load(SCRIPT)? == script, "the sum of the script");
            let address = redis.address();
            Ok((Server::Redis(redis), address))
        };
        let (server, address) = match kind {
            Kind::Redis => redis("redis", &[])?,
            Kind::RedisAlways => redis("redis-always", &["--appendonly", "yes", "--appendfsync", "always"])?,
            Kind::Ours => {
                let place = place.context("the appliance was not built")?;
                let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
                let mut blueprint = place.blueprint("pool")?;
                blueprint.peer("upstream", SocketAddr::from(([127, 0, 0, 1], free_port()?)), "");
                blueprint.native("upstream");
                blueprint.tables(&format!("[redis]\nlisten = [\"{address}\"]\nscripts = [\"{script}\"]\n"));
                (Server::Ours(Box::new(blueprint.start()?)), address)
            }
        };
        Ok(Self { kind, server, address, script: script.to_owned() })
    }

    /// The sum of the script, by a Redis that is started for that.
    pub(super) fn script(folder: &Path) -> Result<String> {
        Redis::start(&folder.join("sum"), &["--save", ""])?.load(SCRIPT)
    }

    fn id(&self) -> u32 {
        match &self.server {
            Server::Redis(redis) => redis.id(),
            Server::Ours(appliance) => appliance.id(),
        }
    }

    /// Octets of its memory.
    pub(super) fn memory(&self) -> Option<u64> {
        resident(self.id())
    }

    /// A new pool of so many numbers, idle and up.
    pub(super) fn pool(&self, name: &str, numbers: usize) -> Result<Pool> {
        let pool = Pool { key: format!("{{{name}}}"), holders: Arc::new(Holders::new(numbers)) };
        let crowd = Crowd { connections: 1, batch: 1, threads: 1 };
        Callers::fill(&self.ask(&pool, crowd, Duration::ZERO), &pool.holders)
            .with_context(|| self.words("while it was filled"))?;
        self.check(&pool)?;
        Ok(pool)
    }

    fn ask(&self, pool: &Pool, crowd: Crowd, time: Duration) -> CallerOptions {
        CallerOptions {
            address: self.address,
            pool: pool.key.clone(),
            script: self.script.clone(),
            connections: crowd.connections,
            batch: crowd.batch,
            threads: crowd.threads,
            warm_up: Duration::from_millis(500),
            time,
        }
    }

    /// Calls and hangs up for a while. Every call must get a number that nobody has, and all must be back at the end.
    pub(super) fn measure(&self, pool: &Pool, crowd: Crowd, time: Duration) -> Result<Measured> {
        let most = crowd.connections * crowd.batch;
        ensure!(
            pool.holders.numbers() > most,
            "{most} calls at a time, and only {} numbers",
            pool.holders.numbers()
        );
        let before = (process_time(self.id()), thread_times(self.id()));
        let report = Callers::run(&self.ask(pool, crowd, time), &pool.holders)
            .with_context(|| self.words("while it was called"))?;
        let after = (process_time(self.id()), thread_times(self.id()));
        report.clean().with_context(|| self.kind.name())?;
        self.check(pool)?;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / report.calls as f64;
        let cost = after.0.unwrap_or_default().saturating_sub(before.0.unwrap_or_default());
        let threads = after.1.iter().map(|(name, time)| {
            (name.clone(), each(time.saturating_sub(before.1.get(name).copied().unwrap_or_default())))
        });
        Ok(Measured { cost: each(cost), threads: threads.collect(), report })
    }

    /// All numbers are idle, up and on the list.
    fn check(&self, pool: &Pool) -> Result<()> {
        let all = Answer::Integer(pool.holders.numbers() as i64);
        let mut client = Client::connect(self.address)?;
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

    fn words(&self, when: &str) -> String {
        let log = match &self.server {
            Server::Redis(redis) => redis.log(),
            Server::Ours(appliance) => appliance.log(20),
        };
        format!("{} {when}; its log ends:\n{log}", self.kind.name())
    }
}

//! A client of a number pool that outlives the crashes of the appliance.

use anyhow::{Context as _, Result, bail, ensure};
use model::Random;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testkit::load::StopFlag;
use testkit::load::pools::{RedisClient, RedisReply};
use testkit::test_daemon::PASSWORD;

/// Numbers in the pool.
const NUMBERS: usize = 2_000;
/// The number of leases that the client approximately holds.
const TYPICAL_LEASES: usize = 500;
/// The pool's key.
const POOL: &str = "{crash}";
/// The SHA-1 by which the appliance recognises the pool script.
pub(crate) const SCRIPT: &str = "6f05c87dd30ac0882ecd4a2516eb8cbc575be07d";

/// Leases and releases numbers, one request at a time, and records the answers.
pub(crate) struct Lessee {
    server: Server,
    stop: Arc<StopFlag>,
    random: Random,
    /// Numbers with a confirmed lease and no release request.
    held: BTreeSet<String>,
    /// Numbers whose release was requested and not confirmed.
    doubtful: BTreeSet<String>,
    /// Number of leases that were requested and not confirmed.
    unanswered: usize,
    answered: u64,
}

/// Final counts of the client.
pub(crate) struct LesseeReport {
    /// Answered requests.
    pub(crate) answered: u64,
    /// Requests whose answer never came.
    pub(crate) unanswered: usize,
}

/// Access to the pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Whether the appliance has the account [`ACCOUNT`].
    pub(crate) has_account: bool,
}

/// The account of the client.
pub(crate) const ACCOUNT: &str = "lessee";

/// Maximum time to connect after a fault.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);

impl Server {
    fn connect(self) -> Result<RedisClient> {
        let mut client = RedisClient::connect(self.address)?;
        if self.has_account {
            let answer = client.ask(&["AUTH", ACCOUNT, PASSWORD])?;
            ensure!(matches!(answer, RedisReply::Status(_)), "the login was answered by {answer:?}");
        }
        Ok(client)
    }

    /// As [`Server::connect`], and tries again: after a fault, the load balancer may not have found the new leader yet.
    fn connect_within(self, time: Duration) -> Result<RedisClient> {
        let (begun, pause) = (Instant::now(), StopFlag::default());
        loop {
            match self.connect() {
                Err(_) if begun.elapsed() < time => pause.pause(Duration::from_millis(50)),
                result => return result,
            };
        }
    }
}

impl Lessee {
    /// Fills the pool, and starts.
    pub(crate) fn start(
        server: Server,
        stop: &Arc<StopFlag>,
        seed: u64,
    ) -> Result<JoinHandle<Result<LesseeReport>>> {
        let mut client = server.connect()?;
        for index in 0..NUMBERS {
            for event in ["add", "reg"] {
                let answer = ask(&mut client, event, &number(index))?;
                ensure!(answer == RedisReply::Text("1".to_owned()), "filling the pool: {answer:?}");
            }
        }
        let lessee = Self {
            server,
            stop: Arc::clone(stop),
            random: Random::new(seed),
            held: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            unanswered: 0,
            answered: 0,
        };
        Ok(std::thread::Builder::new().name("lessee".to_owned()).spawn(move || lessee.run())?)
    }

    fn run(mut self) -> Result<LesseeReport> {
        while !self.stop.is_set() {
            // Between a kill and the next start, connections are refused.
            if let Ok(mut client) = self.server.connect() {
                while !self.stop.is_set() && self.step(&mut client)? {}
            } else {
                self.stop.pause(Duration::from_millis(20));
            }
        }
        self.settle()
    }

    /// Makes one request. Returns whether the connection still works.
    fn step(&mut self, client: &mut RedisClient) -> Result<bool> {
        let lease = self.held.is_empty()
            || self.random.between(0, 2 * TYPICAL_LEASES as u64) >= self.held.len() as u64;
        if lease {
            let Ok(answer) = client.ask(&["EVALSHA", SCRIPT, "1", POOL, "call"]) else {
                self.unanswered += 1;
                return Ok(false);
            };
            let RedisReply::Text(number) = answer else { bail!("a lease was answered by {answer:?}") };
            self.doubtful.remove(&number);
            ensure!(!self.held.contains(&number), "the number {number} was leased twice");
            self.held.insert(number);
        } else {
            let at = self.random.between(0, self.held.len() as u64 - 1) as usize;
            let number = self.held.iter().nth(at).cloned().context("no number at this place")?;
            self.held.remove(&number);
            let Ok(answer) = ask(client, "hangup", &number) else {
                self.doubtful.insert(number);
                return Ok(false);
            };
            ensure!(answer == RedisReply::Text("1".to_owned()), "the lease of {number} was lost: {answer:?}");
        }
        self.answered += 1;
        Ok(true)
    }

    /// Releases everything: each confirmed lease must exist, and in addition at most the unconfirmed ones.
    fn settle(mut self) -> Result<LesseeReport> {
        let mut client = self.server.connect_within(RECONNECT_TIMEOUT)?;
        for number in std::mem::take(&mut self.held) {
            let answer = ask(&mut client, "hangup", &number)?;
            ensure!(answer == RedisReply::Text("1".to_owned()), "the lease of {number} was lost: {answer:?}");
        }
        let idle = match client.ask(&["LLEN", &format!("{POOL}:idle:up")])? {
            RedisReply::Integer(idle) => usize::try_from(idle).context("a negative length")?,
            other => bail!("the length of the idle list: {other:?}"),
        };
        let unknown = NUMBERS.saturating_sub(idle);
        let possible = self.unanswered + self.doubtful.len();
        ensure!(
            unknown <= possible,
            "{unknown} numbers are leased by nobody, and only {possible} requests had no answer"
        );
        Ok(LesseeReport { answered: self.answered, unanswered: possible })
    }
}

fn number(index: usize) -> String {
    (20_000_000_000 + index as u64).to_string()
}

fn ask(client: &mut RedisClient, event: &str, number: &str) -> Result<RedisReply> {
    client.ask(&["EVALSHA", SCRIPT, "1", POOL, event, number])
}

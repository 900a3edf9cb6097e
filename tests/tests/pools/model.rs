//! Long random sequences of requests over HTTP and the Redis protocol, compared with a model step by step, with SIGKILL in
//! between. `SWITCHYARD_SEED` repeats a run.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::StopFlag;
use behaviour_tests::load::pools::{RedisClient, RedisReply};
use behaviour_tests::pools::{
    PoolEvent, PoolModel, PoolProtocol, PoolReply, PoolRequest, PoolServer, RequestBatch, legacy_state,
};
use behaviour_tests::{Fixture, until};
use model::{Random, Timestamp};
use std::time::Duration;

const NUMBERS: [&str; 14] = [
    "123456",
    "123457",
    "13800138000",
    "13800138001",
    "+4930123456",
    "+4930123457",
    "+49891",
    "*7#",
    "#31#",
    "0",
    "8613800138000",
    "8613800138001",
    "9999999999999999",
    "1234567890123456",
];
/// A lease that does not end during the test.
const LONG: u64 = 3_600_000;

/// A pool, its model, and its clients.
struct ModelRun {
    server: PoolServer,
    client: RedisClient,
    pool: String,
    model: PoolModel,
    random: Random,
    /// Tickets that were valid once.
    stale: Vec<(String, u64)>,
    /// Coverage counters, for analysing failures.
    crashes: usize,
    doubtful: usize,
    done: usize,
    lapses: usize,
}

impl ModelRun {
    fn begin(fixture: &Fixture, seed: u64) -> Result<Self> {
        let server = PoolServer::open(fixture, "")?;
        // Created before the first request.
        server.appliance()?.ask("PUT", "/v1/pools/run", b"")?;
        Ok(Self {
            client: server.client()?,
            server,
            pool: "run".to_owned(),
            model: PoolModel::new(true),
            random: Random::new(seed),
            stale: Vec::new(),
            crashes: 0,
            doubtful: 0,
            done: 0,
            lapses: 0,
        })
    }

    /// Whether a crash, an uncertain event after a crash, and the end of a lease have occurred.
    fn has_full_coverage(&self) -> bool {
        self.crashes > 0 && self.doubtful > 0 && self.lapses > 0
    }

    fn number(&mut self) -> String {
        let place = self.random.between(0, NUMBERS.len() as u64);
        NUMBERS[place as usize].to_owned()
    }

    fn one_of(&mut self, states: &[&str]) -> Option<String> {
        let fits: Vec<_> = states.iter().flat_map(|state| self.model.numbers_in_state(state)).collect();
        self.random.one(&fits).cloned()
    }

    /// A random request, mostly one that can succeed in the current state.
    fn request(&mut self, model: &PoolModel) -> PoolRequest {
        let standing = std::mem::replace(&mut self.model, model.clone());
        let request = self.choose();
        self.model = standing;
        request
    }

    fn choose(&mut self) -> PoolRequest {
        let number = self.number();
        let busy = self.one_of(&["busy+up", "busy+down"]).unwrap_or_else(|| number.clone());
        match self.random.between(0, 100) {
            0..30 => self.call(None),
            30..36 => self.call(Some(number)),
            36..56 => PoolRequest::Event(PoolEvent::Hangup, busy),
            56..60 => PoolRequest::Event(PoolEvent::Hangup, number),
            60..70 => PoolRequest::Event(PoolEvent::Add, number),
            70..82 => {
                let down = self.one_of(&["idle+down", "busy+down"]).unwrap_or(number);
                PoolRequest::Event(PoolEvent::Reg, down)
            }
            82..84 => PoolRequest::Event(PoolEvent::Reg, number),
            84..90 => PoolRequest::Event(PoolEvent::Unreg, number),
            90..93 => PoolRequest::Event(PoolEvent::Del, number),
            choice => {
                let good = self.model.ticket(&busy).map(|ticket| (busy, ticket));
                let bad = self.random.one(&self.stale).cloned();
                let (number, ticket) = match (good, bad) {
                    (Some(good), _) if choice < 98 => good,
                    (_, Some(bad)) => bad,
                    _ => (number, 0),
                };
                if choice % 2 == 0 {
                    PoolRequest::HangupOf(number, ticket)
                } else {
                    let lease = self.random.chance(50).then_some(LONG);
                    PoolRequest::Renew(number, ticket, lease)
                }
            }
        }
    }

    fn call(&mut self, number: Option<String>) -> PoolRequest {
        let holder = if self.random.chance(40) {
            format!("agent-{}", self.random.between(0, 9))
        } else {
            String::new()
        };
        let lease = self.random.chance(20).then_some(LONG);
        PoolRequest::Call { number, holder, callee: String::new(), lease }
    }

    /// Several requests, each chosen with regard to the earlier ones.
    fn requests(&mut self, most: u64) -> Vec<PoolRequest> {
        let mut ahead = self.model.clone();
        (0..self.random.between(1, most))
            .map(|_| {
                let request = self.request(&ahead);
                ahead.apply(&request, "", None);
                request
            })
            .collect()
    }

    fn check(&mut self, request: &PoolRequest, by: &str, reply: &PoolReply) -> Result<()> {
        self.model.check(request, by, reply)?;
        self.done += 1;
        if let (Some(number), Some(ticket)) = (&reply.number, reply.ticket) {
            self.stale.push((number.clone(), ticket));
            let surplus = self.stale.len().saturating_sub(50);
            self.stale.drain(..surplus);
        }
        Ok(())
    }

    /// Encodes the requests, each in a random form of the Redis protocol.
    fn batch(&mut self, requests: &[PoolRequest]) -> RequestBatch {
        let random = &mut self.random;
        let protocols = requests.iter().map(|request| {
            (request, if random.chance(60) { PoolProtocol::Script } else { PoolProtocol::Plain })
        });
        RequestBatch::new(&self.pool, protocols)
    }

    fn send_by_redis(&mut self) -> Result<()> {
        let requests = self.requests(25);
        let batch = self.batch(&requests);
        batch.send(&mut self.client)?;
        for (index, request) in requests.iter().enumerate() {
            let answer = self.client.answer()?;
            let reply = batch.decode(index, request, &answer)?;
            self.check(request, PoolProtocol::Script.by(), &reply)?;
        }
        Ok(())
    }

    fn send_by_http(&mut self) -> Result<()> {
        let requests = self.requests(25);
        let reply = self.server.post(&self.pool, &requests)?;
        requests
            .iter()
            .zip(&reply)
            .try_for_each(|(request, reply)| self.check(request, PoolProtocol::Http.by(), reply))
    }

    fn send_one_by_http(&mut self) -> Result<()> {
        let request = self.request(&self.model.clone());
        let reply = self.server.post_one(&self.pool, &request)?;
        self.check(&request, PoolProtocol::Http.by(), &reply)
    }

    /// Compares the visible state with the model.
    fn compare_visible_state(&mut self) -> Result<()> {
        let (seen, must) = (self.server.view(&self.pool)?, self.model.view());
        ensure!(seen == must, "seen {seen:#?}\nmust {must:#?}");
        // Calls by the script return no ticket.
        let busy =
            [self.model.numbers_in_state("busy+up"), self.model.numbers_in_state("busy+down")].concat();
        if let Some(number) = self.random.one(&busy).filter(|number| self.model.ticket(number).is_none()) {
            let ticket = self.server.ticket(&self.pool, number)?;
            self.model.ticketed(number, ticket)?;
        }
        Ok(())
    }

    /// Two short leases, of which the later one ends first; perhaps with a crash in between.
    fn leases(&mut self, crash: bool) -> Result<()> {
        let lease = |lease| PoolRequest::Call {
            number: None,
            holder: "short".to_owned(),
            callee: String::new(),
            lease,
        };
        let requests = [lease(Some(120)), lease(Some(LONG)), lease(Some(40))];
        let reply = self.server.post(&self.pool, &requests)?;
        for (request, reply) in requests.iter().zip(&reply) {
            // The first may end while we still read the answers: no request is sent until both have ended.
            self.check(request, PoolProtocol::Http.by(), reply)?;
        }
        if crash {
            self.server.crash()?;
            self.client = self.server.client()?;
            self.crashes += 1;
        }
        for reply in [&reply[2], &reply[0]] {
            let Some(number) = &reply.number else { continue };
            let key = format!("{{{}}}:numstate", self.pool);
            until("the lease ends", || {
                let state = self.client.ask(&["HGET", &key, number])?;
                ensure!(matches!(&state, RedisReply::Text(_)), "{number}: {state:?}");
                Ok(state == RedisReply::Text(legacy_state("idle+up")))
            })?;
            self.model.expire_lease(number);
            self.lapses += 1;
        }
        Ok(())
    }

    /// SIGKILL during a batch. Answered requests must have been applied, and a prefix of the others.
    fn crash_by_redis(&mut self) -> Result<()> {
        let requests = self.requests(60);
        let batch = self.batch(&requests);
        batch.send(&mut self.client)?;
        let mut answered = 0;
        for _ in 0..self.random.between(0, requests.len() as u64 + 1) {
            let answer = self.client.answer()?;
            let reply = batch.decode(answered, &requests[answered], &answer)?;
            self.check(&requests[answered], PoolProtocol::Script.by(), &reply)?;
            answered += 1;
        }
        if self.random.chance(50) {
            self.random_delay();
        }
        let config = self.server.kill()?;
        // Answers in transit.
        while answered < requests.len()
            && let Ok(answer) = self.client.answer()
        {
            let reply = batch.decode(answered, &requests[answered], &answer)?;
            self.check(&requests[answered], PoolProtocol::Script.by(), &reply)?;
            answered += 1;
        }
        self.server.start(&config)?;
        self.client = self.server.client()?;
        self.resolve(&requests[answered..], PoolProtocol::Script.by(), 1)
    }

    /// SIGKILL during a request over HTTP, which is applied completely or not at all.
    fn crash_by_http(&mut self) -> Result<()> {
        let requests = self.requests(60);
        let pending = self.server.post_later(&self.pool, &requests)?;
        self.random_delay();
        let config = self.server.kill()?;
        let reply = pending.answer(&requests)?;
        self.server.start(&config)?;
        self.client = self.server.client()?;
        match reply {
            Some(reply) => requests
                .iter()
                .zip(&reply)
                .try_for_each(|(request, reply)| self.check(request, PoolProtocol::Http.by(), reply)),
            None => self.resolve(&requests, PoolProtocol::Http.by(), requests.len()),
        }
    }

    /// A random delay before the kill.
    fn random_delay(&mut self) {
        StopFlag::default().pause(Duration::from_micros(self.random.between(0, 12_000)));
    }

    /// Determines which requests were applied, in groups of this size.
    fn resolve(&mut self, requests: &[PoolRequest], by: &str, together: usize) -> Result<()> {
        self.crashes += 1;
        self.doubtful += requests.len();
        // Different prefixes may lead to the same view, with idle numbers in another order (`unreg` and `reg`). The number
        // of journal entries distinguishes them.
        let (seen, entries) = (self.server.view(&self.pool)?, self.server.history(&self.pool)?.len());
        let mut candidate = self.model.clone();
        let mut tried = vec![candidate.view()];
        let mut parts = requests.chunks(together.max(1));
        while tried.last() != Some(&seen) || candidate.journal().len() != entries {
            let part = parts.next().with_context(|| {
                format!("after the crash nothing explains {seen:#?}\nnot even {tried:#?}\nby {requests:#?}")
            })?;
            for request in part {
                candidate.apply(request, by, None);
            }
            tried.push(candidate.view());
        }
        self.model = candidate;
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        match self.random.between(0, 100) {
            0..40 => self.send_by_redis(),
            40..62 => self.send_by_http(),
            62..72 => self.send_one_by_http(),
            72..82 => self.compare_visible_state(),
            82..86 => self.leases(false),
            86..88 => self.leases(true),
            88..96 => self.crash_by_redis(),
            _ => self.crash_by_http(),
        }
    }

    fn end(mut self) -> Result<()> {
        self.compare_visible_state()?;
        let (history, must) = (self.server.history(&self.pool)?, self.model.journal());
        let differs = history.iter().zip(must).position(|(one, other)| one != other);
        ensure!(
            history.len() == must.len() && differs.is_none(),
            "{} entries, {} there must be; the first that differs is {differs:?}: {:?}",
            history.len(),
            must.len(),
            differs.map(|at| (&history[at], &must[at]))
        );
        ensure!(self.has_full_coverage(), "too few steps to prove anything");
        Ok(())
    }
}

fn seed() -> Result<u64> {
    match std::env::var("SWITCHYARD_SEED") {
        Ok(text) => text.parse().with_context(|| format!("SWITCHYARD_SEED is {text:?}")),
        Err(_) => Ok(Timestamp::now().0),
    }
}

const STEPS: usize = 250;

#[test]
fn long_random_sequences_with_crashes_match_the_state_table() -> Result<()> {
    let (fixture, seed) = (Fixture::new()?, seed()?);
    let run = || -> Result<()> {
        let mut run = ModelRun::begin(&fixture, seed)?;
        let mut steps = 0;
        // Random events may take long to occur.
        while steps < STEPS || (!run.has_full_coverage() && steps < 8 * STEPS) {
            run.step().with_context(|| format!("step {steps}"))?;
            steps += 1;
        }
        run.end()
    };
    run().with_context(|| format!("SWITCHYARD_SEED={seed} repeats it"))
}

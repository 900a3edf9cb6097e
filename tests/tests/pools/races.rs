//! Many clients on one pool, over the Redis protocol, with SIGKILL in between. Each client records its leases; the
//! records show whether a number ever had two holders at a time, and whether a restart restored the right state.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::load::StopFlag;
use behaviour_tests::load::pools::{RedisClient, RedisReply};
use behaviour_tests::pools::{PoolProtocol, PoolReply, PoolRequest, PoolServer, RequestBatch};
use behaviour_tests::{Fixture, until};
use model::{Random, Timestamp};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const CLIENTS: u64 = 64;
/// Fewer numbers than the clients together want: each of them leases up to four at a time.
const NUMBERS: u64 = 80;
const POOL: &str = "race";
const KILLS: usize = 4;
/// Successful calls between two kills.
const CALLS: u64 = 1500;

/// A lease of a number: at least from the answer to the call to the sending of the hangup.
struct NumberLease {
    number: String,
    from: Instant,
    until: Instant,
}

/// The record of a client.
#[derive(Default)]
struct Record {
    /// Held numbers with the time of the lease: the call was answered, and no hangup was sent.
    held: BTreeMap<String, Instant>,
    /// Former leases.
    over: Vec<NumberLease>,
    /// Unanswered calls for any number.
    lost_calls: usize,
    /// Numbers of unanswered calls for a certain number.
    lost_calls_of: BTreeSet<String>,
    /// Numbers of unanswered hangups.
    lost_hangups: BTreeSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The round with this number.
    Open(usize),
    /// All clients pause.
    Over,
}

/// State shared by all clients.
struct Race {
    redis: SocketAddr,
    phase: Mutex<Phase>,
    changed: Condvar,
    /// Clients that lost their connection and wait for the next round.
    waiting: AtomicU64,
    given: AtomicU64,
    none: AtomicU64,
    records: Vec<Mutex<Record>>,
}

fn number(place: u64) -> String {
    (13_800_138_000 + place).to_string()
}

impl Race {
    fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    fn set(&self, phase: Phase) {
        self.waiting.store(0, Ordering::SeqCst);
        *self.phase.lock() = phase;
        self.changed.notify_all();
    }

    /// Runs one client until the end. A lost connection is allowed; a wrong answer is an error.
    fn run(&self, client: u64, random: &mut Random) -> Result<()> {
        let record = &self.records[client as usize];
        let mut round = self.phase();
        while round != Phase::Over {
            let Err(error) = self.run_client(record, random) else { break };
            if error.downcast_ref::<std::io::Error>().is_none() && !error.to_string().contains("closed") {
                return Err(error.context(format!("client {client}")));
            }
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut phase = self.phase.lock();
            while *phase == round {
                self.changed.wait(&mut phase);
            }
            round = *phase;
        }
        // The rest is released when there are no more kills.
        let mut connection = RedisClient::connect(self.redis)?;
        self.hang_up(&mut connection, record, random, 100)
    }

    fn run_client(&self, record: &Mutex<Record>, random: &mut Random) -> Result<()> {
        let mut connection = RedisClient::connect(self.redis)?;
        while self.phase() != Phase::Over {
            self.call(&mut connection, record, random)?;
            self.hang_up(&mut connection, record, random, 70)?;
        }
        Ok(())
    }

    /// Leases up to four numbers in one batch.
    fn call(&self, connection: &mut RedisClient, record: &Mutex<Record>, random: &mut Random) -> Result<()> {
        let requests: Vec<_> = (0..random.between(1, 5))
            .map(|_| {
                let named = random.chance(15).then(|| number(random.between(0, NUMBERS)));
                (PoolRequest::call(named.as_deref()), protocol(random))
            })
            .collect();
        let batch = RequestBatch::new(POOL, requests.iter().map(|(request, protocol)| (request, *protocol)));
        let mut answered = 0;
        let mut result = batch.send(connection);
        while result.is_ok() && answered < requests.len() {
            result = connection.answer().and_then(|answer| {
                let reply = batch.decode(answered, &requests[answered].0, &answer)?;
                answered += 1;
                self.record_call(record, reply)
            });
        }
        for (request, _) in &requests[answered..] {
            match request {
                PoolRequest::Call { number: Some(number), .. } => {
                    record.lock().lost_calls_of.insert(number.clone());
                }
                _ => record.lock().lost_calls += 1,
            }
        }
        result
    }

    fn record_call(&self, record: &Mutex<Record>, reply: PoolReply) -> Result<()> {
        let Some(number) = reply.number else {
            self.none.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        self.given.fetch_add(1, Ordering::Relaxed);
        let before = record.lock().held.insert(number.clone(), Instant::now());
        ensure!(before.is_none(), "{number} was leased to its holder again");
        Ok(())
    }

    /// Releases about this percentage of its numbers.
    fn hang_up(
        &self,
        connection: &mut RedisClient,
        record: &Mutex<Record>,
        random: &mut Random,
        percent: u64,
    ) -> Result<()> {
        let requests: Vec<_> = {
            let mut record = record.lock();
            let numbers: Vec<_> = record.held.keys().filter(|_| random.chance(percent)).cloned().collect();
            let until = Instant::now();
            for number in &numbers {
                if let Some(from) = record.held.remove(number) {
                    record.over.push(NumberLease { number: number.clone(), from, until });
                }
                record.lost_hangups.insert(number.clone());
            }
            let event = behaviour_tests::pools::PoolEvent::Hangup;
            numbers.into_iter().map(|number| (PoolRequest::Event(event, number), protocol(random))).collect()
        };
        let batch = RequestBatch::new(POOL, requests.iter().map(|(request, protocol)| (request, *protocol)));
        batch.send(connection)?;
        for (index, (request, _)) in requests.iter().enumerate() {
            let reply = batch.decode(index, request, &connection.answer()?)?;
            ensure!(reply.done, "{request:?}: not done, though the number was the client's");
            if let PoolRequest::Event(_, number) = request {
                record.lock().lost_hangups.remove(number);
            }
        }
        Ok(())
    }

    /// Compares the restored state with the records while all clients pause, and releases numbers that no client knows to hold.
    fn summarise(&self, server: &PoolServer) -> Result<RaceSummary> {
        let view = server.view(POOL)?;
        ensure!(view.numbers.len() as u64 == NUMBERS, "{} numbers are left", view.numbers.len());
        let (mut held, mut lost_hangups, mut lost_calls_of) =
            <(BTreeSet<_>, BTreeSet<_>, BTreeSet<_>)>::default();
        let mut lost_calls = 0;
        for record in &self.records {
            let mut record = record.lock();
            for number in record.held.keys() {
                ensure!(held.insert(number.clone()), "{number} is held by two");
            }
            lost_calls += std::mem::take(&mut record.lost_calls);
            lost_hangups.append(&mut record.lost_hangups);
            lost_calls_of.append(&mut record.lost_calls_of);
        }
        let mut idle: Vec<_> = Vec::new();
        let mut unknown = Vec::new();
        for (number, seen) in &view.numbers {
            match seen.state.as_str() {
                "busy+up" if held.contains(number) => {}
                "busy+up" => unknown.push(number.clone()),
                "idle+up" => {
                    ensure!(!held.contains(number), "{number} was leased and is idle after the restart");
                    idle.push(number.clone());
                }
                state => bail!("{number} is in the unexpected state {state}"),
            }
        }
        let mut listed = view.idle.clone();
        listed.sort();
        ensure!(listed == idle, "the list has {listed:?}, idle and up are {idle:?}");
        // A busy number without a holder must result from a request without an answer.
        let unexplained = unknown
            .iter()
            .filter(|number| !lost_hangups.contains(*number) && !lost_calls_of.contains(*number))
            .count();
        ensure!(unexplained <= lost_calls, "{unexplained} numbers are busy, for {lost_calls} calls in doubt");
        let mut client = server.client()?;
        for number in &unknown {
            let answer = client.ask(&["POOL.HANGUP", POOL, number])?;
            ensure!(answer == RedisReply::Integer(1), "{number}: {answer:?}");
        }
        Ok(RaceSummary {
            held: held.len(),
            doubtful: lost_calls + lost_hangups.len() + lost_calls_of.len(),
            unknown: unknown.len(),
        })
    }

    /// Checks that no two leases of a number overlap.
    fn check_no_double_lease(&self) -> Result<usize> {
        let mut by_number: BTreeMap<String, Vec<(Instant, Instant)>> = BTreeMap::new();
        for record in &self.records {
            for NumberLease { number, from, until } in record.lock().over.drain(..) {
                by_number.entry(number).or_default().push((from, until));
            }
        }
        for (number, times) in &mut by_number {
            times.sort();
            for pair in times.windows(2) {
                let ((_, until), (from, _)) = (pair[0], pair[1]);
                ensure!(until <= from, "{number} was held by two, for {:?} at least", until - from);
            }
        }
        Ok(by_number.values().map(Vec::len).sum())
    }
}

#[derive(Debug)]
struct RaceSummary {
    held: usize,
    doubtful: usize,
    unknown: usize,
}

fn protocol(random: &mut Random) -> PoolProtocol {
    if random.chance(70) { PoolProtocol::Script } else { PoolProtocol::Plain }
}

#[test]
fn no_number_is_held_by_two_of_64_clients_despite_kills() -> Result<()> {
    let seed = Timestamp::now().0;
    race(seed).with_context(|| format!("seed {seed}"))
}

fn race(seed: u64) -> Result<()> {
    let fixture = Fixture::new()?;
    let mut server = PoolServer::open(&fixture, "")?;
    let numbers: Vec<_> = (0..NUMBERS).map(number).collect();
    let mut client = server.client()?;
    for command in ["POOL.ADD", "POOL.REG"] {
        let mut words = vec![command, POOL];
        words.extend(numbers.iter().map(String::as_str));
        let answer = client.ask(&words)?;
        ensure!(answer == RedisReply::Integer(NUMBERS as i64), "{command}: {answer:?}");
    }
    let race = Race {
        redis: server.redis(),
        phase: Mutex::new(Phase::Open(0)),
        changed: Condvar::new(),
        waiting: AtomicU64::new(0),
        given: AtomicU64::new(0),
        none: AtomicU64::new(0),
        records: (0..CLIENTS).map(|_| Mutex::default()).collect(),
    };
    let summaries = std::thread::scope(|scope| -> Result<Vec<RaceSummary>> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let race = &race;
                scope.spawn(move || race.run(client, &mut Random::new(seed ^ (client << 32))))
            })
            .collect();
        let summaries = drive(&race, &mut server, &mut Random::new(seed));
        race.set(Phase::Over);
        for client in clients {
            match client.join() {
                Ok(result) => result?,
                Err(_) => bail!("a client panicked"),
            }
        }
        summaries
    })?;
    let last = race.summarise(&server)?;
    ensure!((last.held, last.doubtful, last.unknown) == (0, 0, 0), "{last:?} at the end");
    let holdings = race.check_no_double_lease()?;
    ensure!(holdings > 0, "no number was leased");
    let none = race.none.load(Ordering::Relaxed);
    ensure!(summaries.len() == KILLS && none > 0, "was there any press? {none} calls without a number");
    ensure!(summaries.iter().any(|one| one.held > 0), "no number was held at any kill");
    ensure!(
        summaries.iter().any(|one| one.doubtful > 0),
        "nothing was on its way when the appliance was killed"
    );
    Ok(())
}

fn drive(race: &Race, server: &mut PoolServer, random: &mut Random) -> Result<Vec<RaceSummary>> {
    let mut summaries = Vec::new();
    for round in 0..=KILLS {
        let before = race.given.load(Ordering::Relaxed);
        until("calls", || Ok(race.given.load(Ordering::Relaxed) > before + CALLS))?;
        if round == KILLS {
            break;
        }
        StopFlag::default().pause(std::time::Duration::from_micros(random.between(0, 20_000)));
        let config = server.kill()?;
        until("all clients notice", || Ok(race.waiting.load(Ordering::SeqCst) == CLIENTS))?;
        server.start(&config)?;
        summaries.push(race.summarise(server)?);
        race.set(Phase::Open(round + 1));
    }
    Ok(summaries)
}

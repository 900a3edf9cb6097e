//! Many clients on one pool, over the Redis protocol, with SIGKILL in between. Each keeps its own record; whether a number was
//! ever held by two is judged from these, and so is what a restart brought back.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::load::Stop;
use behaviour_tests::load::pools::{Answer, Client};
use behaviour_tests::pools::{Language, Letter, Office, Told, Wish};
use behaviour_tests::random::Random;
use behaviour_tests::{Stage, until};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const CLIENTS: u64 = 64;
/// Fewer than the clients want.
const NUMBERS: u64 = 80;
const POOL: &str = "race";
const KILLS: usize = 4;
/// Calls that get a number between two kills.
const CALLS: u64 = 1500;

/// A number was somebody's, at least from the answer to the call to the sending of the hangup.
struct Holding {
    number: String,
    from: Instant,
    until: Instant,
}

/// What a client knows.
#[derive(Default)]
struct Record {
    /// Since when it has them: a call was answered, and no hangup was sent.
    held: BTreeMap<String, Instant>,
    /// What it had.
    over: Vec<Holding>,
    /// Calls without a number that nobody answered.
    lost_calls: usize,
    /// Calls of a certain number that nobody answered.
    lost_calls_of: BTreeSet<String>,
    /// Hangups that nobody answered.
    lost_hangups: BTreeSet<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Round of this number.
    Open(usize),
    /// Everybody comes to rest.
    Over,
}

/// What all have in common.
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

    /// One client, until the race is over. A connection that is lost is no mistake; a wrong answer is one.
    fn run(&self, client: u64, random: &mut Random) -> Result<()> {
        let record = &self.records[client as usize];
        let mut round = self.phase();
        while round != Phase::Over {
            let Err(error) = self.take_part(record, random) else { break };
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
        // The rest is given back when nobody kills any more.
        let mut connection = Client::connect(self.redis)?;
        self.hang_up(&mut connection, record, random, 100)
    }

    fn take_part(&self, record: &Mutex<Record>, random: &mut Random) -> Result<()> {
        let mut connection = Client::connect(self.redis)?;
        while self.phase() != Phase::Over {
            self.call(&mut connection, record, random)?;
            self.hang_up(&mut connection, record, random, 70)?;
        }
        Ok(())
    }

    /// Asks for up to four numbers at once.
    fn call(&self, connection: &mut Client, record: &Mutex<Record>, random: &mut Random) -> Result<()> {
        let wishes: Vec<_> = (0..random.between(1, 5))
            .map(|_| {
                let named = random.chance(15).then(|| number(random.between(0, NUMBERS)));
                (Wish::call(named.as_deref()), language(random))
            })
            .collect();
        let letter = Letter::new(POOL, wishes.iter().map(|(wish, language)| (wish, *language)));
        let mut answered = 0;
        let mut result = letter.send(connection);
        while result.is_ok() && answered < wishes.len() {
            result = connection.answer().and_then(|answer| {
                let told = letter.heard(answered, &wishes[answered].0, &answer)?;
                answered += 1;
                self.given_to(record, told)
            });
        }
        for (wish, _) in &wishes[answered..] {
            match wish {
                Wish::Call { number: Some(number), .. } => {
                    record.lock().lost_calls_of.insert(number.clone());
                }
                _ => record.lock().lost_calls += 1,
            }
        }
        result
    }

    fn given_to(&self, record: &Mutex<Record>, told: Told) -> Result<()> {
        let Some(number) = told.number else {
            self.none.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        self.given.fetch_add(1, Ordering::Relaxed);
        let before = record.lock().held.insert(number.clone(), Instant::now());
        ensure!(before.is_none(), "{number} was given to one who has it");
        Ok(())
    }

    /// Gives about so many of a hundred of its numbers back.
    fn hang_up(
        &self,
        connection: &mut Client,
        record: &Mutex<Record>,
        random: &mut Random,
        percent: u64,
    ) -> Result<()> {
        let wishes: Vec<_> = {
            let mut record = record.lock();
            let numbers: Vec<_> = record.held.keys().filter(|_| random.chance(percent)).cloned().collect();
            let until = Instant::now();
            for number in &numbers {
                if let Some(from) = record.held.remove(number) {
                    record.over.push(Holding { number: number.clone(), from, until });
                }
                record.lost_hangups.insert(number.clone());
            }
            let event = behaviour_tests::pools::Event::Hangup;
            numbers.into_iter().map(|number| (Wish::Event(event, number), language(random))).collect()
        };
        let letter = Letter::new(POOL, wishes.iter().map(|(wish, language)| (wish, *language)));
        letter.send(connection)?;
        for (index, (wish, _)) in wishes.iter().enumerate() {
            let told = letter.heard(index, wish, &connection.answer()?)?;
            ensure!(told.done, "{wish:?}: not done, though the number was the client's");
            if let Wish::Event(_, number) = wish {
                record.lock().lost_hangups.remove(number);
            }
        }
        Ok(())
    }

    /// Looks at what a restart brought back while nobody does anything. Gives back what nobody knows to have.
    fn judge(&self, office: &Office) -> Result<Judgement> {
        let view = office.view(POOL)?;
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
                    ensure!(
                        !held.contains(number),
                        "{number} was given to a client and is idle after the restart"
                    );
                    idle.push(number.clone());
                }
                state => bail!("{number} is {state}, which nobody made it"),
            }
        }
        let mut listed = view.idle.clone();
        listed.sort();
        ensure!(listed == idle, "the list has {listed:?}, idle and up are {idle:?}");
        // What is busy without a holder must be the doing of a request that nobody answered.
        let unexplained = unknown
            .iter()
            .filter(|number| !lost_hangups.contains(*number) && !lost_calls_of.contains(*number))
            .count();
        ensure!(unexplained <= lost_calls, "{unexplained} numbers are busy, for {lost_calls} calls in doubt");
        let mut client = office.client()?;
        for number in &unknown {
            let answer = client.ask(&["POOL.HANGUP", POOL, number])?;
            ensure!(answer == Answer::Integer(1), "{number}: {answer:?}");
        }
        Ok(Judgement {
            held: held.len(),
            doubtful: lost_calls + lost_hangups.len() + lost_calls_of.len(),
            unknown: unknown.len(),
        })
    }

    /// No two holdings of a number may overlap, whoever had it.
    fn no_number_held_twice(&self) -> Result<usize> {
        let mut by_number: BTreeMap<String, Vec<(Instant, Instant)>> = BTreeMap::new();
        for record in &self.records {
            for Holding { number, from, until } in record.lock().over.drain(..) {
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
struct Judgement {
    held: usize,
    doubtful: usize,
    unknown: usize,
}

fn language(random: &mut Random) -> Language {
    if random.chance(70) { Language::Script } else { Language::Plain }
}

#[test]
fn no_number_is_held_by_two_of_64_clients_whatever_is_killed() -> Result<()> {
    let seed = Random::any_seed();
    race(seed).with_context(|| format!("seed {seed}"))
}

fn race(seed: u64) -> Result<()> {
    let stage = Stage::new()?;
    let mut office = Office::open(&stage, "")?;
    let numbers: Vec<_> = (0..NUMBERS).map(number).collect();
    let mut client = office.client()?;
    for command in ["POOL.ADD", "POOL.REG"] {
        let mut words = vec![command, POOL];
        words.extend(numbers.iter().map(String::as_str));
        let answer = client.ask(&words)?;
        ensure!(answer == Answer::Integer(NUMBERS as i64), "{command}: {answer:?}");
    }
    let race = Race {
        redis: office.redis(),
        phase: Mutex::new(Phase::Open(0)),
        changed: Condvar::new(),
        waiting: AtomicU64::new(0),
        given: AtomicU64::new(0),
        none: AtomicU64::new(0),
        records: (0..CLIENTS).map(|_| Mutex::default()).collect(),
    };
    let judgements = std::thread::scope(|scope| -> Result<Vec<Judgement>> {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let race = &race;
                scope.spawn(move || race.run(client, &mut Random::new(seed ^ (client << 32))))
            })
            .collect();
        let judgements = drive(&race, &mut office, &mut Random::new(seed));
        race.set(Phase::Over);
        for client in clients {
            match client.join() {
                Ok(result) => result?,
                Err(_) => bail!("a client panicked"),
            }
        }
        judgements
    })?;
    let last = race.judge(&office)?;
    ensure!((last.held, last.doubtful, last.unknown) == (0, 0, 0), "{last:?} at the end");
    let holdings = race.no_number_held_twice()?;
    ensure!(holdings > 0, "nobody ever had a number");
    let none = race.none.load(Ordering::Relaxed);
    ensure!(judgements.len() == KILLS && none > 0, "was there any press? {none} calls without a number");
    ensure!(judgements.iter().any(|one| one.held > 0), "nobody had a number when the appliance was killed");
    ensure!(
        judgements.iter().any(|one| one.doubtful > 0),
        "nothing was on its way when the appliance was killed"
    );
    Ok(())
}

fn drive(race: &Race, office: &mut Office, random: &mut Random) -> Result<Vec<Judgement>> {
    let mut judgements = Vec::new();
    for round in 0..=KILLS {
        let before = race.given.load(Ordering::Relaxed);
        until("calls", || Ok(race.given.load(Ordering::Relaxed) > before + CALLS))?;
        if round == KILLS {
            break;
        }
        Stop::default().pause(std::time::Duration::from_micros(random.between(0, 20_000)));
        let blueprint = office.kill()?;
        until("all clients notice", || Ok(race.waiting.load(Ordering::SeqCst) == CLIENTS))?;
        office.start(&blueprint)?;
        judgements.push(race.judge(office)?);
        race.set(Phase::Open(round + 1));
    }
    Ok(judgements)
}

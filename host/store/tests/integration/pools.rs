//! Number pools through engine and store, with crashes: answered changes are recovered.

use crate::support::open_on;
use engine::{Engine, EngineAnswer, EngineCommand, Event, Output, PoolLimits, ReplyTo, Settings};
use journal::simulation::SimulatedDisk;
use model::{
    AcquireRequest, JournalEntry, LinkId, MessageId, Moment, Now, NumberRow, PoolAnswer, PoolId, PoolNumber,
    PoolOperation, PoolRequest, PoolSettings, PoolSummary, Strategy, Timestamp,
};
use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Store;

const POOLS: [&str; 3] = ["a", "b", "c"];

fn at(mono: u64) -> Now {
    Now { wall: Timestamp(1_000_000 + mono), mono: Moment(mono) }
}

/// A file in memory that survives a closed store.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl StorageBackend for Memory {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let begin = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.lock().unwrap()[begin..begin + out.len()]);
        Ok(())
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        self.0.lock().unwrap().resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let begin = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[begin..begin + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// An engine, its tables, and their expected content.
struct World {
    disk: Memory,
    journal: Arc<SimulatedDisk>,
    store: Option<Store>,
    engine: Engine,
    out: Output,
    limits: PoolLimits,
    now: u64,
    /// The committed journal of each pool.
    journals: BTreeMap<PoolId, Vec<JournalEntry>>,
    folds: usize,
}

impl World {
    fn new(limits: PoolLimits) -> Self {
        let disk = Memory::default();
        let journal = SimulatedDisk::new(0);
        let store = open_on(disk.clone(), &journal).unwrap();
        let engine = Engine::new(Settings { pools: limits, ..Settings::default() });
        let (out, journals) = (Output::default(), BTreeMap::new());
        let mut world =
            Self { disk, journal, store: Some(store), engine, out, limits, now: 1000, journals, folds: 0 };
        world.start();
        world
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn start(&mut self) {
        self.out = Output::default();
        self.engine = Engine::new(Settings { pools: self.limits, ..Settings::default() });
        let (store, engine, now) = (self.store.take().unwrap(), &mut self.engine, at(self.now));
        store.recover_records(|found| engine.recover_record(now, found)).unwrap();
        self.engine.finish_recovery(MessageId::FIRST, 1, &[], &mut self.out);
        self.store = Some(store);
    }

    /// Loses everything that is not committed.
    fn crash(&mut self) {
        drop(self.store.take());
        self.store = Some(open_on(self.disk.clone(), &self.journal).unwrap());
        self.start();
    }

    fn push(&mut self, pool: &str, request: PoolRequest) {
        let reply = ReplyTo { link: LinkId(1), token: 0 };
        let event = Event::Pool { pool: pool.parse().unwrap(), request, by: "test".into(), reply };
        self.engine.apply(at(self.now), event, &mut self.out);
    }

    /// Commits the batch, and returns the answers.
    fn commit(&mut self) -> Vec<PoolAnswer> {
        self.engine.advance(at(self.now), &mut self.out);
        self.engine.seal(&mut self.out);
        let out = std::mem::take(&mut self.out);
        self.store().commit(out.batch.clone()).unwrap();
        // Most batches become pending, and are merged.
        if self.now.is_multiple_of(3) {
            self.store().checkpoint().unwrap();
        }
        self.folds += usize::from(!out.batch.pools.numbers.is_empty());
        for part in out.batch.pools.journal {
            let journal = self.journals.entry(part.pool).or_default();
            assert_eq!(journal.len() as u64, part.first, "entries are numbered without a gap");
            journal.extend(part.entries);
        }
        for record in out.batch.pools.records.iter().filter(|record| record.removed) {
            self.journals.remove(&record.id);
        }
        let answer = |command| match command {
            EngineCommand::Answer { answer: EngineAnswer::Pool(answer), .. } => Some(answer),
            _ => None,
        };
        out.commands.into_iter().filter_map(answer).collect()
    }

    fn ask(&mut self, pool: &str, request: PoolRequest) -> PoolAnswer {
        self.push(pool, request);
        self.commit().pop().unwrap()
    }

    fn summary(&mut self, pool: &str) -> Option<PoolSummary> {
        match self.ask(pool, PoolRequest::Show) {
            PoolAnswer::Pool(summary) => Some(*summary),
            PoolAnswer::NoPool => None,
            other => panic!("{other:?}"),
        }
    }

    fn numbers(&mut self, pool: &str) -> BTreeMap<PoolNumber, NumberRow> {
        let (mut found, mut from) = (BTreeMap::new(), 0);
        loop {
            let request = PoolRequest::Numbers { from, most: 3, state: None, prefix: None };
            let PoolAnswer::Numbers { numbers, next } = self.ask(pool, request) else { panic!() };
            for one in numbers {
                assert!(found.insert(one.number, one.row).is_none(), "listed twice");
            }
            match next {
                Some(next) => from = next,
                None => return found,
            }
        }
    }

    fn idle(&mut self, pool: &str) -> Vec<PoolNumber> {
        match self.ask(pool, PoolRequest::Idle { skip: 0, most: usize::MAX }) {
            PoolAnswer::Idle { numbers, total } => {
                assert_eq!(numbers.len(), total);
                numbers
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The numbers after a journal.
fn replayed(journal: &[JournalEntry]) -> BTreeMap<PoolNumber, NumberRow> {
    let mut rows = BTreeMap::new();
    for entry in journal {
        match &entry.row {
            Some(row) => rows.insert(entry.number, row.clone()),
            None => rows.remove(&entry.number),
        };
    }
    rows
}

#[derive(Debug, Clone)]
enum Step {
    Ask(usize, PoolRequest),
    Later(u64),
    Commit,
    Crash,
}

fn number() -> impl Generator<Value = PoolNumber> {
    (100..120u32).prop_map(|number| number.to_string().parse().unwrap())
}

fn operation() -> impl Generator<Value = PoolOperation> {
    let lease = proptest::option::of((1..20u64).prop_map(Duration::from_secs));
    let call = (proptest::option::of(number()), "[ab]?", lease).prop_map(|(number, holder, lease)| {
        PoolOperation::Call(AcquireRequest {
            number,
            holder: holder.into(),
            lease,
            ..AcquireRequest::default()
        })
    });
    prop_oneof![
        3 => (number(), proptest::option::of(1..3u8)).prop_map(|(number, weight)| PoolOperation::Add { number, weight }),
        1 => number().prop_map(|number| PoolOperation::Del { number }),
        4 => number().prop_map(|number| PoolOperation::Reg { number }),
        1 => number().prop_map(|number| PoolOperation::Unreg { number }),
        5 => call,
        3 => number().prop_map(|number| PoolOperation::Hangup { number, ticket: None }),
    ]
}

fn request() -> impl Generator<Value = PoolRequest> {
    let strategy = proptest::sample::select(vec![Strategy::LongestIdle, Strategy::Random, Strategy::Nearest]);
    let settings = (strategy, 0..5u64).prop_map(|(strategy, quarantine)| {
        PoolRequest::Configure(PoolSettings { strategy, quarantine: Duration::from_secs(quarantine) })
    });
    prop_oneof![
        30 => operation().prop_map(PoolRequest::Operation),
        5 => proptest::collection::vec(operation(), 0..30).prop_map(PoolRequest::Operations),
        1 => settings,
        1 => any::<bool>().prop_map(|with_numbers| PoolRequest::Remove { with_numbers }),
    ]
}

fn steps() -> impl Generator<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0..POOLS.len(), request()).prop_map(|(pool, request)| Step::Ask(pool, request)),
        3 => (1..8000u64).prop_map(Step::Later),
        6 => Just(Step::Commit),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn answered_keys_are_found(steps in steps(), history in 1..200u64, part in 1..8usize) {
        let limits = PoolLimits { history, ahead: 20, part, ..PoolLimits::default() };
        let mut world = World::new(limits);
        for step in steps {
            match step {
                Step::Ask(pool, request) => world.push(POOLS[pool], request),
                Step::Later(ms) => world.now += ms,
                Step::Commit => {
                    world.commit();
                }
                Step::Crash => world.crash(),
            }
        }
        world.crash();
        for pool in POOLS {
            // The request also applies due timers, which are journalled too.
            let Some(summary) = world.summary(pool) else { continue };
            let (numbers, idle) = (world.numbers(pool), world.idle(pool));
            let journal = world.journals.get(&summary.id).cloned().unwrap_or_default();
            prop_assert_eq!(&numbers, &replayed(&journal));
            prop_assert_eq!(numbers.len(), summary.counts.total());
            prop_assert_eq!(summary.entries, journal.len() as u64);
            // Twice: from the state that this start found, and from the state that it wrote.
            world.crash();
            prop_assert_eq!(world.numbers(pool), numbers);
            let again = world.idle(pool);
            if summary.settings.strategy == Strategy::LongestIdle {
                prop_assert_eq!(again, idle);
            }
            // The history equals the committed one back to the entry where it was trimmed, and was not trimmed too early.
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let page = world.store().pool_history(summary.id, before, None, 7).unwrap();
                found.extend(page.entries);
                match page.next {
                    Some(next) => before = Some(next),
                    None => break,
                }
            }
            found.reverse();
            prop_assert!(found.len() as u64 >= history.min(journal.len() as u64), "{} kept", found.len());
            let cut = journal.len() - found.len();
            let wanted: Vec<_> = (0u64..).zip(journal).skip(cut).collect();
            prop_assert_eq!(&found, &wanted);
            let from = found.get(found.len() / 2).map_or(0, |(number, _)| *number);
            let rest = world.store().pool_journal(summary.id, from, 1000).unwrap();
            let wanted: Vec<_> = wanted.into_iter().filter(|(number, _)| *number >= from).take(1000).collect();
            prop_assert_eq!(rest, wanted);
        }
    }
}

#[test]
fn journals_are_folded_and_removed_pools_leave_nothing() {
    let mut world = World::new(PoolLimits { history: 50, ahead: 100, part: 10, ..PoolLimits::default() });
    let number = |i: u64| format!("49{i}").parse::<PoolNumber>().unwrap();
    for round in 0..20 {
        for i in 0..40 {
            world.push("a", PoolRequest::Operation(PoolOperation::Add { number: number(i), weight: None }));
            world.push("a", PoolRequest::Operation(PoolOperation::Reg { number: number(i) }));
            world.push("a", PoolRequest::Operation(PoolOperation::Call(AcquireRequest::default())));
            world
                .push("a", PoolRequest::Operation(PoolOperation::Hangup { number: number(i), ticket: None }));
            if i % 7 == round % 7 {
                world.commit();
            }
        }
    }
    assert!(world.folds > 4, "{} folds", world.folds);
    let summary = world.summary("a").unwrap();
    let kept = world.store().pool_journal(summary.id, 0, usize::MAX).unwrap().len();
    assert!(kept >= 50 && kept < world.journals[&summary.id].len() / 2, "{kept} of the entries are kept");
    assert_eq!(world.ask("a", PoolRequest::Remove { with_numbers: false }), PoolAnswer::NotEmpty);
    assert_eq!(world.ask("a", PoolRequest::Remove { with_numbers: true }), PoolAnswer::Removed);
    assert_eq!(world.summary("a"), None);
    // A crash during the removal, and a new pool with the same name.
    world.push("a", PoolRequest::Operation(PoolOperation::Add { number: number(0), weight: None }));
    world.commit();
    world.crash();
    let again = world.summary("a").unwrap();
    assert!(again.id != summary.id && again.counts.total() == 1);
    let mut rounds = 0;
    while !world.store().pool_journal(summary.id, 0, 1).unwrap().is_empty() {
        world.commit();
        rounds += 1;
        assert!(rounds < 1000, "the removal does not end");
    }
    assert_eq!(world.numbers("a").len(), 1);
}

#[test]
fn the_number_limit_is_enforced() {
    let mut world = World::new(PoolLimits { numbers: 3, ..PoolLimits::default() });
    let add = |number: &str| {
        PoolRequest::Operation(PoolOperation::Add { number: number.parse().unwrap(), weight: None })
    };
    for number in ["1", "2", "3", "3"] {
        assert!(matches!(world.ask("a", add(number)), PoolAnswer::Outcome(model::PoolOutcome::Done(_))));
    }
    let full = PoolAnswer::Outcome(model::PoolOutcome::Refused(model::PoolRefusal::Full));
    assert_eq!(world.ask("b", add("4")), full);
    let del = PoolOperation::Del { number: "1".parse().unwrap() };
    world.ask("a", PoolRequest::Operation(del));
    assert_ne!(world.ask("b", add("4")), full);
}

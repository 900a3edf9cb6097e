//! Measures the cost of a call and its hangup in engine and store, by the size of the pool and of a batch: `cargo run
//! --release -p store --example pool_commit_speed -- FOLDER`, a folder on the disk to measure.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement run by hand"
)]

use engine::{Engine, EngineAnswer, EngineCommand, Event, Output, ReplyTo, Settings};
use model::{
    AcquireRequest, LinkId, MessageId, Moment, Now, PoolAnswer, PoolName, PoolNumber, PoolOperation,
    PoolOutcome, PoolRequest, Timestamp,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Store, StoreOptions};

const PAIRS: usize = 400_000;

struct Run {
    engine: Engine,
    out: Output,
    store: Store,
    pool: PoolName,
    by: Arc<str>,
    applied: Duration,
    committed: Duration,
    commits: u32,
}

impl Run {
    fn ask(&mut self, operation: PoolOperation) {
        let now = Now { wall: Timestamp(1_700_000_000_000), mono: Moment(5_000_000) };
        let reply = ReplyTo { link: LinkId(1), token: 0 };
        let (pool, by) = (self.pool.clone(), self.by.clone());
        let event = Event::Pool { pool, request: PoolRequest::Operation(operation), by, reply };
        self.engine.apply(now, event, &mut self.out);
    }

    /// Applies the operations in one batch, and returns the leased numbers.
    fn batch(&mut self, operations: Vec<PoolOperation>) -> Vec<PoolNumber> {
        let now = Now { wall: Timestamp(1_700_000_000_000), mono: Moment(5_000_000) };
        let begun = Instant::now();
        for operation in operations {
            self.ask(operation);
        }
        self.engine.advance(now, &mut self.out);
        self.engine.seal(&mut self.out);
        self.applied += begun.elapsed();
        let mut out = std::mem::take(&mut self.out);
        let batch = std::mem::take(&mut out.batch);
        let begun = Instant::now();
        self.store.commit(batch).unwrap();
        self.committed += begun.elapsed();
        self.commits += 1;
        let given = |command| match command {
            EngineCommand::Answer {
                answer: EngineAnswer::Pool(PoolAnswer::Outcome(PoolOutcome::Acquired { number, .. })),
                ..
            } => Some(number),
            _ => None,
        };
        out.commands.into_iter().filter_map(given).collect()
    }
}

fn number(i: usize) -> PoolNumber {
    format!("861{:010}", (i as u64).wrapping_mul(7_919) % 10_000_000_000).parse().unwrap()
}

fn measure(file: &Path, numbers: usize, size: usize) {
    let store = Store::open(file, StoreOptions::default()).unwrap();
    let mut engine = Engine::new(Settings::default());
    let mut out = Output::default();
    engine.finish_recovery(MessageId::FIRST, 1, &[], &mut out);
    let mut run = Run {
        engine,
        out,
        store,
        pool: "pool".parse().unwrap(),
        by: "example".into(),
        applied: Duration::ZERO,
        committed: Duration::ZERO,
        commits: 0,
    };
    let all: Vec<usize> = (0..numbers).collect();
    for part in all.chunks(10_000) {
        let add = part.iter().map(|i| PoolOperation::Add { number: number(*i), weight: None });
        let reg = part.iter().map(|i| PoolOperation::Reg { number: number(*i) });
        run.batch(add.chain(reg).collect());
    }
    (run.applied, run.committed, run.commits) = (Duration::ZERO, Duration::ZERO, 0);
    let mut pairs = 0;
    let begun = Instant::now();
    while pairs < PAIRS && begun.elapsed() < Duration::from_secs(5) {
        let calls = (0..size).map(|_| PoolOperation::Call(AcquireRequest::default())).collect();
        let given = run.batch(calls);
        pairs += given.len();
        run.batch(given.into_iter().map(|number| PoolOperation::Hangup { number, ticket: None }).collect());
    }
    let each = |all: Duration, by: usize| all.as_secs_f64() * 1e6 / by as f64;
    println!(
        "{numbers:>8} numbers, {size:>5} a batch: {:>5.2} µs of the engine and {:>6.2} of the store an operation, {:>6.0} µs a commit",
        each(run.applied, 2 * pairs),
        each(run.committed, 2 * pairs),
        each(run.committed, run.commits as usize),
    );
    drop(run);
    std::fs::remove_file(file).unwrap();
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder on the disk to be measured");
    let file = Path::new(&folder).join(format!("pool-commit-speed-{}.redb", std::process::id()));
    for numbers in [1_000, 100_000, 1_000_000] {
        for size in [1, 50, 800, 3200] {
            measure(&file, numbers, size);
        }
    }
}

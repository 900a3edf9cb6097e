//! Measures the cost of a call and its hangup in a pool of a thousand and of a million numbers, and the memory per
//! number.
//!
//! `cargo run --release -p engine --example pool_speed`
#![allow(clippy::print_stdout, reason = "this program prints its results")]

use engine::Pool;
use model::{
    AcquireRequest, Moment, Now, PoolNumber, PoolOperation, PoolOutcome, PoolSettings, Strategy, Timestamp,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAIRS: u64 = 1_000_000;

/// Resident octets of this process; 0 if `/proc` does not have the number.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn number(i: u64) -> Option<PoolNumber> {
    format!("861{:010}", i * 7).parse().ok()
}

fn main() {
    println!("strategy      numbers  ns a pair  octets a number");
    for strategy in
        [Strategy::LongestIdle, Strategy::Random, Strategy::Weighted, Strategy::Sticky, Strategy::Nearest]
    {
        for numbers in [1_000, 10_000, 100_000, 1_000_000] {
            measure(strategy, numbers);
        }
    }
}

fn measure(strategy: Strategy, numbers: u64) {
    let now = Now { wall: Timestamp(0), mono: Moment(0) };
    let by: Arc<str> = "example".into();
    let before = resident();
    let mut pool = Pool::new(PoolSettings { strategy, quarantine: Duration::ZERO }, 1);
    for number in (0..numbers).filter_map(number) {
        pool.apply(now, PoolOperation::Add { number, weight: None }, &by);
        pool.apply(now, PoolOperation::Reg { number }, &by);
        pool.take_entries();
    }
    let memory = resident().saturating_sub(before) / usize::try_from(numbers).unwrap_or(1);
    let start = Instant::now();
    for i in 0..PAIRS {
        let call = AcquireRequest {
            callee: format!("861{:010}", i * 6151 % 10_000_000).into(),
            ..AcquireRequest::default()
        };
        let call = AcquireRequest { lease: Some(Duration::from_secs(60)), ..call };
        if let PoolOutcome::Acquired { number, ticket } = pool.apply(now, PoolOperation::Call(call), &by) {
            pool.apply(now, PoolOperation::Hangup { number, ticket: Some(ticket) }, &by);
            pool.take_entries();
        }
    }
    let pair = start.elapsed().as_nanos() / u128::from(PAIRS);
    let name = format!("{strategy:?}");
    // A small pool fits into memory that the process already has.
    let memory = if numbers >= 1_000_000 { memory.to_string() } else { "-".to_owned() };
    println!("{name:12} {numbers:8} {pair:10} {memory:>16}");
}

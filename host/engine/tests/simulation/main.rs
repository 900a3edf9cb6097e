//! The life of messages under everything that goes wrong, from a seed.
//!
//! A world of accounts, peers, links, a disk and two clocks drives the engine through random events: answers that come
//! in any order, late, or never; receipts that overtake their answers; links that drop; clocks that jump; crashes that
//! lose everything but what was committed. At the end all peers become well-behaved, and then:
//!
//! * every message whose submitter was told "accepted" has exactly one final record;
//! * none is stuck;
//! * a peer has it if the record says so, and it has it once, unless a doubt or a crash was settled by sending again;
//! * a submission that was repeated under its key was answered the same each time, and accepted once;
//! * a hand-over has a ticket of its own, unless it repeats one that was left in doubt;
//! * at every commit each ledger account has as much as was put in, less what its ended messages cost, and never less
//!   than its limit; each priced message is charged or refunded once, a balance operation counts once however often it is
//!   sent, and the biller is told of every end that it wants to know;
//! * there is never more than one question about a number at a time, and no message takes a leg that needs its subscriber
//!   without him; those that waited for the same answer leave in order;
//! * an attempt is asked about once, and a message that is being decided is found deferred after a crash;
//! * a serial peer never has two messages for one subscriber, nor one while another is being decided; of equal urgency the
//!   older goes first; whoever waits behind a message waits for one that is there; who is heard of is tried;
//! * at every commit a number that a message has for its sender belongs to a message that is there, and to one alone; at the
//!   end all are back;
//! * nothing leaves that an admin's order holds back or sends another way; what is undone in time goes on, and an order says
//!   how many it has ended;
//! * every trace is one that a message can have;
//! * a receipt that was answered is not lost: peers send the unanswered ones again after a crash.
//!
//! A failure prints its seed and how the run was made: `SEED=n cargo test -p engine --test simulation` runs that one alone, and
//! `SEEDS=n` the first n of every plan instead of as many as fit into an ordinary test run.

#![allow(clippy::panic, reason = "a failed invariant ends the run")]

mod custody;
mod disk;
mod money;
mod orders;
mod plugins;
#[path = "../support/pool_disk.rs"]
mod pool_disk;
mod senders;
mod world;

use engine::Uncertainty;
use world::World;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// How a run is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) crashes: bool,
    pub(crate) drops: bool,
    pub(crate) silence: bool,
    pub(crate) uncertainty: Uncertainty,
    pub(crate) body_cache: usize,
    /// Messages cost something.
    pub(crate) money: bool,
    /// Some legs need their subscriber, and a policy decides what follows a refusal.
    pub(crate) plugins: bool,
    /// One peer takes one message at a time for a subscriber, and subscribers are out of reach.
    pub(crate) serial: bool,
    /// Messages have numbers of pools for their senders.
    pub(crate) senders: bool,
    /// An admin gives orders about what waits.
    pub(crate) orders: bool,
    /// A crash at this commit, counted from 0, and at no other: before its commands leave, or after.
    pub(crate) crash_at: Option<(usize, bool)>,
}

fn run(plan: Plan, seeds: u64) {
    for seed in seeds_of(seeds) {
        live(seed, plan, 400);
    }
}

/// The seeds of a plan: the usual ones, or what the environment says.
fn seeds_of(usual: u64) -> std::ops::Range<u64> {
    let number = |name| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("{name}={value} is no number")))
    };
    match (number("SEED"), number("SEEDS")) {
        (Some(only), _) => only..only + 1,
        (None, seeds) => 0..seeds.unwrap_or(usual),
    }
}

/// Tells of which run a failure was.
struct Told(u64, Plan);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={}, {:?}", self.0, self.1);
        }
    }
}

/// One life of a world; gives back how many commits it had.
fn live(seed: u64, plan: Plan, steps: usize) -> usize {
    let _told = Told(seed, plan);
    let mut world = World::new(seed, plan);
    for _ in 0..steps {
        world.step();
    }
    world.commit();
    let commits = world.commits;
    world.finish();
    commits
}

const CALM: Plan = Plan {
    crashes: false,
    drops: false,
    silence: false,
    uncertainty: Uncertainty::SendAgain,
    body_cache: 1 << 20,
    money: false,
    plugins: false,
    serial: false,
    senders: false,
    orders: false,
    crash_at: None,
};

#[test]
fn without_doubt_every_message_goes_out_exactly_once() {
    run(CALM, 400);
}

#[test]
fn content_that_is_read_back_changes_nothing() {
    run(Plan { body_cache: 0, ..CALM }, 400);
}

#[test]
fn links_that_drop_lose_nothing() {
    run(Plan { drops: true, silence: true, ..CALM }, 400);
}

#[test]
fn crashes_lose_nothing() {
    run(Plan { crashes: true, ..CALM }, 400);
}

#[test]
fn all_at_once_with_each_remedy_for_doubt() {
    for uncertainty in [Uncertainty::SendAgain, Uncertainty::Ask, Uncertainty::AwaitReceipt] {
        for body_cache in [0, 1 << 20] {
            run(Plan { crashes: true, drops: true, silence: true, uncertainty, body_cache, ..CALM }, 120);
        }
    }
}

#[test]
fn money_is_conserved() {
    run(Plan { money: true, ..CALM }, 200);
}

#[test]
fn money_is_conserved_over_crashes() {
    for body_cache in [0, 1 << 20] {
        run(Plan { money: true, crashes: true, drops: true, silence: true, body_cache, ..CALM }, 300);
    }
}

#[test]
fn plugins_of_every_mood_lose_nothing() {
    for body_cache in [0, 1 << 20] {
        run(Plan { plugins: true, body_cache, ..CALM }, 120);
    }
}

#[test]
fn plugins_of_every_mood_lose_nothing_over_crashes() {
    for uncertainty in [Uncertainty::SendAgain, Uncertainty::AwaitReceipt] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { plugins: true, money: true, crashes: true, uncertainty, body_cache, ..CALM };
            run(plan, 60);
            run(Plan { drops: true, silence: true, ..plan }, 60);
        }
    }
}

/// Everybody's messages go to a few subscribers.
const SERIAL: Plan = Plan { serial: true, plugins: true, silence: true, ..CALM };

#[test]
fn subscribers_take_turns() {
    for body_cache in [0, 1 << 20] {
        run(Plan { body_cache, ..SERIAL }, 120);
        run(Plan { body_cache, plugins: false, ..SERIAL }, 80);
        run(Plan { body_cache, silence: false, ..SERIAL }, 60);
    }
}

#[test]
fn subscribers_take_turns_over_crashes_and_broken_links() {
    for uncertainty in [Uncertainty::SendAgain, Uncertainty::AwaitReceipt] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, drops: true, uncertainty, body_cache, money: true, ..SERIAL };
            run(plan, 80);
            run(Plan { plugins: false, ..plan }, 50);
        }
    }
}

#[test]
fn subscribers_take_turns_over_a_crash_at_every_commit() {
    const STEPS: usize = 120;
    for seed in seeds_of(16) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { plugins: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..SERIAL };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 4, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// An admin gives orders all the time.
const ORDERS: Plan = Plan { orders: true, ..CALM };

#[test]
fn orders_are_obeyed() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..ORDERS };
        run(plan, 150);
        run(Plan { money: true, plugins: true, drops: true, silence: true, ..plan }, 100);
        run(Plan { serial: true, plugins: true, ..plan }, 80);
        run(Plan { senders: true, ..plan }, 60);
    }
}

#[test]
fn orders_are_obeyed_over_crashes() {
    for uncertainty in [Uncertainty::SendAgain, Uncertainty::Ask, Uncertainty::AwaitReceipt] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..ORDERS };
            run(plan, 100);
            run(Plan { money: true, plugins: true, drops: true, silence: true, ..plan }, 60);
            run(Plan { serial: true, plugins: true, ..plan }, 40);
        }
    }
}

#[test]
fn orders_are_obeyed_over_a_crash_at_every_commit() {
    const STEPS: usize = 100;
    for seed in seeds_of(10) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { money: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..ORDERS };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 4, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// Numbers are few: most messages wait for one.
const SENDERS: Plan = Plan { senders: true, ..CALM };

#[test]
fn numbers_of_pools_come_back() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..SENDERS };
        run(plan, 100);
        run(Plan { money: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { serial: true, plugins: true, ..plan }, 60);
    }
}

#[test]
fn numbers_of_pools_come_back_over_crashes() {
    for uncertainty in [Uncertainty::SendAgain, Uncertainty::AwaitReceipt] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..SENDERS };
            run(plan, 60);
            run(Plan { money: true, plugins: true, drops: true, silence: true, ..plan }, 60);
        }
    }
}

#[test]
fn numbers_of_pools_come_back_over_a_crash_at_every_commit() {
    const STEPS: usize = 100;
    for seed in 0..12 {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { money: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..SENDERS };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 4, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

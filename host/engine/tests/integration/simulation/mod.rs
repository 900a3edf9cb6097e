//! Simulation of the engine under faults, from a seed.
//!
//! A world of accounts, peers, links, a journal on a disk, and two clocks drives the engine through random events: answers in any
//! order, late, or never; DLRs that overtake the submit response; links that drop; clocks that jump; crashes that
//! lose everything but the committed state. At the end all peers become well-behaved, and then:
//!
//! * every message whose submitter was told "accepted" has exactly one final record;
//! * no message is stuck;
//! * a peer has a message if the record says so, and has it once, unless an uncertain message was sent again;
//! * a submission repeated under its key gets the same answer each time, and is accepted once;
//! * each submit attempt has a different ticket, unless it repeats an uncertain attempt;
//! * at every commit each ledger account has its funds, minus the price of its finished messages, and never less than
//!   its limit; each priced message is captured or released once, a balance operation counts once even if it is sent several
//!   times, and the biller is notified of every settlement that it wants;
//! * at most one query per number is pending, and no message takes a leg that requires a subscriber without one;
//!   messages that wait for the same answer leave in order;
//! * a decision is requested once per attempt, and a message with a pending decision is deferred after a crash;
//! * a serial peer never has two messages for one subscriber, nor one while another has a pending decision; of equal
//!   priority the older goes first; a waiter waits for a live message; an alert causes a retry;
//! * at every commit a pool number leased as a sender belongs to one live message; at the end all are released;
//! * no message is sent that a screen stopped, unless an admin has released it from quarantine; a replaced text is
//!   screened again;
//! * at most one lookup of a number is pending, and no message is sent that waits for one;
//! * no message leaves that a queue action holds or reroutes; messages of an action undone in time continue, and an action
//!   reports how many messages it has cancelled;
//! * a submitter gets one final DLR for a message, even if a receipt policy sends it on several legs, and a message is sent
//!   twice on a leg only if an attempt was uncertain;
//! * every trace is a possible one;
//! * no answered DLR is lost: peers repeat unanswered ones after a crash;
//! * no message is sent outside its send windows; each attempt takes a token of each day's bucket of the configuration and of
//!   its decision, in the batch that has the attempt, and no day has more than its amount;
//! * two nodes over one log never both append to one place of it, and the follower's tables equal the leader's.
//!
//! A failure prints its seed and plan: `SEED=n cargo test -p engine simulation::` runs that seed only, and
//! `SEEDS=n` the first n of every plan instead of as many as fit into an ordinary test run; `SEEDS=n..m` runs the part from n
//! up to, but without, m.

mod cluster;
mod disk;
mod journal;
mod ledger;
mod lookups;
mod pace_limits;
mod plugins;
mod queue_actions;
mod receipts;
mod screens;
mod sender_numbers;
mod serial_delivery;
mod world;

use engine::UncertainPolicy;
use world::World;

pub(crate) struct Random(model::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(model::Random::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.0.chance(percent)
    }
}

/// The plan of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) crashes: bool,
    /// Appends to the journal fail, with an unknown outcome.
    pub(crate) disk_faults: bool,
    pub(crate) drops: bool,
    pub(crate) silence: bool,
    pub(crate) uncertainty: UncertainPolicy,
    pub(crate) body_cache: usize,
    /// Messages have a price.
    pub(crate) ledger: bool,
    /// Some legs require their subscriber, and a policy decides on refusals.
    pub(crate) plugins: bool,
    /// One peer is serial, and subscribers are unreachable at times.
    pub(crate) serial: bool,
    /// Messages lease pool numbers as senders.
    pub(crate) senders: bool,
    /// An admin creates queue actions.
    pub(crate) queue_actions: bool,
    /// Screens put messages into quarantine, and drop some.
    pub(crate) screens: bool,
    /// A receipt policy sends messages to their next leg, changes DLRs, and disbelieves some.
    pub(crate) receipts: bool,
    /// Some numbers are looked up before messages to them are routed.
    pub(crate) lookups: bool,
    /// Peers, accounts and decisions name pace buckets and send windows.
    pub(crate) pace: bool,
    /// Two nodes share a log: a crash is also a take-over, and appends have unknown outcomes.
    pub(crate) cluster: bool,
    /// A single crash at this commit, counted from 0: before its commands leave, or after.
    pub(crate) crash_at: Option<(usize, bool)>,
}

fn run(plan: Plan, seeds: u64) {
    for seed in seeds_of(seeds) {
        live(seed, plan, 400);
    }
}

/// The seeds of a plan: the first `usual` ones, or the ones given by the environment.
pub(crate) fn seeds_of(usual: u64) -> std::ops::Range<u64> {
    let number =
        |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{text} is not the number of a seed")) };
    if let Ok(only) = std::env::var("SEED") {
        let only = number(&only);
        return only..only + 1;
    }
    match std::env::var("SEEDS") {
        Ok(seeds) => {
            let (first, end) = seeds.split_once("..").unwrap_or(("0", &seeds));
            number(first)..number(end)
        }
        Err(_) => 0..usual,
    }
}

/// Prints the failed run.
struct FailureReport(u64, Plan);

impl Drop for FailureReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SEED={}, {:?}", self.0, self.1);
        }
    }
}

/// Runs one world; returns its number of commits.
fn live(seed: u64, plan: Plan, steps: usize) -> usize {
    let _told = FailureReport(seed, plan);
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
    disk_faults: false,
    drops: false,
    silence: false,
    uncertainty: UncertainPolicy::SendAgain,
    body_cache: 1 << 20,
    ledger: false,
    plugins: false,
    serial: false,
    senders: false,
    queue_actions: false,
    screens: false,
    receipts: false,
    lookups: false,
    pace: false,
    cluster: false,
    crash_at: None,
};

#[test]
fn a_disk_that_fails_loses_nothing() {
    for (ledger, senders) in [(false, false), (true, false), (false, true)] {
        run(Plan { disk_faults: true, crashes: true, drops: true, ledger, senders, ..CALM }, 60);
    }
}

#[test]
fn without_faults_every_message_is_sent_exactly_once() {
    run(CALM, 400);
}

#[test]
fn evicted_content_changes_no_outcome() {
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
fn every_fault_at_once_with_each_uncertain_policy() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::Query, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            run(Plan { crashes: true, drops: true, silence: true, uncertainty, body_cache, ..CALM }, 120);
        }
    }
}

#[test]
fn money_is_conserved() {
    run(Plan { ledger: true, ..CALM }, 200);
}

#[test]
fn money_is_conserved_over_crashes() {
    for body_cache in [0, 1 << 20] {
        run(Plan { ledger: true, crashes: true, drops: true, silence: true, body_cache, ..CALM }, 300);
    }
}

#[test]
fn plugin_faults_lose_nothing() {
    for body_cache in [0, 1 << 20] {
        run(Plan { plugins: true, body_cache, ..CALM }, 120);
    }
}

#[test]
fn plugin_faults_lose_nothing_through_crashes() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { plugins: true, ledger: true, crashes: true, uncertainty, body_cache, ..CALM };
            run(plan, 60);
            run(Plan { drops: true, silence: true, ..plan }, 60);
        }
    }
}

/// All messages go to a few subscribers.
const SERIAL: Plan = Plan { serial: true, plugins: true, silence: true, ..CALM };

#[test]
fn serial_delivery_per_subscriber() {
    for body_cache in [0, 1 << 20] {
        run(Plan { body_cache, ..SERIAL }, 120);
        run(Plan { body_cache, plugins: false, ..SERIAL }, 80);
        run(Plan { body_cache, silence: false, ..SERIAL }, 60);
    }
}

#[test]
fn serial_delivery_through_crashes_and_broken_links() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, drops: true, uncertainty, body_cache, ledger: true, ..SERIAL };
            run(plan, 80);
            run(Plan { plugins: false, ..plan }, 50);
        }
    }
}

#[test]
fn serial_delivery_with_a_crash_at_every_commit() {
    const STEPS: usize = 120;
    for seed in seeds_of(16) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { plugins: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..SERIAL };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// An admin creates queue actions all the time.
const QUEUE_ACTIONS: Plan = Plan { queue_actions: true, ..CALM };

#[test]
fn queue_actions_apply() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..QUEUE_ACTIONS };
        run(plan, 150);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 100);
        run(Plan { serial: true, plugins: true, ..plan }, 80);
        run(Plan { senders: true, ..plan }, 60);
    }
}

#[test]
fn queue_actions_apply_through_crashes() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::Query, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..QUEUE_ACTIONS };
            run(plan, 100);
            run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 60);
            run(Plan { serial: true, plugins: true, ..plan }, 40);
        }
    }
}

#[test]
fn queue_actions_apply_with_a_crash_at_every_commit() {
    const STEPS: usize = 100;
    for seed in seeds_of(10) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { ledger: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..QUEUE_ACTIONS };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// Screens stop messages, and an admin looks at them.
const SCREENS: Plan = Plan { screens: true, ..CALM };

#[test]
fn messages_leave_quarantine_by_an_admin_only() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..SCREENS };
        run(plan, 150);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { senders: true, queue_actions: true, ..plan }, 80);
        run(Plan { serial: true, plugins: true, ..plan }, 60);
    }
}

#[test]
fn messages_leave_quarantine_by_an_admin_only_through_crashes() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { crashes: true, body_cache, ..SCREENS };
        run(plan, 150);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { senders: true, queue_actions: true, ..plan }, 80);
    }
}

/// Numbers are looked up, and some lookups fail.
const LOOKUPS: Plan = Plan { lookups: true, ..CALM };

#[test]
fn messages_wait_for_lookups() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..LOOKUPS };
        run(plan, 150);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { senders: true, queue_actions: true, screens: true, ..plan }, 80);
        run(Plan { serial: true, plugins: true, ..plan }, 60);
    }
}

#[test]
fn messages_wait_for_lookups_through_crashes() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { crashes: true, body_cache, ..LOOKUPS };
        run(plan, 150);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { senders: true, queue_actions: true, screens: true, ..plan }, 80);
    }
}

/// Pool numbers are few: most messages wait for one.
const SENDERS: Plan = Plan { senders: true, ..CALM };

#[test]
fn pool_numbers_are_released() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..SENDERS };
        run(plan, 100);
        run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 80);
        run(Plan { serial: true, plugins: true, ..plan }, 60);
    }
}

#[test]
fn pool_numbers_are_released_through_crashes() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..SENDERS };
            run(plan, 60);
            run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 60);
        }
    }
}

#[test]
fn pool_numbers_are_released_with_a_crash_at_every_commit() {
    const STEPS: usize = 100;
    for seed in 0..12 {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { ledger: seed % 2 == 0, drops: seed % 8 < 4, body_cache, ..SENDERS };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// A receipt policy decides on DLRs and on their absence.
const RECEIPTS: Plan = Plan { receipts: true, ledger: true, ..CALM };

#[test]
fn a_message_with_a_receipt_policy_has_one_final_dlr_and_one_charge() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..RECEIPTS };
        run(plan, 100);
        run(Plan { plugins: true, drops: true, silence: true, ..plan }, 60);
        run(Plan { senders: true, queue_actions: true, ..plan }, 40);
        run(Plan { serial: true, plugins: true, ..plan }, 40);
    }
}

#[test]
fn a_receipt_policy_loses_nothing_through_crashes() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::Query, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..RECEIPTS };
            run(plan, 50);
            run(Plan { plugins: true, drops: true, silence: true, ..plan }, 30);
            run(Plan { cluster: true, ..plan }, 10);
        }
    }
}

#[test]
fn a_receipt_policy_with_a_crash_at_every_commit() {
    const STEPS: usize = 120;
    for seed in seeds_of(8) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 4 < 2 { 0 } else { 1 << 20 };
            let plan = Plan { drops: seed % 8 < 4, body_cache, ..RECEIPTS };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// Two nodes over one log: the leader crashes, pauses, or loses requests and answers.
const CLUSTER: Plan = Plan { cluster: true, crashes: true, ..CALM };

#[test]
fn a_take_over_loses_nothing() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::Query, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { uncertainty, body_cache, ..CLUSTER };
            run(plan, 30);
            run(Plan { ledger: true, plugins: true, drops: true, silence: true, ..plan }, 30);
            run(Plan { senders: true, ledger: true, ..plan }, 30);
            run(Plan { queue_actions: true, drops: true, ..plan }, 20);
        }
    }
}

#[test]
fn a_take_over_at_every_commit_loses_nothing() {
    const STEPS: usize = 100;
    for seed in seeds_of(8) {
        for crash_before_leaving in [false, true] {
            let plan = Plan { ledger: seed % 2 == 0, senders: seed % 4 < 2, crashes: false, ..CLUSTER };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

/// Most messages have pace limits.
const PACE: Plan = Plan { pace: true, ..CALM };

#[test]
fn pace_limits_hold() {
    for body_cache in [0, 1 << 20] {
        let plan = Plan { body_cache, ..PACE };
        let mut exhausted_days = (0, 0);
        for seed in seeds_of(20) {
            let _told = FailureReport(seed, plan);
            let mut world = World::new(seed, plan);
            (0..400).for_each(|_| world.step());
            world.finish();
            let (buckets, quotas) = world.exhausted_days();
            exhausted_days = (exhausted_days.0 + buckets, exhausted_days.1 + quotas);
        }
        assert!(exhausted_days.0 > 0, "no bucket was exhausted");
        assert!(exhausted_days.1 > 0, "no day quota was exhausted");
        run(Plan { ledger: true, drops: true, silence: true, screens: true, ..plan }, 5);
        run(Plan { serial: true, ..plan }, 6);
    }
}

#[test]
fn pace_limits_hold_through_crashes_and_take_overs() {
    for uncertainty in [UncertainPolicy::SendAgain, UncertainPolicy::AwaitDlr] {
        for body_cache in [0, 1 << 20] {
            let plan = Plan { crashes: true, uncertainty, body_cache, ..PACE };
            run(plan, 6);
            run(Plan { drops: true, silence: true, disk_faults: true, ..plan }, 4);
            run(Plan { cluster: true, ..plan }, 5);
        }
    }
}

#[test]
fn pace_limits_hold_with_a_crash_at_every_commit() {
    const STEPS: usize = 60;
    for seed in seeds_of(2) {
        for crash_before_leaving in [false, true] {
            let body_cache = if seed % 2 == 0 { 0 } else { 1 << 20 };
            let plan = Plan { body_cache, ..PACE };
            let commits = live(seed, plan, STEPS);
            assert!(commits > STEPS / 12, "{commits}");
            for commit in 0..commits {
                live(seed, Plan { crash_at: Some((commit, crash_before_leaving)), ..plan }, STEPS);
            }
        }
    }
}

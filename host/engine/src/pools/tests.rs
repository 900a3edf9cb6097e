use super::*;
use model::{
    AcquireRequest, LeaseTicket, Now, NumberRow, PoolOperation, PoolOutcome, PoolRefusal, PoolSettings,
    Strategy, Timestamp,
};
use proptest::prelude::{prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use std::sync::Arc;
use std::time::Duration;

fn number(i: usize) -> PoolNumber {
    format!("{}", 100 + i).parse().unwrap()
}

fn pool_of(strategy: Strategy, quarantine: u64, numbers: usize) -> Pool {
    let mut pool = Pool::new(PoolSettings { strategy, quarantine: Duration::from_secs(quarantine) }, 7);
    for i in 0..numbers {
        pool.apply(at(0), PoolOperation::Add { number: number(i), weight: None }, &by());
        pool.apply(at(0), PoolOperation::Reg { number: number(i) }, &by());
    }
    pool
}

fn at(mono: u64) -> Now {
    Now { wall: Timestamp(1_000_000 + mono), mono: Moment(mono) }
}

fn by() -> Arc<str> {
    "user".into()
}

/// The rows of a pool.
type Disk = std::collections::BTreeMap<PoolNumber, NumberRow>;

fn write(pool: &mut Pool, disk: &mut Disk) {
    for entry in pool.entries_made.drain(..) {
        match entry.row {
            Some(row) => disk.insert(entry.number, row),
            None => disk.remove(&entry.number),
        };
    }
}

fn restarted(pool: &Pool, disk: &Disk, now: Now) -> Pool {
    let mut fresh = Pool::new(pool.settings, 7);
    for (number, row) in disk {
        fresh.recover(*number, Some(row.clone()), false, now);
    }
    fresh.serial = pool.serial();
    fresh.recovered();
    fresh
}

fn call(pool: &mut Pool, mono: u64, lease: Option<u64>) -> PoolOutcome {
    let lease = lease.map(Duration::from_secs);
    pool.apply(at(mono), PoolOperation::Call(AcquireRequest { lease, ..AcquireRequest::default() }), &by())
}

fn hangup(pool: &mut Pool, mono: u64, number: PoolNumber, ticket: Option<LeaseTicket>) -> PoolOutcome {
    pool.apply(at(mono), PoolOperation::Hangup { number, ticket }, &by())
}

fn acquired(outcome: PoolOutcome) -> (PoolNumber, LeaseTicket) {
    match outcome {
        PoolOutcome::Acquired { number, ticket } => (number, ticket),
        other => panic!("no number: {other:?}"),
    }
}

const UP: PoolOutcome = PoolOutcome::Done(Some(NumberState::IdleUp));

fn refused(refusal: PoolRefusal) -> PoolOutcome {
    PoolOutcome::Refused(refusal)
}

#[test]
fn an_entry_is_small() {
    assert_eq!(size_of::<Entry>(), 64);
}

#[test]
fn a_holder_longer_than_a_record_allows_is_refused() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 1);
    let named = |length| {
        PoolOperation::Call(AcquireRequest {
            holder: "é".repeat(length).into(), ..AcquireRequest::default()
        })
    };
    assert_eq!(pool.apply(at(0), named(128), &by()), refused(PoolRefusal::TooLong));
    acquired(pool.apply(at(0), named(127), &by()));
}

#[test]
fn the_longest_idle_goes_first() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 3);
    assert_eq!(acquired(call(&mut pool, 0, None)).0, number(0));
    assert_eq!(hangup(&mut pool, 0, number(0), None), UP);
    for expected in [1, 2, 0] {
        assert_eq!(acquired(call(&mut pool, 0, None)).0, number(expected));
    }
}

#[test]
fn leases_that_end_while_the_daemon_is_down_end_in_their_order() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 2);
    let mut disk = Disk::new();
    write(&mut pool, &mut disk);
    assert_eq!(acquired(call(&mut pool, 1_000_000, Some(100))).0, number(0));
    assert_eq!(acquired(call(&mut pool, 1_000_000, Some(50))).0, number(1));
    write(&mut pool, &mut disk);
    let later = at(1_500_000);
    let mut pool = restarted(&pool, &disk, later);
    pool.advance(later);
    for expected in [1, 0] {
        assert_eq!(acquired(call(&mut pool, 1_500_000, None)).0, number(expected));
    }
}

#[test]
fn refusal_reasons_when_no_number_is_free() {
    let mut pool = pool_of(Strategy::LongestIdle, 10, 0);
    assert_eq!(call(&mut pool, 0, None), refused(PoolRefusal::Empty));
    pool.apply(at(0), PoolOperation::Add { number: number(0), weight: None }, &by());
    assert_eq!(call(&mut pool, 0, None), refused(PoolRefusal::AllDown));
    pool.apply(at(0), PoolOperation::Reg { number: number(0) }, &by());
    acquired(call(&mut pool, 0, Some(5)));
    let left = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(call(&mut pool, 1000, None), refused(PoolRefusal::AllBusy { remaining: left(4) }));
    assert_eq!(call(&mut pool, 6000, None), refused(PoolRefusal::AllInQuarantine { remaining: left(9) }));
    assert_eq!(acquired(call(&mut pool, 15_000, None)).0, number(0));
    assert_eq!(call(&mut pool, 15_000, None), refused(PoolRefusal::AllBusy { remaining: None }));
}

#[test]
fn hangup_after_the_lease_ended() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 1);
    let (number, first) = acquired(call(&mut pool, 0, Some(5)));
    assert_eq!(
        hangup(&mut pool, 5000, number, Some(first)),
        refused(PoolRefusal::WrongState(NumberState::IdleUp))
    );
    let (_, second) = acquired(call(&mut pool, 5000, None));
    assert_eq!(hangup(&mut pool, 5000, number, Some(first)), refused(PoolRefusal::OtherTicket));
    assert_eq!(hangup(&mut pool, 5000, number, Some(second)), UP);
}

#[test]
fn renewed_in_time_and_too_late() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 1);
    let (number, ticket) = acquired(call(&mut pool, 0, Some(5)));
    let renew = |mono, pool: &mut Pool| {
        let lease = Some(Duration::from_secs(5));
        pool.apply(at(mono), PoolOperation::Renew { number, ticket: Some(ticket), lease }, &by())
    };
    assert_eq!(renew(4999, &mut pool), PoolOutcome::Done(Some(NumberState::BusyUp)));
    pool.advance(at(9998));
    assert_eq!(pool.counts().busy_up, 1);
    assert_eq!(renew(9999, &mut pool), refused(PoolRefusal::WrongState(NumberState::IdleUp)));
}

#[test]
fn removed_while_busy() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 1);
    let (number, first) = acquired(call(&mut pool, 0, Some(5)));
    assert_eq!(pool.apply(at(0), PoolOperation::Del { number }, &by()), PoolOutcome::Done(None));
    assert_eq!(hangup(&mut pool, 0, number, Some(first)), refused(PoolRefusal::NotInPool));
    assert_eq!(pool.deadline(), None, "its lease is gone with it");
    pool.apply(at(0), PoolOperation::Add { number, weight: None }, &by());
    pool.apply(at(0), PoolOperation::Reg { number }, &by());
    let (_, second) = acquired(call(&mut pool, 0, None));
    assert_ne!(first, second);
    assert_eq!(hangup(&mut pool, 0, number, Some(first)), refused(PoolRefusal::OtherTicket));
}

#[test]
fn the_same_pair_gets_the_same_number() {
    let mut pool = pool_of(Strategy::Sticky, 0, 100);
    let pair = |user: &str, callee: &str| {
        PoolOperation::Call(AcquireRequest {
            holder: user.into(),
            callee: callee.into(),
            ..AcquireRequest::default()
        })
    };
    let (first, _) = acquired(pool.apply(at(0), pair("ann", "555"), &by()));
    let (while_busy, _) = acquired(pool.apply(at(0), pair("ann", "555"), &by()));
    assert_ne!(first, while_busy);
    hangup(&mut pool, 0, first, None);
    acquired(pool.apply(at(0), pair("bob", "777"), &by()));
    assert_eq!(acquired(pool.apply(at(0), pair("ann", "555"), &by())).0, first);
}

#[test]
fn the_nearest_number_has_most_in_common_with_the_callee() {
    let mut pool = pool_of(Strategy::Nearest, 0, 0);
    for text in ["4930111", "4930222", "4989111", "1212555"] {
        let number = text.parse().unwrap();
        pool.apply(at(0), PoolOperation::Add { number, weight: None }, &by());
        pool.apply(at(0), PoolOperation::Reg { number }, &by());
    }
    for (callee, expected) in
        [("49302299", "4930222"), ("4989999", "4989111"), ("1999", "1212555"), ("49301", "4930111")]
    {
        let request = AcquireRequest { callee: callee.into(), ..AcquireRequest::default() };
        assert_eq!(
            acquired(pool.apply(at(0), PoolOperation::Call(request), &by())).0,
            expected.parse().unwrap(),
            "{callee}"
        );
    }
}

#[test]
fn numbers_are_drawn_by_their_weight() {
    let mut pool = pool_of(Strategy::Weighted, 0, 4);
    pool.apply(at(0), PoolOperation::Add { number: number(2), weight: Some(9) }, &by());
    let mut heavy = 0;
    for _ in 0..12_000 {
        let (drawn, _) = acquired(call(&mut pool, 0, None));
        heavy += usize::from(drawn == number(2));
        hangup(&mut pool, 0, drawn, None);
    }
    // Nine of twelve parts are expected: 9000, with a deviation of 47.
    assert!((8700..9300).contains(&heavy), "{heavy}");
}

/// 64 clients in any order, with crashes: each records its own leases.
#[test]
fn no_number_is_held_twice() {
    let mut pool = pool_of(Strategy::LongestIdle, 0, 40);
    let mut disk = Disk::new();
    let mut held: Vec<Option<(PoolNumber, LeaseTicket)>> = vec![None; 64];
    let mut random = model::Random::new(64);
    let (mut most, mut turned_away) = (0, 0);
    for round in 0..200_000u64 {
        let client = random.below(64) as usize;
        if let Some((number, ticket)) = held[client].take() {
            assert_eq!(hangup(&mut pool, round, number, Some(ticket)), UP);
        } else if let PoolOutcome::Acquired { number, ticket } = call(&mut pool, round, None) {
            assert!(held.iter().flatten().all(|(other, _)| *other != number), "{number:?} is held twice");
            held[client] = Some((number, ticket));
        } else {
            turned_away += 1;
            assert_eq!(held.iter().flatten().count(), 40, "refused though a number was ready");
        }
        most = most.max(held.iter().flatten().count());
        write(&mut pool, &mut disk);
        if random.below(500) == 0 {
            pool = restarted(&pool, &disk, at(round));
        }
    }
    assert!(most == 40 && turned_away > 0, "there were never more clients than numbers");
}

fn operations() -> impl Generator<Value = PoolOperation> {
    let lease = proptest::option::of((1..30u64).prop_map(Duration::from_secs));
    let named = proptest::option::of((0..12usize).prop_map(number));
    let ticket = proptest::option::of((0..60u64).prop_map(LeaseTicket));
    let any = || (0..12usize).prop_map(number);
    prop_oneof![
        2 => (any(), proptest::option::of(1..20u8)).prop_map(|(number, weight)| PoolOperation::Add { number, weight }),
        1 => any().prop_map(|number| PoolOperation::Del { number }),
        3 => any().prop_map(|number| PoolOperation::Reg { number }),
        1 => any().prop_map(|number| PoolOperation::Unreg { number }),
        5 => (named, lease.clone(), "[a-c]?").prop_map(|(number, lease, who)| {
            PoolOperation::Call(AcquireRequest { number, lease, holder: who.into(), callee: "10".into(), ..AcquireRequest::default() })
        }),
        3 => (any(), ticket.clone()).prop_map(|(number, ticket)| PoolOperation::Hangup { number, ticket }),
        1 => (any(), ticket, lease).prop_map(|(number, ticket, lease)| PoolOperation::Renew { number, ticket, lease }),
    ]
}

/// A simple reference pool: everything is searched.
#[derive(Debug, Default)]
struct NaivePool {
    numbers: Vec<KnownNumber>,
    rest: u64,
    order: u64,
}

#[derive(Debug, Clone)]
struct KnownNumber {
    number: PoolNumber,
    state: NumberState,
    ends: Option<u64>,
    ticket: Option<LeaseTicket>,
    idle_since: u64,
}

impl NaivePool {
    fn wait(&mut self, at: usize) {
        self.order += 1;
        self.numbers[at].idle_since = self.order;
    }

    fn release(&mut self, at: usize, now: u64) {
        let known = &mut self.numbers[at];
        known.state = step(Some(known.state), model::NumberEvent::Hangup).0.unwrap();
        known.ticket = None;
        known.ends = (self.rest > 0).then_some(now + self.rest);
        self.wait(at);
    }

    fn advance(&mut self, now: u64) {
        loop {
            let due = self
                .numbers
                .iter()
                .enumerate()
                .filter(|(_, known)| known.ends.is_some_and(|ends| ends <= now));
            let Some((at, ends)) =
                due.map(|(at, known)| (at, known.ends.unwrap())).min_by_key(|(_, ends)| *ends)
            else {
                return;
            };
            if self.numbers[at].ticket.is_some() {
                self.release(at, ends);
            } else {
                self.numbers[at].ends = None;
                self.wait(at);
            }
        }
    }

    /// The numbers that a caller may get.
    fn ready(&self) -> Vec<&KnownNumber> {
        let mut ready: Vec<&KnownNumber> =
            self.numbers.iter().filter(|k| k.state == NumberState::IdleUp && k.ends.is_none()).collect();
        ready.sort_by_key(|known| known.idle_since);
        ready
    }

    /// Applies an operation and checks its outcome.
    fn follow(&mut self, now: u64, operation: &PoolOperation, outcome: PoolOutcome) -> bool {
        self.advance(now);
        let find = |number: PoolNumber| self.numbers.iter().position(|known| known.number == number);
        let event = match operation {
            PoolOperation::Call(call) => {
                let PoolOutcome::Acquired { number, ticket } = outcome else {
                    let wanted = |k: &&KnownNumber| call.number.is_none_or(|number| number == k.number);
                    return !self.ready().iter().any(wanted);
                };
                let allowed = self.ready().iter().any(|known| known.number == number)
                    && call.number.is_none_or(|wanted| wanted == number);
                let Some(at) = find(number) else { return false };
                let known = &mut self.numbers[at];
                known.state = NumberState::BusyUp;
                known.ticket = Some(ticket);
                known.ends = call.lease.map(|lease| now + lease.as_millis() as u64);
                return allowed;
            }
            PoolOperation::Hangup { number, ticket } => {
                let held = find(*number).filter(|at| self.numbers[*at].ticket.is_some());
                let held = held.filter(|at| ticket.is_none() || self.numbers[*at].ticket == *ticket);
                if let Some(at) = held {
                    self.release(at, now);
                }
                return held.is_some() == matches!(outcome, PoolOutcome::Done(_));
            }
            PoolOperation::Renew { number, ticket, lease } => {
                let held = find(*number).filter(|at| self.numbers[*at].ticket.is_some());
                let held = held.filter(|at| ticket.is_none() || self.numbers[*at].ticket == *ticket);
                if let Some(at) = held {
                    self.numbers[at].ends = lease.map(|lease| now + lease.as_millis() as u64);
                }
                return held.is_some() == matches!(outcome, PoolOutcome::Done(_));
            }
            PoolOperation::Add { number, .. } => (*number, model::NumberEvent::Add),
            PoolOperation::Del { number } => (*number, model::NumberEvent::Del),
            PoolOperation::Reg { number } => (*number, model::NumberEvent::Reg),
            PoolOperation::Unreg { number } => (*number, model::NumberEvent::Unreg),
        };
        let at = find(event.0);
        let before = at.map(|at| self.numbers[at].state);
        let (after, reply) = step(before, event.1);
        match (at, after) {
            (Some(at), None) => {
                self.numbers.remove(at);
            }
            (Some(at), Some(state)) if before != after => {
                self.numbers[at].state = state;
                self.wait(at);
            }
            (None, Some(state)) => {
                self.numbers.push(KnownNumber {
                    number: event.0,
                    state,
                    ends: None,
                    ticket: None,
                    idle_since: 0,
                });
            }
            _ => {}
        }
        (reply == StepReply::Ok) == (outcome == PoolOutcome::Done(after))
    }
}

fn any_strategy() -> impl Generator<Value = Strategy> {
    proptest::sample::select(vec![
        Strategy::LongestIdle,
        Strategy::Random,
        Strategy::Weighted,
        Strategy::Sticky,
        Strategy::Nearest,
    ])
}

proptest! {
    /// Long random sequences, with crashes at any point: the pool matches its rows, and no number is leased twice.
    #[test]
    fn pools_match_the_reference_through_crashes(
        strategy in any_strategy(),
        rest in 0..8u64,
        steps in proptest::collection::vec((operations(), 0..4000u64, proptest::bool::weighted(0.1)), 1..200),
    ) {
        let settings = PoolSettings { strategy, quarantine: Duration::from_secs(rest) };
        let mut pool = Pool::new(settings, 3);
        let mut naive = NaivePool { rest: rest * 1000, ..NaivePool::default() };
        let mut disk = Disk::new();
        let mut now = 0;
        for (operation, later, crash) in steps {
            now += later;
            let clock = at(now);
            let first = naive.advance_and_first(now);
            let outcome = pool.apply(clock, operation.clone(), &by());
            if let (Strategy::LongestIdle, PoolOperation::Call(AcquireRequest { number: None, .. }), PoolOutcome::Acquired { number, .. }) =
                (strategy, &operation, outcome)
            {
                prop_assert_eq!(Some(number), first, "first in, first out");
            }
            prop_assert!(naive.follow(now, &operation, outcome), "{:?} {:?} {:?}", operation, outcome, naive);
            write(&mut pool, &mut disk);
            if crash {
                pool = restarted(&pool, &disk, clock);
            }
            prop_assert_eq!(disk.len(), naive.numbers.len());
            prop_assert_eq!(pool.ready(), naive.ready().len());
            for known in &naive.numbers {
                let row = pool.row(known.number, clock);
                prop_assert_eq!(row.as_ref(), disk.get(&known.number));
                let row = row.unwrap();
                prop_assert_eq!(row.state, known.state);
                prop_assert_eq!(row.ends.map(|at| at.0 - 1_000_000), known.ends);
                prop_assert!(known.ticket.is_none_or(|ticket| ticket.0 == row.stamp));
            }
        }
    }
}

impl NaivePool {
    fn advance_and_first(&mut self, now: u64) -> Option<PoolNumber> {
        self.advance(now);
        self.ready().first().map(|known| known.number)
    }
}

#[test]
fn adding_a_number_again_without_weight_keeps_its_weight() {
    let mut pool = pool_of(Strategy::Weighted, 0, 1);
    let add = |weight| PoolOperation::Add { number: number(0), weight };
    let weight = |pool: &Pool| pool.row(number(0), at(0)).unwrap().weight;
    for (given, has) in [(Some(9), 9), (None, 9), (Some(200), 16), (Some(0), 1)] {
        assert_eq!(pool.apply(at(0), add(given), &by()), UP);
        assert_eq!(weight(&pool), has);
    }
}

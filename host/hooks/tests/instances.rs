//! Instances are the house's, and there are only so many.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use capabilities::{Fetch, FetchFailure, Request, Response};
use hooks::{Binding, HooksOptions, Trying};
use model::Hook;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{FORCED, House, NOW, options, patient, until};

/// Another system that answers once so many have asked.
struct Together {
    all: usize,
    asked: AtomicUsize,
}

impl Fetch for Together {
    fn fetch(&self, _: &str, _: &capabilities::Grants, _: Request) -> Result<Response, FetchFailure> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed) / self.all;
        until("all have asked", || self.asked.load(Ordering::Relaxed) >= (turn + 1) * self.all);
        Ok(Response { status: 200, ..Response::default() })
    }
}

/// Three calls at a time, of which none fails.
fn burst(house: &House) {
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| house.hooks.resolve("1", NOW))).collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap().note.as_deref(), Some("200 0"));
        }
    });
}

#[test]
fn what_was_live_before_keeps_no_more_than_it_needs_for_a_quick_way_back() {
    let together = Arc::new(Together { all: 3, asked: AtomicUsize::new(0) });
    // Three for what is live, and as many for what is to be; what was has one of them.
    let house = House::online_with(HooksOptions { instances: 7, ..options() }, together);
    let ask = |url: &str| patient(house.binding("test_prober", &format!("fetch GET {url}")));
    let bindings: [Binding; 2] = [ask("http://one/"), ask("http://two/")];
    for turn in 0..4 {
        house.hooks.activate(Hook::Resolver, NOW, vec![bindings[turn % 2].clone()], FORCED).unwrap();
        burst(&house);
    }
    for _ in 0..3 {
        house.hooks.rollback(Hook::Resolver, NOW).unwrap();
        burst(&house);
    }
    assert_eq!(house.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);
}

#[test]
fn what_goes_live_is_ready_for_as_many_calls_as_what_was() {
    let together = Arc::new(Together { all: 3, asked: AtomicUsize::new(0) });
    let house = House::online_with(HooksOptions { instances: 12, ..options() }, together);
    let ask = |url: &str| patient(house.binding("test_prober", &format!("fetch GET {url}")));
    let [one, two] = [ask("http://one/"), ask("http://two/")];
    let spare = patient(house.binding("test_trap", "north"));
    // Whatever else there is room for is taken: no instance can be made for a call.
    let ready = || {
        let taken: Vec<_> =
            std::iter::from_fn(|| house.hooks.trial(Hook::Router, std::slice::from_ref(&spare)).ok())
                .collect();
        assert!(taken.len() < 12);
        burst(&house);
    };
    house.hooks.activate(Hook::Resolver, NOW, vec![one], FORCED).unwrap();
    burst(&house);
    house.hooks.activate(Hook::Resolver, NOW, vec![two.clone()], FORCED).unwrap();
    ready();
    house.hooks.rollback(Hook::Resolver, NOW).unwrap();
    ready();
    for trying in [Trying::Canary { share: 1 }, Trying::Shadow] {
        house.hooks.try_out(Hook::Resolver, NOW, trying, vec![two.clone()], FORCED).unwrap();
        house.hooks.promote(Hook::Resolver, NOW, None).unwrap();
        ready();
    }
}

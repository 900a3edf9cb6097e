//! Instances are the house's, and there are only so many.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use capabilities::{Fetch, FetchFailure, Request, Response};
use hooks::{Binding, HooksOptions};
use model::Hook;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{House, NOW, options, patient, until};

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

#[test]
fn what_was_live_before_keeps_no_more_than_it_needs_for_a_quick_way_back() {
    let together = Arc::new(Together { all: 3, asked: AtomicUsize::new(0) });
    // Three for what is live, one for what was, and one for what is to be.
    let house = House::online_with(HooksOptions { instances: 5, ..options() }, together);
    let ask = |url: &str| patient(house.binding("test_prober", &format!("fetch GET {url}")));
    let burst = || {
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| house.hooks.resolve("1", NOW))).collect();
            for caller in callers {
                assert_eq!(caller.join().unwrap().note.as_deref(), Some("200 0"));
            }
        });
    };
    let bindings: [Binding; 2] = [ask("http://one/"), ask("http://two/")];
    for turn in 0..4 {
        house.hooks.activate(Hook::Resolver, NOW, vec![bindings[turn % 2].clone()], None).unwrap();
        burst();
    }
    for _ in 0..3 {
        house.hooks.rollback(Hook::Resolver, NOW).unwrap();
        burst();
    }
    assert_eq!(house.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);
}

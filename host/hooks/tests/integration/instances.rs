//! The host limits the total number of instances.

use crate::support::{FORCED, HooksFixture, NOW, options, wait_until, with_long_deadline};
use capabilities::{Fetch, FetchFailure, FetchRequest, FetchResponse};
use hooks::{Binding, HooksOptions, TrialMode};
use model::Hook;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Another system that answers once a number of requests have arrived.
struct BarrierFetch {
    all: usize,
    asked: AtomicUsize,
}

impl Fetch for BarrierFetch {
    fn fetch(
        &self,
        _: &str,
        _: &capabilities::HttpGrants,
        _: FetchRequest,
    ) -> Result<FetchResponse, FetchFailure> {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed) / self.all;
        wait_until("all have asked", || self.asked.load(Ordering::Relaxed) >= (turn + 1) * self.all);
        Ok(FetchResponse { status: 200, ..FetchResponse::default() })
    }
}

/// Three concurrent calls; none fails.
fn burst(fixture: &HooksFixture) {
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| fixture.hooks.resolve("1", NOW))).collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap().note.as_deref(), Some("200 0"));
        }
    });
}

#[test]
fn a_replaced_chain_keeps_one_warm_instance() {
    let fetch = Arc::new(BarrierFetch { all: 3, asked: AtomicUsize::new(0) });
    // Three for the live chain, and three for the next one; the previous chain keeps one of them.
    let fixture = HooksFixture::with_fetch_and_options(HooksOptions { instances: 7, ..options() }, fetch);
    let ask = |url: &str| with_long_deadline(fixture.binding("test_prober", &format!("fetch GET {url}")));
    let bindings: [Binding; 2] = [ask("http://one/"), ask("http://two/")];
    for turn in 0..4 {
        fixture.hooks.activate(Hook::Resolver, NOW, vec![bindings[turn % 2].clone()], FORCED).unwrap();
        burst(&fixture);
    }
    for _ in 0..3 {
        fixture.hooks.rollback(Hook::Resolver, NOW).unwrap();
        burst(&fixture);
    }
    assert_eq!(fixture.hooks.counts(Hook::Resolver)[0].counts.faults, [0; 5]);
}

#[test]
fn a_new_chain_has_as_many_warm_instances_as_the_old_one() {
    let fetch = Arc::new(BarrierFetch { all: 3, asked: AtomicUsize::new(0) });
    let fixture = HooksFixture::with_fetch_and_options(HooksOptions { instances: 12, ..options() }, fetch);
    let ask = |url: &str| with_long_deadline(fixture.binding("test_prober", &format!("fetch GET {url}")));
    let [one, two] = [ask("http://one/"), ask("http://two/")];
    let spare = with_long_deadline(fixture.moody("trap", "north"));
    // All other free instances are taken: none can be created for a call.
    let ready = || {
        let taken: Vec<_> =
            std::iter::from_fn(|| fixture.hooks.dry_run(Hook::Router, std::slice::from_ref(&spare)).ok())
                .collect();
        assert!(taken.len() < 12);
        burst(&fixture);
    };
    fixture.hooks.activate(Hook::Resolver, NOW, vec![one], FORCED).unwrap();
    burst(&fixture);
    fixture.hooks.activate(Hook::Resolver, NOW, vec![two.clone()], FORCED).unwrap();
    ready();
    fixture.hooks.rollback(Hook::Resolver, NOW).unwrap();
    ready();
    for mode in [TrialMode::Canary { share: 1 }, TrialMode::Shadow] {
        fixture.hooks.start_trial(Hook::Resolver, NOW, mode, vec![two.clone()], FORCED).unwrap();
        fixture.hooks.promote(Hook::Resolver, NOW, None).unwrap();
        ready();
    }
}

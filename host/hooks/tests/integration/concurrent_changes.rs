//! Concurrent changes: admins change the live chain during traffic while candidates fail, and no message is affected.

use crate::support::{HooksFixture, NOW, forwarded_peers, message, route_all_to, with_long_deadline};
use hooks::{Binding, HookError, Tolerance, TrialMode};
use model::{Hook, PeerId, Random, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

/// Changes by each of two admins.
const CHANGES: u64 = 40;
/// Minimum number of routed messages between two changes of one admin.
const MIN_MESSAGES_BETWEEN: u64 = 40;

#[test]
fn concurrent_changes_never_lose_a_message() {
    let fixture = HooksFixture::new();
    let north = with_long_deadline(fixture.binding("prefix_router", &route_all_to("north")));
    let south = Binding { policy: route_all_to("south"), ..north.clone() };
    let low_tolerance = Tolerance { faults: 3, window_ms: 3_600_000 };
    let trap = Binding { tolerance: low_tolerance, ..with_long_deadline(fixture.moody("trap", "north")) };
    let wrong =
        Binding { tolerance: low_tolerance, ..with_long_deadline(fixture.moody("unknown-peer", "south")) };
    let good = [vec![north.clone()], vec![south.clone()], vec![north, south]];
    let bad = [vec![trap.clone()], vec![wrong], vec![trap, good[2][1].clone()]];
    let ways: [PeerId; 2] = [fixture.peer("north"), fixture.peer("south")];
    let (hooks, done, routed) = (&fixture.hooks, AtomicBool::new(false), AtomicU64::new(0));
    hooks.activate(Hook::Router, NOW, good[0].clone(), None).unwrap();

    let admin = |seed: u64| {
        let mut random = Random::new(seed);
        for change in 0..CHANGES {
            let before = routed.load(Relaxed);
            while routed.load(Relaxed) < before + MIN_MESSAGES_BETWEEN && !done.load(Relaxed) {
                std::thread::yield_now();
            }
            let now = Timestamp(NOW.0 + change);
            let pick = random.below(3) as usize;
            let share = random.between(1, 10_001) as u16;
            let outcome = match random.below(8) {
                0 | 1 => hooks.activate(Hook::Router, now, good[pick].clone(), None).map(drop),
                2 => {
                    hooks.start_trial(Hook::Router, now, TrialMode::Shadow, bad[pick].clone(), None).map(drop)
                }
                3 | 4 => {
                    let canary = TrialMode::Canary { share };
                    hooks.start_trial(Hook::Router, now, canary, bad[pick].clone(), None).map(drop)
                }
                5 => {
                    let canary = TrialMode::Canary { share };
                    hooks.start_trial(Hook::Router, now, canary, good[pick].clone(), None).map(drop)
                }
                6 => hooks.rollback(Hook::Router, now).map(drop),
                _ => hooks.end_trial(Hook::Router, now),
            };
            match outcome {
                Ok(()) | Err(HookError::NoCandidate | HookError::NoEarlierBinding) => {}
                Err(error) => panic!("seed {seed}, change {change}: {error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3_u64)
            .map(|caller| {
                let (done, routed, ways) = (&done, &routed, &ways);
                scope.spawn(move || {
                    for count in 0_u64.. {
                        if done.load(Relaxed) {
                            return;
                        }
                        let source = if count % 3 == 0 { "bad" } else { "good" };
                        let decided =
                            hooks.route(&message(source, &format!("8613{caller}{:07}", count % 997)), NOW);
                        assert!(
                            matches!(forwarded_peers(&decided)[..], [peer] if ways.contains(&peer)),
                            "{decided:?}"
                        );
                        routed.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        let admin = &admin;
        let admins = [1, 2].map(|seed| scope.spawn(move || admin(seed)));
        while !admins.iter().all(ScopedJoinHandle::is_finished)
            && !callers.iter().any(ScopedJoinHandle::is_finished)
        {
            std::thread::yield_now();
        }
        // Before any assertion: the other threads must end in any case.
        done.store(true, Relaxed);
        admins.into_iter().for_each(|admin| admin.join().unwrap());
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });

    let history = hooks.history(Hook::Router);
    assert!(history.iter().zip(1..).all(|(record, serial)| record.serial == serial), "no change is lost");
    assert!(history.iter().all(|record| record.rollback_reason.is_none() && good.contains(&record.chain)));
    let live = hooks.status(Hook::Router).live;
    assert_eq!(history.last(), Some(&live));
    let fixture = fixture.restart();
    assert_eq!(fixture.hooks.status(Hook::Router).live, live);
}

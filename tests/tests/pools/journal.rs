//! Durability and notifications of number pools: the event stream, timers, and restarts.

use anyhow::{Context, Result};
use behaviour_tests::pools::http::{Pool, ask, config};
use behaviour_tests::pools::{EventStream, expected_change};
use behaviour_tests::{Fixture, until};
use serde_json::{Value, json};

#[test]
fn watchers_see_every_entry_once_in_order_and_can_resume() -> Result<()> {
    const ROUNDS: usize = 300;
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "watched");
    pool.fill(&["100", "101"])?;
    let mut live = pool.watch("", None)?;
    let mut all = pool.watch("?from=0", None)?;
    let mut after = pool.watch("?from=99", Some(1))?;
    assert_eq!(all.next_change()?, expected_change("add", "100", "idle+down"));
    assert_eq!(after.next_entry()?, (2, "add".to_owned(), "101".to_owned(), "idle+down".to_owned()));
    pool.done(&json!({ "event": "del", "number": "101" }))?;
    assert_eq!(live.next_entry()?, (4, "del".to_owned(), "101".to_owned(), "none".to_owned()));

    // Under many events, watchers start, stop and resume.
    let (first, seen) = std::thread::scope(|scope| -> Result<_> {
        let work = scope.spawn(|| -> Result<()> {
            for _ in 0..ROUNDS {
                let (number, ticket) = pool.call()?;
                pool.done(&json!({ "event": "hangup", "number": number, "ticket": ticket }))?;
            }
            Ok(())
        });
        let mut seen = Vec::new();
        let end = 5 + 2 * ROUNDS as u64;
        let mut last = 4;
        let mut size = 1;
        while last + 1 < end {
            let mut watcher = pool.watch("", Some(last))?;
            for _ in 0..size {
                if last + 1 < end {
                    let (id, event, _, _) = watcher.next_entry()?;
                    seen.push((id, event));
                    last = id;
                }
            }
            size += 7;
        }
        work.join().map_err(|_| anyhow::anyhow!("panicked"))??;
        Ok((5, seen))
    })?;
    let expected: Vec<(u64, String)> = (first..)
        .zip((0..2 * ROUNDS).map(|turn| if turn % 2 == 0 { "call" } else { "hangup" }.to_owned()))
        .collect();
    assert_eq!(seen, expected);
    for (id, event) in &expected {
        let received = live.next_entry()?;
        assert_eq!((received.0, &received.1), (*id, event), "one that began before and read all the while");
    }

    // A new pool with the same name has a new history.
    assert_eq!(ask(&appliance, "DELETE", &format!("{}?with-numbers=1", pool.path), &Value::Null)?.0, 204);
    let received = live.next_event()?.context("no word of the end")?;
    assert_eq!((received.kind.as_str(), received.id), ("removed", None));
    assert!(live.next_event()?.is_none(), "the stream ends with its pool");
    pool.configure(&Value::Null)?;
    let mut anew = pool.watch("", None)?;
    pool.fill(&["7"])?;
    assert_eq!(anew.next_entry()?.0, 0);

    // A stop ends the streams, and does not wait for clients that do not read.
    let idle: Vec<EventStream> = (0..20).map(|_| pool.watch("?from=0", None)).collect::<Result<_>>()?;
    let (status, _) = appliance.stop()?;
    assert!(status.success());
    assert_eq!(anew.next_entry()?.1, "reg");
    assert!(anew.next_event()?.is_none());
    drop(idle);
    Ok(())
}

#[test]
fn leases_and_quarantine_expire() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "timed");
    pool.configure(&json!({ "strategy": "random", "quarantine-ms": 50 }))?;
    pool.fill(&["100"])?;
    let mut watch = pool.watch("", None)?;
    let given = pool.done(&json!({ "event": "call", "lease-ms": 100 }))?;
    assert_eq!(watch.next_change()?, expected_change("call", "100", "busy+up"));
    assert_eq!(watch.next_change()?, expected_change("lapse", "100", "idle+up"));
    assert_eq!(watch.next_change()?, expected_change("rested", "100", "idle+up"));
    let late = json!({ "event": "hangup", "number": "100", "ticket": given["ticket"] });
    assert_eq!(pool.refused(&late)?["reason"], "wrong-state");
    let (_, ticket) = pool.call()?;
    assert_eq!(watch.next_change()?, expected_change("call", "100", "busy+up"));
    assert_eq!(pool.refused(&late)?["reason"], "other-ticket", "another caller has it now");
    // A lease that starts later; one of a number that is down ends as well.
    pool.done(&json!({ "event": "unreg", "number": "100" }))?;
    assert_eq!(watch.next_change()?, expected_change("unreg", "100", "busy+down"));
    pool.done(&json!({ "event": "renew", "number": "100", "ticket": ticket, "lease-ms": 1 }))?;
    assert_eq!(watch.next_change()?, expected_change("renew", "100", "busy+down"));
    assert_eq!(watch.next_change()?, expected_change("lapse", "100", "idle+down"));
    let shown = pool.get("")?;
    assert_eq!(shown["lapsed"], 2, "{shown}");
    assert_eq!(pool.number("100")?["lapsed"], 2);
    Ok(())
}

#[test]
fn leases_survive_restarts() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut appliance = config(&fixture)?.start()?;
    let pool = Pool::new(&appliance, "kept");
    pool.configure(&json!({ "strategy": "nearest", "quarantine-ms": 3_600_000 }))?;
    pool.fill(&["100", "101", "102", "103"])?;
    pool.done(&json!({ "event": "add", "number": "104", "weight": 9 }))?;
    let held =
        json!({ "event": "call", "number": "100", "holder": "crm", "reason": "r", "lease-ms": 3_600_000 });
    pool.done(&held)?;
    pool.done(&json!({ "event": "call", "number": "101" }))?;
    pool.done(&json!({ "event": "unreg", "number": "101" }))?;
    pool.done(&json!({ "event": "call", "number": "102" }))?;
    pool.done(&json!({ "event": "hangup", "number": "102" }))?;
    for turn in 0..4 {
        let pool = Pool::new(&appliance, "kept");
        // State that a restart must not change, and ends of timers.
        let look = |pool: &Pool<'_>| -> Result<(Value, Vec<u64>)> {
            let mut numbers = pool.get("/numbers?limit=1000")?["numbers"].clone();
            let numbers = numbers.as_array_mut().context("no numbers")?;
            numbers.sort_by_key(|number| number["number"].to_string());
            let mut ends = Vec::new();
            for number in numbers.iter_mut().filter_map(Value::as_object_mut) {
                number.retain(|name, _| !name.ends_with("-left-ms"));
                for end in ["lease-ends", "rests-until"] {
                    ends.extend(number.remove(end).and_then(|end| end.as_u64()));
                }
            }
            let shown = pool.get("")?;
            let kept = json!([numbers, shown["settings"], shown["entries"], pool.get("/history")?]);
            Ok((kept, ends))
        };
        let (before, ends) = look(&pool)?;
        let config = if turn % 2 == 0 { appliance.kill()? } else { appliance.stop()?.1 };
        appliance = config.start()?;
        let pool = Pool::new(&appliance, "kept");
        let (after, later) = look(&pool)?;
        assert_eq!(after, before, "turn {turn}");
        assert_eq!((ends.len(), later.len()), (2, 2));
        // Remaining times are computed with another clock, so they may differ slightly after a restart.
        assert!(
            ends.iter().zip(&later).all(|(one, other)| one.abs_diff(*other) < 10_000),
            "{ends:?} {later:?}"
        );
        // The journal continues, with new tickets.
        let mut watch = pool.watch("", None)?;
        let (number, ticket) = pool.call()?;
        assert_eq!(number, "103");
        pool.done(&json!({ "event": "del", "number": "103" }))?;
        pool.fill(&["103"])?;
        assert_eq!(watch.next_entry()?.0, before[2].as_u64().context("no entries")?);
        assert!(ticket > 0);
    }
    // A lease that ends while the daemon is stopped.
    let pool = Pool::new(&appliance, "kept");
    let given = pool.done(&json!({ "event": "call", "number": "103", "lease-ms": 1 }))?;
    let entries = pool.get("")?["entries"].as_u64().context("no entries")?;
    let appliance = appliance.kill()?.start()?;
    let pool = Pool::new(&appliance, "kept");
    let mut watch = pool.watch(&format!("?from={}", entries - 2), None)?;
    until("the lease to end", || Ok(watch.next_change()? == expected_change("lapse", "103", "idle+up")))?;
    let late = json!({ "event": "renew", "number": "103", "ticket": given["ticket"], "lease-ms": 1000 });
    assert_eq!(pool.refused(&late)?["reason"], "wrong-state");
    Ok(())
}

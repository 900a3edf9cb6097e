//! Tests of the events for the engine.

use super::*;
use crate::redis_options::RedisOptions;
use model::{LeaseTicket, PoolOutcome, PoolRefusal};
use ports::{EventSink, LinkRegistry};

struct DiscardEvents;

impl EventSink for DiscardEvents {
    fn push(&self, _: Vec<Event>) {}
}

fn handler() -> RequestHandler {
    let shared =
        Shared::new(RedisOptions::default(), Arc::new(DiscardEvents), Arc::new(LinkRegistry::new())).unwrap();
    let settings = shared.settings();
    let session = shared.session(&settings, "127.0.0.1:6379".parse().unwrap());
    RequestHandler::new(Arc::new(shared), settings, session, LinkId(1))
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\r\n").into_bytes()).collect()
}

/// Pool, request and token of each event.
fn pool_requests(handler: &mut RequestHandler, requests: &[&str]) -> Vec<(String, PoolRequest, u64)> {
    handler.session.receive(&lines(requests));
    assert!(handler.collect_events().is_none());
    let event = |event| match event {
        Event::Pool { pool, request, by, reply } => {
            assert_eq!((&*by, reply.link), ("redis", LinkId(1)));
            (pool.to_string(), request, reply.token)
        }
        other => panic!("{other:?}"),
    };
    handler.take_events().into_iter().map(event).collect()
}

fn take_output(handler: &mut RequestHandler) -> String {
    let output = String::from_utf8(handler.session.output().to_vec()).unwrap();
    handler.session.mark_written(output.len());
    output
}

fn number(text: &str) -> PoolNumber {
    text.parse().unwrap()
}

#[test]
fn consecutive_operations_on_one_pool_are_one_event() {
    let mut handler = handler();
    let requests = [
        "POOL.CALL p",
        "POOL.HANGUP p 1",
        "POOL.REG {p} 1",
        "POOL.REG q 2",
        "POOL.CALL p",
        "PING",
        "POOL.CALL p",
    ];
    let events = pool_requests(&mut handler, &requests);
    let shape: Vec<_> = events
        .iter()
        .map(|(pool, request, token)| match request {
            PoolRequest::Operations(operations) => (pool.as_str(), operations.len(), *token),
            PoolRequest::Operation(_) => (pool.as_str(), 1, *token),
            other => panic!("{other:?}"),
        })
        .collect();
    // A reply by the session itself has its own position among the replies.
    assert_eq!(shape, [("p", 3, 0), ("q", 1, 1), ("p", 1, 2), ("p", 1, 3)]);

    // The client receives its answers in the order of its requests.
    let done = PoolOutcome::Done(None);
    let given = PoolOutcome::Acquired { number: number("1"), ticket: LeaseTicket(1) };
    let empty = PoolOutcome::Refused(PoolRefusal::Empty);
    handler.handle_answer(3, EngineAnswer::Pool(PoolAnswer::Outcome(empty)));
    handler.handle_answer(1, EngineAnswer::Pool(PoolAnswer::Outcome(done)));
    assert_eq!(take_output(&mut handler), "");
    handler.handle_answer(0, EngineAnswer::Pool(PoolAnswer::Outcomes(vec![given, done, done])));
    assert_eq!(take_output(&mut handler), "$1\r\n1\r\n:1\r\n:1\r\n:1\r\n");
    assert!(!handler.is_idle());
    handler.handle_answer(2, EngineAnswer::Pool(PoolAnswer::Outcome(empty)));
    assert_eq!(
        take_output(&mut handler),
        "-NONUMBER the pool has no numbers\r\n+PONG\r\n-NONUMBER the pool has no numbers\r\n"
    );
    assert!(handler.is_idle());
    // Tokens continue.
    assert_eq!(pool_requests(&mut handler, &["POOL.CALL p"])[0].2, 4);
}

#[test]
fn unexpected_answers_are_ignored() {
    let mut handler = handler();
    pool_requests(&mut handler, &["POOL.CALL p", "POOL.CALL q"]);
    for token in [1, 1, 2, u64::MAX] {
        handler.handle_answer(token, EngineAnswer::Pool(PoolAnswer::Outcome(PoolOutcome::Done(None))));
    }
    assert_eq!(take_output(&mut handler), "");
    handler.handle_answer(0, EngineAnswer::Done);
    assert_eq!(take_output(&mut handler), "-ERR internal error: unexpected answer\r\n:1\r\n");
    assert!(handler.is_idle());
}

#[test]
fn requests_wait_behind_a_multi_step_request() {
    let mut handler = handler();
    let events = pool_requests(&mut handler, &["POOL.REG p 1", "HGETALL {p}:numstate", "POOL.DEL p 1"]);
    assert_eq!(events.len(), 2);
    handler.handle_answer(0, EngineAnswer::Pool(PoolAnswer::Outcome(PoolOutcome::Done(None))));
    assert!(pool_requests(&mut handler, &[]).is_empty());
    let part = |next| EngineAnswer::Pool(PoolAnswer::Numbers { numbers: Vec::new(), next });
    handler.handle_answer(1, part(Some(7)));
    let next = pool_requests(&mut handler, &["POOL.ADD p 1"]);
    assert!(matches!(next.as_slice(), [(_, PoolRequest::Numbers { from: 7, .. }, 2)]), "{next:?}");
    handler.handle_answer(2, part(None));
    // Later requests are batched with the waiting ones.
    let next = pool_requests(&mut handler, &[]);
    assert!(
        matches!(next.as_slice(), [(_, PoolRequest::Operations(both), 3)] if both.len() == 2),
        "{next:?}"
    );
}

#[test]
fn pool_create_writes_only_changed_settings() {
    let mut handler = handler();
    let summary = |settings| {
        let summary = model::PoolSummary {
            id: model::PoolId(1),
            name: "p".parse().unwrap(),
            settings,
            counts: model::PoolCounts::default(),
            ready: 0,
            next: None,
            entries: 0,
            acquired: 0,
            none: 0,
            lapsed: 0,
        };
        EngineAnswer::Pool(PoolAnswer::Pool(Box::new(summary)))
    };
    let known = PoolSettings { strategy: Strategy::Sticky, quarantine: Duration::from_secs(1) };
    let events = pool_requests(&mut handler, &["POOL.CREATE p QUARANTINE 1000"]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Show, 0)]), "{events:?}");
    handler.handle_answer(0, summary(known));
    assert_eq!((pool_requests(&mut handler, &[]).len(), take_output(&mut handler).as_str()), (0, "+OK\r\n"));
    pool_requests(&mut handler, &["POOL.CREATE p QUARANTINE 2000", "POOL.CALL p"]);
    handler.handle_answer(1, summary(known));
    let events = pool_requests(&mut handler, &[]);
    let wanted = PoolSettings { quarantine: Duration::from_secs(2), ..known };
    let [(_, PoolRequest::Configure(settings), 2), (_, PoolRequest::Operation(_), 3)] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!(*settings, wanted);
}

/// A pool of 50,000 numbers is read in three pages; later requests wait.
#[test]
fn long_list_is_read_in_pages() {
    let mut handler = handler();
    let events =
        pool_requests(&mut handler, &["LRANGE {p}:idle:up 0 -1", "LRANGE {p}:idle:up -3 -2", "POOL.CALL p"]);
    let part = PAGE_SIZE as usize;
    assert!(
        matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 0, most }, 0)] if *most == part),
        "{events:?}"
    );
    let numbers =
        |from: usize, count: usize| (from..from + count).map(|n| number(&(n + 1).to_string())).collect();
    let answer =
        |from, count| EngineAnswer::Pool(PoolAnswer::Idle { numbers: numbers(from, count), total: 50_000 });
    for (token, from, next) in [(0, 0, part), (1, part, 10_000)] {
        handler.handle_answer(token, answer(from, part));
        assert_eq!(take_output(&mut handler), "");
        let events = pool_requests(&mut handler, &[]);
        let expected = PoolRequest::Idle { skip: from + part, most: next };
        assert!(matches!(events.as_slice(), [(_, request, _)] if *request == expected), "{events:?}");
    }
    handler.handle_answer(2, answer(2 * part, 10_000));
    assert!(take_output(&mut handler).starts_with("*50000\r\n$1\r\n1\r\n"));
    // If the start counts from the end, the first query returns the total only.
    let events = pool_requests(&mut handler, &[]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 0, most: 0 }, 3)]), "{events:?}");
    handler.handle_answer(3, answer(0, 0));
    let events = pool_requests(&mut handler, &[]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 49_997, most: 2 }, 4)]), "{events:?}");
    handler.handle_answer(4, answer(49_997, 2));
    assert_eq!(take_output(&mut handler), "*2\r\n$5\r\n49998\r\n$5\r\n49999\r\n");
    assert!(matches!(pool_requests(&mut handler, &[]).as_slice(), [(_, PoolRequest::Operation(_), 5)]));
}

#[test]
fn unread_output_delays_further_lists() {
    let mut handler = handler();
    let list = "LRANGE {p}:idle:up 0 99999";
    assert_eq!(pool_requests(&mut handler, &[list, list, "POOL.CALL p"]).len(), 1);
    let numbers = vec![number("123456789012345"); 100_000];
    handler.handle_answer(0, EngineAnswer::Pool(PoolAnswer::Idle { numbers, total: 100_000 }));
    assert!(pool_requests(&mut handler, &[]).is_empty(), "the answer before is not read");
    assert!(take_output(&mut handler).len() > MAX_UNREAD_OCTETS);
    assert!(matches!(
        pool_requests(&mut handler, &[]).as_slice(),
        [(_, PoolRequest::Idle { skip: 0, .. }, 1)]
    ));
}

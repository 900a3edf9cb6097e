//! What is handed to the core, event by event.

use super::*;
use crate::options::DoorOptions;
use doors::{Core, Hub};
use model::{PoolOutcome, PoolRefusal, PoolTicket};

struct Nobody;

impl Core for Nobody {
    fn push(&self, _: Vec<Event>) {}
}

fn dialogue() -> Dialogue {
    let shared =
        Shared::new(DoorOptions::default(), Arc::default(), Arc::new(Nobody), Arc::new(Hub::new())).unwrap();
    let session = shared.session("127.0.0.1:6379".parse().unwrap());
    Dialogue::new(Arc::new(shared), session, LinkId(1))
}

fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\r\n").into_bytes()).collect()
}

/// What is asked of which pool, and its token.
fn asked(dialogue: &mut Dialogue, heap: &[&str]) -> Vec<(String, PoolRequest, u64)> {
    dialogue.session.receive(&lines(heap));
    assert!(dialogue.collect().is_none());
    let event = |event| match event {
        Event::Pool { pool, request, by, reply } => {
            assert_eq!((&*by, reply.link), ("redis", LinkId(1)));
            (pool.to_string(), request, reply.token)
        }
        other => panic!("{other:?}"),
    };
    dialogue.events().into_iter().map(event).collect()
}

fn told(dialogue: &mut Dialogue) -> String {
    let output = String::from_utf8(dialogue.session.output().to_vec()).unwrap();
    dialogue.session.written(output.len());
    output
}

fn number(text: &str) -> PoolNumber {
    text.parse().unwrap()
}

#[test]
fn operations_on_one_pool_that_follow_each_other_are_one_event() {
    let mut dialogue = dialogue();
    let heap = [
        "POOL.CALL p",
        "POOL.HANGUP p 1",
        "POOL.REG {p} 1",
        "POOL.REG q 2",
        "POOL.CALL p",
        "PING",
        "POOL.CALL p",
    ];
    let events = asked(&mut dialogue, &heap);
    let shape: Vec<_> = events
        .iter()
        .map(|(pool, request, token)| match request {
            PoolRequest::DoAll(operations) => (pool.as_str(), operations.len(), *token),
            PoolRequest::Do(_) => (pool.as_str(), 1, *token),
            other => panic!("{other:?}"),
        })
        .collect();
    // What the session answers by itself has a place of its own among the answers.
    assert_eq!(shape, [("p", 3, 0), ("q", 1, 1), ("p", 1, 2), ("p", 1, 3)]);

    // Whatever order the engine answers in, the client has its own.
    let done = PoolOutcome::Done(None);
    let given = PoolOutcome::Given { number: number("1"), ticket: PoolTicket(1) };
    let empty = PoolOutcome::Refused(PoolRefusal::Empty);
    dialogue.answered(3, Answer::Pool(PoolAnswer::Outcome(empty)));
    dialogue.answered(1, Answer::Pool(PoolAnswer::Outcome(done)));
    assert_eq!(told(&mut dialogue), "");
    dialogue.answered(0, Answer::Pool(PoolAnswer::Outcomes(vec![given, done, done])));
    assert_eq!(told(&mut dialogue), "$1\r\n1\r\n:1\r\n:1\r\n:1\r\n");
    assert!(!dialogue.is_idle());
    dialogue.answered(2, Answer::Pool(PoolAnswer::Outcome(empty)));
    assert_eq!(
        told(&mut dialogue),
        "-NONUMBER the pool has no numbers\r\n+PONG\r\n-NONUMBER the pool has no numbers\r\n"
    );
    assert!(dialogue.is_idle());
    // Tokens go on where they were.
    assert_eq!(asked(&mut dialogue, &["POOL.CALL p"])[0].2, 4);
}

#[test]
fn an_answer_that_nobody_waits_for_is_passed_over() {
    let mut dialogue = dialogue();
    asked(&mut dialogue, &["POOL.CALL p", "POOL.CALL q"]);
    for token in [1, 1, 2, u64::MAX] {
        dialogue.answered(token, Answer::Pool(PoolAnswer::Outcome(PoolOutcome::Done(None))));
    }
    assert_eq!(told(&mut dialogue), "");
    dialogue.answered(0, Answer::Done);
    assert_eq!(told(&mut dialogue), "-ERR internal error: an answer to something else\r\n:1\r\n");
    assert!(dialogue.is_idle());
}

#[test]
fn what_is_behind_a_request_of_several_steps_waits_for_its_last() {
    let mut dialogue = dialogue();
    let events = asked(&mut dialogue, &["POOL.REG p 1", "HGETALL {p}:numstate", "POOL.DEL p 1"]);
    assert_eq!(events.len(), 2);
    dialogue.answered(0, Answer::Pool(PoolAnswer::Outcome(PoolOutcome::Done(None))));
    assert!(asked(&mut dialogue, &[]).is_empty());
    let part = |next| Answer::Pool(PoolAnswer::Numbers { numbers: Vec::new(), next });
    dialogue.answered(1, part(Some(7)));
    let next = asked(&mut dialogue, &["POOL.ADD p 1"]);
    assert!(matches!(next.as_slice(), [(_, PoolRequest::Numbers { from: 7, .. }, 2)]), "{next:?}");
    dialogue.answered(2, part(None));
    // What came meanwhile goes with what came before.
    let next = asked(&mut dialogue, &[]);
    assert!(matches!(next.as_slice(), [(_, PoolRequest::DoAll(both), 3)] if both.len() == 2), "{next:?}");
}

#[test]
fn a_pool_is_only_written_where_something_is_to_change() {
    let mut dialogue = dialogue();
    let summary = |settings| {
        let summary = model::PoolSummary {
            id: model::PoolId(1),
            name: "p".parse().unwrap(),
            settings,
            counts: model::PoolCounts::default(),
            ready: 0,
            next: None,
            entries: 0,
            given: 0,
            none: 0,
            lapsed: 0,
        };
        Answer::Pool(PoolAnswer::Pool(Box::new(summary)))
    };
    let known = PoolSettings { strategy: Strategy::Sticky, quarantine: Duration::from_secs(1) };
    let events = asked(&mut dialogue, &["POOL.CREATE p QUARANTINE 1000"]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Show, 0)]), "{events:?}");
    dialogue.answered(0, summary(known));
    assert_eq!((asked(&mut dialogue, &[]).len(), told(&mut dialogue).as_str()), (0, "+OK\r\n"));
    asked(&mut dialogue, &["POOL.CREATE p QUARANTINE 2000", "POOL.CALL p"]);
    dialogue.answered(1, summary(known));
    let events = asked(&mut dialogue, &[]);
    let wanted = PoolSettings { quarantine: Duration::from_secs(2), ..known };
    let [(_, PoolRequest::Configure(settings), 2), (_, PoolRequest::Do(_), 3)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(*settings, wanted);
}

/// A pool of 50,000 is read in three parts, and nothing else of the connection meanwhile.
#[test]
fn a_long_list_is_read_in_parts_and_one_at_a_time() {
    let mut dialogue = dialogue();
    let events =
        asked(&mut dialogue, &["LRANGE {p}:idle:up 0 -1", "LRANGE {p}:idle:up -3 -2", "POOL.CALL p"]);
    let part = PART as usize;
    assert!(
        matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 0, most }, 0)] if *most == part),
        "{events:?}"
    );
    let numbers =
        |from: usize, count: usize| (from..from + count).map(|n| number(&(n + 1).to_string())).collect();
    let answer =
        |from, count| Answer::Pool(PoolAnswer::Idle { numbers: numbers(from, count), total: 50_000 });
    for (token, from, next) in [(0, 0, part), (1, part, 10_000)] {
        dialogue.answered(token, answer(from, part));
        assert_eq!(told(&mut dialogue), "");
        let events = asked(&mut dialogue, &[]);
        let expected = PoolRequest::Idle { skip: from + part, most: next };
        assert!(matches!(events.as_slice(), [(_, request, _)] if *request == expected), "{events:?}");
    }
    dialogue.answered(2, answer(2 * part, 10_000));
    assert!(told(&mut dialogue).starts_with("*50000\r\n$1\r\n1\r\n"));
    // Where the beginning is counted from the last, the first question is how many there are.
    let events = asked(&mut dialogue, &[]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 0, most: 0 }, 3)]), "{events:?}");
    dialogue.answered(3, answer(0, 0));
    let events = asked(&mut dialogue, &[]);
    assert!(matches!(events.as_slice(), [(_, PoolRequest::Idle { skip: 49_997, most: 2 }, 4)]), "{events:?}");
    dialogue.answered(4, answer(49_997, 2));
    assert_eq!(told(&mut dialogue), "*2\r\n$5\r\n49998\r\n$5\r\n49999\r\n");
    assert!(matches!(asked(&mut dialogue, &[]).as_slice(), [(_, PoolRequest::Do(_), 5)]));
}

#[test]
fn a_client_that_reads_nothing_is_not_read_lists_for() {
    let mut dialogue = dialogue();
    let list = "LRANGE {p}:idle:up 0 99999";
    assert_eq!(asked(&mut dialogue, &[list, list, "POOL.CALL p"]).len(), 1);
    let numbers = vec![number("123456789012345"); 100_000];
    dialogue.answered(0, Answer::Pool(PoolAnswer::Idle { numbers, total: 100_000 }));
    assert!(asked(&mut dialogue, &[]).is_empty(), "the answer before is not read");
    assert!(told(&mut dialogue).len() > UNREAD);
    assert!(matches!(asked(&mut dialogue, &[]).as_slice(), [(_, PoolRequest::Idle { skip: 0, .. }, 1)]));
}

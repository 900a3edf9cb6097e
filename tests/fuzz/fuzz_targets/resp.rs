//! The Redis protocol: one connection, its octets in pieces, its owner answering in any order. The first octets choose the
//! limits and the pieces.
#![no_main]

use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use model::{NumberState, PoolNumber, PoolOutcome, PoolRefusal, PoolTicket};
use resp::{Event, Limits, Options, Reply, Scripts, Session, Sum};

#[derive(Debug, Arbitrary)]
enum Step<'a> {
    Receive(&'a [u8]),
    /// A request with right framing, so that what lies behind the gate is reached.
    Words(Vec<&'a [u8]>),
    Answer {
        which: u8,
        outcome: u8,
    },
    Judge(bool),
    /// So many of the octets that wait are written.
    Written(u16),
}

fn reply(outcome: u8) -> Reply {
    let number = PoolNumber::from_octets(0x4560_0000_0000_0000_u64.to_be_bytes()).unwrap();
    match outcome % 7 {
        0 => Reply::Outcome(PoolOutcome::Done(None)),
        1 => Reply::Outcome(PoolOutcome::Given { number, ticket: PoolTicket(u64::MAX) }),
        2 => Reply::Outcome(PoolOutcome::Refused(PoolRefusal::Full)),
        3 => Reply::Outcomes(vec![PoolOutcome::Done(None), PoolOutcome::Refused(PoolRefusal::Empty)]),
        4 => Reply::Map(vec![(Reply::Null, Reply::Prose("x".into()))]),
        5 => Reply::States(vec![(number, NumberState::IdleUp)]),
        _ => Reply::Array(vec![Reply::Integer(-1), Reply::Numbers(vec![number])]),
    }
}

fuzz_target!(|octets: &[u8]| {
    let mut input = Unstructured::new(octets);
    let Ok((accounts, any_loaded, pipelined)) = <(bool, bool, u8)>::arbitrary(&mut input) else { return };
    let limits = Limits { octets: 2048, elements: 64, pipelined: usize::from(pipelined), unsent: 1024 };
    let scripts = Arc::new(Scripts::new([Sum::of(b"pool")], any_loaded));
    let options = Options { limits, accounts, scripts, plain_replies: false, version: "7.2.0".into() };
    let mut session = Session::new(Arc::new(options), 1);
    let (mut open, mut judging) = (Vec::new(), None);
    while let Ok(step) = Step::arbitrary(&mut input) {
        match step {
            Step::Receive(octets) => session.receive(octets),
            Step::Words(words) => {
                session.receive(format!("*{}\r\n", words.len()).as_bytes());
                for word in words {
                    session.receive(format!("${}\r\n", word.len()).as_bytes());
                    session.receive(word);
                    session.receive(b"\r\n");
                }
            }
            Step::Answer { which, outcome } if !open.is_empty() => {
                let at = usize::from(which) % open.len();
                session.answer(open.swap_remove(at), &reply(outcome));
            }
            Step::Judge(right) => {
                if let Some(ticket) = judging.take() {
                    session.judged(ticket, right);
                }
            }
            Step::Written(octets) => session.written(usize::from(octets).min(session.output().len())),
            Step::Answer { .. } => {}
        }
        while let Some(event) = session.poll_event() {
            match event {
                Event::Request { ticket, .. } => open.push(ticket),
                Event::Authenticate { ticket, .. } => judging = Some(ticket),
                Event::Forgotten => {}
            }
        }
        // A transaction comes as one.
        assert!(open.len() <= 2 * limits.pipelined.max(1));
        if input.is_empty() {
            break;
        }
    }
});

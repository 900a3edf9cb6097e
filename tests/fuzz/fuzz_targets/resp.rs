//! The Redis protocol: one connection whose octets come in pieces and whose owner answers in any order. The first octets select the
//! limits and the pieces.
#![no_main]

use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use model::{LeaseTicket, NumberState, PoolNumber, PoolOutcome, PoolRefusal};
use resp::{Event, RespLimits, RespOptions, RespReply, ScriptSha1, Scripts, Session};

#[derive(Debug, Arbitrary)]
enum Step<'a> {
    Receive(&'a [u8]),
    /// A well-formed request, so that the code after authentication is reached.
    Words(Vec<&'a [u8]>),
    Answer {
        which: u8,
        outcome: u8,
    },
    Judge(bool),
    /// This many pending octets are written.
    Written(u16),
}

fn reply(outcome: u8) -> RespReply {
    let number = PoolNumber::from_octets(0x4560_0000_0000_0000_u64.to_be_bytes()).unwrap();
    match outcome % 7 {
        0 => RespReply::Outcome(PoolOutcome::Done(None)),
        1 => RespReply::Outcome(PoolOutcome::Acquired { number, ticket: LeaseTicket(u64::MAX) }),
        2 => RespReply::Outcome(PoolOutcome::Refused(PoolRefusal::Full)),
        3 => RespReply::Outcomes(vec![PoolOutcome::Done(None), PoolOutcome::Refused(PoolRefusal::Empty)]),
        4 => RespReply::Map(vec![(RespReply::Null, RespReply::Verbatim("x".into()))]),
        5 => RespReply::States(vec![(number, NumberState::IdleUp)]),
        _ => RespReply::Array(vec![RespReply::Integer(-1), RespReply::Numbers(vec![number])]),
    }
}

fuzz_target!(|octets: &[u8]| {
    let mut input = Unstructured::new(octets);
    let Ok((accounts, any_loaded, pipelined)) = <(bool, bool, u8)>::arbitrary(&mut input) else { return };
    let limits =
        RespLimits { octets: 2048, elements: 64, pipelined: usize::from(pipelined), output_buffer: 1024 };
    let scripts = Arc::new(Scripts::new([ScriptSha1::of(b"pool")], any_loaded));
    let options = RespOptions { limits, accounts, scripts, plain_replies: false, version: "7.2.0".into() };
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
                    session.finish_login(ticket, right);
                }
            }
            Step::Written(octets) => session.mark_written(usize::from(octets).min(session.output().len())),
            Step::Answer { .. } => {}
        }
        while let Some(event) = session.poll_event() {
            match event {
                Event::Request { ticket, .. } => open.push(ticket),
                Event::Authenticate { ticket, .. } => judging = Some(ticket),
                Event::Reset => {}
            }
        }
        // A transaction is delivered as one request.
        assert!(open.len() <= 2 * limits.pipelined.max(1));
        if input.is_empty() {
            break;
        }
    }
});

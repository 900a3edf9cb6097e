//! A test guest: a router built for contract version 0.2.0. It forwards everything to the peer in its document, with a number
//! of the pool "shared" as the sender, and notes how often it was called.

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/previous/0.2", world: "router" });
}

use bindings::exports::switchyard::hooks::routing::{Decision, Guest, Leg, Message, Verdict};
use bindings::switchyard::hooks::numbers::{SenderRequest, WithoutNumber, take_sender};
use bindings::switchyard::hooks::{clock, counters, tables};
use std::cell::RefCell;

struct Router;

thread_local! {
    static PEER: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Guest for Router {
    fn configure(document: String) -> Result<(), String> {
        tables::define_prefixes("everything", &[tables::Row { key: String::new(), value: 1 }])?;
        PEER.set(document);
        Ok(())
    }

    fn route(message: Message) -> Decision {
        let request = SenderRequest {
            pool: "shared".to_owned(),
            user: None,
            holder: None,
            reason: None,
            lease: None,
            otherwise: WithoutNumber::KeepSender,
        };
        let taken = take_sender(&request);
        let asked = counters::add("asked", &message.origin, 1, 60_000);
        let peer = PEER.with_borrow(Clone::clone);
        let leg =
            Leg { peer, rank: 0, weight: 1, cost: 0, longest_wait: None, source: None, destination: None };
        let note = format!("{asked} of {} parts at {}, {taken:?}", message.parts, clock::now());
        Decision { verdict: Verdict::Forward(vec![leg]), note: Some(note) }
    }
}

bindings::export!(Router with_types_in bindings);

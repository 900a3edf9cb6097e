//! A test guest: a router built for contract version 0.1.0. It forwards everything to the peer in its
//! document, with a note, and refuses a document without a name.

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/previous/0.1", world: "router" });
}

use bindings::exports::switchyard::hooks::routing::Guest;
use bindings::switchyard::hooks::tables;
use bindings::switchyard::hooks::types::{Decision, Leg, Message, Verdict};
use std::cell::RefCell;

struct OldRouter;

thread_local! {
    static PEER: RefCell<(String, u32)> = const { RefCell::new((String::new(), 0)) };
}

impl Guest for OldRouter {
    fn configure(document: String) -> Result<(), String> {
        if document.is_empty() {
            return Err("the document is empty; it must be the name of a peer".to_owned());
        }
        let row = tables::Row { key: String::new(), value: 1 };
        let table = tables::define_prefixes("everything", &[row])?;
        PEER.set((document, table));
        Ok(())
    }

    fn route(_message: Message) -> Decision {
        let (peer, table) = PEER.with_borrow(Clone::clone);
        if tables::match_destination(table, u32::MAX).is_none() {
            return Decision { verdict: Verdict::Pass, note: None };
        }
        let leg =
            Leg { peer, rank: 0, weight: 1, cost: 0, longest_wait: None, source: None, destination: None };
        Decision { verdict: Verdict::Forward(vec![leg]), note: Some("by an old router".to_owned()) }
    }
}

bindings::export!(OldRouter with_types_in bindings);

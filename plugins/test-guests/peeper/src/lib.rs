//! A test guest: forwards everything to the peer in its document, and notes the answers of its host calls, so that a
//! test can compare them with the record.

use switchyard_sdk::{Decision, Message, Router, clock, counters, forward, leg, peers};

/// The window of its counter, in milliseconds.
const WINDOW: u64 = 60_000;

struct Guest {
    peer: String,
}

impl Router for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        if document.is_empty() {
            Err("the document is empty".to_owned())
        } else {
            Ok(Self { peer: document.to_owned() })
        }
    }

    fn route(&self, message: &Message) -> Decision {
        let (links, queued) = match peers::state(&self.peer) {
            Some(state) => (state.links.to_string(), state.queued.to_string()),
            None => ("none".to_owned(), "none".to_owned()),
        };
        let before = counters::sum("seen", &message.destination.value, WINDOW);
        let after = counters::add("seen", &message.destination.value, 1, WINDOW);
        let now = clock::now();
        forward(vec![leg(&self.peer)])
            .because(format!("links {links}, queued {queued}, seen {before} then {after}, at {now}"))
    }
}

switchyard_sdk::export_router!(Guest);

//! A test guest: names an unknown peer for messages from "bad" or to numbers that begin with 666.

use switchyard_sdk::{Decision, Message, Router, forward, leg};

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
        if message.source.value == "bad" || message.destination.value.starts_with("666") {
            return forward(vec![leg("no-such-peer")]);
        }
        forward(vec![leg(&self.peer)])
    }
}

switchyard_sdk::export_router!(Guest);

//! A test guest: its note is invalid UTF-8 for numbers that begin with 666, and a peer's name is for messages from
//! "bad".

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
        let mut leg = leg(&self.peer);
        if message.source.value == "bad" {
            leg.peer = test_mood::bad_utf8();
        }
        let decision = forward(vec![leg]);
        match message.destination.value.starts_with("666") {
            true => decision.because(test_mood::bad_utf8()),
            false => decision,
        }
    }
}

switchyard_sdk::export_router!(Guest);

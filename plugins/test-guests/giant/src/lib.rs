//! A test guest: returns a giant note for numbers that begin with 666, and a hundred thousand legs for messages from
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
        if message.source.value == "bad" {
            return forward(vec![leg(&self.peer); 100_000]);
        }
        let decision = forward(vec![leg(&self.peer)]);
        match message.destination.value.starts_with("666") {
            true => decision.because(test_mood::giant()),
            false => decision,
        }
    }
}

switchyard_sdk::export_router!(Guest);

//! A test guest: exhausts the stack by recursion on messages from "bad" or to numbers that begin with 666.

use switchyard_sdk::{Decision, Message, Router, forward, leg};
use test_mood::{is_bad, recurse};

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
        if is_bad(&message.source.value, &message.destination.value) {
            std::hint::black_box(recurse(0));
        }
        forward(vec![leg(&self.peer)])
    }
}

switchyard_sdk::export_router!(Guest);

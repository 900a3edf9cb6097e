//! A test guest: exhausts the memory on messages from "bad" or to numbers that begin with 666.

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
            let mut hog: Vec<Vec<u8>> = Vec::new();
            loop {
                hog.push(std::hint::black_box(vec![1; 1 << 20]));
            }
        }
        forward(vec![leg(&self.peer)])
    }
}

switchyard_sdk::export_router!(Guest);

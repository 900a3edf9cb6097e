//! A test guest: exhausts the stack by recursion in `configure`, unless the document is "shallow".

use switchyard_sdk::{Decision, Message, Router, pass};

struct Guest;

impl Router for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        if document != "shallow" {
            std::hint::black_box(test_mood::recurse(0));
        }
        Ok(Self)
    }

    fn route(&self, _message: &Message) -> Decision {
        pass()
    }
}

switchyard_sdk::export_router!(Guest);

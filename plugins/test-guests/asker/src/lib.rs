//! A test guest: makes the host calls in its document, notes the answers, and passes or forwards. `pass north 3`
//! queries north's state and the time, counts three times, and passes; `to north 3` forwards to north.

use switchyard_sdk::{Decision, Message, Router, clock, counters, forward, leg, pass, peers};

/// The window of its counter, in milliseconds.
const WINDOW: u64 = 60_000;

struct Guest {
    passes: bool,
    peer: String,
    times: u32,
}

impl Router for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let words: Vec<&str> = document.split_ascii_whitespace().collect();
        let [verdict @ ("pass" | "to"), peer, times] = words[..] else {
            return Err(format!("{document:?} is not like `pass north 3` or `to north 3`"));
        };
        let times = times.parse().map_err(|_| format!("{times:?} is not a number"))?;
        Ok(Self { passes: verdict == "pass", peer: peer.to_owned(), times })
    }

    fn route(&self, message: &Message) -> Decision {
        let queued = peers::state(&self.peer).map_or(0, |state| state.queued);
        let now = clock::now();
        let counted =
            (0..self.times).fold(0, |_, _| counters::add("asked", &message.destination.value, 1, WINDOW));
        let decision = if self.passes { pass() } else { forward(vec![leg(&self.peer)]) };
        decision.because(format!("{} queued {queued}, counted {counted}, at {now}", self.peer))
    }
}

switchyard_sdk::export_router!(Guest);

//! Tries the next leg when no DLR comes in time, or a DLR has one of some states; `policy.txt` is an example of its policy
//! document.

wit_bindgen::generate!({ path: "wit", world: "receipt" });

use exports::switchyard::hooks::receipts::{Decision, DlrState, Event, Guest, Message, Step, Submission};
use std::cell::RefCell;
use switchyard::hooks::fault;

#[derive(Default)]
struct Policy {
    /// Milliseconds without a DLR.
    wait: Option<u64>,
    /// The states, with their names.
    next_leg: Vec<(&'static str, DlrState)>,
}

const STATES: [(&str, DlrState); 6] = [
    ("delivered", DlrState::Delivered),
    ("expired", DlrState::Expired),
    ("deleted", DlrState::Deleted),
    ("undeliverable", DlrState::Undeliverable),
    ("unknown", DlrState::Unknown),
    ("rejected", DlrState::Rejected),
];

// The host never calls one instance from two threads at once.
thread_local! {
    static POLICY: RefCell<Policy> = RefCell::default();
}

struct Plugin;

impl Guest for Plugin {
    fn configure(document: String) -> Result<(), String> {
        // The host shows the message of a panic with the fault.
        std::panic::set_hook(Box::new(|panic| fault::report(&panic.to_string())));
        let policy = read(&document)?;
        POLICY.set(policy);
        Ok(())
    }

    fn decide(_message: Message, submission: Submission, event: Event) -> Decision {
        POLICY.with_borrow(|policy| decide(policy, &submission, &event))
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut policy = Policy::default();
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let understood = match words[..] {
            [] => true,
            [first, ..] if first.starts_with('#') => true,
            ["wait", seconds] => {
                let seconds = seconds.parse::<u32>().ok();
                seconds.map(|seconds| policy.wait = Some(u64::from(seconds) * 1000)).is_some()
            }
            ["next-leg", ref names @ ..] if !names.is_empty() => {
                let state = |name: &&str| STATES.into_iter().find(|(known, _)| known == name);
                let states: Option<Vec<_>> = names.iter().map(state).collect();
                states.map(|states| policy.next_leg = states).is_some()
            }
            _ => false,
        };
        if !understood {
            return Err(format!("line {number}: expected 'wait SECONDS' or 'next-leg STATE ...'"));
        }
    }
    Ok(policy)
}

fn decide(policy: &Policy, submission: &Submission, event: &Event) -> Decision {
    let next_leg = |note: String| Decision { step: Step::NextLeg, wait: None, note: Some(note) };
    let has_next = submission.leg + 1 < submission.legs;
    match event {
        Event::Accepted => Decision { step: Step::Accept, wait: policy.wait.filter(|_| has_next), note: None },
        Event::Timeout => next_leg(format!("no DLR from {}", submission.peer)),
        Event::Dlr(dlr) => match policy.next_leg.iter().find(|(_, state)| *state == dlr.state) {
            Some((name, _)) => next_leg((*name).to_owned()),
            None => Decision { step: Step::Accept, wait: None, note: None },
        },
    }
}

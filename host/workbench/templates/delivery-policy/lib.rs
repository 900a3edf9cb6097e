//! Retries after increasing waits, then tries the next leg; `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "delivery-policy" });

use exports::switchyard::hooks::delivery::{Advice, Attempt, ErrorClass, Guest, Message, NextStep, Step};
use std::cell::RefCell;
use switchyard::hooks::fault;

#[derive(Default)]
struct Policy {
    /// Milliseconds before each further attempt.
    waits: Vec<u64>,
    /// Pause of a peer that throttles, in milliseconds.
    pause: Option<u64>,
}

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

    fn next(_message: Message, attempt: Attempt) -> NextStep {
        POLICY.with_borrow(|policy| decide(policy, &attempt))
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut policy = Policy::default();
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let seconds = |words: &[&str]| -> Option<Vec<u64>> {
            words.iter().map(|word| word.parse::<u32>().ok().map(|seconds| u64::from(seconds) * 1000)).collect()
        };
        let understood = match words[..] {
            [] => true,
            [first, ..] if first.starts_with('#') => true,
            ["wait", ref rest @ ..] if !rest.is_empty() => {
                seconds(rest).map(|waits| policy.waits = waits).is_some()
            }
            ["pause", ref rest @ ..] if rest.len() == 1 => {
                seconds(rest).map(|pause| policy.pause = pause.first().copied()).is_some()
            }
            _ => false,
        };
        if !understood {
            return Err(format!("line {number}: expected 'wait SECONDS ...' or 'pause SECONDS'"));
        }
    }
    Ok(policy)
}

fn decide(policy: &Policy, attempt: &Attempt) -> NextStep {
    let note = Some(format!("attempt {}", attempt.number));
    if attempt.class == ErrorClass::Throttled {
        // The peer waits, not the message.
        let advice = policy.pause.map(|pause| Advice { pause: Some(pause), rate: None, window: None });
        return NextStep { step: Step::RetryAfter(0), advice, note };
    }
    let wait = policy.waits.get(usize::from(attempt.number).saturating_sub(1));
    let step = match wait {
        Some(&wait) if attempt.class != ErrorClass::Permanent => Step::RetryAfter(wait),
        _ => Step::NextLeg,
    };
    NextStep { step, advice: None, note }
}

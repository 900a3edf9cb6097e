//! A test guest: a receipt policy whose document sets its behaviour on bad messages. It accepts everything else.
//!
//! | line after the first | action |
//! |---|---|
//! | `wait MILLISECONDS` | the wait |
//! | `next-leg`, `suspect`, `undeliverable` | the step |

use std::time::Duration;
use switchyard_sdk::receipt::{Decision, DlrState, Event, Submission, accept, next_leg, remap, suspect};
use switchyard_sdk::{Message, Receipt, clock};
use test_mood::{Document, Mood, is_bad};

struct Guest {
    mood: Mood,
    lines: Vec<String>,
}

impl Receipt for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let lines = document.lines().skip(1).map(str::to_owned).collect();
        Ok(Self { mood: Document::read(document)?.mood, lines })
    }

    fn decide(&self, message: &Message, _submission: &Submission, _event: &Event) -> Decision {
        let mood = self.mood;
        if mood == Mood::Ok || !is_bad(&message.source.value, &message.destination.value) {
            return self.lines.iter().fold(accept(), |decision, line| {
                let step = match line.split_whitespace().collect::<Vec<_>>()[..] {
                    ["next-leg"] => next_leg(),
                    ["suspect"] => suspect(),
                    ["undeliverable"] => remap(DlrState::Undeliverable, 8),
                    ["wait", wait] => {
                        let wait = Duration::from_millis(wait.parse().unwrap_or_default());
                        return decision.ask_again_after(wait);
                    }
                    _ => accept(),
                };
                Decision { step: step.step, ..decision }
            });
        }
        mood.act(|| {
            clock::now();
        });
        let mut decision = match mood {
            Mood::UnknownPeer => next_leg(),
            Mood::TryLater => accept().ask_again_after(Duration::from_secs(1)),
            Mood::Absurd => suspect().ask_again_after(Duration::from_millis(u64::MAX)),
            _ => accept(),
        };
        decision.note = mood.note();
        decision
    }
}

switchyard_sdk::export_receipt!(Guest);

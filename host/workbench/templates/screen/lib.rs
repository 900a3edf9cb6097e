//! Rejects and tags texts by their words, and keeps messages of some senders in quarantine; `policy.txt` is an example of its
//! policy document.

wit_bindgen::generate!({ path: "wit", world: "screen" });

use exports::switchyard::hooks::screening::{Decision, Guest, Verdict};
use std::cell::RefCell;
use switchyard::hooks::types::{Attribute, Change, Message, RejectReason};
use switchyard::hooks::{details, fault};

#[derive(Default)]
struct Policy {
    /// Words in lower case.
    rejected: Vec<String>,
    senders: Vec<String>,
    /// Words in lower case.
    tagged: Vec<String>,
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

    fn screen(message: Message) -> Decision {
        POLICY.with_borrow(|policy| decide(policy, &message))
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut policy = Policy::default();
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["reject", word] => policy.rejected.push(word.to_ascii_lowercase()),
            ["quarantine", sender] => policy.senders.push(sender.to_owned()),
            ["tag", word] => policy.tagged.push(word.to_ascii_lowercase()),
            _ => {
                return Err(format!(
                    "line {number}: expected 'reject WORD', 'quarantine SENDER' or 'tag WORD'"
                ));
            }
        }
    }
    Ok(policy)
}

fn decide(policy: &Policy, message: &Message) -> Decision {
    let text = details::text().unwrap_or_default().to_ascii_lowercase();
    let find = |words: &[String]| words.iter().find(|word| text.contains(&**word)).cloned();
    let decision = |verdict, note| Decision { verdict, note, changes: Vec::new(), text: None };
    if let Some(word) = find(&policy.rejected) {
        return decision(Verdict::Reject(RejectReason::Prohibited), Some(format!("the word {word}")));
    }
    let sender = &message.source.value;
    if policy.senders.contains(sender) {
        return decision(Verdict::Quarantine, Some(format!("sender {sender}")));
    }
    let word = find(&policy.tagged).map(|value| Attribute { name: "word".to_owned(), value });
    Decision { changes: word.map(Change::SetAttribute).into_iter().collect(), ..decision(Verdict::Pass, None) }
}

//! Charges by the longest prefix of the destination, for each segment; `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "biller" });

use exports::switchyard::hooks::billing::{Charge, FirstLeg, Guest, Message, Fee, Quote, Settlement};
use std::cell::RefCell;
use switchyard::hooks::fault;
use switchyard::hooks::tables::{self, Row};

struct Policy {
    /// The host's table of prefixes; a value is a price in millionths.
    table: u32,
    /// Accounts that are not charged.
    free: Vec<String>,
}

// The host never calls one instance from two threads at once.
thread_local! {
    static POLICY: RefCell<Option<Policy>> = const { RefCell::new(None) };
}

struct Plugin;

impl Guest for Plugin {
    fn configure(document: String) -> Result<(), String> {
        // The host shows the message of a panic with the fault.
        std::panic::set_hook(Box::new(|panic| fault::report(&panic.to_string())));
        let policy = read(&document)?;
        POLICY.set(Some(policy));
        Ok(())
    }

    fn price(message: Message, _leg: Option<FirstLeg>) -> Quote {
        POLICY.with_borrow(|policy| match policy {
            Some(policy) => decide(policy, message),
            None => Quote { price: Fee::Refuse, note: None },
        })
    }

    fn settle(_settlements: Vec<Settlement>) -> Result<(), String> {
        Ok(())
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut rows = Vec::new();
    let mut free = Vec::new();
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let understood = match words[..] {
            [] => true,
            [first, ..] if first.starts_with('#') => true,
            ["price", prefix, price] => match price.parse() {
                Ok(value) => {
                    rows.push(Row { key: prefix.to_owned(), value });
                    true
                }
                Err(_) => false,
            },
            ["free", account] => {
                free.push(account.to_owned());
                true
            }
            _ => false,
        };
        if !understood {
            return Err(format!(
                "line {number}: expected 'price PREFIX MILLIONTHS' or 'free ACCOUNT'"
            ));
        }
    }
    Ok(Policy { table: tables::define_prefixes("prices", &rows)?, free })
}

fn decide(policy: &Policy, message: Message) -> Quote {
    if policy.free.contains(&message.origin) {
        return Quote { price: Fee::Free, note: None };
    }
    let Some(found) = tables::match_destination(policy.table, u32::MAX) else {
        return Quote { price: Fee::Refuse, note: Some("no price for this destination".to_owned()) };
    };
    let charge = Charge {
        account: message.origin,
        amount: u64::from(found.value) * u64::from(message.parts),
        keep_on_failure: false,
        settle: false,
    };
    Quote { price: Fee::Charge(charge), note: Some(format!("{} at {}", message.parts, found.value)) }
}

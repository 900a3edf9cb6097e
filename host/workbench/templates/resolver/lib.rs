//! Finds subscribers in a table of the appliance; `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "resolver" });

use exports::switchyard::hooks::resolution::{Answer, Guest, Resolved, Subscriber};
use std::cell::RefCell;
use switchyard::hooks::fault;
use switchyard::hooks::tables;

struct Policy {
    /// The appliance's table.
    table: u32,
    /// Validity of an answer, in milliseconds.
    valid: Option<u64>,
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

    fn resolve(msisdn: String) -> Resolved {
        POLICY.with_borrow(|policy| match policy {
            Some(policy) => look_up(policy, &msisdn),
            None => Resolved { answer: Answer::TryLater(None), note: None },
        })
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut name = None;
    let mut valid = None;
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let understood = match words[..] {
            [] => true,
            [first, ..] if first.starts_with('#') => true,
            ["table", table] => {
                name = Some(table.to_owned());
                true
            }
            ["valid", seconds] => {
                valid = seconds.parse::<u32>().ok().map(|seconds| u64::from(seconds) * 1000);
                valid.is_some()
            }
            _ => false,
        };
        if !understood {
            return Err(format!("line {number}: expected 'table NAME' or 'valid SECONDS'"));
        }
    }
    let name = name.ok_or("there is no line 'table NAME'")?;
    Ok(Policy { table: tables::open(&name)?, valid })
}

fn look_up(policy: &Policy, msisdn: &str) -> Resolved {
    let Some(value) = tables::get(policy.table, msisdn) else {
        return Resolved { answer: Answer::Unknown(None), note: Some("not in the table".to_owned()) };
    };
    let (imsi, serving) = match value.split_once(',') {
        Some((imsi, serving)) => (imsi.to_owned(), Some(serving.to_owned())),
        None => (value, None),
    };
    Resolved { answer: Answer::Found(Subscriber { imsi, serving, valid: policy.valid }), note: None }
}

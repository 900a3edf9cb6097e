//! Finds the network of a number in a table of the appliance; `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "lookup" });

use exports::switchyard::hooks::number_lookup::{Answer, Guest, Known, LookedUp, Number};
use std::cell::RefCell;
use switchyard::hooks::fault;
use switchyard::hooks::tables;
use switchyard::hooks::types::Attribute;

struct Policy {
    /// The appliance's table.
    table: u32,
    /// How long an answer is valid, in milliseconds.
    valid: u64,
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

    fn look_up(number: Number) -> LookedUp {
        POLICY.with_borrow(|policy| match policy {
            Some(policy) => look_up(policy, &number),
            None => LookedUp { answer: Answer::TryLater, note: None },
        })
    }
}

export!(Plugin);

fn read(document: &str) -> Result<Policy, String> {
    let mut name = None;
    let mut valid = 60_000;
    for (number, line) in (1..).zip(document.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let understood = match words[..] {
            [] => true,
            [first, ..] if first.starts_with('#') => true,
            ["table", table] => {
                name = Some(table.to_owned());
                true
            }
            ["valid", seconds] => match seconds.parse::<u32>() {
                Ok(seconds) => {
                    valid = u64::from(seconds) * 1000;
                    true
                }
                Err(_) => false,
            },
            _ => false,
        };
        if !understood {
            return Err(format!("line {number}: expected 'table NAME' or 'valid SECONDS'"));
        }
    }
    let name = name.ok_or("there is no line 'table NAME'")?;
    Ok(Policy { table: tables::open(&name)?, valid })
}

fn look_up(policy: &Policy, number: &Number) -> LookedUp {
    let unknown = |why: &str| LookedUp { answer: Answer::Unknown(policy.valid), note: Some(why.to_owned()) };
    if !number.international {
        return unknown("not an international number");
    }
    let Some(found) = tables::get_prefix(policy.table, &number.digits) else {
        return unknown("not in the table");
    };
    let Some((mcc, mnc)) = found.value.split_once('-') else {
        return unknown("the row is not MCC-MNC");
    };
    let attribute = |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.to_owned() };
    let attributes = vec![attribute("mcc", mcc), attribute("mnc", mnc)];
    LookedUp { answer: Answer::Found(Known { attributes, lifetime: policy.valid }), note: None }
}

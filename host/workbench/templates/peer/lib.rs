//! Submits messages to an HTTP API; `policy.txt` is an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "peer" });

use exports::switchyard::hooks::peering::{
    Attempt, Called, Guest, Message, Outcome, Receipt, ReceiptState, Refusal, RefusalClass, Request, Response,
    Submitted,
};
use std::cell::RefCell;
use switchyard::hooks::{details, fault, http, secrets};

// The host never calls one instance from two threads at once.
thread_local! {
    static URL: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Plugin;

impl Guest for Plugin {
    fn configure(document: String) -> Result<(), String> {
        // The host shows the message of a panic with the fault.
        std::panic::set_hook(Box::new(|panic| fault::report(&panic.to_string())));
        let mut url = None;
        for (number, line) in (1..).zip(document.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["url", address] => url = Some(address.to_owned()),
                _ => return Err(format!("line {number}: expected 'url ADDRESS'")),
            }
        }
        URL.set(url.ok_or("there is no line 'url ADDRESS'")?);
        Ok(())
    }

    fn submit(message: Message, _attempt: Attempt) -> Submitted {
        let Some(text) = details::text() else {
            return refused(RefusalClass::Permanent, 0, "8-bit data has no text");
        };
        let (from, to) = (escape(&message.source.value), escape(&message.destination.value));
        let request = http::Request {
            method: "POST".to_owned(),
            url: URL.with_borrow(String::clone),
            headers: vec![("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())],
            body: format!("from={from}&to={to}&text={}", escape(&text)).into_bytes(),
        };
        match http::fetch(&request) {
            Ok(answer) => read_answer(answer),
            // The host makes the outcome uncertain if the peer may have the message.
            Err(_) => refused(RefusalClass::Temporary, 0, "no answer"),
        }
    }

    fn callback(_peer: String, request: Request) -> Called {
        let key = secrets::get("callback");
        if key.is_none() || field(&request.query, "key") != key.as_deref() {
            return called(403, Vec::new());
        }
        let (Some(id), Some(status)) = (field(&request.query, "id"), field(&request.query, "status")) else {
            return called(400, Vec::new());
        };
        let state = match status {
            "delivered" => ReceiptState::Delivered,
            "failed" => ReceiptState::Undeliverable,
            _ => ReceiptState::Enroute,
        };
        let receipt = Receipt { id: id.to_owned(), subscriber: None, sender: None, state, error: 0, at: None };
        called(204, vec![receipt])
    }
}

export!(Plugin);

fn read_answer(answer: http::Response) -> Submitted {
    let code = u32::from(answer.status);
    match answer.status {
        200..=299 => {
            let id = String::from_utf8_lossy(&answer.body).trim().to_owned();
            Submitted { outcome: Outcome::Accepted(Some(id)), note: None }
        }
        429 => {
            let refusal = Refusal { class: RefusalClass::Throttled, code, retry_after: Some(1000) };
            Submitted { outcome: Outcome::Refused(refusal), note: None }
        }
        400..=499 => refused(RefusalClass::Permanent, code, "refused by the API"),
        _ => refused(RefusalClass::Temporary, code, "the API fails"),
    }
}

fn refused(class: RefusalClass, code: u32, note: &str) -> Submitted {
    let refusal = Refusal { class, code, retry_after: None };
    Submitted { outcome: Outcome::Refused(refusal), note: Some(note.to_owned()) }
}

fn called(status: u16, receipts: Vec<Receipt>) -> Called {
    let response = Response { status, headers: Vec::new(), body: Vec::new() };
    Called { response, receipts, messages: Vec::new(), note: None }
}

/// A text in a form: all but unreserved characters as percent signs and hexadecimal digits.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || b"-._~".contains(&octet) {
            escaped.push(char::from(octet));
        } else {
            escaped.push_str(&format!("%{octet:02X}"));
        }
    }
    escaped
}

/// The value of a field in a query. Escapes are not decoded: this API needs none.
fn field<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

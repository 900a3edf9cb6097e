//! Serves an HTTP API with the parameters `login`, `password`, `to` and `text`, which answers with a line of text; `policy.txt` is
//! an example of its policy document.

wit_bindgen::generate!({ path: "wit", world: "front-end" });

use exports::switchyard::hooks::translation::{
    Coding, Content, Credentials, Guest, Outcome, Reading, Refusal, RefusalReason, Request, Response,
    Submission, SubmissionResult, Submit, WantedReceipts,
};
use std::cell::RefCell;
use switchyard::hooks::fault;
use switchyard::hooks::types::HttpHeader;

struct Policy {
    accepted: String,
    refused: String,
}

// The host never calls one instance from two threads at once.
thread_local! {
    static POLICY: RefCell<Policy> =
        RefCell::new(Policy { accepted: "OK".to_owned(), refused: "ERROR".to_owned() });
}

struct Plugin;

impl Guest for Plugin {
    fn configure(document: String) -> Result<(), String> {
        // The host shows the message of a panic with the fault.
        std::panic::set_hook(Box::new(|panic| fault::report(&panic.to_string())));
        for (number, line) in (1..).zip(document.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["accepted", word] => POLICY.with_borrow_mut(|policy| policy.accepted = word.to_owned()),
                ["refused", word] => POLICY.with_borrow_mut(|policy| policy.refused = word.to_owned()),
                _ => return Err(format!("line {number}: expected 'accepted WORD' or 'refused WORD'")),
            }
        }
        Ok(())
    }

    fn read(request: Request) -> Reading {
        let body = String::from_utf8_lossy(&request.body);
        let form = if request.method == "POST" { &*body } else { &request.query };
        let parameter = |name: &str| {
            let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| decode(value))
        };
        let parameters = ["login", "password", "to", "text"].map(|name| parameter(name).ok_or(name));
        let [account, password, destination, text] = match parameters {
            [Ok(account), Ok(password), Ok(to), Ok(text)] => [account, password, to, text],
            others => {
                let missing = others.into_iter().find_map(Result::err).unwrap_or_default();
                return Reading::Respond(refused(400, &format!("{missing} is missing")));
            }
        };
        Reading::Submit(Submit {
            credentials: Credentials { account, password },
            submissions: vec![Submission {
                source: None,
                destination,
                content: Content::Text(text),
                coding: Coding::Automatic,
                user_data_header: None,
                message_class: None,
                priority: None,
                validity: None,
                schedule: None,
                receipts: WantedReceipts::None,
                reference: None,
                tlvs: Vec::new(),
                dlr_push: None,
            }],
            idempotency_key: None,
        })
    }

    fn reply(_request: Request, outcome: Outcome) -> Response {
        let refusal = match outcome {
            Outcome::Refused(refusal) => refusal,
            Outcome::Results(results) => match results.into_iter().next() {
                Some(SubmissionResult::Accepted(message)) => {
                    return POLICY.with_borrow(|policy| respond(200, &policy.accepted, &message.id));
                }
                Some(SubmissionResult::Refused(refusal)) => refusal,
                None => return refused(500, "no result"),
            },
        };
        let Refusal { reason, detail, .. } = refusal;
        let status = match reason {
            RefusalReason::Unauthenticated => 401,
            RefusalReason::Throttled => 429,
            RefusalReason::Unavailable => 503,
            RefusalReason::Internal => 500,
            _ => 422,
        };
        refused(status, &detail)
    }
}

export!(Plugin);

fn refused(status: u16, detail: &str) -> Response {
    POLICY.with_borrow(|policy| respond(status, &policy.refused, detail))
}

fn respond(status: u16, word: &str, detail: &str) -> Response {
    let header = HttpHeader { name: "content-type".to_owned(), value: "text/plain".to_owned() };
    Response { status, headers: vec![header], body: format!("{word} {detail}").into_bytes() }
}

/// A value of application/x-www-form-urlencoded.
fn decode(value: &str) -> String {
    let mut octets = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = match after {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        match digits {
            Some(octet) => {
                octets.push(octet);
                rest = &after[2..];
            }
            None => {
                octets.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&octets).into_owned()
}

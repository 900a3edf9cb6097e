//! A peer over HTTP: a policy document maps requests, answers and callbacks.

use http_peer_policy::{Policy, Submission};
use switchyard_sdk::peer::{Attempt, Called, Request, Submitted};
use switchyard_sdk::{Message, Peer, body, details, http, secrets};

struct HttpPeer(Policy);

impl Peer for HttpPeer {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn submit(&self, message: &Message, attempt: &Attempt) -> Submitted {
        let submission = Submission {
            message,
            attempt,
            text: if self.0.uses_text() { details::text() } else { None },
            octets: if self.0.uses_octets() { body::octets() } else { Vec::new() },
        };
        let request = match self.0.request(&submission, &secrets::get) {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
        let sent = http::fetch(&http::Request {
            method: request.method.to_owned(),
            url: request.url,
            headers: request.headers,
            body: request.body,
        });
        match sent {
            Ok(answer) => self.0.answer(answer.status, &answer.headers, &answer.body),
            Err(failure) => http_peer_policy::no_answer(match failure {
                http::Failure::NotAllowed(why) => format!("the appliance does not allow the request: {why}"),
                http::Failure::TimedOut => "no answer in time".to_owned(),
                http::Failure::TooLarge => "the answer is larger than the binding allows".to_owned(),
                http::Failure::Unreachable(why) => format!("unreachable: {why}"),
                http::Failure::NotNow => "requests are not possible now".to_owned(),
            }),
        }
    }

    fn callback(&self, peer: &str, request: &Request) -> Called {
        self.0.callback(peer, request, &secrets::get)
    }
}

switchyard_sdk::export_peer!(HttpPeer);

//! A test guest: a peer whose document sets its behaviour on numbers and callbacks that begin with 666. The second word of the
//! document is an option: `after` sends an HTTP request first, and `secret` uses the secret `token` as the id. Otherwise the
//! attempt's key is the id.

use switchyard_sdk::peer::{Attempt, Called, Receipt, ReceiptState, RefusalClass, Request, Submitted};
use switchyard_sdk::peer::{accepted, refused, respond};
use switchyard_sdk::{Message, Peer, clock, http, secrets};
use test_mood::{Document, Mood, is_bad};

struct Guest(Document);

impl Guest {
    /// The misbehaviour.
    fn misbehave(&self) -> Option<String> {
        self.0.mood.act(|| {
            clock::now();
        });
        match self.0.mood {
            // Longer than the limit of ids.
            Mood::Absurd | Mood::UnknownPeer => Some("x".repeat(256)),
            Mood::Giant => Some(test_mood::giant()),
            _ => None,
        }
    }
}

impl Peer for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Document::read(document).map(Self)
    }

    fn submit(&self, message: &Message, attempt: &Attempt) -> Submitted {
        let request = http::Request {
            method: "POST".to_owned(),
            url: "http://peer.example/".to_owned(),
            headers: Vec::new(),
            body: attempt.key.clone().into_bytes(),
        };
        let sent = (self.0.name == "after").then(|| http::fetch(&request));
        if is_bad("", &message.destination.value) {
            let id = self.misbehave();
            return Submitted { note: self.0.mood.note(), ..accepted(id) };
        }
        match (sent, &*self.0.name) {
            (Some(Ok(answer)), _) if answer.status == 200 => {
                accepted(Some(String::from_utf8_lossy(&answer.body).into_owned()))
            }
            (Some(_), _) => refused(RefusalClass::Temporary, 500),
            (None, "secret") => accepted(secrets::get("token")),
            (None, _) => accepted(Some(attempt.key.clone())),
        }
    }

    fn callback(&self, _peer: &str, request: &Request) -> Called {
        let id = String::from_utf8_lossy(&request.body).into_owned();
        let mut called = respond(200);
        let id = if id.starts_with("666") { self.misbehave().unwrap_or(id) } else { id };
        let (subscriber, sender) = (None, None);
        called.receipts =
            vec![Receipt { id, subscriber, sender, state: ReceiptState::Delivered, error: 0, at: None }];
        called
    }
}

switchyard_sdk::export_peer!(Guest);

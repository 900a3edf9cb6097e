//! A test guest: a front end whose document sets its misbehaviour. It misbehaves in `read` for a request with `bad=read`,
//! and in `reply` for one with `bad=reply`. Other requests submit `text` from `login` with `password` to `to`.

use switchyard_sdk::form::Form;
use switchyard_sdk::front_end::{
    Content, Credentials, Outcome, Reading, Request, Response, Submission, SubmissionResult, Submit,
    WantedReceipts, response, submission,
};
use switchyard_sdk::{FrontEnd, clock};
use test_mood::{Document, Mood, bad_utf8, giant};

struct Guest(Mood);

impl Guest {
    fn misbehave(&self, form: &Form, function: &str) -> Option<Response> {
        if form.text("bad").as_deref() != Some(function) || self.0 == Mood::Ok {
            return None;
        }
        self.0.act(|| {
            clock::now();
        });
        Some(match self.0 {
            Mood::Giant => response(200, "text/plain", giant()),
            Mood::BadUtf8 => response(200, &bad_utf8(), ""),
            Mood::Absurd => response(99, "text/plain", ""),
            _ => response(200, "content-length: 5\r\n", "a"),
        })
    }
}

impl FrontEnd for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Ok(Self(Document::read(document)?.mood))
    }

    fn read(&self, request: &Request) -> Reading {
        let form = Form::of(request);
        if let Some(response) = self.misbehave(&form, "read") {
            return Reading::Respond(response);
        }
        let text = |name: &str| form.text(name).unwrap_or_default();
        let to = text("to");
        let message = |to: &str| Submission {
            receipts: WantedReceipts::Final,
            ..submission(to, Content::Text(text("text")))
        };
        Reading::Submit(Submit {
            credentials: Credentials { account: text("login"), password: text("password") },
            submissions: to.split(' ').map(message).collect(),
            idempotency_key: form.text("key"),
        })
    }

    fn reply(&self, request: &Request, outcome: &Outcome) -> Response {
        if let Some(response) = self.misbehave(&Form::of(request), "reply") {
            return response;
        }
        match outcome {
            Outcome::Refused(refusal) => {
                response(400, "text/plain", format!("{:?}: {}", refusal.reason, refusal.detail))
            }
            Outcome::Results(results) => {
                let ids: Vec<&str> = results
                    .iter()
                    .map(|result| match result {
                        SubmissionResult::Accepted(message) => message.id.as_str(),
                        SubmissionResult::Refused(_) => "refused",
                    })
                    .collect();
                response(200, "text/plain", ids.join(" "))
            }
        }
    }
}

switchyard_sdk::export_front_end!(Guest);

//! An example: Twilio's Messages API, with status callbacks and incoming messages. The plugin checks their signatures.
//!
//! <https://www.twilio.com/docs/messaging/api/message-resource> and
//! <https://www.twilio.com/docs/usage/security#validating-requests>

mod callback;
mod submission;

use switchyard_sdk::peer::{Attempt, Called, Request, Submitted};
use switchyard_sdk::{Message, Peer};

/// The policy document.
struct Twilio {
    /// The SID of the account.
    account: String,
    /// The API.
    api: String,
    /// The address of the appliance's callbacks, as Twilio sees it: scheme and host.
    public: String,
}

/// The name of the secret.
const AUTH_TOKEN: &str = "auth-token";

impl Peer for Twilio {
    fn configure(document: &str) -> Result<Self, String> {
        let (mut account, mut public) = (None, None);
        let mut api = "https://api.twilio.com".to_owned();
        for (number, line) in (1..).zip(document.lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["account", sid] if sid.bytes().all(|octet| octet.is_ascii_alphanumeric()) => {
                    account = Some(sid.to_owned());
                }
                ["public", url] => public = Some(url.trim_end_matches('/').to_owned()),
                ["api", url] => url.trim_end_matches('/').clone_into(&mut api),
                _ => return Err(format!("line {number}: expected 'account SID', 'public URL' or 'api URL'")),
            }
        }
        let account = account.ok_or("there is no line 'account SID'")?;
        let public = public.ok_or("there is no line 'public URL'")?;
        Ok(Self { account, api, public })
    }

    fn submit(&self, message: &Message, attempt: &Attempt) -> Submitted {
        submission::submit(self, message, attempt)
    }

    fn callback(&self, _peer: &str, request: &Request) -> Called {
        callback::read(self, request)
    }
}

switchyard_sdk::export_peer!(Twilio);

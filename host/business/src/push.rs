//! Pushes of MO messages and DLRs to a business system's URL.

use crate::accounts::Account;
use crate::dlr_push::{self, DlrCall, DlrTarget};
use crate::dlr_urls::{AllowedUrl, PublicResolver};
use crate::item::{self, InboxItem};
use crate::options::{PushFormat, PushOptions};
use crate::{twilio_signature, xmlrpc};
use engine::Event;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hmac::{Hmac, Mac};
use hooks::FrontEndDlrSignature;
use model::{ErrorClass, Message, Outcome, Timestamp, hex};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, Protocol};
use sha2::Sha256;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The header that carries the signature of a push.
pub const SIGNATURE_HEADER: &str = "Switchyard-Signature";

/// A push cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The URL is invalid.
    #[error(
        "account {account:?}: push url {url:?}: must be an http or https URL, such as https://shop.example/sms"
    )]
    Url {
        /// The account.
        account: String,
        /// The URL as configured.
        url: String,
    },
    /// The HTTP client cannot be set up.
    #[error("HTTP client setup failed: {0}")]
    Client(reqwest::Error),
    /// The system has no randomness.
    #[error("system random numbers unavailable: {0}")]
    Random(getrandom::Error),
}

/// The value of [`SIGNATURE_HEADER`]: `t=<unix seconds>,v1=<hex>`, the HMAC-SHA256 under the account's secret of the
/// seconds, a full stop and the body.
#[must_use]
pub fn signature(secret: &str, seconds: u64, body: &[u8]) -> String {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body);
    format!("t={seconds},v1={}", hex(&mac.finalize().into_bytes()))
}

/// The clients shared by all accounts. They do not follow redirects: a push goes to a configured URL only.
#[derive(Debug, Clone)]
pub(crate) struct PushClients {
    /// For URLs whose host the configuration names.
    named: reqwest::Client,
    /// Connects to public addresses only, and without a proxy, which would resolve names itself.
    public: reqwest::Client,
}

impl PushClients {
    pub(crate) fn new() -> Result<Self, PushError> {
        let builder = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .pool_max_idle_per_host(16)
                .user_agent(concat!("switchyard/", env!("CARGO_PKG_VERSION")))
        };
        let public = builder().no_proxy().dns_resolver(Arc::new(PublicResolver)).build();
        let named = builder().build();
        Ok(Self { named: named.map_err(PushError::Client)?, public: public.map_err(PushError::Client)? })
    }
}

/// The outcome of a push.
#[derive(Debug, PartialEq, Eq)]
enum PushOutcome {
    Delivered,
    /// The business system is down or busy; its queue waits.
    Down(String),
    /// The business system rejects this item; others may succeed.
    Refused(String),
}

/// Pushes the items of one account until it is stopped.
pub(crate) struct Pusher {
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) account: Arc<Account>,
    pub(crate) push: PushOptions,
    pub(crate) clients: PushClients,
}

impl Pusher {
    pub(crate) async fn run(self, mut stop: watch::Receiver<Option<Instant>>) {
        let mut handle = LinkHandle::register(self.core.clone(), self.registry.clone(), Protocol::Internal);
        let (link, mut events) = (handle.link(), Vec::new());
        handle.announce(self.account.options.peer, self.push.window, &mut events);
        self.core.push(events);
        let mut pushes = FuturesUnordered::new();
        // Items that wait for an earlier item with the same order key.
        let mut chains: HashMap<u64, VecDeque<Arc<Message>>> = HashMap::new();
        let mut until: Option<Instant> = None;
        loop {
            self.account.counts.pushing.store(pushes.len() as u64, Relaxed);
            if until.is_some() && pushes.is_empty() {
                break;
            }
            let time_is_up = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                batch = handle.recv() => {
                    for message in batch.into_iter().filter_map(sent) {
                        match item::order_key(&message).map(|order_key| chains.entry(order_key)) {
                            Some(std::collections::hash_map::Entry::Occupied(mut waiting)) => {
                                waiting.get_mut().push_back(message);
                            }
                            Some(std::collections::hash_map::Entry::Vacant(free)) => {
                                free.insert(VecDeque::new());
                                pushes.push(self.one(message));
                            }
                            None => pushes.push(self.one(message)),
                        }
                    }
                }
                Some((message, pushed)) = pushes.next(), if !pushes.is_empty() => {
                    let good = pushed == PushOutcome::Delivered;
                    let mut events = vec![Event::Outcome { link, id: message.id, outcome: self.outcome(pushed) }];
                    if let Some(order_key) = item::order_key(&message)
                        && let Some(mut waiting) = chains.remove(&order_key)
                    {
                        if good && let Some(next) = waiting.pop_front() {
                            chains.insert(order_key, waiting);
                            pushes.push(self.one(next));
                        } else {
                            // Later items must not overtake: they return to the queue too.
                            events.extend(waiting.into_iter().map(|message| not_sent(link, &message)));
                        }
                    }
                    self.core.push(events);
                }
                changed = stop.changed(), if until.is_none() => {
                    let deadline = if changed.is_ok() { *stop.borrow() } else { None };
                    until = Some(deadline.unwrap_or_else(Instant::now));
                    let mut events = Vec::new();
                    handle.pause(&mut events);
                    self.core.push(events);
                }
                () = time_is_up => break,
            }
        }
        let left = chains.into_values().flatten().map(|message| not_sent(link, &message)).collect();
        // An aborted push may have been accepted; it is repeated (at least once).
        drop(pushes);
        self.account.counts.pushing.store(0, Relaxed);
        handle.close(left, Duration::from_secs(5)).await;
    }

    fn outcome(&self, pushed: PushOutcome) -> Outcome {
        let counts = &self.account.counts;
        let refused = |class| Outcome::Refused { class, code: 0, taken: Vec::new() };
        match pushed {
            PushOutcome::Delivered => {
                counts.pushed(Timestamp::now());
                Outcome::Accepted { ids: Vec::new() }
            }
            PushOutcome::Down(why) => {
                if counts.push_failed(why.clone()) {
                    tracing::warn!(account = self.account.options.name, %why, "pushes fail, retrying");
                }
                refused(ErrorClass::Throttled)
            }
            PushOutcome::Refused(why) => {
                if counts.push_failed(why.clone()) {
                    tracing::warn!(account = self.account.options.name, %why, "push rejected, the item can be fetched");
                }
                refused(ErrorClass::Temporary)
            }
        }
    }

    async fn one(&self, message: Arc<Message>) -> (Arc<Message>, PushOutcome) {
        let late = |_| PushOutcome::Down(format!("no answer within {:?}", self.push.timeout));
        let pushed = match dlr_push::target(&message, &self.push.dlr_urls) {
            DlrTarget::NoTarget => PushOutcome::Delivered,
            DlrTarget::Account => {
                tokio::time::timeout(self.push.timeout, self.send(&message)).await.unwrap_or_else(late)
            }
            DlrTarget::Url(call) => {
                let called = tokio::time::timeout(self.push.timeout, self.call(&message, *call)).await;
                match called.unwrap_or_else(late) {
                    // Other items go to other URLs, so they do not wait for this one.
                    PushOutcome::Down(why) => PushOutcome::Refused(why),
                    pushed => pushed,
                }
            }
        };
        (message, pushed)
    }

    /// Pushes a DLR to a URL of the submission.
    async fn call(&self, message: &Message, call: DlrCall) -> PushOutcome {
        let client = match call.allowed {
            AllowedUrl::AnyAddress => &self.clients.named,
            AllowedUrl::PublicAddress => &self.clients.public,
        };
        let signature = call.signature.map(|FrontEndDlrSignature::Twilio| {
            twilio_signature::signature(&self.push.secret, &call.url, call.body.as_deref())
        });
        let mut request = match call.body {
            None => client.get(call.url),
            Some(body) => client
                .post(call.url)
                .header(reqwest::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body),
        };
        if let Some(signature) = signature {
            request = request.header(twilio_signature::HEADER, signature);
        }
        let response = match request.header("Switchyard-Id", message.id.to_string()).send().await {
            Ok(response) => response,
            Err(error) => return PushOutcome::Refused(cause(&error.without_url())),
        };
        if !response.status().is_success() {
            return PushOutcome::Refused(format!("HTTP status {}", response.status().as_u16()));
        }
        let Some(acknowledgement) = call.acknowledgement else { return PushOutcome::Delivered };
        match read_body(response).await {
            Ok(body) if String::from_utf8_lossy(&body).trim() == acknowledgement => PushOutcome::Delivered,
            Ok(_) => PushOutcome::Refused("the response is not an acknowledgement".to_owned()),
            Err(outcome) => outcome,
        }
    }

    async fn send(&self, message: &Message) -> PushOutcome {
        let item = InboxItem::of(message);
        let (body, content_type) = match self.push.format {
            PushFormat::Json => {
                (serde_json::to_string(&item).map_err(|error| error.to_string()), "application/json")
            }
            PushFormat::XmlRpc => (xmlrpc::call(&format!("sms.{}", item.kind()), &item), "text/xml"),
        };
        let body = match body {
            Ok(body) => body,
            Err(why) => return PushOutcome::Refused(why),
        };
        let seconds = Timestamp::now().0 / 1000;
        let request = self
            .clients
            .named
            .post(&self.push.url)
            .header(reqwest::header::CONTENT_TYPE, content_type)
            .header(SIGNATURE_HEADER, signature(&self.push.secret, seconds, body.as_bytes()))
            .header("Switchyard-Id", message.id.to_string())
            .header("Switchyard-Type", item.kind())
            .body(body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return PushOutcome::Down(error.without_url().to_string()),
        };
        let status = response.status();
        if status.is_success() {
            return match self.push.format {
                PushFormat::Json => PushOutcome::Delivered,
                PushFormat::XmlRpc => answer(response).await,
            };
        }
        let why = format!("HTTP status {}", status.as_u16());
        if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
            PushOutcome::Down(why)
        } else {
            PushOutcome::Refused(why)
        }
    }
}

/// An error with its cause.
fn cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    format!("{error}: {deepest}")
}

/// Maximum size of a response that is read, in octets.
const ANSWER_LIMIT: usize = 64 << 10;

/// Reads the response to a method call; a fault is a rejection.
async fn answer(response: reqwest::Response) -> PushOutcome {
    match read_body(response).await.map(|body| xmlrpc::read_answer(&body)) {
        Ok(Ok(())) => PushOutcome::Delivered,
        Ok(Err(why)) => PushOutcome::Refused(why),
        Err(outcome) => outcome,
    }
}

async fn read_body(response: reqwest::Response) -> Result<Vec<u8>, PushOutcome> {
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        match chunk {
            Ok(chunk) if body.len() + chunk.len() <= ANSWER_LIMIT => body.extend_from_slice(&chunk),
            Ok(_) => return Err(PushOutcome::Refused("the answer is longer than 64 KiB".to_owned())),
            Err(error) => return Err(PushOutcome::Down(error.without_url().to_string())),
        }
    }
    Ok(body)
}

fn sent(delivery: LinkCommand) -> Option<Arc<Message>> {
    match delivery {
        LinkCommand::Send { message, .. } => Some(message),
        _ => None,
    }
}

fn not_sent(link: model::LinkId, message: &Message) -> Event {
    Event::Outcome { link, id: message.id, outcome: Outcome::NotSent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_seconds_and_body() {
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
        let digest = "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        let made = signature("secret", 1_700_000_000, b"{}");
        assert_eq!(made, format!("t=1700000000,v1={digest}"));
        assert_ne!(made, signature("other", 1_700_000_000, b"{}"));
        assert_ne!(made, signature("secret", 1_700_000_001, b"{}"));
    }
}

use crate::account_state::BusinessAccountState;
use crate::accounts::{Account, Accounts};
use crate::inbox::Inbox;
use crate::item;
use crate::options::{BusinessAccountOptions, BusinessOptions};
use crate::problem::{Problem, ProblemKind};
use crate::push::{self, PushError, Pusher};
use crate::submission;
use axum::Router;
use engine::{EngineAnswer, Event};
use model::{Address, IdempotencyKey, Message, MessageId, Refusal, Timestamp};
use parking_lot::Mutex;
use ports::{EngineClient, EventSink, LinkRegistry, PasswordVerifier, Protocol, RefusalRecord, Routing};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The HTTP and XML-RPC interface of business systems. Its methods must be called within a tokio runtime.
pub struct Business {
    shared: Arc<Shared>,
    pushers: Mutex<HashMap<String, RunningPusher>>,
    client: reqwest::Client,
}

struct RunningPusher {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

/// State shared by all calls.
pub(crate) struct Shared {
    pub(crate) options: Mutex<BusinessOptions>,
    pub(crate) accounts: Accounts,
    pub(crate) verifier: PasswordVerifier,
    core: Arc<dyn EventSink>,
    routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
    engine_client: Arc<EngineClient>,
    inbox: Arc<Inbox>,
}

/// The parameters of a fetch.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    /// Maximum number of items.
    pub(crate) max: Option<u32>,
    /// Maximum seconds to wait for the first item.
    pub(crate) wait: Option<u32>,
    /// A batch to acknowledge first.
    pub(crate) acknowledge: Option<String>,
}

/// Maximum time for the pushes of a removed or changed account to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Business {
    /// Creates the interface without accounts.
    ///
    /// # Errors
    /// Fails if the HTTP client cannot be set up or the system has no randomness.
    pub fn new(
        options: BusinessOptions,
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
        registry: Arc<LinkRegistry>,
    ) -> Result<Self, PushError> {
        let shared = Shared {
            accounts: Accounts::default(),
            verifier: PasswordVerifier::new(options.verifications).map_err(PushError::Random)?,
            engine_client: EngineClient::open_for(&registry, Protocol::Http),
            inbox: Arc::default(),
            core,
            routing,
            registry,
            options: Mutex::new(options),
        };
        Ok(Self { shared: Arc::new(shared), pushers: Mutex::default(), client: push::client()? })
    }

    /// Changes the options for the next calls, except for the size of a request.
    pub fn set_options(&self, options: BusinessOptions) {
        *self.shared.options.lock() = options;
    }

    /// Adds or changes an account. Its pushes start, or continue to the new URL.
    ///
    /// # Errors
    /// Fails if the push URL is invalid; the account works without pushes then.
    pub fn set_account(&self, options: BusinessAccountOptions) -> Result<(), PushError> {
        let name = options.name.clone();
        let account = self.shared.accounts.set(options, self.shared.registry.accounts());
        self.stop_pushes(&name, Instant::now() + STOP_TIMEOUT);
        let Some(push) = account.options.push.clone() else { return Ok(()) };
        if !push.has_url() {
            return Err(PushError::Url { account: name, url: push.url });
        }
        let (stop, orders) = watch::channel(None);
        let pusher = Pusher {
            core: self.shared.core.clone(),
            registry: self.shared.registry.clone(),
            account,
            push,
            client: self.client.clone(),
        };
        let task = tokio::spawn(pusher.run(orders));
        self.pushers.lock().insert(name, RunningPusher { stop, task });
        Ok(())
    }

    /// Removes an account: its calls are rejected, its pushes end. Returns whether it existed.
    pub fn remove_account(&self, name: &str) -> bool {
        self.stop_pushes(name, Instant::now() + STOP_TIMEOUT);
        self.shared.accounts.remove(name)
    }

    fn stop_pushes(&self, name: &str, until: Instant) {
        if let Some(running) = self.pushers.lock().remove(name) {
            running.stop.send_replace(Some(until));
        }
    }

    /// The HTTP routes. Serve them with the remote address as connection info.
    pub fn router(&self) -> Router {
        crate::http_json::router(self.shared.clone())
    }

    /// The state of all accounts.
    #[must_use]
    pub fn states(&self) -> Vec<BusinessAccountState> {
        let to_item = |account: Arc<Account>| {
            let url = account.options.push.as_ref().map(|push| push.url.as_str());
            account.counts.to_item(&account.options.name, url)
        };
        self.shared.accounts.all().into_iter().map(to_item).collect()
    }

    /// Ends pushes within the given time and releases fetched items that were not acknowledged. The core must keep
    /// running meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        let until = Instant::now() + within;
        let running: Vec<RunningPusher> = self.pushers.lock().drain().map(|(_, running)| running).collect();
        for one in &running {
            one.stop.send_replace(Some(until));
        }
        for one in running {
            let _ = one.task.await;
        }
        self.shared.inbox.close().await;
        self.shared.engine_client.close(&self.shared.registry);
    }
}

impl Shared {
    async fn ask(&self, event: impl FnOnce(engine::ReplyTo) -> Event) -> Result<EngineAnswer, Problem> {
        let submit_timeout = self.options.lock().submit_timeout;
        let answer = self.engine_client.request(&*self.core, submit_timeout, event).await;
        answer.map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))
    }

    /// Submits messages: if one is malformed, none is accepted. Returns one result per destination, in order.
    pub(crate) async fn submit(
        &self,
        account: &Account,
        items: Vec<Value>,
        key: Option<String>,
    ) -> Result<Value, Problem> {
        let key = key.map(|name| submission_key(&name, &items)).transpose();
        let read =
            key.and_then(|key| Ok((key, submission::messages(items, &account.options, Timestamp::now())?)));
        let (key, messages) = read.inspect_err(|problem| self.refused(account, problem))?;
        if !account.take(messages.len(), Instant::now()) {
            let first = messages.first();
            let addresses = first
                .map(|message| (message.source.clone(), message.destination.clone()))
                .unwrap_or_default();
            let refused = RefusalRecord::new(Timestamp::now(), Protocol::Http, addresses, Refusal::Throttled);
            self.registry.refusals().record(account.options.peer, refused, messages.len() as u64);
            return Err(Problem::of(Refusal::Throttled));
        }
        let routed = |mut message: Message| {
            message.routed = self.routing.route(&message);
            message
        };
        let messages: Vec<Message> = messages.into_iter().map(routed).collect();
        let numbers: Vec<String> =
            messages.iter().map(|message| message.destination.text().into_owned()).collect();
        let answer = self.ask(|reply| Event::AcceptMany { messages, shared_id: false, key, reply }).await?;
        let results = match answer {
            EngineAnswer::AcceptedMany(results) => results,
            EngineAnswer::Refused(refusal) => return Err(Problem::of(refusal)),
            _ => return Err(Problem::of(Refusal::Internal)),
        };
        let accepted = results.iter().filter(|result| result.is_ok()).count();
        account.counts.accepted.fetch_add(accepted as u64, Relaxed);
        if let (0, Some(Err(refusal))) = (accepted, results.first()) {
            return Err(Problem::of(*refusal));
        }
        let shown = numbers.into_iter().zip(results).map(|(to, result)| match result {
            Ok(id) => json!({ "to": to, "id": id.to_string() }),
            Err(refusal) => {
                let problem = Problem::of(refusal);
                json!({ "to": to, "error": problem.kind.name(), "detail": problem.detail })
            }
        });
        Ok(shown.collect())
    }

    /// Records a submission that is rejected before it reaches the engine. The record names the invalid field and does
    /// not quote it.
    pub(crate) fn refused(&self, account: &Account, problem: &Problem) {
        let reason = match problem.errors.first() {
            Some(errors) => format!("{} is not valid", errors.field),
            None => problem.kind.name().replace('-', " "),
        };
        let refused = RefusalRecord {
            at: Timestamp::now(),
            protocol: Protocol::Http,
            source: Address::default(),
            destination: Address::default(),
            code: problem.kind.name(),
            reason: reason.into(),
        };
        self.registry.refusals().record(account.options.peer, refused, 1);
    }

    /// The state of one message of the account.
    pub(crate) async fn state(&self, account: &Account, id: &str) -> Result<Value, Problem> {
        let unknown = |detail: String| Problem::new(ProblemKind::NotFound, detail);
        let id: MessageId =
            id.parse().map_err(|error: model::ParseMessageIdError| unknown(error.to_string()))?;
        let origin = account.options.peer;
        match self.ask(|reply| Event::Query { origin, id, source: None, reply }).await? {
            EngineAnswer::State(state) => Ok(json!({
                "id": id.to_string(),
                "state": item::state_name(state.state),
                "final": state.state.is_final(),
                "final_at": state.final_at.map(item::stamp),
                "error": state.error,
            })),
            EngineAnswer::Refused(refusal) => Err(Problem::of(refusal)),
            _ => Err(Problem::of(Refusal::Internal)),
        }
    }

    /// The states of several messages.
    pub(crate) async fn states(&self, account: &Account, ids: &[Value]) -> Value {
        let mut states = Vec::new();
        for id in ids.iter().take(account.options.batch) {
            let id = id.as_str().unwrap_or_default();
            states.push(match self.state(account, id).await {
                Ok(state) => state,
                Err(problem) => json!({ "id": id, "error": problem.kind.name(), "detail": problem.detail }),
            });
        }
        Value::Array(states)
    }

    /// Fetches MO messages and DLRs that wait for the account.
    pub(crate) async fn fetch(&self, account: &Arc<Account>, fetch: Fetch) -> Result<Value, Problem> {
        if let Some(batch) = fetch.acknowledge.as_deref().filter(|batch| !batch.is_empty()) {
            self.inbox.acknowledge(account, batch, None).await?;
        }
        let most = usize::try_from(fetch.max.unwrap_or(100)).unwrap_or(usize::MAX);
        let wait = Duration::from_secs(u64::from(fetch.wait.unwrap_or(0)));
        let fetched = self.inbox.fetch(&self.core, &self.registry, account, most, wait).await?;
        Ok(
            json!({ "batch": fetched.batch, "items": fetched.items, "lease": account.options.lease.as_secs() }),
        )
    }

    /// Acknowledges a batch, or some of its items.
    pub(crate) async fn acknowledge(
        &self,
        account: &Account,
        batch: &str,
        ids: Option<&[Value]>,
    ) -> Result<usize, Problem> {
        let parse = |id: &Value| {
            let id = id.as_str().unwrap_or_default();
            id.parse::<MessageId>().map_err(|error| Problem::new(ProblemKind::Invalid, error.to_string()))
        };
        let only: Option<Vec<MessageId>> =
            ids.map(|ids| ids.iter().map(parse).collect::<Result<_, _>>()).transpose()?;
        self.inbox.acknowledge(account, batch, only.as_deref()).await
    }
}

/// The idempotency key of a call, with a digest of its content. The digest must be stable across restarts.
fn submission_key(name: &str, items: &[Value]) -> Result<IdempotencyKey, Problem> {
    if name.is_empty() || name.len() > 200 || !name.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
        return Err(Problem::new(
            ProblemKind::Invalid,
            "the key must be 1 to 200 printable ASCII characters",
        ));
    }
    // Members are serialized in order of their names, so only the content matters.
    let text = serde_json::to_vec(items).unwrap_or_default();
    let digest = Sha256::digest(&text);
    let first = digest.first_chunk().copied().unwrap_or_default();
    Ok(IdempotencyKey {
        octets: name.as_bytes().into(),
        digest: u64::from_be_bytes(first),
        required: true,
        lifetime: None,
    })
}

use crate::accounts::{Account, Accounts};
use crate::inbox::Inbox;
use crate::item;
use crate::options::{AccountOptions, BusinessOptions};
use crate::problem::{Kind, Problem};
use crate::push::{self, PushError, Pusher};
use crate::state::AccountState;
use crate::submission;
use axum::Router;
use doors::{Core, Desk, Hub, LoginLimiter, Protocol, Refused, Routing, Verifier};
use engine::{Answer, Event};
use model::{Address, Message, MessageId, Refusal, SubmissionKey, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The doors of all business systems. Its methods must be called inside a tokio runtime.
pub struct Business {
    shared: Arc<Shared>,
    pushers: Mutex<HashMap<String, Running>>,
    client: reqwest::Client,
}

struct Running {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) options: BusinessOptions,
    pub(crate) accounts: Accounts,
    pub(crate) verifier: Verifier,
    pub(crate) limiter: Arc<LoginLimiter>,
    core: Arc<dyn Core>,
    routing: Arc<dyn Routing>,
    hub: Arc<Hub>,
    desk: Arc<Desk>,
    inbox: Arc<Inbox>,
}

/// What a fetch asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    /// Items at most.
    pub(crate) max: Option<u32>,
    /// Seconds to wait for the first.
    pub(crate) wait: Option<u32>,
    /// A batch to acknowledge first.
    pub(crate) acknowledge: Option<String>,
}

/// How long the pushes of an account that goes or changes may take to end.
const LEAVE: Duration = Duration::from_secs(10);

impl Business {
    /// No accounts yet.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up, or the system has no randomness to give.
    pub fn new(
        options: BusinessOptions,
        limiter: Arc<LoginLimiter>,
        core: Arc<dyn Core>,
        routing: Arc<dyn Routing>,
        hub: Arc<Hub>,
    ) -> Result<Self, PushError> {
        let shared = Shared {
            accounts: Accounts::default(),
            verifier: Verifier::new(options.verifications).map_err(PushError::Random)?,
            limiter,
            desk: Desk::open_for(&hub, Protocol::Http),
            inbox: Arc::default(),
            core,
            routing,
            hub,
            options,
        };
        Ok(Self { shared: Arc::new(shared), pushers: Mutex::default(), client: push::client()? })
    }

    /// Adds an account, or changes the one of that name. Its pushes begin, or go on to the new URL.
    ///
    /// # Errors
    /// When its URL is none; it has no pushes then, and everything else works.
    pub fn set_account(&self, options: AccountOptions) -> Result<(), PushError> {
        let name = options.name.clone();
        let account = self.shared.accounts.set(options, self.shared.hub.rates());
        self.stop_pushes(&name, Instant::now() + LEAVE);
        let Some(push) = account.options.push.clone() else { return Ok(()) };
        if !push.has_url() {
            return Err(PushError::Url { account: name, url: push.url });
        }
        let (stop, orders) = watch::channel(None);
        let pusher = Pusher {
            core: self.shared.core.clone(),
            hub: self.shared.hub.clone(),
            account,
            push,
            client: self.client.clone(),
        };
        let task = tokio::spawn(pusher.run(orders));
        self.pushers.lock().insert(name, Running { stop, task });
        Ok(())
    }

    /// Removes an account: its calls are refused, its pushes end. Says whether there was one.
    pub fn remove_account(&self, name: &str) -> bool {
        self.stop_pushes(name, Instant::now() + LEAVE);
        self.shared.accounts.remove(name)
    }

    fn stop_pushes(&self, name: &str, until: Instant) {
        if let Some(running) = self.pushers.lock().remove(name) {
            running.stop.send_replace(Some(until));
        }
    }

    /// Everything under HTTP. Serve it with the remote address as connection info.
    pub fn router(&self) -> Router {
        crate::json::router(self.shared.clone())
    }

    /// What accounts' calls and pushes have come to.
    #[must_use]
    pub fn states(&self) -> Vec<AccountState> {
        let show = |account: Arc<Account>| {
            let url = account.options.push.as_ref().map(|push| push.url.as_str());
            account.counts.show(&account.options.name, url)
        };
        self.shared.accounts.all().into_iter().map(show).collect()
    }

    /// Ends pushes, within the time given, and gives back what was fetched and not acknowledged. The core must go on
    /// working meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        let until = Instant::now() + within;
        let running: Vec<Running> = self.pushers.lock().drain().map(|(_, running)| running).collect();
        for one in &running {
            one.stop.send_replace(Some(until));
        }
        for one in running {
            let _ = one.task.await;
        }
        self.shared.inbox.close(&self.shared.core, &self.shared.hub).await;
        self.shared.desk.close(&self.shared.hub);
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Shared {
    async fn ask(&self, event: impl FnOnce(engine::ReplyTo) -> Event) -> Result<Answer, Problem> {
        let answer = self.desk.ask(&*self.core, self.options.patience, event).await;
        answer.map_err(|error| Problem::new(Kind::Unavailable, error.to_string()))
    }

    /// Submits messages: all are well-formed, or none is taken. One result a number, in their order.
    pub(crate) async fn submit(
        &self,
        account: &Account,
        items: Vec<Value>,
        key: Option<String>,
    ) -> Result<Value, Problem> {
        let key = key.map(|name| submission_key(&name, &items)).transpose();
        let read = key.and_then(|key| Ok((key, submission::messages(items, &account.options, wall())?)));
        let (key, messages) = read.inspect_err(|problem| self.refused(account, problem))?;
        if !account.take(messages.len(), Instant::now()) {
            let first = messages.first();
            let addresses = first
                .map(|message| (message.source.clone(), message.destination.clone()))
                .unwrap_or_default();
            let refused = Refused::by_rule(wall(), Protocol::Http, addresses, Refusal::Throttled);
            self.hub.refusals().record(account.options.peer, refused, messages.len() as u64);
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
            Answer::AcceptedMany(results) => results,
            Answer::Refused(refusal) => return Err(Problem::of(refusal)),
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

    /// Counts a submission that is refused before the engine sees it. The record names what is wrong, and quotes nothing.
    pub(crate) fn refused(&self, account: &Account, problem: &Problem) {
        let reason = match problem.errors.first() {
            Some(wrong) => format!("{} is not valid", wrong.field),
            None => problem.kind.name().replace('-', " "),
        };
        let refused = Refused {
            at: wall(),
            protocol: Protocol::Http,
            source: Address::default(),
            destination: Address::default(),
            code: problem.kind.name(),
            reason: reason.into(),
        };
        self.hub.refusals().record(account.options.peer, refused, 1);
    }

    /// The state of one message of the account's.
    pub(crate) async fn state(&self, account: &Account, id: &str) -> Result<Value, Problem> {
        let unknown = |detail: String| Problem::new(Kind::NotFound, detail);
        let id: MessageId =
            id.parse().map_err(|error: model::ParseMessageIdError| unknown(error.to_string()))?;
        let origin = account.options.peer;
        match self.ask(|reply| Event::Query { origin, id, source: None, reply }).await? {
            Answer::State(state) => Ok(json!({
                "id": id.to_string(),
                "state": item::state_name(state.state),
                "final": state.state.is_final(),
                "final_at": state.final_at.map(item::stamp),
                "error": state.error,
            })),
            Answer::Refused(refusal) => Err(Problem::of(refusal)),
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

    /// Replies and reports that wait for the account.
    pub(crate) async fn fetch(&self, account: &Arc<Account>, fetch: Fetch) -> Result<Value, Problem> {
        if let Some(batch) = fetch.acknowledge.as_deref().filter(|batch| !batch.is_empty()) {
            self.inbox.acknowledge(&self.core, &self.hub, account, batch, None).await?;
        }
        let most = usize::try_from(fetch.max.unwrap_or(100)).unwrap_or(usize::MAX);
        let wait = Duration::from_secs(u64::from(fetch.wait.unwrap_or(0)));
        let fetched = self.inbox.fetch(&self.core, &self.hub, account, most, wait).await?;
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
            id.parse::<MessageId>().map_err(|error| Problem::new(Kind::Invalid, error.to_string()))
        };
        let only: Option<Vec<MessageId>> =
            ids.map(|ids| ids.iter().map(parse).collect::<Result<_, _>>()).transpose()?;
        self.inbox.acknowledge(&self.core, &self.hub, account, batch, only.as_deref()).await
    }
}

/// The key of a call: its name, and a digest of what it asks for. The digest must be the same after a restart.
fn submission_key(name: &str, items: &[Value]) -> Result<SubmissionKey, Problem> {
    if name.is_empty() || name.len() > 200 || !name.bytes().all(|c| c.is_ascii_graphic() || c == b' ') {
        return Err(Problem::new(Kind::Invalid, "the key must be 1 to 200 printable ASCII characters"));
    }
    // Objects are written with their names in order, so that only their content counts.
    let text = serde_json::to_vec(items).unwrap_or_default();
    let digest = Sha256::digest(&text);
    let first = digest.first_chunk().copied().unwrap_or_default();
    Ok(SubmissionKey {
        octets: name.as_bytes().into(),
        digest: u64::from_be_bytes(first),
        required: true,
        lifetime: None,
    })
}

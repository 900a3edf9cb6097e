//! The calls of business systems, the same over JSON and XML-RPC.

use crate::accounts::{Account, Accounts};
use crate::answers::{FetchedBatch, MessageState, StateResult, SubmissionResult};
use crate::inbox::Inbox;
use crate::item;
use crate::options::BusinessOptions;
use crate::problem::{Problem, ProblemKind};
use crate::request::Fetch;
use crate::submission;
use engine::{EngineAnswer, Event};
use hooks::Hooks;
use model::{Address, IdempotencyKey, Message, MessageId, Refusal, Timestamp};
use parking_lot::Mutex;
use ports::{EngineClient, EventSink, LinkRegistry, PasswordVerifier, Protocol, RefusalRecord, Routing};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// State shared by all calls.
pub(crate) struct Shared {
    pub(crate) options: Mutex<BusinessOptions>,
    pub(crate) accounts: Accounts,
    pub(crate) verifier: PasswordVerifier,
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) engine_client: EngineClient,
    pub(crate) inbox: Arc<Inbox>,
    /// The plugins of front ends.
    pub(crate) plugins: Option<Arc<Hooks>>,
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
    ) -> Result<Vec<SubmissionResult>, Problem> {
        let key = key.map(|name| submission_key(&name, &items)).transpose();
        let read =
            key.and_then(|key| Ok((key, submission::messages(items, &account.options, Timestamp::now())?)));
        let (key, messages) = read.inspect_err(|problem| self.refused(account, problem))?;
        let numbers: Vec<String> =
            messages.iter().map(|message| message.destination.text().into_owned()).collect();
        let results = self.accept(account, messages, key, |_| ()).await?;
        if let (false, Some(Err(refusal))) = (results.iter().any(Result::is_ok), results.first()) {
            return Err(Problem::of(*refusal));
        }
        let shown = numbers.into_iter().zip(results).map(|(to, result)| match result {
            Ok(id) => SubmissionResult::Accepted { to, id: id.to_string() },
            Err(refusal) => SubmissionResult::refused(to, Problem::of(refusal)),
        });
        Ok(shown.collect())
    }

    /// Routes and stores messages of the account, if its rate allows. `change` is called when they are routed. Returns one result
    /// per message; accepted ones are durable.
    pub(crate) async fn accept(
        &self,
        account: &Account,
        mut messages: Vec<Message>,
        key: Option<IdempotencyKey>,
        change: impl FnOnce(&mut [Message]),
    ) -> Result<Vec<Result<MessageId, Refusal>>, Problem> {
        if !account.take(messages.len(), Instant::now()) {
            let first = messages.first();
            let addresses = first
                .map(|message| (message.source.clone(), message.destination.clone()))
                .unwrap_or_default();
            let refused = RefusalRecord::new(Timestamp::now(), Protocol::Http, addresses, Refusal::Throttled);
            self.registry.refusals().record(account.options.peer, refused, messages.len() as u64);
            return Err(Problem::of(Refusal::Throttled));
        }
        self.routing.route_many(&mut messages.iter_mut().collect::<Vec<&mut Message>>());
        change(&mut messages);
        let answer = self.ask(|reply| Event::AcceptMany { messages, shared_id: false, key, reply }).await?;
        let results = match answer {
            EngineAnswer::AcceptedMany(results) => results,
            EngineAnswer::Refused(refusal) => return Err(Problem::of(refusal)),
            _ => return Err(Problem::of(Refusal::Internal)),
        };
        let accepted = results.iter().filter(|result| result.is_ok()).count();
        account.counts.accepted.fetch_add(accepted as u64, Relaxed);
        Ok(results)
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
    pub(crate) async fn state(&self, account: &Account, id: &str) -> Result<MessageState, Problem> {
        let unknown = |detail: String| Problem::new(ProblemKind::NotFound, detail);
        let id: MessageId =
            id.parse().map_err(|error: model::ParseMessageIdError| unknown(error.to_string()))?;
        let origin = account.options.peer;
        match self.ask(|reply| Event::Query { origin, id, source: None, reply }).await? {
            EngineAnswer::State(state) => Ok(MessageState {
                id: id.to_string(),
                state: state.state.into(),
                is_final: state.state.is_final(),
                final_at: state.final_at.map(item::stamp),
                error: state.error,
            }),
            EngineAnswer::Refused(refusal) => Err(Problem::of(refusal)),
            _ => Err(Problem::of(Refusal::Internal)),
        }
    }

    /// The states of several messages.
    pub(crate) async fn states(&self, account: &Account, ids: Vec<String>) -> Vec<StateResult> {
        let mut states = Vec::new();
        for id in ids.into_iter().take(account.options.batch) {
            states.push(match self.state(account, &id).await {
                Ok(state) => StateResult::Known(state),
                Err(problem) => StateResult::unknown(id, problem),
            });
        }
        states
    }

    /// Fetches MO messages and DLRs that wait for the account.
    pub(crate) async fn fetch(&self, account: &Arc<Account>, fetch: Fetch) -> Result<FetchedBatch, Problem> {
        if let Some(batch) = fetch.acknowledge.as_deref().filter(|batch| !batch.is_empty()) {
            self.inbox.acknowledge(account, batch, None).await?;
        }
        let most = usize::try_from(fetch.max.unwrap_or(100)).unwrap_or(usize::MAX);
        let wait = Duration::from_secs(u64::from(fetch.wait.unwrap_or(0)));
        self.inbox.fetch(&self.core, &self.registry, account, most, wait).await
    }

    /// Acknowledges a batch, or some of its items.
    pub(crate) async fn acknowledge(
        &self,
        account: &Account,
        batch: &str,
        ids: Option<Vec<String>>,
    ) -> Result<usize, Problem> {
        let parse = |id: String| {
            id.parse::<MessageId>().map_err(|error| Problem::new(ProblemKind::Invalid, error.to_string()))
        };
        let only: Option<Vec<MessageId>> =
            ids.map(|ids| ids.into_iter().map(parse).collect::<Result<_, _>>()).transpose()?;
        self.inbox.acknowledge(account, batch, only.as_deref()).await
    }
}

/// The idempotency key of a call, with a digest of its content. The digest must be stable across restarts.
pub(crate) fn submission_key(name: &str, items: &impl serde::Serialize) -> Result<IdempotencyKey, Problem> {
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

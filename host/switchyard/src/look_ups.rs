//! Questions about messages that are not in memory: from the store, and what is not there from the archive.
//!
//! They have a thread and tasks of their own, so that nothing that moves messages waits for a data base. They are bounded
//! in number, by account, and in time.

use crate::archiving::{History, receipt_state};
use crate::vital;
use crossbeam_channel::{Receiver, Sender, unbounded};
use doors::Hub;
use engine::{Answer, Command, QueriedState, ReplyTo};
use model::{Address, Message, MessageId, PeerId, ReceiptState, Refusal};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::Store;
use tokio::sync::Semaphore;

/// Questions of one account that wait for the archive; more are refused as over its rate.
const MOST_OF_ACCOUNT: usize = 100;

/// Questions to the archive at a time, and those of one account.
const AT_A_TIME: usize = 8;
/// See [`AT_A_TIME`].
const OF_ACCOUNT_AT_A_TIME: usize = 2;

/// How long a question waits for the archive, its turn included.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// A question about a message.
pub(crate) struct LookUp {
    pub(crate) origin: PeerId,
    pub(crate) id: MessageId,
    /// The source that must match, unless `None`.
    pub(crate) source: Option<Address>,
    /// What to answer if it is found: `None` for its state.
    pub(crate) too_late: Option<Refusal>,
    pub(crate) to: ReplyTo,
}

impl LookUp {
    /// The answer, with the states of all messages that were found, by growing id.
    fn answer(&self, states: impl Iterator<Item = QueriedState>) -> Answer {
        match (together(self.id, states), self.too_late) {
            (None, _) => Answer::Refused(Refusal::UnknownMessage),
            (Some(_), Some(refusal)) => Answer::Refused(refusal),
            (Some(state), None) => Answer::State(state),
        }
    }
}

/// The state of finished messages that share an id: delivered if all were delivered, otherwise that of the first that failed, or
/// else of the first whose delivery nobody has confirmed; final when the last of them was. `None` for no message.
fn together(id: MessageId, states: impl Iterator<Item = QueriedState>) -> Option<QueriedState> {
    let severity = |state: ReceiptState| match state {
        ReceiptState::Delivered => 0,
        ReceiptState::Accepted => 1,
        _ => 2,
    };
    states
        .reduce(|worst, state| {
            let final_at = worst.final_at.max(state.final_at);
            let worse = severity(state.state) > severity(worst.state);
            QueriedState { final_at, ..if worse { state } else { worst } }
        })
        .map(|state| QueriedState { id, ..state })
}

/// A finished message that the store has.
struct InStore {
    state: QueriedState,
    /// The id that was asked for is that of a submission to several destinations, of which it is part.
    shared: bool,
}

/// The questions of an account that wait for the archive.
struct Unanswered {
    count: usize,
    turns: Arc<Semaphore>,
}

/// The way to the thread.
pub(crate) struct LookUps(Sender<LookUp>);

/// What a question needs to be answered.
struct Desk {
    store: Arc<Store>,
    hub: Arc<Hub>,
    history: Option<History>,
    turns: Semaphore,
    unanswered: Mutex<HashMap<PeerId, Unanswered>>,
}

impl LookUps {
    /// Starts the thread; it ends with the last [`LookUps`].
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(
        store: Arc<Store>,
        hub: Arc<Hub>,
        history: Option<History>,
    ) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (questions, to_answer) = unbounded();
        let turns = Semaphore::new(AT_A_TIME);
        let desk = Arc::new(Desk { store, hub, history, turns, unanswered: Mutex::default() });
        let thread = vital::spawn("look-up", move || desk.run(&to_answer))?;
        Ok((Self(questions), thread))
    }

    /// Has a question answered.
    pub(crate) fn ask(&self, question: LookUp) {
        // The thread ends after everybody who asks.
        let _ = self.0.send(question);
    }
}

impl Desk {
    fn run(self: Arc<Self>, questions: &Receiver<LookUp>) {
        for question in questions {
            // The store first: what leaves it meanwhile is in the archive already.
            let in_store = match self.in_store(&question) {
                Ok(states) => states,
                Err(refusal) => {
                    self.tell(question.to, Answer::Refused(refusal));
                    continue;
                }
            };
            let complete =
                in_store.get(&question.id).filter(|state| !state.shared || question.too_late.is_some());
            let history = self.history.as_ref().filter(|_| complete.is_none());
            let Some(history) = history else {
                self.tell(question.to, question.answer(in_store.into_values().map(|found| found.state)));
                continue;
            };
            let Some(turns) = self.begin(question.origin) else {
                self.tell(question.to, Answer::Refused(Refusal::Throttled));
                continue;
            };
            let (desk, history) = (self.clone(), history.clone());
            let runtime = history.runtime.clone();
            runtime.spawn(async move {
                let answer = desk.in_archive(&history, &turns, &question, in_store).await;
                desk.end(question.origin);
                desk.tell(question.to, answer);
            });
        }
    }

    /// The finished messages in the store that the question is about, by id.
    fn in_store(&self, question: &LookUp) -> Result<BTreeMap<MessageId, InStore>, Refusal> {
        let found = self.store.finished_of(question.id).map_err(|error| {
            tracing::error!(%error, "reading a finished message failed");
            Refusal::Internal
        })?;
        let is_asked_for = |message: &Message| {
            let same_source =
                question.source.as_ref().is_none_or(|source| source.value == message.source.value);
            message.origin == question.origin && same_source
        };
        if found.iter().any(|(message, _)| !is_asked_for(message)) {
            return Err(Refusal::UnknownMessage);
        }
        let states = found.into_iter().map(|(message, ended)| {
            let state = QueriedState {
                id: message.id,
                state: receipt_state(ended.state),
                final_at: Some(ended.at),
                error: u8::try_from(ended.error).unwrap_or(u8::MAX),
            };
            (message.id, InStore { state, shared: message.submission == Some(question.id) })
        });
        Ok(states.collect())
    }

    async fn in_archive(
        &self,
        history: &History,
        turns: &Semaphore,
        question: &LookUp,
        in_store: BTreeMap<MessageId, InStore>,
    ) -> Answer {
        let shared = in_store.values().any(|found| found.shared);
        let asked = async {
            let _of_account = turns.acquire().await.ok();
            let _of_all = self.turns.acquire().await.ok();
            history.states(question.origin, (question.id, shared), question.source.as_ref()).await
        };
        match tokio::time::timeout(ARCHIVE_TIMEOUT, asked).await {
            Ok(Ok(mut states)) => {
                states.extend(in_store.into_iter().map(|(id, found)| (id, found.state)));
                question.answer(states.into_values())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the archive cannot be read");
                Answer::Refused(Refusal::Internal)
            }
            Err(_) => {
                tracing::warn!(seconds = ARCHIVE_TIMEOUT.as_secs(), "the archive does not answer");
                Answer::Refused(Refusal::Internal)
            }
        }
    }

    /// Counts a question of an account and gives the account's turns; nothing when it has too many questions.
    fn begin(&self, account: PeerId) -> Option<Arc<Semaphore>> {
        let mut unanswered = self.unanswered.lock();
        let account = unanswered.entry(account).or_insert_with(|| Unanswered {
            count: 0,
            turns: Arc::new(Semaphore::new(OF_ACCOUNT_AT_A_TIME)),
        });
        let room = account.count < MOST_OF_ACCOUNT;
        account.count += usize::from(room);
        room.then(|| account.turns.clone())
    }

    fn end(&self, account: PeerId) {
        let mut unanswered = self.unanswered.lock();
        if let Some(known) = unanswered.get_mut(&account) {
            known.count -= 1;
            if known.count == 0 {
                unanswered.remove(&account);
            }
        }
    }

    fn tell(&self, to: ReplyTo, answer: Answer) {
        self.hub.dispatch(vec![Command::Answer { to, answer }]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    fn state(id: u64, state: ReceiptState, at: u64, error: u8) -> QueriedState {
        QueriedState { id: MessageId(id), state, final_at: Some(Timestamp(at)), error }
    }

    #[test]
    fn a_submission_is_delivered_when_every_destination_is() {
        use ReceiptState::{Accepted, Delivered, Expired, Undeliverable};
        let of = |states: &[QueriedState]| together(MessageId(10), states.iter().cloned());
        assert_eq!(of(&[]), None);
        let all = [state(10, Delivered, 5, 0), state(11, Delivered, 9, 0), state(12, Delivered, 7, 0)];
        assert_eq!(of(&all), Some(state(10, Delivered, 9, 0)));
        let failed = [
            state(10, Delivered, 9, 0),
            state(11, Accepted, 5, 0),
            state(12, Undeliverable, 6, 3),
            state(13, Expired, 7, 4),
        ];
        assert_eq!(of(&failed), Some(state(10, Undeliverable, 9, 3)));
        assert_eq!(of(&failed[..2]), Some(state(10, Accepted, 9, 0)));
    }
}

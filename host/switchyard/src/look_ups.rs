//! Questions about messages that are not in memory: from the store, and what is not there from the archive.
//!
//! They have a thread and tasks of their own, so that nothing that moves messages waits for a data base. They are bounded
//! in number, by account, and in time.

use crate::archiving::{History, receipt_state};
use crate::vital;
use crossbeam_channel::{Receiver, Sender, unbounded};
use doors::Hub;
use engine::{Answer, Command, QueriedState, ReplyTo};
use model::{Address, MessageId, PeerId, Refusal};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Found, Store};
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
            if let Some(answer) = self.from_store(&question) {
                self.tell(question.to, answer);
                continue;
            }
            let Some(history) = &self.history else {
                self.tell(question.to, Answer::Refused(Refusal::UnknownMessage));
                continue;
            };
            let Some(turns) = self.begin(question.origin) else {
                self.tell(question.to, Answer::Refused(Refusal::Throttled));
                continue;
            };
            let (desk, history) = (self.clone(), history.clone());
            let runtime = history.runtime.clone();
            runtime.spawn(async move {
                let answer = desk.from_archive(&history, &turns, &question).await;
                desk.end(question.origin);
                desk.tell(question.to, answer);
            });
        }
    }

    /// Nothing where the message is not in the store.
    fn from_store(&self, question: &LookUp) -> Option<Answer> {
        let (message, ended) = match self.store.find(question.id) {
            Ok(Some(Found::Finished(message, ended))) => (message, ended),
            // It ended while the question was on its way, it is in the archive, or it never was.
            Ok(_) => return None,
            Err(error) => {
                tracing::error!(%error, "reading a finished message failed");
                return Some(Answer::Refused(Refusal::Internal));
            }
        };
        let same_source = question.source.as_ref().is_none_or(|source| source.value == message.source.value);
        if message.origin != question.origin || !same_source {
            return Some(Answer::Refused(Refusal::UnknownMessage));
        }
        let state = QueriedState {
            id: question.id,
            state: receipt_state(ended.state),
            final_at: Some(ended.at),
            error: u8::try_from(ended.error).unwrap_or(u8::MAX),
        };
        Some(question.too_late.map_or(Answer::State(state), Answer::Refused))
    }

    async fn from_archive(&self, history: &History, turns: &Semaphore, question: &LookUp) -> Answer {
        let asked = async {
            let _of_account = turns.acquire().await.ok();
            let _of_all = self.turns.acquire().await.ok();
            history.state(question.origin, question.id, question.source.as_ref()).await
        };
        match tokio::time::timeout(ARCHIVE_TIMEOUT, asked).await {
            Ok(Ok(Some(state))) => question.too_late.map_or(Answer::State(state), Answer::Refused),
            Ok(Ok(None)) => Answer::Refused(Refusal::UnknownMessage),
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

//! Shadow candidates: compares a candidate's answers with the live chain's.

use crate::chain::{Chain, ChainOutcome};
use crate::fault_examples::{LazyMessageId, SharedMessageId};
use crate::fault_reporter::FaultReporter;
use crate::host_call_log::HostCallLog;
use crate::worlds::World;
use api::{AnswerDifference, Comparison};
use arc_swap::ArcSwap;
use model::{Directory, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Maximum number of queued questions to a shadow candidate. Further questions are skipped and counted.
const QUEUE_LENGTH: usize = 4_096;

/// Maximum number of difference groups, and of samples in each.
const MAX_GROUPS: usize = 200;
const MAX_SAMPLES: usize = 5;

struct ShadowQuestion<W: World> {
    question: W::Owned,
    now: Timestamp,
    call_log: Option<Box<[u8]>>,
    message_id: SharedMessageId,
    live: Result<W::Answer, String>,
}

/// The answer for comparison, or the reason why there is none: undecided, or a fault.
pub(crate) fn comparable_answer<W: World>(outcome: &ChainOutcome<W>) -> Result<W::Answer, String> {
    match outcome {
        ChainOutcome::Decided(answer, _) => Ok(answer.clone()),
        ChainOutcome::Undecided { fault: None, answer: Some(answer), .. } if W::PASSING_IS_AN_ANSWER => {
            Ok(answer.clone())
        }
        ChainOutcome::Undecided { fault: None, .. } => Err(UNDECIDED.to_owned()),
        ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
            Err(format!("fault ({})", fault.kind.name()))
        }
    }
}

const UNDECIDED: &str = "nobody decides";

/// A shadow candidate. It is asked on its own thread, so that the live traffic does not wait for it.
pub(crate) struct Shadow<W: World> {
    queue: SyncSender<ShadowQuestion<W>>,
    counts: Arc<ComparisonCounts>,
    stopped: Arc<AtomicBool>,
}

impl<W: World> Drop for Shadow<W> {
    /// Queued questions are dropped.
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
    }
}

/// Count and samples (with message ids) for each pair of live and candidate answer.
type DifferenceGroups = BTreeMap<(String, String), (u64, Vec<(String, SharedMessageId)>)>;

#[derive(Default)]
struct ComparisonCounts {
    compared: AtomicU64,
    same: AtomicU64,
    skipped: AtomicU64,
    groups: Mutex<DifferenceGroups>,
}

impl<W: World> Shadow<W> {
    pub(crate) fn start(
        chain: Chain<W>,
        directory: Arc<ArcSwap<Directory>>,
        reporter: FaultReporter,
    ) -> std::io::Result<Self> {
        let (queue, questions) = sync_channel::<ShadowQuestion<W>>(QUEUE_LENGTH);
        let counts = Arc::new(ComparisonCounts::default());
        let thread_counts = counts.clone();
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = stopped.clone();
        // The thread ends when the candidate is dropped, and the queue with it.
        std::thread::Builder::new().name(format!("shadow-{}", W::HOOK.name())).spawn(move || {
            crate::compile::lower_priority();
            for item in questions {
                if is_stopped.load(Relaxed) {
                    return;
                }
                let question = W::borrow_question(&item.question);
                // For the same host calls, the candidate sees the same answers as the live chain.
                let mut call_log = item.call_log.as_deref().map_or(HostCallLog::Off, HostCallLog::for_shadow);
                let message_id = LazyMessageId::resume(Some(item.message_id.clone()));
                let answer =
                    comparable_answer(&chain.ask(question, item.now, &mut call_log, &reporter, &message_id));
                thread_counts.compare::<W>(
                    &item.live,
                    &answer,
                    (question, item.message_id),
                    &directory.load(),
                );
            }
        })?;
        Ok(Self { queue, counts, stopped })
    }

    /// Queues a question for the candidate. Skips it if the queue is full.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        call_log: &HostCallLog,
        message_id: &LazyMessageId,
        live: Result<W::Answer, String>,
    ) {
        let message_id = message_id.shared(W::message_id(question));
        let item = ShadowQuestion {
            question: W::to_owned_question(question),
            now,
            call_log: call_log.partial_record(),
            message_id,
            live,
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(item) {
            self.counts.skipped.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn comparison(&self) -> Comparison {
        let counts = &self.counts;
        let (compared, same) = (counts.compared.load(Relaxed), counts.same.load(Relaxed));
        let mut differences: Vec<AnswerDifference> = counts
            .groups
            .lock()
            .iter()
            .map(|((from, to), (count, samples))| AnswerDifference {
                from: from.clone(),
                to: to.clone(),
                count: *count,
                samples: samples.iter().map(|(words, _)| words.clone()).collect(),
                messages: samples
                    .iter()
                    .map(|(_, shared_id)| shared_id.get().map(ToString::to_string))
                    .collect(),
            })
            .collect();
        differences.sort_by_key(|difference| std::cmp::Reverse(difference.count));
        Comparison {
            compared,
            same,
            different: compared.saturating_sub(same),
            skipped: counts.skipped.load(Relaxed),
            differences,
        }
    }
}

impl ComparisonCounts {
    fn compare<W: World>(
        &self,
        live: &Result<W::Answer, String>,
        candidate: &Result<W::Answer, String>,
        (question, message_id): (W::Question<'_>, SharedMessageId),
        directory: &Directory,
    ) {
        let same = match (live, candidate) {
            (Ok(one), Ok(other)) => W::is_same_answer(one, other),
            // Two faults do not count as the same answer.
            (Err(one), Err(other)) => one == UNDECIDED && other == UNDECIDED,
            _ => false,
        };
        if same {
            self.same.fetch_add(1, Relaxed);
        } else {
            let describe = |answer: &Result<W::Answer, String>| match answer {
                Ok(answer) => W::describe_answer(answer, directory),
                Err(why) => why.clone(),
            };
            let (from, to) = (describe(live), describe(candidate));
            let mut groups = self.groups.lock();
            let has_room = groups.len() < MAX_GROUPS;
            let key = if has_room || groups.contains_key(&(from.clone(), to.clone())) {
                (from, to)
            } else {
                ("other".to_owned(), "other".to_owned())
            };
            let (count, samples) = groups.entry(key).or_default();
            *count += 1;
            if samples.len() < MAX_SAMPLES {
                samples.push((W::describe_question(question, directory), message_id));
            }
        }
        self.compared.fetch_add(1, Relaxed);
    }
}

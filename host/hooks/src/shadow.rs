//! What a candidate would have answered, beside what was answered.

use crate::chain::{Chain, Ended};
use crate::examples::{Mark, Met};
use crate::seen::Seen;
use crate::steward::Alarm;
use crate::worlds::World;
use arc_swap::ArcSwap;
use model::{Directory, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

/// Questions that may wait for a candidate in shadow; what is beyond is not compared, and counted.
const WAITING: usize = 4_096;

/// Kinds of difference that are told apart, and samples of each.
const GROUPS: usize = 200;
const SAMPLES: usize = 5;

/// Questions that differed in the same way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What was answered.
    pub from: String,
    /// What the candidate would have answered.
    pub to: String,
    /// How often.
    pub count: u64,
    /// Some of the questions, numbers hidden.
    pub samples: Vec<String>,
    /// The ids of their messages, in the same order; `None` where there is no one message, or it was not accepted.
    pub messages: Vec<Option<String>>,
}

/// How a candidate in shadow compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Questions that both were asked.
    pub compared: u64,
    /// Of these, with the same answer.
    pub same: u64,
    /// With another.
    pub different: u64,
    /// Questions that were not compared because the candidate was too slow.
    pub skipped: u64,
    /// What differed, most frequent first.
    pub differences: Vec<Difference>,
}

struct Item<W: World> {
    question: W::Owned,
    now: Timestamp,
    seen: Option<Box<[u8]>>,
    met: Mark,
    live: Result<W::Answer, String>,
}

/// An answer; without one, why in words: nobody decided, or a fault. To be compared.
pub(crate) fn answer_of<W: World>(ended: &Ended<W>) -> Result<W::Answer, String> {
    match ended {
        Ended::Decided(answer, _) => Ok(answer.clone()),
        Ended::Nobody { fault: None, .. } => Err(NOBODY.to_owned()),
        Ended::Fault(fault, _) | Ended::Nobody { fault: Some(fault), .. } => {
            Err(format!("fault ({})", fault.kind.name()))
        }
    }
}

const NOBODY: &str = "nobody decides";

/// A candidate in shadow: a thread of its own asks it, so that nobody waits for it.
pub(crate) struct Shadow<W: World> {
    queue: SyncSender<Item<W>>,
    compared: Arc<Compared>,
    ended: Arc<AtomicBool>,
}

impl<W: World> Drop for Shadow<W> {
    /// What still waits is not asked any more.
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
    }
}

/// What was answered and what would have been; how often, and samples with their messages.
type Groups = BTreeMap<(String, String), (u64, Vec<(String, Mark)>)>;

#[derive(Default)]
struct Compared {
    compared: AtomicU64,
    same: AtomicU64,
    skipped: AtomicU64,
    groups: Mutex<Groups>,
}

impl<W: World> Shadow<W> {
    pub(crate) fn start(
        chain: Chain<W>,
        directory: Arc<ArcSwap<Directory>>,
        alarm: Alarm,
    ) -> std::io::Result<Self> {
        let (queue, questions) = sync_channel::<Item<W>>(WAITING);
        let compared = Arc::new(Compared::default());
        let counts = compared.clone();
        let ended = Arc::new(AtomicBool::new(false));
        let over = ended.clone();
        // It ends when the candidate is dropped, and the queue with it.
        std::thread::Builder::new().name(format!("shadow-{}", W::HOOK.name())).spawn(move || {
            crate::compile::give_way();
            for item in questions {
                if over.load(Relaxed) {
                    return;
                }
                let question = W::lend(&item.question);
                // What the live chain saw is what the candidate is to see, where it asks the same.
                let mut seen = item.seen.as_deref().map_or(Seen::Off, Seen::beside);
                let met = Met::again(Some(item.met.clone()));
                let answer = answer_of(&chain.ask(question, item.now, &mut seen, &alarm, &met));
                counts.compare::<W>(&item.live, &answer, (question, item.met), &directory.load());
            }
        })?;
        Ok(Self { queue, compared, ended })
    }

    /// Gives the candidate a question, unless too many wait already.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        seen: &Seen,
        met: &Met,
        live: Result<W::Answer, String>,
    ) {
        let met = met.mark(W::message(question));
        let item = Item { question: W::own(question), now, seen: seen.so_far(), met, live };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(item) {
            self.compared.skipped.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn comparison(&self) -> Comparison {
        let counts = &self.compared;
        let (compared, same) = (counts.compared.load(Relaxed), counts.same.load(Relaxed));
        let mut differences: Vec<Difference> = counts
            .groups
            .lock()
            .iter()
            .map(|((from, to), (count, samples))| Difference {
                from: from.clone(),
                to: to.clone(),
                count: *count,
                samples: samples.iter().map(|(words, _)| words.clone()).collect(),
                messages: samples.iter().map(|(_, mark)| mark.get().map(ToString::to_string)).collect(),
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

impl Compared {
    fn compare<W: World>(
        &self,
        live: &Result<W::Answer, String>,
        candidate: &Result<W::Answer, String>,
        (question, met): (W::Question<'_>, Mark),
        directory: &Directory,
    ) {
        let same = match (live, candidate) {
            (Ok(one), Ok(other)) => W::same(one, other),
            // Two faults are no agreement.
            (Err(one), Err(other)) => one == NOBODY && other == NOBODY,
            _ => false,
        };
        if same {
            self.same.fetch_add(1, Relaxed);
        } else {
            let words = |answer: &Result<W::Answer, String>| match answer {
                Ok(answer) => W::words(answer, directory),
                Err(why) => why.clone(),
            };
            let (from, to) = (words(live), words(candidate));
            let mut groups = self.groups.lock();
            let room = groups.len() < GROUPS;
            let key = if room || groups.contains_key(&(from.clone(), to.clone())) {
                (from, to)
            } else {
                ("other".to_owned(), "other".to_owned())
            };
            let (count, samples) = groups.entry(key).or_default();
            *count += 1;
            if samples.len() < SAMPLES {
                samples.push((W::sample(question, directory), met));
            }
        }
        self.compared.fetch_add(1, Relaxed);
    }
}

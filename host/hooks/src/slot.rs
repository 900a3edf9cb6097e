//! What serves one hook: the live chain, a candidate beside it, and how they came to be there.

use crate::HookError;
use crate::binding::{Binding, BindingRecord, CandidateRecord, HookEvent, How, OnFault, Trying};
use crate::capabilities::shadow_space;
use crate::chain::{Chain, Ended};
use crate::counts::Counts;
use crate::examples::{FaultyVersion, Met};
use crate::generation::{Generation, Purpose, Surroundings};
use crate::library::{Library, write_whole};
use crate::reference::{self, Conditions, UnknownReference};
use crate::runtime::Runtime;
use crate::seen::Seen;
use crate::shadow::{Comparison, Shadow, answer_of};
use crate::steward::Alarm;
use crate::world;
use crate::worlds::World;
use arc_swap::ArcSwap;
use model::{DecidedBy, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How many chains and events are kept.
const HISTORY: usize = 200;

/// The kind of event of what is faulty and serves on, and how long nothing more is told of it.
const FAULTY: &str = "faulty";
const BETWEEN_FAULTY: Duration = Duration::from_secs(60);

/// What a slot needs to bring bindings to life.
pub(crate) struct Means {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) library: Arc<Library>,
    pub(crate) around: Surroundings,
    pub(crate) alarm: Alarm,
}

struct Live<W: World> {
    record: BindingRecord,
    chain: Chain<W>,
    candidate: Option<Arc<Candidate<W>>>,
}

struct Candidate<W: World> {
    record: CandidateRecord,
    chain: Chain<W>,
    shadow: Option<Shadow<W>>,
    /// Questions that a canary was given, and those it failed and the live chain answered.
    asked: AtomicU64,
    failed: AtomicU64,
    /// Questions that went past it.
    passed: AtomicU64,
}

/// What is written down of a slot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Book {
    records: Vec<BindingRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate: Option<CandidateRecord>,
    #[serde(default)]
    events: Vec<HookEvent>,
}

/// A candidate as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CandidateState {
    /// What it is.
    #[serde(flatten)]
    pub record: CandidateRecord,
    /// Counts of its plugins.
    pub counts: Vec<PluginCounts>,
    /// Questions that a canary was given.
    pub asked: u64,
    /// Of these, those that it failed and the live chain answered.
    pub failed: u64,
    /// Questions that went past a canary.
    pub passed: u64,
    /// Of a candidate in shadow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// Counts of one plugin version at work.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PluginCounts {
    /// The plugin and its version.
    #[serde(flatten)]
    pub by: Arc<DecidedBy>,
    /// Whether it is the live one.
    pub live: bool,
    /// Its counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A hook as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookState {
    /// The hook.
    pub hook: &'static str,
    /// What is live; a serial of 0 and an empty chain when nothing ever was.
    pub live: BindingRecord,
    /// Counts of the live plugins.
    pub counts: Vec<PluginCounts>,
    /// What is on trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CandidateState>,
    /// What happened, newest first.
    pub events: Vec<HookEvent>,
    /// Versions that have failed since the start, the last one first.
    pub faults: Vec<FaultyVersion>,
    /// What the live policies name and the appliance does not know now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownReference>,
}

/// One hook.
pub(crate) struct Slot<W: World> {
    means: Arc<Means>,
    path: PathBuf,
    live: ArcSwap<Live<W>>,
    book: Mutex<Book>,
    /// The chain that was live before: still warm, for a quick way back.
    before: Mutex<Option<(Vec<Binding>, Chain<W>)>>,
    /// Held while bindings change, so that each change starts from what the one before has left.
    changing: Mutex<()>,
}

impl<W: World> Slot<W> {
    /// Brings back what was bound.
    pub(crate) fn open(means: Arc<Means>) -> Result<Self, HookError> {
        let path = means.library.bindings(W::HOOK);
        let book: Book = match std::fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets)
                .or_else(|error| {
                    // Versions before 0.2 wrote the list of chains alone.
                    let records = serde_json::from_slice(&octets).map_err(|_| error)?;
                    Ok(Book { records, ..Book::default() })
                })
                .map_err(|error: serde_json::Error| HookError::Storage {
                    path: path.clone(),
                    source: error.into(),
                })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Book::default(),
            Err(source) => return Err(HookError::Storage { path, source }),
        };
        let nothing = BindingRecord {
            serial: 0,
            since: Timestamp(0),
            chain: Vec::new(),
            how: How::Unbound,
            condemned: None,
        };
        let slot = Self {
            means,
            path,
            live: ArcSwap::from_pointee(Live {
                record: book.records.last().cloned().unwrap_or(nothing),
                chain: Chain(Vec::new()),
                candidate: None,
            }),
            book: Mutex::new(book),
            before: Mutex::default(),
            changing: Mutex::default(),
        };
        let record = slot.live.load().record.clone();
        if !record.chain.is_empty() {
            let chain = slot.start(&record.chain, &[], Purpose::ServeAnyhow)?;
            slot.live.store(Arc::new(Live { record, chain, candidate: None }));
        }
        let candidate = slot.book.lock().candidate.clone();
        if let Some(record) = candidate
            && let Err(error) =
                slot.candidate(record, Purpose::ServeAnyhow).map(|candidate| slot.set_candidate(candidate))
        {
            // The live chain matters more than what was on trial.
            let why = format!("it does not start any more: {error}");
            let done = slot.write(|book| {
                book.candidate = None;
                add_event(book, crate::hooks::wall(), "candidate-faulty", why.clone());
            });
            log_outcome::<W>("candidate taken back", &why, done);
        }
        Ok(slot)
    }

    /// Starts generations for bindings; those that run already with the same binding are taken as they are.
    fn start(
        &self,
        bindings: &[Binding],
        running: &[Arc<Generation<W>>],
        purpose: Purpose,
    ) -> Result<Chain<W>, HookError> {
        if bindings.is_empty() {
            return Err(HookError::EmptyChain);
        }
        if bindings.len() > 1 && W::HOOK != model::Hook::Router {
            return Err(HookError::OneOnly(W::HOOK.name()));
        }
        let means = &self.means;
        let generations = bindings.iter().map(|binding| {
            if let OnFault::Peer(peer) = &binding.on_fault
                && means.around.directory.load().id(peer).is_none()
            {
                return Err(HookError::UnknownPeer(peer.clone()));
            }
            if let Some(running) = running.iter().find(|generation| generation.serves(binding)) {
                return Ok(running.clone());
            }
            let kept = means.library.compiled(
                &means.runtime.engine,
                &binding.plugin,
                &binding.version,
                &binding.sha256,
            )?;
            if kept.hook != W::HOOK {
                return Err(HookError::WrongHook {
                    plugin: binding.plugin.clone(),
                    version: binding.version.clone(),
                    serves: kept.hook.name(),
                    wanted: W::HOOK.name(),
                });
            }
            let around = means.around.clone();
            Generation::start(&means.runtime, &kept, binding.clone(), around, purpose).map(Arc::new)
        });
        Ok(Chain(generations.collect::<Result<Vec<_>, _>>()?))
    }

    /// Refuses plugins that could only fail: whose policies name what does not exist, or that import what is not granted.
    fn check(&self, chain: &Chain<W>) -> Result<(), HookError> {
        for one in &chain.0 {
            let (plugin, version) = (one.by.plugin.clone(), one.by.version.clone());
            let unknown = one.unknown();
            if !unknown.is_empty() {
                return Err(HookError::UnknownReferences { plugin, names: reference::listed(&unknown) });
            }
            let engine = &self.means.runtime.engine;
            let kept = self.means.library.compiled(engine, &plugin, &version, &one.binding.sha256)?;
            let imports = one.binding.grants.missing(&world::imports(engine, &kept.component));
            if !imports.is_empty() {
                return Err(HookError::NotGranted { plugin, version, imports: imports.join(" and ") });
            }
        }
        Ok(())
    }

    /// The bindings, each with what its component is by all of its digest.
    fn pinned(&self, mut bindings: Vec<Binding>) -> Result<Vec<Binding>, HookError> {
        for binding in &mut bindings {
            binding.sha256 = self.means.library.sha256(&binding.plugin, &binding.version)?;
        }
        Ok(bindings)
    }

    fn purpose(conditions: Conditions) -> Purpose {
        if conditions.force { Purpose::ServeAnyhow } else { Purpose::Serve }
    }

    /// A chain that serves nobody: for replays and harnesses.
    pub(crate) fn trial(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        self.start(bindings, &[], Purpose::Aside)
    }

    fn expect(&self, expected: Option<u64>) -> Result<(), HookError> {
        let found = self.live.load().record.serial;
        match expected {
            Some(expected) if expected != found => {
                Err(HookError::Changed { hook: W::HOOK.name(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Makes a chain live: compile, instantiate, configure, try out, and only then one exchange of a pointer. Calls in
    /// flight end on the old chain. What fails changes nothing. With `expected`, only while the newest change has that
    /// serial.
    pub(crate) fn activate(
        &self,
        now: Timestamp,
        bindings: Vec<Binding>,
        conditions: Conditions,
    ) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        self.expect(conditions.expected)?;
        let bindings = self.pinned(bindings)?;
        let chain = self.start(&bindings, &[], Self::purpose(conditions))?;
        if !conditions.force {
            self.check(&chain)?;
        }
        chain.warm_as(&self.live.load().chain);
        self.exchange(now, bindings, chain, How::Activated, None)
    }

    /// Serves the hook with nothing.
    pub(crate) fn unbind(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        self.exchange(now, Vec::new(), Chain(Vec::new()), How::Unbound, None)
    }

    /// Writes the change down, and makes it. `condemned` says why what is live now is taken back by itself.
    fn exchange(
        &self,
        now: Timestamp,
        bindings: Vec<Binding>,
        chain: Chain<W>,
        how: How,
        condemned: Option<String>,
    ) -> Result<BindingRecord, HookError> {
        let live = self.live.load_full();
        let record = BindingRecord {
            serial: live.record.serial + 1,
            since: now,
            chain: bindings,
            how,
            condemned: None,
        };
        let names: Vec<String> =
            record.chain.iter().map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
        let (kind, what) = match how {
            How::Activated => ("activated", names.join(", ")),
            How::Promoted => ("promoted", names.join(", ")),
            How::RolledBack => ("rolled-back", names.join(", ")),
            How::RolledBackByItself => (
                "rolled-back-by-itself",
                format!("to {}: {}", names.join(", "), condemned.as_deref().unwrap_or_default()),
            ),
            How::Unbound => ("unbound", String::new()),
        };
        let candidate = if how == How::Promoted { None } else { live.candidate.clone() };
        let tried = live.candidate.as_ref().filter(|_| candidate.is_none());
        self.write(|book| {
            if let (Some(last), Some(why)) = (book.records.last_mut(), condemned) {
                last.condemned = Some(why);
            }
            book.records.push(record.clone());
            let surplus = book.records.len().saturating_sub(HISTORY);
            book.records.drain(..surplus);
            book.candidate = candidate.as_ref().map(|candidate| candidate.record.clone());
            add_event(book, now, kind, what);
        })?;
        if let Some(tried) = tried {
            self.forget_shadow(&tried.record);
        }
        chain.0.iter().for_each(|one| one.wake());
        let new = Arc::new(Live { record: record.clone(), chain, candidate });
        let old = self.live.swap(new.clone());
        let tried = |one| new.candidate.as_ref().is_some_and(|candidate| candidate.chain.has(one));
        old.chain.0.iter().filter(|one| !new.chain.has(one) && !tried(one)).for_each(|one| one.rest());
        *self.before.lock() = Some((old.record.chain.clone(), old.chain.clone()));
        Ok(record)
    }

    /// Changes the book: on disk first.
    fn write(&self, change: impl FnOnce(&mut Book)) -> Result<(), HookError> {
        let mut book = self.book.lock();
        let mut new = book.clone();
        change(&mut new);
        let octets = serde_json::to_vec_pretty(&new).map_err(|error| HookError::Engine(error.to_string()))?;
        write_whole(&self.path, &octets)?;
        *book = new;
        Ok(())
    }

    /// What a candidate in shadow has counted goes with it: the next one counts from nothing.
    fn forget_shadow(&self, candidate: &CandidateRecord) {
        if candidate.trying == Trying::Shadow {
            for binding in &candidate.chain {
                self.means.around.powers.counters.forget(&shadow_space(&binding.plugin));
            }
        }
    }

    /// Goes back to the chain that was live before. One that was taken back by itself is none to go back to.
    pub(crate) fn rollback(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        let live = self.live.load().record.chain.clone();
        let target = {
            let book = self.book.lock();
            let fit = |record: &&BindingRecord| record.chain != live && !book.has_condemned(&record.chain);
            let other = book.records.iter().rev().find(fit);
            other.map(|record| record.chain.clone()).ok_or(HookError::NothingBefore)?
        };
        let chain = self.warm_or_started(&target)?;
        chain.warm_as(&self.live.load().chain);
        self.exchange(now, target, chain, How::RolledBack, None)
    }

    fn warm_or_started(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        if bindings.is_empty() {
            return Ok(Chain(Vec::new()));
        }
        // The generations that served until a moment ago are still warm.
        let before = self.before.lock().clone();
        match before {
            Some((warm, chain)) if warm == bindings && chain.0.iter().all(|one| !one.watch.tripped()) => {
                Ok(chain)
            }
            _ => self.start(bindings, &[], Purpose::ServeAnyhow),
        }
    }

    /// Takes a candidate on trial; one that is there already goes.
    pub(crate) fn try_out(
        &self,
        now: Timestamp,
        trying: Trying,
        bindings: Vec<Binding>,
        conditions: Conditions,
    ) -> Result<CandidateRecord, HookError> {
        let _changing = self.changing.lock();
        self.expect(conditions.expected)?;
        if let Trying::Canary { share } = trying
            && !(1..=10_000).contains(&share)
        {
            return Err(HookError::BadShare);
        }
        let record = CandidateRecord { since: now, trying, chain: self.pinned(bindings)? };
        let before = self.live.load().candidate.clone();
        if let Some(before) = &before {
            self.forget_shadow(&before.record);
        }
        let candidate = self.candidate(record.clone(), Self::purpose(conditions))?;
        if !conditions.force {
            self.check(&candidate.chain)?;
        }
        let names: Vec<String> =
            record.chain.iter().map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
        let how = match trying {
            Trying::Shadow => "in shadow".to_owned(),
            Trying::Canary { share } => format!("canary, {} percent", f64::from(share) / 100.0),
        };
        self.write(|book| {
            book.candidate = Some(record.clone());
            add_event(book, now, "candidate", format!("{}, {how}", names.join(", ")));
        })?;
        self.set_candidate(candidate);
        Ok(record)
    }

    /// Brings a candidate to life; `purpose` is that of a canary.
    fn candidate(&self, record: CandidateRecord, purpose: Purpose) -> Result<Candidate<W>, HookError> {
        let live = self.live.load_full();
        let aside = record.trying == Trying::Shadow;
        // What is unchanged in the chain is shared with it; in shadow nothing is, since counters are apart.
        let running = if aside { &[][..] } else { &live.chain.0[..] };
        let purpose = if aside { Purpose::Aside } else { purpose };
        let chain = self.start(&record.chain, running, purpose)?;
        let shadow = if aside {
            let directory = self.means.around.directory.clone();
            let started = Shadow::start(chain.clone(), directory, self.means.alarm.clone());
            Some(started.map_err(|error| HookError::Engine(format!("starting the shadow: {error}")))?)
        } else {
            None
        };
        Ok(Candidate {
            record,
            chain,
            shadow,
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            passed: AtomicU64::new(0),
        })
    }

    fn set_candidate(&self, candidate: Candidate<W>) {
        let live = self.live.load_full();
        self.live.store(Arc::new(Live {
            record: live.record.clone(),
            chain: live.chain.clone(),
            candidate: Some(Arc::new(candidate)),
        }));
    }

    /// Ends the trial.
    pub(crate) fn dismiss(&self, now: Timestamp, kind: &str, why: &str) -> Result<(), HookError> {
        let _changing = self.changing.lock();
        self.dismiss_locked(now, kind, why)
    }

    fn dismiss_locked(&self, now: Timestamp, kind: &str, why: &str) -> Result<(), HookError> {
        let live = self.live.load_full();
        let Some(candidate) = &live.candidate else { return Err(HookError::NoCandidate) };
        self.forget_shadow(&candidate.record);
        // At once in memory: it may be failing right now. A book that cannot be written is an error all the same.
        let (record, chain) = (live.record.clone(), live.chain.clone());
        self.live.store(Arc::new(Live { record, chain, candidate: None }));
        self.write(|book| {
            book.candidate = None;
            add_event(book, now, kind, why.to_owned());
        })
    }

    /// Makes the candidate live.
    pub(crate) fn promote(&self, now: Timestamp, expected: Option<u64>) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        self.expect(expected)?;
        let live = self.live.load_full();
        let candidate = live.candidate.as_ref().ok_or(HookError::NoCandidate)?;
        let bindings = candidate.record.chain.clone();
        let chain = match candidate.record.trying {
            Trying::Canary { .. } => candidate.chain.clone(),
            // In shadow it counted for itself.
            Trying::Shadow => self.start(&bindings, &[], Purpose::Serve)?,
        };
        chain.warm_as(&live.chain);
        self.exchange(now, bindings, chain, How::Promoted, None)
    }

    /// Something here has had too many faults: it is taken back.
    pub(crate) fn attend(&self, now: Timestamp) {
        let _changing = self.changing.lock();
        // What is live first: a candidate that shares something with it goes too if that is not kept.
        self.take_back_live(now);
        self.take_back_candidate(now);
    }

    fn take_back_candidate(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(candidate) = &live.candidate else { return };
        let Some(faulty) = candidate.chain.0.iter().find(|one| one.watch.tripped()) else { return };
        let why = why(faulty);
        let done = self.dismiss_locked(now, "candidate-faulty", &why);
        log_outcome::<W>("candidate taken back", &why, done);
    }

    fn take_back_live(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(faulty) = live.chain.0.iter().find(|generation| generation.watch.tripped()) else { return };
        let why = why(faulty);
        let targets = self.book.lock().ways_back(&live.record.chain, &faulty.binding);
        let mut failed = None;
        for target in targets {
            let done = self.warm_or_started(&target).and_then(|chain| {
                self.exchange(now, target, chain, How::RolledBackByItself, Some(why.clone()))
            });
            match done {
                Ok(_) => {
                    log_outcome::<W>("rolled back by itself", &why, Ok(()));
                    // This could not wait for it; whoever calls next need not.
                    return self.live.load().chain.warm_as(&live.chain);
                }
                // The one before it may still start.
                Err(error) => {
                    tracing::error!(hook = W::HOOK.name(), %error, "no way back");
                    failed.get_or_insert(error);
                }
            }
        }
        faulty.watch.reset();
        let end = match failed {
            None => "there is nothing to go back to".to_owned(),
            Some(error) => format!("there is nothing to go back to that works: {error}"),
        };
        // It may be so at every call from now on: it is told once a minute, and other events stay to be seen.
        let told = self.book.lock().events.last().is_some_and(|last| {
            last.kind == FAULTY && last.what.starts_with(&named(&faulty.by)) && now - last.at < BETWEEN_FAULTY
        });
        let done = match told {
            true => Ok(()),
            false => self.write(|book| add_event(book, now, FAULTY, format!("{why}; {end}"))),
        };
        log_outcome::<W>("faulty, and nothing to go back to", &why, done);
    }

    /// Asks the live chain, or a canary for its share; a canary that fails costs nobody anything, since the live chain is
    /// asked then. A candidate in shadow is given the question as well.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        seen: &mut Seen,
        met: &Met,
    ) -> Ended<W> {
        let live = self.live.load();
        let alarm = &self.means.alarm;
        let Some(candidate) = &live.candidate else {
            return live.chain.ask(question, now, seen, alarm, met);
        };
        if let Trying::Canary { share } = candidate.record.trying {
            let fit = !candidate.chain.0.iter().any(|generation| generation.watch.tripped());
            if fit && W::lot(question) < share {
                candidate.asked.fetch_add(1, Relaxed);
                // What its bindings say of faults is for when it is live. What it shares with the live chain is no
                // candidate, and a fault there is what it is there.
                let own = |one: &Arc<Generation<W>>| !live.chain.has(one);
                match candidate.chain.ask_unless(question, now, seen, (alarm, met), own) {
                    Ended::Fault(_, faulty) if own(&faulty) => candidate.failed.fetch_add(1, Relaxed),
                    ended => return ended,
                };
                *seen = seen.again();
            } else {
                candidate.passed.fetch_add(1, Relaxed);
            }
        }
        let ended = live.chain.ask(question, now, seen, alarm, met);
        if let Some(shadow) = &candidate.shadow {
            shadow.ask(question, now, seen, met, answer_of(&ended));
        }
        ended
    }

    /// The chain that is live.
    pub(crate) fn chain(&self) -> Chain<W> {
        self.live.load().chain.clone()
    }

    /// Whether anything is bound.
    pub(crate) fn is_bound(&self) -> bool {
        !self.live.load().chain.0.is_empty()
    }

    pub(crate) fn history(&self) -> Vec<BindingRecord> {
        self.book.lock().records.clone()
    }

    /// Counts of all plugins at work.
    pub(crate) fn counts(&self) -> Vec<PluginCounts> {
        let live = self.live.load();
        let mut counts = counts(&live.chain, true);
        if let Some(candidate) = &live.candidate {
            counts.extend(candidate.counts(&live.chain));
        }
        counts
    }

    pub(crate) fn state(&self) -> HookState {
        let live = self.live.load();
        let candidate = live.candidate.as_ref().map(|candidate| CandidateState {
            record: candidate.record.clone(),
            counts: candidate.counts(&live.chain),
            asked: candidate.asked.load(Relaxed),
            failed: candidate.failed.load(Relaxed),
            passed: candidate.passed.load(Relaxed),
            comparison: candidate.shadow.as_ref().map(Shadow::comparison),
        });
        HookState {
            hook: W::HOOK.name(),
            live: live.record.clone(),
            counts: counts(&live.chain, true),
            candidate,
            events: self.book.lock().events.iter().rev().cloned().collect(),
            faults: self.means.alarm.examples.of(W::HOOK),
            unknown: live.chain.unknown(),
        }
    }
}

impl<W: World> Candidate<W> {
    /// Counts of what is not in the live chain as well.
    fn counts(&self, live: &Chain<W>) -> Vec<PluginCounts> {
        let own = self.chain.0.iter().filter(|one| !live.has(one));
        counts(&Chain(own.cloned().collect()), false)
    }
}

fn counts<W: World>(chain: &Chain<W>, live: bool) -> Vec<PluginCounts> {
    let one = |one: &Arc<Generation<W>>| PluginCounts { by: one.by.clone(), live, counts: one.counts() };
    chain.0.iter().map(one).collect()
}

/// Why it is taken back, in words.
fn why<W: World>(faulty: &Generation<W>) -> String {
    format!("{}: {}", named(&faulty.by), faulty.condemnation().unwrap_or_default())
}

fn named(by: &DecidedBy) -> String {
    format!("{} {}", by.plugin, by.version)
}

impl Book {
    /// Whether a chain was taken back by itself.
    fn has_condemned(&self, chain: &[Binding]) -> bool {
        self.records.iter().any(|record| record.condemned.is_some() && record.chain == chain)
    }

    /// Chains that may take over from one that fails because of one binding, the last that was live first.
    fn ways_back(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let mut ways: Vec<Vec<Binding>> = Vec::new();
        for BindingRecord { chain, .. } in self.records.iter().rev() {
            let fit = !chain.is_empty() && chain != live && !chain.contains(faulty);
            if fit && !self.has_condemned(chain) && !ways.contains(chain) {
                ways.push(chain.clone());
            }
        }
        ways
    }
}

fn add_event(book: &mut Book, at: Timestamp, kind: &str, what: String) {
    book.events.push(HookEvent { at, kind: kind.to_owned(), what });
    let surplus = book.events.len().saturating_sub(HISTORY);
    book.events.drain(..surplus);
}

fn log_outcome<W: World>(what: &str, why: &str, done: Result<(), HookError>) {
    match done {
        Ok(()) => tracing::error!(hook = W::HOOK.name(), why, "{what}"),
        Err(error) => tracing::error!(hook = W::HOOK.name(), why, %error, "{what}, but not as it should be"),
    }
}

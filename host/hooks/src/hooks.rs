use crate::capabilities::peers::Board;
use crate::generation::{Counts, Generation};
use crate::library::{Library, VersionInfo, write_whole};
use crate::runtime::Runtime;
use crate::{Fault, HookError};
use arc_swap::ArcSwap;
use model::{DecidedBy, Directory, Leg, Message, RejectReason, Routed, Timestamp, Verdict};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a message whose router failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// It is accepted, held, and routed again later.
    #[default]
    Hold,
    /// It is refused with a system error; the submitter may try again.
    Reject,
    /// It goes to this peer.
    Peer(String),
}

/// How instances are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceUse {
    /// One instance serves many calls.
    #[default]
    Warm,
    /// Every call gets a fresh one, for those who want no state at all.
    PerCall,
}

/// Which plugin version serves the hook, with which policy document, within which limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Binding {
    /// The plugin.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The policy document.
    #[serde(default)]
    pub policy: String,
    /// What becomes of a message whose call failed.
    #[serde(default)]
    pub on_fault: OnFault,
    /// Octets of memory that one instance may have.
    #[serde(default = "default_memory")]
    pub memory: usize,
    /// How long a call may run. Time in which its thread waits for a processor does not count.
    #[serde(default = "default_deadline", with = "milliseconds", rename = "deadline-ms")]
    pub deadline: Duration,
    /// Rows that its tables may have.
    #[serde(default = "default_rows")]
    pub table_rows: usize,
    /// How instances are used.
    #[serde(default)]
    pub instance: InstanceUse,
}

fn default_memory() -> usize {
    16 << 20
}

fn default_deadline() -> Duration {
    Duration::from_millis(20)
}

fn default_rows() -> usize {
    10_000_000
}

mod milliseconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

impl Binding {
    /// A binding with the default limits.
    #[must_use]
    pub fn new(plugin: &str, version: &str, policy: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            policy: policy.to_owned(),
            on_fault: OnFault::default(),
            memory: default_memory(),
            deadline: default_deadline(),
            table_rows: default_rows(),
            instance: InstanceUse::default(),
        }
    }
}

/// One entry of the history: a chain that was live from some time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BindingRecord {
    /// Since when.
    pub since: Timestamp,
    /// The routers, in the order in which they are asked.
    pub chain: Vec<Binding>,
    /// Whether it came about by a rollback.
    #[serde(default)]
    pub rollback: bool,
}

/// How the hooks are opened.
#[derive(Debug, Clone)]
pub struct HooksOptions {
    /// The most octets of memory that any instance may be allowed.
    pub memory: usize,
    /// The most instances at a time, over all plugins and generations.
    pub instances: u32,
    /// How long a message whose router failed is held.
    pub hold_for: Duration,
}

impl Default for HooksOptions {
    fn default() -> Self {
        Self { memory: 256 << 20, instances: 256, hold_for: Duration::from_secs(30) }
    }
}

/// What one router of the chain made of a message, for `explain`.
#[derive(Debug, Clone)]
pub struct Considered {
    /// The plugin version.
    pub by: Arc<DecidedBy>,
    /// Its verdict (`None`: pass) with its note, or its fault.
    pub outcome: Result<(Option<Verdict>, Option<String>), Fault>,
}

struct Chain {
    record: BindingRecord,
    routers: Vec<Arc<Generation>>,
}

/// All plugins and the routing hook.
pub struct Hooks {
    runtime: Runtime,
    library: Library,
    options: HooksOptions,
    directory: Arc<ArcSwap<Directory>>,
    board: Arc<Board>,
    live: ArcSwap<Chain>,
    /// Older chains, the newest last; the last one's generations are kept for a quick way back.
    history: Mutex<History>,
    /// Held while the live chain changes, so that each change starts from what the one before has left.
    changing: Mutex<()>,
    nobody: Arc<DecidedBy>,
}

#[derive(Default)]
struct History {
    records: Vec<BindingRecord>,
    before: Option<Arc<Chain>>,
}

/// How many chains the history keeps.
const HISTORY: usize = 200;

impl Hooks {
    /// Opens the plugin folder and brings the last live chain back. `directory` knows the peers that verdicts may name.
    ///
    /// # Errors
    /// When the folder cannot be used, or the chain that was live does not start.
    pub fn open(
        folder: &Path,
        options: HooksOptions,
        directory: Arc<ArcSwap<Directory>>,
        board: Arc<Board>,
    ) -> Result<Self, HookError> {
        let library = Library::open(folder)?;
        let path = library.history();
        let records: Vec<BindingRecord> = match std::fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets)
                .map_err(|error| HookError::Storage { path: path.clone(), source: error.into() })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(HookError::Storage { path, source }),
        };
        let runtime = Runtime::new(options.memory, options.instances)?;
        let nothing = Chain {
            record: BindingRecord { since: Timestamp(0), chain: Vec::new(), rollback: false },
            routers: Vec::new(),
        };
        let last = records.last().cloned();
        let hooks = Self {
            runtime,
            library,
            options,
            directory,
            board,
            live: ArcSwap::from_pointee(nothing),
            history: Mutex::new(History { records, before: None }),
            changing: Mutex::default(),
            nobody: Arc::new(DecidedBy { plugin: "none".to_owned(), version: String::new() }),
        };
        if let Some(record) = last {
            let chain = hooks.start(record)?;
            hooks.live.store(Arc::new(chain));
        }
        Ok(hooks)
    }

    /// Keeps a new version of a plugin. It serves nothing until it is activated.
    ///
    /// # Errors
    /// When it is not a component of a served world and version.
    pub fn upload(&self, plugin: &str, octets: &[u8]) -> Result<VersionInfo, HookError> {
        self.library.add(&self.runtime.engine, plugin, octets)
    }

    fn start(&self, record: BindingRecord) -> Result<Chain, HookError> {
        if record.chain.is_empty() {
            return Err(HookError::EmptyChain);
        }
        let routers = record
            .chain
            .iter()
            .map(|binding| {
                if let OnFault::Peer(peer) = &binding.on_fault
                    && self.directory.load().id(peer).is_none()
                {
                    return Err(HookError::UnknownPeer(peer.clone()));
                }
                let component =
                    self.library.compiled(&self.runtime.engine, &binding.plugin, &binding.version)?;
                let board = self.board.clone();
                let directory = self.directory.clone();
                Generation::start(&self.runtime, &component, binding.clone(), board, directory).map(Arc::new)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Chain { record, routers })
    }

    /// Makes a chain live: compile, instantiate, configure, try out, and only then one exchange of a pointer. Calls in
    /// flight end on the old chain. What fails changes nothing.
    ///
    /// # Errors
    /// When one of its routers does not start or refuses its document.
    pub fn activate(&self, now: Timestamp, chain: Vec<Binding>) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        let record = BindingRecord { since: now, chain, rollback: false };
        let chain = Arc::new(self.start(record.clone())?);
        self.exchange(chain)?;
        Ok(record)
    }

    fn exchange(&self, chain: Arc<Chain>) -> Result<(), HookError> {
        let mut history = self.history.lock();
        let mut records = history.records.clone();
        records.push(chain.record.clone());
        let surplus = records.len().saturating_sub(HISTORY);
        records.drain(..surplus);
        let octets =
            serde_json::to_vec_pretty(&records).map_err(|error| HookError::Engine(error.to_string()))?;
        write_whole(&self.library.history(), &octets)?;
        history.records = records;
        history.before = Some(self.live.swap(chain));
        Ok(())
    }

    /// Goes back to the chain that was live before.
    ///
    /// # Errors
    /// When there is none, or it does not start any more.
    pub fn rollback(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _changing = self.changing.lock();
        let (before, record) = {
            let history = self.history.lock();
            let live = history.records.last().ok_or(HookError::NothingBefore)?;
            let other = history.records.iter().rev().find(|record| record.chain != live.chain);
            (history.before.clone(), other.cloned().ok_or(HookError::NothingBefore)?)
        };
        let record = BindingRecord { since: now, chain: record.chain, rollback: true };
        let chain = match before {
            // The generations that served until a moment ago are still warm.
            Some(before) if before.record.chain == record.chain => {
                Chain { record: record.clone(), routers: before.routers.clone() }
            }
            _ => self.start(record.clone())?,
        };
        self.exchange(Arc::new(chain))?;
        Ok(record)
    }

    /// Asks the chain about a message. Never fails: a fault is answered as its binding says.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp) -> Routed {
        let chain = self.live.load();
        for generation in &chain.routers {
            match generation.route(message, now) {
                Ok(decision) => {
                    if let Some(verdict) = decision.verdict {
                        let note = decision.note.map(String::into_boxed_str);
                        return Routed { verdict, by: generation.by.clone(), note, quote: None, seen: None };
                    }
                }
                Err(fault) => return self.on_fault(generation, &fault, now),
            }
        }
        let note = if chain.routers.is_empty() { "no router is bound" } else { "no router decided" };
        let by = chain.routers.last().map_or_else(|| self.nobody.clone(), |last| last.by.clone());
        Routed {
            verdict: Verdict::Reject(RejectReason::NoRoute),
            by,
            note: Some(note.into()),
            quote: None,
            seen: None,
        }
    }

    fn on_fault(&self, generation: &Generation, fault: &Fault, now: Timestamp) -> Routed {
        tracing::warn!(
            plugin = generation.binding.plugin,
            version = generation.binding.version,
            kind = fault.kind.name(),
            what = fault.what,
            "plugin fault"
        );
        let verdict = match &generation.binding.on_fault {
            OnFault::Hold => Verdict::Hold(now + self.options.hold_for),
            OnFault::Reject => Verdict::Reject(RejectReason::Fault),
            OnFault::Peer(peer) => match self.directory.load().id(peer) {
                Some(peer) => Verdict::Forward(vec![Leg::to(peer)]),
                None => Verdict::Hold(now + self.options.hold_for),
            },
        };
        let note = format!("fault ({}): {}", fault.kind.name(), fault.what);
        Routed { verdict, by: generation.by.clone(), note: Some(note.into()), quote: None, seen: None }
    }

    /// What each router of the chain makes of a message, up to the one that decides.
    #[must_use]
    pub fn explain(&self, message: &Message, now: Timestamp) -> Vec<Considered> {
        let mut steps = Vec::new();
        for generation in &self.live.load().routers {
            let outcome = generation.route(message, now).map(|decision| (decision.verdict, decision.note));
            let decided = !matches!(&outcome, Ok((None, _)));
            steps.push(Considered { by: generation.by.clone(), outcome });
            if decided {
                break;
            }
        }
        steps
    }

    /// All versions kept.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn versions(&self) -> Result<Vec<VersionInfo>, HookError> {
        self.library.list()
    }

    /// The history of chains, oldest first; the last one is live.
    #[must_use]
    pub fn history(&self) -> Vec<BindingRecord> {
        self.history.lock().records.clone()
    }

    /// Counts of the live chain's routers.
    #[must_use]
    pub fn counts(&self) -> Vec<(Arc<DecidedBy>, Counts)> {
        self.live.load().routers.iter().map(|router| (router.by.clone(), router.counts())).collect()
    }
}

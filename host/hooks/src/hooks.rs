//! The public API of the plugin host: versions, bindings, trials and calls of the hooks.

mod delivery;
mod pricing;
mod requests;
mod routing;

pub(crate) use routing::with_screened;

use crate::binding::{CandidateRecord, TrialMode};
use crate::call_observer::CallObserver;
use crate::dry_run::DryRun;
use crate::fault_examples::FaultDetails;
use crate::fault_reporter::FaultReporter;
use crate::generation::HostEnvironment;
use crate::hook_slot::{HookDeps, HookSlot};
use crate::hook_status::{HookStatus, PluginCounts};
use crate::host_call_log::HostCallLog;
use crate::host_calls::HostServices;
use crate::library::{Library, VersionInfo};
use crate::linked_component::LinkedComponents;
use crate::policy_reference::ActivationConditions;
use crate::profile::Profiler;
use crate::runtime::Runtime;
use crate::signature::Trust;
use crate::tenant_costs::TenantCalls;
use crate::worlds::{
    Biller, Decision, DeliveryPolicy, FrontEnd, Lookup as LookupWorld, NumberAnswer, Peer, Receipt, Resolver,
    Router, Screen, ScreenDecision,
};
use crate::{Fault, HookError, NewComponent, batch};
use api::{Binding, BindingRecord, FaultyVersion};
use arc_swap::ArcSwap;
use codec::ContentCipher;
use model::{Directory, Hook, PeerId, PluginVersion, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Options for [`Hooks::open`].
#[derive(Debug, Clone)]
pub struct HooksOptions {
    /// Maximum memory of one instance, in octets. A binding may allow less.
    pub memory: usize,
    /// Maximum number of instances, over all plugins and generations.
    pub instances: u32,
    /// Hold time of a message whose router or biller failed.
    pub hold_for: Duration,
    /// The default peer for messages to the operator's own subscribers. A resolver may name another peer.
    pub home: Option<PeerId>,
    /// Trusted signing keys.
    pub trust: Trust,
    /// Record the host calls of screens and routers, so that a replay of archived messages is exact.
    pub record: bool,
    /// Samples the plugins' call stacks. The daemon uses no profiler.
    pub profiler: Option<Arc<Profiler>>,
    /// Observes the calls on behalf of messages, for traces.
    pub call_observer: Option<Arc<dyn CallObserver>>,
    /// Encrypts recorded calls.
    pub cipher: Option<Arc<dyn ContentCipher>>,
}

impl Default for HooksOptions {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            instances: 256,
            hold_for: Duration::from_secs(30),
            home: None,
            trust: Trust::default(),
            record: false,
            profiler: None,
            call_observer: None,
            cipher: None,
        }
    }
}

/// The result of one router of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct RoutingStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The decision, or the fault of the call.
    pub outcome: Result<Decision, Fault>,
}

/// The result of one screen of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct ScreeningStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The decision, or the fault of the call.
    pub outcome: Result<ScreenDecision, Fault>,
}

/// The result of one lookup of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct LookupStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The answer, or the fault of the call.
    pub outcome: Result<NumberAnswer, Fault>,
}

/// The plugin host: the plugin library and the slots of all hooks.
pub struct Hooks {
    deps: Arc<HookDeps>,
    options: HooksOptions,
    screen: HookSlot<Screen>,
    lookup: HookSlot<LookupWorld>,
    router: HookSlot<Router>,
    resolver: HookSlot<Resolver>,
    delivery: HookSlot<DeliveryPolicy>,
    receipt: HookSlot<Receipt>,
    biller: HookSlot<Biller>,
    peer: HookSlot<Peer>,
    front_end: HookSlot<FrontEnd>,
    no_plugin: Arc<PluginVersion>,
}

/// Evaluates an expression with the slot of the given hook.
macro_rules! with_slot {
    ($self:ident, $hook:expr, $slot:ident => $what:expr) => {
        match $hook {
            Hook::Screen => {
                let $slot = &$self.screen;
                $what
            }
            Hook::Lookup => {
                let $slot = &$self.lookup;
                $what
            }
            Hook::Router => {
                let $slot = &$self.router;
                $what
            }
            Hook::Resolver => {
                let $slot = &$self.resolver;
                $what
            }
            Hook::DeliveryPolicy => {
                let $slot = &$self.delivery;
                $what
            }
            Hook::Receipt => {
                let $slot = &$self.receipt;
                $what
            }
            Hook::Biller => {
                let $slot = &$self.biller;
                $what
            }
            Hook::Peer => {
                let $slot = &$self.peer;
                $what
            }
            Hook::FrontEnd => {
                let $slot = &$self.front_end;
                $what
            }
        }
    };
}

impl Hooks {
    /// Minimum number of messages for which [`Hooks::route_many`] and [`Hooks::price_many`] cost less than single calls.
    pub const MIN_BATCH: usize = batch::MIN_BATCH;
    /// Number of messages that an instance gets at a time. The hooks take longer lists, too, but the messages of a batch of
    /// this size stay in the processor's caches from one hook to the next.
    pub const MAX_BATCH: usize = batch::MAX_BATCH;

    /// Opens the plugin folder and restores the stored bindings and candidates. `directory` holds the peers that a
    /// verdict may name.
    ///
    /// # Errors
    /// The folder is not usable, or a live plugin does not start.
    pub fn open(
        folder: &Path,
        options: HooksOptions,
        directory: Arc<ArcSwap<Directory>>,
        services: HostServices,
    ) -> Result<Arc<Self>, HookError> {
        let library = Library::open(folder, options.trust.clone())?;
        let runtime = Runtime::new(options.memory, options.instances, options.profiler.clone())?;
        let (reporter, faulty_hooks) = FaultReporter::new(options.call_observer.clone());
        let deps = Arc::new(HookDeps {
            runtime: Arc::new(runtime),
            library: Arc::new(library),
            environment: HostEnvironment {
                services: Arc::new(services),
                directory,
                home: options.home,
                tenant_costs: Arc::default(),
            },
            reporter,
            components: LinkedComponents::default(),
        });
        let hooks = Arc::new(Self {
            screen: HookSlot::open(deps.clone())?,
            lookup: HookSlot::open(deps.clone())?,
            router: HookSlot::open(deps.clone())?,
            resolver: HookSlot::open(deps.clone())?,
            delivery: HookSlot::open(deps.clone())?,
            receipt: HookSlot::open(deps.clone())?,
            biller: HookSlot::open(deps.clone())?,
            peer: HookSlot::open(deps.clone())?,
            front_end: HookSlot::open(deps.clone())?,
            deps,
            options,
            no_plugin: Arc::new(PluginVersion { plugin: "none".to_owned(), version: String::new() }),
        });
        let weak_hooks = Arc::downgrade(&hooks);
        std::thread::Builder::new()
            .name("hook-rollback".to_owned())
            .spawn(move || {
                for hook in faulty_hooks {
                    let Some(hooks) = weak_hooks.upgrade() else { return };
                    with_slot!(hooks, hook, slot => slot.roll_back_faulty(Timestamp::now()));
                }
            })
            .map_err(|error| HookError::Engine(format!("starting the rollback thread: {error}")))?;
        Ok(hooks)
    }

    /// Loads the bindings and candidates from the plugin folder, after another node of the cluster has changed them.
    ///
    /// # Errors
    /// The first failure; hooks that failed keep their bindings and candidates.
    pub fn refresh(&self) -> Result<(), HookError> {
        let mut first = Ok(());
        for hook in Hook::ALL {
            let refreshed = with_slot!(self, hook, slot => slot.refresh());
            first = first.and(refreshed);
        }
        first
    }

    /// From now on compilations have the lowest priority, because there is traffic.
    pub fn begin_traffic(&self) {
        self.deps.library.begin_traffic();
    }

    /// Compiles the stored plugins of this folder and the given components, unless they are compiled already, so that
    /// [`Hooks::open`] and [`Hooks::upload`] are fast. Returns the number of stored plugins. A stored plugin that does not
    /// compile is skipped.
    ///
    /// # Errors
    /// The folder cannot be read or written, or the octets are no component.
    pub fn compile_ahead(
        folder: &Path,
        options: &HooksOptions,
        components: &[Vec<u8>],
    ) -> Result<usize, HookError> {
        let library = Library::open(folder, options.trust.clone())?;
        let runtime = Runtime::new(options.memory, options.instances, None)?;
        for octets in components {
            library.compile(&runtime.engine, octets)?;
        }
        let versions = library.list(&runtime.engine)?;
        let compiled = versions.iter().filter(|info| {
            library.compiled(&runtime.engine, &info.plugin, &info.version, &info.sha256).is_ok()
        });
        Ok(compiled.count())
    }

    /// Stores a new version of a plugin without activating it. `signature` is a base64-encoded ed25519 signature over
    /// the component's octets.
    ///
    /// # Errors
    /// The octets are not a component of a supported world and contract version, or the signature is not accepted.
    pub fn upload(
        &self,
        plugin: &str,
        octets: &[u8],
        signature: Option<&str>,
    ) -> Result<VersionInfo, HookError> {
        self.store(plugin, NewComponent { octets, signature, ..NewComponent::default() })
    }

    /// Stores a new version as [`Hooks::upload`] does, with its origin and its bill of materials.
    ///
    /// # Errors
    /// As [`Hooks::upload`].
    pub fn store(&self, plugin: &str, component: NewComponent<'_>) -> Result<VersionInfo, HookError> {
        self.deps.library.add(&self.deps.runtime.engine, plugin, component)
    }

    /// The bill of materials (SBOM) of a stored version, a JSON document.
    ///
    /// # Errors
    /// There is no such version, or it has none.
    pub fn sbom(&self, plugin: &str, version: &str) -> Result<Vec<u8>, HookError> {
        self.deps.library.sbom(plugin, version)
    }

    /// Stores the bill of materials (SBOM) of a stored version: a JSON document that the caller has checked. It replaces an
    /// earlier one.
    ///
    /// # Errors
    /// There is no such version, or the document cannot be written, or `described` (the SHA-256 of the component that the
    /// document describes) differs from the SHA-256 of the version.
    pub fn add_sbom(
        &self,
        plugin: &str,
        version: &str,
        sbom: &[u8],
        described: Option<&str>,
    ) -> Result<VersionInfo, HookError> {
        self.deps.library.add_sbom(&self.deps.runtime.engine, plugin, version, (sbom, described))
    }

    /// Stores the debug information of a stored version, which the stacks of its faults then use.
    ///
    /// # Errors
    /// There is no such version, or the octets without their debug sections are not its component.
    pub fn add_debug_info(
        &self,
        plugin: &str,
        version: &str,
        octets: &[u8],
    ) -> Result<VersionInfo, HookError> {
        self.deps.library.add_debug_info(&self.deps.runtime.engine, plugin, version, octets)
    }

    /// The JSON Schema of a stored version's policy document.
    ///
    /// # Errors
    /// There is no such version, or it has no schema.
    pub fn policy_schema(&self, plugin: &str, version: &str) -> Result<serde_json::Value, HookError> {
        self.deps.library.policy_schema(plugin, version)
    }

    /// Activates a chain: compiles, instantiates, configures and self-checks every plugin, then replaces the live chain
    /// atomically. Calls in flight finish on the old chain. A failure changes nothing. `conditions` may be a serial
    /// alone.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document, or a condition does not hold.
    pub fn activate(
        &self,
        hook: Hook,
        now: Timestamp,
        chain: Vec<Binding>,
        conditions: impl Into<ActivationConditions>,
    ) -> Result<BindingRecord, HookError> {
        let conditions = conditions.into();
        with_slot!(self, hook, slot => slot.activate(now, chain, conditions))
    }

    /// Removes all plugins from a hook.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn unbind(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.unbind(now))
    }

    /// Activates the previous chain again. Chains that were rolled back automatically are skipped.
    ///
    /// # Errors
    /// There is no such chain, or it no longer starts.
    pub fn rollback(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.rollback(now))
    }

    /// Starts the trial of a candidate chain, in shadow or as a canary. It replaces an earlier candidate.
    ///
    /// # Errors
    /// As for [`Hooks::activate`], or the canary's share is out of range.
    pub fn start_trial(
        &self,
        hook: Hook,
        now: Timestamp,
        mode: TrialMode,
        chain: Vec<Binding>,
        conditions: impl Into<ActivationConditions>,
    ) -> Result<CandidateRecord, HookError> {
        let conditions = conditions.into();
        with_slot!(self, hook, slot => slot.start_trial(now, mode, chain, conditions))
    }

    /// Ends the trial of the candidate. The live chain stays.
    ///
    /// # Errors
    /// There is no candidate.
    pub fn end_trial(&self, hook: Hook, now: Timestamp) -> Result<(), HookError> {
        with_slot!(self, hook, slot => slot.end_trial(now, "candidate-ended", "by an admin"))
    }

    /// Makes the candidate live.
    ///
    /// # Errors
    /// There is no candidate, or the serial is not the expected one.
    pub fn promote(
        &self,
        hook: Hook,
        now: Timestamp,
        expected: Option<u64>,
    ) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.promote(now, expected))
    }

    /// Whether the hook has a live plugin.
    #[must_use]
    pub fn is_bound(&self, hook: Hook) -> bool {
        with_slot!(self, hook, slot => slot.is_bound())
    }

    /// The binding history of a hook, oldest first. The last record is live.
    #[must_use]
    pub fn history(&self, hook: Hook) -> Vec<BindingRecord> {
        with_slot!(self, hook, slot => slot.history())
    }

    /// The full status of a hook.
    #[must_use]
    pub fn status(&self, hook: Hook) -> HookStatus {
        with_slot!(self, hook, slot => slot.status())
    }

    /// The versions of a hook with faults since the start, most recent fault first. Reads debug information from disk.
    #[must_use]
    pub fn faults(&self, hook: Hook) -> Vec<FaultyVersion> {
        let library = &self.deps.library;
        self.deps.reporter.examples.of(hook, |version| library.debug_info(&version.plugin, &version.version))
    }

    /// The fault of a hook with this number, with its whole question; `None` once later faults have replaced it.
    #[must_use]
    pub fn fault(&self, hook: Hook, id: u64) -> Option<FaultDetails> {
        self.deps.reporter.examples.details(hook, id)
    }

    /// Call counts of all active plugins of a hook.
    #[must_use]
    pub fn counts(&self, hook: Hook) -> Vec<PluginCounts> {
        with_slot!(self, hook, slot => slot.counts())
    }

    /// The costs of each tenant's plugins, for tenants with bindings.
    #[must_use]
    pub fn tenant_calls(&self) -> BTreeMap<Arc<str>, TenantCalls> {
        self.deps.environment.tenant_costs.read()
    }

    /// All stored plugin versions.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn versions(&self) -> Result<Vec<VersionInfo>, HookError> {
        self.deps.library.list(&self.deps.runtime.engine)
    }

    /// Starts a chain for a replay or a test harness. It serves no traffic, and its counters and values are isolated.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document.
    pub fn dry_run(&self, hook: Hook, chain: &[Binding]) -> Result<DryRun, HookError> {
        Ok(match hook {
            Hook::Screen => DryRun::screens(self.screen.dry_run(chain)?),
            Hook::Lookup => DryRun::lookups(self.lookup.dry_run(chain)?),
            Hook::Router => DryRun::router(self.router.dry_run(chain)?),
            Hook::Resolver => DryRun::resolver(self.resolver.dry_run(chain)?),
            Hook::DeliveryPolicy => DryRun::delivery(self.delivery.dry_run(chain)?),
            Hook::Receipt => DryRun::receipts(self.receipt.dry_run(chain)?),
            Hook::Biller => DryRun::biller(self.biller.dry_run(chain)?),
            Hook::Peer => DryRun::peer(self.peer.dry_run(chain)?),
            Hook::FrontEnd => DryRun::front_end(self.front_end.dry_run(chain)?),
        })
    }

    /// Starts a chain as [`Hooks::dry_run`] does, but with empty counters in memory: for a few interactive questions.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document.
    pub fn try_run(&self, hook: Hook, chain: &[Binding]) -> Result<DryRun, HookError> {
        Ok(match hook {
            Hook::Screen => DryRun::screens(self.screen.try_run(chain)?),
            Hook::Lookup => DryRun::lookups(self.lookup.try_run(chain)?),
            Hook::Router => DryRun::router(self.router.try_run(chain)?),
            Hook::Resolver => DryRun::resolver(self.resolver.try_run(chain)?),
            Hook::DeliveryPolicy => DryRun::delivery(self.delivery.try_run(chain)?),
            Hook::Receipt => DryRun::receipts(self.receipt.try_run(chain)?),
            Hook::Biller => DryRun::biller(self.biller.try_run(chain)?),
            Hook::Peer => DryRun::peer(self.peer.try_run(chain)?),
            Hook::FrontEnd => DryRun::front_end(self.front_end.try_run(chain)?),
        })
    }

    fn new_call_log(&self) -> HostCallLog {
        if self.options.record { HostCallLog::recording() } else { HostCallLog::Off }
    }
}

fn describe_fault(fault: &Fault) -> Box<str> {
    format!("fault ({}): {}", fault.kind.name(), fault.summary()).into()
}

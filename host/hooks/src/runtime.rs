//! The WebAssembly engine that all plugins share.

use crate::HookError;
use crate::bindings::host::All;
use crate::contract::WitVersion;
use crate::host_calls::{InstanceState, previous};
use crate::profile::{self, Profiler};
use crate::tenant_instances::TenantInstances;
use crate::wasi;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The interval of deadline checks.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// The engine, a linker with the capabilities of all worlds, and the thread that increments the engine's epoch. A component
/// imports only what its world has: [`crate::contract::identify`] refuses others.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    linker: Linker<InstanceState>,
    /// Samples the calls of all instances.
    pub(crate) profiler: Option<Arc<Profiler>>,
    /// The idle instances of tenants' bindings: at most half of all instances.
    pub(crate) tenant_instances: Arc<TenantInstances>,
    _alive: Arc<()>,
}

fn failed(error: &wasmtime::Error) -> HookError {
    HookError::Engine(format!("{error:#}"))
}

impl Runtime {
    /// `memory`: maximum memory of one instance, in octets; `instances`: maximum number of concurrent instances.
    pub(crate) fn new(
        memory: usize,
        instances: u32,
        profiler: Option<Arc<Profiler>>,
    ) -> Result<Self, HookError> {
        let mut pool = PoolingAllocationConfig::default();
        // A Python guest has some thirty core instances and tables, a JavaScript guest three memories.
        pool.total_component_instances(instances)
            .total_core_instances(instances.saturating_mul(16))
            .total_memories(instances.saturating_mul(3))
            .total_tables(instances.saturating_mul(16))
            .max_memory_size(memory)
            .max_memories_per_component(8)
            .max_core_instances_per_component(60)
            .max_tables_per_component(60)
            .max_component_instance_size(1 << 20)
            .table_elements(20_000);
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .epoch_interruption(true)
            .memory_init_cow(true)
            .parallel_compilation(false)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        if profiler.is_some() {
            config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(profile::MAX_FRAMES));
        }
        let engine = Engine::new(&config).map_err(|error| failed(&error))?;
        let alive = Arc::new(());
        let watched = Arc::downgrade(&alive);
        let ticked = engine.weak();
        std::thread::Builder::new()
            .name("hook-epoch".to_owned())
            .spawn(move || {
                while watched.strong_count() > 0 {
                    std::thread::park_timeout(TICK);
                    match ticked.upgrade() {
                        Some(engine) => engine.increment_epoch(),
                        None => return,
                    }
                }
            })
            .map_err(|error| HookError::Engine(format!("starting the epoch thread: {error}")))?;
        let mut linker = Linker::new(&engine);
        let link = |linker: &mut Linker<InstanceState>| {
            All::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
            previous::link(linker, WitVersion::V0_2)?;
            previous::link(linker, WitVersion::V0_1)
        };
        link(&mut linker).map_err(|error| failed(&error))?;
        if let Some(profiler) = &profiler {
            profile::link(&mut linker, profiler).map_err(|error| failed(&error))?;
            profiler.watch(&engine);
        }
        let limit = usize::try_from(instances / 2).unwrap_or(usize::MAX);
        let tenant_instances = Arc::new(TenantInstances::new(limit));
        Ok(Self { linker, profiler, tenant_instances, engine, _alive: alive })
    }

    /// Links a component.
    pub(crate) fn link(&self, component: &Component) -> wasmtime::Result<InstancePre<InstanceState>> {
        // The WASI names differ between components: they carry the version of the tools that built the component.
        let mut linker = self.linker.clone();
        wasi::link(&mut linker, component)?;
        linker.instantiate_pre(component)
    }
}

//! The WebAssembly engine that all plugins share.

use crate::HookError;
use crate::bindings::{biller, delivery, previous, resolver, router};
use crate::contract::WitVersion;
use crate::host_calls::InstanceState;
use crate::wasi;
use model::Hook;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The interval of deadline checks.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// The engine, a linker per world, and the thread that increments the engine's epoch.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    router: Linker<InstanceState>,
    previous_router: Linker<InstanceState>,
    resolver: Linker<InstanceState>,
    delivery: Linker<InstanceState>,
    biller: Linker<InstanceState>,
    _alive: Arc<()>,
}

fn failed(error: &wasmtime::Error) -> HookError {
    HookError::Engine(format!("{error:#}"))
}

impl Runtime {
    /// `memory`: maximum memory of one instance, in octets; `instances`: maximum number of concurrent instances.
    pub(crate) fn new(memory: usize, instances: u32) -> Result<Self, HookError> {
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
        let linker = |add: fn(&mut Linker<InstanceState>) -> wasmtime::Result<()>| {
            let mut linker = Linker::new(&engine);
            add(&mut linker).map_err(|error| failed(&error))?;
            Ok::<_, HookError>(linker)
        };
        Ok(Self {
            router: linker(|to| router::Router::add_to_linker::<_, HasSelf<_>>(to, |state| state))?,
            previous_router: linker(|to| {
                previous::Router::add_to_linker::<_, HasSelf<_>>(to, |state| state)
            })?,
            resolver: linker(|to| resolver::Resolver::add_to_linker::<_, HasSelf<_>>(to, |state| state))?,
            delivery: linker(|to| {
                delivery::DeliveryPolicy::add_to_linker::<_, HasSelf<_>>(to, |state| state)
            })?,
            biller: linker(|to| biller::Biller::add_to_linker::<_, HasSelf<_>>(to, |state| state))?,
            engine,
            _alive: alive,
        })
    }

    /// Links a component of a world.
    pub(crate) fn link(
        &self,
        hook: Hook,
        wit: WitVersion,
        component: &Component,
    ) -> wasmtime::Result<InstancePre<InstanceState>> {
        let linker = match (hook, wit) {
            (Hook::Router, WitVersion::V0_2) => &self.router,
            (Hook::Router, WitVersion::V0_1) => &self.previous_router,
            (Hook::Resolver, _) => &self.resolver,
            (Hook::DeliveryPolicy, _) => &self.delivery,
            (Hook::Biller, _) => &self.biller,
        };
        // The WASI names differ between components: they carry the version of the tools that built the component.
        let mut linker = linker.clone();
        wasi::link(&mut linker, component)?;
        linker.instantiate_pre(component)
    }
}

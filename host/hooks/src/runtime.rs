//! The WebAssembly engine that all plugins share.

use crate::HookError;
use crate::bindings::{biller, delivery, previous, resolver, router};
use crate::capabilities::State;
use crate::wasi;
use crate::world::Wit;
use model::Hook;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How often deadlines are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// The engine, a linker per world, and the thread that moves the engine's epoch on.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    router: Linker<State>,
    previous_router: Linker<State>,
    resolver: Linker<State>,
    delivery: Linker<State>,
    biller: Linker<State>,
    _alive: Arc<()>,
}

fn failed(error: &wasmtime::Error) -> HookError {
    HookError::Engine(format!("{error:#}"))
}

impl Runtime {
    /// `memory`: the most octets that one instance may have; `instances`: the most at a time.
    pub(crate) fn new(memory: usize, instances: u32) -> Result<Self, HookError> {
        let mut pool = PoolingAllocationConfig::default();
        // A guest in Python has some thirty core instances and tables, one in JavaScript three memories.
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
        let linker = |add: fn(&mut Linker<State>) -> wasmtime::Result<()>| {
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
        wit: Wit,
        component: &Component,
    ) -> wasmtime::Result<InstancePre<State>> {
        let linker = match (hook, wit) {
            (Hook::Router, Wit::V0_2) => &self.router,
            (Hook::Router, Wit::V0_1) => &self.previous_router,
            (Hook::Resolver, _) => &self.resolver,
            (Hook::DeliveryPolicy, _) => &self.delivery,
            (Hook::Biller, _) => &self.biller,
        };
        // What it wants of WASI depends on the component: the names carry the version that its tools had.
        let mut linker = linker.clone();
        wasi::serve(&mut linker, component)?;
        linker.instantiate_pre(component)
    }
}

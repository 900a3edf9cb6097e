//! The WebAssembly engine that all plugins share.

use crate::HookError;
use crate::bindings::Router;
use crate::capabilities::State;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How often deadlines are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// The engine, its linker, and the thread that moves its epoch on.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    _alive: Arc<()>,
}

impl Runtime {
    /// `memory`: the most octets that one instance may have; `instances`: the most at a time.
    pub(crate) fn new(memory: usize, instances: u32) -> Result<Self, HookError> {
        let mut pool = PoolingAllocationConfig::default();
        pool.total_component_instances(instances)
            .total_core_instances(instances.saturating_mul(4))
            .total_memories(instances.saturating_mul(2))
            .total_tables(instances.saturating_mul(4))
            .max_memory_size(memory)
            .max_memories_per_component(8)
            .max_core_instances_per_component(60)
            .max_component_instance_size(1 << 20)
            .table_elements(20_000);
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .epoch_interruption(true)
            .memory_init_cow(true)
            .parallel_compilation(false)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).map_err(|error| HookError::Engine(format!("{error:#}")))?;
        let mut linker = Linker::new(&engine);
        Router::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)
            .map_err(|error| HookError::Engine(format!("{error:#}")))?;
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
        Ok(Self { engine, linker, _alive: alive })
    }
}

//! The memory limit of an instance, and its use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wasmtime::{ResourceLimiter, Result, StoreLimits};

/// Limits the memory of an instance, and measures it. Called only when a memory or a table grows.
pub(crate) struct MemoryLimits {
    limits: StoreLimits,
    /// All linear memories of the instance together, in octets.
    octets: usize,
    /// The maximum number of octets that an instance of the generation has had.
    highest: Arc<AtomicU64>,
}

impl MemoryLimits {
    pub(crate) fn new(limits: StoreLimits, highest: Arc<AtomicU64>) -> Self {
        Self { limits, octets: 0, highest }
    }
}

impl ResourceLimiter for MemoryLimits {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        let grows = self.limits.memory_growing(current, desired, maximum)?;
        if grows {
            self.octets += desired.saturating_sub(current);
            self.highest.fetch_max(self.octets as u64, Relaxed);
        }
        Ok(grows)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.limits.memory_grow_failed(error)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.limits.table_growing(current, desired, maximum)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> Result<()> {
        self.limits.table_grow_failed(error)
    }

    fn instances(&self) -> usize {
        self.limits.instances()
    }

    fn tables(&self) -> usize {
        self.limits.tables()
    }

    fn memories(&self) -> usize {
        self.limits.memories()
    }
}

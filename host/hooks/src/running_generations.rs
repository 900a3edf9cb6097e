//! Generations that are running, by their bindings.

use crate::generation::Generation;
use crate::worlds::World;
use api::Binding;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A plugin, and the tenant that it serves.
type PluginOfTenant<'g> = (&'g str, Option<&'g str>);

/// Generations that another chain may reuse, indexed by binding.
pub(crate) struct RunningGenerations<'g, W: World>(
    FxHashMap<PluginOfTenant<'g>, Vec<&'g Arc<Generation<W>>>>,
);

impl<'g, W: World> RunningGenerations<'g, W> {
    pub(crate) fn of(generations: impl Iterator<Item = &'g Arc<Generation<W>>>) -> Self {
        let mut all = Self(FxHashMap::default());
        for one in generations {
            let key = (&*one.binding.plugin, one.binding.tenant.as_deref());
            all.0.entry(key).or_default().push(one);
        }
        all
    }

    /// The generation of exactly this binding.
    pub(crate) fn find(&self, binding: &Binding) -> Option<&'g Arc<Generation<W>>> {
        let same = self.0.get(&(&*binding.plugin, binding.tenant.as_deref()))?;
        same.iter().copied().find(|one| one.has_binding(binding))
    }
}

//! Index of a chain's plugins by account, so that a question finds its plugins without a scan of the chain.

use crate::chain::Chain;
use crate::generation::Generation;
use crate::tenant_lines::TenantLines;
use crate::worlds::World;
use model::PeerId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The positions of a chain's plugins, by the tenants that they serve.
#[derive(Default)]
pub(crate) struct ChainPositions {
    /// The tenants of accounts; `None`: no binding serves a tenant, so a question concerns all.
    lines: Option<Arc<TenantLines>>,
    /// The bindings that serve all messages.
    shared: Vec<usize>,
    by_tenant: FxHashMap<Arc<str>, Vec<usize>>,
    /// The generations by their addresses, if there are bindings of tenants.
    members: FxHashSet<usize>,
    /// See [`ChainPositions::accepts_batches`].
    accepts_batches: bool,
}

fn address<W: World>(generation: &Arc<Generation<W>>) -> usize {
    Arc::as_ptr(generation).addr()
}

impl ChainPositions {
    pub(crate) fn of<W: World>(generations: &[Arc<Generation<W>>]) -> Self {
        let tenant = |one: &Arc<Generation<W>>| one.binding.tenant.clone();
        let mut spaces = FxHashSet::default();
        let is_repeated = generations.iter().any(|one| !spaces.insert((&*one.by.plugin, tenant(one))));
        let accepts_batches = !is_repeated && generations.iter().any(|one| one.accepts_batches);
        let Some(first) = generations.iter().find(|one| one.binding.tenant.is_some()) else {
            return Self { accepts_batches, ..Self::default() };
        };
        let mut positions = Self {
            lines: Some(first.environment.services.tenant_lines.clone()),
            members: generations.iter().map(address).collect(),
            accepts_batches,
            ..Self::default()
        };
        for (position, generation) in generations.iter().enumerate() {
            match &generation.binding.tenant {
                None => positions.shared.push(position),
                Some(tenant) => positions.by_tenant.entry(tenant.as_str().into()).or_default().push(position),
            }
        }
        positions
    }

    /// Whether a plugin takes batches, and a batch that goes from plugin to plugin has the same outcomes as single
    /// questions. That is not so if a plugin is in the chain twice for the same tenant: both share their counters, so that
    /// the order of calls shows.
    pub(crate) fn accepts_batches(&self) -> bool {
        self.accepts_batches
    }

    /// Whether a generation is part of the chain; `None`: the chain must be searched.
    pub(crate) fn contains<W: World>(&self, generation: &Arc<Generation<W>>) -> Option<bool> {
        self.lines.as_ref().map(|_| self.members.contains(&address(generation)))
    }

    /// The positions of the plugins for a message of this account, in order; `None`: all.
    pub(crate) fn applicable(&self, account: Option<PeerId>) -> Option<Vec<usize>> {
        let lines = self.lines.as_ref()?;
        let mut positions = self.shared.clone();
        if let Some(line) = account.and_then(|account| lines.of(account)) {
            let own = line.iter().filter_map(|tenant| self.by_tenant.get(tenant));
            positions.extend(own.flatten());
            positions.sort_unstable();
        }
        Some(positions)
    }
}

/// The positions of the plugins for the questions of a batch.
pub(crate) struct BatchPositions {
    /// The positions for all questions, in order.
    all: Vec<usize>,
    /// The positions for each question; `None`: every question concerns all plugins.
    each: Option<Vec<Vec<usize>>>,
}

impl BatchPositions {
    pub(crate) fn of<W: World>(chain: &Chain<W>, questions: &[W::Question<'_>]) -> Self {
        let positions = |question: &W::Question<'_>| chain.positions.applicable(W::account(*question));
        let each: Option<Vec<Vec<usize>>> = questions.iter().map(positions).collect();
        let all = match &each {
            None => (0..chain.generations.len()).collect(),
            Some(each) => {
                let mut all: Vec<usize> = each.iter().flatten().copied().collect();
                all.sort_unstable();
                all.dedup();
                all
            }
        };
        Self { all, each }
    }

    /// The plugins for the questions of the batch, with their positions.
    pub(crate) fn generations<'c, W: World>(
        &self,
        chain: &'c Chain<W>,
    ) -> impl Iterator<Item = (usize, &'c Arc<Generation<W>>)> {
        self.all.iter().filter_map(|position| Some((*position, chain.generations.get(*position)?)))
    }

    /// Whether the question with this index concerns the plugin at a position.
    pub(crate) fn is_asked(&self, question: usize, position: usize) -> bool {
        let Some(each) = &self.each else { return true };
        each.get(question).is_some_and(|positions| positions.binary_search(&position).is_ok())
    }
}

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
pub(crate) struct ChainPlaces {
    /// The tenants of accounts; `None`: no binding serves a tenant, so a question concerns all.
    lines: Option<Arc<TenantLines>>,
    /// The bindings that serve all messages.
    shared: Vec<usize>,
    of_tenant: FxHashMap<Arc<str>, Vec<usize>>,
    /// The generations by their addresses, if there are bindings of tenants.
    members: FxHashSet<usize>,
    /// See [`ChainPlaces::takes_batches`].
    takes_batches: bool,
}

fn address<W: World>(generation: &Arc<Generation<W>>) -> usize {
    Arc::as_ptr(generation).addr()
}

impl ChainPlaces {
    pub(crate) fn of<W: World>(generations: &[Arc<Generation<W>>]) -> Self {
        let tenant = |one: &Arc<Generation<W>>| one.binding.tenant.clone();
        let mut spaces = FxHashSet::default();
        let is_repeated = generations.iter().any(|one| !spaces.insert((&*one.by.plugin, tenant(one))));
        let takes_batches = !is_repeated && generations.iter().any(|one| one.takes_batches);
        let Some(first) = generations.iter().find(|one| one.binding.tenant.is_some()) else {
            return Self { takes_batches, ..Self::default() };
        };
        let mut places = Self {
            lines: Some(first.environment.services.tenant_lines.clone()),
            members: generations.iter().map(address).collect(),
            takes_batches,
            ..Self::default()
        };
        for (place, generation) in generations.iter().enumerate() {
            match &generation.binding.tenant {
                None => places.shared.push(place),
                Some(tenant) => places.of_tenant.entry(tenant.as_str().into()).or_default().push(place),
            }
        }
        places
    }

    /// Whether a plugin takes batches, and a batch that goes from plugin to plugin has the same outcomes as single
    /// questions. That is not so if a plugin is in the chain twice for the same tenant: both share their counters, so that
    /// the order of calls shows.
    pub(crate) fn takes_batches(&self) -> bool {
        self.takes_batches
    }

    /// Whether a generation is part of the chain; `None`: the chain must be searched.
    pub(crate) fn contains<W: World>(&self, generation: &Arc<Generation<W>>) -> Option<bool> {
        self.lines.as_ref().map(|_| self.members.contains(&address(generation)))
    }

    /// The positions of the plugins for a message of this account, in order; `None`: all.
    pub(crate) fn concerned(&self, account: Option<PeerId>) -> Option<Vec<usize>> {
        let lines = self.lines.as_ref()?;
        let mut places = self.shared.clone();
        if let Some(line) = account.and_then(|account| lines.of(account)) {
            let own = line.iter().filter_map(|tenant| self.of_tenant.get(tenant));
            places.extend(own.flatten());
            places.sort_unstable();
        }
        Some(places)
    }
}

/// The positions of the plugins for the questions of a batch.
pub(crate) struct BatchPlaces {
    /// The positions for all questions, in order.
    all: Vec<usize>,
    /// The positions for each question; `None`: every question concerns all plugins.
    each: Option<Vec<Vec<usize>>>,
}

impl BatchPlaces {
    pub(crate) fn of<W: World>(chain: &Chain<W>, questions: &[W::Question<'_>]) -> Self {
        let places = |question: &W::Question<'_>| chain.places.concerned(W::account(*question));
        let each: Option<Vec<Vec<usize>>> = questions.iter().map(places).collect();
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
        self.all.iter().filter_map(|place| Some((*place, chain.generations.get(*place)?)))
    }

    /// Whether the question with this index concerns the plugin at a position.
    pub(crate) fn is_asked(&self, question: usize, place: usize) -> bool {
        let Some(each) = &self.each else { return true };
        each.get(question).is_some_and(|places| places.binary_search(&place).is_ok())
    }
}

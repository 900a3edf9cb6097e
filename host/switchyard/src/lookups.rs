//! Lookups of messages' numbers: from the cache on the link's thread, otherwise by the lookup plugins on a worker.

use crate::config::OnLookupFailure;
use crate::routing::{ApplianceRouting, set_routing};
use hooks::{LookupCache, LookupCacheOptions, LookupStep};
use model::{
    Hook, Lookup, LookupNumber, LookupResult, Message, PluginVersion, RejectReason, RoutingDecision,
    Timestamp, Verdict,
};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

static LOOKUP: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: "lookup".to_owned(), version: String::new() }));

/// The cache of lookup answers, and the reaction to a missing answer.
pub(crate) struct AppliedLookups {
    pub(crate) cache: LookupCache,
    on_failure: OnLookupFailure,
}

impl AppliedLookups {
    pub(crate) fn new(cache: LookupCacheOptions, on_failure: OnLookupFailure) -> Self {
        Self { cache: LookupCache::new(cache), on_failure }
    }
}

impl ApplianceRouting {
    /// If a lookup is bound, sets the attributes of a message's number from the cache. Returns whether the message can
    /// be routed now. If not, its decision is set: it waits for the lookup, or is rejected without an answer.
    pub(crate) fn look_up(&self, message: &mut Message) -> bool {
        if message.routed.lookup.is_none() {
            if !self.hooks.is_bound(Hook::Lookup) {
                return true;
            }
            let Some(number) = LookupNumber::of(&message.destination) else { return true };
            let Some(lookup) = self.lookups.cache.get(&number, Instant::now()) else {
                set_routing(message, RoutingDecision::new(Verdict::AwaitLookup, LOOKUP.clone()));
                return false;
            };
            message.routed.lookup = Some(lookup);
        }
        match self.rejected_without_lookup(message) {
            Some(rejected) => {
                set_routing(message, rejected);
                false
            }
            None => true,
        }
    }

    /// The rejection of a message whose lookup failed; `None` if such messages are routed.
    pub(crate) fn rejected_without_lookup(&self, message: &Message) -> Option<RoutingDecision> {
        let lookup = message.routed.lookup.as_deref()?;
        let is_rejected =
            lookup.result == LookupResult::Failed && self.lookups.on_failure == OnLookupFailure::Reject;
        is_rejected.then(|| {
            let decision = RoutingDecision::new(Verdict::Reject(RejectReason::TryLater), lookup.by.clone());
            decision.with_note("the number could not be looked up")
        })
    }

    /// Calls the lookups for a number, and caches their answer. May block.
    pub(crate) fn ask_lookups(&self, number: &LookupNumber) -> Arc<Lookup> {
        let epoch = self.lookups.cache.epoch();
        let Some((lookup, lifetime)) = self.hooks.look_up(number, Timestamp::now()) else {
            return Arc::new(Lookup {
                result: LookupResult::Unknown,
                attributes: Vec::new(),
                by: LOOKUP.clone(),
                note: Some("no lookup is bound any more".into()),
                cached: false,
                host_calls: None,
            });
        };
        if lookup.result != LookupResult::Failed {
            self.lookups.cache.insert(epoch, number.clone(), lookup.clone(), lifetime, Instant::now());
        }
        Arc::new(lookup)
    }

    /// Sets the attributes of a message's number, from the cache or by calling the lookups at once, without effects.
    pub(crate) fn preview_lookup(&self, message: &mut Message) -> Vec<LookupStep> {
        if message.routed.lookup.is_some() {
            return Vec::new();
        }
        let Some(number) = LookupNumber::of(&message.destination) else { return Vec::new() };
        if self.hooks.is_bound(Hook::Lookup)
            && let Some(cached) = self.lookups.cache.get(&number, Instant::now())
        {
            message.routed.lookup = Some(cached);
            return Vec::new();
        }
        let (steps, lookup) = self.hooks.explain_lookup(&number, Timestamp::now());
        message.routed.lookup = lookup.map(Arc::new);
        steps
    }
}

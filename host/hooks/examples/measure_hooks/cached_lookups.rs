//! Lookups whose answers are cached, as a link finds them for each message.

use crate::bench_fixture::BenchFixture;
use hooks::{LookupCache, LookupCacheOptions};
use model::{Address, Lookup, LookupNumber, LookupResult, Message, PluginVersion};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any measurement.
const LIFETIME: Duration = Duration::from_secs(86_400);

pub(crate) struct CachedLookups(LookupCache);

impl CachedLookups {
    /// Caches an answer for the destination of each message.
    pub(crate) fn fill(fixture: &BenchFixture) -> Self {
        Self::fill_with(fixture.messages.iter().filter_map(|message| LookupNumber::of(&message.destination)))
    }

    /// Caches an answer for each number.
    pub(crate) fn fill_numbers(numbers: &[String]) -> Self {
        Self::fill_with(numbers.iter().filter_map(|number| LookupNumber::of(&Address::international(number))))
    }

    fn fill_with(numbers: impl Iterator<Item = LookupNumber>) -> Self {
        let cache = LookupCache::new(LookupCacheOptions::default());
        let by = Arc::new(PluginVersion { plugin: "lookup".to_owned(), version: String::new() });
        let lookup = Lookup {
            result: LookupResult::Found,
            attributes: vec![("mcc".into(), "262".into()), ("mnc".into(), "01".into())],
            by,
            note: None,
            cached: false,
            host_calls: None,
        };
        numbers.for_each(|number| {
            cache.insert(cache.epoch(), number, lookup.clone(), LIFETIME, Instant::now());
        });
        Self(cache)
    }

    pub(crate) fn get_number(&self, number: &str) -> Option<Arc<Lookup>> {
        self.0.get(&LookupNumber::of(&Address::international(number))?, Instant::now())
    }

    pub(crate) fn get(&self, message: &Message) -> Option<Arc<Lookup>> {
        self.0.get(&LookupNumber::of(&message.destination)?, Instant::now())
    }
}

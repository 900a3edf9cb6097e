//! Generates observations of peers, for plugins that query them.

use super::vocabulary::Vocabulary;
use crate::plugin_host::{CaseFigures, CaseRefusals, CaseSetup};
use model::Hook;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy as _, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

/// Maximum number of peers and values with figures.
const MAX_FIGURES: usize = 6;
/// Maximum of a count.
const MAX_COUNT: u16 = 200;

/// Figures of some peers, in the scopes that the setup grants. There are none for hooks without the interface.
pub(super) fn figures(
    hook: Hook,
    vocabulary: &Vocabulary,
    setup: &CaseSetup,
) -> BoxedStrategy<Vec<CaseFigures>> {
    if !matches!(hook, Hook::Router | Hook::DeliveryPolicy | Hook::Receipt) {
        return Just(Vec::new()).boxed();
    }
    vec(figures_of_one(vocabulary, setup), 0..=MAX_FIGURES).boxed()
}

fn figures_of_one(vocabulary: &Vocabulary, setup: &CaseSetup) -> BoxedStrategy<CaseFigures> {
    let count = || prop_oneof![2 => Just(0_u16), 3 => 0..=MAX_COUNT];
    let refusals = (count(), count(), count(), count(), count()).prop_map(
        |(temporary, permanent, absent, memory_full, throttled)| CaseRefusals {
            temporary,
            permanent,
            absent,
            memory_full,
            throttled,
        },
    );
    let counts = (count(), refusals, count(), count(), count(), count(), 0..=100_000_u64);
    (select(vocabulary.peers.clone()), scope(vocabulary, setup), counts)
        .prop_map(|(peer, (digits, attribute), counts)| {
            let (accepted, refused, unanswered, delivered, failed, conversions, dlr_ms) = counts;
            CaseFigures {
                peer,
                digits,
                attribute,
                accepted,
                refused,
                unanswered,
                delivered,
                failed,
                conversions,
                dlr_ms,
            }
        })
        .boxed()
}

type Scope = (Option<String>, Option<(String, String)>);

fn scope(vocabulary: &Vocabulary, setup: &CaseSetup) -> BoxedStrategy<Scope> {
    let mut all = vec![(None, None)];
    if let Some(grant) = &setup.grants.quality {
        let digits = |count: &u8| {
            let numbers = vocabulary.numbers.iter();
            numbers.filter_map(|number| number.get(..usize::from(*count))).next().map(str::to_owned)
        };
        all.extend(grant.digits.iter().filter_map(digits).map(|digits| (Some(digits), None)));
        let attribute = |name: &String| (None, Some((name.clone(), "value".to_owned())));
        all.extend(grant.attributes.iter().map(attribute));
    }
    (select(all), any::<bool>()).prop_map(|(scope, whole)| if whole { (None, None) } else { scope }).boxed()
}

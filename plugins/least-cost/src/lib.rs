//! A router that takes the cheapest acceptable offer for each message.

use least_cost_policy::{Choice, NoOfferAction, PeerState, Policy};
use switchyard_sdk::{
    Decision, Message, RejectReason, Router, forward, leg, names_peers, pass, peers, reject, tables,
};

struct LeastCost {
    policy: Policy,
    /// The document's own prefixes.
    own: u32,
    /// The appliance's table.
    shared: Option<u32>,
}

impl Router for LeastCost {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        names_peers(policy.peers());
        let rows: Vec<tables::Row> = policy
            .prefixes
            .iter()
            .map(|(key, value)| tables::Row { key: key.clone(), value: *value })
            .collect();
        let own = tables::define_prefixes("offers", &rows)?;
        let shared = policy.table.as_deref().map(tables::open).transpose()?;
        Ok(Self { policy, own, shared })
    }

    fn route(&self, message: &Message) -> Decision {
        match self.choose(message) {
            Choice::Legs { legs, note } => {
                let legs = legs.into_iter().map(|leg_choice| {
                    let mut leg = leg(&leg_choice.peer).rank(leg_choice.rank).costs(leg_choice.cost);
                    if let Some(longest) = leg_choice.longest_wait {
                        leg = leg.waits(longest);
                    }
                    leg
                });
                forward(legs.collect()).because(note)
            }
            Choice::NoOffer { otherwise, note } => match otherwise {
                NoOfferAction::Pass => pass().because(note),
                NoOfferAction::Reject => reject(RejectReason::NoRoute).because(note),
            },
        }
    }
}

impl LeastCost {
    /// The longer prefix decides; between equal lengths, the document's.
    fn choose(&self, message: &Message) -> Choice {
        let own = tables::match_destination(self.own, u32::MAX);
        let shared = self.shared.and_then(|table| {
            let destination = &message.destination.value;
            tables::get_prefix(table, destination.strip_prefix('+').unwrap_or(destination))
        });
        match (own, shared) {
            (own, Some(row)) if own.is_none_or(|own| row.length > own.length) => {
                self.policy.choose_row(&row.value, message.parts, state)
            }
            (Some(own), _) => self.policy.choose(own.value, message.parts, state),
            (None, _) => self.policy.no_offer(),
        }
    }
}

fn state(peer: &str) -> Option<PeerState> {
    peers::state(peer).map(|state| PeerState { links: state.links, queued: state.queued })
}

switchyard_sdk::export_router!(LeastCost);

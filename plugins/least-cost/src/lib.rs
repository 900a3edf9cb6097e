//! A router that chooses the cheapest acceptable offer for each message.

use least_cost_policy::{Choice, NoOfferAction, PeerState, Policy};
use pace_policy::{PaceRule, use_limits};
use policy_values::MessageAttributes;
use switchyard_sdk::{
    Decision, Message, RejectReason, Router, details, forward, leg, names_peers, pass, peers, reject, tables,
};

struct LeastCost {
    policy: Policy,
    /// The document's own prefixes.
    own: u32,
    /// The appliance's table.
    shared: Option<u32>,
    /// The appliance's tables of the pace buckets, in the order of the policy.
    pace_tables: Vec<u32>,
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
        let pace_tables =
            policy.pace_tables().iter().map(|name| tables::open(name)).collect::<Result<_, _>>()?;
        Ok(Self { policy, own, shared, pace_tables })
    }

    fn route(&self, message: &Message) -> Decision {
        let (choice, pace) = self.choose(message);
        let decision = match choice {
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
        };
        if pace.is_empty() {
            return decision;
        }
        use_limits(decision, pace, message, &self.pace_tables)
    }
}

impl LeastCost {
    /// The longer prefix decides; between equal lengths, the document takes precedence.
    fn choose(&self, message: &Message) -> (Choice, &[PaceRule]) {
        let own = self.own_destination();
        let shared = self.shared.and_then(|table| {
            let destination = &message.destination.value;
            tables::get_prefix(table, destination.strip_prefix('+').unwrap_or(destination))
        });
        match (own, shared) {
            (own, Some(row)) if own.is_none_or(|(length, _)| row.length > length) => {
                (self.policy.choose_row(&row.value, message.parts, state), &[])
            }
            (Some((_, index)), _) => {
                let pace = self.policy.destinations.get(index as usize).map_or(&[][..], |one| &one.pace);
                (self.policy.choose(index, message.parts, state), pace)
            }
            (None, _) => (self.policy.no_offer(), &[]),
        }
    }

    /// The document's destination for the message: the length of its prefix, and its index.
    fn own_destination(&self) -> Option<(u32, u32)> {
        let mut digits = u32::MAX;
        let attributes = MessageAttributes::new(details::attribute);
        loop {
            let row = tables::match_destination(self.own, digits)?;
            if let Some(index) = self.policy.destination(row.value, &attributes) {
                return Some((row.length, index));
            }
            // None of this prefix's conditions holds: a shorter prefix may have one that does.
            digits = row.length.checked_sub(1)?;
        }
    }
}

fn state(peer: &str) -> Option<PeerState> {
    peers::state(peer).map(|state| PeerState { links: state.links, queued: state.queued })
}

switchyard_sdk::export_router!(LeastCost);

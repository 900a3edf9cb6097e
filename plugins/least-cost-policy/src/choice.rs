use crate::{Limits, MAX_OFFERS, NoOfferAction, Offer, Policy};
use std::time::Duration;

/// The host's state of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerState {
    /// Links that accept messages now.
    pub links: u32,
    /// Messages in its queue.
    pub queued: u64,
}

/// A chosen leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenLeg {
    /// The peer.
    pub peer: String,
    /// Lower ranks are tried first; equal offers share a rank.
    pub rank: u8,
    /// Cost of the whole message, in millionths.
    pub cost: u32,
    /// Maximum wait of the message before the next leg is tried.
    pub longest_wait: Option<Duration>,
}

/// The choice for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// These legs; at least one.
    Legs {
        /// Cheapest first.
        legs: Vec<ChosenLeg>,
        /// For the trace.
        note: String,
    },
    /// There is no acceptable offer.
    NoOffer {
        /// The document's action for this case.
        otherwise: NoOfferAction,
        /// For the trace.
        note: String,
    },
}

impl Policy {
    /// Chooses legs for a message of `parts` segments, from the offers of the document's destination with this index.
    /// `state` returns the host's state of a peer; `None` if the peer is not in the configuration.
    pub fn choose(&self, index: u32, parts: u16, state: impl Fn(&str) -> Option<PeerState>) -> Choice {
        match self.destinations.get(index as usize) {
            Some(destination) => self.choose_among(&destination.offers, destination.limits, parts, state),
            None => self.no_offer(),
        }
    }

    /// Chooses legs from the offers of a row of the appliance's table.
    pub fn choose_row(&self, row: &str, parts: u16, state: impl Fn(&str) -> Option<PeerState>) -> Choice {
        match Offer::row(row) {
            Ok(mut offers) => {
                offers.truncate(MAX_OFFERS);
                self.choose_among(&offers, self.limits, parts, state)
            }
            Err(what) => self.no_offer_because(format!("in the appliance's table, {what}")),
        }
    }

    /// The choice for a destination without offers.
    #[must_use]
    pub fn no_offer(&self) -> Choice {
        self.no_offer_because("nothing is offered for this destination".to_owned())
    }

    fn no_offer_because(&self, note: String) -> Choice {
        Choice::NoOffer { otherwise: self.otherwise, note }
    }

    fn choose_among(
        &self,
        offers: &[Offer],
        limits: Limits,
        parts: u16,
        state: impl Fn(&str) -> Option<PeerState>,
    ) -> Choice {
        let mut good: Vec<(&Offer, PeerState)> = offers
            .iter()
            .filter(|offer| limits.admit(offer))
            .filter_map(|offer| Some((offer, state(&offer.peer)?)))
            .collect();
        if good.is_empty() {
            return self.no_offer_because(format!(
                "none of {} offers is good enough, or of a known peer",
                offers.len()
            ));
        }
        let able =
            |state: &PeerState| state.links > 0 && self.most_queued.is_none_or(|most| state.queued <= most);
        // If no peer can accept it now, the message waits for the best ones: a refusal gains nothing.
        let waiting = !good.iter().any(|(_, state)| able(state));
        if !waiting {
            good.retain(|(_, state)| able(state));
        }
        let left_out = offers.len() - good.len();
        // The sort is stable: equal offers keep the order of the document.
        good.sort_by_key(|(offer, _)| (offer.cost, std::cmp::Reverse(offer.quality)));
        good.truncate(self.most_legs);
        let mut legs: Vec<ChosenLeg> = Vec::with_capacity(good.len());
        let mut before: Option<(&Offer, u8)> = None;
        for (offer, _) in good {
            let rank = match before {
                Some((other, rank)) if (other.cost, other.quality) == (offer.cost, offer.quality) => rank,
                Some((_, rank)) => rank.saturating_add(1),
                None => 0,
            };
            before = Some((offer, rank));
            legs.push(ChosenLeg {
                peer: offer.peer.clone(),
                rank,
                cost: offer.cost.saturating_mul(u32::from(parts.max(1))),
                longest_wait: offer.longest_wait.or(self.longest_wait),
            });
        }
        let note = match waiting {
            true => format!("no peer can take it now; waits for the cheapest of {}", legs.len()),
            false => format!("the cheapest of {}, {left_out} left out", legs.len()),
        };
        Choice::Legs { legs, note }
    }
}

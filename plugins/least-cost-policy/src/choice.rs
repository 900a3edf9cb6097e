use crate::{Limits, OFFERS, Offer, Otherwise, Policy};
use std::time::Duration;

/// What the host knows of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerState {
    /// Links that take messages now.
    pub links: u32,
    /// Messages waiting for it.
    pub queued: u64,
}

/// A leg that a message takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The peer.
    pub peer: String,
    /// Lower ranks are tried first; offers that are alike share one.
    pub rank: u8,
    /// Millionths for the whole message.
    pub cost: u32,
    /// How long the message waits for it before the next is tried.
    pub longest_wait: Option<Duration>,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// To these; at least one.
    Legs {
        /// The cheapest first.
        legs: Vec<Chosen>,
        /// For the trace.
        note: String,
    },
    /// Nowhere, by what is offered.
    Nowhere {
        /// What the document says of that.
        otherwise: Otherwise,
        /// For the trace.
        note: String,
    },
}

impl Policy {
    /// What a message of so many parts takes of the offers of the document's destination with this index. `state` is what
    /// the host knows of a peer; nothing for one that is not in the configuration.
    pub fn choose(&self, index: u32, parts: u16, state: impl Fn(&str) -> Option<PeerState>) -> Choice {
        match self.destinations.get(index as usize) {
            Some(destination) => self.of(&destination.offers, destination.limits, parts, state),
            None => self.nothing(),
        }
    }

    /// The same of the offers of a row of the appliance's table.
    pub fn choose_row(&self, row: &str, parts: u16, state: impl Fn(&str) -> Option<PeerState>) -> Choice {
        match Offer::row(row) {
            Ok(mut offers) => {
                offers.truncate(OFFERS);
                self.of(&offers, self.limits, parts, state)
            }
            Err(what) => self.nowhere(format!("in the appliance's table, {what}")),
        }
    }

    /// What becomes of a destination for which nothing is offered.
    #[must_use]
    pub fn nothing(&self) -> Choice {
        self.nowhere("nothing is offered for this destination".to_owned())
    }

    fn nowhere(&self, note: String) -> Choice {
        Choice::Nowhere { otherwise: self.otherwise, note }
    }

    fn of(
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
            return self
                .nowhere(format!("none of {} offers is good enough, or of a known peer", offers.len()));
        }
        let able =
            |state: &PeerState| state.links > 0 && self.most_queued.is_none_or(|most| state.queued <= most);
        // Where no peer can take it now, it waits for the best ones: nothing is won by refusing it.
        let waiting = !good.iter().any(|(_, state)| able(state));
        if !waiting {
            good.retain(|(_, state)| able(state));
        }
        let left_out = offers.len() - good.len();
        // The sort keeps the order of the document among equals.
        good.sort_by_key(|(offer, _)| (offer.cost, std::cmp::Reverse(offer.quality)));
        good.truncate(self.most_legs);
        let mut legs: Vec<Chosen> = Vec::with_capacity(good.len());
        let mut before: Option<(&Offer, u8)> = None;
        for (offer, _) in good {
            let rank = match before {
                Some((other, rank)) if (other.cost, other.quality) == (offer.cost, offer.quality) => rank,
                Some((_, rank)) => rank.saturating_add(1),
                None => 0,
            };
            before = Some((offer, rank));
            legs.push(Chosen {
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

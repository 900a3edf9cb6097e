//! Legs, sorted so that they can be compared and described.

use model::{Address, Leg};
use smallvec::SmallVec;
use std::sync::Arc;

/// A leg to a named peer.
pub(crate) type PeerLeg = Leg<Arc<str>>;

/// The compared properties of a leg.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedLeg<'a> {
    pub(crate) peer: &'a str,
    pub(crate) rank: u8,
    pub(crate) weight: u16,
    pub(crate) source: Option<&'a Address>,
    pub(crate) destination: Option<&'a Address>,
}

impl<'a> From<&'a PeerLeg> for ComparedLeg<'a> {
    fn from(leg: &'a PeerLeg) -> Self {
        let (source, destination) = (leg.source.as_ref(), leg.destination.as_ref());
        Self { peer: &leg.peer, rank: leg.rank, weight: leg.weight.max(1), source, destination }
    }
}

/// The way in which rewritten addresses are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressComparison {
    Whole,
    /// By value only: the archive has no more.
    Values,
}

impl AddressComparison {
    fn is_same(self, one: Option<&Address>, other: Option<&Address>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => one.value == other.value && (self == Self::Values || one == other),
            _ => false,
        }
    }
}

/// Legs sorted by rank, and within a rank by the compared properties, because the engine picks a leg of a rank at
/// random.
pub(crate) struct ComparedLegs<'a>(SmallVec<[ComparedLeg<'a>; 8]>);

impl<'a> ComparedLegs<'a> {
    pub(crate) fn of(legs: &'a [PeerLeg]) -> Self {
        let mut legs: SmallVec<[ComparedLeg<'a>; 8]> = legs.iter().map(ComparedLeg::from).collect();
        let value = |address: Option<&'a Address>| address.map(|address| &address.value[..]);
        let kind = |address: Option<&Address>| address.map(|address| (address.ton, address.npi));
        legs.sort_unstable_by_key(|leg| {
            let values = (value(leg.source), value(leg.destination));
            (leg.rank, leg.peer, values, leg.weight, kind(leg.source), kind(leg.destination))
        });
        Self(legs)
    }

    /// Iterates over the ranks.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = &[ComparedLeg<'a>]> {
        self.0.chunk_by(|one, next| one.rank == next.rank)
    }

    /// Whether a message would take the same legs with the same probabilities.
    pub(crate) fn is_same(&self, other: &Self, comparison: AddressComparison) -> bool {
        self.0.len() == other.0.len()
            && self.ranks().count() == other.ranks().count()
            && self.ranks().zip(other.ranks()).all(|(one, other)| same_rank(one, other, comparison))
    }
}

fn same_rank(one: &[ComparedLeg<'_>], other: &[ComparedLeg<'_>], comparison: AddressComparison) -> bool {
    let total = |legs: &[ComparedLeg<'_>]| legs.iter().map(|leg| u64::from(leg.weight)).sum::<u64>();
    let (all, all_other) = (total(one), total(other));
    one.len() == other.len()
        && one.iter().zip(other).all(|(leg, other)| {
            leg.peer == other.peer
                && u64::from(leg.weight) * all_other == u64::from(other.weight) * all
                && comparison.is_same(leg.source, other.source)
                && comparison.is_same(leg.destination, other.destination)
        })
}

/// The greatest common divisor of the weights of a rank.
pub(crate) fn common_divisor(legs: &[ComparedLeg<'_>]) -> u16 {
    legs.iter().fold(0, |divisor, leg| {
        let (mut one, mut other) = (divisor, leg.weight);
        while other != 0 {
            (one, other) = (other, one % other);
        }
        one
    })
}

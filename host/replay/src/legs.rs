//! Legs of archived verdicts and of judgements, seen alike: in an order of their own, so that they can be compared and named.

use crate::candidate::JudgedLeg;
use archive::ArchivedLeg;
use model::Address;
use smallvec::SmallVec;

/// A leg as far as it is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg<'a> {
    pub(crate) peer: &'a str,
    pub(crate) rank: u8,
    pub(crate) weight: u16,
    pub(crate) source: Option<&'a Address>,
    pub(crate) destination: Option<&'a Address>,
}

impl<'a> From<&'a ArchivedLeg> for Leg<'a> {
    fn from(leg: &'a ArchivedLeg) -> Self {
        let (source, destination) = (leg.source.as_ref(), leg.destination.as_ref());
        Self { peer: &leg.peer, rank: leg.rank, weight: leg.weight.max(1), source, destination }
    }
}

impl<'a> From<&'a JudgedLeg> for Leg<'a> {
    fn from(leg: &'a JudgedLeg) -> Self {
        let (source, destination) = (leg.source.as_ref(), leg.destination.as_ref());
        Self { peer: &leg.peer, rank: leg.rank, weight: leg.weight.max(1), source, destination }
    }
}

/// Type and plan of rewritten addresses are compared, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rewrites {
    Whole,
    /// Only their values are known of the archived ones.
    Values,
}

impl Rewrites {
    fn same(self, one: Option<&Address>, other: Option<&Address>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => one.value == other.value && (self == Self::Values || one == other),
            _ => false,
        }
    }
}

/// Legs by rank; within a rank by what is compared, since the engine draws lots there.
pub(crate) struct Legs<'a>(SmallVec<[Leg<'a>; 8]>);

impl<'a> Legs<'a> {
    pub(crate) fn of<L>(legs: &'a [L]) -> Self
    where
        Leg<'a>: From<&'a L>,
    {
        let mut legs: SmallVec<[Leg<'a>; 8]> = legs.iter().map(Leg::from).collect();
        let value = |address: Option<&'a Address>| address.map(|address| &address.value[..]);
        let kind = |address: Option<&Address>| address.map(|address| (address.ton, address.npi));
        legs.sort_unstable_by_key(|leg| {
            let values = (value(leg.source), value(leg.destination));
            (leg.rank, leg.peer, values, leg.weight, kind(leg.source), kind(leg.destination))
        });
        Self(legs)
    }

    /// One rank after the other.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = &[Leg<'a>]> {
        self.0.chunk_by(|one, next| one.rank == next.rank)
    }

    /// Whether a message would go the same ways, with the same chances.
    pub(crate) fn same(&self, other: &Self, rewrites: Rewrites) -> bool {
        self.0.len() == other.0.len()
            && self.ranks().count() == other.ranks().count()
            && self.ranks().zip(other.ranks()).all(|(one, other)| same_rank(one, other, rewrites))
    }
}

fn same_rank(one: &[Leg<'_>], other: &[Leg<'_>], rewrites: Rewrites) -> bool {
    let total = |legs: &[Leg<'_>]| legs.iter().map(|leg| u64::from(leg.weight)).sum::<u64>();
    let (all, all_other) = (total(one), total(other));
    one.len() == other.len()
        && one.iter().zip(other).all(|(leg, other)| {
            leg.peer == other.peer
                && u64::from(leg.weight) * all_other == u64::from(other.weight) * all
                && rewrites.same(leg.source, other.source)
                && rewrites.same(leg.destination, other.destination)
        })
}

/// The greatest number by which the weights of a rank can be divided.
pub(crate) fn common_divisor(legs: &[Leg<'_>]) -> u16 {
    legs.iter().fold(0, |divisor, leg| {
        let (mut one, mut other) = (divisor, leg.weight);
        while other != 0 {
            (one, other) = (other, one % other);
        }
        one
    })
}

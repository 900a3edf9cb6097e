use crate::{Candidate, NoCandidateAction, Policy, SuccessMeasure};
use std::cmp::Reverse;
use std::time::Duration;

/// Observed outcomes of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// Attempts that it accepted.
    pub accepted: u32,
    /// Attempts that it refused as temporary or permanent.
    pub refused: u32,
    /// Attempts that it refused because of the subscriber or of its rate limit: they do not count as failures.
    pub excused: u32,
    /// Attempts that it did not answer.
    pub unanswered: u32,
    /// Messages that were delivered.
    pub delivered: u32,
    /// Messages that were not delivered.
    pub failed: u32,
    /// Messages that led to a conversion.
    pub conversions: u32,
}

impl Outcomes {
    fn attempts(&self) -> u64 {
        [self.accepted, self.refused, self.excused, self.unanswered].into_iter().map(u64::from).sum()
    }

    /// The number of successes, and of all outcomes that count.
    fn successes(&self, measure: SuccessMeasure) -> (u64, u64) {
        let (good, all) = match measure {
            SuccessMeasure::Dlr => {
                (self.delivered, vec![self.delivered, self.failed, self.refused, self.unanswered])
            }
            SuccessMeasure::Conversion => (self.conversions, vec![self.accepted]),
        };
        let all = all.into_iter().map(u64::from).sum();
        (u64::from(good).min(all), all)
    }
}

/// The host's data about a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Candidacy {
    /// Links that accept messages now.
    pub links: u32,
    /// Outcomes of messages like the current one.
    pub similar: Outcomes,
    /// Outcomes of all messages.
    pub overall: Outcomes,
}

/// A chosen leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenLeg {
    /// The peer.
    pub peer: String,
    /// Lower ranks are tried first.
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
        /// In the order in which they are tried.
        legs: Vec<ChosenLeg>,
        /// For the trace.
        note: String,
    },
    /// There is no candidate.
    NoCandidate {
        /// The document's action for this case.
        otherwise: NoCandidateAction,
        /// For the trace.
        note: String,
    },
}

/// A candidate with its success rate.
#[derive(Debug, Clone, Copy)]
struct Rated<'a> {
    candidate: &'a Candidate,
    /// In hundredths of a percent.
    rate: u32,
    /// Number of outcomes in the rate; 0: the rate is assumed.
    samples: u64,
    attempts: u64,
}

impl Policy {
    /// Chooses legs for a message of `parts` segments, among the candidates of the destination with this index. `spread` is
    /// the message's number from [`spread`](crate::spread()); `ask` returns the host's data about a peer, `None` if the peer
    /// is not in the configuration.
    pub fn choose(
        &self,
        index: u32,
        parts: u16,
        spread: u32,
        ask: impl Fn(&str) -> Option<Candidacy>,
    ) -> Choice {
        let all = self.destinations.get(index as usize).map_or(&[][..], Vec::as_slice);
        let mut known: Vec<(&Candidate, Candidacy)> =
            all.iter().filter_map(|candidate| Some((candidate, ask(&candidate.peer)?))).collect();
        // If no peer can take the message now, it waits for the preferred peer.
        if known.iter().any(|(_, candidacy)| candidacy.links > 0) {
            known.retain(|(_, candidacy)| candidacy.links > 0);
        }
        let rated: Vec<Rated<'_>> =
            known.into_iter().map(|(candidate, candidacy)| self.rate(candidate, &candidacy)).collect();
        let Some(preferred) = self.preferred(&rated) else {
            return self.no_candidate("no candidate is a known peer");
        };
        let mut others: Vec<usize> = (0..rated.len()).filter(|place| *place != preferred).collect();
        let share = self.exploration * 100;
        let explored = spread.checked_div(share).and_then(|place| others.get(place as usize).copied());
        others.sort_by_key(|place| Reverse(rated.get(*place).map(|other| other.rate)));
        let first = explored.unwrap_or(preferred);
        let order = [first, preferred].into_iter().chain(others);
        let mut legs: Vec<ChosenLeg> = Vec::with_capacity(rated.len());
        for candidate in order.filter_map(|place| rated.get(place)).map(|rated| rated.candidate) {
            if legs.iter().any(|leg| leg.peer == candidate.peer) {
                continue;
            }
            legs.push(ChosenLeg {
                peer: candidate.peer.clone(),
                rank: u8::try_from(legs.len()).unwrap_or(u8::MAX),
                cost: candidate.cost.saturating_mul(u32::from(parts.max(1))),
                longest_wait: self.longest_wait,
            });
        }
        Choice::Legs { legs, note: note(&rated, first, explored.is_some()) }
    }

    /// The choice for a destination without candidates.
    #[must_use]
    pub fn no_candidate(&self, note: &str) -> Choice {
        Choice::NoCandidate { otherwise: self.otherwise, note: note.to_owned() }
    }

    fn rate<'a>(&self, candidate: &'a Candidate, candidacy: &Candidacy) -> Rated<'a> {
        let attempts = candidacy.similar.attempts();
        let enough = [&candidacy.similar, &candidacy.overall]
            .into_iter()
            .map(|outcomes| outcomes.successes(self.success))
            .find(|(_, all)| *all >= u64::from(self.samples));
        match enough {
            Some((good, all)) => {
                let rate = u32::try_from(good * 10_000 / all.max(1)).unwrap_or(10_000);
                Rated { candidate, rate, samples: all, attempts }
            }
            None => Rated { candidate, rate: self.assumed * 100, samples: 0, attempts },
        }
    }

    /// The cheapest candidate whose success rate is close enough to the best one. The candidate with most of the traffic
    /// keeps it up to the larger of the two margins: the traffic itself records the last choice.
    fn preferred(&self, rated: &[Rated<'_>]) -> Option<usize> {
        let best = rated.iter().map(|one| one.rate).max()?;
        let most = rated.iter().map(|one| one.attempts).max().filter(|attempts| *attempts > 0);
        let incumbent = most.and_then(|most| rated.iter().position(|one| one.attempts == most));
        let is_close = |place: usize, one: &Rated<'_>| {
            let margin = if incumbent == Some(place) { self.leave_margin } else { self.return_margin };
            one.rate + margin * 100 >= best
        };
        let close = rated.iter().enumerate().filter(|(place, one)| is_close(*place, one));
        let key =
            |place: usize, one: &Rated<'_>| (one.candidate.cost, incumbent != Some(place), Reverse(one.rate));
        close.min_by_key(|(place, one)| key(*place, one)).map(|(place, _)| place)
    }
}

/// `south, 95 % of 1200; north 41 % of 900`.
fn note(rated: &[Rated<'_>], first: usize, explores: bool) -> String {
    let describe = |one: &Rated<'_>| match one.samples {
        0 => format!("{} assumed {} %", one.candidate.peer, one.rate / 100),
        samples => format!("{} {} % of {samples}", one.candidate.peer, one.rate / 100),
    };
    let others = rated.iter().enumerate().filter(|(place, _)| *place != first).map(|(_, one)| describe(one));
    let all: Vec<String> = rated.get(first).map(describe).into_iter().chain(others).collect();
    format!("{}{}", if explores { "explores " } else { "" }, all.join("; "))
}

//! A router that sends each message to the cheapest candidate that delivers well, according to the host's observations. A
//! small share of the messages explores the other candidates.

use adaptive_policy::{Candidacy, Choice, NoCandidateAction, Outcomes, Policy, Scope, spread};
use switchyard_sdk::{
    Decision, Message, RejectReason, Router, clock, forward, leg, names_peers, pass, peers, quality, reject,
    tables,
};

struct Adaptive {
    policy: Policy,
    prefixes: u32,
    /// The scope of messages like the current one; `None`: all messages of a peer.
    scope: Option<quality::Scope>,
}

impl Router for Adaptive {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        names_peers(policy.peers());
        let scope = match &policy.scope {
            Scope::Peer => None,
            Scope::Digits(digits) => Some(quality::Scope::Digits(*digits)),
            Scope::Attribute(name) => Some(quality::Scope::Attribute(name.clone())),
        };
        check_grant(&policy, scope.as_ref())?;
        let row = |(key, value): &(String, u32)| tables::Row { key: key.clone(), value: *value };
        let rows: Vec<tables::Row> = policy.prefixes.iter().map(row).collect();
        let prefixes = tables::define_prefixes("candidates", &rows)?;
        Ok(Self { policy, prefixes, scope })
    }

    fn route(&self, message: &Message) -> Decision {
        match self.choose(message) {
            Choice::Legs { legs, note } => {
                let legs = legs.into_iter().map(|chosen| {
                    let leg = leg(&chosen.peer).rank(chosen.rank).costs(chosen.cost);
                    match chosen.longest_wait {
                        Some(longest) => leg.waits(longest),
                        None => leg,
                    }
                });
                forward(legs.collect()).because(note)
            }
            Choice::NoCandidate { otherwise, note } => match otherwise {
                NoCandidateAction::Pass => pass().because(note),
                NoCandidateAction::Reject => reject(RejectReason::NoRoute).because(note),
            },
        }
    }
}

/// Refuses a document whose scope the binding does not grant.
fn check_grant(policy: &Policy, scope: Option<&quality::Scope>) -> Result<(), String> {
    let (Some(scope), Some(peer)) = (scope, policy.peers().first().copied()) else { return Ok(()) };
    if quality::observed(peer, scope) != Err(quality::Unavailable::NotGranted) {
        return Ok(());
    }
    let (key, grant) = match scope {
        quality::Scope::Digits(digits) => ("digits", format!("digits = [{digits}]")),
        quality::Scope::Attribute(name) => ("attribute", format!("attributes = [{name:?}]")),
        quality::Scope::Peer => return Ok(()),
    };
    Err(format!("`{key}` needs a grant: add `quality = {{ {grant} }}` to the grants of the binding"))
}

impl Adaptive {
    fn choose(&self, message: &Message) -> Choice {
        let Some(row) = tables::match_destination(self.prefixes, u32::MAX) else {
            return self.policy.no_candidate("there are no candidates for this destination");
        };
        // The time varies the choice for subscribers who get many messages. A replay sees the same time.
        let spread = spread(&[
            message.origin.as_bytes(),
            message.source.value.as_bytes(),
            message.destination.value.as_bytes(),
            &clock::now().to_le_bytes(),
        ]);
        self.policy.choose(row.value, message.parts, spread, |peer| self.candidacy(peer))
    }

    fn candidacy(&self, peer: &str) -> Option<Candidacy> {
        let links = peers::state(peer)?.links;
        let overall = outcomes(quality::observed(peer, &quality::Scope::Peer));
        let similar = match &self.scope {
            Some(scope) => outcomes(quality::observed(peer, scope)),
            None => overall,
        };
        Some(Candidacy { links, similar, overall })
    }
}

fn outcomes(observed: Result<quality::Figures, quality::Unavailable>) -> Outcomes {
    let Ok(figures) = observed else { return Outcomes::default() };
    let refused = figures.refused;
    Outcomes {
        accepted: figures.accepted,
        refused: refused.temporary.saturating_add(refused.permanent),
        excused: refused.absent.saturating_add(refused.memory_full).saturating_add(refused.throttled),
        unanswered: figures.unanswered,
        delivered: figures.delivered,
        failed: figures.failed,
        conversions: figures.conversions,
    }
}

switchyard_sdk::export_router!(Adaptive);

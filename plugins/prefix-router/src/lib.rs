//! The default router: the longest prefix of the destination decides.

use pace_policy::use_limits;
use policy_values::MessageAttributes;
use prefix_policy::{Action, LegRule, Policy, Reject, Rule, Target};
use switchyard_sdk::{
    Address, Decision, Leg, Message, RejectReason, Router, details, forward, home, names_peers, pass, reject,
    tables,
};

struct PrefixRouter {
    policy: Policy,
    table: u32,
    /// The appliance's tables, in the order of the policy.
    shared: Vec<u32>,
}

impl Router for PrefixRouter {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        names_peers(policy.peers());
        let rows: Vec<tables::Row> = policy
            .prefixes
            .iter()
            .map(|(key, value)| tables::Row { key: key.clone(), value: *value })
            .collect();
        let table = tables::define_prefixes("routes", &rows)?;
        let shared = policy.tables().iter().map(|name| tables::open(name)).collect::<Result<_, _>>()?;
        Ok(Self { policy, table, shared })
    }

    fn route(&self, message: &Message) -> Decision {
        let mut digits = u32::MAX;
        let attributes = MessageAttributes::new(details::attribute);
        while let Some(found) = tables::match_destination(self.table, digits) {
            let rules = self.policy.rules.get(found.value as usize).map_or(&[][..], Vec::as_slice);
            let applies = |rule: &&Rule| rule.applies(&message.origin, &message.source.value, &attributes);
            if let Some(rule) = rules.iter().find(applies) {
                return self.decide(&rule.target, message);
            }
            // None of this prefix's rules applies: a shorter prefix may have one that does.
            match found.length.checked_sub(1) {
                Some(shorter) => digits = shorter,
                None => break,
            }
        }
        match &self.policy.default {
            Some(target) => self.decide(target, message),
            None => pass(),
        }
    }
}

impl PrefixRouter {
    fn decide(&self, target: &Target, message: &Message) -> Decision {
        let decision = decide(target, message);
        if target.limits.is_empty() {
            return decision;
        }
        use_limits(decision, &target.limits, message, &self.shared)
    }
}

fn decide(target: &Target, message: &Message) -> Decision {
    let decision = match &target.action {
        Action::Forward(rules) => {
            let legs: Vec<Leg> = rules.iter().filter_map(|rule| leg(rule, message)).collect();
            if legs.is_empty() {
                return reject(RejectReason::InvalidDestination)
                    .because("the destination has too few or too many digits for every leg of its route");
            }
            forward(legs)
        }
        Action::Home => home(),
        Action::Reject(reason) => reject(match reason {
            Reject::NoRoute => RejectReason::NoRoute,
            Reject::InvalidDestination => RejectReason::InvalidDestination,
            Reject::InvalidSource => RejectReason::InvalidSource,
            Reject::Prohibited => RejectReason::Prohibited,
            Reject::NotAuthorised => RejectReason::NotAuthorised,
            Reject::TryLater => RejectReason::TryLater,
        }),
    };
    match &target.note {
        Some(note) => decision.because(note.as_str()),
        None => decision,
    }
}

/// The leg for this message; `None` if the destination cannot be converted to the leg's form.
fn leg(rule: &LegRule, message: &Message) -> Option<Leg> {
    let old = &message.destination;
    let destination = match rule.rewrites() {
        true => Some(Address {
            ton: rule.ton.unwrap_or(old.ton),
            npi: rule.npi.unwrap_or(old.npi),
            value: rule.destination(&old.value)?,
        }),
        false => None,
    };
    let source = rule.source.as_ref().map(|value| Address {
        ton: message.source.ton,
        npi: message.source.npi,
        value: value.clone(),
    });
    Some(Leg {
        peer: rule.peer.clone(),
        rank: rule.rank,
        weight: rule.weight,
        cost: rule.cost,
        longest_wait: rule.longest_wait_ms,
        source,
        destination,
    })
}

switchyard_sdk::export_router!(PrefixRouter);

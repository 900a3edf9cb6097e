//! The expected report, computed by plain comparisons of all messages.

use archive::ArchivedMessage;
use model::{Address, MessageChanges, RejectReason, SenderRequest, Verdict};
use replay::{
    AccountPrice, CandidateDecision, CandidatePrice, CandidateVerdict, DifferenceExample, DifferenceGroup,
    InexactReason, PriceReport, PriceSums, RemainingGroups, ReplayOptions, ReplayOutcome, ReplayReport,
    Throughput,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A leg as text, and its compared properties.
type Leg = (u8, String, u64, Option<Address>, Option<Address>);

/// A leg: peer, share in lowest terms, rewrites.
type PlainLeg = (String, (u64, u64), Option<Address>, Option<Address>);

/// A verdict as text, and its compared properties.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PlainVerdict {
    text: String,
    /// The legs of each rank.
    legs: Vec<Vec<PlainLeg>>,
    at: Option<u64>,
    sender: Option<Box<SenderRequest>>,
    changes: Option<Box<MessageChanges>>,
}

impl PlainVerdict {
    fn with(mut self, sender: &Option<Box<SenderRequest>>, changes: &Option<Box<MessageChanges>>) -> Self {
        self.changes.clone_from(changes);
        self.sender.clone_from(sender);
        if let Some(request) = sender {
            let otherwise = serde_json::to_value(request.otherwise).unwrap();
            self.text += &format!(", sender of {} else {}", request.pool, otherwise.as_str().unwrap());
        }
        if let Some(changes) = changes {
            let becomes = if changes.tlvs[0].1.is_some() { "set" } else { "removed" };
            let bucket = &changes.pace_buckets[0].name;
            self.text += &format!(", TLV 0x1401 {becomes}, attribute brand set, pace bucket {bucket}");
        }
        self
    }
}

fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

fn reason_name(reason: RejectReason) -> String {
    // The names in policy documents are the serde names of the model.
    serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned()
}

fn forward(mut legs: Vec<Leg>, values_only: bool) -> PlainVerdict {
    let bare = |address: &Option<Address>| {
        address
            .as_ref()
            .map(|address| if values_only { Address::new(0, 0, &address.value) } else { address.clone() })
    };
    for leg in &mut legs {
        leg.3 = bare(&leg.3);
        leg.4 = bare(&leg.4);
    }
    let ranks: BTreeSet<u8> = legs.iter().map(|leg| leg.0).collect();
    let mut plain =
        PlainVerdict { text: String::new(), legs: Vec::new(), at: None, sender: None, changes: None };
    let mut shown = Vec::new();
    for rank in ranks {
        let mut these: Vec<_> = legs.iter().filter(|leg| leg.0 == rank).cloned().collect();
        let value = |address: &Option<Address>| address.as_ref().map(|address| address.value.to_vec());
        these.sort_by_key(|leg| {
            (leg.1.clone(), value(&leg.3), value(&leg.4), leg.2, leg.3.clone(), leg.4.clone())
        });
        let total: u64 = these.iter().map(|leg| leg.2).sum();
        let common = these.iter().fold(0, |common, leg| divisor(common, leg.2));
        let unequal = these.iter().any(|leg| leg.2 != these[0].2);
        let words: Vec<String> = these
            .iter()
            .map(|leg| {
                let rewrites = match (&leg.3, &leg.4) {
                    (None, None) => "",
                    (Some(_), None) => "(source rewritten)",
                    (None, Some(_)) => "(destination rewritten)",
                    (Some(_), Some(_)) => "(both rewritten)",
                };
                let share = if unequal { format!("*{}", leg.2 / common) } else { String::new() };
                format!("{}{rewrites}{share}", leg.1)
            })
            .collect();
        shown.push(words.join("|"));
        plain.legs.push(
            these
                .into_iter()
                .map(|leg| {
                    let common = divisor(leg.2, total);
                    (leg.1, (leg.2 / common, total / common), leg.3, leg.4)
                })
                .collect(),
        );
    }
    plain.text = format!("forward {}", shown.join(","));
    plain
}

fn plain_verdict(text: impl Into<String>) -> PlainVerdict {
    PlainVerdict { text: text.into(), legs: Vec::new(), at: None, sender: None, changes: None }
}

fn plain(message: &ArchivedMessage, verdict: &Verdict<Arc<str>>) -> PlainVerdict {
    match verdict {
        Verdict::Forward(legs) if legs.iter().all(|leg| leg.resolve) => plain_verdict("home"),
        Verdict::Forward(legs) => {
            let legs = legs.iter().map(|leg| {
                let weight = u64::from(leg.weight.max(1));
                (leg.rank, leg.peer.to_string(), weight, leg.source.clone(), leg.destination.clone())
            });
            forward(legs.collect(), message.missing.is_some())
        }
        Verdict::Hold(until) => PlainVerdict { at: Some(until.0), ..plain_verdict("hold") },
        Verdict::Quarantine => plain_verdict("quarantine"),
        Verdict::AwaitLookup => plain_verdict("await lookup"),
        Verdict::Drop(shown) => plain_verdict(format!("drop, reported as {}", shown.name())),
        Verdict::Reject(reason) => plain_verdict(format!("reject {}", reason_name(*reason))),
    }
}

fn plain_decision(message: &ArchivedMessage, decision: &CandidateDecision) -> PlainVerdict {
    match &decision.verdict {
        CandidateVerdict::Decided(verdict) => plain(message, verdict),
        CandidateVerdict::Pass => plain_verdict("pass"),
        CandidateVerdict::Fault(kind) => plain_verdict(format!("fault {kind}")),
    }
}

fn inexact_reason(message: &ArchivedMessage, decision: &CandidateDecision) -> Option<String> {
    let older = "archived without host call results, by an older version or with redacted numbers";
    message
        .missing
        .map(|_| older.to_owned())
        .or_else(|| decision.inexact_because.as_ref().map(ToString::to_string))
}

/// The expected report, except for its throughput.
pub(crate) fn expected(
    options: &ReplayOptions,
    pairs: &[(ArchivedMessage, CandidateDecision)],
) -> ReplayReport {
    let seen: Vec<_> = pairs.iter().filter(|(message, _)| message.routed).collect();
    let different: Vec<_> = seen
        .iter()
        .filter_map(|(message, decision)| {
            let from = plain(message, &message.verdict).with(&message.sender, &message.changes);
            let to = plain_decision(message, decision).with(&decision.sender, &decision.changes);
            if from == to {
                return None;
            }
            let to = match (from.text == to.text, from.at, to.at) {
                (_, Some(_), Some(_)) => to.text.replacen("hold", "hold until a different time", 1),
                (true, ..) => format!("{} otherwise", to.text),
                (false, ..) => to.text,
            };
            Some((message, decision, from.text, to))
        })
        .collect();
    let mut kept: Vec<(String, String)> = Vec::new();
    for (.., from, to) in &different {
        let key = (from.clone(), to.clone());
        if !kept.contains(&key) && kept.len() < options.groups {
            kept.push(key);
        }
    }
    let exact =
        |message: &ArchivedMessage, decision: &CandidateDecision| inexact_reason(message, decision).is_none();
    let mut groups: Vec<DifferenceGroup> = kept
        .iter()
        .map(|(from, to)| {
            let of: Vec<_> = different.iter().filter(|(.., f, t)| f == from && t == to).collect();
            DifferenceGroup {
                from: from.clone(),
                to: to.clone(),
                count: of.len() as u64,
                exact: of.iter().filter(|(message, decision, ..)| exact(message, decision)).count() as u64,
                examples: of
                    .iter()
                    .take(options.examples)
                    .map(|(message, decision, ..)| DifferenceExample {
                        id: message.id,
                        accepted_at: message.accepted_at,
                        origin: message.origin.to_string(),
                        source: "106900001234".into(),
                        destination: "4917012345678".into(),
                        note: decision.note.as_deref().map(str::to_owned),
                        exact: exact(message, decision),
                        request: Vec::new(),
                    })
                    .collect(),
            }
        })
        .collect();
    groups.sort_by_key(|group| (Reverse(group.count), group.from.clone(), group.to.clone()));
    let beyond: Vec<_> =
        different.iter().filter(|(.., from, to)| !kept.contains(&(from.clone(), to.clone()))).collect();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for reason in seen.iter().filter_map(|(message, decision)| inexact_reason(message, decision)) {
        *reasons.entry(reason).or_default() += 1;
    }
    let mut inexact: Vec<_> =
        reasons.into_iter().map(|(because, count)| InexactReason { because, count }).collect();
    inexact.sort_by_key(|one| (Reverse(one.count), one.because.clone()));
    let count = |test: &dyn Fn(&ArchivedMessage, &CandidateDecision) -> bool| {
        seen.iter().filter(|(message, decision)| test(message, decision)).count() as u64
    };
    ReplayReport {
        ended: ReplayOutcome::Complete,
        messages: seen.len() as u64,
        exact: count(&exact),
        inexact,
        same: seen.len() as u64 - different.len() as u64,
        different: different.len() as u64,
        new_rejects: count(&|message, decision| {
            matches!(decision.verdict, CandidateVerdict::Decided(Verdict::Reject(_)))
                && !matches!(message.verdict, Verdict::Reject(_))
        }),
        new_faults: count(&|_, decision| matches!(decision.verdict, CandidateVerdict::Fault(_))),
        unrouted: (pairs.len() - seen.len()) as u64,
        damaged: 0,
        groups,
        other: RemainingGroups {
            count: beyond.len() as u64,
            exact: beyond.iter().filter(|(message, decision, ..)| exact(message, decision)).count() as u64,
        },
        price: price(options, &seen),
        pace: Throughput::default(),
    }
}

fn price(options: &ReplayOptions, seen: &[&(ArchivedMessage, CandidateDecision)]) -> Option<PriceReport> {
    let priced: Vec<_> = seen
        .iter()
        .filter_map(|(message, decision)| {
            let (account, old) = match &message.price {
                Some(price) => (price.account.as_deref(), price.amount),
                None => (None, 0),
            };
            Some(match decision.price.as_ref()? {
                CandidatePrice::Charge { account: new, amount } => {
                    (account, old, Some(&**new), *amount, false)
                }
                CandidatePrice::Free => (account, old, None, 0, false),
                CandidatePrice::Refuse => (account, old, None, 0, true),
            })
        })
        .collect();
    let names: BTreeSet<&str> =
        priced.iter().flat_map(|(one, _, other, ..)| [*one, *other]).flatten().collect();
    let mut accounts: Vec<AccountPrice> = names
        .into_iter()
        .map(|name| {
            let mut sums = PriceSums::default();
            for (account, old, payer, new, _) in &priced {
                let (pays, would) = (*account == Some(name), *payer == Some(name));
                sums.messages += u64::from(pays || would);
                sums.old += if pays { *old } else { 0 };
                sums.new += if would { *new } else { 0 };
            }
            AccountPrice { account: name.to_owned(), sums }
        })
        .collect();
    accounts.sort_by_key(|one| (Reverse(one.sums.new.abs_diff(one.sums.old)), one.account.clone()));
    let rest = accounts.split_off(accounts.len().min(options.accounts));
    let sum = |of: &[AccountPrice]| PriceSums {
        messages: of.iter().map(|one| one.sums.messages).sum(),
        old: of.iter().map(|one| one.sums.old).sum(),
        new: of.iter().map(|one| one.sums.new).sum(),
    };
    let count = |test: &dyn Fn(u64, u64) -> bool| {
        priced.iter().filter(|(_, old, _, new, _)| test(*old, *new)).count() as u64
    };
    (!priced.is_empty()).then(|| PriceReport {
        total: PriceSums {
            messages: priced.len() as u64,
            old: priced.iter().map(|one| one.1).sum(),
            new: priced.iter().map(|one| one.3).sum(),
        },
        same: count(&|old, new| old == new),
        dearer: count(&|old, new| new > old),
        cheaper: count(&|old, new| new < old),
        new_refusals: priced.iter().filter(|one| one.4).count() as u64,
        other: sum(&rest),
        accounts,
    })
}

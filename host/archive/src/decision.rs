//! The column `decision`: what a message's routing and price were decided by, and what was decided; all that a replay
//! needs, in one value that is quick to read.
//!
//! Octets. Numbers of one octet as they are, times 8 little-endian, other numbers in groups of seven bits, lowest first,
//! the eighth set in all but the last (LEB128); a text is its length as such a number, and UTF-8:
//!
//! * 1: format (2 where there is a wish for a sender, which a reader of 1 does not know; otherwise 1)
//! * 1: flags: bit 0 UDHI, 1 routed again, 2 service type, 3 price, 4 host answers, 5 no router was asked, 6 wish for a sender
//! * 8: accepted (ms since the epoch); 8: when it was last routed, if flagged
//! * text: origin; 1: receipts wanted; 1: data coding; 1: priority; number: octets of text
//! * source, destination: each 1 TON, 1 NPI, number: length, octets
//! * service type: number: length, octets, if flagged
//! * verdict: 1 kind: 0 forward (number of legs, legs), 1 hold (8 until), 2 reject (1 reason).
//!   Leg: text peer, 1 rank, number weight, number cost, 1 flags (bit 0 longest wait, 1 source, 2 destination, 3 to be
//!   resolved), then what is flagged: number of ms, address, address
//! * price, if flagged: 1 flags (bit 0 charge, 1 kept on failure), 1 state, charge if flagged: text account, number
//!   amount; then texts plugin and version
//! * wish for a sender, if flagged: 1 otherwise (0 reject, 1 keep the sender, 2 hold), number: the lease in ms and one more, 0
//!   without one; texts pool, holder, user, reason
//! * host answers, if flagged: all that is left

use crate::Parties;
use crate::archived::{ArchivedLeg, ArchivedMessage, ArchivedVerdict, Price, PriceState};
use bytes::Bytes;
use model::{
    Address, DecidedBy, Final, Kind, Message, MessageId, NoSender, PeerId, ReceiptRequest, RejectReason,
    SenderWish, StepKind, Timestamp, Verdict,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

const FORMAT: u8 = 1;
const FORMAT_WITH_SENDER: u8 = 2;

const UDHI: u8 = 1;
const ROUTED_AGAIN: u8 = 2;
const SERVICE_TYPE: u8 = 4;
const PRICE: u8 = 8;
const HOST_ANSWERS: u8 = 16;
const NOT_ROUTED: u8 = 32;
const SENDER: u8 = 64;

/// The value of a message that has ended.
pub(crate) fn encode(message: &Message, ended: &Final, parties: &dyn Parties) -> Vec<u8> {
    let routed = &message.routed;
    let again = last_routed(message, ended);
    let seen = routed.seen.as_deref();
    let flag = |bit: u8, set: bool| if set { bit } else { 0 };
    let mut out = Vec::with_capacity(112 + seen.map_or(0, <[u8]>::len));
    let sender = routed.sender.as_deref();
    out.push(if sender.is_some() { FORMAT_WITH_SENDER } else { FORMAT });
    out.push(
        flag(UDHI, message.text.udhi)
            | flag(ROUTED_AGAIN, again.is_some())
            | flag(SERVICE_TYPE, !message.service_type.is_empty())
            | flag(PRICE, routed.quote.is_some())
            | flag(HOST_ANSWERS, seen.is_some())
            | flag(NOT_ROUTED, matches!(message.kind, Kind::Receipt(_)))
            | flag(SENDER, sender.is_some()),
    );
    out.extend_from_slice(&message.accepted_at.0.to_le_bytes());
    if let Some(again) = again {
        out.extend_from_slice(&again.0.to_le_bytes());
    }
    put_octets(&mut out, parties.name(message.origin).as_bytes());
    out.extend_from_slice(&[message.receipts.bits(), message.text.data_coding, message.priority.level()]);
    put_number(&mut out, message.text.octets.len() as u64);
    put_address(&mut out, &message.source);
    put_address(&mut out, &message.destination);
    if !message.service_type.is_empty() {
        put_octets(&mut out, &message.service_type);
    }
    put_verdict(&mut out, &routed.verdict, &|id| parties.name(id));
    if let Some(quote) = &routed.quote {
        let charge = quote.charge.as_ref();
        let kept = charge.is_some_and(|charge| charge.keep_on_failure);
        out.push(flag(1, charge.is_some()) | flag(2, kept));
        out.push(PriceState::of(quote, ended) as u8);
        if let Some(charge) = charge {
            put_octets(&mut out, charge.account.as_bytes());
            put_number(&mut out, charge.amount);
        }
        put_octets(&mut out, quote.by.plugin.as_bytes());
        put_octets(&mut out, quote.by.version.as_bytes());
    }
    if let Some(wish) = sender {
        out.push(wish.otherwise as u8);
        let lease = wish.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        put_number(&mut out, lease.map_or(0, |lease| lease.saturating_add(1)));
        for text in [wish.pool.as_str(), &wish.holder, &wish.user, &wish.reason] {
            put_octets(&mut out, text.as_bytes());
        }
    }
    out.extend_from_slice(seen.unwrap_or_default());
    out
}

/// When a message was routed again for the last time; `None` where the verdict is the one of its acceptance.
fn last_routed(message: &Message, ended: &Final) -> Option<Timestamp> {
    let again = ended.steps.iter().rev().find_map(|step| match step.kind {
        StepKind::Rerouted { .. } | StepKind::Held { .. } => Some(step.at),
        _ => None,
    });
    match message.routed.verdict {
        // Whatever is refused at once never gets here: it was held before.
        Verdict::Reject(_) => Some(ended.at),
        Verdict::Forward(_) | Verdict::Hold(_) => again,
    }
}

fn put_verdict(out: &mut Vec<u8>, verdict: &Verdict, name: &dyn Fn(PeerId) -> Arc<str>) {
    match verdict {
        Verdict::Forward(legs) => {
            out.push(0);
            put_number(out, legs.len() as u64);
            for leg in legs {
                put_octets(out, name(leg.peer).as_bytes());
                out.push(leg.rank);
                put_number(out, u64::from(leg.weight));
                put_number(out, u64::from(leg.cost));
                out.push(
                    u8::from(leg.longest_wait.is_some())
                        | u8::from(leg.source.is_some()) << 1
                        | u8::from(leg.destination.is_some()) << 2
                        | u8::from(leg.resolve) << 3,
                );
                if let Some(wait) = leg.longest_wait {
                    put_number(out, u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                }
                for address in [&leg.source, &leg.destination].into_iter().flatten() {
                    put_address(out, address);
                }
            }
        }
        Verdict::Hold(until) => {
            out.push(1);
            out.extend_from_slice(&until.0.to_le_bytes());
        }
        Verdict::Reject(reason) => out.extend_from_slice(&[2, *reason as u8]),
    }
}

fn sender(cursor: &mut Cursor<'_>) -> Result<SenderWish, Damage> {
    let otherwise = NoSender::from_octet(cursor.octet()?).ok_or("an unknown way to do without a sender")?;
    let lease = cursor.number()?.checked_sub(1).map(Duration::from_millis);
    Ok(SenderWish {
        pool: cursor.text()?.parse().map_err(|_| "no name of a pool")?,
        holder: cursor.text()?.into(),
        user: cursor.text()?.into(),
        reason: cursor.text()?.into(),
        lease,
        otherwise,
        given: None,
    })
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_octets(out: &mut Vec<u8>, octets: &[u8]) {
    put_number(out, octets.len() as u64);
    out.extend_from_slice(octets);
}

fn put_address(out: &mut Vec<u8>, address: &Address) {
    out.extend_from_slice(&[address.ton, address.npi]);
    put_octets(out, &address.value);
}

/// Reads decisions; names that many of them hold exist once.
///
/// One for each thread: names are then shared within a thread only, and threads do not fight for their counters.
#[derive(Debug, Default)]
pub struct Decoder {
    names: Names,
    deciders: Vec<Arc<DecidedBy>>,
}

/// Names that have been seen. There are few: peers, accounts, plugins.
#[derive(Debug, Default)]
struct Names(Vec<Arc<str>>);

/// Names that are kept, at most: a data base that somebody has filled with others must not fill the memory.
const NAMES: usize = 512;

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(at) = self.0.iter().position(|known| **known == *name) {
            // What is asked for often moves to the front.
            if at > 0 {
                self.0.swap(at, at - 1);
            }
            return self.0[at.saturating_sub(1)].clone();
        }
        let new: Arc<str> = name.into();
        if self.0.len() < NAMES {
            self.0.push(new.clone());
        }
        new
    }
}

/// What is wrong with a value.
type Damage = &'static str;

impl Decoder {
    /// A decoder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A name, the same one each time.
    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        self.names.get(name)
    }

    fn decider(&mut self, plugin: &str, version: &str) -> Arc<DecidedBy> {
        if let Some(known) = self.deciders.iter().find(|by| by.version == version && by.plugin == plugin) {
            return known.clone();
        }
        let by = Arc::new(DecidedBy { plugin: plugin.to_owned(), version: version.to_owned() });
        if self.deciders.len() < NAMES {
            self.deciders.push(by.clone());
        }
        by
    }

    /// Reads what [`encode`] wrote. `whole` is shared with what becomes of it.
    pub(crate) fn message(&mut self, id: MessageId, whole: &Bytes) -> Result<ArchivedMessage, Damage> {
        let mut cursor = Cursor(whole);
        if !matches!(cursor.octet()?, FORMAT | FORMAT_WITH_SENDER) {
            return Err("a decision of an unknown format");
        }
        let flags = cursor.octet()?;
        let accepted_at = cursor.time()?;
        let decided_at = if flags & ROUTED_AGAIN == 0 { accepted_at } else { cursor.time()? };
        let origin = self.names.get(cursor.text()?);
        let receipts = ReceiptRequest::from_bits(cursor.octet()?);
        let (data_coding, priority) = (cursor.octet()?, cursor.octet()?);
        let length = u32::try_from(cursor.number()?).map_err(|_| "too long a text")?;
        let (source, destination) = (cursor.address()?, cursor.address()?);
        let service_type =
            if flags & SERVICE_TYPE == 0 { SmallVec::new() } else { SmallVec::from_slice(cursor.octets()?) };
        let verdict = self.verdict(&mut cursor)?;
        let price = if flags & PRICE == 0 { None } else { Some(Box::new(self.price(&mut cursor)?)) };
        let sender = if flags & SENDER == 0 { None } else { Some(Box::new(sender(&mut cursor)?)) };
        let seen = (flags & HOST_ANSWERS != 0).then(|| whole.slice(whole.len() - cursor.0.len()..));
        Ok(ArchivedMessage {
            id,
            accepted_at,
            decided_at,
            origin,
            source,
            destination,
            service_type,
            data_coding,
            priority,
            length,
            udhi: flags & UDHI != 0,
            receipts,
            body: None,
            verdict,
            sender,
            price,
            seen,
            routed: flags & NOT_ROUTED == 0,
            lacking: None,
        })
    }

    fn verdict(&mut self, cursor: &mut Cursor<'_>) -> Result<ArchivedVerdict, Damage> {
        Ok(match cursor.octet()? {
            0 => {
                let count = cursor.number()?;
                let mut legs = SmallVec::new();
                for _ in 0..count {
                    legs.push(self.leg(cursor)?);
                }
                ArchivedVerdict::Forward(legs)
            }
            1 => ArchivedVerdict::Hold(cursor.time()?),
            2 => ArchivedVerdict::Reject(
                RejectReason::from_octet(cursor.octet()?).ok_or("an unknown reason to reject")?,
            ),
            _ => return Err("an unknown verdict"),
        })
    }

    fn leg(&mut self, cursor: &mut Cursor<'_>) -> Result<ArchivedLeg, Damage> {
        let peer = self.names.get(cursor.text()?);
        let rank = cursor.octet()?;
        let weight = u16::try_from(cursor.number()?).map_err(|_| "too large a weight")?;
        let cost = u32::try_from(cursor.number()?).map_err(|_| "too large a cost")?;
        let flags = cursor.octet()?;
        let flagged = |bit: u8| flags & bit != 0;
        Ok(ArchivedLeg {
            peer,
            rank,
            weight,
            cost,
            longest_wait: if flagged(1) { Some(Duration::from_millis(cursor.number()?)) } else { None },
            source: if flagged(2) { Some(cursor.address()?) } else { None },
            destination: if flagged(4) { Some(cursor.address()?) } else { None },
            resolve: flagged(8),
        })
    }

    fn price(&mut self, cursor: &mut Cursor<'_>) -> Result<Price, Damage> {
        let flags = cursor.octet()?;
        let state = PriceState::from_octet(cursor.octet()?).ok_or("an unknown state of a price")?;
        let (account, amount) =
            if flags & 1 == 0 { (None, 0) } else { (Some(self.names.get(cursor.text()?)), cursor.number()?) };
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        Ok(Price { account, amount, keep_on_failure: flags & 2 != 0, state, by })
    }
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

const SHORT: Damage = "a decision that ends too early";

impl<'a> Cursor<'a> {
    fn octet(&mut self) -> Result<u8, Damage> {
        let (first, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Damage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn time(&mut self) -> Result<Timestamp, Damage> {
        let octets = self.take(8)?.try_into().map_err(|_| SHORT)?;
        Ok(Timestamp(u64::from_le_bytes(octets)))
    }

    fn number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number without an end")
    }

    fn octets(&mut self) -> Result<&'a [u8], Damage> {
        let length = usize::try_from(self.number()?).map_err(|_| SHORT)?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, Damage> {
        std::str::from_utf8(self.octets()?).map_err(|_| "a name that is no UTF-8")
    }

    fn address(&mut self) -> Result<Address, Damage> {
        let (ton, npi) = (self.octet()?, self.octet()?);
        Ok(Address::new(ton, npi, self.octets()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Charge, FinalState, Leg, PeerMessageId, Priority, Quote, Routed, Step, Text};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    struct Named;

    impl Parties for Named {
        fn name(&self, id: PeerId) -> Arc<str> {
            format!("peer {}", id.0).into()
        }

        fn is_account(&self, _: PeerId) -> bool {
            true
        }
    }

    fn address() -> impl Strategy<Value = Address> {
        (any::<u8>(), any::<u8>(), vec(any::<u8>(), 0..40))
            .prop_map(|(ton, npi, value)| Address::new(ton, npi, &value))
    }

    prop_compose! {
        fn leg()(
            peer in any::<u32>(), rank: u8, weight: u16, cost: u32, wait in option::of(any::<u64>()),
            source in option::of(address()), destination in option::of(address()), resolve: bool,
        ) -> Leg {
            let longest_wait = wait.map(Duration::from_millis);
            Leg { rank, weight, cost, longest_wait, source, destination, resolve, ..Leg::to(PeerId(peer)) }
        }
    }

    fn verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            vec(leg(), 0..5).prop_map(Verdict::Forward),
            any::<u64>().prop_map(|until| Verdict::Hold(Timestamp(until))),
            (1..=9u8).prop_map(|reason| Verdict::Reject(RejectReason::from_octet(reason).unwrap())),
        ]
    }

    prop_compose! {
        fn quote()(charge in option::of(("[a-zA-ZäÖ]{1,20}", any::<u64>(), any::<bool>())), version in "[0-9a-f]{12}") -> Quote {
            Quote {
                charge: charge.map(|(account, amount, keep_on_failure)| {
                    Charge { account: account.into(), amount, keep_on_failure, settle: true }
                }),
                by: Arc::new(DecidedBy { plugin: "prepaid".into(), version }),
                note: None,
            }
        }
    }

    fn wish() -> impl Strategy<Value = SenderWish> {
        let words = ("[a-z:]{1,100}", "\\PC{0,30}", "\\PC{0,30}", "\\PC{0,30}");
        (words, option::of(0..1_u64 << 60), 0..3_u8).prop_map(
            |((pool, holder, user, reason), lease, otherwise)| SenderWish {
                pool: pool.parse().unwrap(),
                holder: holder.into(),
                user: user.into(),
                reason: reason.into(),
                lease: lease.map(Duration::from_millis),
                otherwise: NoSender::from_octet(otherwise).unwrap(),
                given: None,
            },
        )
    }

    prop_compose! {
        fn message()(
            id: u64, origin: u32, source in address(), destination in address(),
            service_type in vec(any::<u8>(), 0..10), data_coding: u8, priority in 0..4u8, receipts in 0..8u8,
            octets in vec(any::<u8>(), 0..200), udhi: bool, accepted_at: u64, verdict in verdict(),
            quote in option::of(quote()), seen in option::of(vec(any::<u8>(), 0..100)),
            sender in option::of(wish()),
        ) -> Message {
            Message {
                id: MessageId(id),
                kind: Kind::Text,
                origin: PeerId(origin),
                source,
                destination,
                service_type: service_type.into(),
                protocol_id: 0,
                esm_class: 0,
                priority: Priority::new(priority),
                receipts: ReceiptRequest::from_bits(receipts),
                replace_if_present: false,
                submission: None,
                text: Text { octets: octets.into(), data_coding, udhi, payload: false },
                tlvs: Bytes::new(),
                accepted_at: Timestamp(accepted_at),
                scheduled: None,
                expires_at: Timestamp(0),
                routed: Routed {
                    verdict,
                    by: Arc::new(DecidedBy { plugin: "p".into(), version: "1".into() }),
                    note: None,
                    sender: sender.map(Box::new),
                    quote: quote.map(Box::new),
                    seen: seen.map(Vec::into_boxed_slice),
                    faulted: None,
                },
            }
        }
    }

    fn end(steps: Vec<Step>) -> Final {
        let at = Timestamp(77);
        Final {
            state: FinalState::Delivered,
            at,
            error: 0,
            peer: None,
            peer_id: PeerMessageId::default(),
            steps,
        }
    }

    /// What should come back, field by field from the message.
    fn expected(message: &Message, decided_at: Timestamp, state: PriceState) -> ArchivedMessage {
        ArchivedMessage {
            id: message.id,
            accepted_at: message.accepted_at,
            decided_at,
            origin: Named.name(message.origin),
            source: message.source.clone(),
            destination: message.destination.clone(),
            service_type: SmallVec::from_slice(&message.service_type),
            data_coding: message.text.data_coding,
            priority: message.priority.level(),
            length: message.text.octets.len() as u32,
            udhi: message.text.udhi,
            receipts: message.receipts,
            body: None,
            verdict: match &message.routed.verdict {
                Verdict::Hold(until) => ArchivedVerdict::Hold(*until),
                Verdict::Reject(reason) => ArchivedVerdict::Reject(*reason),
                Verdict::Forward(legs) => ArchivedVerdict::Forward(
                    legs.iter()
                        .map(|leg| ArchivedLeg {
                            peer: Named.name(leg.peer),
                            rank: leg.rank,
                            weight: leg.weight,
                            cost: leg.cost,
                            longest_wait: leg.longest_wait,
                            source: leg.source.clone(),
                            destination: leg.destination.clone(),
                            resolve: leg.resolve,
                        })
                        .collect(),
                ),
            },
            sender: message.routed.sender.clone(),
            price: message.routed.quote.as_ref().map(|quote| {
                let charge = quote.charge.as_ref();
                Box::new(Price {
                    account: charge.map(|charge| charge.account.clone()),
                    amount: charge.map_or(0, |charge| charge.amount),
                    keep_on_failure: charge.is_some_and(|charge| charge.keep_on_failure),
                    state: if charge.is_some() { state } else { PriceState::Free },
                    by: quote.by.clone(),
                })
            }),
            seen: message.routed.seen.as_ref().map(|seen| Bytes::copy_from_slice(seen)),
            routed: true,
            lacking: None,
        }
    }

    proptest! {
        #[test]
        fn decisions_come_back(message in message(), refunded: bool, again in option::of(any::<u64>())) {
            let mut steps = Vec::new();
            if let Some(at) = again {
                steps.push(Step { at: Timestamp(at), kind: StepKind::Rerouted { peer: PeerId(1) } });
            }
            let settled = if refunded { StepKind::Refunded { amount: 1 } } else { StepKind::Charged { amount: 1 } };
            steps.push(Step { at: Timestamp(1), kind: settled });
            let decided_at = match message.routed.verdict {
                Verdict::Reject(_) => Timestamp(77),
                _ => again.map_or(message.accepted_at, Timestamp),
            };
            let state = if refunded { PriceState::Refunded } else { PriceState::Captured };
            let octets = Bytes::from(encode(&message, &end(steps), &Named));
            let mut decoder = Decoder::new();
            for _ in 0..2 {
                prop_assert_eq!(decoder.message(message.id, &octets), Ok(expected(&message, decided_at, state)));
            }
        }

        #[test]
        fn damage_is_told(message in message(), at: prop::sample::Index, octet: u8, cut: prop::sample::Index) {
            let mut octets = encode(&message, &end(Vec::new()), &Named);
            let at = at.index(octets.len());
            octets[at] = octet;
            let cut = Bytes::from(octets).slice(..cut.index(octets_len(&message)));
            // Whatever comes of it, it is no panic; a decision without an end is told.
            let decoded = Decoder::new().message(message.id, &cut);
            prop_assert!(cut.len() > 2 || decoded.is_err());
        }

        #[test]
        fn any_octets_are_survived(octets in vec(any::<u8>(), 0..300)) {
            let _ = Decoder::new().message(MessageId(1), &Bytes::from(octets));
        }
    }

    fn octets_len(message: &Message) -> usize {
        encode(message, &end(Vec::new()), &Named).len()
    }

    #[test]
    fn an_ordinary_decision_is_small() {
        let mut message = Message {
            id: MessageId(1),
            kind: Kind::Text,
            origin: PeerId(1),
            source: Address::new(0, 1, b"10690000"),
            destination: Address::international("4917012345678"),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            receipts: ReceiptRequest::FINAL,
            replace_if_present: false,
            submission: None,
            text: Text::default(),
            tlvs: Bytes::new(),
            accepted_at: Timestamp(1),
            scheduled: None,
            expires_at: Timestamp(2),
            routed: Routed::new(
                Verdict::Forward(vec![Leg::to(PeerId(2))]),
                Arc::new(DecidedBy { plugin: "prefix-router".into(), version: "0123456789ab".into() }),
            ),
        };
        let ended = end(Vec::new());
        assert_eq!(encode(&message, &ended, &Named).len(), 61);
        message.kind = Kind::Receipt(Box::new(model::ReceiptText {
            of: MessageId(0),
            state: model::ReceiptState::Delivered,
            intermediate: false,
            error: 0,
            network_error: None,
            submitted_at: Timestamp(0),
            done_at: Timestamp(0),
            parts: (1, 1),
            part: 0,
            peer_id: PeerMessageId::default(),
        }));
        let octets = Bytes::from(encode(&message, &ended, &Named));
        assert!(!Decoder::new().message(MessageId(1), &octets).unwrap().routed);
    }
}

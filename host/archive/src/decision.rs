//! The column `decision`: the input of a message's routing and pricing, and the result. It contains all data that a replay
//! needs, in one value that is fast to decode.
//!
//! Encoding: one-octet numbers as is; times as 8 octets, little-endian; other numbers as LEB128; a text as its length
//! (LEB128) and UTF-8.
//!
//! * 1: format (6 with recorded calls, 5 with a lookup, 4 with a screening, 3 with changes, 2 with a sender request, otherwise 1: a reader does not know what a later
//!   format has)
//! * 1: flags: bit 0 UDHI, 1 rerouted, 2 service type, 3 price, 4 host calls, 5 no router was called, 6 sender request,
//!   7 changes
//! * 8: time of acceptance (ms since the epoch); 8: time of the last rerouting, if flagged
//! * text: origin; 1: requested DLRs; 1: data coding; 1: priority; number: length of the text in octets
//! * source, destination: each 1 TON, 1 NPI, number: length, octets
//! * service type, if flagged: number: length, octets
//! * verdict, as `codec` describes it: the peer is a text, and the IMSI is not written
//! * price, if flagged: 1 flags (bit 0 charge, 1 kept on failure), 1 state; charge, if flagged: text account, number
//!   amount; then texts plugin and version
//! * sender request, if flagged: 1 fallback (0 reject, 1 keep the sender, 2 hold), number: lease in ms plus one, 0
//!   without a lease; texts pool, holder, user, reason
//! * changes, if flagged: as `codec` describes them
//! * in format 5: 1 whether there is a screening; in format 6: 1 flags (bit 0 screening, 1 lookup)
//! * screening, in format 4 and if flagged: its verdict, as `codec` describes it; 1 flags (bit 0 changes, 1 the text was replaced, 2 host
//!   calls); texts plugin and version; then the flagged fields: changes; number: length, octets
//! * lookup, in format 5 and if flagged: as `codec` describes it
//! * recorded calls of plugins, in format 6: 1 number of calls; each 1 hook, number: length, octets as `codec` describes them
//! * host calls, if flagged: the rest of the value

use crate::PeerDirectory;
use crate::archived_message::{ArchivedMessage, ArchivedPrice, ArchivedScreening};
use bytes::Bytes;
use codec::{
    CompactLayout, Cursor, Layout, RecordError, changes, lookup, put_changes, put_leb128, put_lookup,
    put_screen_verdict, put_verdict, screen_verdict, verdict,
};
use model::{
    DlrRequest, FinalRecord, Hook, Message, MessageId, MessageKind, PluginVersion, PriceState, Screening,
    SenderFallback, SenderRequest, StepKind, Timestamp, Verdict,
};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

const FORMAT: u8 = 1;
const FORMAT_WITH_SENDER: u8 = 2;
const FORMAT_WITH_CHANGES: u8 = 3;
const FORMAT_WITH_SCREENING: u8 = 4;
const FORMAT_WITH_LOOKUP: u8 = 5;
const FORMAT_WITH_CALLS: u8 = 6;

const HAS_SCREENING: u8 = 1;
const HAS_LOOKUP: u8 = 2;

const UDHI: u8 = 1;
const ROUTED_AGAIN: u8 = 2;
const SERVICE_TYPE: u8 = 4;
const PRICE: u8 = 8;
const HOST_CALLS: u8 = 16;
const NOT_ROUTED: u8 = 32;
const SENDER: u8 = 64;
const CHANGES: u8 = 128;

/// Encodes the decision of a finished message.
pub(crate) fn encode(message: &Message, ended: &FinalRecord, directory: &dyn PeerDirectory) -> Vec<u8> {
    let routed = &message.routed;
    let again = last_routed(message, ended);
    let host_calls = routed.host_calls.as_deref();
    let flag = |bit: u8, set: bool| if set { bit } else { 0 };
    let mut out = Vec::with_capacity(112 + host_calls.map_or(0, <[u8]>::len));
    let sender = routed.sender.as_deref();
    let changes = routed.changes.as_deref();
    let screening = routed.screening.as_deref();
    let lookup = routed.lookup.as_deref();
    let calls: SmallVec<[_; 4]> = ended
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            StepKind::CallRecorded { hook, record } => Some((*hook, &**record)),
            _ => None,
        })
        .take(usize::from(u8::MAX))
        .collect();
    let format = match (lookup, screening, changes, sender) {
        _ if !calls.is_empty() => FORMAT_WITH_CALLS,
        (Some(_), _, _, _) => FORMAT_WITH_LOOKUP,
        (None, Some(_), _, _) => FORMAT_WITH_SCREENING,
        (None, None, Some(_), _) => FORMAT_WITH_CHANGES,
        (None, None, None, Some(_)) => FORMAT_WITH_SENDER,
        (None, None, None, None) => FORMAT,
    };
    out.push(format);
    out.push(
        flag(UDHI, message.text.udhi)
            | flag(ROUTED_AGAIN, again.is_some())
            | flag(SERVICE_TYPE, !message.service_type.is_empty())
            | flag(PRICE, routed.quote.is_some())
            | flag(HOST_CALLS, host_calls.is_some())
            | flag(NOT_ROUTED, is_not_routed(message))
            | flag(SENDER, sender.is_some())
            | flag(CHANGES, changes.is_some()),
    );
    out.extend_from_slice(&message.accepted_at.0.to_le_bytes());
    if let Some(again) = again {
        out.extend_from_slice(&again.0.to_le_bytes());
    }
    CompactLayout::put_octets(&mut out, directory.name(message.origin).as_bytes());
    out.extend_from_slice(&[message.dlr_request.bits(), message.text.data_coding, message.priority.level()]);
    put_leb128(&mut out, message.text.octets.len() as u64);
    CompactLayout::put_address(&mut out, &message.source);
    CompactLayout::put_address(&mut out, &message.destination);
    if !message.service_type.is_empty() {
        CompactLayout::put_octets(&mut out, &message.service_type);
    }
    put_verdict::<CompactLayout, _>(&mut out, &routed.verdict, |out, peer| {
        CompactLayout::put_octets(out, directory.name(*peer).as_bytes());
    });
    if let Some(quote) = &routed.quote {
        let charge = quote.charge.as_ref();
        let kept = charge.is_some_and(|charge| charge.keep_on_failure);
        out.push(flag(1, charge.is_some()) | flag(2, kept));
        out.push(PriceState::of(quote, ended) as u8);
        if let Some(charge) = charge {
            CompactLayout::put_octets(&mut out, charge.account.as_bytes());
            put_leb128(&mut out, charge.amount);
        }
        CompactLayout::put_octets(&mut out, quote.by.plugin.as_bytes());
        CompactLayout::put_octets(&mut out, quote.by.version.as_bytes());
    }
    if let Some(request) = sender {
        out.push(request.otherwise as u8);
        let lease = request.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX));
        put_leb128(&mut out, lease.map_or(0, |lease| lease.saturating_add(1)));
        for text in [request.pool.as_str(), &request.holder, &request.user, &request.reason] {
            CompactLayout::put_octets(&mut out, text.as_bytes());
        }
    }
    if let Some(changes) = changes {
        put_changes::<CompactLayout>(&mut out, changes);
    }
    match format {
        FORMAT_WITH_CALLS => {
            out.push(flag(HAS_SCREENING, screening.is_some()) | flag(HAS_LOOKUP, lookup.is_some()));
        }
        FORMAT_WITH_LOOKUP => out.push(u8::from(screening.is_some())),
        _ => {}
    }
    if let Some(Screening { verdict, by, changes, submitted_text, host_calls, .. }) = screening {
        put_screen_verdict(&mut out, *verdict);
        out.push(
            flag(1, changes.is_some()) | flag(2, submitted_text.is_some()) | flag(4, host_calls.is_some()),
        );
        CompactLayout::put_text(&mut out, &by.plugin);
        CompactLayout::put_text(&mut out, &by.version);
        if let Some(changes) = changes {
            put_changes::<CompactLayout>(&mut out, changes);
        }
        if let Some(host_calls) = host_calls {
            CompactLayout::put_octets(&mut out, host_calls);
        }
    }
    if let Some(lookup) = lookup {
        put_lookup::<CompactLayout>(&mut out, lookup);
    }
    if format == FORMAT_WITH_CALLS {
        out.push(calls.len() as u8);
        for (hook, record) in calls {
            out.push(hook as u8);
            CompactLayout::put_octets(&mut out, record);
        }
    }
    out.extend_from_slice(host_calls.unwrap_or_default());
    out
}

/// Whether no router was called for the message: it is a DLR, or a screen stopped it.
fn is_not_routed(message: &Message) -> bool {
    matches!(message.kind, MessageKind::Dlr(_))
        || matches!(message.routed.verdict, Verdict::Quarantine | Verdict::AwaitLookup | Verdict::Drop(_))
}

/// The time of the last rerouting; `None` if the verdict was made at the acceptance.
fn last_routed(message: &Message, ended: &FinalRecord) -> Option<Timestamp> {
    let again = ended.steps.iter().rev().find_map(|step| match step.kind {
        StepKind::Rerouted { .. } | StepKind::Held { .. } => Some(step.at),
        _ => None,
    });
    match message.routed.verdict {
        // A message rejected at once is never archived, so this one was held before.
        Verdict::Reject(_) => Some(ended.at),
        Verdict::Forward(_)
        | Verdict::Hold(_)
        | Verdict::Quarantine
        | Verdict::AwaitLookup
        | Verdict::Drop(_) => again,
    }
}

fn sender(cursor: &mut Cursor<'_>) -> Result<SenderRequest, RecordError> {
    let otherwise =
        SenderFallback::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown sender fallback"))?;
    let lease = cursor.leb128()?.checked_sub(1).map(Duration::from_millis);
    Ok(SenderRequest {
        pool: text(cursor)?.parse().map_err(|_| cursor.damaged("invalid pool name"))?,
        holder: text(cursor)?.into(),
        user: text(cursor)?.into(),
        reason: text(cursor)?.into(),
        lease,
        otherwise,
        leased: None,
    })
}

/// Decodes decisions and shares repeated names.
///
/// Use one decoder per thread, so that threads do not contend for the reference counts of shared names.
#[derive(Debug, Default)]
pub struct DecisionDecoder {
    names: Names,
    deciders: Vec<Arc<PluginVersion>>,
}

/// Names decoded so far: peers, accounts, plugins.
#[derive(Debug, Default)]
struct Names(Vec<Arc<str>>);

/// Maximum number of names kept, so that a manipulated database cannot exhaust memory.
const MAX_NAMES: usize = 512;

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(at) = self.0.iter().position(|known| **known == *name) {
            // Move frequent names to the front.
            if at > 0 {
                self.0.swap(at, at - 1);
            }
            return self.0[at.saturating_sub(1)].clone();
        }
        let new: Arc<str> = name.into();
        if self.0.len() < MAX_NAMES {
            self.0.push(new.clone());
        }
        new
    }
}

impl DecisionDecoder {
    /// An empty decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A shared name.
    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        self.names.get(name)
    }

    fn decider(&mut self, plugin: &str, version: &str) -> Arc<PluginVersion> {
        if let Some(known) = self.deciders.iter().find(|by| by.version == version && by.plugin == plugin) {
            return known.clone();
        }
        let by = Arc::new(PluginVersion { plugin: plugin.to_owned(), version: version.to_owned() });
        if self.deciders.len() < MAX_NAMES {
            self.deciders.push(by.clone());
        }
        by
    }

    /// Decodes the output of [`encode`]. The message shares the memory of `whole`.
    pub(crate) fn message(&mut self, id: MessageId, value: &Bytes) -> Result<ArchivedMessage, RecordError> {
        let mut cursor = Cursor::new(value);
        let cursor = &mut cursor;
        let format = cursor.u8()?;
        if !(FORMAT..=FORMAT_WITH_CALLS).contains(&format) {
            return Err(cursor.damaged("unknown decision format"));
        }
        let flags = cursor.u8()?;
        let accepted_at = Timestamp(cursor.u64()?);
        let decided_at = if flags & ROUTED_AGAIN == 0 { accepted_at } else { Timestamp(cursor.u64()?) };
        let origin = self.names.get(text(cursor)?);
        let dlr_request = DlrRequest::from_bits(cursor.u8()?);
        let (data_coding, priority) = (cursor.u8()?, cursor.u8()?);
        let length = u32::try_from(cursor.leb128()?).map_err(|_| cursor.damaged("text too long"))?;
        let (source, destination) = (CompactLayout::address(cursor)?, CompactLayout::address(cursor)?);
        let service_type =
            if flags & SERVICE_TYPE == 0 { SmallVec::new() } else { SmallVec::from_slice(octets(cursor)?) };
        let verdict = verdict::<CompactLayout, _>(cursor, |cursor| Ok(self.names.get(text(cursor)?)))?;
        let price = if flags & PRICE == 0 { None } else { Some(Box::new(self.price(cursor)?)) };
        let sender = if flags & SENDER == 0 { None } else { Some(Box::new(sender(cursor)?)) };
        let changes =
            if flags & CHANGES == 0 { None } else { Some(Box::new(changes::<CompactLayout>(cursor)?)) };
        let (has_screening, has_lookup) = match format {
            FORMAT_WITH_CALLS => {
                let flags = cursor.u8()?;
                (flags & HAS_SCREENING != 0, flags & HAS_LOOKUP != 0)
            }
            FORMAT_WITH_LOOKUP => (cursor.u8()? != 0, true),
            other => (other == FORMAT_WITH_SCREENING, false),
        };
        let screening = if has_screening { Some(Box::new(self.screening(cursor)?)) } else { None };
        let lookup = if has_lookup {
            let by = |plugin: &str, version: &str| self.decider(plugin, version);
            Some(Arc::new(lookup::<CompactLayout>(cursor, by)?))
        } else {
            None
        };
        let mut calls = Vec::new();
        if format == FORMAT_WITH_CALLS {
            for _ in 0..cursor.u8()? {
                let hook = Hook::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown hook"))?;
                let length = octets(cursor)?.len();
                calls.push((hook, value.slice(cursor.at() - length..cursor.at())));
            }
        }
        let host_calls = (flags & HOST_CALLS != 0).then(|| value.slice(cursor.at()..));
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
            dlr_request,
            body: None,
            verdict,
            sender,
            changes,
            screening,
            lookup,
            price,
            calls,
            trace: None,
            host_calls,
            routed: flags & NOT_ROUTED == 0,
            missing: None,
        })
    }

    fn screening(&mut self, cursor: &mut Cursor<'_>) -> Result<ArchivedScreening, RecordError> {
        let verdict = screen_verdict(cursor)?;
        let flags = cursor.u8()?;
        let (plugin, version) = (text(cursor)?, text(cursor)?);
        Ok(ArchivedScreening {
            verdict,
            by: self.decider(plugin, version),
            changes: if flags & 1 == 0 { None } else { Some(Box::new(changes::<CompactLayout>(cursor)?)) },
            has_replaced_text: flags & 2 != 0,
            host_calls: if flags & 4 == 0 { None } else { Some(octets(cursor)?.into()) },
        })
    }

    fn price(&mut self, cursor: &mut Cursor<'_>) -> Result<ArchivedPrice, RecordError> {
        let flags = cursor.u8()?;
        let state =
            PriceState::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown price state"))?;
        let (account, amount) =
            if flags & 1 == 0 { (None, 0) } else { (Some(self.names.get(text(cursor)?)), cursor.leb128()?) };
        let (plugin, version) = (text(cursor)?, text(cursor)?);
        let by = self.decider(plugin, version);
        Ok(ArchivedPrice { account, amount, keep_on_failure: flags & 2 != 0, state, by })
    }
}

fn octets<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], RecordError> {
    CompactLayout::octets(cursor)
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, RecordError> {
    std::str::from_utf8(octets(cursor)?).map_err(|_| cursor.damaged("name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        Address, Charge, DefinedPeriod, DroppedAs, FinalState, Leg, Lookup, LookupResult, MessageChanges,
        PaceBucketDefinition, PaceBucketUse, PaceUnit, PeerId, PeerMessageId, Priority, Quote, RejectReason,
        RoutingDecision, ScreenVerdict, SendHours, SendWindowDefinition, SendWindowUse, Step, Text,
    };
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    struct Named;

    impl PeerDirectory for Named {
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
                    Charge { account: account.into(), amount, keep_on_failure, settle: true, tenants: Vec::new() }
                }),
                by: Arc::new(PluginVersion { plugin: "prepaid".into(), version }),
                note: None,
            }
        }
    }

    fn wish() -> impl Strategy<Value = SenderRequest> {
        let words = ("[a-z:]{1,100}", "\\PC{0,30}", "\\PC{0,30}", "\\PC{0,30}");
        (words, option::of(0..1_u64 << 60), 0..3_u8).prop_map(
            |((pool, holder, user, reason), lease, otherwise)| SenderRequest {
                pool: pool.parse().unwrap(),
                holder: holder.into(),
                user: user.into(),
                reason: reason.into(),
                lease: lease.map(Duration::from_millis),
                otherwise: SenderFallback::from_octet(otherwise).unwrap(),
                leased: None,
            },
        )
    }

    fn message_changes() -> impl Strategy<Value = MessageChanges> {
        let tlv = (any::<u16>(), option::of(vec(any::<u8>(), 0..40).prop_map(Vec::into_boxed_slice)));
        let attribute = ("[a-z.-]{1,64}", "\\PC{0,60}").prop_map(|(name, value)| (name.into(), value.into()));
        let bucket = ("[a-z.-]{1,64}", option::of((any::<u64>(), any::<bool>(), any::<u32>())));
        let bucket = bucket.prop_map(|(name, defined)| PaceBucketUse {
            name: name.into(),
            defined: defined.map(|(amount, per_day, ms)| PaceBucketDefinition {
                amount,
                per: if per_day {
                    DefinedPeriod::Day("Europe/Berlin".into())
                } else {
                    DefinedPeriod::Time(Duration::from_millis(ms.into()))
                },
                counts: if ms % 2 == 0 { PaceUnit::Messages } else { PaceUnit::Segments },
            }),
        });
        let window = ("[a-z.-]{1,64}", vec((any::<[bool; 7]>(), 0_u16..1440, 0_u16..=1440), 0..3));
        let window = window.prop_map(|(name, hours)| SendWindowUse {
            name: name.into(),
            defined: (!hours.is_empty()).then(|| SendWindowDefinition {
                zone: "UTC".into(),
                hours: hours
                    .into_iter()
                    .map(|(days, opens, closes)| SendHours { days, opens, closes })
                    .collect(),
            }),
        });
        (vec(tlv, 0..4), vec(attribute, 0..4), vec(bucket, 0..3), vec(window, 0..3)).prop_map(
            |(tlvs, attributes, pace_buckets, send_windows)| MessageChanges {
                tlvs,
                attributes,
                pace_buckets,
                send_windows,
            },
        )
    }

    prop_compose! {
        fn screening()(
            verdict in select(vec![
                ScreenVerdict::Pass,
                ScreenVerdict::Reject(RejectReason::Prohibited),
                ScreenVerdict::Quarantine,
                ScreenVerdict::Drop(DroppedAs::Delivered),
            ]),
            changes in option::of(message_changes()), text in option::of(vec(any::<u8>(), 0..20)),
            host_calls in option::of(vec(any::<u8>(), 0..100)),
        ) -> Screening {
            Screening {
                verdict,
                by: Arc::new(PluginVersion { plugin: "s".into(), version: "2".into() }),
                note: None,
                changes: changes.map(Box::new),
                submitted_text: text.map(|octets| Text { octets: octets.into(), ..Text::default() }),
                host_calls: host_calls.map(Vec::into_boxed_slice),
            }
        }
    }

    prop_compose! {
        fn found()(
            result in select(&LookupResult::ALL[..]), attributes in vec(("[a-z-]{1,9}", "\\PC{0,9}"), 0..4),
            note in option::of("\\PC{0,20}"), cached: bool,
            host_calls in option::of(vec(any::<u8>(), 1..20)),
        ) -> Lookup {
            Lookup {
                result,
                attributes: attributes.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
                by: Arc::new(PluginVersion { plugin: "l".into(), version: "3".into() }),
                note: note.map(Into::into),
                cached,
                host_calls: host_calls.map(Vec::into_boxed_slice),
            }
        }
    }

    prop_compose! {
        fn message()(
            id: u64, origin: u32, source in address(), destination in address(),
            service_type in vec(any::<u8>(), 0..10), data_coding: u8, priority in 0..4u8, dlr_request in 0..8u8,
            octets in vec(any::<u8>(), 0..200), udhi: bool, accepted_at: u64, verdict in verdict(),
            quote in option::of(quote()), host_calls in option::of(vec(any::<u8>(), 0..100)),
            sender in option::of(wish()), changes in option::of(message_changes()),
            screening in option::of(screening()), found in option::of(found()),
        ) -> Message {
            Message {
                id: MessageId(id),
                kind: MessageKind::Text,
                origin: PeerId(origin),
                source,
                destination,
                service_type: service_type.into(),
                protocol_id: 0,
                esm_class: 0,
                priority: Priority::new(priority),
                dlr_request: DlrRequest::from_bits(dlr_request),
                replace_if_present: false,
                submission: None,
                text: Text { octets: octets.into(), data_coding, udhi, payload: false },
                tlvs: Bytes::new(),
                protocol_fields: Bytes::new(),
                sealed: None,
                accepted_at: Timestamp(accepted_at),
                scheduled: None,
                expires_at: Timestamp(0),
                routed: RoutingDecision { screening: screening.map(Box::new), lookup: found.map(Arc::new), sender: sender.map(Box::new), changes: changes.map(Box::new), quote: quote.map(Box::new), host_calls: host_calls.map(Vec::into_boxed_slice), ..RoutingDecision::new(verdict, Arc::new(PluginVersion { plugin: "p".into(), version: "1".into() })) },
            }
        }
    }

    fn end(steps: Vec<Step>) -> FinalRecord {
        let at = Timestamp(77);
        FinalRecord {
            state: FinalState::Delivered,
            at,
            error: 0,
            peer: None,
            peer_id: PeerMessageId::default(),
            steps,
        }
    }

    /// The expected result, built from the message.
    fn expected(
        message: &Message,
        decided_at: Timestamp,
        state: PriceState,
        calls: &[(Hook, Vec<u8>)],
    ) -> ArchivedMessage {
        ArchivedMessage {
            calls: calls.iter().map(|(hook, record)| (*hook, Bytes::from(record.clone()))).collect(),
            trace: None,
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
            dlr_request: message.dlr_request,
            body: None,
            verdict: message.routed.verdict.map_peers(|peer| Named.name(*peer)),
            sender: message.routed.sender.clone(),
            changes: message.routed.changes.clone(),
            lookup: message.routed.lookup.clone(),
            screening: message.routed.screening.as_deref().map(|screening| {
                Box::new(ArchivedScreening {
                    verdict: screening.verdict,
                    by: screening.by.clone(),
                    changes: screening.changes.clone(),
                    has_replaced_text: screening.submitted_text.is_some(),
                    host_calls: screening.host_calls.clone(),
                })
            }),
            price: message.routed.quote.as_ref().map(|quote| {
                let charge = quote.charge.as_ref();
                Box::new(ArchivedPrice {
                    account: charge.map(|charge| charge.account.clone()),
                    amount: charge.map_or(0, |charge| charge.amount),
                    keep_on_failure: charge.is_some_and(|charge| charge.keep_on_failure),
                    state: if charge.is_some() { state } else { PriceState::Free },
                    by: quote.by.clone(),
                })
            }),
            host_calls: message
                .routed
                .host_calls
                .as_ref()
                .map(|host_calls| Bytes::copy_from_slice(host_calls)),
            routed: !matches!(
                message.routed.verdict,
                Verdict::Quarantine | Verdict::AwaitLookup | Verdict::Drop(_)
            ),
            missing: None,
        }
    }

    proptest! {
        #[test]
        fn decisions_survive_a_round_trip(
            message in message(), refunded: bool, again in option::of(any::<u64>()),
            calls in vec((select(&[Hook::Receipt, Hook::Peer][..]), vec(any::<u8>(), 0..300)), 0..4),
        ) {
            let recorded = |(hook, record): &(Hook, Vec<u8>)| Step {
                at: Timestamp(1),
                kind: StepKind::CallRecorded { hook: *hook, record: record.as_slice().into() },
            };
            let mut steps: Vec<Step> = calls.iter().map(recorded).collect();
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
            let mut decoder = DecisionDecoder::new();
            for _ in 0..2 {
                prop_assert_eq!(decoder.message(message.id, &octets), Ok(expected(&message, decided_at, state, &calls)));
            }
        }

        #[test]
        fn damaged_values_are_rejected(message in message(), record in option::of(vec(any::<u8>(), 0..20)), at: prop::sample::Index, octet: u8, cut: prop::sample::Index) {
            let step = |record: Vec<u8>| Step {
                at: Timestamp(1),
                kind: StepKind::CallRecorded { hook: Hook::Peer, record: record.into() },
            };
            let ended = end(record.map(step).into_iter().collect());
            let mut octets = encode(&message, &ended, &Named);
            let (at, length) = (at.index(octets.len()), octets.len());
            octets[at] = octet;
            let cut = Bytes::from(octets).slice(..cut.index(length));
            // It must not panic, and a truncated decision must be an error.
            let decoded = DecisionDecoder::new().message(message.id, &cut);
            prop_assert!(cut.len() > 2 || decoded.is_err());
        }

        #[test]
        fn arbitrary_octets_do_not_panic(octets in vec(any::<u8>(), 0..300)) {
            let _ = DecisionDecoder::new().message(MessageId(1), &Bytes::from(octets));
        }
    }

    #[test]
    fn a_typical_decision_is_small() {
        let mut message = Message {
            id: MessageId(1),
            kind: MessageKind::Text,
            origin: PeerId(1),
            source: Address::new(0, 1, b"10690000"),
            destination: Address::international("4917012345678"),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            dlr_request: DlrRequest::FINAL,
            replace_if_present: false,
            submission: None,
            text: Text::default(),
            tlvs: Bytes::new(),
            protocol_fields: Bytes::new(),
            sealed: None,
            accepted_at: Timestamp(1),
            scheduled: None,
            expires_at: Timestamp(2),
            routed: RoutingDecision::new(
                Verdict::Forward(vec![Leg::to(PeerId(2))]),
                Arc::new(PluginVersion { plugin: "prefix-router".into(), version: "0123456789ab".into() }),
            ),
        };
        let ended = end(Vec::new());
        assert_eq!(encode(&message, &ended, &Named).len(), 61);
        message.kind = MessageKind::Dlr(Box::new(model::DlrContent {
            of: MessageId(0),
            state: model::DlrState::Delivered,
            intermediate: false,
            error: 0,
            network_error: None,
            submitted_at: Timestamp(0),
            done_at: Timestamp(0),
            segments: (1, 1),
            segment: 0,
            peer_id: PeerMessageId::default(),
        }));
        let octets = Bytes::from(encode(&message, &ended, &Named));
        assert!(!DecisionDecoder::new().message(MessageId(1), &octets).unwrap().routed);
    }
}

//! The column `trace`: the submission, the routing and the steps of a message, as JSON.
//!
//! ```json
//! {"submission":{"expires_at":1700172800000,"receipts":3},
//!  "route":{"legs":[{"peer":"upstream"}]},
//!  "price":{"amount":35000,"account":"acme","state":"captured","plugin":"prepaid","version":"0123456789ab"},
//!  "steps":[{"at":1700000000000,"step":"accepted"},
//!           {"at":1700000000004,"step":"submitted","peer":"upstream","attempt":1},
//!           {"at":1700000000031,"step":"responded","id":"4f02"}]}
//! ```
//!
//! Fields with their default value are omitted. Times are milliseconds since the Unix epoch.

use crate::PeerDirectory;
use model::{
    Address, DlrRequest, FinalRecord, Lookup, LookupResult, Message, MessageChanges, MessageId,
    PaceBucketUse, PeerId, PluginVersion, PriceState, Quote, Screening, SendWindowUse, SenderFallback,
    SenderRequest, Step, Text, Timestamp, Verdict, escape, from_hex, hex, unescape,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Trace<S> {
    submission: Submission,
    route: Verdict<Arc<str>>,
    /// The pool sender that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender: Option<Sender>,
    /// The router's changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    /// The decision of the screens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    screening: Option<ScreeningForm>,
    /// The result of the number lookup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lookup: Option<LookupForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<ArchivedPrice>,
    steps: Vec<S>,
}

#[derive(Serialize, Deserialize)]
struct ScreeningForm {
    plugin: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
    /// The text as submitted, if a screen replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submitted: Option<SubmittedText>,
}

#[derive(Serialize, Deserialize)]
struct LookupForm {
    /// `found`, `unknown` or `failed`.
    result: String,
    plugin: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<(Box<str>, Box<str>)>,
    #[serde(default, skip_serializing_if = "is_false")]
    cached: bool,
}

#[derive(Serialize, Deserialize)]
struct SubmittedText {
    /// Hexadecimal.
    octets: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    data_coding: u8,
    #[serde(default, skip_serializing_if = "is_false")]
    udhi: bool,
}

#[derive(Serialize, Deserialize)]
struct Submission {
    /// The id of the submission if it had several destinations, in decimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    service_type: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    protocol_id: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    esm_class: u8,
    /// Bits: 1 on success, 2 on failure, 4 intermediate.
    #[serde(default, skip_serializing_if = "is_zero")]
    receipts: u8,
    #[serde(default, skip_serializing_if = "is_false")]
    payload: bool,
    /// Hexadecimal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tlvs: String,
    /// Fields of other protocols than SMPP, in the form of TLVs; hexadecimal. Older rows have them among `tlvs`, and no such
    /// key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol_fields: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled: Option<Timestamp>,
    expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Sender {
    pool: String,
    otherwise: SenderFallback,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    holder: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    user: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// The address shown to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Changes {
    /// By tag: the value in hexadecimal, or null if the TLV was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tlvs: Vec<(u16, Option<String>)>,
    /// Names and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<(Box<str>, Box<str>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pace_buckets: Vec<PaceBucketUse>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    send_windows: Vec<SendWindowUse>,
}

#[derive(Serialize, Deserialize)]
struct ArchivedPrice {
    /// Millionths of the operator's currency.
    amount: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Arc<str>>,
    state: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    keep_on_failure: bool,
    plugin: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<Box<str>>,
}

/// A step, or a step of a kind that only a newer version knows.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenStep {
    Known(Step<Arc<str>>),
    Unknown(serde::de::IgnoredAny),
}

// The signatures are required by serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u8) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Encodes the trace of a message.
pub(crate) fn encode(message: &Message, ended: &FinalRecord, directory: &dyn PeerDirectory) -> String {
    let name = |id: PeerId| directory.name(id);
    let trace = Trace {
        submission: submission(message),
        route: message.routed.verdict.map_peers(|peer| name(*peer)),
        sender: message.routed.sender.as_deref().map(sender),
        changes: message.routed.changes.as_deref().map(changes),
        screening: message.routed.screening.as_deref().map(screening),
        lookup: message.routed.lookup.as_deref().map(lookup),
        price: message.routed.quote.as_deref().map(|quote| price(quote, ended)),
        steps: ended
            .steps
            .iter()
            .filter(|step| !step.kind.is_record())
            .map(|step| step.map_peers(|peer| name(*peer)))
            .collect(),
    };
    // Strings and numbers only: serialization cannot fail.
    serde_json::to_string(&trace).unwrap_or_default()
}

fn submission(message: &Message) -> Submission {
    Submission {
        id: message.submission.map(|id| id.to_string()),
        service_type: escape(&message.service_type),
        protocol_id: message.protocol_id,
        esm_class: message.esm_class,
        receipts: message.dlr_request.bits(),
        payload: message.text.payload,
        tlvs: hex(&message.tlvs),
        protocol_fields: (!message.tlvs.is_empty() || !message.protocol_fields.is_empty())
            .then(|| hex(&message.protocol_fields)),
        scheduled: message.scheduled,
        expires_at: message.expires_at,
    }
}

fn sender(wish: &SenderRequest) -> Sender {
    Sender {
        pool: wish.pool.to_string(),
        otherwise: wish.otherwise,
        holder: wish.holder.clone(),
        user: wish.user.clone(),
        reason: wish.reason.clone(),
        lease_ms: wish.lease.map(|lease| u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)),
        given: wish.leased.as_ref().map(|address| escape(&address.value)),
    }
}

fn changes(changes: &MessageChanges) -> Changes {
    let tlv = |(tag, value): &(u16, Option<Box<[u8]>>)| (*tag, value.as_deref().map(hex));
    Changes {
        tlvs: changes.tlvs.iter().map(tlv).collect(),
        attributes: changes.attributes.clone(),
        pace_buckets: changes.pace_buckets.clone(),
        send_windows: changes.send_windows.clone(),
    }
}

fn screening(screening: &Screening) -> ScreeningForm {
    ScreeningForm {
        plugin: screening.by.plugin.clone(),
        version: screening.by.version.clone(),
        note: screening.note.clone(),
        changes: screening.changes.as_deref().map(changes),
        submitted: screening.submitted_text.as_ref().map(|text| SubmittedText {
            octets: hex(&text.octets),
            data_coding: text.data_coding,
            udhi: text.udhi,
        }),
    }
}

fn lookup(lookup: &Lookup) -> LookupForm {
    LookupForm {
        result: lookup.result.name().to_owned(),
        plugin: lookup.by.plugin.clone(),
        version: lookup.by.version.clone(),
        note: lookup.note.clone(),
        attributes: lookup.attributes.clone(),
        cached: lookup.cached,
    }
}

fn price(quote: &Quote, ended: &FinalRecord) -> ArchivedPrice {
    let charge = quote.charge.as_ref();
    ArchivedPrice {
        amount: charge.map_or(0, |charge| charge.amount),
        account: charge.map(|charge| charge.account.clone()),
        state: PriceState::of(quote, ended).name().into(),
        keep_on_failure: charge.is_some_and(|charge| charge.keep_on_failure),
        plugin: quote.by.plugin.clone(),
        version: quote.by.version.clone(),
        note: quote.note.clone(),
    }
}

/// The decoded trace of an archived message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedTrace {
    /// The id of the submission, if it had several destinations.
    pub submission: Option<MessageId>,
    /// Its TLVs.
    pub tlvs: Vec<u8>,
    /// Its fields of other protocols than SMPP.
    pub protocol_fields: Vec<u8>,
    /// SMPP service_type; usually empty.
    pub service_type: Vec<u8>,
    /// The DLRs requested.
    pub dlr_request: DlrRequest,
    /// The end of its validity.
    pub expires_at: Timestamp,
    /// The verdict; `None` if it cannot be decoded.
    pub verdict: Option<Verdict<Arc<str>>>,
    /// The pool sender that was requested.
    pub sender: Option<SenderRequest>,
    /// The router's changes to the message.
    pub changes: Option<MessageChanges>,
    /// The decision of the screens, if any was bound.
    pub screening: Option<TraceScreening>,
    /// The result of the number lookup, if a lookup was called.
    pub lookup: Option<Lookup>,
    /// The price, if a biller was called.
    pub price: Option<TracePrice>,
    /// The steps. Unknown kinds are omitted.
    pub steps: Vec<Step<Arc<str>>>,
}

/// The decision of the screens about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceScreening {
    /// The plugin version that decided.
    pub by: PluginVersion,
    /// Its note.
    pub note: Option<Box<str>>,
    /// The changes of the screens.
    pub changes: Option<MessageChanges>,
    /// The text as submitted, if a screen replaced it.
    pub submitted_text: Option<Text>,
}

/// The price of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePrice {
    /// The biller.
    pub plugin: String,
    /// The biller's version.
    pub version: String,
    /// The biller's note.
    pub note: Option<String>,
    /// The ledger account; `None` if free.
    pub account: Option<String>,
    /// Millionths of the operator's currency.
    pub amount: u64,
}

/// Decodes a trace. Returns `None` for text that is not a trace.
pub(crate) fn decode_trace(text: &str) -> Option<DecodedTrace> {
    let trace: Trace<WrittenStep> = serde_json::from_str(text).ok()?;
    let steps = trace.steps.into_iter().filter_map(|step| match step {
        WrittenStep::Known(step) => Some(step),
        WrittenStep::Unknown(_) => None,
    });
    let tlvs = from_hex(&trace.submission.tlvs).unwrap_or_default();
    let (tlvs, protocol_fields) = match &trace.submission.protocol_fields {
        Some(fields) => (tlvs, from_hex(fields).unwrap_or_default()),
        None => codec::split_former_tlvs(&tlvs),
    };
    Some(DecodedTrace {
        submission: trace.submission.id.and_then(|id| id.parse().ok()),
        tlvs,
        protocol_fields,
        service_type: octets(&trace.submission.service_type),
        dlr_request: DlrRequest::from_bits(trace.submission.receipts),
        expires_at: trace.submission.expires_at,
        verdict: Some(trace.route),
        sender: trace.sender.and_then(decode_sender),
        changes: trace.changes.map(decode_changes),
        screening: trace.screening.map(decode_screening),
        lookup: trace.lookup.and_then(decode_lookup),
        price: trace.price.map(|price| TracePrice {
            plugin: price.plugin,
            version: price.version,
            note: price.note.map(Into::into),
            account: price.account.map(|account| account.to_string()),
            amount: price.amount,
        }),
        steps: steps.collect(),
    })
}

fn octets(text: &str) -> Vec<u8> {
    unescape(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

fn decode_changes(written: Changes) -> MessageChanges {
    let tlv = |(tag, value): (u16, Option<String>)| {
        (tag, value.map(|value| from_hex(&value).unwrap_or_default().into_boxed_slice()))
    };
    MessageChanges {
        tlvs: written.tlvs.into_iter().map(tlv).collect(),
        attributes: written.attributes,
        pace_buckets: written.pace_buckets,
        send_windows: written.send_windows,
    }
}

fn decode_screening(written: ScreeningForm) -> TraceScreening {
    TraceScreening {
        by: PluginVersion { plugin: written.plugin, version: written.version },
        note: written.note,
        changes: written.changes.map(decode_changes),
        submitted_text: written.submitted.map(|text| Text {
            octets: from_hex(&text.octets).unwrap_or_default().into(),
            data_coding: text.data_coding,
            udhi: text.udhi,
            payload: false,
        }),
    }
}

fn decode_lookup(written: LookupForm) -> Option<Lookup> {
    Some(Lookup {
        result: LookupResult::ALL.into_iter().find(|result| result.name() == written.result)?,
        attributes: written.attributes,
        by: Arc::new(PluginVersion { plugin: written.plugin, version: written.version }),
        note: written.note,
        cached: written.cached,
        // The decision has the host calls.
        host_calls: None,
    })
}

fn decode_sender(written: Sender) -> Option<SenderRequest> {
    Some(SenderRequest {
        pool: written.pool.parse().ok()?,
        holder: written.holder,
        user: written.user,
        reason: written.reason,
        lease: written.lease_ms.map(Duration::from_millis),
        otherwise: written.otherwise,
        leased: written.given.map(|text| Address::new(0, 0, &octets(&text))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        AddressBytes, AdminActionKind, Hook, Imsi, PeerMessageId, PluginVersion, QueueActionId, StepKind,
    };

    #[test]
    fn older_rows_have_the_protocol_fields_among_the_tlvs() {
        let row = |more: &str| {
            let tlvs = "15010001780204000209ff";
            let text = format!(
                r#"{{"submission":{{"tlvs":"{tlvs}"{more},"expires_at":1}},"route":{{"legs":[]}},"steps":[]}}"#
            );
            let decoded = decode_trace(&text).unwrap();
            (hex(&decoded.tlvs), hex(&decoded.protocol_fields))
        };
        assert_eq!(row(""), ("0204000209ff".to_owned(), "1501000178".to_owned()));
        assert_eq!(
            row(r#","protocol_fields":"15f0000101""#),
            ("15010001780204000209ff".to_owned(), "15f0000101".to_owned())
        );
    }

    #[test]
    fn steps_survive_a_round_trip() {
        let (peer, until): (Arc<str>, _) = ("upstream".into(), Timestamp(9));
        let by = Arc::new(PluginVersion { plugin: "p".to_owned(), version: "v".to_owned() });
        let kinds = [
            StepKind::Accepted,
            StepKind::Submitted { peer: peer.clone(), attempt: 2 },
            StepKind::Responded { id: PeerMessageId::new(b"4f\\\xff") },
            StepKind::Refused { code: 88 },
            StepKind::NotSent,
            StepKind::Unanswered,
            StepKind::Deferred { until },
            StepKind::NextLeg { peer: peer.clone() },
            StepKind::SentAgain,
            StepKind::StatusQueried,
            StepKind::DlrReceived { state: 2, error: 3 },
            StepKind::AwaitingDlr { until },
            StepKind::DlrOverdue,
            StepKind::DlrSuspected,
            StepKind::DlrRemapped { state: 5, error: 3 },
            StepKind::LateDlrReceived { peer: peer.clone(), state: 2, error: 0 },
            StepKind::Replaced,
            StepKind::Held { until },
            StepKind::Rerouted { peer: peer.clone() },
            StepKind::Recovered,
            StepKind::Decided { hook: Hook::DeliveryPolicy, by, note: Some("n".into()) },
            StepKind::Resolving,
            StepKind::Resolved { peer: peer.clone(), cached: true },
            StepKind::UnknownSubscriber { cached: false },
            StepKind::SubscriberRequeried { imsi: Imsi(AddressBytes::from_slice(b"26201")) },
            StepKind::MovedBehindOthers { until },
            StepKind::AwaitingAlert { until },
            StepKind::SenderLeased { pool: "pool".parse().unwrap(), number: "4930".parse().unwrap() },
            StepKind::SenderUnavailable { pool: "pool".parse().unwrap() },
            StepKind::Charged { amount: 5 },
            StepKind::Refunded { amount: 6 },
            StepKind::AdminAction {
                action: AdminActionKind::Rerouted,
                by: "ada".into(),
                queue_action: Some(QueueActionId(3)),
                peer: Some(peer),
            },
            StepKind::AdminAction {
                action: AdminActionKind::Retried,
                by: "ada".into(),
                queue_action: None,
                peer: None,
            },
        ];
        for fields in kinds {
            let step = Step { at: Timestamp(1), kind: fields };
            let text = serde_json::to_string(&step).unwrap();
            let read: Step<Arc<str>> =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read, step, "{text}");
        }
    }

    #[test]
    fn traces_of_other_versions_are_read_partially() {
        let text = r#"{"submission":{"expires_at":17},"route":{"legs":[{"peer":"a"},{"peer":"b","rank":1,"weight":5}]},
            "steps":[{"at":1,"step":"submitted","peer":"b","attempt":1},{"at":2,"step":"beamed_up","by":"x"}]}"#;
        let decoded = decode_trace(text).unwrap();
        assert_eq!((decoded.expires_at, decoded.steps.len()), (Timestamp(17), 1));
        let Some(Verdict::Forward(legs)) = decoded.verdict else { panic!("no legs") };
        assert_eq!((legs[0].weight, legs[1].rank, legs[1].weight), (1, 1, 5));
        assert_eq!((&*legs[0].peer, &*legs[1].peer), ("a", "b"));
        assert_eq!(decoded.steps[0].kind, StepKind::Submitted { peer: "b".into(), attempt: 1 });
        assert_eq!(decode_trace("{}"), None);
        assert_eq!(decode_trace("no JSON"), None);
    }

    #[test]
    fn the_stored_form_of_verdicts_and_steps_is_unchanged() {
        let text = concat!(
            r#"{"submission":{"expires_at":17},"route":{"legs":[{"peer":"a"},{"peer":"b","rank":1,"weight":5,"cost":7,"#,
            r#""longest_wait_ms":9,"source":"10\\\\6","source_type":[5,0],"destination":"49","destination_type":[1,1],"#,
            r#""resolve":true,"imsi":"26201"}]},"steps":[{"at":1,"step":"accepted"},"#,
            r#"{"at":2,"step":"submitted","peer":"a","attempt":1},{"at":3,"step":"asked"},"#,
            r#"{"at":4,"step":"reported","state":2,"error":3},{"at":5,"step":"asked_anew","imsi":"26201"},"#,
            r#"{"at":6,"step":"others_first","until":8},{"at":7,"step":"sender_taken","pool":"p","number":"49"},"#,
            r#"{"at":8,"step":"no_sender","pool":"p"},"#,
            r#"{"at":9,"step":"decided","hook":"router","plugin":"p","version":"v","note":null},"#,
            r#"{"at":9,"step":"by_hand","deed":"rebound","by":"ada","order":3,"peer":"b"}]}"#,
        );
        let read: Trace<Step<Arc<str>>> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

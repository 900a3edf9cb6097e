use super::tables::Digits;
use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::details::{Host, Receipts, Tlv};
use crate::host_call_log::{HostCallKind, decode_u64};
use crate::message_text;
use arc_swap::ArcSwap;
use bytes::Bytes;
use model::{DlrRequest, Message, MessageChanges, PeerId, Text, Timestamp, tlvs};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of addresses that `urls` returns.
const MAX_URLS: usize = 16;

/// The message to which the details of a question refer.
#[derive(Debug, Default)]
pub(crate) struct CurrentMessage {
    pub(crate) text: Text,
    /// The characters of `text`, decoded at first use.
    characters: OnceCell<Option<String>>,
    /// The attributes that earlier plugins set: name and value.
    pub(crate) attributes: Vec<(Box<str>, Box<str>)>,
    /// The account or peer; `None` outside of questions.
    origin: Option<PeerId>,
    tlvs: Bytes,
    esm_class: u8,
    protocol_id: u8,
    dlr_request: DlrRequest,
    scheduled: Option<Timestamp>,
    valid_until: Timestamp,
}

/// The attributes of accounts in the configuration. The daemon publishes them with each configuration.
#[derive(Debug, Default)]
pub struct AccountAttributes(ArcSwap<HashMap<PeerId, BTreeMap<String, String>>>);

impl AccountAttributes {
    /// Replaces all attributes.
    pub fn publish(&self, attributes: HashMap<PeerId, BTreeMap<String, String>>) {
        self.0.store(attributes.into());
    }

    /// An attribute of an account.
    #[must_use]
    pub fn of(&self, account: PeerId, name: &str) -> Option<String> {
        self.0.load().get(&account)?.get(name).cloned()
    }
}

/// Encoding of an optional value in the record: empty, or the value after an octet 1.
fn encode_optional(value: Option<&[u8]>) -> Vec<u8> {
    value.map(|value| [&[1], value].concat()).unwrap_or_default()
}

fn decode_optional(recorded: &[u8]) -> Option<&[u8]> {
    recorded.split_first().map(|(_, value)| value)
}

impl InstanceState {
    /// Sets the message that the call is about. `changes`: the changes of earlier plugins, except screens and lookups.
    pub(crate) fn set_message(&mut self, message: &Message, changes: Option<&MessageChanges>) {
        let screened = message.routed.screening.as_deref().and_then(|screening| screening.changes.as_deref());
        // The first attribute with a name counts.
        let looked_up = message.routed.lookup.as_deref().map(|lookup| &lookup.attributes);
        let attributes = [changes.map(|changes| &changes.attributes), looked_up];
        let attributes = attributes.into_iter().chain([screened.map(|screened| &screened.attributes)]);
        let attributes = attributes.flatten().flatten().cloned();
        self.destination = Digits::from_address(&message.destination.value);
        self.message = CurrentMessage {
            text: message.text.clone(),
            characters: OnceCell::new(),
            attributes: attributes.collect(),
            origin: Some(message.origin),
            tlvs: message.tlvs.clone(),
            esm_class: message.esm_class,
            protocol_id: message.protocol_id,
            dlr_request: message.dlr_request,
            scheduled: message.scheduled,
            valid_until: message.expires_at,
        };
    }

    fn header_length(&self) -> usize {
        let text = &self.message.text;
        let length = text.octets.first().filter(|_| text.udhi).map_or(0, |length| usize::from(*length) + 1);
        length.min(text.octets.len())
    }

    /// A detail that the archive stores only in the trace: from the record of the call, otherwise from the message.
    fn recorded(
        &mut self,
        key: &[&[u8]],
        read: impl FnOnce(&CurrentMessage) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if let Some(recorded) = self.call_log.recall(HostCallKind::Detail, key) {
            return decode_optional(&recorded).map(<[u8]>::to_vec);
        }
        let value = read(&self.message);
        self.call_log.append(HostCallKind::Detail, key, &encode_optional(value.as_deref()));
        value
    }

    fn characters(&self) -> Option<&str> {
        let CurrentMessage { text, characters, .. } = &self.message;
        characters.get_or_init(|| (self.services.decode_text)(text)).as_deref()
    }
}

/// Details that the archive stores outside the trace are not recorded: the text and the wanted receipts.
impl Host for InstanceState {
    fn tlv_value(&mut self, tag: u16) -> Option<Vec<u8>> {
        self.count_call(HostInterface::Details);
        self.recorded(&[b"tlv", &tag.to_be_bytes()], |message| {
            tlvs(&message.tlvs).find(|(found, _)| *found == tag).map(|(_, value)| value.to_vec())
        })
    }

    fn tlvs(&mut self) -> Vec<Tlv> {
        self.count_call(HostInterface::Details);
        let octets = self.recorded(&[b"tlvs"], |message| Some(message.tlvs.to_vec())).unwrap_or_default();
        tlvs(&octets).map(|(tag, value)| Tlv { tag, value: value.to_vec() }).collect()
    }

    fn header(&mut self) -> Vec<u8> {
        self.count_call(HostInterface::Details);
        self.message.text.octets[..self.header_length()].to_vec()
    }

    fn text(&mut self) -> Option<String> {
        self.count_call(HostInterface::Details);
        self.characters().map(str::to_owned)
    }

    fn urls(&mut self) -> Vec<String> {
        self.count_call(HostInterface::Details);
        self.characters()
            .map(|text| message_text::urls(text).take(MAX_URLS).map(str::to_owned).collect())
            .unwrap_or_default()
    }

    fn near_duplicate(&mut self) -> Option<u64> {
        self.count_call(HostInterface::Details);
        message_text::near_duplicate_hash(self.characters()?)
    }

    fn esm_class(&mut self) -> u8 {
        self.count_call(HostInterface::Details);
        let octet = self.recorded(&[b"esm-class"], |message| Some(vec![message.esm_class]));
        octet.and_then(|octets| octets.first().copied()).unwrap_or_default()
    }

    fn protocol_id(&mut self) -> u8 {
        self.count_call(HostInterface::Details);
        let octet = self.recorded(&[b"protocol-id"], |message| Some(vec![message.protocol_id]));
        octet.and_then(|octets| octets.first().copied()).unwrap_or_default()
    }

    fn wanted_receipts(&mut self) -> Receipts {
        self.count_call(HostInterface::Details);
        let DlrRequest { on_success, on_failure, intermediate } = self.message.dlr_request;
        [
            (on_success, Receipts::ON_SUCCESS),
            (on_failure, Receipts::ON_FAILURE),
            (intermediate, Receipts::INTERMEDIATE),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .fold(Receipts::empty(), |receipts, (_, receipt)| receipts | receipt)
    }

    fn scheduled(&mut self) -> Option<u64> {
        self.count_call(HostInterface::Details);
        self.recorded(&[b"scheduled"], |message| message.scheduled.map(|at| at.0.to_le_bytes().to_vec()))
            .and_then(|octets| decode_u64(&octets))
    }

    fn valid_until(&mut self) -> u64 {
        self.count_call(HostInterface::Details);
        self.recorded(&[b"valid-until"], |message| Some(message.valid_until.0.to_le_bytes().to_vec()))
            .and_then(|octets| decode_u64(&octets))
            .unwrap_or_default()
    }

    /// An account's attributes are recorded, because the configuration may change.
    fn attribute(&mut self, name: String) -> Option<String> {
        self.count_call(HostInterface::Details);
        if let Some((_, value)) = self.message.attributes.iter().find(|(known, _)| **known == *name) {
            return Some(value.to_string());
        }
        let key: &[&[u8]] = &[name.as_bytes()];
        if let Some(recorded) = self.call_log.recall(HostCallKind::Attribute, key) {
            return decode_optional(&recorded).map(|value| String::from_utf8_lossy(value).into_owned());
        }
        let origin = self.message.origin;
        let value = origin.and_then(|origin| self.services.account_attributes.of(origin, &name));
        let recorded = encode_optional(value.as_deref().map(str::as_bytes));
        self.call_log.append(HostCallKind::Attribute, key, &recorded);
        value
    }
}

//! Messages.

use crate::content::{CipherError, ContentCipher, ContentPart, plain_content, restore_content};
use crate::field::Field;
use crate::format::{SEALED_FORMAT, begin_message};
use crate::lookup::{lookup, put_lookup};
use crate::routing::{
    FixedLayout, changes, put_changes, put_screen_verdict, put_verdict, screen_verdict, verdict,
};
use crate::{Cursor, FORMAT, RecordError, put_address, put_long, put_short, put_text};
use bytes::Bytes;
use model::{
    Address, AddressBytes, Charge, DlrContent, DlrRequest, DlrState, Lookup, Message, MessageId, MessageKind,
    PeerId, PeerMessageId, PluginVersion, Priority, Quote, RoutingDecision, Screening, SealedContent,
    SenderFallback, SenderRequest, Text, Timestamp, put_tlv, tlvs,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Decodes records; plugin versions shared by many messages are stored once.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    deciders: HashMap<(Box<str>, Box<str>), Arc<PluginVersion>>,
    last: Option<Arc<PluginVersion>>,
    cipher: Option<Arc<dyn ContentCipher>>,
}

/// On disk, table `messages`, value:
/// * 1: format (8, or 9 with an encrypted content; 9: 8 number of the key, then as 8 without text, submitted text and host calls,
///   and in the end 4 length, octets: nonce, encrypted content (see `content`), tag; 1 to 7 are read too; 7 is the same, with the protocol fields among the TLVs and without changes; 4 to 6
///   are without a submission, and 3 without sender requests)
/// * 1: flags: bit 0 DLR, 1 UDHI, 2 payload, 3 replace_if_present, 4 scheduled, 5 TLVs, 6 service type, 7 note
/// * 4: origin; 1: protocol id; 1: esm_class; 1: priority; 1: DLR request; 1: data coding
/// * 8: accepted; 8: expires (ms since the epoch); 8: scheduled, if flagged
/// * source, destination: each 1 TON, 1 NPI, 1 length, value
/// * service type: 1 length, value, if flagged
/// * text: 4 length, octets; TLVs: 4 length, octets, if flagged
/// * verdict, see `routing`: 1 count, 4 peer, 2 weight, 4 cost, 8 ms, 1 length
/// * plugin, version: each 2 length, UTF-8; note likewise, if flagged
/// * DLR, if flagged: 8 of, 1 state, 1 flags (bit 0 intermediate, 1 network error), 2 error, 3 network error if
///   flagged, 8 submitted, 8 done, 2 segments, 2 delivered, peer id: 1 length, octets, 2 segment number (from format
///   2 on)
/// * from format 3 on: 1 flags: bit 0 quote, 1 host calls, 2 sender request, 3 submission (from format 7 on), 4 protocol
///   fields, 5 changes, 6 a screening, 7 a lookup (from format 8 on). Quote:
///   1 flags (bit 0 charge, 1 kept on failure, 2 settle, 3 note, 4 tenants), charge if flagged: account: 1 length, UTF-8; 8
///   amount; tenants if flagged: 1 count, each 1 length, UTF-8; then plugin, version and note as above. Host calls: 4 length, octets. Sender request: 1 flags (bit 0
///   lease, 1 a number was given), 1 otherwise (0 reject, 1 keep the sender, 2 hold), pool, holder, user, reason:
///   each 2 length, UTF-8; then the flagged fields: 8 ms, address. Submission: 8 its id.
///   Protocol fields: 4 length, octets. Changes: 2 number of TLVs, each 2 tag, 1 whether it is set, 4 length and octets
///   if so; 2 number of attributes, each two texts as above; pace buckets and send windows, see `pace`. Screening: verdict, see `routing`; 1 flags (bit 0 note, 1
///   changes, 2 submitted text, 3 host calls); plugin and version as above; then the flagged fields: text; changes as above;
///   1 data coding, 1 flags (bit 0 UDHI, 1 payload), 4 length, octets; 4 length, octets. Lookup: see `lookup`
///
/// A content that could not be decrypted is written unchanged; any other content is written unencrypted.
pub fn encode_message(out: &mut Vec<u8>, message: &Message) {
    put_message(out, message, message.sealed.as_deref());
}

/// As [`encode_message`]; encrypts the content if [`ContentCipher::encrypts`] is true.
///
/// # Errors
/// The cipher has no key for it. In this case nothing is written.
pub fn encode_message_with(
    out: &mut Vec<u8>,
    message: &Message,
    cipher: Option<&dyn ContentCipher>,
) -> Result<(), CipherError> {
    if message.sealed.is_none()
        && let Some(cipher) = cipher
        && cipher.encrypts(message)
        && let Some(plain) = plain_content(message)
    {
        let sealed = cipher.seal(message, ContentPart::Record, &plain)?;
        put_message(out, message, sealed.as_ref());
    } else {
        encode_message(out, message);
    }
    Ok(())
}

/// The number of the key that encrypts the content in the record of a message; `None` if it is not encrypted.
#[must_use]
pub fn content_key(record: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(record);
    if cursor.u8().ok()? == SEALED_FORMAT { cursor.u64().ok() } else { None }
}

fn put_message(out: &mut Vec<u8>, message: &Message, sealed: Option<&SealedContent>) {
    let flags = u8::from(matches!(message.kind, MessageKind::Dlr(_)))
        | u8::from(message.text.udhi) << 1
        | u8::from(message.text.payload) << 2
        | u8::from(message.replace_if_present) << 3
        | u8::from(message.scheduled.is_some()) << 4
        | u8::from(!message.tlvs.is_empty()) << 5
        | u8::from(!message.service_type.is_empty()) << 6
        | u8::from(message.routed.note.is_some()) << 7;
    match sealed {
        Some(sealed) => {
            out.push(SEALED_FORMAT);
            out.extend_from_slice(&sealed.key.to_le_bytes());
        }
        None => out.push(FORMAT),
    }
    out.push(flags);
    out.extend_from_slice(&message.origin.0.to_le_bytes());
    out.extend_from_slice(&[
        message.protocol_id,
        message.esm_class,
        message.priority.level(),
        message.dlr_request.bits(),
        message.text.data_coding,
    ]);
    out.extend_from_slice(&message.accepted_at.0.to_le_bytes());
    out.extend_from_slice(&message.expires_at.0.to_le_bytes());
    if let Some(scheduled) = message.scheduled {
        out.extend_from_slice(&scheduled.0.to_le_bytes());
    }
    put_address(out, &message.source);
    put_address(out, &message.destination);
    if !message.service_type.is_empty() {
        put_short(out, &message.service_type);
    }
    put_long(out, if sealed.is_some() { &[] } else { &message.text.octets });
    if !message.tlvs.is_empty() {
        put_long(out, &message.tlvs);
    }
    put_verdict::<FixedLayout, _>(out, &message.routed.verdict, |out, peer| peer.put(out));
    put_text(out, &message.routed.by.plugin);
    put_text(out, &message.routed.by.version);
    if let Some(note) = &message.routed.note {
        put_text(out, note);
    }
    if let MessageKind::Dlr(dlr) = &message.kind {
        out.extend_from_slice(&dlr.of.0.to_le_bytes());
        let flags = u8::from(dlr.intermediate) | u8::from(dlr.network_error.is_some()) << 1;
        out.extend_from_slice(&[dlr.state as u8, flags]);
        out.extend_from_slice(&dlr.error.to_le_bytes());
        out.extend_from_slice(dlr.network_error.as_ref().map_or(&[][..], |code| code));
        out.extend_from_slice(&dlr.submitted_at.0.to_le_bytes());
        out.extend_from_slice(&dlr.done_at.0.to_le_bytes());
        out.extend_from_slice(&dlr.segments.0.to_le_bytes());
        out.extend_from_slice(&dlr.segments.1.to_le_bytes());
        put_short(out, &dlr.peer_id.0);
        out.extend_from_slice(&dlr.segment.to_le_bytes());
    }
    let RoutingDecision { quote, host_calls, sender, changes, screening, lookup, .. } = &message.routed;
    let host_calls = host_calls.as_deref().filter(|_| sealed.is_none());
    out.push(
        u8::from(quote.is_some())
            | u8::from(host_calls.is_some()) << 1
            | u8::from(sender.is_some()) << 2
            | u8::from(message.submission.is_some()) << 3
            | u8::from(!message.protocol_fields.is_empty()) << 4
            | u8::from(changes.is_some()) << 5
            | u8::from(screening.is_some()) << 6
            | u8::from(lookup.is_some()) << 7,
    );
    if let Some(quote) = quote {
        encode_quote(out, quote);
    }
    if let Some(host_calls) = host_calls {
        put_long(out, host_calls);
    }
    if let Some(sender) = sender {
        encode_sender(out, sender);
    }
    if let Some(submission) = message.submission {
        out.extend_from_slice(&submission.0.to_le_bytes());
    }
    if !message.protocol_fields.is_empty() {
        put_long(out, &message.protocol_fields);
    }
    if let Some(changes) = changes {
        put_changes::<FixedLayout>(out, changes);
    }
    if let Some(screening) = screening {
        encode_screening(out, screening, sealed.is_some());
    }
    if let Some(lookup) = lookup {
        if sealed.is_some() && lookup.host_calls.is_some() {
            put_lookup::<FixedLayout>(out, &Lookup { host_calls: None, ..Lookup::clone(lookup) });
        } else {
            put_lookup::<FixedLayout>(out, lookup);
        }
    }
    if let Some(sealed) = sealed {
        put_long(out, &sealed.octets);
    }
}

/// The tags of protocol fields; records before format 8 store these among the TLVs.
const FORMER_FIELD_TAGS: std::ops::RangeInclusive<u16> = 0x1500..=0x15FF;

/// The TLVs and the protocol fields of a message that was written before record format 8, with both in one list.
#[must_use]
pub fn split_former_tlvs(octets: &[u8]) -> (Vec<u8>, Vec<u8>) {
    if !tlvs(octets).any(|(tag, _)| FORMER_FIELD_TAGS.contains(&tag)) {
        return (octets.to_vec(), Vec::new());
    }
    let (mut kept, mut fields) = (Vec::new(), Vec::new());
    for (tag, value) in tlvs(octets) {
        put_tlv(if FORMER_FIELD_TAGS.contains(&tag) { &mut fields } else { &mut kept }, tag, value);
    }
    (kept, fields)
}

fn encode_sender(out: &mut Vec<u8>, request: &SenderRequest) {
    out.push(u8::from(request.lease.is_some()) | u8::from(request.leased.is_some()) << 1);
    out.push(request.otherwise as u8);
    for text in [request.pool.as_str(), &request.holder, &request.user, &request.reason] {
        put_text(out, text);
    }
    if let Some(lease) = request.lease {
        out.extend_from_slice(&u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).to_le_bytes());
    }
    if let Some(leased) = &request.leased {
        put_address(out, leased);
    }
}

fn decode_sender(cursor: &mut Cursor<'_>) -> Result<SenderRequest, RecordError> {
    let flags = cursor.u8()?;
    let otherwise = cursor.u8()?;
    let otherwise =
        SenderFallback::from_octet(otherwise).ok_or_else(|| cursor.damaged("unknown otherwise"))?;
    Ok(SenderRequest {
        pool: Field::read(cursor)?,
        holder: cursor.text()?.into(),
        user: cursor.text()?.into(),
        reason: cursor.text()?.into(),
        lease: if flags & 1 != 0 { Some(Duration::from_millis(cursor.u64()?)) } else { None },
        otherwise,
        leased: if flags & 2 != 0 { Some(cursor.address()?) } else { None },
    })
}

/// `sealed`: the record has the content elsewhere.
fn encode_screening(out: &mut Vec<u8>, screening: &Screening, sealed: bool) {
    let host_calls = screening.host_calls.as_deref().filter(|_| !sealed);
    put_screen_verdict(out, screening.verdict);
    out.push(
        u8::from(screening.note.is_some())
            | u8::from(screening.changes.is_some()) << 1
            | u8::from(screening.submitted_text.is_some()) << 2
            | u8::from(host_calls.is_some()) << 3,
    );
    put_text(out, &screening.by.plugin);
    put_text(out, &screening.by.version);
    if let Some(note) = &screening.note {
        put_text(out, note);
    }
    if let Some(changes) = &screening.changes {
        put_changes::<FixedLayout>(out, changes);
    }
    if let Some(text) = &screening.submitted_text {
        out.extend_from_slice(&[text.data_coding, u8::from(text.udhi) | u8::from(text.payload) << 1]);
        put_long(out, if sealed { &[] } else { &text.octets });
    }
    if let Some(host_calls) = host_calls {
        put_long(out, host_calls);
    }
}

fn decode_text(cursor: &mut Cursor<'_>) -> Result<Text, RecordError> {
    let (data_coding, flags) = (cursor.u8()?, cursor.u8()?);
    let octets = Bytes::copy_from_slice(cursor.long()?);
    Ok(Text { octets, data_coding, udhi: flags & 1 != 0, payload: flags & 2 != 0 })
}

/// Source and destination of a message record, without decoding the rest; `None` for a DLR.
///
/// # Errors
/// The octets are no such record.
pub fn decode_parties(octets: &[u8]) -> Result<Option<(Address, Address)>, RecordError> {
    let (mut cursor, ..) = begin_message(octets)?;
    let flags = cursor.u8()?;
    let scheduled = if flags & 1 << 4 != 0 { 8 } else { 0 };
    cursor.take(4 + 5 + 8 + 8 + scheduled)?;
    let (source, destination) = (cursor.address()?, cursor.address()?);
    Ok((flags & 1 == 0).then_some((source, destination)))
}

/// The fields of a message record that are decoded without its rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSummary {
    /// It is a DLR for a submitter.
    pub is_own_dlr: bool,
    /// The submitter.
    pub origin: PeerId,
    /// The time of acceptance.
    pub accepted_at: Timestamp,
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
}

/// Decodes the first fields of a message record.
///
/// # Errors
/// The octets are no such record.
pub fn read_summary(octets: &[u8]) -> Result<RecordSummary, RecordError> {
    let (mut cursor, ..) = begin_message(octets)?;
    let flags = cursor.u8()?;
    let origin = PeerId(cursor.u32()?);
    cursor.take(5)?;
    let accepted_at = Timestamp(cursor.u64()?);
    cursor.take(if flags & 1 << 4 != 0 { 16 } else { 8 })?;
    let (source, destination) = (cursor.address()?, cursor.address()?);
    Ok(RecordSummary { is_own_dlr: flags & 1 != 0, origin, accepted_at, source, destination })
}

fn encode_quote(out: &mut Vec<u8>, quote: &Quote) {
    let charge = quote.charge.as_ref();
    out.push(
        u8::from(charge.is_some())
            | u8::from(charge.is_some_and(|charge| charge.keep_on_failure)) << 1
            | u8::from(charge.is_some_and(|charge| charge.settle)) << 2
            | u8::from(quote.note.is_some()) << 3
            | u8::from(charge.is_some_and(|charge| !charge.tenants.is_empty())) << 4,
    );
    if let Some(charge) = charge {
        put_short(out, charge.account.as_bytes());
        out.extend_from_slice(&charge.amount.to_le_bytes());
        if !charge.tenants.is_empty() {
            let tenants = charge.tenants.get(..255).unwrap_or(&charge.tenants);
            out.push(tenants.len() as u8);
            for tenant in tenants {
                put_short(out, tenant.as_bytes());
            }
        }
    }
    put_text(out, &quote.by.plugin);
    put_text(out, &quote.by.version);
    if let Some(note) = &quote.note {
        put_text(out, note);
    }
}

fn ledger_account(cursor: &mut Cursor<'_>) -> Result<Arc<str>, RecordError> {
    let octets = cursor.short()?;
    std::str::from_utf8(octets).map(Into::into).map_err(|_| cursor.damaged("no UTF-8"))
}

impl RecordDecoder {
    /// A new decoder. Encrypted contents stay encrypted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder that decrypts contents.
    #[must_use]
    pub fn with_cipher(cipher: Option<Arc<dyn ContentCipher>>) -> Self {
        Self { cipher, ..Self::default() }
    }

    /// The cipher of contents, if there is one.
    #[must_use]
    pub fn cipher(&self) -> Option<&Arc<dyn ContentCipher>> {
        self.cipher.as_ref()
    }

    fn decider(&mut self, plugin: &str, version: &str) -> Arc<PluginVersion> {
        if let Some(last) = &self.last
            && last.plugin == plugin
            && last.version == version
        {
            return last.clone();
        }
        let by = self
            .deciders
            .entry((plugin.into(), version.into()))
            .or_insert_with(|| {
                Arc::new(PluginVersion { plugin: plugin.to_owned(), version: version.to_owned() })
            })
            .clone();
        self.last = Some(by.clone());
        by
    }

    fn quote(&mut self, cursor: &mut Cursor<'_>) -> Result<Quote, RecordError> {
        let flags = cursor.u8()?;
        let charge = if flags & 1 != 0 {
            let (account, amount) = (ledger_account(cursor)?, cursor.u64()?);
            let tenants = if flags & 16 != 0 { cursor.u8()? } else { 0 };
            Some(Charge {
                account,
                amount,
                keep_on_failure: flags & 2 != 0,
                settle: flags & 4 != 0,
                tenants: (0..tenants).map(|_| ledger_account(cursor)).collect::<Result<_, _>>()?,
            })
        } else {
            None
        };
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        let note = if flags & 8 != 0 { Some(cursor.text()?.into()) } else { None };
        Ok(Quote { charge, by, note })
    }

    fn screening(&mut self, cursor: &mut Cursor<'_>) -> Result<Screening, RecordError> {
        let verdict = screen_verdict(cursor)?;
        let flags = cursor.u8()?;
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        let flagged = |bit: u8| flags & 1 << bit != 0;
        Ok(Screening {
            verdict,
            by,
            note: if flagged(0) { Some(cursor.text()?.into()) } else { None },
            changes: if flagged(1) { Some(Box::new(changes::<FixedLayout>(cursor)?)) } else { None },
            submitted_text: if flagged(2) { Some(decode_text(cursor)?) } else { None },
            host_calls: if flagged(3) { Some(cursor.long()?.into()) } else { None },
        })
    }

    /// Decodes the output of [`encode_message`]; also returns its length.
    ///
    /// # Errors
    /// The octets are no such record.
    pub fn message(&mut self, id: MessageId, octets: &[u8]) -> Result<(Message, usize), RecordError> {
        let (mut cursor, format, key) = begin_message(octets)?;
        let flags = cursor.u8()?;
        let flagged = |bit: u8| flags & (1 << bit) != 0;
        let origin = PeerId(cursor.u32()?);
        let (protocol_id, esm_class) = (cursor.u8()?, cursor.u8()?);
        let priority = Priority::new(cursor.u8()?);
        let dlr_request = DlrRequest::from_bits(cursor.u8()?);
        let data_coding = cursor.u8()?;
        let accepted_at = Timestamp(cursor.u64()?);
        let expires_at = Timestamp(cursor.u64()?);
        let scheduled = if flagged(4) { Some(Timestamp(cursor.u64()?)) } else { None };
        let source = cursor.address()?;
        let destination = cursor.address()?;
        let service_type = if flagged(6) { Bytes::copy_from_slice(cursor.short()?) } else { Bytes::new() };
        let octets = Bytes::copy_from_slice(cursor.long()?);
        let tlvs = if flagged(5) { cursor.long()? } else { &[] };
        let verdict = verdict::<FixedLayout, _>(&mut cursor, Field::read)?;
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        let note = if flagged(7) { Some(cursor.text()?.into()) } else { None };
        let kind = if flagged(0) {
            MessageKind::Dlr(Box::new(decode_dlr_content(&mut cursor, format)?))
        } else {
            MessageKind::Text
        };
        let extras = if format >= 3 { cursor.u8()? } else { 0 };
        let quote = if extras & 1 != 0 { Some(Box::new(self.quote(&mut cursor)?)) } else { None };
        let host_calls = if extras & 2 != 0 { Some(cursor.long()?.into()) } else { None };
        let sender = if extras & 4 != 0 { Some(Box::new(decode_sender(&mut cursor)?)) } else { None };
        let submission = if format >= 7 && extras & 8 != 0 { Some(MessageId(cursor.u64()?)) } else { None };
        let (tlvs, protocol_fields) = if format < 8 {
            let (tlvs, fields) = split_former_tlvs(tlvs);
            (Bytes::from(tlvs), Bytes::from(fields))
        } else if extras & 16 != 0 {
            (Bytes::copy_from_slice(tlvs), Bytes::copy_from_slice(cursor.long()?))
        } else {
            (Bytes::copy_from_slice(tlvs), Bytes::new())
        };
        let changes = if format >= 8 && extras & 32 != 0 {
            Some(Box::new(changes::<FixedLayout>(&mut cursor)?))
        } else {
            None
        };
        let screening =
            if format >= 8 && extras & 64 != 0 { Some(Box::new(self.screening(&mut cursor)?)) } else { None };
        let lookup = if format >= 8 && extras & 128 != 0 {
            let by = |plugin: &str, version: &str| self.decider(plugin, version);
            Some(Arc::new(lookup::<FixedLayout>(&mut cursor, by)?))
        } else {
            None
        };
        let sealed = match key {
            Some(key) => Some(SealedContent { key, octets: Bytes::copy_from_slice(cursor.long()?) }),
            None => None,
        };
        let mut message = Message {
            id,
            kind,
            origin,
            source,
            destination,
            service_type,
            protocol_id,
            esm_class,
            priority,
            dlr_request,
            replace_if_present: flagged(3),
            submission,
            text: Text { octets, data_coding, udhi: flagged(1), payload: flagged(2) },
            tlvs,
            protocol_fields,
            sealed: None,
            accepted_at,
            scheduled,
            expires_at,
            routed: RoutingDecision {
                verdict,
                by,
                note,
                sender,
                changes,
                screening,
                lookup,
                quote,
                host_calls,
                fault_message_id: None,
            },
        };
        if let Some(sealed) = sealed {
            let cipher = self.cipher.as_deref();
            match cipher.and_then(|cipher| cipher.open(id, ContentPart::Record, &sealed)) {
                Some(plain) => restore_content(&mut message, &plain)?,
                None => message.sealed = Some(Box::new(sealed)),
            }
        }
        Ok((message, cursor.at()))
    }
}

fn decode_dlr_content(cursor: &mut Cursor<'_>, format: u8) -> Result<DlrContent, RecordError> {
    let of = MessageId(cursor.u64()?);
    let state = cursor.u8()?;
    let state = DlrState::from_octet(state).ok_or_else(|| cursor.damaged("unknown DLR state"))?;
    let flags = cursor.u8()?;
    let error = cursor.u16()?;
    let network_error = if flags & 2 != 0 { Some([cursor.u8()?, cursor.u8()?, cursor.u8()?]) } else { None };
    Ok(DlrContent {
        of,
        state,
        intermediate: flags & 1 != 0,
        error,
        network_error,
        submitted_at: Timestamp(cursor.u64()?),
        done_at: Timestamp(cursor.u64()?),
        segments: (cursor.u16()?, cursor.u16()?),
        peer_id: PeerMessageId(AddressBytes::from_slice(cursor.short()?)),
        segment: if format >= 2 { cursor.u16()? } else { 0 },
    })
}

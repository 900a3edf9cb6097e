//! Messages rebuilt from the archive.

use model::{
    Address, DlrRequest, FinalRecord, Message, PeerId, PeerMessageId, PluginVersion, Priority,
    RoutingDecision, Text, Timestamp, Verdict,
};
use std::sync::Arc;

/// Rebuilds a message from its archive record, without route and steps.
pub(crate) fn archived_message(record: &archive::Record, origin: PeerId) -> (Message, FinalRecord) {
    let address = |ton, npi, text: &str| {
        let octets = archive::Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec());
        Address::new(ton, npi, &octets)
    };
    let by = PluginVersion { plugin: record.router.clone(), version: record.router_version.clone() };
    let message = Message {
        id: record.id,
        kind: model::MessageKind::Text,
        origin,
        source: address(record.source_ton, record.source_npi, &record.source),
        destination: address(record.destination_ton, record.destination_npi, &record.destination),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new(record.priority),
        dlr_request: DlrRequest::NONE,
        replace_if_present: false,
        submission: record.submission(),
        text: Text {
            octets: record.body.clone().unwrap_or_default().into(),
            data_coding: record.data_coding,
            udhi: record.udhi,
            payload: false,
        },
        tlvs: bytes::Bytes::new(),
        protocol_fields: bytes::Bytes::new(),
        sealed: None,
        accepted_at: record.accepted_at,
        scheduled: None,
        expires_at: Timestamp::default(),
        routed: RoutingDecision {
            note: record.note.as_deref().map(Into::into),
            ..RoutingDecision::new(Verdict::Forward(Vec::new()), Arc::new(by))
        },
    };
    let ended = FinalRecord {
        state: record.state,
        at: record.ended_at,
        error: record.error,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    };
    (message, ended)
}

//! The proxy between an MSC and its HLR.

mod outgoing;

use crate::ccm::{Ccm, UNIT_ID, tag, terminated};
use crate::gsup_message::MessageView;
use crate::ipa::{EXTENSION_GSUP, HEADER_LEN, Header, IpaFrame, STREAM_CCM, STREAM_OSMOCOM};
use crate::{CnDomain, GsupImsi, GsupMessage, IpaName, MessageType};
use bytes::{Bytes, BytesMut};
use outgoing::Outgoing;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// An event for the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The IPA name of the MSC.
    MscName(String),
    /// An intercepted message from the MSC: an MO-FORWARD-SM request (to be answered by the owner), a READY-FOR-SM
    /// request (already answered), or the answer to an own MT-FORWARD-SM request.
    ShortMessage(GsupMessage),
    /// The subscriber registered at this MSC.
    LocationUpdated(GsupImsi),
    /// The subscriber left this MSC.
    Detached(GsupImsi),
    /// The HLR reported a subscriber's number.
    Number {
        /// The subscriber.
        imsi: GsupImsi,
        /// The MSISDN, as the HLR has it.
        msisdn: String,
    },
}

/// A proxy between one MSC and its HLR, with a connection to each.
///
/// All frames are relayed in order and octet for octet, including identity and keep-alive, so that the HLR knows the
/// MSC under its own name. Only short messages from the MSC are intercepted, and own messages are inserted between the
/// frames to the MSC. Unknown frames are relayed: an error in the proxy must not stop location updates.
///
/// The owner reads from a socket into a buffer, passes the buffer to the proxy, and writes the pieces from
/// [`Proxy::to_hlr`] and [`Proxy::to_msc`]. Relayed pieces share the read buffer. An incomplete frame stays in the
/// buffer. If the MSC's connection closes, the owner closes the HLR's, too. If the HLR's connection closes, the owner
/// reconnects ([`Proxy::hlr_disconnected`], [`Proxy::hlr_connected`]); the MSC's connection stays open.
#[derive(Debug, Default)]
pub struct Proxy {
    own_name: Option<IpaName>,
    to_msc: Outgoing,
    to_hlr: Outgoing,
    events: VecDeque<Event>,
    /// Subscribers with a pending own MT at the MSC.
    own_mts: SubscriberSet,
    /// Subscribers with a pending MT from the HLR, sent by another service centre.
    foreign_mts: SubscriberSet,
    /// Subscribers with a pending location update by a packet switched node, which handles no short messages.
    packet_switched: SubscriberSet,
    relayed_frames: u64,
    /// The identity was sent to the HLR: its first identity request is not relayed.
    identity_sent: bool,
    /// The identity frame of the MSC with a unit id; sent first on every connection to the HLR.
    identity: Option<Bytes>,
    /// Whether the connection to the HLR is down.
    hlr_down: bool,
}

/// Maximum octets queued for a disconnected HLR; further frames are dropped.
const MAX_QUEUED_OCTETS: usize = 256 << 10;

/// A bounded set of subscribers.
#[derive(Debug, Default)]
struct SubscriberSet(FxHashSet<GsupImsi>);

impl SubscriberSet {
    /// Far above the number of concurrent transactions of an MSC.
    const MAX_LEN: usize = 200_000;

    fn put(&mut self, imsi: GsupImsi) {
        if self.0.len() >= Self::MAX_LEN {
            self.0.clear();
        }
        self.0.insert(imsi);
    }

    fn remove(&mut self, imsi: GsupImsi) -> bool {
        self.0.remove(&imsi)
    }

    fn contains(&self, imsi: GsupImsi) -> bool {
        self.0.contains(&imsi)
    }
}

/// The side that a frame comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamSide {
    Msc,
    Hlr,
}

/// Treatment of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameAction {
    /// Relay it with the adjacent frames.
    PassThrough,
    /// Handle it separately.
    Intercept,
}

impl Proxy {
    /// Creates a proxy for a new pair of connections. `own_name` is the source name in own answers to MSCs that route
    /// by name.
    #[must_use]
    pub fn new(own_name: Option<IpaName>) -> Self {
        Self { own_name, ..Self::default() }
    }

    /// The connection to the HLR is down. Until [`Proxy::hlr_connected`], the proxy answers the MSC's pings, and queues
    /// up to 256 KiB for the HLR until [`Proxy::expire`] drops them.
    pub fn hlr_disconnected(&mut self) {
        self.hlr_down = true;
    }

    /// A new connection to the HLR is up. The MSC's identity is sent first, so the HLR's first identity request is not
    /// relayed; queued frames follow.
    pub fn hlr_connected(&mut self) {
        self.hlr_down = false;
        if let Some(identity) = self.identity.clone() {
            self.to_hlr.put_first(identity);
            self.identity_sent = true;
        }
    }

    /// Drops frames that were queued for the HLR before the previous call. Call it periodically while the HLR is
    /// disconnected, since the MSC times out old requests.
    pub fn expire(&mut self) {
        self.to_hlr.expire();
    }

    /// Takes all complete frames from the MSC's input.
    pub fn from_msc(&mut self, input: &mut BytesMut) {
        self.relay_all(StreamSide::Msc, input);
    }

    /// Takes all complete frames from the HLR's input.
    pub fn from_hlr(&mut self, input: &mut BytesMut) {
        self.relay_all(StreamSide::Hlr, input);
    }

    /// The next piece for the MSC.
    pub fn to_msc(&mut self) -> Option<Bytes> {
        self.to_msc.next()
    }

    /// The next piece for the HLR.
    pub fn to_hlr(&mut self) -> Option<Bytes> {
        self.to_hlr.next()
    }

    /// Octets queued for the MSC; the owner stops reading from the HLR above a limit.
    #[must_use]
    pub fn waiting_for_msc(&self) -> usize {
        self.to_msc.waiting()
    }

    /// Octets queued for the HLR; the owner stops reading from the MSC above a limit.
    #[must_use]
    pub fn waiting_for_hlr(&self) -> usize {
        self.to_hlr.waiting()
    }

    /// Number of relayed frames in both directions.
    #[must_use]
    pub fn relayed_frames(&self) -> u64 {
        self.relayed_frames
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Inserts an own message for the MSC: an MT-FORWARD-SM request, or an MO-FORWARD-SM answer.
    pub fn inject_to_msc(&mut self, message: &GsupMessage) {
        if message.kind == MessageType::MT_FORWARD_SM_REQUEST {
            self.own_mts.put(message.imsi);
        }
        self.to_msc.write(|output| message.put(output));
    }

    fn relay_all(&mut self, from: StreamSide, input: &mut BytesMut) {
        // All frames before this offset are relayed.
        let mut offset = 0;
        while let Some(header) = input.get(offset..).and_then(Header::peek) {
            let octets = HEADER_LEN + header.octets;
            let Some(frame) = input.get(offset..offset + octets) else { break };
            if self.inspect(from, header.stream, frame.get(HEADER_LEN..).unwrap_or_default())
                == FrameAction::PassThrough
            {
                offset += octets;
                self.relayed_frames += 1;
                continue;
            }
            let before = input.split_to(offset).freeze();
            self.relay(from, before);
            offset = 0;
            let frame = input.split_to(octets).freeze();
            // From the HLR, only the identity request is intercepted.
            if from == StreamSide::Msc && !self.intercept(&frame) {
                self.relayed_frames += 1;
                self.relay(from, frame);
            }
        }
        if offset > 0 {
            let relayed_frames = input.split_to(offset).freeze();
            self.relay(from, relayed_frames);
        }
    }

    /// Relays complete frames.
    fn relay(&mut self, from: StreamSide, frames: Bytes) {
        match from {
            StreamSide::Msc if self.hlr_down => {
                // Copied, since queued pieces would keep whole read buffers alive.
                if self.to_hlr.waiting() + frames.len() <= MAX_QUEUED_OCTETS {
                    self.to_hlr.write(|output| output.extend_from_slice(&frames));
                }
            }
            StreamSide::Msc => self.to_hlr.push(frames),
            StreamSide::Hlr => self.to_msc.push(frames),
        }
    }

    /// Inspects a frame in the input, and learns from it.
    fn inspect(&mut self, from: StreamSide, stream: u8, payload: &[u8]) -> FrameAction {
        match (stream, payload) {
            (STREAM_OSMOCOM, [EXTENSION_GSUP, message @ ..]) => {
                let kind = message.first().copied().map_or(MessageType(u8::MAX), MessageType);
                match from {
                    StreamSide::Msc => self.inspect_from_msc(kind, message),
                    StreamSide::Hlr => {
                        self.inspect_from_hlr(kind, message);
                        FrameAction::PassThrough
                    }
                }
            }
            (STREAM_CCM, _) if from == StreamSide::Hlr && self.identity_sent && Ccm::is_id_get(payload) => {
                self.identity_sent = false;
                FrameAction::Intercept
            }
            (STREAM_CCM, _) if from == StreamSide::Msc && self.hlr_down && Ccm::is_ping(payload) => {
                FrameAction::Intercept
            }
            (STREAM_CCM, _) if from == StreamSide::Msc => self.inspect_identity(payload),
            _ => FrameAction::PassThrough,
        }
    }

    fn inspect_from_msc(&mut self, kind: MessageType, message: &[u8]) -> FrameAction {
        match kind {
            MessageType::MO_FORWARD_SM_REQUEST
            | MessageType::READY_FOR_SM_REQUEST
            | MessageType::MT_FORWARD_SM_RESULT
            | MessageType::MT_FORWARD_SM_ERROR => return FrameAction::Intercept,
            MessageType::UPDATE_LOCATION_REQUEST => {
                if let Some(view) = MessageView::of(message) {
                    self.packet_switched.remove(view.imsi);
                    if view.cn_domain() == Some(CnDomain::PS) {
                        self.packet_switched.put(view.imsi);
                    }
                }
            }
            MessageType::PURGE_MS_REQUEST => self.emit_detached(message),
            _ => {}
        }
        FrameAction::PassThrough
    }

    fn inspect_from_hlr(&mut self, kind: MessageType, message: &[u8]) {
        match kind {
            MessageType::UPDATE_LOCATION_RESULT => {
                if let Some(view) = MessageView::of(message)
                    && !self.packet_switched.remove(view.imsi)
                {
                    self.events.push_back(Event::LocationUpdated(view.imsi));
                }
            }
            MessageType::UPDATE_LOCATION_ERROR => {
                if let Some(view) = MessageView::of(message) {
                    self.packet_switched.remove(view.imsi);
                }
            }
            MessageType::INSERT_DATA_REQUEST => {
                if let Some(view) = MessageView::of(message)
                    && let Some(msisdn) = view.msisdn()
                {
                    self.events.push_back(Event::Number { imsi: view.imsi, msisdn });
                }
            }
            MessageType::LOCATION_CANCEL_REQUEST => self.emit_detached(message),
            MessageType::MT_FORWARD_SM_REQUEST => {
                if let Some(view) = MessageView::of(message) {
                    self.foreign_mts.put(view.imsi);
                }
            }
            _ => {}
        }
    }

    fn emit_detached(&mut self, message: &[u8]) {
        if let Some(view) = MessageView::of(message)
            && view.cn_domain() != Some(CnDomain::PS)
        {
            self.events.push_back(Event::Detached(view.imsi));
        }
    }

    /// Learns the MSC's name. An identity without a unit id is intercepted, since an HLR would close the connection.
    fn inspect_identity(&mut self, payload: &[u8]) -> FrameAction {
        if !Ccm::is_id_response(payload) {
            return FrameAction::PassThrough;
        }
        let Ccm::IdResponse(mut response) = Ccm::decode(&Bytes::copy_from_slice(payload)) else {
            return FrameAction::PassThrough;
        };
        if let Some(name) = response.serial() {
            self.events.push_back(Event::MscName(name.to_owned()));
        }
        let has_unit_id = response.items.iter().any(|(tag, value)| *tag == tag::UNIT_ID && !value.is_empty());
        if !has_unit_id {
            response.items.retain(|(tag, _)| *tag != tag::UNIT_ID);
            response.items.push((tag::UNIT_ID, terminated(UNIT_ID)));
        }
        let mut frame = BytesMut::new();
        Ccm::IdResponse(response).put(&mut frame);
        self.identity = Some(frame.freeze());
        if has_unit_id && !self.hlr_down { FrameAction::PassThrough } else { FrameAction::Intercept }
    }

    /// Intercepts a frame from the MSC. Returns false if it must be relayed.
    fn intercept(&mut self, frame: &Bytes) -> bool {
        let payload = frame.slice(HEADER_LEN.min(frame.len())..);
        match IpaFrame::of(frame.get(2).copied().unwrap_or_default(), payload) {
            IpaFrame::Ccm(payload) => self.intercept_ccm(&payload),
            IpaFrame::Gsup(payload) => {
                GsupMessage::decode(&payload).is_ok_and(|message| self.intercept_message(message))
            }
            IpaFrame::Ctrl(_) | IpaFrame::Other { .. } => false,
        }
    }

    fn intercept_ccm(&mut self, payload: &Bytes) -> bool {
        if Ccm::is_ping(payload) {
            self.to_msc.write(|output| Ccm::Pong.put(output));
        } else if !self.hlr_down
            && let Some(identity) = self.identity.clone()
        {
            self.to_hlr.push(identity);
        }
        true
    }

    fn intercept_message(&mut self, message: GsupMessage) -> bool {
        match message.kind {
            MessageType::READY_FOR_SM_REQUEST => {
                let answer = message.accepted(self.own_name.as_ref());
                self.inject_to_msc(&answer);
            }
            MessageType::MT_FORWARD_SM_RESULT | MessageType::MT_FORWARD_SM_ERROR
                if !self.is_answer_to_us(&message) =>
            {
                return false;
            }
            _ => {}
        }
        self.events.push_back(Event::ShortMessage(message));
        true
    }

    /// Whether a name is the own name, optionally followed by `#` and a tag of the owner.
    fn is_own_name(&self, name: &str) -> bool {
        let Some(rest) = self.own_name.as_ref().and_then(|own| name.strip_prefix(own.as_str())) else {
            return false;
        };
        rest.is_empty() || rest.starts_with('#')
    }

    /// Whether an MT-FORWARD-SM answer belongs to an own request, and not to a service centre behind the HLR.
    fn is_answer_to_us(&mut self, answer: &GsupMessage) -> bool {
        let imsi = answer.imsi;
        let own_mts = match answer.destination_name() {
            Some(name) => self.is_own_name(name),
            None => self.own_mts.contains(imsi) || !self.foreign_mts.contains(imsi),
        };
        if own_mts {
            self.own_mts.remove(imsi)
        } else {
            self.foreign_mts.remove(imsi)
        };
        own_mts
    }
}

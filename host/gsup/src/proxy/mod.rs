//! The place between an MSC and its HLR.

mod outgoing;

use crate::ccm::{Ccm, UNIT_ID, tag, terminated};
use crate::ipa::{EXTENSION_GSUP, Frame, HEADER, Header, STREAM_CCM, STREAM_OSMOCOM};
use crate::message::View;
use crate::{CnDomain, Imsi, Message, MessageType, Name};
use bytes::{Bytes, BytesMut};
use outgoing::Outgoing;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// What the owner must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The name by which the MSC is known to its HLR, and so to us.
    Named(String),
    /// A short message's matter that was taken out of the stream from the MSC: a request `MO_FORWARD_SM` (the owner answers
    /// it), a request `READY_FOR_SM` (it is answered already), or the MSC's answer to a `MT_FORWARD_SM` of ours.
    Sms(Message),
    /// The subscriber is at this MSC now.
    Attached(Imsi),
    /// The subscriber is no longer at this MSC.
    Detached(Imsi),
    /// What the HLR says about a subscriber's number.
    Number {
        /// The subscriber.
        imsi: Imsi,
        /// Its number, as the HLR has it.
        msisdn: String,
    },
}

/// The place between one MSC and its HLR: two connections, of which this is the middle.
///
/// Everything goes from one side to the other, in order and octet for octet: identity and keep-alive too, so that the HLR
/// knows the MSC under its own name. Only short messages of the MSC's are taken out, and ours are put between its frames.
/// What is not understood is passed on: a fault of ours must not cost a network its location updates.
///
/// The owner reads from a socket into a buffer, hands the buffer over, and writes what [`Proxy::to_hlr`] and
/// [`Proxy::to_msc`] give: pieces of that same buffer, wherever nothing was taken out. An incomplete frame stays in the
/// buffer. When the MSC's side ends, the other is to be closed by the owner. When the HLR's side ends, the owner connects
/// again ([`Proxy::hlr_is_gone`], [`Proxy::hlr_is_back`]); the MSC's side stays open meanwhile.
#[derive(Debug, Default)]
pub struct Proxy {
    own_name: Option<Name>,
    to_msc: Outgoing,
    to_hlr: Outgoing,
    events: VecDeque<Event>,
    /// Who has a message of ours at the MSC.
    ours: Marks,
    /// Who has a message at the MSC that came from the HLR: another service centre's.
    theirs: Marks,
    /// Who is about to be located by a packet switched node, which takes no short messages.
    packet: Marks,
    passed: u64,
    /// The MSC has been asked who it is: the HLR's first question is not passed on.
    is_asked: bool,
    /// The MSC's identity with a unit id, a whole frame: the first on every connection to the HLR.
    identity: Option<Bytes>,
    /// There is no connection to the HLR.
    hlr_is_away: bool,
}

/// Octets that wait for an HLR that is away; what comes beyond is dropped.
const HELD: usize = 256 << 10;

/// A set of subscribers that a far end cannot make grow without end.
#[derive(Debug, Default)]
struct Marks(FxHashSet<Imsi>);

impl Marks {
    /// An MSC has far fewer transactions at a time.
    const MOST: usize = 200_000;

    fn put(&mut self, imsi: Imsi) {
        if self.0.len() >= Self::MOST {
            self.0.clear();
        }
        self.0.insert(imsi);
    }

    fn take(&mut self, imsi: Imsi) -> bool {
        self.0.remove(&imsi)
    }

    fn has(&self, imsi: Imsi) -> bool {
        self.0.contains(&imsi)
    }
}

/// From where a frame comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Msc,
    Hlr,
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It goes on with those around it.
    Passes,
    /// It has to be looked at by itself.
    Ours,
}

impl Proxy {
    /// A fresh pair of connections. `own_name` is written as the source of our answers to MSCs that route by name.
    #[must_use]
    pub fn new(own_name: Option<Name>) -> Self {
        Self { own_name, ..Self::default() }
    }

    /// There is no connection to the HLR, not yet or not any more. Until [`Proxy::hlr_is_back`] the MSC's keep-alive is answered
    /// here, and what is for the HLR waits: 256 KiB of it, and as long as [`Proxy::expire`] leaves it there.
    pub fn hlr_is_gone(&mut self) {
        self.hlr_is_away = true;
    }

    /// There is a connection to the HLR, and nothing was written to it. It begins with the MSC's identity, so the HLR's
    /// first question is not passed on; what has waited follows.
    pub fn hlr_is_back(&mut self) {
        self.hlr_is_away = false;
        if let Some(identity) = self.identity.clone() {
            self.to_hlr.put_first(identity);
            self.is_asked = true;
        }
    }

    /// Drops what has waited for the HLR since the last call but one. To be called from time to time while it is away: an MSC
    /// has given up by itself on a request that is old.
    pub fn expire(&mut self) {
        self.to_hlr.expire();
    }

    /// Takes all whole frames from what was read from the MSC.
    pub fn from_msc(&mut self, input: &mut BytesMut) {
        self.pass(From::Msc, input);
    }

    /// Takes all whole frames from what was read from the HLR.
    pub fn from_hlr(&mut self, input: &mut BytesMut) {
        self.pass(From::Hlr, input);
    }

    /// The next octets for the MSC.
    pub fn to_msc(&mut self) -> Option<Bytes> {
        self.to_msc.next()
    }

    /// The next octets for the HLR.
    pub fn to_hlr(&mut self) -> Option<Bytes> {
        self.to_hlr.next()
    }

    /// How many octets wait for the MSC: an owner stops reading from the HLR when they are too many.
    #[must_use]
    pub fn waiting_for_msc(&self) -> usize {
        self.to_msc.waiting()
    }

    /// How many octets wait for the HLR: an owner stops reading from the MSC when they are too many.
    #[must_use]
    pub fn waiting_for_hlr(&self) -> usize {
        self.to_hlr.waiting()
    }

    /// How many frames were passed on so far, both ways.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// The next thing that the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Puts a message of ours between the frames for the MSC: a `MT_FORWARD_SM`, or the answer to a `MO_FORWARD_SM`.
    pub fn inject_to_msc(&mut self, message: &Message) {
        if message.kind == MessageType::MT_FORWARD_SM_REQUEST {
            self.ours.put(message.imsi);
        }
        self.to_msc.write(|output| message.put(output));
    }

    fn pass(&mut self, from: From, input: &mut BytesMut) {
        // Up to here everything passes.
        let mut at = 0;
        while let Some(header) = input.get(at..).and_then(Header::peek) {
            let octets = HEADER + header.octets;
            let Some(frame) = input.get(at..at + octets) else { break };
            if self.look(from, header.stream, frame.get(HEADER..).unwrap_or_default()) == Fate::Passes {
                at += octets;
                self.passed += 1;
                continue;
            }
            let before = input.split_to(at).freeze();
            self.pass_on(from, before);
            at = 0;
            let frame = input.split_to(octets).freeze();
            // Of the HLR's only its question is ours.
            if from == From::Msc && !self.take(&frame) {
                self.passed += 1;
                self.pass_on(from, frame);
            }
        }
        if at > 0 {
            let passed = input.split_to(at).freeze();
            self.pass_on(from, passed);
        }
    }

    /// Whole frames.
    fn pass_on(&mut self, from: From, frames: Bytes) {
        match from {
            From::Msc if self.hlr_is_away => {
                // Copied: what waits would keep whole buffers.
                if self.to_hlr.waiting() + frames.len() <= HELD {
                    self.to_hlr.write(|output| output.extend_from_slice(&frames));
                }
            }
            From::Msc => self.to_hlr.pass(frames),
            From::Hlr => self.to_msc.pass(frames),
        }
    }

    /// Looks at a frame where it lies, and learns from it.
    fn look(&mut self, from: From, stream: u8, payload: &[u8]) -> Fate {
        match (stream, payload) {
            (STREAM_OSMOCOM, [EXTENSION_GSUP, message @ ..]) => {
                let kind = message.first().copied().map_or(MessageType(u8::MAX), MessageType);
                match from {
                    From::Msc => self.look_at_msc(kind, message),
                    From::Hlr => {
                        self.look_at_hlr(kind, message);
                        Fate::Passes
                    }
                }
            }
            (STREAM_CCM, _) if from == From::Hlr && self.is_asked && Ccm::is_id_get(payload) => {
                self.is_asked = false;
                Fate::Ours
            }
            (STREAM_CCM, _) if from == From::Msc && self.hlr_is_away && Ccm::is_ping(payload) => Fate::Ours,
            (STREAM_CCM, _) if from == From::Msc => self.look_at_identity(payload),
            _ => Fate::Passes,
        }
    }

    fn look_at_msc(&mut self, kind: MessageType, message: &[u8]) -> Fate {
        match kind {
            MessageType::MO_FORWARD_SM_REQUEST
            | MessageType::READY_FOR_SM_REQUEST
            | MessageType::MT_FORWARD_SM_RESULT
            | MessageType::MT_FORWARD_SM_ERROR => return Fate::Ours,
            MessageType::UPDATE_LOCATION_REQUEST => {
                if let Some(view) = View::of(message) {
                    self.packet.take(view.imsi);
                    if view.cn_domain() == Some(CnDomain::PS) {
                        self.packet.put(view.imsi);
                    }
                }
            }
            MessageType::PURGE_MS_REQUEST => self.detached(message),
            _ => {}
        }
        Fate::Passes
    }

    fn look_at_hlr(&mut self, kind: MessageType, message: &[u8]) {
        match kind {
            MessageType::UPDATE_LOCATION_RESULT => {
                if let Some(view) = View::of(message)
                    && !self.packet.take(view.imsi)
                {
                    self.events.push_back(Event::Attached(view.imsi));
                }
            }
            MessageType::UPDATE_LOCATION_ERROR => {
                if let Some(view) = View::of(message) {
                    self.packet.take(view.imsi);
                }
            }
            MessageType::INSERT_DATA_REQUEST => {
                if let Some(view) = View::of(message)
                    && let Some(msisdn) = view.msisdn()
                {
                    self.events.push_back(Event::Number { imsi: view.imsi, msisdn });
                }
            }
            MessageType::LOCATION_CANCEL_REQUEST => self.detached(message),
            MessageType::MT_FORWARD_SM_REQUEST => {
                if let Some(view) = View::of(message) {
                    self.theirs.put(view.imsi);
                }
            }
            _ => {}
        }
    }

    fn detached(&mut self, message: &[u8]) {
        if let Some(view) = View::of(message)
            && view.cn_domain() != Some(CnDomain::PS)
        {
            self.events.push_back(Event::Detached(view.imsi));
        }
    }

    /// Learns the MSC's name. An identity without unit id is looked at by itself, since an HLR would close the connection.
    fn look_at_identity(&mut self, payload: &[u8]) -> Fate {
        if !Ccm::is_id_response(payload) {
            return Fate::Passes;
        }
        let Ccm::IdResponse(mut response) = Ccm::decode(&Bytes::copy_from_slice(payload)) else {
            return Fate::Passes;
        };
        if let Some(name) = response.serial() {
            self.events.push_back(Event::Named(name.to_owned()));
        }
        let has_unit_id = response.items.iter().any(|(tag, value)| *tag == tag::UNIT_ID && !value.is_empty());
        if !has_unit_id {
            response.items.retain(|(tag, _)| *tag != tag::UNIT_ID);
            response.items.push((tag::UNIT_ID, terminated(UNIT_ID)));
        }
        let mut frame = BytesMut::new();
        Ccm::IdResponse(response).put(&mut frame);
        self.identity = Some(frame.freeze());
        if has_unit_id && !self.hlr_is_away { Fate::Passes } else { Fate::Ours }
    }

    /// Takes a frame of the MSC's out of the stream; false where it is to be passed on after all.
    fn take(&mut self, frame: &Bytes) -> bool {
        let payload = frame.slice(HEADER.min(frame.len())..);
        match Frame::of(frame.get(2).copied().unwrap_or_default(), payload) {
            Frame::Ccm(payload) => self.take_ccm(&payload),
            Frame::Gsup(payload) => Message::decode(&payload).is_ok_and(|message| self.take_message(message)),
            Frame::Ctrl(_) | Frame::Other { .. } => false,
        }
    }

    fn take_ccm(&mut self, payload: &Bytes) -> bool {
        if Ccm::is_ping(payload) {
            self.to_msc.write(|output| Ccm::Pong.put(output));
        } else if !self.hlr_is_away
            && let Some(identity) = self.identity.clone()
        {
            self.to_hlr.pass(identity);
        }
        true
    }

    fn take_message(&mut self, message: Message) -> bool {
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
        self.events.push_back(Event::Sms(message));
        true
    }

    /// Our name, or one that begins with it and a number sign: an owner may mark each request with one.
    fn is_our_name(&self, name: &str) -> bool {
        let Some(rest) = self.own_name.as_ref().and_then(|own| name.strip_prefix(own.as_str())) else {
            return false;
        };
        rest.is_empty() || rest.starts_with('#')
    }

    /// Whether the answer to a `MT_FORWARD_SM` is for us, and not for a service centre behind the HLR.
    fn is_answer_to_us(&mut self, answer: &Message) -> bool {
        let imsi = answer.imsi;
        let ours = match answer.destination_name() {
            Some(name) => self.is_our_name(name),
            None => self.ours.has(imsi) || !self.theirs.has(imsi),
        };
        if ours {
            self.ours.take(imsi)
        } else {
            self.theirs.take(imsi)
        };
        ours
    }
}

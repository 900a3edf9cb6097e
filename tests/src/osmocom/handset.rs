//! The short message layers of a handset: GSM 04.11 (3GPP TS 24.011), between SGsAP and TPDUs.

use super::radio::{Link, detach, location_update};
use super::sgsap::{Packet, element, kind};
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Protocol discriminator of short messages.
const SMS: u8 = 9;
/// Set in the transaction identifier of messages from the other side of the transaction.
const TI_FLAG: u8 = 0x80;
const CP_DATA: u8 = 1;
const CP_ACK: u8 = 4;
const CP_ERROR: u8 = 16;

/// How a handset answers a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandsetAnswer {
    /// RP-ACK.
    Accepted,
    /// RP-ERROR with this cause; 22 is "memory capacity exceeded".
    Refused(u8),
    /// CP-ACK only, until [`Handset::finish`].
    Nothing,
}

impl HandsetAnswer {
    fn rpdu(self, reference: u8) -> Option<Vec<u8>> {
        match self {
            Self::Accepted => Some(vec![2, reference]),
            Self::Refused(cause) => Some(vec![4, reference, 1, cause]),
            Self::Nothing => None,
        }
    }
}

/// How a handset reacts to paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// The handset answers.
    Answered,
    /// The handset is out of coverage; the network does not know yet.
    OutOfCoverage,
    /// The MME knows that it is unreachable (SGsAP-PAGING-REJECT with this SGs cause).
    Rejected(u8),
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMt {
    /// RP-Message-Reference, chosen by the MSC.
    pub reference: u8,
    /// RP-Originator-Address: digits of the service centre's number.
    pub centre: String,
    /// SMS-DELIVER or SMS-STATUS-REPORT.
    pub tpdu: Vec<u8>,
    /// The handset's answer.
    pub answer: HandsetAnswer,
}

/// The network's answer to a handset's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpAnswer {
    /// RP-ACK.
    Ok,
    /// RP-ERROR with this cause.
    Refused(u8),
    /// CP-ERROR: the transaction was aborted.
    Broken,
}

/// An event of a handset.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HandsetEvent {
    Attached,
    NotAttached(u8),
    Detached,
    Paged,
    ReceivedMt(ReceivedMt),
    /// Answer to the request with this RP-Message-Reference.
    Answered(u8, RpAnswer),
    Released,
}

#[derive(Debug)]
pub(crate) struct State {
    paging: Paging,
    answer: HandsetAnswer,
    events: VecDeque<HandsetEvent>,
    /// Our next RP-Message-Reference; its low bits are the transaction identifier.
    reference: u8,
    paged: usize,
    /// The received but unanswered message: its transaction and its RP-Message-Reference.
    unanswered: Option<(u8, u8)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            paging: Paging::Answered,
            answer: HandsetAnswer::Accepted,
            events: VecDeque::new(),
            reference: 0x21,
            paged: 0,
            unanswered: None,
        }
    }
}

impl State {
    /// Handles a message of the MSC; returns the replies.
    pub(crate) fn take(&mut self, imsi: &str, packet: &Packet) -> Vec<Packet> {
        match packet.kind {
            kind::LOCATION_UPDATE_ACCEPT => {
                self.events.push_back(HandsetEvent::Attached);
                match packet.get(element::MOBILE_IDENTITY) {
                    Some(_) => vec![Packet::about(kind::TMSI_REALLOCATION_COMPLETE, imsi)],
                    None => Vec::new(),
                }
            }
            kind::LOCATION_UPDATE_REJECT => {
                let cause = packet.get(element::REJECT_CAUSE).and_then(|value| value.first());
                self.events.push_back(HandsetEvent::NotAttached(cause.copied().unwrap_or_default()));
                Vec::new()
            }
            kind::IMSI_DETACH_ACK => {
                self.events.push_back(HandsetEvent::Detached);
                Vec::new()
            }
            kind::PAGING_REQUEST => {
                self.paged += 1;
                self.events.push_back(HandsetEvent::Paged);
                let service = packet.get(element::SERVICE_INDICATOR).unwrap_or(&[2]);
                match self.paging {
                    Paging::Answered => {
                        let request = Packet::about(kind::SERVICE_REQUEST, imsi);
                        vec![request.with(element::SERVICE_INDICATOR, service)]
                    }
                    Paging::OutOfCoverage => Vec::new(),
                    Paging::Rejected(cause) => {
                        vec![Packet::about(kind::PAGING_REJECT, imsi).with(element::SGS_CAUSE, &[cause])]
                    }
                }
            }
            kind::DOWNLINK_UNITDATA => {
                let nas = packet.get(element::NAS_CONTAINER).unwrap_or_default();
                let answers = self.below(nas).unwrap_or_default();
                answers.iter().map(|nas| uplink(imsi, nas)).collect()
            }
            kind::RELEASE_REQUEST => {
                self.events.push_back(HandsetEvent::Released);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The connection layer (CP); `None` for other protocols.
    fn below(&mut self, nas: &[u8]) -> Option<Vec<Vec<u8>>> {
        let [head, kind, rest @ ..] = nas else { return None };
        // Our messages carry the flag exactly if theirs do not.
        let back = head ^ TI_FLAG;
        if head & 0xf != SMS {
            return None;
        }
        match *kind {
            CP_DATA => {
                let (length, rpdu) = rest.split_first()?;
                let mut answers = vec![vec![back, CP_ACK]];
                if let Some(answer) = self.above(back, rpdu.get(..usize::from(*length))?) {
                    answers.push(cp_data(back, &answer));
                }
                Some(answers)
            }
            CP_ERROR => {
                self.events.push_back(HandsetEvent::Answered(self.reference, RpAnswer::Broken));
                None
            }
            _ => None,
        }
    }

    /// The relay layer (RP).
    fn above(&mut self, back: u8, rpdu: &[u8]) -> Option<Vec<u8>> {
        let [kind, reference, rest @ ..] = rpdu else { return None };
        match kind {
            // RP-DATA from the network
            1 => {
                let (centre, rest) = lv(rest)?;
                let (_, rest) = lv(rest)?;
                let (tpdu, _) = lv(rest)?;
                let centre = centre.get(1..).unwrap_or_default();
                let digits =
                    centre.iter().flat_map(|octet| [octet & 0xf, octet >> 4]).filter(|half| *half < 10);
                self.events.push_back(HandsetEvent::ReceivedMt(ReceivedMt {
                    reference: *reference,
                    centre: digits.map(|half| char::from(b'0' + half)).collect(),
                    tpdu: tpdu.to_owned(),
                    answer: self.answer,
                }));
                let answer = self.answer.rpdu(*reference);
                self.unanswered = answer.is_none().then_some((back, *reference));
                answer
            }
            3 => {
                self.events.push_back(HandsetEvent::Answered(*reference, RpAnswer::Ok));
                None
            }
            5 => {
                let (cause, _) = lv(rest)?;
                let cause = RpAnswer::Refused(*cause.first()? & 0x7f);
                self.events.push_back(HandsetEvent::Answered(*reference, cause));
                None
            }
            _ => None,
        }
    }
}

fn lv(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

fn cp_data(head: u8, rpdu: &[u8]) -> Vec<u8> {
    let mut nas = vec![head, CP_DATA, rpdu.len() as u8];
    nas.extend_from_slice(rpdu);
    nas
}

fn uplink(imsi: &str, nas: &[u8]) -> Packet {
    Packet::about(kind::UPLINK_UNITDATA, imsi).with(element::NAS_CONTAINER, nas)
}

/// A handset with its SIM.
#[derive(Debug, Clone)]
pub struct Handset {
    link: Arc<Link>,
    imsi: String,
}

impl Handset {
    pub(crate) fn new(link: Arc<Link>, imsi: &str) -> Self {
        Self { link, imsi: imsi.to_owned() }
    }

    /// The IMSI of its SIM.
    pub fn imsi(&self) -> &str {
        &self.imsi
    }

    /// Switches it on: sends a location update, which must be accepted.
    pub fn attach(&self) -> Result<()> {
        self.link.send(&location_update(&self.imsi))?;
        match self.first("a location update's answer", |event| match event {
            HandsetEvent::Attached => Some(None),
            HandsetEvent::NotAttached(cause) => Some(Some(*cause)),
            _ => None,
        })? {
            None => Ok(()),
            Some(cause) => bail!("{} was not let in: cause {cause}", self.imsi),
        }
    }

    /// Switches it off and detaches it.
    pub fn detach(&self) -> Result<()> {
        self.link.send(&detach(&self.imsi))?;
        self.first("a detach's answer", |event| (*event == HandsetEvent::Detached).then_some(()))
    }

    /// Sets its reaction to paging.
    pub fn set_paging(&self, paging: Paging) {
        self.with(|state| state.paging = paging);
    }

    /// Sets its answer to messages.
    pub fn set_answer(&self, answer: HandsetAnswer) {
        self.with(|state| state.answer = answer);
    }

    /// Answers the message that it received with [`HandsetAnswer::Nothing`].
    pub fn finish(&self, answer: HandsetAnswer) -> Result<()> {
        let (head, reference) =
            self.with(|state| state.unanswered.take()).context("no message is unanswered")?;
        let rpdu = answer.rpdu(reference).context("HandsetAnswer::Nothing is not an answer")?;
        self.link.send(&uplink(&self.imsi, &cp_data(head, &rpdu)))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(self.link.handsets.lock().entry(self.imsi.clone()).or_default())
    }

    /// The next received message.
    pub fn next_mt(&self) -> Result<ReceivedMt> {
        self.first("a message", |event| match event {
            HandsetEvent::ReceivedMt(mt) => Some(mt.clone()),
            _ => None,
        })
    }

    /// Number of received messages that were not consumed yet.
    pub fn waiting(&self) -> usize {
        self.with(|state| {
            state.events.iter().filter(|event| matches!(event, HandsetEvent::ReceivedMt(_))).count()
        })
    }

    /// Waits until it is paged.
    pub fn next_paging(&self) -> Result<()> {
        self.first("a paging", |event| (*event == HandsetEvent::Paged).then_some(()))
    }

    /// Number of pagings so far.
    pub fn paged(&self) -> usize {
        self.with(|state| state.paged)
    }

    /// Waits until the MSC releases the connection.
    pub fn next_release(&self) -> Result<()> {
        self.first("the end of the connection", |event| (*event == HandsetEvent::Released).then_some(()))
    }

    /// Sends an SMS-SUBMIT or SMS-COMMAND through this service centre (digits), and waits for the network's answer.
    pub fn submit(&self, centre: &str, tpdu: &[u8]) -> Result<RpAnswer> {
        let reference = self.send(centre, tpdu)?;
        self.answer(reference)
    }

    /// Sends a TPDU; returns its RP-Message-Reference.
    pub fn send(&self, centre: &str, tpdu: &[u8]) -> Result<u8> {
        let digits: Vec<_> = centre.bytes().map(|digit| digit - b'0').collect();
        let mut address = vec![0x91];
        address.extend(digits.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0xf) << 4));
        let mut body = vec![0, address.len() as u8];
        body.extend_from_slice(&address);
        body.push(u8::try_from(tpdu.len()).context("a TPDU that long")?);
        body.extend_from_slice(tpdu);
        self.request(0, &body)
    }

    /// Sends RP-SMMA, "memory available", and waits for the network's answer.
    pub fn memory_available(&self) -> Result<RpAnswer> {
        let reference = self.request_memory_available()?;
        self.answer(reference)
    }

    /// Sends RP-SMMA; returns its RP-Message-Reference.
    pub fn request_memory_available(&self) -> Result<u8> {
        self.request(6, &[])
    }

    /// The network's answer to a request.
    pub fn answer(&self, reference: u8) -> Result<RpAnswer> {
        self.first("the network's answer", |event| match event {
            HandsetEvent::Answered(its, answer) if *its == reference => Some(*answer),
            _ => None,
        })
    }

    fn request(&self, kind: u8, body: &[u8]) -> Result<u8> {
        let reference = self.with(|state| {
            state.reference = state.reference.wrapping_add(1);
            state.reference
        });
        let rpdu = [&[kind, reference], body].concat();
        // TI 7 is reserved.
        let head = (reference % 7) << 4 | SMS;
        self.link.send(&uplink(&self.imsi, &cp_data(head, &rpdu)))?;
        Ok(reference)
    }

    /// Waits for the first matching event and removes it; others are kept.
    fn first<T>(&self, what: &str, fits: impl Fn(&HandsetEvent) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + crate::TIMEOUT;
        let mut handsets = self.link.handsets.lock();
        loop {
            let state = handsets.get_mut(&self.imsi).context("unknown handset")?;
            let found =
                state.events.iter().enumerate().find_map(|(index, event)| Some((index, fits(event)?)));
            if let Some((index, found)) = found {
                state.events.remove(index);
                return Ok(found);
            }
            let state = format!("{:?}", state.events);
            ensure!(
                !self.link.changed.wait_until(&mut handsets, deadline).timed_out(),
                "{}: {what} did not occur; received: {state}",
                self.imsi
            );
        }
    }
}

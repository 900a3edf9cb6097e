//! A phone's short message side: GSM 04.11 (3GPP TS 24.011) between SGsAP below and TPDUs above.

use super::radio::{Link, detach, location_update};
use super::sgsap::{Packet, element, kind};
use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Protocol discriminator of short messages.
const SMS: u8 = 9;
/// Set in the transaction identifier of what the other side of a transaction sends.
const FROM_OTHER_SIDE: u8 = 0x80;
const CP_DATA: u8 = 1;
const CP_ACK: u8 = 4;
const CP_ERROR: u8 = 16;

/// What a phone says to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// RP-ACK.
    Taken,
    /// RP-ERROR with this cause; 22 is "memory capacity exceeded".
    Refused(u8),
    /// CP-ACK, and nothing more until [`Phone::finish`].
    Nothing,
}

impl Answer {
    fn rpdu(self, reference: u8) -> Option<Vec<u8>> {
        match self {
            Self::Taken => Some(vec![2, reference]),
            Self::Refused(cause) => Some(vec![4, reference, 1, cause]),
            Self::Nothing => None,
        }
    }
}

/// What a phone does when it is paged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// It answers.
    Heard,
    /// It is out of coverage, and the network does not know yet.
    NotHeard,
    /// The MME knows that it cannot be reached (SGsAP-PAGING-REJECT with this SGs cause).
    Rejected(u8),
}

/// A message that the network brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mt {
    /// RP-Message-Reference, as the MSC chose it.
    pub reference: u8,
    /// RP-Originator-Address: the service centre's number, digits only.
    pub centre: String,
    /// SMS-DELIVER or SMS-STATUS-REPORT.
    pub tpdu: Vec<u8>,
    /// What the phone said to it.
    pub answer: Answer,
}

/// What the network says to a phone's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpAnswer {
    /// RP-ACK.
    Ok,
    /// RP-ERROR with this cause.
    Refused(u8),
    /// CP-ERROR: the exchange gave up.
    Broken,
}

/// What happened to a phone, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum News {
    Attached,
    NotAttached(u8),
    Detached,
    Paged,
    Mt(Mt),
    /// To the request of this RP-Message-Reference.
    Answered(u8, RpAnswer),
    Released,
}

#[derive(Debug)]
pub(crate) struct State {
    paging: Paging,
    answer: Answer,
    news: VecDeque<News>,
    /// Next RP-Message-Reference of ours; its low bits are the transaction identifier.
    reference: u8,
    paged: usize,
    /// The message that it took and has not answered: its transaction and its RP-Message-Reference.
    unanswered: Option<(u8, u8)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            paging: Paging::Heard,
            answer: Answer::Taken,
            news: VecDeque::new(),
            reference: 0x21,
            paged: 0,
            unanswered: None,
        }
    }
}

impl State {
    /// Takes a message of the MSC; gives what is said to it.
    pub(crate) fn take(&mut self, imsi: &str, packet: &Packet) -> Vec<Packet> {
        match packet.kind {
            kind::LOCATION_UPDATE_ACCEPT => {
                self.news.push_back(News::Attached);
                match packet.get(element::MOBILE_IDENTITY) {
                    Some(_) => vec![Packet::about(kind::TMSI_REALLOCATION_COMPLETE, imsi)],
                    None => Vec::new(),
                }
            }
            kind::LOCATION_UPDATE_REJECT => {
                let cause = packet.get(element::REJECT_CAUSE).and_then(|value| value.first());
                self.news.push_back(News::NotAttached(cause.copied().unwrap_or_default()));
                Vec::new()
            }
            kind::IMSI_DETACH_ACK => {
                self.news.push_back(News::Detached);
                Vec::new()
            }
            kind::PAGING_REQUEST => {
                self.paged += 1;
                self.news.push_back(News::Paged);
                let service = packet.get(element::SERVICE_INDICATOR).unwrap_or(&[2]);
                match self.paging {
                    Paging::Heard => {
                        let request = Packet::about(kind::SERVICE_REQUEST, imsi);
                        vec![request.with(element::SERVICE_INDICATOR, service)]
                    }
                    Paging::NotHeard => Vec::new(),
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
                self.news.push_back(News::Released);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The connection layer (CP); nothing for what is none of ours.
    fn below(&mut self, nas: &[u8]) -> Option<Vec<Vec<u8>>> {
        let [head, kind, rest @ ..] = nas else { return None };
        // Our share of the transaction carries the flag exactly when theirs does not.
        let back = head ^ FROM_OTHER_SIDE;
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
                self.news.push_back(News::Answered(self.reference, RpAnswer::Broken));
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
                self.news.push_back(News::Mt(Mt {
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
                self.news.push_back(News::Answered(*reference, RpAnswer::Ok));
                None
            }
            5 => {
                let (cause, _) = lv(rest)?;
                let cause = RpAnswer::Refused(*cause.first()? & 0x7f);
                self.news.push_back(News::Answered(*reference, cause));
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

/// A phone with its SIM.
#[derive(Debug, Clone)]
pub struct Phone {
    link: Arc<Link>,
    imsi: String,
}

impl Phone {
    pub(crate) fn new(link: Arc<Link>, imsi: &str) -> Self {
        Self { link, imsi: imsi.to_owned() }
    }

    /// Its SIM's IMSI.
    pub fn imsi(&self) -> &str {
        &self.imsi
    }

    /// Switches it on: a location update, which must be accepted.
    pub fn attach(&self) -> Result<()> {
        self.link.send(&location_update(&self.imsi))?;
        match self.first("a location update's answer", |news| match news {
            News::Attached => Some(None),
            News::NotAttached(cause) => Some(Some(*cause)),
            _ => None,
        })? {
            None => Ok(()),
            Some(cause) => bail!("{} was not let in: cause {cause}", self.imsi),
        }
    }

    /// Switches it off, and the network knows it.
    pub fn detach(&self) -> Result<()> {
        self.link.send(&detach(&self.imsi))?;
        self.first("a detach's answer", |news| (*news == News::Detached).then_some(()))
    }

    /// What it does from now on when it is paged.
    pub fn when_paged(&self, paging: Paging) {
        self.with(|state| state.paging = paging);
    }

    /// What it says from now on to messages.
    pub fn when_it_rings(&self, answer: Answer) {
        self.with(|state| state.answer = answer);
    }

    /// Answers at last the message that it took with [`Answer::Nothing`].
    pub fn finish(&self, answer: Answer) -> Result<()> {
        let (head, reference) =
            self.with(|state| state.unanswered.take()).context("no message is unanswered")?;
        let rpdu = answer.rpdu(reference).context("nothing is no answer")?;
        self.link.send(&uplink(&self.imsi, &cp_data(head, &rpdu)))
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(self.link.phones.lock().entry(self.imsi.clone()).or_default())
    }

    /// The next message that came.
    pub fn next_mt(&self) -> Result<Mt> {
        self.first("a message", |news| match news {
            News::Mt(mt) => Some(mt.clone()),
            _ => None,
        })
    }

    /// The messages that have come and that nobody asked for yet.
    pub fn waiting(&self) -> usize {
        self.with(|state| state.news.iter().filter(|news| matches!(news, News::Mt(_))).count())
    }

    /// Waits until it is paged.
    pub fn next_paging(&self) -> Result<()> {
        self.first("a paging", |news| (*news == News::Paged).then_some(()))
    }

    /// How often it was paged since it exists.
    pub fn paged(&self) -> usize {
        self.with(|state| state.paged)
    }

    /// Waits until the MSC gives up the connection.
    pub fn next_release(&self) -> Result<()> {
        self.first("the end of the connection", |news| (*news == News::Released).then_some(()))
    }

    /// Sends an SMS-SUBMIT or SMS-COMMAND by this service centre (digits), and waits for the network's answer.
    pub fn submit(&self, centre: &str, tpdu: &[u8]) -> Result<RpAnswer> {
        let reference = self.send(centre, tpdu)?;
        self.answer(reference)
    }

    /// Sends it; gives its RP-Message-Reference.
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

    /// Sends it; gives its RP-Message-Reference.
    pub fn request_memory_available(&self) -> Result<u8> {
        self.request(6, &[])
    }

    /// The network's answer to a request.
    pub fn answer(&self, reference: u8) -> Result<RpAnswer> {
        self.first("the network's answer", |news| match news {
            News::Answered(its, answer) if *its == reference => Some(*answer),
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

    /// Waits for the first piece of news that fits, and takes it out; others stay.
    fn first<T>(&self, what: &str, fits: impl Fn(&News) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + crate::PATIENCE;
        let mut phones = self.link.phones.lock();
        loop {
            let state = phones.get_mut(&self.imsi).context("no such phone")?;
            let found = state.news.iter().enumerate().find_map(|(place, news)| Some((place, fits(news)?)));
            if let Some((place, found)) = found {
                state.news.remove(place);
                return Ok(found);
            }
            let state = format!("{:?}", state.news);
            ensure!(
                !self.link.news.wait_until(&mut phones, deadline).timed_out(),
                "{}: in vain: {what}; there was: {state}",
                self.imsi
            );
        }
    }
}

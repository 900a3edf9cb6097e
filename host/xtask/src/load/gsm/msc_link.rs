//! An MSC's connection, and what its phones do.

use super::msc::{Answers, Cause, MoAnswer, MscOptions, Phone};
use super::record::{Arrival, MscReport};
use super::subscribers::Subscribers;
use super::text;
use super::wire::{self, Message};
use crate::load::wire::numbered;
use anyhow::{Result, bail};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

/// What the owner wants done on the connection.
#[derive(Debug)]
pub(super) enum Order {
    Write(Vec<u8>),
    Locate(Range<u64>),
    Ready(u64),
    Drop,
}

/// Who waits for the answers to phones' short messages: by subscriber and reference.
type Expected = HashMap<(u64, u8), oneshot::Sender<MoAnswer>>;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: MscOptions,
    orders: mpsc::UnboundedSender<Order>,
    answers: Mutex<(Answers, Duration)>,
    expected: Mutex<Expected>,
    report: Mutex<MscReport>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(options: MscOptions) -> (Arc<Self>, mpsc::UnboundedReceiver<Order>) {
        let (orders, receiver) = mpsc::unbounded_channel();
        let shared = Self {
            answers: Mutex::new((options.answers.clone(), options.delay)),
            options,
            orders,
            expected: Mutex::default(),
            report: Mutex::default(),
            changed: Condvar::new(),
        };
        (Arc::new(shared), receiver)
    }

    pub(super) fn order(&self, order: Order) {
        // Without a receiver it is shutting down.
        let _ = self.orders.send(order);
    }

    pub(super) fn behave(&self, answers: Answers, delay: Duration) {
        *self.answers.lock() = (answers, delay);
    }

    pub(super) fn expect(&self, from: &Phone<'_>) -> oneshot::Receiver<MoAnswer> {
        let (sender, receiver) = oneshot::channel();
        self.expected.lock().insert((Subscribers::imsi(from.subscriber), from.reference), sender);
        receiver
    }

    pub(super) fn report(&self) -> MscReport {
        self.report.lock().clone()
    }

    pub(super) fn wait(&self, until: Instant, is_it: impl Fn(&MscReport) -> bool) -> Result<()> {
        let mut report = self.report.lock();
        while !is_it(&report) {
            if self.changed.wait_until(&mut report, until).timed_out() && !is_it(&report) {
                bail!(
                    "the MSC has {} messages, {} of them taken, and {} located subscribers, and no more come",
                    report.arrivals.len(),
                    report.taken(),
                    report.located
                );
            }
        }
        Ok(())
    }

    fn note(&self, note: impl FnOnce(&mut MscReport)) {
        note(&mut self.report.lock());
        self.changed.notify_all();
    }
}

/// Connects, again and again, and works.
pub(super) async fn run(shared: Arc<Shared>, mut orders: mpsc::UnboundedReceiver<Order>) {
    loop {
        if let Ok(stream) = TcpStream::connect(shared.options.hlr).await {
            shared.note(|report| report.connections += 1);
            // What ends a connection shows in what does not arrive.
            let _ = Link::new(&shared).drive(stream, &mut orders).await;
            shared.expected.lock().clear();
        }
        let Some(pause) = shared.options.reconnect else { return };
        tokio::time::sleep(pause).await;
    }
}

/// Something that is to be written later.
struct Due {
    imsi: u64,
    frame: Vec<u8>,
    /// Whether the subscriber's message is answered with it.
    answers: bool,
}

struct Link<'a> {
    shared: &'a Shared,
    output: Vec<u8>,
    written: usize,
    due: BTreeMap<(Instant, u64), Due>,
    serial: u64,
    /// Subscribers with an unanswered message.
    in_flight: HashSet<u64>,
    /// Those of them whose answers are in the output.
    answered: Vec<u64>,
    /// How often each subscriber has refused, and whether it has room again.
    refusals: HashMap<u64, usize>,
    roomy: HashSet<u64>,
    reference: u8,
    /// Subscribers that are not located yet: not all at once, as phones do not come all at once.
    unlocated: Range<u64>,
    locating: usize,
    arrivals: Vec<Arrival>,
    overlaps: u64,
    located: u64,
    broken: u64,
}

/// How many location updates are under way at a time.
const LOCATING: usize = 500;

impl<'a> Link<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            output: Vec::with_capacity(1 << 17),
            written: 0,
            due: BTreeMap::new(),
            serial: 0,
            in_flight: HashSet::new(),
            answered: Vec::new(),
            refusals: HashMap::new(),
            roomy: HashSet::new(),
            reference: 0,
            unlocated: 0..0,
            locating: 0,
            arrivals: Vec::new(),
            overlaps: 0,
            located: 0,
            broken: 0,
        }
    }

    async fn drive(
        mut self,
        mut stream: TcpStream,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> Result<()> {
        stream.set_nodelay(true)?;
        let (mut reader, mut writer) = stream.split();
        let mut input = Vec::with_capacity(1 << 18);
        loop {
            let next = self.due.first_key_value().map(|((at, _), _)| *at);
            tokio::select! {
                count = reader.read_buf(&mut input), if self.output.len() - self.written < 1 << 20 => {
                    if count? == 0 {
                        return Ok(());
                    }
                    let mut rest = &input[..];
                    let now = Instant::now();
                    while let Some((stream, payload)) = wire::next(&mut rest) {
                        self.handle(stream, payload, now);
                    }
                    let left = rest.len();
                    let read = input.len() - left;
                    input.drain(..read);
                    self.tell();
                }
                count = writer.write(&self.output[self.written..]), if self.written < self.output.len() => {
                    self.written += count?;
                    if self.written == self.output.len() {
                        self.output.clear();
                        self.written = 0;
                    }
                }
                order = orders.recv() => match order {
                    Some(Order::Write(frame)) => self.output.extend_from_slice(&frame),
                    Some(Order::Locate(range)) => {
                        for subscriber in range {
                            self.locate(subscriber);
                        }
                    }
                    Some(Order::Ready(imsi)) => self.ready(imsi),
                    Some(Order::Drop) | None => return Ok(()),
                },
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now).into()), if next.is_some() => {
                    self.do_what_is_due();
                }
            }
            // An answer counts as given when it is to be written: what comes next is read after that.
            for imsi in self.answered.drain(..) {
                self.in_flight.remove(&imsi);
            }
        }
    }

    /// Makes known what was seen.
    fn tell(&mut self) {
        let (arrivals, overlaps) = (std::mem::take(&mut self.arrivals), std::mem::take(&mut self.overlaps));
        let (located, broken) = (std::mem::take(&mut self.located), std::mem::take(&mut self.broken));
        self.shared.note(|report| {
            report.arrivals.extend(arrivals);
            report.overlaps += overlaps;
            report.located += located;
            report.broken += broken;
        });
    }

    fn handle(&mut self, stream: u8, payload: &[u8], now: Instant) {
        match (stream, payload) {
            (wire::CCM, [wire::ID_GET, ..]) => {
                wire::i_am(&mut self.output, &self.shared.options.name);
                wire::word(&mut self.output, wire::ID_ACK);
                self.unlocated = self.shared.options.range.clone();
                self.locate_some();
            }
            (wire::CCM, [wire::PING]) => wire::word(&mut self.output, wire::PONG),
            (wire::OSMOCOM, payload) => match Message::read(payload) {
                Some(message) => self.message(&message, now),
                None => self.broken += 1,
            },
            _ => {}
        }
    }

    fn message(&mut self, message: &Message<'_>, now: Instant) {
        let imsi = message.imsi;
        match message.kind {
            wire::MT_FORWARD => self.short_message(message, now),
            wire::INSERT_DATA => {
                wire::message(
                    &mut self.output,
                    wire::INSERT_DATA + wire::RESULT,
                    imsi,
                    &[(wire::CLASS, &[1])],
                );
            }
            kind if kind & !3 == wire::UPDATE_LOCATION => {
                self.located += u64::from(kind == wire::UPDATE_LOCATION + wire::RESULT);
                self.locating = self.locating.saturating_sub(1);
                self.locate_some();
            }
            kind if kind & !3 == wire::MO_FORWARD || kind == wire::ROUTING_ERROR => {
                let answer = match kind & 3 {
                    wire::RESULT if kind != wire::ROUTING_ERROR => MoAnswer::Taken,
                    wire::ERROR => MoAnswer::Refused(message.octet(wire::RP_CAUSE)),
                    _ => MoAnswer::Nowhere,
                };
                // Without the reference an MSC does not know whose answer it is.
                let Some(reference) = message.octet(wire::RP_MR) else { return };
                if let Some(waiting) = self.shared.expected.lock().remove(&(imsi, reference)) {
                    let _ = waiting.send(answer);
                }
            }
            _ => {}
        }
    }

    fn locate_some(&mut self) {
        while self.locating < LOCATING {
            let Some(subscriber) = self.unlocated.next() else { return };
            self.locate(subscriber);
        }
    }

    fn locate(&mut self, subscriber: u64) {
        self.locating += 1;
        let elements: [(u8, &[u8]); 2] = [(wire::CN_DOMAIN, &[2]), (wire::CLASS, &[1])];
        wire::message(&mut self.output, wire::UPDATE_LOCATION, Subscribers::imsi(subscriber), &elements);
    }

    fn short_message(&mut self, message: &Message<'_>, now: Instant) {
        let imsi = message.imsi;
        // From another than a service centre, or without a text, it is no message.
        let from_centre = message.octet(wire::RP_OA) == Some(3);
        let Some(tpdu) = message.get(wire::RP_UI).filter(|_| from_centre) else {
            self.broken += 1;
            let frame = self.answer(message, Err(Cause::Network(96)));
            return self.output.extend_from_slice(&frame);
        };
        self.overlaps += u64::from(!self.in_flight.insert(imsi));
        let (answers, delay) = self.shared.answers.lock().clone();
        let (outcome, times) = self.decide(imsi, &answers, now);
        let number = text::delivered(tpdu).and_then(|text| numbered(&text));
        let taken = times > 0 && outcome.is_ok();
        if taken && let (Some(tally), Some((number, lane))) = (&self.shared.options.tally, number) {
            tally.arrived(number, lane, tally.micros(now));
        }
        let more = message.octet(wire::RP_MMS).is_some_and(|more| more > 0);
        let tpdu = self.shared.options.keep.then(|| tpdu.into());
        self.arrivals.push(Arrival { imsi, number, more, taken, at: now, tpdu });
        for _ in 0..times {
            let frame = self.answer(message, outcome);
            if delay.is_zero() {
                self.output.extend_from_slice(&frame);
                self.answered.push(imsi);
            } else {
                self.later(now + delay, Due { imsi, frame, answers: true });
            }
        }
    }

    /// What a phone does with its message, and how often it says so.
    fn decide(&mut self, imsi: u64, answers: &Answers, now: Instant) -> (Result<(), Cause>, usize) {
        const FULL: u8 = 22;
        match answers {
            Answers::Take => (Ok(()), 1),
            Answers::Never => (Ok(()), 0),
            Answers::Twice => (Ok(()), 2),
            Answers::Full(_) if self.roomy.contains(&imsi) => (Ok(()), 1),
            Answers::Full(time) => {
                if *self.refusals.entry(imsi).and_modify(|count| *count += 1).or_insert(1) == 1 {
                    self.later(now + *time, Due { imsi, frame: Vec::new(), answers: false });
                }
                (Err(Cause::Phone(FULL)), 1)
            }
            Answers::Refuse(causes) => {
                let before = self.refusals.entry(imsi).or_default();
                let cause = causes.get(*before).copied();
                *before += 1;
                (cause.map_or(Ok(()), Err), 1)
            }
        }
    }

    fn later(&mut self, at: Instant, due: Due) {
        self.serial += 1;
        self.due.insert((at, self.serial), due);
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let due = entry.remove();
            if due.answers {
                self.output.extend_from_slice(&due.frame);
                self.answered.push(due.imsi);
            } else {
                self.ready(due.imsi);
            }
        }
    }

    fn ready(&mut self, imsi: u64) {
        self.roomy.insert(imsi);
        let reference = self.next_reference();
        let name = wire::name(&self.shared.options.name);
        let mut elements: Vec<(u8, &[u8])> = vec![
            (wire::RP_MR, std::slice::from_ref(&reference)),
            (wire::ALERT_REASON, &[2]),
            (wire::CLASS, &[2]),
        ];
        if self.shared.options.names {
            elements.push((wire::SOURCE, &name));
        }
        wire::message(&mut self.output, wire::READY, imsi, &elements);
    }

    /// An MSC answers with a reference of its own, 0 to 254.
    fn next_reference(&mut self) -> u8 {
        self.reference = (self.reference + 1) % 255;
        self.reference
    }

    fn answer(&mut self, request: &Message<'_>, outcome: Result<(), Cause>) -> Vec<u8> {
        let reference = [self.next_reference()];
        let name = wire::name(&self.shared.options.name);
        let mut elements: Vec<(u8, &[u8])> = Vec::with_capacity(6);
        let cause;
        let kind = match outcome {
            Ok(()) => {
                elements.push((wire::RP_MR, &reference));
                wire::MT_FORWARD + wire::RESULT
            }
            Err(Cause::Network(code)) => {
                cause = [code];
                elements.extend([(wire::CAUSE, &cause[..]), (wire::RP_MR, &reference)]);
                wire::MT_FORWARD + wire::ERROR
            }
            Err(Cause::Phone(code)) => {
                cause = [code];
                elements.extend([(wire::RP_MR, &reference[..]), (wire::RP_CAUSE, &cause)]);
                wire::MT_FORWARD + wire::ERROR
            }
        };
        elements.push((wire::CLASS, &[2]));
        if let Some(source) = request.get(wire::SOURCE).filter(|_| self.shared.options.names) {
            elements.extend([(wire::SOURCE, &name[..]), (wire::DESTINATION, source)]);
        }
        let mut frame = Vec::with_capacity(64);
        wire::message(&mut frame, kind, request.imsi, &elements);
        frame
    }
}

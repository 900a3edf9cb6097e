//! The connection of a simulated MSC, and the behaviour of its phones.

use super::msc::{MoAnswer, MoSender, MscOptions, MtBehaviour, RefusalCause};
use super::msc_report::{Arrival, MscReport};
use super::subscribers::Subscribers;
use super::text;
use super::wire::{self, Message};
use crate::load::wire::parse_number;
use anyhow::{Result, bail};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

/// Commands from the owner to the connection.
#[derive(Debug)]
pub(super) enum MscCommand {
    Write(Vec<u8>),
    Locate(Range<u64>),
    Ready(u64),
    Drop,
}

/// Pending mobile-originated messages, by subscriber and reference.
type Expected = HashMap<(u64, u8), oneshot::Sender<MoAnswer>>;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: MscOptions,
    commands: mpsc::UnboundedSender<MscCommand>,
    answers: Mutex<(MtBehaviour, Duration)>,
    expected: Mutex<Expected>,
    report: Mutex<MscReport>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(options: MscOptions) -> (Arc<Self>, mpsc::UnboundedReceiver<MscCommand>) {
        let (commands, receiver) = mpsc::unbounded_channel();
        let shared = Self {
            answers: Mutex::new((options.answers.clone(), options.delay)),
            options,
            commands,
            expected: Mutex::default(),
            report: Mutex::default(),
            changed: Condvar::new(),
        };
        (Arc::new(shared), receiver)
    }

    pub(super) fn send_command(&self, command: MscCommand) {
        // Without a receiver the MSC is shutting down.
        let _ = self.commands.send(command);
    }

    pub(super) fn behave(&self, answers: MtBehaviour, delay: Duration) {
        *self.answers.lock() = (answers, delay);
    }

    pub(super) fn expect(&self, from: &MoSender<'_>) -> oneshot::Receiver<MoAnswer> {
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
                    "the MSC has {} messages ({} accepted) and {} located subscribers; the expected state was not reached in time",
                    report.arrivals.len(),
                    report.accepted_count(),
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

/// Connects and serves the connection, again and again.
pub(super) async fn run(shared: Arc<Shared>, mut commands: mpsc::UnboundedReceiver<MscCommand>) {
    loop {
        if let Ok(stream) = TcpStream::connect(shared.options.hlr).await {
            shared.note(|report| report.connections += 1);
            // A lost connection shows in the missing messages.
            let _ = Link::new(&shared).drive(stream, &mut commands).await;
            shared.expected.lock().clear();
        }
        let Some(pause) = shared.options.reconnect else { return };
        tokio::time::sleep(pause).await;
    }
}

/// A frame to be sent later.
struct ScheduledSend {
    imsi: u64,
    frame: Vec<u8>,
    /// Whether this frame answers the subscriber's message.
    answers: bool,
}

struct Link<'a> {
    shared: &'a Shared,
    output: Vec<u8>,
    written: usize,
    due: BTreeMap<(Instant, u64), ScheduledSend>,
    serial: u64,
    /// Subscribers with an unanswered message.
    in_flight: HashSet<u64>,
    /// Subscribers among them whose answer is in the output buffer.
    answered: Vec<u64>,
    /// Refusals per subscriber.
    refusals: HashMap<u64, usize>,
    /// Subscribers whose memory is available again.
    memory_available: HashSet<u64>,
    reference: u8,
    /// Subscribers that are not located yet: they are located gradually, like real phones.
    unlocated: Range<u64>,
    locating: usize,
    arrivals: Vec<Arrival>,
    overlaps: u64,
    located: u64,
    broken: u64,
}

/// Maximum number of location updates in progress.
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
            memory_available: HashSet::new(),
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
        commands: &mut mpsc::UnboundedReceiver<MscCommand>,
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
                    self.publish_report();
                }
                count = writer.write(&self.output[self.written..]), if self.written < self.output.len() => {
                    self.written += count?;
                    if self.written == self.output.len() {
                        self.output.clear();
                        self.written = 0;
                    }
                }
                command = commands.recv() => match command {
                    Some(MscCommand::Write(frame)) => self.output.extend_from_slice(&frame),
                    Some(MscCommand::Locate(range)) => {
                        for subscriber in range {
                            self.locate(subscriber);
                        }
                    }
                    Some(MscCommand::Ready(imsi)) => self.ready(imsi),
                    Some(MscCommand::Drop) | None => return Ok(()),
                },
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now).into()), if next.is_some() => {
                    self.send_due();
                }
            }
            // A message counts as answered once its answer is in the output buffer: later input is read after that.
            for imsi in self.answered.drain(..) {
                self.in_flight.remove(&imsi);
            }
        }
    }

    /// Publishes the results.
    fn publish_report(&mut self) {
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
                wire::id_response(&mut self.output, &self.shared.options.name);
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
                    wire::RESULT if kind != wire::ROUTING_ERROR => MoAnswer::Accepted,
                    wire::ERROR => MoAnswer::Refused(message.octet(wire::RP_CAUSE)),
                    _ => MoAnswer::NoRoute,
                };
                // Without the reference an MSC does not know which phone the answer is for.
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
        // A forward without a service centre address or a text is not a short message.
        let from_centre = message.octet(wire::RP_OA) == Some(3);
        let Some(tpdu) = message.get(wire::RP_UI).filter(|_| from_centre) else {
            self.broken += 1;
            let frame = self.answer(message, Err(RefusalCause::Network(96)));
            return self.output.extend_from_slice(&frame);
        };
        self.overlaps += u64::from(!self.in_flight.insert(imsi));
        let (answers, delay) = self.shared.answers.lock().clone();
        let (outcome, times) = self.decide(imsi, &answers, now);
        let number = text::delivered(tpdu).and_then(|text| parse_number(&text));
        let accepted = times > 0 && outcome.is_ok();
        if accepted && let (Some(tally), Some((number, lane))) = (&self.shared.options.tally, number) {
            tally.arrived(number, lane, tally.micros(now));
        }
        let more = message.octet(wire::RP_MMS).is_some_and(|more| more > 0);
        let tpdu = self.shared.options.keep.then(|| tpdu.into());
        self.arrivals.push(Arrival { imsi, number, more, accepted, at: now, tpdu });
        for _ in 0..times {
            let frame = self.answer(message, outcome);
            if delay.is_zero() {
                self.output.extend_from_slice(&frame);
                self.answered.push(imsi);
            } else {
                self.schedule(now + delay, ScheduledSend { imsi, frame, answers: true });
            }
        }
    }

    /// Decides about a phone's reaction to its message, and the number of answers.
    fn decide(
        &mut self,
        imsi: u64,
        answers: &MtBehaviour,
        now: Instant,
    ) -> (Result<(), RefusalCause>, usize) {
        const FULL: u8 = 22;
        match answers {
            MtBehaviour::Accept => (Ok(()), 1),
            MtBehaviour::Never => (Ok(()), 0),
            MtBehaviour::Twice => (Ok(()), 2),
            MtBehaviour::Full(_) if self.memory_available.contains(&imsi) => (Ok(()), 1),
            MtBehaviour::Full(time) => {
                if *self.refusals.entry(imsi).and_modify(|count| *count += 1).or_insert(1) == 1 {
                    self.schedule(now + *time, ScheduledSend { imsi, frame: Vec::new(), answers: false });
                }
                (Err(RefusalCause::Handset(FULL)), 1)
            }
            MtBehaviour::Refuse(causes) => {
                let before = self.refusals.entry(imsi).or_default();
                let cause = causes.get(*before).copied();
                *before += 1;
                (cause.map_or(Ok(()), Err), 1)
            }
        }
    }

    fn schedule(&mut self, at: Instant, due: ScheduledSend) {
        self.serial += 1;
        self.due.insert((at, self.serial), due);
    }

    fn send_due(&mut self) {
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
        self.memory_available.insert(imsi);
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

    /// An MSC answers with its own reference, 0 to 254.
    fn next_reference(&mut self) -> u8 {
        self.reference = (self.reference + 1) % 255;
        self.reference
    }

    fn answer(&mut self, request: &Message<'_>, outcome: Result<(), RefusalCause>) -> Vec<u8> {
        let reference = [self.next_reference()];
        let name = wire::name(&self.shared.options.name);
        let mut elements: Vec<(u8, &[u8])> = Vec::with_capacity(6);
        let cause;
        let kind = match outcome {
            Ok(()) => {
                elements.push((wire::RP_MR, &reference));
                wire::MT_FORWARD + wire::RESULT
            }
            Err(RefusalCause::Network(code)) => {
                cause = [code];
                elements.extend([(wire::CAUSE, &cause[..]), (wire::RP_MR, &reference)]);
                wire::MT_FORWARD + wire::ERROR
            }
            Err(RefusalCause::Handset(code)) => {
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

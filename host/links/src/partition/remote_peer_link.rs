//! The link to the home of a peer.

use super::RemotePeerOptions;
use super::frame::{Frame, VERSION};
use bytes::{Bytes, BytesMut};
use codec::RecordDecoder;
use engine::{EngineAnswer, Event};
use model::{
    DlrRequest, Leg, Message, MessageChanges, MessageId, MessageKind, Outcome, PeerId, PluginVersion,
    RemoteAttempt, RoutingDecision, SubmitTicket, Timestamp, Verdict,
};
use ports::link::{
    BoundLink, DialTarget, DialedPeer, Link, LinkBlocker, LinkDeps, LinkProtocol, LinkStep, LoginRefusal,
    PeerError, dial,
};
use ports::{LinkCommand, Protocol};
use rustc_hash::FxHashMap;
use smpp::BindMode;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The time for the connection, and for the home's answer to the first frame: it may have to close an older connection first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest wait between attempts to reach the home. A take-over needs some seconds.
const REDIAL_INTERVAL: Duration = Duration::from_secs(2);
/// Silence after which a ping is sent, and after which the connection is closed.
const PING_AFTER: Duration = Duration::from_secs(10);
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// The decision of a message at the home: the peer is fixed, and no router is called.
static ROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: "partition".to_owned(), version: String::new() }));

/// A message from the engine that is not on the connection yet.
struct Unsent {
    message: Arc<Message>,
    leg: u8,
    taken: u16,
    want_dlr: bool,
    ticket: SubmitTicket,
}

/// A message at the home, without an outcome.
struct InFlight {
    attempt: u16,
    /// The offset of its frame in the stream.
    offset: u64,
}

/// An outcome that is not confirmed to the home yet.
struct ReportedOutcome {
    number: MessageId,
    id: MessageId,
    attempt: u16,
}

/// One connection to the leader of the home.
pub(crate) struct RemotePeerLink {
    options: Arc<RemotePeerOptions>,
    input: BytesMut,
    output: BytesMut,
    decoder: RecordDecoder,
    is_bound: bool,
    /// Why the connection has ended.
    failed: Option<String>,
    unsent: VecDeque<Unsent>,
    in_flight: FxHashMap<MessageId, InFlight>,
    /// Outcomes of this turn.
    outcomes: Vec<ReportedOutcome>,
    /// Outcomes passed to the engine, by turn. The answer to a turn's flush confirms that they are stored.
    flushing: VecDeque<Vec<ReportedOutcome>>,
    heard: Instant,
    ping_at: Instant,
}

/// Starts to dial the home of a peer.
pub(crate) fn dial_home(deps: &Arc<LinkDeps>, options: RemotePeerOptions) -> Result<DialedPeer, PeerError> {
    let target = DialTarget {
        name: options.name.clone(),
        peer: options.peer,
        address: format!("partition {}", options.partition),
        partition: Some(options.partition),
        links: 1,
        connect_timeout: CONNECT_TIMEOUT,
        redial_interval: REDIAL_INTERVAL,
        redial_stable_after: None,
        tls: None,
    };
    let (options, registry) = (Arc::new(options), deps.registry.clone());
    dial(deps, target, move |now| RemotePeerLink::new(now, registry.partition(), options.clone()))
}

impl RemotePeerLink {
    /// A connection of this partition.
    pub(crate) fn new(now: Instant, partition: u8, options: Arc<RemotePeerOptions>) -> Self {
        let mut output = BytesMut::new();
        Frame::Open { version: VERSION, partition, peer: options.name.clone() }.encode(&mut output);
        Self {
            options,
            input: BytesMut::new(),
            output,
            decoder: RecordDecoder::new(),
            is_bound: false,
            failed: None,
            unsent: VecDeque::new(),
            in_flight: FxHashMap::default(),
            outcomes: Vec::new(),
            flushing: VecDeque::new(),
            heard: now,
            ping_at: now + PING_AFTER,
        }
    }

    /// Passes an outcome to the engine, also of an attempt before this connection: the engine knows whether it still waits for it.
    fn outcome(&mut self, link: &mut Link, id: MessageId, attempt: u16, outcome: Outcome) {
        if self.in_flight.get(&id).is_some_and(|in_flight| in_flight.attempt == attempt) {
            self.in_flight.remove(&id);
        }
        link.events.push(Event::AttemptOutcome { id, attempt, outcome });
    }

    /// Confirms a stored outcome. A repetition that crossed it must not follow the confirmation, after which the home no longer
    /// knows the attempt.
    fn confirm(&mut self, reported: &ReportedOutcome) {
        let is_superseded = |id, attempt| id == reported.id && attempt == reported.attempt;
        self.unsent.retain(|unsent| !is_superseded(unsent.message.id, unsent.ticket.attempt));
        if self
            .in_flight
            .get(&reported.id)
            .is_some_and(|in_flight| is_superseded(reported.id, in_flight.attempt))
        {
            self.in_flight.remove(&reported.id);
        }
        Frame::Recorded { number: reported.number }.encode(&mut self.output);
    }

    fn on_frame(&mut self, link: &mut Link, frame: Frame) {
        (self.heard, self.ping_at) = (link.now, link.now + PING_AFTER);
        match frame {
            Frame::Opened if !self.is_bound => {
                self.is_bound = true;
                link.bind(BoundLink {
                    peer: self.options.peer,
                    mode: BindMode::Transceiver,
                    version: VERSION,
                    window: self.options.window,
                    takes_messages: true,
                });
            }
            Frame::Refusal { reason } if !self.is_bound => {
                let (least_wait, check) = (Duration::ZERO, None);
                link.refused(LoginRefusal { reason: reason.clone(), least_wait, check });
                self.failed = Some(reason);
            }
            Frame::NotAccepted { id, attempt, outcome } => {
                self.outcome(link, id, attempt, outcome);
            }
            Frame::Outcome { number, id, attempt, outcome } => {
                self.outcome(link, id, attempt, outcome);
                self.outcomes.push(ReportedOutcome { number, id, attempt });
            }
            Frame::Dlr { number, dlr } => {
                let (peer, reply) = (self.options.peer, link.reply(number.0));
                link.events.push(Event::Dlr { peer, dlr, reply });
            }
            Frame::SubscriberReachable { imsi } => {
                link.events.push(Event::SubscriberReachable { network: self.options.peer, imsi });
            }
            Frame::Pong => {}
            Frame::Open { .. }
            | Frame::Opened
            | Frame::Refusal { .. }
            | Frame::Submit(_)
            | Frame::Recorded { .. }
            | Frame::Ping => self.failed = Some("the home has sent a frame out of order".to_owned()),
        }
    }
}

/// The attributes of a message, for plugins at the home: as a plugin here would read them.
fn attributes_for_home(message: &Message, options: &RemotePeerOptions) -> Option<Box<MessageChanges>> {
    let RoutingDecision { changes, screening, lookup, .. } = &message.routed;
    let screened = screening.as_deref().and_then(|screening| screening.changes.as_deref());
    let by_plugins = [
        screened.map(|changes| &changes.attributes),
        lookup.as_deref().map(|lookup| &lookup.attributes),
        changes.as_deref().map(|changes| &changes.attributes),
    ];
    let account = options.account_attributes.get(&message.origin).into_iter().flatten();
    let account = account.map(|(name, value)| (name.as_str().into(), value.as_str().into()));
    let mut attributes = MessageChanges::default();
    // The last one with a name counts.
    for (name, value) in account.chain(by_plugins.into_iter().flatten().flatten().cloned()) {
        attributes.set_attribute(name, value);
    }
    (!attributes.is_empty()).then(|| Box::new(attributes))
}

/// The message for the home: the message as this leg sends it, with the attempt in its protocol fields.
fn message_for_home(unsent: &Unsent, options: &RemotePeerOptions) -> Message {
    let Unsent { message, leg, taken, want_dlr, ticket } = unsent;
    let (source, destination) = message.addresses_on(*leg);
    let (id, attempt, accepted_at) = (message.id, ticket.attempt, message.accepted_at);
    let attempt = RemoteAttempt { id, attempt, taken: *taken, accepted_at };
    let imsi = message.routed.verdict.leg(*leg).and_then(|leg| leg.imsi.clone());
    let dlr_request = match want_dlr {
        true => DlrRequest { intermediate: message.dlr_request.intermediate, ..DlrRequest::FINAL },
        false => DlrRequest::NONE,
    };
    Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin: PeerId(0),
        source: source.clone(),
        destination: destination.clone(),
        service_type: message.service_type.clone(),
        protocol_id: message.protocol_id,
        esm_class: message.esm_class,
        priority: message.priority,
        dlr_request,
        replace_if_present: false,
        submission: None,
        text: message.text.clone(),
        tlvs: message.outgoing_tlvs(),
        protocol_fields: Bytes::from(attempt.added_to(&message.protocol_fields)),
        sealed: None,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at: message.expires_at,
        routed: RoutingDecision {
            changes: attributes_for_home(message, options),
            ..RoutingDecision::new(Verdict::Forward(vec![Leg { imsi, ..Leg::to(PeerId(0)) }]), ROUTED.clone())
        },
    }
}

impl LinkProtocol for RemotePeerLink {
    const PROTOCOL: Protocol = Protocol::Partition;
    type Login = ();

    fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    fn wants_input(&self) -> bool {
        true
    }

    fn process(&mut self, _: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        let limit = if self.is_bound { DEAD_AFTER } else { CONNECT_TIMEOUT };
        Some(self.ping_at.min(self.heard + limit))
    }

    fn on_timeout(&mut self, now: Instant) {
        let limit = if self.is_bound { DEAD_AFTER } else { CONNECT_TIMEOUT };
        if now >= self.heard + limit {
            self.failed = Some("the home does not answer".to_owned());
        } else if now >= self.ping_at {
            self.ping_at = now + PING_AFTER;
            if self.is_bound {
                Frame::Ping.encode(&mut self.output);
            }
        }
    }

    fn is_bound(&self) -> bool {
        self.is_bound
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn unanswered_in(&self) -> usize {
        0
    }

    fn next_event(&mut self, link: &mut Link) -> LinkStep<()> {
        if self.failed.is_none() {
            match Frame::decode(&mut self.input, &mut self.decoder) {
                Ok(None) => return LinkStep::Idle,
                Ok(Some(frame)) => {
                    self.on_frame(link, frame);
                    return LinkStep::Handled;
                }
                Err(error) => self.failed = Some(format!("the home has sent what cannot be read: {error}")),
            }
        }
        if let Some(reason) = &self.failed {
            link.end(reason.clone(), false);
        }
        LinkStep::Idle
    }

    fn on_login(&mut self, _: &mut Link, (): ()) {}

    fn on_command(&mut self, _: &mut Link, command: LinkCommand) {
        match command {
            LinkCommand::Send { message, leg, taken, want_dlr, ticket, .. } => {
                self.unsent.push_back(Unsent { message, leg, taken, want_dlr, ticket });
            }
            LinkCommand::Answer { token, answer: EngineAnswer::DlrRecorded } => {
                Frame::Recorded { number: MessageId(token) }.encode(&mut self.output);
            }
            LinkCommand::Flushed => {
                for reported in self.flushing.pop_front().unwrap_or_default() {
                    self.confirm(&reported);
                }
            }
            // The home queries the peer.
            LinkCommand::QueryPeer { .. }
            | LinkCommand::SubscriberReachable { .. }
            | LinkCommand::Answer { .. } => {}
        }
    }

    fn fill_window(&mut self, link: &mut Link) -> bool {
        if !self.outcomes.is_empty() {
            link.events.push(Event::Flush { link: link.id() });
            self.flushing.push_back(std::mem::take(&mut self.outcomes));
        }
        let mut sent = false;
        while self.output.len() < link.deps.output_limit()
            && let Some(unsent) = self.unsent.pop_front()
        {
            let offset = link.written + self.output.len() as u64;
            Frame::Submit(Box::new(message_for_home(&unsent, &self.options))).encode(&mut self.output);
            let attempt = unsent.ticket.attempt;
            self.in_flight.insert(unsent.message.id, InFlight { attempt, offset });
            sent = true;
        }
        sent
    }

    fn blocked_by(&self, _: Instant) -> LinkBlocker {
        if self.in_flight.len() >= self.options.window { LinkBlocker::PeerWindow } else { LinkBlocker::None }
    }

    fn is_idle(&self) -> bool {
        self.unsent.is_empty()
    }

    fn unbind(&mut self, _: Instant) -> bool {
        false
    }

    fn close(self, link: &mut Link) {
        // The engine repeats the written messages with their tickets.
        let unwritten = self.in_flight.iter().filter(|(_, in_flight)| in_flight.offset >= link.written);
        let mut ids: Vec<MessageId> = unwritten.map(|(id, _)| *id).collect();
        ids.extend(self.unsent.iter().map(|unsent| unsent.message.id));
        ids.sort_unstable();
        let link_id = link.id();
        let not_sent =
            ids.into_iter().map(|id| Event::Outcome { link: link_id, id, outcome: Outcome::NotSent });
        link.events.extend(not_sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Address, Lookup, LookupResult, ScreenVerdict, Screening, Text, put_tlv};
    use ports::Protocol;
    use std::collections::BTreeMap;

    fn options(account_attributes: &[(&str, &str)]) -> RemotePeerOptions {
        let attributes = account_attributes.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let attributes: BTreeMap<String, String> = attributes.collect();
        RemotePeerOptions {
            name: "api".to_owned(),
            peer: PeerId(4),
            partition: 0,
            window: 1,
            protocol: Some(Protocol::Http),
            account_attributes: [(PeerId(1), attributes)].into(),
        }
    }

    fn changes(attributes: &[(&str, &str)]) -> Option<Box<MessageChanges>> {
        let mut changes = MessageChanges::default();
        attributes.iter().for_each(|(name, value)| changes.set_attribute((*name).into(), (*value).into()));
        Some(Box::new(changes))
    }

    fn message() -> Message {
        let number = Address::new(1, 1, b"861");
        let text = Text { octets: Bytes::from_static(b"hi"), data_coding: 0, udhi: false, payload: false };
        let routed = RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(4))]), ROUTED.clone());
        Message::new(PeerId(1), number.clone(), number, text, Timestamp(9), routed)
    }

    fn for_home(message: Message, options: &RemotePeerOptions) -> Message {
        let ticket = SubmitTicket { attempt: 2, ..SubmitTicket::default() };
        let unsent = Unsent { message: Arc::new(message), leg: 0, taken: 0, want_dlr: true, ticket };
        message_for_home(&unsent, options)
    }

    #[test]
    fn a_message_has_the_attributes_that_a_plugin_here_would_read() {
        let mut message = message();
        assert_eq!(for_home(message.clone(), &options(&[])).routed.changes, None);
        let attributes = |message: &Message| {
            for_home(message.clone(), &options(&[("brand", "account"), ("own", "1")])).routed.changes
        };
        assert_eq!(attributes(&message), changes(&[("brand", "account"), ("own", "1")]));
        message.routed.screening = Some(Box::new(Screening {
            verdict: ScreenVerdict::Pass,
            by: ROUTED.clone(),
            note: None,
            changes: changes(&[("brand", "screen"), ("spam", "no")]),
            submitted_text: None,
            host_calls: None,
        }));
        message.routed.lookup = Some(Arc::new(Lookup {
            result: LookupResult::Found,
            attributes: vec![("brand".into(), "lookup".into())],
            by: ROUTED.clone(),
            note: None,
            cached: false,
            host_calls: None,
        }));
        assert_eq!(attributes(&message), changes(&[("brand", "lookup"), ("own", "1"), ("spam", "no")]));
        message.routed.changes = changes(&[("brand", "router")]);
        assert_eq!(attributes(&message), changes(&[("brand", "router"), ("own", "1"), ("spam", "no")]));
    }

    #[test]
    fn a_message_keeps_its_protocol_fields() {
        let mut fields = Vec::new();
        put_tlv(&mut fields, 0x15F0, b"fee");
        let mut message = message();
        (message.id, message.accepted_at, message.protocol_fields) =
            (MessageId(7), Timestamp(5), fields.clone().into());
        let sent = for_home(message, &options(&[])).protocol_fields;
        assert!(sent.starts_with(&fields));
        let attempt = RemoteAttempt { id: MessageId(7), attempt: 2, taken: 0, accepted_at: Timestamp(5) };
        assert_eq!(RemoteAttempt::read(&sent), Some(attempt));
    }
}

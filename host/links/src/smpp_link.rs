//! An SMPP link: the session, and the requests of both sides.

use crate::bind_authenticator::{BindAuthenticator, BindDecision};
use crate::esme_requests::EsmeRequests;
use crate::message_to_pdu::PduStyle;
use crate::request_context::{RequestContext, pdu_kind};
use crate::request_token::unpack;
use crate::send_queue::SendQueue;
use crate::shared::Shared;
use crate::smsc_requests::SmscRequests;
use crate::{ListenerOptions, LongText, PeerOptions};
use bytes::{Bytes, BytesMut};
use model::ErrorClass;
use ports::link::{
    BoundLink, DialTarget, IncomingPeer, Link, LinkBlocker, LinkProtocol, LinkStep, LoginRefusal,
};
use ports::{FirstRequest, LinkCommand, LoginInterface, Protocol, TlvRules};
use smpp::message_id::MessageIdForm;
use smpp::{
    Bind, CloseReason, CommandId, CommandStatus, HEADER_LENGTH, Header, InterfaceVersion, Request, Response,
    Session, SmppClientOptions, SmppOptions, encode_request, encode_response,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind of the peer, which determines the meaning of its requests.
enum LinkSide {
    /// An incoming connection that has not bound.
    Unbound(BindAuthenticator),
    Esme(EsmeRequests),
    Smsc(SmscRequests),
}

/// One SMPP connection.
pub(crate) struct SmppLink {
    session: Session,
    side: LinkSide,
    /// Queue of messages for the peer; `None` until it is bound.
    queue: Option<SendQueue>,
}

/// Sequence number of an enquire_link that the session does not know: the farthest from the numbers that the session
/// uses. Its answer only shows that the peer lives.
const PROBE_SEQUENCE: u32 = 0x7FFF_FFFF;

/// Maximum octets of a system_id, including the terminating zero.
const MAX_SYSTEM_ID: usize = 16;

impl SmppLink {
    /// An incoming connection of a listener.
    pub(crate) fn server(shared: &Arc<Shared>, options: &Arc<ListenerOptions>, peer: IncomingPeer) -> Self {
        let session = SmppOptions {
            system_id: shared.options.system_id.clone(),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            inactivity: options.inactivity,
            partial_timeout: options.partial_timeout,
            ..SmppOptions::default()
        };
        let authenticator =
            BindAuthenticator { shared: shared.clone(), options: options.clone(), incoming: peer };
        Self {
            session: Session::server(ports::clock::now(), session),
            side: LinkSide::Unbound(authenticator),
            queue: None,
        }
    }

    /// A connection to a peer. `system_id` is our own.
    pub(crate) fn client(now: Instant, system_id: Bytes, options: Arc<PeerOptions>) -> Self {
        let session = Session::client(now, session_options(system_id, &options));
        Self { session, side: LinkSide::Smsc(SmscRequests { options }), queue: None }
    }

    fn start_queue(
        &mut self,
        link: &Link,
        style: PduStyle,
        message_id_form: MessageIdForm,
        error_classes: HashMap<u32, ErrorClass>,
    ) {
        self.queue = Some(SendQueue::new(link.id(), style, message_id_form, error_classes));
    }

    /// The peer has accepted our bind.
    fn on_bound(&mut self, link: &mut Link, system_id: &[u8], version: Option<InterfaceVersion>) {
        let LinkSide::Smsc(smsc) = &self.side else { return };
        let options = smsc.options.clone();
        let ours = InterfaceVersion(options.interface_version).takes_tlvs();
        let theirs = options.tlvs.unwrap_or_else(|| version.is_none_or(InterfaceVersion::takes_tlvs));
        let style = PduStyle {
            submits: true,
            tlvs: ours && theirs,
            long: options.long_text,
            validity: options.pass_validity,
            tlv_rules: options.tlv_rules.clone(),
        };
        tracing::debug!(peer = %options.name, name = %String::from_utf8_lossy(system_id), "bind accepted");
        link.bind(BoundLink {
            peer: options.peer,
            mode: options.bind,
            version: version.unwrap_or(InterfaceVersion::V34).0,
            window: options.window,
            takes_messages: options.bind.transmits(),
        });
        self.start_queue(link, style, options.message_id, options.error_classes.clone());
    }

    fn on_request(&mut self, link: &mut Link, sequence: u32, request: Request) {
        link.record.inbound.count(pdu_kind(request.command()));
        let mut context = RequestContext { session: &mut self.session, link };
        match &mut self.side {
            LinkSide::Esme(esme) => esme.request(&mut context, sequence, request),
            LinkSide::Smsc(smsc) => smsc.request(&mut context, sequence, request),
            LinkSide::Unbound(_) => {}
        }
    }
}

impl LinkProtocol for SmppLink {
    const PROTOCOL: Protocol = Protocol::Smpp;
    type Login = BindDecision;

    fn input(&mut self) -> &mut BytesMut {
        self.session.input()
    }

    fn output(&mut self) -> &mut BytesMut {
        self.session.output()
    }

    fn wants_input(&self) -> bool {
        self.session.wants_input()
    }

    fn process(&mut self, now: Instant) {
        self.session.process(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn on_timeout(&mut self, now: Instant) {
        self.session.on_timeout(now);
    }

    fn is_bound(&self) -> bool {
        self.session.bound_as().is_some()
    }

    fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    fn unanswered_in(&self) -> usize {
        self.session.unanswered_in()
    }

    fn next_event(&mut self, link: &mut Link) -> LinkStep<BindDecision> {
        let Some(event) = self.session.poll_event() else { return LinkStep::Idle };
        match event {
            smpp::Event::Bind(bind) => {
                if let LinkSide::Unbound(authenticator) = &self.side {
                    return LinkStep::Login(authenticator.authenticate(bind));
                }
            }
            smpp::Event::Bound { system_id, version } => self.on_bound(link, &system_id, version),
            smpp::Event::BindRefused(status) => link.refused(refusal(status)),
            smpp::Event::Outbind(_) => tracing::info!(peer = %link.record.name, "outbind"),
            smpp::Event::Request { sequence, request } => self.on_request(link, sequence, request),
            smpp::Event::Answer { token, status, response, late } => {
                if let Some(queue) = &mut self.queue {
                    if late && link.deps.log.take(link.now).is_some() {
                        tracing::info!(peer = %link.record.name, %status, "late response");
                    }
                    let outcome = queue.on_response(&link.record, link.now, token, status, &response, late);
                    link.events.extend(outcome);
                }
            }
            smpp::Event::Unanswered { token } => {
                if let Some(queue) = &mut self.queue {
                    if link.deps.log.take(link.now).is_some() {
                        tracing::warn!(peer = %link.record.name, "request timed out");
                    }
                    link.events.extend(queue.on_response_timeout(token));
                }
            }
            smpp::Event::Alert(alert) => {
                link.record.inbound.count(pdu_kind(CommandId::ALERT_NOTIFICATION));
                if let LinkSide::Smsc(smsc) = &self.side {
                    link.events.push(smsc.alert(alert));
                }
            }
            smpp::Event::Anomaly(anomaly) => tracing::debug!(
                peer = %link.record.name,
                what = anomaly.description,
                command = format_args!("{:#010x}", anomaly.command.0),
                sequence = anomaly.sequence,
                "protocol anomaly"
            ),
            smpp::Event::Closing(reason) => {
                link.end(reason.name(), !matches!(reason, CloseReason::Dead));
            }
        }
        LinkStep::Handled
    }

    fn on_login(&mut self, link: &mut Link, decision: BindDecision) {
        match decision {
            BindDecision::Refuse { status, reason } => {
                self.session.refuse_bind(status);
                link.refuse(reason);
            }
            BindDecision::Accept { account, session: (record, permit), version, mode } => {
                let options = account.options();
                link.identify(record, permit);
                self.session.set_window_in(options.window);
                self.session.set_window_out(options.deliver_window);
                self.session.accept_bind(link.now, version);
                if !self.is_bound() {
                    // The connection ended during the authentication.
                    return;
                }
                let style = PduStyle {
                    submits: false,
                    tlvs: version.takes_tlvs(),
                    long: LongText::Payload,
                    validity: false,
                    tlv_rules: TlvRules::default(),
                };
                link.bind(BoundLink {
                    peer: options.peer,
                    mode,
                    version: version.0,
                    window: options.deliver_window,
                    takes_messages: mode.receives(),
                });
                self.start_queue(link, style, MessageIdForm::AsIs, HashMap::new());
                self.side = LinkSide::Esme(EsmeRequests::new(account, version));
            }
        }
    }

    fn on_command(&mut self, link: &mut Link, command: LinkCommand) {
        let Some(queue) = &mut self.queue else { return };
        match command {
            LinkCommand::Send { message, leg, taken, want_dlr, .. } => {
                queue.send(message, leg, taken, want_dlr);
            }
            LinkCommand::QueryPeer { id, peer_id, message, leg } => queue.query(id, peer_id, &message, leg),
            LinkCommand::Answer { token, answer } => {
                let Some((kind, slot, sequence)) = unpack(token) else { return };
                let mut context = RequestContext { session: &mut self.session, link };
                match &mut self.side {
                    LinkSide::Esme(esme) => esme.answer(&mut context, kind, slot, sequence, answer),
                    LinkSide::Smsc(_) => SmscRequests::answer(&mut context, kind, sequence, &answer),
                    LinkSide::Unbound(_) => {}
                }
            }
            LinkCommand::SubscriberReachable { .. } | LinkCommand::Flushed => {}
        }
    }

    fn fill_window(&mut self, link: &mut Link) -> bool {
        self.queue.as_mut().is_some_and(|queue| queue.fill_window(&mut self.session, link))
    }

    fn on_written(&mut self, written: u64) {
        if let Some(queue) = &mut self.queue {
            queue.on_written(written);
        }
    }

    fn blocked_by(&self, now: Instant) -> LinkBlocker {
        let blocked_by = self.queue.as_ref().map(|queue| queue.blocked_by(&self.session, now));
        match (blocked_by, &self.side) {
            (Some(LinkBlocker::None), LinkSide::Esme(esme)) if esme.is_rate_limited(now) => {
                LinkBlocker::AccountRate
            }
            (blocked_by, _) => blocked_by.unwrap_or(LinkBlocker::None),
        }
    }

    fn is_idle(&self) -> bool {
        self.queue.as_ref().is_none_or(SendQueue::is_idle)
    }

    fn first_request(octets: &[u8]) -> FirstRequest {
        let Some(header) = Header::decode(octets) else { return FirstRequest::Incomplete };
        let body = octets.get(HEADER_LENGTH..).unwrap_or_default();
        match header.command {
            CommandId::BIND_RECEIVER | CommandId::BIND_TRANSMITTER | CommandId::BIND_TRANSCEIVER => {}
            _ => return FirstRequest::Other,
        }
        match body.iter().take(MAX_SYSTEM_ID).position(|octet| *octet == 0) {
            Some(end) => FirstRequest::Login(LoginInterface::Smpp, Bytes::copy_from_slice(&body[..end])),
            None if body.len() < MAX_SYSTEM_ID => FirstRequest::Incomplete,
            None => FirstRequest::Other,
        }
    }

    fn is_accepted(octets: &[u8]) -> Option<bool> {
        Header::decode(octets).map(|header| header.status.is_ok())
    }

    fn refuse_for_now(first_request: &[u8]) -> Vec<u8> {
        let mut answer = BytesMut::new();
        if let Some(Header { command, sequence, .. }) = Header::decode(first_request) {
            let status = CommandStatus::RBINDFAIL;
            encode_response(&mut answer, command.response(), status, sequence, &Response::Empty);
        }
        answer.to_vec()
    }

    fn probe(&mut self) -> bool {
        encode_request(self.session.output(), PROBE_SEQUENCE, &Request::EnquireLink);
        true
    }

    fn unbind(&mut self, now: Instant) -> bool {
        self.session.unbind(now);
        true
    }

    fn close(mut self, link: &mut Link) {
        let pending = self.session.close();
        if let Some(queue) = &mut self.queue {
            queue.on_written(link.written);
            queue.close(pending, &mut link.events);
        }
    }
}

/// The effect of a refused bind on the dialer.
fn refusal(status: CommandStatus) -> LoginRefusal {
    let (least_wait, check) = match status {
        // Only an admin can correct these.
        CommandStatus::RINVPASWD | CommandStatus::RINVSYSID => {
            (60, Some("system-id, password and system-type"))
        }
        // The peer still has our old session, and needs time to detect its end.
        CommandStatus::RALYBND => (30, None),
        _ => (0, None),
    };
    let least_wait = Duration::from_secs(least_wait);
    LoginRefusal { reason: format!("bind refused: {status}"), least_wait, check }
}

/// Address, number of links and timeouts of a peer, for the dialler.
pub(crate) fn dial_target(options: &PeerOptions) -> DialTarget {
    DialTarget {
        name: options.name.clone(),
        peer: options.peer,
        address: options.address.clone(),
        partition: None,
        links: options.links,
        connect_timeout: options.bind_timeout,
        redial_interval: options.redial_interval,
        redial_stable_after: None,
        tls: options.tls.clone(),
    }
}

/// The session options of a link to a peer. `ourselves` is our own system_id.
pub(crate) fn session_options(ourselves: Bytes, options: &PeerOptions) -> SmppClientOptions {
    SmppClientOptions {
        options: SmppOptions {
            system_id: ourselves,
            interface_version: options.interface_version,
            window_in: options.window_in.max(1),
            window_out: options.window.max(1),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            // Our enquire_links detect a dead peer sooner; silence alone is no reason to unbind.
            inactivity: Duration::ZERO,
            ..SmppOptions::default()
        },
        bind: Bind {
            mode: options.bind,
            system_id: options.system_id.clone(),
            password: options.password.0.clone(),
            system_type: options.system_type.clone(),
            interface_version: options.interface_version,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        },
        await_outbind: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(system_id: &[u8]) -> BytesMut {
        let mut octets = BytesMut::new();
        let bind = Bind {
            mode: smpp::BindMode::Transceiver,
            system_id: Bytes::copy_from_slice(system_id),
            password: Bytes::from_static(b"secret"),
            system_type: Bytes::new(),
            interface_version: 0x34,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        };
        encode_request(&mut octets, 7, &Request::Bind(bind));
        octets
    }

    #[test]
    fn the_name_of_a_bind_is_read_before_the_bind_is_complete() {
        let octets = bind(b"acme");
        let named = HEADER_LENGTH + b"acme\0".len();
        for cut in 0..named {
            assert_eq!(SmppLink::first_request(&octets[..cut]), FirstRequest::Incomplete, "{cut}");
        }
        for cut in named..=octets.len() {
            let login = FirstRequest::Login(LoginInterface::Smpp, Bytes::from_static(b"acme"));
            assert_eq!(SmppLink::first_request(&octets[..cut]), login, "{cut}");
        }
        let mut other = BytesMut::new();
        encode_request(&mut other, 1, &Request::EnquireLink);
        assert_eq!(SmppLink::first_request(&other), FirstRequest::Other);
        let endless = [&octets[..HEADER_LENGTH], &[b'x'; 40]].concat();
        assert_eq!(SmppLink::first_request(&endless), FirstRequest::Other);
    }

    #[test]
    fn a_bind_whose_partition_has_no_leader_is_refused_for_now() {
        let refusal = SmppLink::refuse_for_now(&bind(b"acme"));
        assert_eq!(refusal, [0, 0, 0, 16, 0x80, 0, 0, 9, 0, 0, 0, 0x0D, 0, 0, 0, 7]);
        assert_eq!(SmppLink::is_accepted(&refusal), Some(false));
        assert_eq!(SmppLink::is_accepted(&refusal[..15]), None);
        assert_eq!(SmppLink::is_accepted(&[0, 0, 0, 16, 0x80, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7]), Some(true));
    }

    #[test]
    fn check_037_038_wrong_credentials_wait_60_s_and_a_stale_session_30_s() {
        assert_eq!(refusal(CommandStatus::RINVPASWD).least_wait, Duration::from_secs(60));
        assert_eq!(refusal(CommandStatus::RINVSYSID).least_wait, Duration::from_secs(60));
        assert_eq!(refusal(CommandStatus::RALYBND).least_wait, Duration::from_secs(30));
    }
}

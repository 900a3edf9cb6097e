//! Test support: an engine that only records events, and ESMEs and SMSCs that send raw PDUs.

use bytes::{Bytes, BytesMut};
use engine::{EngineAnswer, EngineCommand, Event, ReplyTo};
use links::{LinkAccountOptions, LinkState, Links, LinksOptions, ListenerOptions, PeerOptions};
use model::{
    Address, Leg, LinkId, Message, MessageId, Outcome, PeerId, PluginVersion, RoutingDecision, Timestamp,
    Verdict,
};
use ports::{EventSink, LinkRegistry, Routing};
use smpp::{
    Bind, BindMode, CommandId, CommandStatus, Header, Request, Response, Sm, decode_request, decode_response,
    encode_request, encode_response,
};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The time after which a test fails because it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
pub(crate) const ACCOUNT: PeerId = PeerId(1);
pub(crate) const PEER: PeerId = PeerId(2);
pub(crate) const PASSWORD: &[u8] = b"secret";

/// A text on which routing panics.
pub(crate) const FAULT: &[u8] = b"panic!";

/// Records events. Answers only the flush of a closing link, as the engine would.
pub(crate) struct FakeEngine {
    events: UnboundedSender<Event>,
    registry: OnceLock<Arc<LinkRegistry>>,
}

impl EventSink for FakeEngine {
    fn push(&self, events: Vec<Event>) {
        for event in events {
            if let Event::Flush { link } = event {
                self.registry.get().unwrap().dispatch(vec![EngineCommand::Flushed { link }]);
            } else {
                let _ = self.events.send(event);
            }
        }
    }
}

struct FixedRouting;

impl Routing for FixedRouting {
    fn route(&self, message: &mut Message) {
        assert_ne!(message.text.octets.as_ref(), FAULT, "a fault, as the test wants it");
        let to = if message.origin == ACCOUNT { PEER } else { ACCOUNT };
        let by = Arc::new(PluginVersion { plugin: "test".into(), version: "1".into() });
        message.routed = RoutingDecision::new(Verdict::Forward(vec![Leg::to(to)]), by);
    }
}

/// Links under test, and their events.
pub(crate) struct LinksFixture {
    pub(crate) links: Links,
    pub(crate) registry: Arc<LinkRegistry>,
    events: Mutex<UnboundedReceiver<Event>>,
}

pub(crate) fn hash(password: &[u8]) -> String {
    use argon2::password_hash::{PasswordHasher, SaltString};
    use argon2::{Algorithm, Argon2, Params, Version};
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap())
        .hash_password(password, &salt)
        .unwrap()
        .to_string()
}

pub(crate) fn account() -> LinkAccountOptions {
    LinkAccountOptions::new("acme", ACCOUNT, &hash(PASSWORD))
}

pub(crate) fn listener() -> ListenerOptions {
    ListenerOptions::new("test", "127.0.0.1:0".parse().unwrap())
}

pub(crate) async fn fixture() -> LinksFixture {
    fixture_with(LinksOptions::default()).await
}

pub(crate) async fn fixture_with(options: LinksOptions) -> LinksFixture {
    let (sender, events) = unbounded_channel();
    let core = Arc::new(FakeEngine { events: sender, registry: OnceLock::new() });
    let links = Links::new(options, Arc::default(), core.clone(), Arc::new(FixedRouting)).unwrap();
    let registry = links.registry();
    let _ = core.registry.set(registry.clone());
    LinksFixture { links, registry, events: Mutex::new(events) }
}

/// A fixture with a listener and the account.
pub(crate) async fn open_fixture() -> (LinksFixture, SocketAddr) {
    let fixture = fixture().await;
    fixture.links.set_account(account()).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    (fixture, address)
}

impl LinksFixture {
    /// The next event. All messages are routed before they leave.
    pub(crate) async fn event(&self) -> Event {
        let event = within(self.events.lock().await.recv()).await.expect("the links went away");
        let messages = match &event {
            Event::Accept { message, .. } => std::slice::from_ref(&**message),
            Event::AcceptMany { messages, .. } => messages,
            _ => &[],
        };
        assert!(messages.iter().all(|message| message.routed.by.plugin == "test"), "{event:?}");
        event
    }

    /// Whether no event has arrived. Only meaningful after a later event is known to have happened.
    pub(crate) async fn quiet(&self) -> bool {
        self.events.lock().await.is_empty()
    }

    pub(crate) async fn accept(&self) -> (Box<Message>, ReplyTo) {
        match self.event().await {
            Event::Accept { message, reply } => (message, reply),
            other => panic!("expected an Accept, not {other:?}"),
        }
    }

    pub(crate) async fn link_up(&self) -> (LinkId, PeerId, u32) {
        match self.event().await {
            Event::LinkUp { link, peer, window } => (link, peer, window),
            other => panic!("expected LinkUp, not {other:?}"),
        }
    }

    pub(crate) async fn outcome(&self) -> (MessageId, Outcome) {
        match self.event().await {
            Event::Outcome { id, outcome, .. } => (id, outcome),
            other => panic!("expected an Outcome, not {other:?}"),
        }
    }

    pub(crate) fn answer(&self, to: ReplyTo, answer: EngineAnswer) {
        self.registry.dispatch(vec![EngineCommand::Answer { to, answer }]);
    }

    pub(crate) fn send(&self, link: LinkId, message: Message) {
        self.send_leg(link, message, 0);
    }

    pub(crate) fn send_leg(&self, link: LinkId, message: Message, taken: u16) {
        let message = Arc::new(message);
        self.registry.dispatch(vec![EngineCommand::Send {
            link,
            message,
            leg: 0,
            taken,
            want_dlr: true,
            more: false,
            ticket: model::SubmitTicket::default(),
        }]);
    }

    /// Waits until a snapshot of some link fulfils the condition.
    pub(crate) async fn state(&self, wanted: impl Fn(&LinkState) -> bool) -> LinkState {
        within(async {
            loop {
                if let Some(state) = self.links.states().into_iter().find(|state| wanted(state)) {
                    return state;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("it hangs")
}

pub(crate) fn message(id: u64, text: &[u8]) -> Message {
    Message {
        id: MessageId(id),
        kind: model::MessageKind::Text,
        origin: ACCOUNT,
        source: Address::new(0, 0, b"10655"),
        destination: Address::international("8613012345678"),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: model::Priority::default(),
        dlr_request: model::DlrRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: model::Text { octets: Bytes::copy_from_slice(text), ..Default::default() },
        tlvs: Bytes::new(),
        protocol_fields: Bytes::new(),
        sealed: None,
        accepted_at: Timestamp(1),
        scheduled: None,
        expires_at: Timestamp(u64::MAX / 2),
        routed: RoutingDecision::new(
            Verdict::Forward(vec![Leg::to(PEER)]),
            Arc::new(PluginVersion { plugin: "test".into(), version: "1".into() }),
        ),
    }
}

/// One end of an SMPP connection, controlled by the test.
pub(crate) struct RawPeer<S = TcpStream> {
    pub(crate) stream: S,
    input: BytesMut,
    pub(crate) next: u32,
}

impl RawPeer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(within(TcpStream::connect(address)).await.unwrap())
    }

    /// Connects and binds as the account.
    pub(crate) async fn bound(address: SocketAddr, mode: BindMode) -> Self {
        let mut raw = Self::connect(address).await;
        let (header, _) = raw.bind(bind(mode)).await;
        assert_eq!(header.status, CommandStatus::ROK);
        raw
    }
}

pub(crate) fn bind(mode: BindMode) -> Bind {
    Bind {
        mode,
        system_id: Bytes::from_static(b"acme"),
        password: Bytes::from_static(PASSWORD),
        system_type: Bytes::new(),
        interface_version: 0x34,
        addr_ton: 0,
        addr_npi: 0,
        address_range: Bytes::new(),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> RawPeer<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, input: BytesMut::new(), next: 1 }
    }

    pub(crate) async fn write(&mut self, octets: &[u8]) {
        within(self.stream.write_all(octets)).await.unwrap();
        within(self.stream.flush()).await.unwrap();
    }

    pub(crate) async fn request(&mut self, request: &Request) -> u32 {
        let sequence = self.next;
        self.next += 1;
        let mut out = BytesMut::new();
        encode_request(&mut out, sequence, request);
        self.write(&out).await;
        sequence
    }

    pub(crate) async fn respond(&mut self, to: Header, status: CommandStatus, response: &Response) {
        let mut out = BytesMut::new();
        encode_response(&mut out, to.command.response(), status, to.sequence, response);
        self.write(&out).await;
    }

    /// The next PDU; `None` when the other end has closed.
    pub(crate) async fn receive(&mut self) -> Option<(Header, Bytes)> {
        within(async {
            loop {
                if let Some(header) = Header::decode(&self.input)
                    && self.input.len() >= header.length as usize
                {
                    let mut frame = self.input.split_to(header.length as usize).freeze();
                    return Some((header, frame.split_off(16)));
                }
                match self.stream.read_buf(&mut self.input).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        })
        .await
    }

    pub(crate) async fn answer(&mut self) -> (Header, Response) {
        let (header, body) = self.receive().await.expect("the connection was closed");
        assert!(header.command.is_response(), "{header:?}");
        (header, decode_response(header.command, body))
    }

    pub(crate) async fn next_request(&mut self) -> (Header, Request) {
        let (header, body) = self.receive().await.expect("the connection was closed");
        (header, decode_request(header.command, body).unwrap())
    }

    /// The next request, which must be submit_sm or deliver_sm.
    pub(crate) async fn sm(&mut self) -> (Header, Sm) {
        match self.next_request().await {
            (header, Request::SubmitSm(sm) | Request::DeliverSm(sm)) => (header, sm),
            (_, other) => panic!("unexpected {other:?}"),
        }
    }

    pub(crate) async fn bind(&mut self, bind: Bind) -> (Header, Response) {
        self.request(&Request::Bind(bind)).await;
        self.answer().await
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, request: &Request) -> (Header, Response) {
        let sequence = self.request(request).await;
        let (header, response) = self.answer().await;
        assert_eq!(header.sequence, sequence);
        (header, response)
    }

    pub(crate) async fn closed(&mut self) {
        assert_eq!(self.receive().await.map(|(header, _)| header), None);
    }

    /// Accepts the next bind, as an SMSC.
    pub(crate) async fn take_bind(&mut self) -> Bind {
        match self.next_request().await {
            (header, Request::Bind(bind)) => {
                let response =
                    Response::Bind { system_id: Bytes::from_static(b"SMSC"), tlvs: Default::default() };
                self.respond(header, CommandStatus::ROK, &response).await;
                bind
            }
            (_, other) => panic!("expected a bind, not {other:?}"),
        }
    }
}

/// An SMSC that the links dial.
pub(crate) struct Smsc {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Smsc {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    pub(crate) async fn accept(&self) -> RawPeer {
        RawPeer::over(within(self.listener.accept()).await.unwrap().0)
    }

    pub(crate) fn options(&self) -> PeerOptions {
        let mut options = PeerOptions::new("upstream", PEER, &self.address.to_string());
        options.system_id = Bytes::from_static(b"esme1");
        options.password = links::Secret(Bytes::from_static(b"secret"));
        options
    }
}

/// A link that is bound to an SMSC: the fixture, the SMSC, its end of the connection, and the link id.
pub(crate) async fn bound_peer(
    change: impl FnOnce(&mut PeerOptions),
) -> (LinksFixture, Smsc, RawPeer, LinkId) {
    let fixture = fixture().await;
    let smsc = Smsc::open().await;
    let mut options = smsc.options();
    change(&mut options);
    fixture.links.set_peer(options).unwrap();
    let mut raw = smsc.accept().await;
    raw.take_bind().await;
    let (link, peer, _) = fixture.link_up().await;
    assert_eq!(peer, PEER);
    (fixture, smsc, raw, link)
}

pub(crate) fn hello() -> Sm {
    Sm {
        source: Address::new(0, 0, b"10655"),
        destination: Address::international("8613012345678"),
        short_message: Bytes::from_static(b"Hello"),
        registered_delivery: 1,
        ..Sm::default()
    }
}

pub(crate) fn enquire() -> Request {
    Request::EnquireLink
}

pub(crate) fn is_nack(header: Header) -> bool {
    header.command == CommandId::GENERIC_NACK
}

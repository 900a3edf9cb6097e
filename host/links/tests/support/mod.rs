//! A core that only remembers, and ESMEs and SMSCs that speak raw PDUs.
#![allow(dead_code, unreachable_pub, reason = "each test binary is a crate of its own and uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

use bytes::{Bytes, BytesMut};
use doors::{Core, Hub, Routing};
use engine::{Answer, Command, Event, ReplyTo};
use links::{AccountOptions, LinkState, Links, LinksOptions, ListenerOptions, PeerOptions};
use model::{
    Address, DecidedBy, Leg, LinkId, Message, MessageId, Outcome, PeerId, Refusal, Routed, Timestamp, Verdict,
};
use smpp::{
    Bind, BindMode, CommandId, Header, Request, Response, Sm, Status, decode_request, decode_response,
    encode_request, encode_response,
};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long anything may take before a test says that it hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const ACCOUNT: PeerId = PeerId(1);
pub const PEER: PeerId = PeerId(2);
pub const PASSWORD: &[u8] = b"secret";

/// A text on which routing panics.
pub const FAULT: &[u8] = b"panic!";

/// Remembers events. Answers only the question with which links take their leave, as the engine would.
pub struct FakeCore {
    events: UnboundedSender<Event>,
    hub: OnceLock<Arc<Hub>>,
}

impl Core for FakeCore {
    fn push(&self, events: Vec<Event>) {
        for event in events {
            if let Event::Settle { id: MessageId(0), reply, .. } = event {
                let answer = Answer::Refused(Refusal::UnknownMessage);
                self.hub.get().unwrap().dispatch(vec![Command::Answer { to: reply, answer }]);
            } else {
                let _ = self.events.send(event);
            }
        }
    }
}

struct ToPeer;

impl Routing for ToPeer {
    fn route(&self, message: &Message) -> Routed {
        assert_ne!(message.text.octets.as_ref(), FAULT, "a fault, as the test wants it");
        let to = if message.origin == ACCOUNT { PEER } else { ACCOUNT };
        let by = Arc::new(DecidedBy { plugin: "test".into(), version: "1".into() });
        Routed {
            verdict: Verdict::Forward(vec![Leg::to(to)]),
            by,
            note: None,
            sender: None,
            quote: None,
            seen: None,
            faulted: None,
        }
    }
}

/// Links under test, and what they told the core.
pub struct House {
    pub links: Links,
    pub hub: Arc<Hub>,
    events: Mutex<UnboundedReceiver<Event>>,
}

pub fn hash(password: &[u8]) -> String {
    use argon2::password_hash::{PasswordHasher, SaltString};
    use argon2::{Algorithm, Argon2, Params, Version};
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap())
        .hash_password(password, &salt)
        .unwrap()
        .to_string()
}

pub fn account() -> AccountOptions {
    AccountOptions::new("acme", ACCOUNT, &hash(PASSWORD))
}

pub fn listener() -> ListenerOptions {
    ListenerOptions::new("test", "127.0.0.1:0".parse().unwrap())
}

pub async fn house() -> House {
    house_with(LinksOptions::default()).await
}

pub async fn house_with(options: LinksOptions) -> House {
    let (sender, events) = unbounded_channel();
    let core = Arc::new(FakeCore { events: sender, hub: OnceLock::new() });
    let links = Links::new(options, Arc::default(), core.clone(), Arc::new(ToPeer)).unwrap();
    let hub = links.hub();
    let _ = core.hub.set(hub.clone());
    House { links, hub, events: Mutex::new(events) }
}

/// A house with a listener and the account.
pub async fn open_house() -> (House, SocketAddr) {
    let house = house().await;
    house.links.set_account(account()).unwrap();
    let address = house.links.listen(listener()).await.unwrap();
    (house, address)
}

impl House {
    pub async fn event(&self) -> Event {
        within(self.events.lock().await.recv()).await.expect("the links went away")
    }

    /// Whether nothing has been told; of use only after something later is known to have happened.
    pub async fn quiet(&self) -> bool {
        self.events.lock().await.is_empty()
    }

    pub async fn accept(&self) -> (Box<Message>, ReplyTo) {
        match self.event().await {
            Event::Accept { message, reply } => (message, reply),
            other => panic!("expected an Accept, not {other:?}"),
        }
    }

    pub async fn link_up(&self) -> (LinkId, PeerId, u32) {
        match self.event().await {
            Event::LinkUp { link, peer, window } => (link, peer, window),
            other => panic!("expected LinkUp, not {other:?}"),
        }
    }

    pub async fn outcome(&self) -> (MessageId, Outcome) {
        match self.event().await {
            Event::Outcome { id, outcome, .. } => (id, outcome),
            other => panic!("expected an Outcome, not {other:?}"),
        }
    }

    pub fn answer(&self, to: ReplyTo, answer: Answer) {
        self.hub.dispatch(vec![Command::Answer { to, answer }]);
    }

    pub fn send(&self, link: LinkId, message: Message) {
        self.send_leg(link, message, 0);
    }

    pub fn send_leg(&self, link: LinkId, message: Message, taken: u16) {
        let message = Arc::new(message);
        self.hub.dispatch(vec![Command::Send {
            link,
            message,
            leg: 0,
            taken,
            want_receipt: true,
            more: false,
            ticket: model::Ticket::default(),
        }]);
    }

    /// Waits until the snapshot of some link looks as wanted.
    pub async fn state(&self, wanted: impl Fn(&LinkState) -> bool) -> LinkState {
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

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it hangs")
}

pub fn message(id: u64, text: &[u8]) -> Message {
    Message {
        id: MessageId(id),
        kind: model::Kind::Text,
        origin: ACCOUNT,
        source: Address::new(0, 0, b"10655"),
        destination: Address::international("8613012345678"),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: model::Priority::default(),
        receipts: model::ReceiptRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: model::Text { octets: Bytes::copy_from_slice(text), ..Default::default() },
        tlvs: Bytes::new(),
        accepted_at: Timestamp(1),
        scheduled: None,
        expires_at: Timestamp(u64::MAX / 2),
        routed: Routed {
            verdict: Verdict::Forward(vec![Leg::to(PEER)]),
            by: Arc::new(DecidedBy { plugin: "test".into(), version: "1".into() }),
            note: None,
            sender: None,
            quote: None,
            seen: None,
            faulted: None,
        },
    }
}

/// One end of an SMPP connection that does exactly what the test says.
pub struct Raw<S = TcpStream> {
    pub stream: S,
    input: BytesMut,
    pub next: u32,
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(within(TcpStream::connect(address)).await.unwrap())
    }

    /// Connects and binds as the account.
    pub async fn bound(address: SocketAddr, mode: BindMode) -> Self {
        let mut raw = Self::connect(address).await;
        let (header, _) = raw.bind(bind(mode)).await;
        assert_eq!(header.status, Status::ROK);
        raw
    }
}

pub fn bind(mode: BindMode) -> Bind {
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

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub fn over(stream: S) -> Self {
        Self { stream, input: BytesMut::new(), next: 1 }
    }

    pub async fn write(&mut self, octets: &[u8]) {
        within(self.stream.write_all(octets)).await.unwrap();
        within(self.stream.flush()).await.unwrap();
    }

    pub async fn request(&mut self, request: &Request) -> u32 {
        let sequence = self.next;
        self.next += 1;
        let mut out = BytesMut::new();
        encode_request(&mut out, sequence, request);
        self.write(&out).await;
        sequence
    }

    pub async fn respond(&mut self, to: Header, status: Status, response: &Response) {
        let mut out = BytesMut::new();
        encode_response(&mut out, to.command.response(), status, to.sequence, response);
        self.write(&out).await;
    }

    /// The next PDU; `None` when the other end has closed.
    pub async fn receive(&mut self) -> Option<(Header, Bytes)> {
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

    pub async fn answer(&mut self) -> (Header, Response) {
        let (header, body) = self.receive().await.expect("the connection was closed");
        assert!(header.command.is_response(), "{header:?}");
        (header, decode_response(header.command, body))
    }

    pub async fn asked(&mut self) -> (Header, Request) {
        let (header, body) = self.receive().await.expect("the connection was closed");
        (header, decode_request(header.command, body).unwrap())
    }

    /// The next request, which must be submit_sm or deliver_sm.
    pub async fn sm(&mut self) -> (Header, Sm) {
        match self.asked().await {
            (header, Request::SubmitSm(sm) | Request::DeliverSm(sm)) => (header, sm),
            (_, other) => panic!("unexpected {other:?}"),
        }
    }

    pub async fn bind(&mut self, bind: Bind) -> (Header, Response) {
        self.request(&Request::Bind(bind)).await;
        self.answer().await
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&mut self, request: &Request) -> (Header, Response) {
        let sequence = self.request(request).await;
        let (header, response) = self.answer().await;
        assert_eq!(header.sequence, sequence);
        (header, response)
    }

    pub async fn closed(&mut self) {
        assert_eq!(self.receive().await.map(|(header, _)| header), None);
    }

    /// As an SMSC: takes the bind that comes.
    pub async fn take_bind(&mut self) -> Bind {
        match self.asked().await {
            (header, Request::Bind(bind)) => {
                let response =
                    Response::Bind { system_id: Bytes::from_static(b"SMSC"), tlvs: Default::default() };
                self.respond(header, Status::ROK, &response).await;
                bind
            }
            (_, other) => panic!("expected a bind, not {other:?}"),
        }
    }
}

/// An SMSC for the client to dial.
pub struct Smsc {
    listener: TcpListener,
    pub address: SocketAddr,
}

impl Smsc {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    pub async fn accept(&self) -> Raw {
        Raw::over(within(self.listener.accept()).await.unwrap().0)
    }

    pub fn options(&self) -> PeerOptions {
        let mut options = PeerOptions::new("upstream", PEER, &self.address.to_string());
        options.system_id = Bytes::from_static(b"esme1");
        options.password = links::Secret(Bytes::from_static(b"secret"));
        options
    }
}

/// A client that is bound to an SMSC: the house, the SMSC's end, and the link.
pub async fn bound_peer(change: impl FnOnce(&mut PeerOptions)) -> (House, Smsc, Raw, LinkId) {
    let house = house().await;
    let smsc = Smsc::open().await;
    let mut options = smsc.options();
    change(&mut options);
    house.links.set_peer(options).unwrap();
    let mut raw = smsc.accept().await;
    raw.take_bind().await;
    let (link, peer, _) = house.link_up().await;
    assert_eq!(peer, PEER);
    (house, smsc, raw, link)
}

pub fn hello() -> Sm {
    Sm {
        source: Address::new(0, 0, b"10655"),
        destination: Address::international("8613012345678"),
        short_message: Bytes::from_static(b"Hello"),
        registered_delivery: 1,
        ..Sm::default()
    }
}

pub fn enquire() -> Request {
    Request::EnquireLink
}

pub fn is_nack(header: Header) -> bool {
    header.command == CommandId::GENERIC_NACK
}

//! Measures the throughput of the links alone, in one process over loopback: an ESME submits, an engine without storage
//! forwards to an SMSC, the SMSC answers, and the ESME gets the answer.
//!
//! `cargo run --release -p links --example relay -- [seconds] [window] [links]`
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs, reason = "a measuring tool")]

use bytes::{Buf, Bytes, BytesMut};
use engine::{EngineAnswer, EngineCommand, Event, ReplyTo};
use links::{BindMode, LinkAccountOptions, Links, LinksOptions, ListenerOptions, PeerOptions};
use model::{Address, Leg, LinkId, Message, MessageId, PeerId, PluginVersion, RoutingDecision, Verdict};
use parking_lot::Mutex;
use ports::{EventSink, LinkRegistry, Routing};
use rustc_hash::FxHashMap;
use smpp::{Bind, CommandId, CommandStatus, Header, Request, Response, Sm, encode_request, encode_response};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Sends every message to any link of the peer, and answers the ESME when the peer has answered, so that no queue
/// builds up.
struct InstantEngine {
    registry: OnceLock<Arc<LinkRegistry>>,
    next: AtomicU64,
    outgoing: Mutex<Vec<LinkId>>,
    waiting: Mutex<FxHashMap<MessageId, ReplyTo>>,
    done: AtomicU64,
    pushes: AtomicU64,
}

impl EventSink for InstantEngine {
    fn push(&self, events: Vec<Event>) {
        self.pushes.fetch_add(1, Relaxed);
        let mut commands = Vec::with_capacity(events.len() * 2);
        for event in events {
            match event {
                Event::LinkUp { link, peer: PeerId(2), .. } => self.outgoing.lock().push(link),
                Event::Accept { mut message, reply } => {
                    let id = MessageId(self.next.fetch_add(1, Relaxed));
                    message.id = id;
                    self.waiting.lock().insert(id, reply);
                    let links = self.outgoing.lock();
                    let link = links[usize::try_from(id.0).unwrap() % links.len()];
                    let message = Arc::new(*message);
                    commands.push(EngineCommand::Send {
                        link,
                        message,
                        leg: 0,
                        taken: 0,
                        want_dlr: false,
                        more: false,
                        ticket: model::SubmitTicket::default(),
                    });
                }
                Event::Outcome { id, .. } => {
                    self.done.fetch_add(1, Relaxed);
                    let to = self.waiting.lock().remove(&id).unwrap();
                    commands.push(EngineCommand::Answer { to, answer: EngineAnswer::Accepted(id) });
                }
                _ => {}
            }
        }
        self.registry.get().unwrap().dispatch(commands);
    }
}

struct ConstantRouting(Arc<PluginVersion>);

impl Routing for ConstantRouting {
    fn route(&self, message: &mut Message) {
        message.routed = RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(2))]), self.0.clone());
    }
}

/// Answers every request with success.
async fn sink(mut stream: TcpStream) {
    let (mut input, mut output) = (BytesMut::with_capacity(1 << 16), BytesMut::new());
    while stream.read_buf(&mut input).await.is_ok_and(|count| count > 0) {
        while let Some(header) = Header::decode(&input).filter(|header| input.len() >= header.length as usize)
        {
            input.advance(header.length as usize);
            let response = match header.command {
                CommandId::SUBMIT_SM => Response::id("1234567890"),
                _ => Response::Empty,
            };
            encode_response(
                &mut output,
                header.command.response(),
                CommandStatus::ROK,
                header.sequence,
                &response,
            );
        }
        if stream.write_all(&output).await.is_err() {
            return;
        }
        output.clear();
    }
}

/// Keeps `window` submissions unanswered.
async fn source(mut stream: TcpStream, window: usize) {
    let bind = Bind {
        mode: BindMode::Transmitter,
        system_id: Bytes::from_static(b"acme"),
        password: Bytes::from_static(b"secret"),
        system_type: Bytes::new(),
        interface_version: 0x34,
        addr_ton: 0,
        addr_npi: 0,
        address_range: Bytes::new(),
    };
    let submit = Request::SubmitSm(Sm {
        source: Address::new(0, 0, b"10655"),
        destination: Address::international("8613012345678"),
        short_message: Bytes::from_static(
            b"A text of about the length that people write when they have little to say.",
        ),
        ..Sm::default()
    });
    let (mut input, mut output) = (BytesMut::with_capacity(1 << 16), BytesMut::new());
    encode_request(&mut output, 1, &Request::Bind(bind));
    let (mut sequence, mut open) = (1_u32, 0);
    loop {
        if stream.write_all(&output).await.is_err() {
            return;
        }
        output.clear();
        if !stream.read_buf(&mut input).await.is_ok_and(|count| count > 0) {
            return;
        }
        while let Some(header) = Header::decode(&input).filter(|header| input.len() >= header.length as usize)
        {
            input.advance(header.length as usize);
            assert_eq!(header.status, CommandStatus::ROK);
            if header.command == CommandId::SUBMIT_SM.response() {
                open -= 1;
            }
        }
        while open < window {
            sequence += 1;
            open += 1;
            encode_request(&mut output, sequence, &submit);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().unwrap());
    let seconds = arguments.next().unwrap_or(5);
    let window = arguments.next().unwrap_or(500);
    let count = arguments.next().unwrap_or(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run(seconds, window, count));
}

fn hash() -> String {
    use argon2::password_hash::{PasswordHasher, SaltString};
    use argon2::{Algorithm, Argon2, Params, Version};
    let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
    let cheap = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
    cheap.hash_password(b"secret", &salt).unwrap().to_string()
}

async fn run(seconds: usize, window: usize, count: usize) {
    let core = Arc::new(InstantEngine {
        registry: OnceLock::new(),
        next: AtomicU64::new(1_000_000_000),
        outgoing: Mutex::default(),
        waiting: Mutex::default(),
        done: AtomicU64::new(0),
        pushes: AtomicU64::new(0),
    });
    let by = Arc::new(PluginVersion { plugin: "constant".into(), version: "1".into() });
    let links =
        Links::new(LinksOptions::default(), Arc::default(), core.clone(), Arc::new(ConstantRouting(by)))
            .unwrap();
    let _ = core.registry.set(links.registry());
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = upstream.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = upstream.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(sink(stream));
        }
    });
    links
        .set_peer(PeerOptions { window, links: count, ..PeerOptions::new("up", PeerId(2), &address) })
        .unwrap();
    while core.outgoing.lock().len() < count {
        tokio::task::yield_now().await;
    }
    links
        .set_account(LinkAccountOptions { window, ..LinkAccountOptions::new("acme", PeerId(1), &hash()) })
        .unwrap();
    let address = links.listen(ListenerOptions::new("in", "127.0.0.1:0".parse().unwrap())).await.unwrap();
    for _ in 0..count {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(source(stream, window));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (from, pushed, began) = (core.done.load(Relaxed), core.pushes.load(Relaxed), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    let (done, pushes) = (core.done.load(Relaxed) - from, core.pushes.load(Relaxed) - pushed);
    let rate = done as f64 / began.elapsed().as_secs_f64();
    println!(
        "{count} x ESME -> {count} x SMSC, window {window}: {rate:.0} messages/s, {:.1} events a push",
        2.0 * done as f64 / pushes as f64
    );
    for state in links.states() {
        println!(
            "{:?} {}: round trip {:?}, blocked_by {}, answers in {} out {}",
            state.role,
            state.name,
            state.round_trip,
            state.blocked_by.name(),
            state.inbound.answers,
            state.outbound.answers
        );
    }
    std::process::exit(0);
}

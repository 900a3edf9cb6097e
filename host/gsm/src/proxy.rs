//! The proxy between MSCs and their HLR: one connection to the HLR per MSC.
//!
//! Other signalling is relayed directly from the read buffer. If the MSC's side closes or fails, the HLR's side is
//! closed. If the HLR's side fails or the HLR is unreachable, the MSC stays connected for `hlr-outage`: messages
//! between known subscribers are delivered, and signalling waits for the HLR for 15 to 30 s.

use crate::hlr_connection::{connect, wait_until_stopped};
use crate::link_input::{ConnectionSender, LinkInput, LinkInputs};
use crate::msc_identity;
use crate::mt::ConnId;
use crate::options::GsmOptions;
use crate::state::Shared;
use bytes::{Buf, Bytes, BytesMut};
use gsup::IpaName;
use gsup::proxy::{Event, Proxy};
use model::AddressBytes;
use parking_lot::Mutex;
use ports::{Acceptor, RateLimiter};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Maximum number of octets queued for one side; above it, the other side is not read.
const MAX_BUFFERED: usize = 1 << 20;

/// Octets per read.
const READ_SIZE: usize = 64 << 10;

/// Time between connection attempts to the HLR.
const REDIAL_DELAY: Duration = Duration::from_secs(1);

/// Data queued for the HLR expires after one to two intervals.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(15);

/// A connection attempt to the HLR.
type Dial = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Accepts MSCs until stopped.
pub(crate) async fn run(
    options: Arc<GsmOptions>,
    acceptor: Acceptor,
    hlr: String,
    name: IpaName,
    shared: Arc<Shared>,
    link: UnboundedSender<LinkInputs>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut next: ConnId = 0;
    // A port scan must not fill the log.
    let log = Arc::new(Mutex::new(RateLimiter::new(2.0, 20, Instant::now())));
    loop {
        let (mut msc, remote, permit) = tokio::select! {
            accepted = acceptor.accept() => accepted,
            () = wait_until_stopped(&mut stop) => return,
        };
        next += 1;
        let conn = next;
        let (options, hlr, name) = (options.clone(), hlr.clone(), name.clone());
        let (shared, link, log, mut stop) = (shared.clone(), link.clone(), log.clone(), stop.clone());
        tokio::spawn(async move {
            let connection = async {
                let mut from_msc = BytesMut::with_capacity(READ_SIZE);
                msc_identity::request_name(&mut msc, &mut from_msc, options.connect_timeout).await?;
                permit.identify();
                let mut proxy = Proxy::new(Some(name));
                proxy.hlr_disconnected();
                let connection = ProxyConnection {
                    conn,
                    remote,
                    msc,
                    dial: Some(dial(hlr.clone(), Duration::ZERO, options.connect_timeout)),
                    hlr: None,
                    hlr_lost_at: Instant::now(),
                    hlr_address: hlr,
                    options: options.clone(),
                    proxy,
                    shared: shared.clone(),
                    link: link.clone(),
                    from_msc,
                    from_hlr: BytesMut::with_capacity(READ_SIZE),
                    to_msc: Bytes::new(),
                    to_hlr: Bytes::new(),
                    msc_name: None,
                    counted_frames: 0,
                };
                connection.run().await
            };
            let result = tokio::select! {
                result = connection => result,
                () = permit.displaced() => Err(io::Error::other("displaced by a new connection before its identity was received")),
                () = wait_until_stopped(&mut stop) => Ok(()),
            };
            if let Err(error) = result {
                if log.lock().take(1, Instant::now()) {
                    tracing::warn!(network = options.name, %remote, %error, "msc connection failed");
                }
                shared.counts.error(format!("MSC {remote}: {error}"));
            }
            // The link ignores connections that it does not know.
            let _ = link.send((conn, vec![LinkInput::Closed]));
            drop(permit);
        });
    }
}

/// Detects a dead peer within about a minute: an open connection keeps its subscribers.
fn keep_alive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(20))
        .with_interval(Duration::from_secs(10))
        .with_retries(3)
}

fn dial(hlr_address: String, after: Duration, within: Duration) -> Dial {
    Box::pin(async move {
        tokio::time::sleep(after).await;
        connect(&hlr_address, within).await
    })
}

async fn wait_for_dial(dial: &mut Option<Dial>) -> io::Result<TcpStream> {
    match dial {
        Some(dial) => dial.await,
        None => std::future::pending().await,
    }
}

async fn wait_readable(socket: Option<&TcpStream>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

async fn wait_writable(socket: Option<&TcpStream>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.writable().await,
        None => std::future::pending().await,
    }
}

struct ProxyConnection {
    conn: ConnId,
    remote: SocketAddr,
    options: Arc<GsmOptions>,
    msc: TcpStream,
    /// Host and port of the HLR.
    hlr_address: String,
    /// The connection to the HLR, if it is up.
    hlr: Option<TcpStream>,
    /// The pending connection attempt, if it is down.
    dial: Option<Dial>,
    /// Time at which the connection to the HLR was lost.
    hlr_lost_at: Instant,
    proxy: Proxy,
    shared: Arc<Shared>,
    link: UnboundedSender<LinkInputs>,
    from_msc: BytesMut,
    from_hlr: BytesMut,
    /// Partially written pieces.
    to_msc: Bytes,
    to_hlr: Bytes,
    /// Name of the MSC, once it is known.
    msc_name: Option<Arc<str>>,
    /// Relayed frames that were added to the counters.
    counted_frames: u64,
}

impl ProxyConnection {
    async fn run(mut self) -> io::Result<()> {
        SockRef::from(&self.msc).set_tcp_keepalive(&keep_alive())?;
        let mut expiry = tokio::time::interval(EXPIRY_INTERVAL);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (out, mut messages): (ConnectionSender, UnboundedReceiver<Vec<gsup::GsupMessage>>) =
            unbounded_channel();
        // Data that the MSC sent during the identity request; the loop reads only new data.
        self.proxy.from_msc(&mut self.from_msc);
        loop {
            self.write_to_hlr();
            write(&self.msc, &mut self.to_msc, || self.proxy.to_msc())?;
            if !self.forward_events(&out) {
                return Ok(());
            }
            let msc_full = self.proxy.waiting_for_msc() + self.to_msc.len() >= MAX_BUFFERED;
            let hlr_full = self.proxy.waiting_for_hlr() + self.to_hlr.len() >= MAX_BUFFERED;
            tokio::select! {
                ready = self.msc.readable(), if !hlr_full => {
                    ready?;
                    if read(&self.msc, &mut self.from_msc, "the MSC")? {
                        self.proxy.from_msc(&mut self.from_msc);
                    }
                }
                ready = wait_readable(self.hlr.as_ref()), if !msc_full => {
                    if let Err(error) = ready.and_then(|()| self.read_from_hlr()) {
                        self.hlr_lost(&error);
                    }
                }
                ready = self.msc.writable(), if !self.to_msc.is_empty() => ready?,
                ready = wait_writable(self.hlr.as_ref()), if !self.to_hlr.is_empty() => {
                    if let Err(error) = ready {
                        self.hlr_lost(&error);
                    }
                }
                wait_for_dial = wait_for_dial(&mut self.dial) => match wait_for_dial {
                    Ok(hlr) => self.hlr_connected(hlr),
                    Err(error) => self.redial(&error),
                },
                _ = expiry.tick(), if self.hlr.is_none() => {
                    self.proxy.expire();
                    if self.hlr_lost_at.elapsed() > self.options.hlr_outage {
                        let what = format!("the HLR {} was unreachable for longer than `hlr-outage`", self.hlr_address);
                        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                    }
                }
                batch = messages.recv() => {
                    for message in batch.unwrap_or_default() {
                        self.proxy.inject_to_msc(&message);
                    }
                    while let Ok(batch) = messages.try_recv() {
                        for message in batch {
                            self.proxy.inject_to_msc(&message);
                        }
                    }
                }
            }
        }
    }

    fn read_from_hlr(&mut self) -> io::Result<()> {
        if let Some(hlr) = &self.hlr
            && read(hlr, &mut self.from_hlr, "the HLR")?
        {
            self.proxy.from_hlr(&mut self.from_hlr);
        }
        Ok(())
    }

    fn write_to_hlr(&mut self) {
        if let Some(hlr) = &self.hlr
            && let Err(error) = write(hlr, &mut self.to_hlr, || self.proxy.to_hlr())
        {
            self.hlr_lost(&error);
        }
    }

    /// Handles a lost connection to the HLR. Partially written and read data is dropped; the MSC repeats unanswered
    /// requests.
    fn hlr_lost(&mut self, error: &io::Error) {
        self.hlr = None;
        self.hlr_lost_at = Instant::now();
        self.to_hlr = Bytes::new();
        self.from_hlr.clear();
        self.proxy.hlr_disconnected();
        let (network, hlr, msc) = (&self.options.name, &self.hlr_address, self.msc_name.as_deref());
        tracing::warn!(network, hlr, msc, %error, "hlr connection lost, msc stays connected");
        self.redial(error);
    }

    fn redial(&mut self, error: &io::Error) {
        let error = format!("{}: {error}", self.hlr_address);
        self.shared.counts.error(format!("HLR {error}"));
        self.shared.counts.observed_faults.set_hlr_error(Some(error));
        self.dial = Some(dial(self.hlr_address.clone(), REDIAL_DELAY, self.options.connect_timeout));
    }

    fn hlr_connected(&mut self, hlr: TcpStream) {
        if let Err(error) = SockRef::from(&hlr).set_tcp_keepalive(&keep_alive()) {
            return self.redial(&error);
        }
        self.hlr = Some(hlr);
        self.dial = None;
        self.shared.counts.observed_faults.set_hlr_error(None);
        self.proxy.hlr_connected();
    }

    /// Forwards proxy events to the link. Returns false if the link has ended.
    fn forward_events(&mut self, out: &ConnectionSender) -> bool {
        let mut inputs = Vec::new();
        while let Some(event) = self.proxy.poll_event() {
            match event {
                Event::MscName(name) => {
                    if self.msc_name.is_none() {
                        let name: Arc<str> = name.into();
                        self.msc_name = Some(name.clone());
                        inputs.push(LinkInput::Ready {
                            name: Some(name),
                            remote: self.remote,
                            out: out.clone(),
                        });
                    }
                }
                Event::ShortMessage(message) => inputs.push(LinkInput::Message(message)),
                Event::LocationUpdated(imsi) => inputs.push(LinkInput::LocationUpdate(imsi)),
                // The last MSC stays recorded: messages for the subscriber are sent to it first.
                Event::Detached(_) => {}
                Event::Number { imsi, msisdn } => {
                    let msisdn = AddressBytes::from_slice(msisdn.as_bytes());
                    self.shared.subscribers.set_msisdn(&imsi, &msisdn);
                }
            }
        }
        let passed = self.proxy.relayed_frames();
        self.shared.counts.relayed_frames.fetch_add(passed - self.counted_frames, Relaxed);
        self.counted_frames = passed;
        inputs.is_empty() || self.link.send((self.conn, inputs)).is_ok()
    }
}

/// Reads available data. Returns false if there is none.
fn read(socket: &TcpStream, into: &mut BytesMut, peer: &str) -> io::Result<bool> {
    into.reserve(READ_SIZE);
    match socket.try_read_buf(into) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("connection closed by {peer}"))),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes as much as the socket accepts.
fn write(socket: &TcpStream, now: &mut Bytes, mut next: impl FnMut() -> Option<Bytes>) -> io::Result<()> {
    loop {
        if now.is_empty() {
            match next() {
                Some(piece) => *now = piece,
                None => return Ok(()),
            }
        }
        match socket.try_write(now) {
            Ok(written) => now.advance(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

//! Between MSCs and their HLR: one connection to the HLR for every MSC's.
//!
//! What is not ours goes on as it came, written at once from the buffer into which it was read. When the MSC's side closes or
//! breaks, the HLR's is closed. When the HLR's side does, or the HLR cannot be reached, the MSC stays connected for
//! `hlr-outage`: messages between subscribers that are known go on, and signalling waits for the HLR, 15 to 30 s.

use crate::client::{connect, stopped};
use crate::desk::{Input, Inputs, Out, Shared};
use crate::identity;
use crate::mt::ConnId;
use crate::options::GsmOptions;
use bytes::{Buf, Bytes, BytesMut};
use doors::{Acceptor, Bucket};
use gsup::Name;
use gsup::proxy::{Event, Proxy};
use model::AddressBytes;
use parking_lot::Mutex;
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

/// Octets that may wait for one side before the other is read no further.
const WAITING: usize = 1 << 20;

/// Octets that are read at a time.
const READ: usize = 64 << 10;

/// How long after a failed connection to the HLR the next is tried.
const REDIAL: Duration = Duration::from_secs(1);

/// What waits for the HLR waits for one to two of these.
const EXPIRY: Duration = Duration::from_secs(15);

/// An attempt to connect to the HLR.
type Dial = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// Takes MSCs in until told to stop.
pub(crate) async fn run(
    options: Arc<GsmOptions>,
    acceptor: Acceptor,
    hlr: String,
    name: Name,
    shared: Arc<Shared>,
    desk: UnboundedSender<Inputs>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut next: ConnId = 0;
    // Whoever finds the port could fill the log otherwise.
    let log = Arc::new(Mutex::new(Bucket::new(2.0, 20, Instant::now())));
    loop {
        let (mut msc, remote, place) = tokio::select! {
            accepted = acceptor.accept() => accepted,
            () = stopped(&mut stop) => return,
        };
        next += 1;
        let conn = next;
        let (options, hlr, name) = (options.clone(), hlr.clone(), name.clone());
        let (shared, desk, log, mut stop) = (shared.clone(), desk.clone(), log.clone(), stop.clone());
        tokio::spawn(async move {
            let pair = async {
                let mut from_msc = BytesMut::with_capacity(READ);
                identity::ask(&mut msc, &mut from_msc, options.connect_timeout).await?;
                place.identify();
                let mut proxy = Proxy::new(Some(name));
                proxy.hlr_is_gone();
                let pair = Pair {
                    conn,
                    remote,
                    msc,
                    dial: Some(dial(hlr.clone(), Duration::ZERO, options.connect_timeout)),
                    hlr: None,
                    away_since: Instant::now(),
                    address: hlr,
                    options: options.clone(),
                    proxy,
                    shared: shared.clone(),
                    desk: desk.clone(),
                    from_msc,
                    from_hlr: BytesMut::with_capacity(READ),
                    to_msc: Bytes::new(),
                    to_hlr: Bytes::new(),
                    named: None,
                    counted: 0,
                };
                pair.run().await
            };
            let ended = tokio::select! {
                ended = pair => ended,
                () = place.displaced() => Err(io::Error::other("it has not said who it is, and another needs its place")),
                () = stopped(&mut stop) => Ok(()),
            };
            if let Err(error) = ended {
                if log.lock().take(1, Instant::now()) {
                    tracing::warn!(network = options.name, %remote, %error, "an MSC's connection has ended");
                }
                shared.counts.error(format!("MSC {remote}: {error}"));
            }
            // The desk does not mind to hear of one that it never knew.
            let _ = desk.send((conn, vec![Input::Gone]));
            drop(place);
        });
    }
}

/// Finds within a minute that the other end has gone without a word: as long as a connection seems to be there, it keeps
/// its subscribers.
fn keep_alive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(20))
        .with_interval(Duration::from_secs(10))
        .with_retries(3)
}

fn dial(address: String, after: Duration, within: Duration) -> Dial {
    Box::pin(async move {
        tokio::time::sleep(after).await;
        connect(&address, within).await
    })
}

async fn dialled(dial: &mut Option<Dial>) -> io::Result<TcpStream> {
    match dial {
        Some(dial) => dial.await,
        None => std::future::pending().await,
    }
}

async fn readable(socket: Option<&TcpStream>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

async fn writable(socket: Option<&TcpStream>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.writable().await,
        None => std::future::pending().await,
    }
}

struct Pair {
    conn: ConnId,
    remote: SocketAddr,
    options: Arc<GsmOptions>,
    msc: TcpStream,
    /// The HLR, host and port.
    address: String,
    /// The connection to the HLR, while there is one.
    hlr: Option<TcpStream>,
    /// The next attempt to connect to the HLR, while there is no connection.
    dial: Option<Dial>,
    /// Since when there is no connection to the HLR.
    away_since: Instant,
    proxy: Proxy,
    shared: Arc<Shared>,
    desk: UnboundedSender<Inputs>,
    from_msc: BytesMut,
    from_hlr: BytesMut,
    /// What is being written.
    to_msc: Bytes,
    to_hlr: Bytes,
    /// The MSC's name, and from then on where our messages for it come from.
    named: Option<Arc<str>>,
    /// Frames that have been counted as passed on.
    counted: u64,
}

impl Pair {
    async fn run(mut self) -> io::Result<()> {
        SockRef::from(&self.msc).set_tcp_keepalive(&keep_alive())?;
        let mut expiry = tokio::time::interval(EXPIRY);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (out, mut messages): (Out, UnboundedReceiver<Vec<gsup::Message>>) = unbounded_channel();
        // What the MSC sent while it was asked who it is; the loop below reads only what comes anew.
        self.proxy.from_msc(&mut self.from_msc);
        loop {
            // First what others wait for, then our own affairs.
            self.write_to_hlr();
            write(&self.msc, &mut self.to_msc, || self.proxy.to_msc())?;
            if !self.tell(&out) {
                return Ok(());
            }
            let msc_full = self.proxy.waiting_for_msc() + self.to_msc.len() >= WAITING;
            let hlr_full = self.proxy.waiting_for_hlr() + self.to_hlr.len() >= WAITING;
            tokio::select! {
                ready = self.msc.readable(), if !hlr_full => {
                    ready?;
                    if read(&self.msc, &mut self.from_msc, "the MSC")? {
                        self.proxy.from_msc(&mut self.from_msc);
                    }
                }
                ready = readable(self.hlr.as_ref()), if !msc_full => {
                    if let Err(error) = ready.and_then(|()| self.read_from_hlr()) {
                        self.lose_hlr(&error);
                    }
                }
                ready = self.msc.writable(), if !self.to_msc.is_empty() => ready?,
                ready = writable(self.hlr.as_ref()), if !self.to_hlr.is_empty() => {
                    if let Err(error) = ready {
                        self.lose_hlr(&error);
                    }
                }
                dialled = dialled(&mut self.dial) => match dialled {
                    Ok(hlr) => self.find_hlr(hlr),
                    Err(error) => self.dial_again(&error),
                },
                _ = expiry.tick(), if self.hlr.is_none() => {
                    self.proxy.expire();
                    if self.away_since.elapsed() > self.options.hlr_outage {
                        let what = format!("the HLR {} has been away for longer than `hlr-outage`", self.address);
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
            self.lose_hlr(&error);
        }
    }

    /// What was being written and read is lost with the connection; an MSC asks again for what is not answered.
    fn lose_hlr(&mut self, error: &io::Error) {
        self.hlr = None;
        self.away_since = Instant::now();
        self.to_hlr = Bytes::new();
        self.from_hlr.clear();
        self.proxy.hlr_is_gone();
        let (network, hlr, msc) = (&self.options.name, &self.address, self.named.as_deref());
        tracing::warn!(network, hlr, msc, %error, "the connection to the HLR is lost; the MSC stays connected");
        self.dial_again(error);
    }

    fn dial_again(&mut self, error: &io::Error) {
        let error = format!("{}: {error}", self.address);
        self.shared.counts.error(format!("HLR {error}"));
        self.shared.counts.observed.hlr(Some(error));
        self.dial = Some(dial(self.address.clone(), REDIAL, self.options.connect_timeout));
    }

    fn find_hlr(&mut self, hlr: TcpStream) {
        if let Err(error) = SockRef::from(&hlr).set_tcp_keepalive(&keep_alive()) {
            return self.dial_again(&error);
        }
        self.hlr = Some(hlr);
        self.dial = None;
        self.shared.counts.observed.hlr(None);
        self.proxy.hlr_is_back();
    }

    /// Tells the desk what happened; false when there is no desk any more.
    fn tell(&mut self, out: &Out) -> bool {
        let mut inputs = Vec::new();
        while let Some(event) = self.proxy.poll_event() {
            match event {
                Event::Named(name) => {
                    if self.named.is_none() {
                        let name: Arc<str> = name.into();
                        self.named = Some(name.clone());
                        inputs.push(Input::Ready { name: Some(name), remote: self.remote, out: out.clone() });
                    }
                }
                Event::Sms(message) => inputs.push(Input::Message(message)),
                Event::Attached(imsi) => inputs.push(Input::Attached(imsi)),
                // Where the subscriber was last is where it is looked for first.
                Event::Detached(_) => {}
                Event::Number { imsi, msisdn } => {
                    let msisdn = AddressBytes::from_slice(msisdn.as_bytes());
                    self.shared.subscribers.numbered(&imsi, &msisdn);
                }
            }
        }
        let passed = self.proxy.passed();
        self.shared.counts.relayed_frames.fetch_add(passed - self.counted, Relaxed);
        self.counted = passed;
        inputs.is_empty() || self.desk.send((self.conn, inputs)).is_ok()
    }
}

/// Reads what is there; false where there is nothing after all.
fn read(socket: &TcpStream, into: &mut BytesMut, who: &str) -> io::Result<bool> {
    into.reserve(READ);
    match socket.try_read_buf(into) {
        Ok(0) => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{who} has closed the connection")))
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes as much as the socket takes.
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

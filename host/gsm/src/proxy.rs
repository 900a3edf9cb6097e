//! Between MSCs and their HLR: one connection to the HLR for every MSC's.
//!
//! What is not ours goes on as it came, written at once from the buffer into which it was read. Where one side closes or
//! breaks, so does the other: an MSC must know what its HLR's connection would have told it.

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
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// Octets that may wait for one side before the other is read no further.
const WAITING: usize = 1 << 20;

/// Octets that are read at a time.
const READ: usize = 64 << 10;

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
                let dialled = connect(&hlr, options.connect_timeout).await;
                shared.counts.observed.hlr(dialled.as_ref().err().map(|error| format!("{hlr}: {error}")));
                let hlr =
                    dialled.map_err(|error| io::Error::new(error.kind(), format!("HLR {hlr}: {error}")))?;
                let pair = Pair {
                    conn,
                    remote,
                    msc,
                    hlr,
                    proxy: Proxy::new(Some(name)).asked(),
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

struct Pair {
    conn: ConnId,
    remote: SocketAddr,
    msc: TcpStream,
    hlr: TcpStream,
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
        for socket in [&self.msc, &self.hlr] {
            SockRef::from(socket).set_tcp_keepalive(&keep_alive())?;
        }
        let (out, mut messages): (Out, UnboundedReceiver<Vec<gsup::Message>>) = unbounded_channel();
        // What the MSC sent while it was asked who it is; the loop below reads only what comes anew.
        self.proxy.from_msc(&mut self.from_msc);
        write(&self.hlr, &mut self.to_hlr, || self.proxy.to_hlr())?;
        loop {
            let msc_full = self.proxy.waiting_for_msc() + self.to_msc.len() >= WAITING;
            let hlr_full = self.proxy.waiting_for_hlr() + self.to_hlr.len() >= WAITING;
            tokio::select! {
                ready = self.msc.readable(), if !hlr_full => {
                    ready?;
                    if read(&self.msc, &mut self.from_msc, "the MSC")? {
                        self.proxy.from_msc(&mut self.from_msc);
                    }
                }
                ready = self.hlr.readable(), if !msc_full => {
                    ready?;
                    if read(&self.hlr, &mut self.from_hlr, "the HLR")? {
                        self.proxy.from_hlr(&mut self.from_hlr);
                    }
                }
                ready = self.msc.writable(), if !self.to_msc.is_empty() => ready?,
                ready = self.hlr.writable(), if !self.to_hlr.is_empty() => ready?,
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
            // First what others wait for, then our own affairs.
            write(&self.hlr, &mut self.to_hlr, || self.proxy.to_hlr())?;
            write(&self.msc, &mut self.to_msc, || self.proxy.to_msc())?;
            if !self.tell(&out) {
                return Ok(());
            }
        }
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

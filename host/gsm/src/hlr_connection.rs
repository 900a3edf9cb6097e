//! The client connection to an HLR that routes short messages by name.

use crate::link_input::{LinkInput, LinkInputs};
use crate::mt::ConnId;
use crate::options::GsmOptions;
use crate::state::GsmCounters;
use bytes::{Buf, BytesMut};
use gsup::ccm::Identity;
use gsup::client::{ClientTimeouts, Event, GsupClient};
use ports::link::BackOff;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Connects to the HLR, and reconnects until stopped.
pub(crate) async fn run(
    options: Arc<GsmOptions>,
    hlr: String,
    identity: Identity,
    counts: Arc<GsmCounters>,
    link: UnboundedSender<LinkInputs>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut backoff = BackOff::new(MAX_BACKOFF);
    let mut next: ConnId = 0;
    loop {
        next += 1;
        let started = Instant::now();
        let connection = run_connection(&options, &hlr, &identity, next, &link);
        let result = tokio::select! {
            result = connection => result,
            _ = wait_until_stopped(&mut stop) => break,
        };
        let _ = link.send((next, vec![LinkInput::Closed]));
        if started.elapsed() > MAX_BACKOFF {
            backoff.reset();
        }
        let wait = backoff.next_wait(Duration::ZERO);
        if let Err(error) = result {
            tracing::warn!(network = options.name, hlr, %error, retry_in = ?wait, "hlr unreachable");
            counts.error(format!("HLR {hlr}: {error}"));
            counts.observed_faults.set_hlr_error(Some(format!("{hlr}: {error}")));
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = wait_until_stopped(&mut stop) => break,
        }
    }
}

/// Waits until the link has ended; the connection must outlive it.
pub(crate) async fn wait_until_stopped(stop: &mut watch::Receiver<Option<Instant>>) {
    while stop.changed().await.is_ok() {}
}

pub(crate) async fn connect(address: &str, within: Duration) -> io::Result<TcpStream> {
    let stream = tokio::time::timeout(within, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {within:?}")))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn run_connection(
    options: &GsmOptions,
    hlr: &str,
    identity: &Identity,
    conn: ConnId,
    link: &UnboundedSender<LinkInputs>,
) -> io::Result<()> {
    let mut stream = connect(hlr, options.connect_timeout).await?;
    let remote = stream.peer_addr()?;
    let (mut read, mut write) = stream.split();
    let (out, mut messages) = unbounded_channel::<Vec<gsup::GsupMessage>>();
    let mut out = Some(out);
    let started = Instant::now();
    let now = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let keep_alive = u64::try_from(options.keep_alive.as_millis()).unwrap_or(u64::MAX);
    let timeout = ClientTimeouts {
        keep_alive_interval: keep_alive,
        silence_timeout: keep_alive.saturating_mul(3),
        ..ClientTimeouts::default()
    };
    let mut client = GsupClient::new(now(), identity.clone(), timeout);
    let mut input = BytesMut::with_capacity(64 << 10);
    let mut output = BytesMut::new();
    loop {
        let tick = async {
            match client.next_tick() {
                Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(now()))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            taken = read.read_buf(&mut input) => {
                if taken? == 0 {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the HLR"));
                }
                client.receive(now(), &input);
                input.clear();
            }
            batch = messages.recv() => {
                for message in batch.unwrap_or_default() {
                    // The link writes only to connections that are ready.
                    let _ = client.send(&message);
                }
            }
            written = write.write(&output), if !output.is_empty() => output.advance(written?),
            () = tick => client.tick(now()),
        }
        let mut inputs = Vec::new();
        while let Some(event) = client.poll_event() {
            match event {
                Event::Ready => {
                    if let Some(out) = out.take() {
                        inputs.push(LinkInput::Ready { name: None, remote, out });
                    }
                }
                Event::Message(message) => inputs.push(LinkInput::Message(message)),
                Event::Undecodable(error) => {
                    tracing::debug!(network = options.name, %error, "gsup message dropped");
                }
                Event::Lost(loss) => return Err(io::Error::other(loss.to_string())),
            }
        }
        if !inputs.is_empty() && link.send((conn, inputs)).is_err() {
            return Ok(());
        }
        output.extend_from_slice(client.output());
        client.output().clear();
    }
}

//! A client of an HLR that routes short messages by name.

use crate::desk::{Input, Inputs};
use crate::mt::ConnId;
use crate::options::GsmOptions;
use crate::state::Counts;
use bytes::{Buf, BytesMut};
use gsup::ccm::Identity;
use gsup::client::{Client, Event, Patience};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Connects to the HLR, again and again, until told to stop.
pub(crate) async fn run(
    options: Arc<GsmOptions>,
    hlr: String,
    identity: Identity,
    counts: Arc<Counts>,
    desk: UnboundedSender<Inputs>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut wait = Duration::from_secs(1);
    let mut next: ConnId = 0;
    loop {
        next += 1;
        let begun = Instant::now();
        let connection = one(&options, &hlr, &identity, next, &desk);
        let ended = tokio::select! {
            ended = connection => ended,
            _ = stopped(&mut stop) => break,
        };
        let _ = desk.send((next, vec![Input::Gone]));
        // What had worked is tried again soon; what never did, less and less often.
        wait = if begun.elapsed() > LONGEST_WAIT {
            Duration::from_secs(1)
        } else {
            (wait * 2).min(LONGEST_WAIT)
        };
        if let Err(error) = ended {
            tracing::warn!(network = options.name, hlr, %error, again_in = ?wait, "no connection to the HLR");
            counts.error(format!("HLR {hlr}: {error}"));
            counts.observed.hlr(Some(format!("{hlr}: {error}")));
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stopped(&mut stop) => break,
        }
    }
}

/// Waits until the desk has left: the connection serves it to the end.
pub(crate) async fn stopped(stop: &mut watch::Receiver<Option<Instant>>) {
    while stop.changed().await.is_ok() {}
}

pub(crate) async fn connect(address: &str, within: Duration) -> io::Result<TcpStream> {
    let stream = tokio::time::timeout(within, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {within:?}")))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn one(
    options: &GsmOptions,
    hlr: &str,
    identity: &Identity,
    conn: ConnId,
    desk: &UnboundedSender<Inputs>,
) -> io::Result<()> {
    let mut stream = connect(hlr, options.connect_timeout).await?;
    let remote = stream.peer_addr()?;
    let (mut read, mut write) = stream.split();
    let (out, mut messages) = unbounded_channel::<Vec<gsup::Message>>();
    let mut out = Some(out);
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let keep_alive = u64::try_from(options.keep_alive.as_millis()).unwrap_or(u64::MAX);
    let patience = Patience { keep_alive, silence: keep_alive.saturating_mul(3), ..Patience::default() };
    let mut client = Client::new(now(), identity.clone(), patience);
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
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the HLR has closed the connection"));
                }
                client.receive(now(), &input);
                input.clear();
            }
            batch = messages.recv() => {
                for message in batch.unwrap_or_default() {
                    // The desk writes only to whoever has said that it is ready.
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
                        inputs.push(Input::Ready { name: None, remote, out });
                    }
                }
                Event::Message(message) => inputs.push(Input::Message(message)),
                Event::Broken(error) => tracing::debug!(network = options.name, %error, "dropped"),
                Event::Lost(loss) => return Err(io::Error::other(loss.to_string())),
            }
        }
        if !inputs.is_empty() && desk.send((conn, inputs)).is_err() {
            return Ok(());
        }
        output.extend_from_slice(client.output());
        client.output().clear();
    }
}

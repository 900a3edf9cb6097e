//! One connection: octets between the socket and the dialogue.

use crate::accounts::Account;
use crate::dialogue::{Dialogue, Login};
use crate::door::{Shared, now};
use doors::{Deliveries, Delivery, Entrance, Place};
use model::LinkId;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep_until;

/// Octets of one read. The memory belongs to the thread: connections that are idle are many.
const READ: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// Why nothing more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The client has said all.
    Heard,
    /// The connection is broken: what was asked is done, and answered to nobody.
    Broken,
    /// We stop, at this time at the latest.
    Leaving(Instant),
}

pub(crate) struct Connection {
    shared: Arc<Shared>,
    remote: SocketAddr,
    place: Arc<Place>,
    dialogue: Dialogue,
    link: LinkId,
    deliveries: Deliveries,
    ending: Option<Ending>,
    /// We stop.
    leaves: bool,
    /// Since when the client takes nothing of what waits for it.
    stuck: Option<Instant>,
    login_until: Instant,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, remote: SocketAddr, local: SocketAddr, place: Arc<Place>) -> Self {
        let (link, deliveries) = shared.hub.add();
        let session = shared.session(local);
        let dialogue = Dialogue::new(shared.clone(), session, link);
        let login_until = now() + shared.options.login_timeout;
        Self {
            shared,
            remote,
            place,
            dialogue,
            link,
            deliveries,
            ending: None,
            leaves: false,
            stuck: None,
            login_until,
        }
    }

    /// Serves the client until it is gone or one of the two has enough.
    pub(crate) async fn run(mut self, mut stream: TcpStream, orders: watch::Receiver<Option<Instant>>) {
        let (mut reader, writer) = stream.split();
        // Made once: a new one for each turn of the loop would have all connections meet at its lock.
        let stopped = stopped(orders);
        tokio::pin!(stopped);
        let alarm = sleep_until(self.login_until.into());
        tokio::pin!(alarm);
        loop {
            self.hand_over(&writer).await;
            if self.dialogue.session.is_http() {
                if self.shared.may_log() {
                    let remote = self.remote;
                    tracing::warn!(%remote, "a connection to the Redis listener sends an HTTP request: closed");
                }
                break;
            }
            let unsent = !self.dialogue.session.output().is_empty();
            if !unsent
                && (self.dialogue.session.is_over() || (self.ending.is_some() && self.dialogue.is_idle()))
            {
                break;
            }
            let alarmed = self.alarm();
            if let Some(at) = alarmed
                && alarm.deadline() != at.into()
            {
                alarm.as_mut().reset(at.into());
            }
            let reads = self.ending.is_none() && self.dialogue.session.wants_bytes();
            // In no fixed order: a client that always has something to say must not keep the clock from being looked at.
            tokio::select! {
                batch = self.deliveries.recv() => match batch {
                    Some(batch) => self.take(batch),
                    None => break,
                },
                read = receive(&mut reader, &mut self.dialogue), if reads => match read {
                    Ok(0) => self.ending = Some(Ending::Heard),
                    Ok(_) => {}
                    Err(_) => self.ending = Some(Ending::Broken),
                },
                _ = writer.writable(), if unsent => {}
                until = &mut stopped, if !self.leaves => {
                    self.leaves = true;
                    if self.ending != Some(Ending::Broken) {
                        self.ending = Some(Ending::Leaving(until));
                    }
                }
                () = &mut alarm, if alarmed.is_some() => {
                    if self.ring() {
                        break;
                    }
                }
            }
        }
    }

    /// When to look at the clock.
    fn alarm(&self) -> Option<Instant> {
        let stalled = self.stuck.map(|since| since + self.shared.options.stall_timeout);
        let login = (!self.dialogue.session.is_known()).then_some(self.login_until);
        let leaving = match self.ending {
            Some(Ending::Leaving(until)) => Some(until),
            _ => None,
        };
        [stalled, login, leaving].into_iter().flatten().min()
    }

    /// A time is over; says whether that is the end.
    fn ring(&mut self) -> bool {
        let over = self.alarm().is_some_and(|at| at <= now());
        if over && self.shared.may_log() {
            let (known, stuck) = (self.dialogue.session.is_known(), self.stuck.is_some());
            tracing::info!(remote = %self.remote, known, stuck, "a Redis client is cut off: its time is over");
        }
        over
    }

    /// Gives to the core what is asked, and to the client what is answered, until neither can go on.
    async fn hand_over(&mut self, writer: &WriteHalf<'_>) {
        loop {
            while let Some(login) = self.dialogue.collect() {
                self.push();
                let account = self.judge(&login).await;
                self.dialogue.judged(&login, account);
            }
            self.push();
            if !self.write(writer) {
                return;
            }
        }
    }

    fn push(&mut self) {
        let events = self.dialogue.events();
        if !events.is_empty() {
            self.shared.core.push(events);
        }
    }

    /// Writes what the socket takes; says whether that was anything.
    fn write(&mut self, writer: &WriteHalf<'_>) -> bool {
        let output = self.dialogue.session.output();
        if output.is_empty() {
            return false;
        }
        let written = match self.ending {
            Some(Ending::Broken) => output.len(),
            _ => match writer.try_write(output) {
                Ok(0) => return false,
                Ok(octets) => octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stuck.get_or_insert_with(now);
                    return false;
                }
                Err(_) => {
                    self.ending = Some(Ending::Broken);
                    output.len()
                }
            },
        };
        self.dialogue.session.written(written);
        self.stuck = None;
        true
    }

    fn take(&mut self, batch: Vec<Delivery>) {
        let mut next = Some(batch);
        while let Some(batch) = next {
            for delivery in batch {
                if let Delivery::Answer { token, answer } = delivery {
                    self.dialogue.answered(token, answer);
                }
            }
            next = self.deliveries.try_recv().ok();
        }
    }

    /// Whose name and password these are. A name that nobody has and a wrong network take as long as a
    /// wrong password.
    async fn judge(&self, login: &Login) -> Option<Arc<Account>> {
        let shared = &self.shared;
        let address = self.remote.ip();
        let account = shared.accounts.find(&login.name);
        let hash = account.as_ref().map(|account| account.options.password_hash.as_str());
        let is_near = account.as_ref().is_some_and(|account| {
            let networks = &account.options.networks;
            networks.is_empty() || networks.iter().any(|network| network.contains(address))
        });
        let check = async {
            match hash {
                Some(hash) if is_near => shared.verifier.verify(hash, &login.password, now()).await,
                hash => {
                    shared.verifier.refuse(hash.or_else(|| shared.accounts.any_hash()), &login.password).await
                }
            }
        };
        let right = shared.limiter.check(Entrance::Redis, &login.name, address, check).await;
        if right == Ok(true) {
            self.place.identify();
            return account;
        }
        shared.counts.wrong_passwords.fetch_add(1, Relaxed);
        if right.is_ok() && shared.may_log() {
            let name = String::from_utf8_lossy(&login.name);
            tracing::warn!(remote = %self.remote, account = %name, "a Redis client's name or password is wrong");
        }
        None
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.hub.remove(self.link);
    }
}

/// Waits for the order to stop: until when it must be done.
async fn stopped(mut orders: watch::Receiver<Option<Instant>>) -> Instant {
    match orders.wait_for(Option::is_some).await {
        Ok(until) => until.unwrap_or_else(now),
        Err(_) => now(),
    }
}

/// Reads once, into the session.
async fn receive(reader: &mut ReadHalf<'_>, dialogue: &mut Dialogue) -> io::Result<usize> {
    poll_fn(|context| {
        BUFFER.with_borrow_mut(|buffer| {
            let mut into = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *reader).poll_read(context, &mut into))?;
            dialogue.session.receive(into.filled());
            Poll::Ready(Ok(into.filled().len()))
        })
    })
    .await
}

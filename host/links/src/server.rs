//! The server's side: connections that come in, and who may bind.

use crate::accounts::Control;
use crate::link::{Judge, Judgement, Link};
use crate::listener::{Admit, LeaveOrders};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::state::{LinkRecord, LinkRole, Phase};
use crate::{ListenerOptions, TlsError, clock, tls};
use doors::{Entrance, Place};
use model::PeerId;
use smpp::{Bind, Options, Session, Status, Version};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Its address.
    #[error("listener {name:?}: cannot listen on {address}: {reason}")]
    Socket {
        /// The listener.
        name: String,
        /// The address.
        address: SocketAddr,
        /// Why not.
        reason: io::Error,
    },
    /// Its TLS files.
    #[error("listener {name:?}: {reason}")]
    Tls {
        /// The listener.
        name: String,
        /// What is wrong.
        reason: TlsError,
    },
    /// There is one of that name.
    #[error("there is a listener {0:?} already")]
    Twice(String),
    /// The appliance is shutting down.
    #[error("the appliance is shutting down")]
    ShuttingDown,
}

struct Doorman {
    shared: Arc<Shared>,
    options: ListenerOptions,
    acceptor: Option<TlsAcceptor>,
    orders: LeaveOrders,
}

/// The TLS side of a listener.
pub(crate) fn acceptor(options: &ListenerOptions) -> Result<Option<TlsAcceptor>, ListenError> {
    let Some(files) = &options.tls else { return Ok(None) };
    let acceptor = tls::acceptor(files);
    acceptor.map(Some).map_err(|reason| ListenError::Tls { name: options.name.clone(), reason })
}

/// Who admits the connections of an SMPP listener.
pub(crate) fn doorman(
    shared: Arc<Shared>,
    options: ListenerOptions,
    acceptor: Option<TlsAcceptor>,
    orders: LeaveOrders,
) -> Admit {
    let doorman = Arc::new(Doorman { shared, options, acceptor, orders });
    Box::new(move |stream, remote, place, alive| doorman.clone().admit(stream, remote, place, alive))
}

impl Doorman {
    fn admit(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: Place, alive: &mpsc::Sender<()>) {
        let alive = alive.clone();
        let place = Arc::new(place);
        tokio::spawn(async move {
            // Only one that is not bound is displaced, and it is owed nothing.
            tokio::select! {
                () = self.serve(stream, remote, place.clone()) => {}
                () = place.displaced() => {}
            }
            drop(alive);
        });
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: Arc<Place>) {
        let began = clock::now();
        let (control, receiver) = unbounded_channel();
        let socket = match &self.acceptor {
            None => Socket::Plain(stream),
            Some(acceptor) => {
                match tokio::time::timeout(self.options.bind_timeout, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => Socket::Tls(Box::new(stream.into())),
                    failed => {
                        let error = match failed {
                            Ok(Err(error)) => error.to_string(),
                            _ => "no handshake in time".to_owned(),
                        };
                        self.shared.doors.handshakes_failed.fetch_add(1, Relaxed);
                        if self.shared.lines.allow(clock::now()) {
                            tracing::warn!(listener = %self.options.name, %remote, %error, "TLS handshake failed");
                        }
                        return;
                    }
                }
            }
        };
        let session = Session::server(began, self.session_options());
        let unknown = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, self.acceptor.is_some());
        unknown.remote(remote);
        unknown.phase(Phase::Binding);
        let judge = self.clone().judge(remote, place, control.clone());
        let link = Link::incoming(self.shared.clone(), unknown, socket, session, receiver, judge);
        let watching = self.watch(control);
        let ended = link.run();
        tokio::pin!(watching, ended);
        // The watcher only ends when the link is gone; it is polled here to save a task a connection.
        let ended = tokio::select! {
            ended = &mut ended => ended,
            () = &mut watching => ended.await,
        };
        if !ended.was_bound && ended.refused.is_none() && self.shared.lines.allow(clock::now()) {
            tracing::info!(
                listener = %self.options.name, %remote, why = %ended.why, "closed without a bind"
            );
        }
    }

    /// Passes the listener's own end on to a connection.
    async fn watch(&self, control: UnboundedSender<Control>) {
        let mut orders = self.orders.clone();
        let until = match orders.wait_for(Option::is_some).await {
            Ok(order) => *order,
            Err(_) => None,
        };
        let _ = control.send(Control::Leave(until.unwrap_or_else(clock::now)));
    }

    fn session_options(&self) -> Options {
        let options = &self.options;
        Options {
            system_id: self.shared.options.system_id.clone(),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            inactivity: options.inactivity,
            partial_timeout: options.partial_timeout,
            ..Options::default()
        }
    }

    fn judge(
        self: Arc<Self>,
        remote: SocketAddr,
        place: Arc<Place>,
        control: UnboundedSender<Control>,
    ) -> Judge {
        Box::new(move |bind| {
            let doorman = self.clone();
            let (place, control) = (place.clone(), control.clone());
            Box::pin(async move {
                let judgement = doorman.judge_bind(bind, remote, control).await;
                if matches!(judgement, Judgement::Accept { .. }) {
                    place.identify();
                }
                judgement
            })
        })
    }

    /// Whether an ESME may bind. An unknown system_id, a wrong password and a wrong network get the same answer, and take the
    /// same time.
    async fn judge_bind(
        &self,
        bind: Bind,
        remote: SocketAddr,
        control: UnboundedSender<Control>,
    ) -> Judgement {
        let shared = &self.shared;
        let now = clock::now();
        let account = shared.accounts.find(&bind.system_id);
        let hash = account.as_ref().map(|account| account.options().password_hash.clone());
        let refuse = |status: Status, why: &'static str| {
            shared.doors.binds_refused.fetch_add(1, Relaxed);
            if shared.lines.allow(clock::now()) {
                tracing::warn!(
                    listener = %self.options.name,
                    %remote,
                    system_id = %String::from_utf8_lossy(&bind.system_id),
                    bind = bind.mode.name(),
                    %status,
                    why,
                    "bind refused"
                );
            }
            Judgement::Refuse { status, why }
        };
        let is_near = account.as_ref().is_some_and(|account| {
            let networks = &account.options().networks;
            networks.is_empty() || networks.iter().any(|network| network.contains(remote.ip()))
        });
        let check = async {
            match &hash {
                Some(hash) if is_near => shared.verifier.verify(hash, &bind.password, now).await,
                hash => {
                    let any = hash.clone().or_else(|| shared.accounts.any_hash());
                    shared.verifier.refuse(any.as_deref(), &bind.password).await
                }
            }
        };
        let account = match shared.limiter.check(Entrance::Smpp, &bind.system_id, remote.ip(), check).await {
            Ok(true) => account,
            Ok(false) if account.is_some() && !is_near => {
                return refuse(Status::RINVPASWD, "the account may not bind from this address");
            }
            Ok(false) => None,
            Err(_) => {
                return refuse(Status::RBINDFAIL, "too many wrong binds of this account from its address");
            }
        };
        let Some(account) = account else {
            return refuse(Status::RINVPASWD, "unknown system_id or wrong password");
        };
        let options = account.options();
        if shared.full.load(Relaxed) {
            return refuse(Status::RBINDFAIL, "nobody new is let in while the appliance drains");
        }
        if !options.bind.allow(bind.mode) {
            return refuse(Status::RBINDFAIL, "the account may not bind in this mode");
        }
        let record =
            LinkRecord::new(LinkRole::Server, options.peer, &options.name, 0, self.acceptor.is_some());
        record.remote(remote);
        // Half of its own time to bind at most: the answer must come before that is over.
        let patience = self.options.enquire_timeout.min(self.options.bind_timeout / 2);
        let Some(seat) = account.seat(&record, &control, patience).await else {
            return refuse(Status::RBINDFAIL, "the account has as many sessions as it may");
        };
        shared.doors.binds.fetch_add(1, Relaxed);
        let version = Version(bind.interface_version);
        Judgement::Accept { account, seat, record, version, mode: bind.mode }
    }
}

/// The receiving end of a connection's orders.
pub(crate) type Orders = UnboundedReceiver<Control>;

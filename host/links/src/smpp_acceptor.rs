//! Incoming connections of an SMPP listener.

use crate::accounts::LinkControl;
use crate::bind_authenticator::BindAuthenticator;
use crate::link::Link;
use crate::link_record::{LinkPhase, LinkRecord, LinkRole};
use crate::listener::{CloseSignal, ConnectionHandler, ListenerError};
use crate::shared::Shared;
use crate::tracked_socket::Socket;
use crate::{ListenerOptions, clock, tls};
use model::PeerId;
use ports::ConnectionPermit;
use smpp::{Session, SmppOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// The acceptor of one SMPP listener.
pub(crate) struct SmppAcceptor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: ListenerOptions,
    pub(crate) tls: Option<TlsAcceptor>,
    close_signal: CloseSignal,
}

/// Reads the TLS files of a listener.
pub(crate) fn tls_acceptor(options: &ListenerOptions) -> Result<Option<TlsAcceptor>, ListenerError> {
    let Some(files) = &options.tls else { return Ok(None) };
    let acceptor = tls::acceptor(files);
    acceptor.map(Some).map_err(|reason| ListenerError::Tls { name: options.name.clone(), reason })
}

/// Creates the connection handler of an SMPP listener.
pub(crate) fn connection_handler(
    shared: Arc<Shared>,
    options: ListenerOptions,
    tls: Option<TlsAcceptor>,
    close_signal: CloseSignal,
) -> ConnectionHandler {
    let acceptor = Arc::new(SmppAcceptor { shared, options, tls, close_signal });
    Box::new(move |stream, remote, permit, alive| acceptor.clone().accept(stream, remote, permit, alive))
}

impl SmppAcceptor {
    fn accept(
        self: Arc<Self>,
        stream: TcpStream,
        remote: SocketAddr,
        permit: ConnectionPermit,
        alive: &mpsc::Sender<()>,
    ) {
        let alive = alive.clone();
        let permit = Arc::new(permit);
        tokio::spawn(async move {
            // Only an unbound connection is displaced. It waits for no answer.
            tokio::select! {
                () = self.run(stream, remote, permit.clone()) => {}
                () = permit.displaced() => {}
            }
            drop(alive);
        });
    }

    async fn run(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, permit: Arc<ConnectionPermit>) {
        let began = clock::now();
        let (control, receiver) = unbounded_channel();
        let socket = match &self.tls {
            None => Socket::Plain(stream),
            Some(acceptor) => {
                match tokio::time::timeout(self.options.bind_timeout, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => Socket::Tls(Box::new(stream.into())),
                    failed => {
                        let error = match failed {
                            Ok(Err(error)) => error.to_string(),
                            _ => "handshake timeout".to_owned(),
                        };
                        self.shared.bind_counters.handshakes_failed.fetch_add(1, Relaxed);
                        if self.shared.log.take(clock::now()).is_some() {
                            tracing::warn!(listener = %self.options.name, %remote, %error, "TLS handshake failed");
                        }
                        return;
                    }
                }
            }
        };
        let session = Session::server(began, self.session_options());
        let record = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, self.tls.is_some());
        record.set_remote(remote);
        record.set_phase(LinkPhase::Binding);
        let authenticator = Arc::new(BindAuthenticator {
            acceptor: self.clone(),
            remote,
            connection: permit,
            control: control.clone(),
        });
        let link = Link::incoming(self.shared.clone(), record, socket, session, receiver, authenticator);
        let close_forwarder = self.forward_close(control);
        let end = link.run();
        tokio::pin!(close_forwarder, end);
        // The forwarder ends only after the link; polling it here saves one task per connection.
        let end = tokio::select! {
            end = &mut end => end,
            () = &mut close_forwarder => end.await,
        };
        if !end.was_bound && end.refused.is_none() && self.shared.log.take(clock::now()).is_some() {
            tracing::info!(
                listener = %self.options.name, %remote, reason = %end.reason, "connection closed before bind"
            );
        }
    }

    /// Forwards the listener's close signal to a connection.
    async fn forward_close(&self, control: UnboundedSender<LinkControl>) {
        let mut close_signal = self.close_signal.clone();
        let until = match close_signal.wait_for(Option::is_some).await {
            Ok(until) => *until,
            Err(_) => None,
        };
        let _ = control.send(LinkControl::Close(until.unwrap_or_else(clock::now)));
    }

    fn session_options(&self) -> SmppOptions {
        let options = &self.options;
        SmppOptions {
            system_id: self.shared.options.system_id.clone(),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            inactivity: options.inactivity,
            partial_timeout: options.partial_timeout,
            ..SmppOptions::default()
        }
    }
}

//! Incoming connections of an SGIP listener.

use super::bind_authenticator::BindAuthenticator;
use super::connection::Connection;
use super::options::SgipListenerOptions;
use crate::accounts::LinkControl;
use crate::clock;
use crate::link_record::{LinkPhase, LinkRecord, LinkRole};
use crate::listener::{CloseSignal, ConnectionHandler};
use crate::shared::Shared;
use crate::tracked_socket::Socket;
use model::PeerId;
use ports::ConnectionPermit;
use sgip::{Session, SgipOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};

/// The acceptor of one SGIP listener.
pub(super) struct SgipAcceptor {
    pub(super) shared: Arc<Shared>,
    pub(super) options: SgipListenerOptions,
    close_signal: CloseSignal,
}

/// Creates the connection handler of an SGIP listener.
pub(crate) fn connection_handler(
    shared: Arc<Shared>,
    options: SgipListenerOptions,
    close_signal: CloseSignal,
) -> ConnectionHandler {
    let acceptor = Arc::new(SgipAcceptor { shared, options, close_signal });
    Box::new(move |stream, remote, permit, alive| acceptor.clone().accept(stream, remote, permit, alive))
}

impl SgipAcceptor {
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
        let (control, receiver) = unbounded_channel();
        let options = SgipOptions {
            bind_timeout: self.options.bind_timeout,
            idle: self.options.idle,
            ..SgipOptions::default()
        };
        let session = Session::acceptor(clock::now(), options);
        let record = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, false);
        record.set_remote(remote);
        record.set_phase(LinkPhase::Binding);
        let authenticator =
            Arc::new(BindAuthenticator { acceptor: self.clone(), remote, connection: permit });
        let socket = Socket::Plain(stream);
        let connection =
            Connection::incoming(self.shared.clone(), record, socket, session, receiver, authenticator);
        let close_forwarder = self.forward_close(control);
        let end = connection.run();
        tokio::pin!(close_forwarder, end);
        let end = tokio::select! {
            end = &mut end => end,
            () = &mut close_forwarder => end.await,
        };
        if end.bound_at.is_none() && end.refused.is_none() && self.shared.log.take(clock::now()).is_some() {
            tracing::info!(
                listener = %self.options.name, %remote, reason = %end.reason, "connection closed before login"
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
}

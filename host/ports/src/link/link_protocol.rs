use super::{Link, LinkBlocker};
use crate::{FirstRequest, LinkCommand, Protocol};
use bytes::BytesMut;
use std::pin::Pin;
use std::time::Instant;

/// A login whose authentication runs.
pub type PendingLogin<L> = Pin<Box<dyn Future<Output = L> + Send>>;

/// The result of [`LinkProtocol::next_event`].
pub enum LinkStep<L> {
    /// There is no event.
    Idle,
    /// An event was handled.
    Handled,
    /// The peer wants to log in; [`LinkProtocol::on_login`] follows.
    Login(PendingLogin<L>),
}

/// One protocol on one connection: the session, which knows neither sockets nor clocks, and the mapping between its
/// PDUs and the engine's messages.
///
/// The driver reads into [`LinkProtocol::input`], lets the session process it, handles all events, fills the window, and
/// writes [`LinkProtocol::output`]. A call may push engine events to [`Link::events`]; they leave once a turn.
pub trait LinkProtocol: Send + 'static {
    /// The protocol, for the log and for the counters of refused submissions.
    const PROTOCOL: Protocol;
    /// The decision on a peer's login.
    type Login: Send + 'static;

    /// The session's input buffer.
    fn input(&mut self) -> &mut BytesMut;
    /// The session's output, from which the driver removes what is written.
    fn output(&mut self) -> &mut BytesMut;
    /// Whether the session takes more input.
    fn wants_input(&self) -> bool;
    /// Processes the input. Called again after answers, which may have freed the window.
    fn process(&mut self, now: Instant);
    /// The time at which [`LinkProtocol::on_timeout`] must be called.
    fn deadline(&self) -> Option<Instant>;
    /// Handles the session's timers that are due.
    fn on_timeout(&mut self, now: Instant);
    /// Whether requests may be exchanged: after the login, and before either side logs out.
    fn is_bound(&self) -> bool;
    /// Requests of ours that are unanswered.
    fn in_flight(&self) -> usize;
    /// Requests of the peer that wait for our answer.
    fn unanswered_in(&self) -> usize;

    /// Handles the session's next event. The end of the session is reported by [`Link::end`].
    fn next_event(&mut self, link: &mut Link) -> LinkStep<Self::Login>;
    /// Applies the decision on the peer's login.
    fn on_login(&mut self, link: &mut Link, login: Self::Login);
    /// Handles a command of the engine.
    fn on_command(&mut self, link: &mut Link, command: LinkCommand);
    /// Gives the session as many messages as its window takes. Returns whether there were any.
    fn fill_window(&mut self, link: &mut Link) -> bool;
    /// Notes that `written` octets of the stream are written: a request that begins before may have arrived.
    fn on_written(&mut self, written: u64) {
        let _ = written;
    }
    /// The limit of the throughput in the protocol.
    fn blocked_by(&self, now: Instant) -> LinkBlocker;
    /// Whether no message waits to be sent.
    fn is_idle(&self) -> bool;

    /// Requests a sign of life from the peer. Returns false if the protocol has no request for it.
    fn probe(&mut self) -> bool {
        false
    }
    /// Logs out. Returns false if our side does not: the connection is then just closed.
    fn unbind(&mut self, now: Instant) -> bool;
    /// Reports an outcome for each message that has none, after the connection has ended.
    fn close(self, link: &mut Link);

    /// The first request of a connection to a listener. The login of an account in another partition is passed on.
    fn first_request(octets: &[u8]) -> FirstRequest {
        let _ = octets;
        FirstRequest::Other
    }
    /// Whether the first octets that answer a login accept it; `None`: more are needed.
    fn is_accepted(octets: &[u8]) -> Option<bool> {
        let _ = octets;
        Some(false)
    }
    /// The refusal of a login that can be repeated later.
    fn refuse_for_now(first_request: &[u8]) -> Vec<u8> {
        let _ = first_request;
        Vec::new()
    }
}

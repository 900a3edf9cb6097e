//! Links: one task per connection, the same for every protocol. A protocol brings its session without I/O and the
//! mapping between its PDUs and the engine's messages ([`LinkProtocol`]); sockets, time, back-pressure, the engine's
//! commands and the orderly end are here.

mod back_off;
mod bound_link;
mod client_tls;
mod dialer;
mod driver;
mod link_control;
mod link_deps;
mod link_handle;
mod link_protocol;
mod link_record;
mod listener;
mod node_connection;
mod tracked_socket;

pub use api::{LinkBlocker, LinkPhase, LinkRole};
pub use back_off::BackOff;
pub use bound_link::{BoundLink, Link, LoginRefusal};
pub use client_tls::{ClientTls, TlsError};
pub use dialer::{DialTarget, DialedPeer, PeerError, dial};
pub use link_control::LinkControl;
pub use link_deps::{LinkDeps, LinkLimits, ListenerCounts};
pub use link_handle::LinkHandle;
pub use link_protocol::{LinkProtocol, LinkStep, PendingLogin};
pub use link_record::{LinkRecord, LinkState, PduCounts, PduKind, Traffic};
pub use listener::{IncomingPeer, Listener, ListenerError, ListenerSettings, PreparedListener};
pub use node_connection::serve_node;
pub use tracked_socket::{PassedStream, Socket};

//! Events for the link of a core network, from its connections and HLR lookups.

use crate::hlr_lookup::HlrLookupResult;
use crate::mt::ConnId;
use gsup::GsupImsi;
use model::MessageId;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// An event for the link, mostly from a connection.
#[derive(Debug)]
pub(crate) enum LinkInput {
    /// The connection is ready for messages.
    Ready {
        /// The name of the MSC; `None` for the HLR, which reaches all subscribers.
        name: Option<Arc<str>>,
        remote: SocketAddr,
        out: ConnectionSender,
    },
    /// A short message, or an answer to one.
    Message(gsup::GsupMessage),
    /// A subscriber registered at this MSC.
    LocationUpdate(GsupImsi),
    /// The HLR lookup for the recipient of this message is finished.
    LocationLookedUp(MessageId),
    /// The HLR lookup for an absent subscriber is finished.
    AbsentLookedUp(GsupImsi, HlrLookupResult),
    /// The HLR lookup for the sender of this MO is finished.
    SenderLookedUp(gsup::GsupMessage, HlrLookupResult),
    /// The connection is closed.
    Closed,
}

/// Sends messages to a connection, in order.
pub(crate) type ConnectionSender = UnboundedSender<Vec<gsup::GsupMessage>>;

/// Events of one connection, in order.
pub(crate) type LinkInputs = (ConnId, Vec<LinkInput>);

use std::time::Instant;

/// A control message to a link.
#[derive(Debug, Clone)]
pub enum LinkControl {
    /// Close: finish the requests in progress until this moment, log out, close the connection.
    Close(Instant),
    /// Show a sign of life until this moment, or be closed: another session needs the permit.
    ProveAlive(Instant),
}

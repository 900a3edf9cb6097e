use thiserror::Error;

/// What ends a connection, in Redis's own words. The peer is told, then the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The number of elements is no number, negative beyond -1, or above the limit.
    #[error("Protocol error: invalid multibulk length")]
    Elements,
    /// The length of an element is no number, negative, or above the limit.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// An element that is not a bulk string; the octet that stood in its place.
    #[error("Protocol error: expected '$', got '{0}'")]
    NoBulk(char),
    /// A line with the number of elements that does not end.
    #[error("Protocol error: too big mbulk count string")]
    LongCount,
    /// A line with the length of an element that does not end.
    #[error("Protocol error: too big bulk count string")]
    LongLength,
    /// A plain line above the limit.
    #[error("Protocol error: too big inline request")]
    LongLine,
    /// A plain line with a quote that is not closed.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// More elements than somebody may send who has not said who they are.
    #[error("Protocol error: unauthenticated multibulk length")]
    StrangerElements,
    /// A longer element than somebody may send who has not said who they are.
    #[error("Protocol error: unauthenticated bulk length")]
    StrangerLength,
    /// An element whose end is not where its length says.
    #[error("Protocol error: invalid bulk length")]
    NoEnd,
}

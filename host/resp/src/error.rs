use thiserror::Error;

/// A protocol error with Redis's own text. It is sent to the client, and the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The number of elements is not a number, less than -1, or above the limit.
    #[error("Protocol error: invalid multibulk length")]
    Elements,
    /// The length of an element is not a number, negative, or above the limit.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// An element is not a bulk string; with the unexpected octet.
    #[error("Protocol error: expected '$', got '{0}'")]
    NotABulkString(char),
    /// The line with the number of elements is too long.
    #[error("Protocol error: too big mbulk count string")]
    LongCount,
    /// The line with the length of an element is too long.
    #[error("Protocol error: too big bulk count string")]
    LongLength,
    /// An inline request is too long.
    #[error("Protocol error: too big inline request")]
    LongLine,
    /// An inline request has an unbalanced quote.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// Too many elements for an unauthenticated client.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedElements,
    /// An element is too long for an unauthenticated client.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedLength,
    /// An element does not end where its length says.
    #[error("Protocol error: invalid bulk length")]
    MissingTerminator,
}

/// The reason why a replay cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A thread could not be started.
    #[error("replay: a thread could not be started: {0}; try again with fewer threads")]
    Thread(#[source] std::io::Error),
    /// The runtime for the connection to the archive could not be started.
    #[error("replay: the archive is not accessible: {0}")]
    Runtime(#[source] std::io::Error),
}

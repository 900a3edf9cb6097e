/// Why a replay cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The system gives no thread.
    #[error("replay: no thread can be started: {0}; try again with fewer threads")]
    Thread(#[source] std::io::Error),
    /// The system gives no runtime for the connection to the archive.
    #[error("replay: the archive cannot be asked: {0}")]
    Runtime(#[source] std::io::Error),
}

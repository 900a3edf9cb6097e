//! Streamed files.

/// A file that is sent in chunks.
#[derive(Debug)]
pub struct Export {
    /// Media type.
    pub media_type: &'static str,
    /// The chunks. An error ends the file and the connection.
    pub chunks: tokio::sync::mpsc::Receiver<Result<Vec<u8>, String>>,
}

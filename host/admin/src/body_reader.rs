//! A request body as a blocking reader, so that a large file is never in memory as a whole.

use crate::problem::{Problem, ProblemKind};
use axum::body::{Body, Bytes};
use bytes::Buf as _;
use futures_util::StreamExt as _;
use std::io::{self, Read};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of chunks that wait for the reader.
const PIECES: usize = 16;

/// Reads the chunks of a body; blocks until the next one arrives.
#[derive(Debug)]
pub(crate) struct BodyReader {
    pieces: Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.current = piece?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.current.len());
        if let (Some(target), Some(source)) = (buffer.get_mut(..count), self.current.get(..count)) {
            target.copy_from_slice(source);
        }
        self.current.advance(count);
        Ok(count)
    }
}

/// Passes a body to its [`BodyReader`].
#[derive(Debug)]
pub(crate) struct BodyFeeder {
    body: Body,
    pieces: Sender<io::Result<Bytes>>,
    limit: usize,
}

/// Creates a reader for a body of at most `limit` octets, and its feeder.
pub(crate) fn body_reader(body: Body, limit: usize) -> (BodyFeeder, BodyReader) {
    let (sender, pieces) = channel(PIECES);
    (BodyFeeder { body, pieces: sender, limit }, BodyReader { pieces, current: Bytes::new() })
}

impl BodyFeeder {
    /// Passes the body to the reader. If the reader is dropped, the rest is read and discarded, since a client that is
    /// still sending would not see the response.
    ///
    /// # Errors
    /// The body is too large or interrupted; the reader then fails.
    pub(crate) async fn feed(self) -> Result<(), Problem> {
        let Self { body, pieces, limit } = self;
        let mut body = body.into_data_stream();
        let mut left = limit;
        while let Some(piece) = body.next().await {
            let failure = match &piece {
                Ok(piece) if piece.len() <= left => {
                    left -= piece.len();
                    None
                }
                Ok(_) => Some(Problem::new(
                    ProblemKind::TooLarge,
                    format!("the body has more than {limit} octets, which is the limit of this operation"),
                )),
                Err(error) => {
                    Some(Problem::new(ProblemKind::BadRequest, format!("the body ended too early: {error}")))
                }
            };
            if let Some(failure) = failure {
                let detail = failure.detail.clone();
                // The reader may have been dropped.
                let _ = pieces.send(Err(io::Error::other(detail))).await;
                return Err(failure);
            }
            if let Ok(piece) = piece {
                let _ = pieces.send(Ok(piece)).await;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(
        pieces: Vec<io::Result<&'static str>>,
        limit: usize,
    ) -> (Result<(), Problem>, io::Result<String>) {
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let (feeder, mut reader) = body_reader(body, limit);
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        let (fed, text) = tokio::join!(feeder.feed(), reading);
        (fed, text.unwrap())
    }

    #[tokio::test]
    async fn a_body_is_read_in_pieces() {
        let (fed, text) = read(vec![Ok("ab"), Ok(""), Ok("cde")], 5).await;
        assert_eq!((fed.is_ok(), text.unwrap()), (true, "abcde".to_owned()));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_interrupted_fails() {
        let (fed, text) = read(vec![Ok("ab"), Ok("cde")], 4).await;
        assert_eq!(fed.unwrap_err().status, 413);
        assert!(text.unwrap_err().to_string().contains("more than 4 octets"));
        let (fed, text) = read(vec![Ok("ab"), Err(io::Error::other("gone"))], 9).await;
        assert_eq!((fed.unwrap_err().status, text.is_err()), (400, true));
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_end_without_its_reader() {
        let pieces = (0..100).map(|_| Ok::<_, io::Error>("x"));
        let (feeder, reader) = body_reader(Body::from_stream(futures_util::stream::iter(pieces)), 100);
        drop(reader);
        assert!(feeder.feed().await.is_ok());
    }
}

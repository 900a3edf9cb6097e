//! What a client of HTTP still sends when it has been answered already.

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Any error of a body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Octets that are read of a body that nobody wants. A client that has more to say than any request may is cut off.
const MOST: usize = 64 << 20;
/// How long the client may take for them.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request's body, of which the rest is read when nobody wants it any more.
///
/// A request that is refused by its head is answered before its body has come. A server that then closes the connection takes the
/// answer back: the client still sends, meets a reset, and never sees why (RFC 9112, section 9.6).
#[derive(Debug)]
pub struct Unread<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    body: Option<B>,
    timeout: Duration,
    octets: u64,
    /// Since when somebody reads.
    since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Unread<B> {
    /// This body, which may take `timeout` and a second for each KiB that has come of it. Then it ends with an error: a client
    /// that sends an octet now and then would hold its connection and its request for ever.
    pub fn new(body: B, timeout: Duration) -> Self {
        Self { body: Some(body), timeout, octets: 0, since: None, alarm: None }
    }

    /// Whether the client has taken longer than it may.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let until = since + self.timeout + Duration::from_secs(self.octets >> 10);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if alarm.deadline() != until {
            alarm.as_mut().reset(until);
        }
        alarm.as_mut().poll(context).is_ready()
    }
}

impl<B> Body for Unread<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        match Pin::new(body).poll_frame(context) {
            Poll::Ready(Some(frame)) => {
                let frame = frame.map_err(Into::into);
                let octets = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
                self.octets += octets as u64;
                Poll::Ready(Some(frame))
            }
            // What has ended has no rest, also where its length was not said before.
            Poll::Ready(None) => {
                self.body = None;
                Poll::Ready(None)
            }
            Poll::Pending if self.is_late(context) => {
                self.body = None;
                let late = io::Error::new(io::ErrorKind::TimedOut, "the request's body took too long");
                Poll::Ready(Some(Err(late.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for Unread<B> {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        // Outside of a runtime nobody sends, and nobody waits for an answer.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(PATIENCE, read_off(body)));
        }
    }
}

async fn read_off<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    let mut left = MOST;
    while let Some(Ok(frame)) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let octets = frame.data_ref().map_or(0, Buf::remaining);
        match left.checked_sub(octets) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    /// So many pieces of ten octets; counts those that were taken.
    struct Pieces {
        left: usize,
        taken: Arc<AtomicUsize>,
        done: Arc<Notify>,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
            self.left = left;
            self.taken.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"0123456789")))))
        }
    }

    impl Drop for Pieces {
        fn drop(&mut self) {
            self.done.notify_one();
        }
    }

    #[tokio::test]
    async fn what_nobody_reads_is_read_to_its_end_and_a_flood_is_not() {
        for (pieces, want) in [(0, 0), (1000, 1000), (usize::MAX, MOST / 10 + 1)] {
            let (taken, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
            drop(Unread::new(Pieces { left: pieces, taken: taken.clone(), done: done.clone() }, PATIENCE));
            done.notified().await;
            assert_eq!(taken.load(Ordering::Relaxed), want);
        }
    }

    /// A body of which nothing more comes after its first octet.
    struct Dripping(bool);

    impl Body for Dripping {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_ends_with_an_error() {
        let mut body = Unread::new(Dripping(false), Duration::from_millis(20));
        let mut next = async || std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(next().await.unwrap().is_ok());
        assert!(next().await.unwrap().is_err());
        assert!(next().await.is_none(), "the rest is not waited for");
    }
}

//! HTTP request bodies that are read to their end after the answer.

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

/// The octets read of a body that no handler reads. A longer body is cut off.
const MAX_DRAINED_OCTETS: usize = 64 << 20;
/// The time that the client has to send them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// A request body whose rest is read after the handler has dropped it.
///
/// A request that is refused by its head is answered before its body has arrived. If the server then closed the
/// connection, the client, which still sends, would get a reset instead of the answer (RFC 9112, section 9.6).
#[derive(Debug)]
pub struct DrainedBody<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    body: Option<B>,
    timeout: Duration,
    octets: u64,
    /// The time of the first read.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> DrainedBody<B> {
    /// Wraps a body that may take `timeout`, and one second for each KiB that has arrived. After that it ends with an
    /// error: otherwise a client that sends an octet now and then would hold its connection and its request for ever.
    pub fn new(body: B, timeout: Duration) -> Self {
        Self { body: Some(body), timeout, octets: 0, since: None, timer: None }
    }

    /// Whether the client has exceeded its time.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let until = since + self.timeout + Duration::from_secs(self.octets >> 10);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if timer.deadline() != until {
            timer.as_mut().reset(until);
        }
        timer.as_mut().poll(context).is_ready()
    }
}

impl<B> Body for DrainedBody<B>
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
            // A body that has ended has no rest, even if its length was not announced.
            Poll::Ready(None) => {
                self.body = None;
                Poll::Ready(None)
            }
            Poll::Pending if self.is_late(context) => {
                self.body = None;
                let late = io::Error::new(io::ErrorKind::TimedOut, "request body timeout");
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

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for DrainedBody<B> {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        // Outside a runtime there is no client to wait for.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(DRAIN_TIMEOUT, drain(body)));
        }
    }
}

async fn drain<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    let mut left = MAX_DRAINED_OCTETS;
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

    /// A body of `left` frames of ten octets each, which counts the frames read.
    struct CountedBody {
        left: usize,
        taken: Arc<AtomicUsize>,
        done: Arc<Notify>,
    }

    impl Body for CountedBody {
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

    impl Drop for CountedBody {
        fn drop(&mut self) {
            self.done.notify_one();
        }
    }

    #[tokio::test]
    async fn an_unread_body_is_drained_up_to_the_limit() {
        for (pieces, want) in [(0, 0), (1000, 1000), (usize::MAX, MAX_DRAINED_OCTETS / 10 + 1)] {
            let (taken, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
            drop(DrainedBody::new(
                CountedBody { left: pieces, taken: taken.clone(), done: done.clone() },
                DRAIN_TIMEOUT,
            ));
            done.notified().await;
            assert_eq!(taken.load(Ordering::Relaxed), want);
        }
    }

    /// A body that stops after its first octet.
    struct StalledBody(bool);

    impl Body for StalledBody {
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
    async fn a_stalled_body_ends_with_an_error() {
        let mut body = DrainedBody::new(StalledBody(false), Duration::from_millis(20));
        let mut next = async || std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        assert!(next().await.unwrap().is_ok());
        assert!(next().await.unwrap().is_err());
        assert!(next().await.is_none(), "the rest is not waited for");
    }
}

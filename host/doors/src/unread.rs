//! What a client of HTTP still sends when it has been answered already.

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Octets that are read of a body that nobody wants. A client that has more to say than any request may is cut off.
const MOST: usize = 64 << 20;
/// How long the client may take for them.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request's body, of which the rest is read when nobody wants it any more.
///
/// A request that is refused by its head is answered before its body has come. A server that then closes the connection takes the
/// answer back: the client still sends, meets a reset, and never sees why (RFC 9112, section 9.6).
#[derive(Debug)]
pub struct Unread<B: Body<Data = Bytes> + Send + Unpin + 'static>(Option<B>);

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Unread<B> {
    /// This body.
    pub fn new(body: B) -> Self {
        Self(Some(body))
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Body for Unread<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        // What has ended has no rest, also where its length was not said before.
        if matches!(polled, Poll::Ready(None)) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for Unread<B> {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
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
            drop(Unread::new(Pieces { left: pieces, taken: taken.clone(), done: done.clone() }));
            done.notified().await;
            assert_eq!(taken.load(Ordering::Relaxed), want);
        }
    }
}

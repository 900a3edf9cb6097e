use crossbeam_channel::{Sender, unbounded};
use std::io;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for a peer on behalf of its link. They end when this is dropped and their last call has returned.
pub(crate) struct Workers(Sender<Job>);

impl Workers {
    /// Starts `count` threads, named after the peer.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub(crate) fn start(peer: &str, count: usize) -> io::Result<Self> {
        let (sender, jobs) = unbounded::<Job>();
        for _ in 0..count.max(1) {
            let jobs = jobs.clone();
            std::thread::Builder::new().name(format!("peer-{peer}")).spawn(move || {
                for job in jobs {
                    job();
                }
            })?;
        }
        Ok(Self(sender))
    }

    /// Runs a call on a free thread. The receiver fails if the call does not return.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (result, receiver) = oneshot::channel();
        let job = Box::new(move || {
            // The link does not wait for a call that outlives it.
            let _ = result.send(work());
        });
        // Without threads the job is dropped, and the receiver fails.
        let _ = self.0.send(job);
        receiver
    }
}

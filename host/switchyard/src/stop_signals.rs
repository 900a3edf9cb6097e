//! The signals that stop the daemon.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop the daemon.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Must be called within a tokio runtime. A signal that arrives before [`recv`](Self::recv) is not lost.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for a signal and returns its name.
    pub(crate) async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

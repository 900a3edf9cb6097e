//! Notifies the service manager (systemd) of readiness, reload and stop, and sends watchdog messages while the core
//! works. If none arrives within `WATCHDOG_USEC`, systemd restarts the daemon.
//!
//! Without a service manager (no `NOTIFY_SOCKET`) nothing is sent.

use crate::core_handle::{CoreHandle, QueryError};
use admin::Operation;
use api::NotReady;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parking_lot::Mutex;
use sd_notify::NotifyState;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval of status messages without a watchdog.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

/// Time for the shutdown in addition to `shutdown-timeout`.
const STOP_MARGIN: Duration = Duration::from_secs(30);

/// Notifies that the daemon is ready.
pub(crate) fn ready() {
    notify(&[NotifyState::Ready, NotifyState::Status("ready")]);
}

/// Writes the URL of the admin API to the file `url` in the runtime directory, for local tools: the active
/// configuration may differ from the file.
pub(crate) fn write_admin_url(tls: bool, address: SocketAddr) {
    // With several folders, the first one is the service's own (systemd.exec(5)).
    let Some(folders) = std::env::var_os("RUNTIME_DIRECTORY") else { return };
    let Some(folder) = std::env::split_paths(&folders).next() else { return };
    let path = folder.join("url");
    if let Err(error) = std::fs::write(&path, local_url(tls, address)) {
        tracing::warn!(%error, path = %path.display(), "writing the admin URL failed");
    }
}

/// The URL for clients on this machine.
fn local_url(tls: bool, mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("{}://{address}\n", if tls { "https" } else { "http" })
}

/// Notifies that the daemon is starting.
pub(crate) fn starting() {
    notify(&[NotifyState::Status("starting: recovering messages")]);
}

/// Notifies that the daemon follows the leader of its cluster: for the service manager, it has started.
pub(crate) fn following() {
    notify(&[NotifyState::Ready, NotifyState::Status("following: another node leads the cluster")]);
}

/// Notifies that the configuration is being reloaded; [`ready`] follows.
pub(crate) fn reloading() {
    // Service managers compare the time to detect the end of the reload.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now, NotifyState::Status("reloading the configuration")]),
        Err(error) => {
            tracing::warn!(%error, "no monotonic clock, reload not notified");
        }
    }
}

/// Notifies that the daemon is stopping, and extends the service manager's timeout accordingly.
pub(crate) fn stopping(shutdown_timeout: Duration) {
    let time = shutdown_timeout.saturating_add(STOP_MARGIN).as_micros();
    notify(&[
        NotifyState::Stopping,
        NotifyState::ExtendTimeoutUsec(u32::try_from(time).unwrap_or(u32::MAX)),
        NotifyState::Status("stopping: waiting for outstanding responses"),
    ]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "service manager notification failed");
    }
}

/// Sends watchdog messages before there is a core: while the node follows the leader of its cluster, and while it takes over.
/// Dropping it ends them.
pub(crate) struct FollowerWatchdog {
    /// The last progress; `None` during a step of unknown length, such as a copy of the leader's tables.
    progress: Arc<Mutex<Option<Instant>>>,
    /// Dropped to end the thread.
    _stop: Sender<()>,
}

impl FollowerWatchdog {
    /// Starts the thread, in a step of unknown length. `None` without a watchdog.
    pub(crate) fn start() -> std::io::Result<Option<Self>> {
        let Some(time) = sd_notify::watchdog_enabled().filter(|time| !time.is_zero()) else {
            return Ok(None);
        };
        let progress = Arc::new(Mutex::new(None));
        let (stop, stopped) = bounded::<()>(0);
        let reported = progress.clone();
        let watch = move || {
            while stopped.recv_timeout(time / 2) == Err(RecvTimeoutError::Timeout) {
                if makes_progress(*reported.lock(), Instant::now(), time) {
                    notify(&[NotifyState::Watchdog]);
                } else {
                    tracing::error!("the follower makes no progress");
                }
            }
        };
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        Ok(Some(Self { progress, _stop: stop }))
    }

    /// Reports that the follower works. From now on, it must report again within the watchdog's time.
    pub(crate) fn report_progress(&self) {
        *self.progress.lock() = Some(Instant::now());
    }

    /// Begins a step of unknown length, which ends with the next [`FollowerWatchdog::report_progress`].
    pub(crate) fn begin_long_step(&self) {
        *self.progress.lock() = None;
    }
}

/// Whether the last progress is not too old.
fn makes_progress(last: Option<Instant>, now: Instant, time: Duration) -> bool {
    last.is_none_or(|last| now.saturating_duration_since(last) <= time)
}

/// The notifier thread; ended by [`ServiceManagerNotifier::stop`].
pub(crate) struct ServiceManagerNotifier {
    stop: Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl ServiceManagerNotifier {
    /// Starts the notifier if there is a service manager. It has a thread of its own, so that other work cannot make a
    /// working core look dead.
    pub(crate) fn start(core: &CoreHandle, operation: Arc<dyn Operation>) -> std::io::Result<Option<Self>> {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Ok(None);
        }
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        let (stop, stopped) = bounded(0);
        let core = core.clone();
        let watch = move || match watchdog {
            Some(time) => run(&core, &*operation, (time / 2, time), &stopped),
            None => run(&core, &*operation, (STATUS_INTERVAL, STATUS_INTERVAL * 3), &stopped),
        };
        let thread = std::thread::Builder::new().name("service-manager".to_owned()).spawn(watch)?;
        Ok(Some(Self { stop, thread }))
    }

    /// Stops the notifier. Call it after the core has ended, or while it still responds.
    pub(crate) fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// Probes the core every `period`; `write_deadline` is the maximum time to write a batch.
fn run(
    core: &CoreHandle,
    operation: &dyn Operation,
    (period, write_deadline): (Duration, Duration),
    stop: &Receiver<()>,
) {
    loop {
        match probe_core(core, period, write_deadline) {
            CoreHealth::Healthy { waiting } => {
                let status = status_line(&operation.readiness().reasons, waiting);
                notify(&[NotifyState::Watchdog, NotifyState::Status(&status)]);
            }
            CoreHealth::Silent => {
                tracing::error!(seconds = period.as_secs_f32(), "core does not respond");
                notify(&[NotifyState::Status("stuck: the core does not respond")]);
            }
            CoreHealth::Stalled { since } => {
                tracing::error!(seconds = since.as_secs_f32(), "commit stalled");
                notify(&[NotifyState::Status("stuck: a commit is stalled")]);
            }
            CoreHealth::Stopped => return,
        }
        if stop.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The health of the core.
#[derive(Debug, PartialEq, Eq)]
enum CoreHealth {
    /// The core responds and its batches are written.
    Healthy { waiting: usize },
    /// The core does not respond.
    Silent,
    /// The core responds, but the previous batch is not written yet. Requests get no answer.
    Stalled { since: Duration },
    /// The core has ended.
    Stopped,
}

fn probe_core(core: &CoreHandle, answer_within: Duration, write_within: Duration) -> CoreHealth {
    match core.query_within(answer_within, |engine, _| engine.live()) {
        Err(QueryError::Late) => CoreHealth::Silent,
        Err(QueryError::Ended) => CoreHealth::Stopped,
        Ok(waiting) => match core.batch_duration().filter(|time| *time > write_within) {
            Some(since) => CoreHealth::Stalled { since },
            None => CoreHealth::Healthy { waiting },
        },
    }
}

/// The status line of `systemctl status`.
fn status_line(reasons: &[NotReady], waiting: usize) -> String {
    let reasons: Vec<_> = reasons
        .iter()
        .map(|reason| match reason {
            NotReady::Starting => "starting",
            NotReady::Following => "another node leads",
            NotReady::Stopping => "stopping",
            NotReady::Draining => "draining",
            NotReady::DiskLow => "the disk is nearly full",
            NotReady::StoreStalled => "the disk is slow",
            NotReady::NoMajority => "etcd does not answer",
            NotReady::CoreStalled => "the core does not respond",
        })
        .collect();
    let state = if reasons.is_empty() { "ready".to_owned() } else { reasons.join(", ") };
    match waiting {
        1 => format!("{state}; 1 message waits"),
        waiting => format!("{state}; {waiting} messages wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_handle;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_core_without_a_thread_is_silent() {
        let (seed, core) = core_handle::channel();
        assert_eq!(probe_core(&core, SHORT, SHORT), CoreHealth::Silent);
        drop(seed);
        assert_eq!(probe_core(&core, SHORT, SHORT), CoreHealth::Stopped);
    }

    #[test]
    fn a_follower_is_alive_after_progress_and_in_long_steps() {
        let (last, time) = (Instant::now(), Duration::from_secs(30));
        assert!(makes_progress(None, last + time * 10, time));
        assert!(makes_progress(Some(last), last + time, time));
        assert!(!makes_progress(Some(last), last + time + SHORT, time));
    }

    #[test]
    fn the_status_is_one_line() {
        assert_eq!(status_line(&[], 0), "ready; 0 messages wait");
        assert_eq!(status_line(&[], 1), "ready; 1 message waits");
        assert_eq!(
            status_line(&[NotReady::Draining, NotReady::DiskLow], 7),
            "draining, the disk is nearly full; 7 messages wait"
        );
    }

    #[test]
    fn the_url_is_reachable_from_this_machine() {
        for (tls, address, want) in [
            (true, "0.0.0.0:8443", "https://127.0.0.1:8443\n"),
            (true, "[::]:8443", "https://[::1]:8443\n"),
            (false, "127.0.0.1:8080", "http://127.0.0.1:8080\n"),
            (true, "192.0.2.7:443", "https://192.0.2.7:443\n"),
        ] {
            assert_eq!(local_url(tls, address.parse().unwrap()), want);
        }
    }
}

//! The service manager: told when the appliance is ready, reads its configuration again, or stops, and, as long as its core
//! does its work, that it lives. One that is told nothing for `WATCHDOG_USEC` starts the appliance anew.
//!
//! Without a service manager (no `NOTIFY_SOCKET`) nothing of this does anything.

use crate::appliance::Switchyard;
use crate::core_loop::{CoreHandle, Unanswered};
use admin::{NotReady, Operation as _};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use sd_notify::NotifyState;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How often a service manager without a watchdog is told how it stands.
const NEWS: Duration = Duration::from_secs(10);

/// What stopping takes beside the waiting for answers that the configuration grants.
const STOPPING: Duration = Duration::from_secs(30);

/// It takes connections.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("ready")]);
}

/// The admin's door is here. The service's runtime directory says so, in the file `url`, to those on this machine who look after
/// the service: what the configuration says may have been changed since it was a file.
pub(crate) fn reached_at(tls: bool, address: SocketAddr) {
    // Of several, the first is the service's own (systemd.exec(5)).
    let Some(folders) = std::env::var_os("RUNTIME_DIRECTORY") else { return };
    let Some(folder) = std::env::split_paths(&folders).next() else { return };
    let path = folder.join("url");
    if let Err(error) = std::fs::write(&path, url(tls, address)) {
        tracing::warn!(%error, path = %path.display(), "the place of the admin's door is not written down");
    }
}

/// How the door is reached on this machine.
fn url(tls: bool, mut address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("{}://{address}\n", if tls { "https" } else { "http" })
}

/// What is on disk is being read back.
pub(crate) fn starting() {
    tell(&[NotifyState::Status("starting: reads back what is on disk")]);
}

/// It was asked to read its configuration again; [`ready`] follows.
pub(crate) fn reloading() {
    // The time is for service managers that wait for the end of what they asked for.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now, NotifyState::Status("reads its configuration again")]),
        Err(error) => {
            tracing::warn!(%error, "no monotonic clock; the service manager is not told of the reload");
        }
    }
}

/// It stops, and waits so long for answers; the service manager is to have that patience.
pub(crate) fn stopping(drain: Duration) {
    let time = drain.saturating_add(STOPPING).as_micros();
    tell(&[
        NotifyState::Stopping,
        NotifyState::ExtendTimeoutUsec(u32::try_from(time).unwrap_or(u32::MAX)),
        NotifyState::Status("stopping: waits for answers"),
    ]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told how it stands");
    }
}

/// The thread that tells; ended by [`Supervision::end`].
pub(crate) struct Supervision {
    stop: Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Supervision {
    /// Starts to tell, where somebody listens. A thread of its own: no other work may make a core that lives look dead.
    pub(crate) fn start(core: &CoreHandle, appliance: &Arc<Switchyard>) -> std::io::Result<Option<Self>> {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Ok(None);
        }
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        let (stop, stopped) = bounded(0);
        let (core, appliance) = (core.clone(), appliance.clone());
        let watch = move || match watchdog {
            Some(time) => run(&core, &appliance, (time / 2, time), &stopped),
            None => run(&core, &appliance, (NEWS, NEWS * 3), &stopped),
        };
        let thread = std::thread::Builder::new().name("supervision".to_owned()).spawn(watch)?;
        Ok(Some(Self { stop, thread }))
    }

    /// Ends it. To be called when the core has ended, or can still answer.
    pub(crate) fn end(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// Every `period` the core is asked; `patience` is how long a batch may take to be written.
fn run(
    core: &CoreHandle,
    appliance: &Switchyard,
    (period, patience): (Duration, Duration),
    stop: &Receiver<()>,
) {
    loop {
        match pulse(core, period, patience) {
            Pulse::Beats { waiting } => {
                let words = standing(&appliance.readiness().reasons, waiting);
                tell(&[NotifyState::Watchdog, NotifyState::Status(&words)]);
            }
            Pulse::Silent => {
                tracing::error!(seconds = period.as_secs_f32(), "the core does not answer");
                tell(&[NotifyState::Status("stuck: the core does not answer")]);
            }
            Pulse::Stuck { since } => {
                tracing::error!(
                    seconds = since.as_secs_f32(),
                    "a batch is not written: the disk, or who writes, hangs"
                );
                tell(&[NotifyState::Status("stuck: a batch is not written")]);
            }
            Pulse::Over => return,
        }
        if stop.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// What can be felt of the core.
#[derive(Debug, PartialEq, Eq)]
enum Pulse {
    /// It answers, and what it decides is written.
    Beats { waiting: usize },
    /// It does not answer.
    Silent,
    /// It answers, but the batch before is not written since then: nobody is answered any more.
    Stuck { since: Duration },
    /// It has ended.
    Over,
}

fn pulse(core: &CoreHandle, answer_within: Duration, write_within: Duration) -> Pulse {
    match core.look_within(answer_within, |engine, _| engine.live()) {
        Err(Unanswered::Late) => Pulse::Silent,
        Err(Unanswered::Ended) => Pulse::Over,
        Ok(waiting) => match core.writing_for().filter(|time| *time > write_within) {
            Some(since) => Pulse::Stuck { since },
            None => Pulse::Beats { waiting },
        },
    }
}

/// One line of `systemctl status`.
fn standing(reasons: &[NotReady], waiting: usize) -> String {
    let reasons: Vec<_> = reasons
        .iter()
        .map(|reason| match reason {
            NotReady::Starting => "starting",
            NotReady::Stopping => "stopping",
            NotReady::Draining => "draining",
            NotReady::DiskLow => "the disk is nearly full",
            NotReady::StoreStalled => "the disk is slow",
            NotReady::CoreStalled => "the core does not answer",
        })
        .collect();
    let how = if reasons.is_empty() { "ready".to_owned() } else { reasons.join(", ") };
    match waiting {
        1 => format!("{how}; 1 message waits"),
        waiting => format!("{how}; {waiting} messages wait"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_loop;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_core_that_nobody_runs_has_no_pulse() {
        let (seed, core) = core_loop::seed();
        assert_eq!(pulse(&core, SHORT, SHORT), Pulse::Silent);
        drop(seed);
        assert_eq!(pulse(&core, SHORT, SHORT), Pulse::Over);
    }

    #[test]
    fn how_it_stands_is_one_line() {
        assert_eq!(standing(&[], 0), "ready; 0 messages wait");
        assert_eq!(standing(&[], 1), "ready; 1 message waits");
        assert_eq!(
            standing(&[NotReady::Draining, NotReady::DiskLow], 7),
            "draining, the disk is nearly full; 7 messages wait"
        );
    }

    #[test]
    fn the_door_is_told_as_it_is_reached_from_here() {
        for (tls, address, want) in [
            (true, "0.0.0.0:8443", "https://127.0.0.1:8443\n"),
            (true, "[::]:8443", "https://[::1]:8443\n"),
            (false, "127.0.0.1:8080", "http://127.0.0.1:8080\n"),
            (true, "192.0.2.7:443", "https://192.0.2.7:443\n"),
        ] {
            assert_eq!(url(tls, address.parse().unwrap()), want);
        }
    }
}

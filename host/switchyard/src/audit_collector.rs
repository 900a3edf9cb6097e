//! Copies the audit log of a cluster node into the archive, so that the logs of all nodes are in one place.

use access::Access;
use anyhow::Result;
use archive::{Archive, AuditLog};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Interval at which new records are copied.
const INTERVAL: Duration = Duration::from_secs(1);
/// Interval after a failure; the archive logs its failures itself.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of records in one transaction.
const BATCH: usize = 100;

/// Thread that copies the audit log; it ends when this is dropped.
pub(crate) struct AuditCollector {
    _stop: Sender<()>,
}

impl AuditCollector {
    pub(crate) fn start(
        log: AuditLog,
        access: Arc<Access>,
        archive: Archive,
        runtime: Handle,
    ) -> Result<Self> {
        let (stop, stopped) = bounded(0);
        let run = move || {
            let mut copied = None;
            let mut has_failed = false;
            let mut interval = INTERVAL;
            while wait(&stopped, interval) {
                match copy(&log, &access, &archive, &runtime, &mut copied) {
                    Ok(()) => (has_failed, interval) = (false, INTERVAL),
                    Err(error) => {
                        if !has_failed {
                            tracing::warn!(%error, "copying the audit log into the archive failed, trying again");
                        }
                        // An attempt whose answer was lost may have succeeded, so the position is read again.
                        (copied, has_failed, interval) = (None, true, RETRY_INTERVAL);
                    }
                }
            }
        };
        crate::critical_thread::spawn("audit-collector", run)?;
        Ok(Self { _stop: stop })
    }
}

/// Waits up to `interval`. Returns false if the thread should end.
fn wait(stopped: &Receiver<()>, interval: Duration) -> bool {
    stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout)
}

/// Copies new records. `copied` is the last record in the archive, once it is known.
fn copy(
    log: &AuditLog,
    access: &Access,
    archive: &Archive,
    runtime: &Handle,
    copied: &mut Option<u64>,
) -> Result<()> {
    loop {
        let last = match *copied {
            Some(last) => last,
            None => {
                let last = runtime.block_on(archive.newest_audit_record(log))?.unwrap_or(0);
                *copied = Some(last);
                last
            }
        };
        let entries = access.audit_after(last, BATCH)?;
        let Some(newest) = entries.last() else { return Ok(()) };
        runtime.block_on(archive.add_audit_records(log, &entries))?;
        *copied = Some(newest.serial);
    }
}

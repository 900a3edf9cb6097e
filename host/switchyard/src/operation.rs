//! What an admin does with the daemon itself.

use crate::appliance::Switchyard;
use admin::{DrainOrder, DrainState, Kind, LogLevel, Misplaced, NotReady, Operation, Problem, Readiness};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A commit that takes longer than this is one that the disk may never finish.
const STALLED: Duration = Duration::from_secs(5);

/// A core that does not answer within this time may never do so.
const CORE_ANSWERS_WITHIN: Duration = Duration::from_secs(3);

impl Operation for Switchyard {
    fn readiness(&self) -> Readiness {
        let stopping = self.stopping.load(Relaxed);
        let ready = self.ready.load(Relaxed);
        let standing = [
            (NotReady::Starting, !stopping && !ready),
            (NotReady::Stopping, stopping),
            (NotReady::Draining, self.draining.lock().is_some()),
            (NotReady::DiskLow, self.core.counts.disk_low.load(Relaxed)),
            (NotReady::StoreStalled, self.core.committing_for().is_some_and(|time| time > STALLED)),
            // Before it is ready it reads back what is on disk, and afterwards it may have ended.
            (NotReady::CoreStalled, ready && !stopping && !self.core.answers_within(CORE_ANSWERS_WITHIN)),
        ];
        Readiness::of(standing.into_iter().filter_map(|(reason, stands)| stands.then_some(reason)).collect())
    }

    fn drain_state(&self) -> Result<DrainState, Problem> {
        self.show_drain()
    }

    fn begin_drain(&self, how: DrainOrder, by: Arc<str>) -> Result<DrainState, Problem> {
        self.start_drain(how, &by)
    }

    fn end_drain(&self, by: &str) -> Result<DrainState, Problem> {
        self.stop_drain(by)
    }

    fn log_level(&self) -> LogLevel {
        LogLevel { level: self.logging.level() }
    }

    fn set_log_level(&self, level: LogLevel, by: &str) -> Result<LogLevel, Problem> {
        if let Err(what) = self.logging.set(&level.level) {
            let mut problem = Problem::new(Kind::Refused, format!("level: {what}"));
            let allowed = Some("info, or for example info,links=debug".to_owned());
            problem.problems.push(Misplaced { pointer: "/level".to_owned(), what, allowed });
            return Err(problem);
        }
        tracing::info!(by, level = level.level, "what is logged was changed");
        Ok(self.log_level())
    }
}

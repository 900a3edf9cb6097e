//! Drain mode: submissions are refused and queued messages are delivered. It ends on request or with the process.

use crate::core_handle::CoreHandle;
use crate::problems::shutting_down_problem;
use admin::Problem;
use api::{DrainOptions, DrainStateView, RemainingMessagesView};
use engine::Event;
use links::Links;
use model::Timestamp;
use parking_lot::Mutex;
use ports::EventSink as _;
use std::sync::Arc;

/// The drain in progress.
#[derive(Debug, Clone)]
struct DrainInfo {
    since: Timestamp,
    by: Arc<str>,
    refuse_binds: bool,
}

/// Drain mode.
pub(crate) struct Drain {
    core: CoreHandle,
    links: Arc<Links>,
    current: Mutex<Option<DrainInfo>>,
}

impl Drain {
    pub(crate) fn new(core: CoreHandle, links: Arc<Links>) -> Self {
        Self { core, links, current: Mutex::new(None) }
    }

    /// Author of the drain in progress; `None` if there is none.
    pub(crate) fn by(&self) -> Option<Arc<str>> {
        self.current.lock().as_ref().map(|drain| drain.by.clone())
    }

    pub(crate) fn state(&self) -> Result<DrainStateView, Problem> {
        let remaining = self.core.query(|engine, _| {
            let in_flight = engine.peers().iter().map(|peer| peer.in_flight).sum();
            RemainingMessagesView { waiting: engine.live() as u64, in_flight }
        });
        let remaining = remaining.ok_or_else(shutting_down_problem)?;
        let draining = self.current.lock().clone();
        Ok(DrainStateView {
            draining: draining.is_some(),
            refuse_binds: draining.as_ref().is_some_and(|draining| draining.refuse_binds),
            since: draining.as_ref().map(|draining| draining.since.0),
            by: draining.map(|draining| draining.by.to_string()),
            remaining,
        })
    }

    /// Starts the drain. On return, no later submission can be accepted: the engine gets the event before the state
    /// is read.
    pub(crate) fn begin(&self, how: DrainOptions, by: &Arc<str>) -> Result<DrainStateView, Problem> {
        {
            let mut draining = self.current.lock();
            match &mut *draining {
                Some(before) => before.refuse_binds = how.refuse_binds,
                None => {
                    *draining = Some(DrainInfo {
                        since: Timestamp::now(),
                        by: by.clone(),
                        refuse_binds: how.refuse_binds,
                    });
                }
            }
            // Under the lock, so that of two concurrent requests the later one is shown.
            self.links.refuse_new_binds(how.refuse_binds);
            self.core.push(vec![Event::Admission { open: false }]);
        }
        tracing::info!(%by, refuse_binds = how.refuse_binds, "drain started, submissions are refused");
        self.state()
    }

    pub(crate) fn end(&self, by: &str) -> Result<DrainStateView, Problem> {
        {
            let mut draining = self.current.lock();
            if draining.take().is_some() {
                self.links.refuse_new_binds(false);
                self.core.push(vec![Event::Admission { open: true }]);
                tracing::info!(by, "drain ended");
            }
        }
        self.state()
    }
}

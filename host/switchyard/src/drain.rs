//! Drain mode: submissions are refused and queued messages are delivered. It ends on request or with the process.

use crate::api_backend::{Switchyard, shutting_down_problem};
use admin::Problem;
use api::{DrainOptions, DrainStateView, RemainingMessagesView};
use engine::Event;
use model::Timestamp;
use ports::EventSink as _;
use std::sync::Arc;

/// The drain in progress.
#[derive(Debug, Clone)]
pub(crate) struct DrainInfo {
    pub(crate) since: Timestamp,
    pub(crate) by: Arc<str>,
    pub(crate) refuse_binds: bool,
}

impl Switchyard {
    pub(crate) fn show_drain(&self) -> Result<DrainStateView, Problem> {
        let remaining = self.core.query(|engine, _| {
            let in_flight = engine.peers().iter().map(|peer| peer.in_flight).sum();
            RemainingMessagesView { waiting: engine.live() as u64, in_flight }
        });
        let remaining = remaining.ok_or_else(shutting_down_problem)?;
        let draining = self.draining.lock().clone();
        Ok(DrainStateView {
            draining: draining.is_some(),
            refuse_binds: draining.as_ref().is_some_and(|draining| draining.refuse_binds),
            since: draining.as_ref().map(|draining| draining.since.0),
            by: draining.map(|draining| draining.by.to_string()),
            remaining,
        })
    }

    /// Returns when no later submission can be accepted: the engine gets the event before the state is read.
    pub(crate) fn start_drain(&self, how: DrainOptions, by: &Arc<str>) -> Result<DrainStateView, Problem> {
        {
            let mut draining = self.draining.lock();
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
        self.show_drain()
    }

    pub(crate) fn stop_drain(&self, by: &str) -> Result<DrainStateView, Problem> {
        {
            let mut draining = self.draining.lock();
            if draining.take().is_some() {
                self.links.refuse_new_binds(false);
                self.core.push(vec![Event::Admission { open: true }]);
                tracing::info!(by, "drain ended");
            }
        }
        self.show_drain()
    }
}

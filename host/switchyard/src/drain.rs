//! Drain mode: nothing new is taken, what waits goes out. It ends by an admin's word or with the process.

use crate::appliance::{Switchyard, gone};
use crate::core_loop::wall;
use admin::{DrainOrder, DrainState, Left, Problem};
use doors::Core as _;
use engine::Event;
use model::Timestamp;
use std::sync::Arc;

/// Who has the appliance drained, and how.
#[derive(Debug, Clone)]
pub(crate) struct Draining {
    pub(crate) since: Timestamp,
    pub(crate) by: Arc<str>,
    pub(crate) refuse_binds: bool,
}

impl Switchyard {
    pub(crate) fn show_drain(&self) -> Result<DrainState, Problem> {
        let left = self.core.look(|engine, _| {
            let in_flight = engine.peers().iter().map(|peer| peer.in_flight).sum();
            Left { waiting: engine.live() as u64, in_flight }
        });
        let left = left.ok_or_else(gone)?;
        let draining = self.draining.lock().clone();
        Ok(DrainState {
            draining: draining.is_some(),
            refuse_binds: draining.as_ref().is_some_and(|draining| draining.refuse_binds),
            since: draining.as_ref().map(|draining| draining.since.0),
            by: draining.map(|draining| draining.by),
            left,
        })
    }

    /// Answers when no submission that comes after is taken: the engine has the event before it is looked at.
    pub(crate) fn start_drain(&self, how: DrainOrder, by: &Arc<str>) -> Result<DrainState, Problem> {
        {
            let mut draining = self.draining.lock();
            match &mut *draining {
                Some(before) => before.refuse_binds = how.refuse_binds,
                None => {
                    *draining =
                        Some(Draining { since: wall(), by: by.clone(), refuse_binds: how.refuse_binds });
                }
            }
            // Under the lock: of two admins at once the later one's word is the one that is shown.
            self.links.refuse_binds(how.refuse_binds);
            self.core.push(vec![Event::Admission { open: false }]);
        }
        tracing::info!(%by, refuse_binds = how.refuse_binds, "draining: no submissions are taken");
        self.show_drain()
    }

    pub(crate) fn stop_drain(&self, by: &str) -> Result<DrainState, Problem> {
        {
            let mut draining = self.draining.lock();
            if draining.take().is_some() {
                self.links.refuse_binds(false);
                self.core.push(vec![Event::Admission { open: true }]);
                tracing::info!(by, "no longer draining");
            }
        }
        self.show_drain()
    }
}

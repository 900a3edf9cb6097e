//! The traffic of the last minute in the API.

use crate::core_handle::CoreHandle;
use crate::peer_roles::PeerRoles;
use crate::problems::shutting_down_problem;
use crate::traffic_flows::{TrafficFlows, TrafficSums};
use admin::Problem;
use api::{SubmitterTrafficView, TrafficFlowView, TrafficView};
use arc_swap::ArcSwap;
use model::{Direction, Directory, Hook, Timestamp};
use std::cmp::Reverse;
use std::sync::Arc;

/// The traffic of the last minute.
pub(crate) struct TrafficService {
    pub(crate) core: CoreHandle,
    pub(crate) flows: Arc<TrafficFlows>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) peer_roles: Arc<ArcSwap<PeerRoles>>,
}

impl admin::RecentTraffic for TrafficService {
    fn traffic(&self) -> TrafficView {
        let TrafficSums { window_ms, submitters, flows } = self.flows.sums(Timestamp::now());
        let names = self.directory.load();
        let peer_roles = self.peer_roles.load();
        let name = |id| names.name(id).to_string();
        let submitters =
            submitters.into_iter().map(|(id, accepted)| SubmitterTrafficView { name: name(id), accepted });
        let flows = flows.into_iter().map(|((from, to), counts)| TrafficFlowView {
            from: name(from),
            to: name(to),
            direction: if peer_roles.is_account(from) { Direction::Mt } else { Direction::Mo },
            counts,
        });
        let (mut submitters, mut flows): (Vec<_>, Vec<_>) = (submitters.collect(), flows.collect());
        submitters.sort_unstable_by(|a, b| b.accepted.cmp(&a.accepted).then_with(|| a.name.cmp(&b.name)));
        let place = |flow: &TrafficFlowView| Reverse(flow.counts.attempts());
        flows.sort_unstable_by(|a, b| {
            place(a).cmp(&place(b)).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
        });
        TrafficView { window_ms, submitters, flows, ..TrafficView::default() }
    }

    fn waiting_at_hooks(&self) -> Result<Vec<(Hook, u64)>, Problem> {
        let waiting = self.core.query(|engine, _| {
            vec![
                (Hook::Screen, engine.quarantine_length() as u64),
                (Hook::Lookup, engine.lookup_status().messages),
                (Hook::Resolver, engine.resolver_status().messages),
                (Hook::DeliveryPolicy, engine.pending_decisions() as u64),
                (Hook::Receipt, engine.pending_receipts() as u64),
            ]
        });
        waiting.ok_or_else(shutting_down_problem)
    }
}

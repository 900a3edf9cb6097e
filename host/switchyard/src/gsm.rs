//! Metrics of core networks.

use ::gsm::GsmNetwork;
use admin::metrics::{self, MetricsPage};
use api::CoreNetworkFaultKind;
use std::sync::Arc;

pub(crate) fn write_gsm_metrics(networks: &[Arc<GsmNetwork>], page: &mut MetricsPage) {
    for network in networks {
        let state = network.state();
        let name = state.name.as_str();
        page.put(&metrics::GSM_MT, &[name], state.mt.sent as f64);
        let ends = [
            ("delivered", state.mt.delivered),
            ("unanswered", state.mt.unanswered),
            ("late", state.mt.answered_late),
            ("twice", state.mt.answered_twice),
        ];
        let refused = state.mt.refused.iter().map(|(what, count)| (what.as_str(), *count));
        for (end, count) in ends.into_iter().chain(refused) {
            page.put(&metrics::GSM_MT_ENDED, &[name, end], count as f64);
        }
        let refusals: u64 = state.mo.refused.values().sum();
        let accepted = state.mo.received.saturating_sub(state.mo.repeated + refusals);
        page.put(&metrics::GSM_MO, &[name, "taken"], accepted as f64);
        page.put(&metrics::GSM_MO, &[name, "repeated"], state.mo.repeated as f64);
        for (cause, count) in &state.mo.refused {
            page.put(&metrics::GSM_MO, &[name, &cause.to_string()], *count as f64);
        }
        page.put(&metrics::GSM_ALERTS, &[name, "ready-for-sm"], state.ready_for_sm as f64);
        page.put(&metrics::GSM_ALERTS, &[name, "attached"], state.attached as f64);
        page.put(&metrics::GSM_IN_FLIGHT, &[name], state.in_flight as f64);
        let ready = state.connections.iter().filter(|connection| connection.ready).count();
        page.put(&metrics::GSM_CONNECTIONS, &[name], ready as f64);
        let unanswered = state.hlr_questions.unanswered;
        let answered = state.hlr_questions.asked.saturating_sub(unanswered);
        page.put(&metrics::GSM_QUESTIONS, &[name, "answered"], answered as f64);
        page.put(&metrics::GSM_QUESTIONS, &[name, "unanswered"], unanswered as f64);
        for kind in CoreNetworkFaultKind::ALL {
            let count = state.faults.iter().filter(|fault| fault.kind == *kind).count();
            page.put(&metrics::GSM_FAULTS, &[name, kind.name()], count as f64);
        }
        page.put(&metrics::GSM_RELAYED, &[name], state.relayed_frames as f64);
    }
}

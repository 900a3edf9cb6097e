//! Core networks in the API and the metrics.

use crate::api_backend::Switchyard;
use admin::metrics::{self, MetricsPage};
use gsm::GsmFaultKind;
use serde_json::{Value, json};

impl Switchyard {
    pub(crate) fn show_gsm(&self) -> Value {
        let show = |network: &gsm::GsmNetwork| {
            let state = network.state();
            let connections: Vec<Value> = state
                .connections
                .iter()
                .map(|connection| {
                    json!({
                        "name": connection.name,
                        "remote": connection.remote.to_string(),
                        "ready": connection.ready,
                    })
                })
                .collect();
            let mo_refused: serde_json::Map<String, Value> =
                state.mo_refused.iter().map(|(cause, count)| (cause.to_string(), json!(count))).collect();
            let faults: Vec<Value> = state
                .faults
                .iter()
                .map(|fault| {
                    json!({
                        "kind": fault.kind.name(),
                        "level": fault.kind.level(),
                        "what": fault.description,
                        "remedy": fault.kind.remedy(),
                    })
                })
                .collect();
            json!({
                "name": state.name,
                "role": state.role,
                "connections": connections,
                "hlr_answers": state.ctrl,
                "subscribers_known": state.subscribers,
                "in_flight": state.in_flight,
                "mt": {
                    "sent": state.mt,
                    "delivered": state.delivered,
                    "refused": state.refused,
                    "unanswered": state.unanswered,
                    "answered_late": state.late_answers,
                    "answered_twice": state.duplicate_answers,
                    "status_reports": state.status_reports,
                },
                "mo": { "received": state.mo, "repeated": state.mo_repeated, "refused": mo_refused },
                "ready_for_sm": state.ready_for_sm,
                "attached": state.attached,
                "relayed_frames": state.relayed_frames,
                "hlr_questions": { "asked": state.questions, "unanswered": state.unanswered_questions },
                "last_error": state.last_error,
                "faults": faults,
            })
        };
        self.networks.iter().map(|network| show(network)).collect()
    }

    pub(crate) fn write_gsm_metrics(&self, page: &mut MetricsPage) {
        for network in &self.networks {
            let state = network.state();
            let name = state.name.as_str();
            page.put(&metrics::GSM_MT, &[name], state.mt as f64);
            let ends = [
                ("delivered", state.delivered),
                ("unanswered", state.unanswered),
                ("late", state.late_answers),
                ("twice", state.duplicate_answers),
            ];
            let refused = state.refused.iter().map(|(what, count)| (*what, *count));
            for (end, count) in ends.into_iter().chain(refused) {
                page.put(&metrics::GSM_MT_ENDED, &[name, end], count as f64);
            }
            let refusals: u64 = state.mo_refused.values().sum();
            let accepted = state.mo.saturating_sub(state.mo_repeated + refusals);
            page.put(&metrics::GSM_MO, &[name, "taken"], accepted as f64);
            page.put(&metrics::GSM_MO, &[name, "repeated"], state.mo_repeated as f64);
            for (cause, count) in &state.mo_refused {
                page.put(&metrics::GSM_MO, &[name, &cause.to_string()], *count as f64);
            }
            page.put(&metrics::GSM_ALERTS, &[name, "ready-for-sm"], state.ready_for_sm as f64);
            page.put(&metrics::GSM_ALERTS, &[name, "attached"], state.attached as f64);
            page.put(&metrics::GSM_IN_FLIGHT, &[name], state.in_flight as f64);
            let ready = state.connections.iter().filter(|connection| connection.ready).count();
            page.put(&metrics::GSM_CONNECTIONS, &[name], ready as f64);
            let answered = state.questions.saturating_sub(state.unanswered_questions);
            page.put(&metrics::GSM_QUESTIONS, &[name, "answered"], answered as f64);
            page.put(&metrics::GSM_QUESTIONS, &[name, "unanswered"], state.unanswered_questions as f64);
            for kind in GsmFaultKind::ALL {
                let count = state.faults.iter().filter(|fault| fault.kind == kind).count();
                page.put(&metrics::GSM_FAULTS, &[name, kind.name()], count as f64);
            }
            page.put(&metrics::GSM_RELAYED, &[name], state.relayed_frames as f64);
        }
    }
}

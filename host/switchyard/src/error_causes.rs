//! Descriptions of error codes, by the protocol of the peer that returned them.

use arc_swap::ArcSwap;
use links::Links;
use model::{Directory, FinalRecord, PeerId, StepKind};
use serde_json::Value;
use std::sync::Arc;

/// Data to interpret the codes of peers.
#[derive(Clone)]
pub(crate) struct ErrorCauses {
    pub(crate) networks: Vec<Arc<gsm::GsmNetwork>>,
    pub(crate) links: Arc<Links>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
}

/// The origin of a finished message's error code, from its steps.
#[derive(Debug, Default, PartialEq, Eq)]
struct CodeOrigin {
    /// The peer that last refused the message with this code.
    refused_by: Option<String>,
    /// Whether the resolver found no subscriber.
    no_subscriber: bool,
}

impl ErrorCauses {
    /// Describes a peer's code; the code of a removed peer is interpreted as SMPP's.
    pub(crate) fn describe_code(&self, peer: &str, code: u32) -> String {
        if code == 0 {
            return "no cause given".to_owned();
        }
        if self.networks.iter().any(|network| network.name() == peer) {
            return gsm::describe_refusal(code);
        }
        match u8::try_from(code) {
            Ok(code) if self.links.is_sgip(peer) => sgip::ResultCode(code).to_string(),
            _ => smpp::CommandStatus(code).to_string(),
        }
    }

    /// Describes the error code of a finished message. `None` if there is none, or if a DLR contained it, because its
    /// meaning is specific to the operator.
    pub(crate) fn of_final(&self, ended: &FinalRecord) -> Option<String> {
        self.of_final_with_names(ended, &|peer| self.directory.load().name(peer).to_string())
    }

    /// Like [`of_final`](Self::of_final), with a function that returns peer names.
    pub(crate) fn of_final_with_names(
        &self,
        ended: &FinalRecord,
        name: &dyn Fn(PeerId) -> String,
    ) -> Option<String> {
        let mut origin = CodeOrigin::default();
        let mut peer = None;
        for step in &ended.steps {
            match &step.kind {
                StepKind::Submitted { peer: to, .. } => peer = Some(*to),
                StepKind::Refused { code } if *code == ended.error => {
                    origin.refused_by = peer.map(name);
                }
                StepKind::UnknownSubscriber { .. } => origin.no_subscriber = true,
                _ => {}
            }
        }
        self.cause(ended.error, origin)
    }

    /// Describes the error code of an archived message, from its trace.
    pub(crate) fn of_archived(&self, error: u32, trace: &Value) -> Option<String> {
        self.cause(error, archived_origin(error, trace))
    }

    fn cause(&self, error: u32, origin: CodeOrigin) -> Option<String> {
        match origin {
            _ if error == 0 => None,
            CodeOrigin { refused_by: Some(peer), .. } => Some(self.describe_code(&peer, error)),
            CodeOrigin { no_subscriber: true, .. } => Some("no such subscriber".to_owned()),
            _ => None,
        }
    }
}

fn archived_origin(error: u32, trace: &Value) -> CodeOrigin {
    let mut origin = CodeOrigin::default();
    let mut peer = None;
    for step in trace["steps"].as_array().into_iter().flatten() {
        match step["step"].as_str() {
            Some("submitted") => peer = step["peer"].as_str(),
            Some("refused") if step["code"] == error => origin.refused_by = peer.map(str::to_owned),
            Some("unknown_subscriber") => origin.no_subscriber = true,
            _ => {}
        }
    }
    origin
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_archived_trace_names_the_origin_of_a_code() {
        let submitted = json!({ "step": "submitted", "peer": "north", "attempt": 1 });
        let of = |step: Value| archived_origin(27, &json!({ "steps": [submitted, step] }));
        let north = CodeOrigin { refused_by: Some("north".to_owned()), ..CodeOrigin::default() };
        assert_eq!(of(json!({ "step": "refused", "code": 27 })), north);
        assert_eq!(of(json!({ "step": "refused", "code": 28 })), CodeOrigin::default());
        // The codes of DLRs are specific to the operator.
        assert_eq!(of(json!({ "step": "reported", "state": 5, "error": 27 })), CodeOrigin::default());
        let nobody = CodeOrigin { no_subscriber: true, ..CodeOrigin::default() };
        assert_eq!(of(json!({ "step": "unknown_subscriber", "cached": false })), nobody);
        assert_eq!(archived_origin(27, &Value::Null), CodeOrigin::default());
    }
}

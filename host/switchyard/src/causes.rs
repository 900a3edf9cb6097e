//! Codes of refusals in words, by the protocol of the peer that gave them.

use arc_swap::ArcSwap;
use links::Links;
use model::{Directory, Final, PeerId, StepKind};
use serde_json::Value;
use std::sync::Arc;

/// What has to be known of peers to read their codes.
#[derive(Clone)]
pub(crate) struct Causes {
    pub(crate) networks: Vec<Arc<gsm::Network>>,
    pub(crate) links: Arc<Links>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
}

/// Where the error code of a finished message comes from, as its steps tell.
#[derive(Debug, Default, PartialEq, Eq)]
struct Origin {
    /// The name of the peer that last refused the message with this code.
    refused_by: Option<String>,
    /// The number has no subscriber.
    no_subscriber: bool,
}

impl Causes {
    /// A peer's code in words; a peer that is no longer configured is taken for one of SMPP.
    pub(crate) fn words(&self, peer: &str, code: u32) -> String {
        if code == 0 {
            return "no cause given".to_owned();
        }
        if self.networks.iter().any(|network| network.name() == peer) {
            return gsm::refusal_words(code);
        }
        match u8::try_from(code) {
            Ok(code) if self.links.speaks_sgip(peer) => sgip::ResultCode(code).to_string(),
            _ => smpp::Status(code).to_string(),
        }
    }

    /// The cause of a finished message's error code in words; `None` where it has no code, or a delivery
    /// receipt gave the code: its meaning is the operator's own.
    pub(crate) fn of(&self, ended: &Final) -> Option<String> {
        self.of_named(ended, &|peer| self.directory.load().name(peer).to_string())
    }

    /// The same, where `name` tells the names of peers.
    pub(crate) fn of_named(&self, ended: &Final, name: &dyn Fn(PeerId) -> String) -> Option<String> {
        let mut origin = Origin::default();
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

    /// The same for a message of the archive, by the steps of its trace.
    pub(crate) fn of_archived(&self, error: u32, trace: &Value) -> Option<String> {
        self.cause(error, archived_origin(error, trace))
    }

    fn cause(&self, error: u32, origin: Origin) -> Option<String> {
        match origin {
            _ if error == 0 => None,
            Origin { refused_by: Some(peer), .. } => Some(self.words(&peer, error)),
            Origin { no_subscriber: true, .. } => Some("no such subscriber".to_owned()),
            _ => None,
        }
    }
}

fn archived_origin(error: u32, trace: &Value) -> Origin {
    let mut origin = Origin::default();
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
    fn an_archived_trace_tells_who_gave_the_code() {
        let submitted = json!({ "step": "submitted", "peer": "north", "attempt": 1 });
        let of = |step: Value| archived_origin(27, &json!({ "steps": [submitted, step] }));
        let north = Origin { refused_by: Some("north".to_owned()), ..Origin::default() };
        assert_eq!(of(json!({ "step": "refused", "code": 27 })), north);
        assert_eq!(of(json!({ "step": "refused", "code": 28 })), Origin::default());
        // The code of a delivery receipt is the operator's own.
        assert_eq!(of(json!({ "step": "reported", "state": 5, "error": 27 })), Origin::default());
        let nobody = Origin { no_subscriber: true, ..Origin::default() };
        assert_eq!(of(json!({ "step": "unknown_subscriber", "cached": false })), nobody);
        assert_eq!(archived_origin(27, &Value::Null), Origin::default());
    }
}

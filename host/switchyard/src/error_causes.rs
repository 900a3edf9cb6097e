//! Descriptions of error codes, by the protocol of the peer that returned them.

use arc_swap::ArcSwap;
use links::Links;
use model::{Directory, FinalRecord, PeerId, Step, StepKind};
use plugin_peers::PluginPeers;
use std::sync::Arc;

/// Data to interpret the codes of peers.
#[derive(Clone)]
pub(crate) struct ErrorCauses {
    /// The names of the core networks.
    pub(crate) networks: Vec<String>,
    pub(crate) links: Arc<Links>,
    pub(crate) plugin_peers: Arc<PluginPeers>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
}

/// The origin of a finished message's error code, from its steps.
#[derive(Debug, Default, PartialEq, Eq)]
struct CodeOrigin {
    /// The peer that last refused the message with this code.
    refused_by: Option<Arc<str>>,
    /// Whether the resolver found no subscriber.
    no_subscriber: bool,
}

impl ErrorCauses {
    /// Describes a peer's code; the code of a removed peer is interpreted as SMPP's.
    pub(crate) fn describe_code(&self, peer: &str, code: u32) -> String {
        if code == 0 {
            return "no cause given".to_owned();
        }
        if self.networks.iter().any(|network| network == peer) {
            return gsm::describe_refusal(code);
        }
        if self.plugin_peers.has_peer(peer) {
            return format!("code {code} of its API");
        }
        self.links.result_text(peer, code).unwrap_or_else(|| smpp::CommandStatus(code).to_string())
    }

    /// Describes the error code of a finished message. `None` if there is none, or if it comes from a DLR: the codes of
    /// DLRs are specific to the operator.
    pub(crate) fn of_final(&self, ended: &FinalRecord) -> Option<String> {
        let name = |peer: &PeerId| self.directory.load().name(*peer);
        self.cause(ended.error, code_origin(ended.error, &ended.steps, name))
    }

    /// Like [`of_final`](Self::of_final), from steps with peer names.
    pub(crate) fn of_steps(&self, error: u32, steps: &[Step<Arc<str>>]) -> Option<String> {
        self.cause(error, code_origin(error, steps, Arc::clone))
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

fn code_origin<P>(error: u32, steps: &[Step<P>], name: impl Fn(&P) -> Arc<str>) -> CodeOrigin {
    let mut origin = CodeOrigin::default();
    let mut peer = None;
    for step in steps {
        match &step.kind {
            StepKind::Submitted { peer: to, .. } => peer = Some(to),
            StepKind::Refused { code } if *code == error => origin.refused_by = peer.map(&name),
            StepKind::UnknownSubscriber { .. } => origin.no_subscriber = true,
            _ => {}
        }
    }
    origin
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    #[test]
    fn steps_name_the_origin_of_a_code() {
        let step = |kind| Step { at: Timestamp(1), kind };
        let submitted = StepKind::Submitted { peer: Arc::from("north"), attempt: 1 };
        let of = |kind| code_origin(27, &[step(submitted.clone()), step(kind)], Arc::clone);
        let north = CodeOrigin { refused_by: Some("north".into()), ..CodeOrigin::default() };
        assert_eq!(of(StepKind::Refused { code: 27 }), north);
        assert_eq!(of(StepKind::Refused { code: 28 }), CodeOrigin::default());
        // The codes of DLRs are specific to the operator.
        assert_eq!(of(StepKind::DlrReceived { state: 5, error: 27 }), CodeOrigin::default());
        let nobody = CodeOrigin { no_subscriber: true, ..CodeOrigin::default() };
        assert_eq!(of(StepKind::UnknownSubscriber { cached: false }), nobody);
        assert_eq!(code_origin(27, &[], Arc::clone), CodeOrigin::default());
    }
}

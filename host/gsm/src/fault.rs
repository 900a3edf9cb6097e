//! Faults of a core network that need action outside the appliance.

use api::{
    AttentionSeverity, CoreConnectionView, CoreNetworkFaultKind, CoreNetworkFaultView, CoreNetworkRole,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of MSC names in the set.
const MAX_REMEMBERED_MSCS: usize = 1_000;

/// The severity: an error if the fault stops messages. `no-msc` is a warning, since it occurs at every first start.
const fn level(kind: CoreNetworkFaultKind) -> AttentionSeverity {
    use CoreNetworkFaultKind::{CtrlDown, DuplicateName, HlrDown, MscWithoutSms, NoMsc};
    match kind {
        HlrDown | MscWithoutSms => AttentionSeverity::Error,
        NoMsc | CtrlDown | DuplicateName => AttentionSeverity::Warning,
    }
}

/// The remedy, for the admin.
const fn remedy(kind: CoreNetworkFaultKind) -> &'static str {
    use CoreNetworkFaultKind::{CtrlDown, DuplicateName, HlrDown, MscWithoutSms, NoMsc};
    match kind {
        HlrDown => "start the HLR, or correct `hlr` of the network; its messages wait",
        CtrlDown => "correct `ctrl` of the network, or open the CTRL interface in the HLR's configuration",
        NoMsc => {
            "in each MSC's configuration, point `remote-ip` and `remote-port` below `hlr` to `listen` of the network"
        }
        MscWithoutSms => "write `sms-over-gsup` below `msc` in the MSC's configuration",
        DuplicateName => "give each MSC an `ipa-name` of its own",
    }
}
/// Observations of HLR and MSCs from which faults are derived.
#[derive(Debug, Default)]
pub(crate) struct ObservedFaults {
    /// The error of the last failed connection attempt to the HLR; `None` after a successful one.
    hlr_error: Mutex<Option<String>>,
    /// MSCs that have refused a short message because `sms-over-gsup` is missing, and have accepted none since.
    without_sms: Mutex<BTreeSet<String>>,
}

impl ObservedFaults {
    /// Records the result of a connection attempt to the HLR; `None` for success.
    pub(crate) fn set_hlr_error(&self, error: Option<String>) {
        *self.hlr_error.lock() = error;
    }

    /// Records an MSC's answer to a short message.
    pub(crate) fn msc_answered(&self, msc: &str, takes_sms: bool) {
        let mut without = self.without_sms.lock();
        if takes_sms {
            without.remove(msc);
        } else if without.len() < MAX_REMEMBERED_MSCS {
            without.insert(msc.to_owned());
        }
    }

    /// Removes a disconnected MSC.
    pub(crate) fn msc_gone(&self, msc: &str) {
        self.without_sms.lock().remove(msc);
    }

    /// All current faults. `ctrl_down` is the address of a CTRL interface that does not answer.
    pub(crate) fn faults(
        &self,
        role: CoreNetworkRole,
        connections: &[CoreConnectionView],
        ctrl_down: Option<&str>,
    ) -> Vec<CoreNetworkFaultView> {
        let mut faults = Vec::new();
        let mut add = |kind, what| {
            let remedy = remedy(kind).to_owned();
            faults.push(CoreNetworkFaultView { kind, level: level(kind), what, remedy });
        };
        if let Some(error) = &*self.hlr_error.lock() {
            add(CoreNetworkFaultKind::HlrDown, format!("the HLR is unreachable: {error}"));
        }
        if let Some(address) = ctrl_down {
            add(
                CoreNetworkFaultKind::CtrlDown,
                format!("the HLR's CTRL interface {address} does not answer"),
            );
        }
        if role == CoreNetworkRole::Proxy && connections.is_empty() {
            add(CoreNetworkFaultKind::NoMsc, "no MSC is connected".to_owned());
        }
        for msc in &*self.without_sms.lock() {
            add(
                CoreNetworkFaultKind::MscWithoutSms,
                format!("MSC {msc} does not accept short messages over GSUP"),
            );
        }
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for name in connections.iter().filter_map(|connection| connection.name.as_deref()) {
            *names.entry(name).or_default() += 1;
        }
        for (name, count) in names.into_iter().filter(|(_, count)| *count > 1) {
            add(
                CoreNetworkFaultKind::DuplicateName,
                format!("{count} MSCs are connected under the name {name}"),
            );
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(name: &str) -> CoreConnectionView {
        let remote = "127.0.0.1:4222".to_owned();
        CoreConnectionView { name: Some(name.to_owned()), remote, ready: true }
    }

    fn kinds(faults: &[CoreNetworkFaultView]) -> Vec<&'static str> {
        faults.iter().map(|fault| fault.kind.name()).collect()
    }

    #[test]
    fn faults_last_until_they_are_resolved() {
        let observed_faults = ObservedFaults::default();
        assert_eq!(
            kinds(&observed_faults.faults(
                CoreNetworkRole::Proxy,
                &[connection("MSC-1"), connection("MSC-2")],
                None
            )),
            [""; 0]
        );
        observed_faults.set_hlr_error(Some("connection refused".to_owned()));
        observed_faults.msc_answered("MSC-1", false);
        let faults = observed_faults.faults(
            CoreNetworkRole::Proxy,
            &[connection("MSC-1"), connection("MSC-1")],
            Some("127.0.0.1:4259"),
        );
        assert_eq!(kinds(&faults), ["hlr-down", "hlr-ctrl-down", "msc-without-sms", "double-name"]);
        assert_eq!(faults[3].what, "2 MSCs are connected under the name MSC-1");
        observed_faults.set_hlr_error(None);
        observed_faults.msc_answered("MSC-1", true);
        assert_eq!(kinds(&observed_faults.faults(CoreNetworkRole::Proxy, &[], None)), ["no-msc"]);
        observed_faults.msc_answered("MSC-1", false);
        observed_faults.msc_gone("MSC-1");
        assert_eq!(
            kinds(&observed_faults.faults(CoreNetworkRole::Client, &[], None)),
            [""; 0],
            "a client sees no MSCs"
        );
    }
}

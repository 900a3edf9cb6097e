//! Faults of a core network that need action outside the appliance.

use crate::state::ConnectionState;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of MSC names in the set.
const MAX_REMEMBERED_MSCS: usize = 1_000;

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GsmFaultKind {
    /// The last connection attempt to the HLR failed.
    HlrDown,
    /// The HLR's CTRL interface does not answer.
    CtrlDown,
    /// No MSC is connected (proxy).
    NoMsc,
    /// An MSC refuses short messages: `sms-over-gsup` is missing in its configuration.
    MscWithoutSms,
    /// Two MSCs are connected under the same name (proxy).
    DuplicateName,
}

impl GsmFaultKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::HlrDown, Self::CtrlDown, Self::NoMsc, Self::MscWithoutSms, Self::DuplicateName];

    /// The name in the API and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HlrDown => "hlr-down",
            Self::CtrlDown => "hlr-ctrl-down",
            Self::NoMsc => "no-msc",
            Self::MscWithoutSms => "msc-without-sms",
            Self::DuplicateName => "double-name",
        }
    }

    /// The severity: `error` if the fault stops messages, `warning` otherwise. `no-msc` is a warning, since it occurs
    /// at every first start.
    #[must_use]
    pub const fn level(self) -> &'static str {
        match self {
            Self::HlrDown | Self::MscWithoutSms => "error",
            Self::NoMsc | Self::CtrlDown | Self::DuplicateName => "warning",
        }
    }

    /// The remedy, for the admin.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::HlrDown => "start the HLR, or correct `hlr` of the network; its messages wait",
            Self::CtrlDown => {
                "correct `ctrl` of the network, or open the CTRL interface in the HLR's configuration"
            }
            Self::NoMsc => {
                "in each MSC's configuration, point `remote-ip` and `remote-port` below `hlr` to `listen` of the network"
            }
            Self::MscWithoutSms => "write `sms-over-gsup` below `msc` in the MSC's configuration",
            Self::DuplicateName => "give each MSC an `ipa-name` of its own",
        }
    }
}

/// A current fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GsmFault {
    /// The kind of fault.
    pub kind: GsmFaultKind,
    /// A description without the network's name.
    pub description: String,
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
        is_proxy: bool,
        connections: &[ConnectionState],
        ctrl_down: Option<&str>,
    ) -> Vec<GsmFault> {
        let mut faults = Vec::new();
        let mut add = |kind, description| faults.push(GsmFault { kind, description });
        if let Some(error) = &*self.hlr_error.lock() {
            add(GsmFaultKind::HlrDown, format!("the HLR is unreachable: {error}"));
        }
        if let Some(address) = ctrl_down {
            add(GsmFaultKind::CtrlDown, format!("the HLR's CTRL interface {address} does not answer"));
        }
        if is_proxy && connections.is_empty() {
            add(GsmFaultKind::NoMsc, "no MSC is connected".to_owned());
        }
        for msc in &*self.without_sms.lock() {
            add(GsmFaultKind::MscWithoutSms, format!("MSC {msc} does not accept short messages over GSUP"));
        }
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for name in connections.iter().filter_map(|connection| connection.name.as_deref()) {
            *names.entry(name).or_default() += 1;
        }
        for (name, count) in names.into_iter().filter(|(_, count)| *count > 1) {
            add(GsmFaultKind::DuplicateName, format!("{count} MSCs are connected under the name {name}"));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(name: &str) -> ConnectionState {
        let remote = "127.0.0.1:4222".parse().unwrap();
        ConnectionState { name: Some(name.to_owned()), remote, ready: true }
    }

    fn kinds(faults: &[GsmFault]) -> Vec<&'static str> {
        faults.iter().map(|fault| fault.kind.name()).collect()
    }

    #[test]
    fn faults_last_until_they_are_resolved() {
        let observed_faults = ObservedFaults::default();
        assert_eq!(
            kinds(&observed_faults.faults(true, &[connection("MSC-1"), connection("MSC-2")], None)),
            [""; 0]
        );
        observed_faults.set_hlr_error(Some("connection refused".to_owned()));
        observed_faults.msc_answered("MSC-1", false);
        let faults =
            observed_faults.faults(true, &[connection("MSC-1"), connection("MSC-1")], Some("127.0.0.1:4259"));
        assert_eq!(kinds(&faults), ["hlr-down", "hlr-ctrl-down", "msc-without-sms", "double-name"]);
        assert_eq!(faults[3].description, "2 MSCs are connected under the name MSC-1");
        observed_faults.set_hlr_error(None);
        observed_faults.msc_answered("MSC-1", true);
        assert_eq!(kinds(&observed_faults.faults(true, &[], None)), ["no-msc"]);
        observed_faults.msc_answered("MSC-1", false);
        observed_faults.msc_gone("MSC-1");
        assert_eq!(kinds(&observed_faults.faults(false, &[], None)), [""; 0], "a client sees no MSCs");
    }
}

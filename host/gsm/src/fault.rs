//! Faults of a core network that somebody has to mend outside of the appliance.

use crate::state::ConnectionState;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// How many MSCs are remembered by name; a network has far fewer.
const LIMIT: usize = 1_000;

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GsmFaultKind {
    /// The last attempt to connect to the HLR has failed.
    HlrDown,
    /// The HLR's CTRL interface does not answer.
    CtrlDown,
    /// No MSC is connected (proxy).
    NoMsc,
    /// An MSC refuses short messages: `sms-over-gsup` is missing in its configuration.
    MscWithoutSms,
    /// Two MSCs are connected under one name (proxy).
    DoubleName,
}

impl GsmFaultKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::HlrDown, Self::CtrlDown, Self::NoMsc, Self::MscWithoutSms, Self::DoubleName];

    /// Its name in the API and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HlrDown => "hlr-down",
            Self::CtrlDown => "hlr-ctrl-down",
            Self::NoMsc => "no-msc",
            Self::MscWithoutSms => "msc-without-sms",
            Self::DoubleName => "double-name",
        }
    }

    /// `error` if it stops messages, `warning` otherwise. Where no MSC is connected nobody can be reached, but nothing of ours
    /// is broken: so it is at every first start.
    #[must_use]
    pub const fn level(self) -> &'static str {
        match self {
            Self::HlrDown | Self::MscWithoutSms => "error",
            Self::NoMsc | Self::CtrlDown | Self::DoubleName => "warning",
        }
    }

    /// What to do about it.
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
            Self::DoubleName => "give each MSC an `ipa-name` of its own",
        }
    }
}

/// A fault that there is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GsmFault {
    /// Its kind.
    pub kind: GsmFaultKind,
    /// What is wrong, without the network's name.
    pub what: String,
}

/// What is seen of HLR and MSCs that tells of faults.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Why the last attempt to connect to the HLR failed; `None` once one has worked.
    hlr_error: Mutex<Option<String>>,
    /// MSCs that have refused a short message since `sms-over-gsup` is missing, and have taken none since.
    without_sms: Mutex<BTreeSet<String>>,
}

impl Observed {
    /// An attempt to connect to the HLR has failed, or (`None`) has worked.
    pub(crate) fn hlr(&self, error: Option<String>) {
        *self.hlr_error.lock() = error;
    }

    /// An MSC has answered a short message.
    pub(crate) fn msc_answered(&self, msc: &str, takes_sms: bool) {
        let mut without = self.without_sms.lock();
        if takes_sms {
            without.remove(msc);
        } else if without.len() < LIMIT {
            without.insert(msc.to_owned());
        }
    }

    /// An MSC is not connected any more; what it says when it is back counts.
    pub(crate) fn msc_gone(&self, msc: &str) {
        self.without_sms.lock().remove(msc);
    }

    /// All faults that there are. `ctrl_down` is the address of a CTRL interface that does not answer.
    pub(crate) fn faults(
        &self,
        is_proxy: bool,
        connections: &[ConnectionState],
        ctrl_down: Option<&str>,
    ) -> Vec<GsmFault> {
        let mut faults = Vec::new();
        let mut add = |kind, what| faults.push(GsmFault { kind, what });
        if let Some(error) = &*self.hlr_error.lock() {
            add(GsmFaultKind::HlrDown, format!("the HLR cannot be reached: {error}"));
        }
        if let Some(address) = ctrl_down {
            add(GsmFaultKind::CtrlDown, format!("the HLR's CTRL interface {address} does not answer"));
        }
        if is_proxy && connections.is_empty() {
            add(GsmFaultKind::NoMsc, "no MSC is connected".to_owned());
        }
        for msc in &*self.without_sms.lock() {
            add(GsmFaultKind::MscWithoutSms, format!("MSC {msc} takes no short messages over GSUP"));
        }
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for name in connections.iter().filter_map(|connection| connection.name.as_deref()) {
            *names.entry(name).or_default() += 1;
        }
        for (name, count) in names.into_iter().filter(|(_, count)| *count > 1) {
            add(GsmFaultKind::DoubleName, format!("{count} MSCs are connected under the name {name}"));
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
    fn faults_are_there_until_they_are_mended() {
        let observed = Observed::default();
        assert_eq!(kinds(&observed.faults(true, &[connection("MSC-1"), connection("MSC-2")], None)), [""; 0]);
        observed.hlr(Some("connection refused".to_owned()));
        observed.msc_answered("MSC-1", false);
        let faults =
            observed.faults(true, &[connection("MSC-1"), connection("MSC-1")], Some("127.0.0.1:4259"));
        assert_eq!(kinds(&faults), ["hlr-down", "hlr-ctrl-down", "msc-without-sms", "double-name"]);
        assert_eq!(faults[3].what, "2 MSCs are connected under the name MSC-1");
        observed.hlr(None);
        observed.msc_answered("MSC-1", true);
        assert_eq!(kinds(&observed.faults(true, &[], None)), ["no-msc"]);
        observed.msc_answered("MSC-1", false);
        observed.msc_gone("MSC-1");
        assert_eq!(kinds(&observed.faults(false, &[], None)), [""; 0], "a client sees no MSCs");
    }
}

use crate::GsupImsi;

/// A subscriber, as reported on the CTRL interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CtrlSubscriber {
    /// The IMSI.
    pub imsi: GsupImsi,
    /// The MSISDN.
    pub msisdn: Option<String>,
    /// The name of the last MSC. It is kept when the subscriber detaches, so it does not imply that the subscriber is
    /// reachable.
    pub vlr_number: Option<String>,
}

impl CtrlSubscriber {
    /// Parses the lines of `info`: a key, tabs, a value. `None` without an IMSI.
    #[must_use]
    pub fn parse(info: &str) -> Option<Self> {
        let get = |key: &str| {
            let lines = info.lines().filter_map(|line| line.split_once('\t'));
            let mut values = lines.filter(|(word, _)| word.trim() == key).map(|(_, value)| value.trim());
            values.next().filter(|value| !value.is_empty())
        };
        Some(Self {
            imsi: get("imsi")?.parse().ok()?,
            msisdn: get("msisdn").map(str::to_owned),
            vlr_number: get("vlr_number").map(str::to_owned),
        })
    }
}

use crate::Imsi;

/// A subscriber, as far as an HLR tells on its control interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Who it is.
    pub imsi: Imsi,
    /// Its number.
    pub msisdn: Option<String>,
    /// The name of the MSC where it was last. It stays when the subscriber goes, so it does not say that it can be reached.
    pub vlr_number: Option<String>,
}

impl Subscriber {
    /// Reads the many lines of `info`: a word, tabs, a value. `None` without an IMSI.
    #[must_use]
    pub fn parse(info: &str) -> Option<Self> {
        let get = |wanted: &str| {
            let lines = info.lines().filter_map(|line| line.split_once('\t'));
            let mut values = lines.filter(|(word, _)| word.trim() == wanted).map(|(_, value)| value.trim());
            values.next().filter(|value| !value.is_empty())
        };
        Some(Self {
            imsi: get("imsi")?.parse().ok()?,
            msisdn: get("msisdn").map(str::to_owned),
            vlr_number: get("vlr_number").map(str::to_owned),
        })
    }
}

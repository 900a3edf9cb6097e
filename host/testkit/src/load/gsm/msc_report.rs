use std::collections::HashMap;
use std::time::Instant;

/// A short message that an MSC received for a phone.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The recipient.
    pub imsi: u64,
    /// The message number and the source connection in the text, if it is a numbered text.
    pub number: Option<(u64, usize)>,
    /// Whether the sender indicated that more messages wait.
    pub more: bool,
    /// Whether the phone accepted it.
    pub accepted: bool,
    /// When it arrived.
    pub at: Instant,
    /// The TPDU, if the MSC keeps TPDUs.
    pub tpdu: Option<Box<[u8]>>,
}

impl Arrival {
    /// The text in the TPDU, as far as it is ASCII.
    pub fn text(&self) -> Option<String> {
        let octets = super::text::delivered(self.tpdu.as_deref()?)?;
        Some(String::from_utf8_lossy(&octets).into_owned())
    }
}

/// Results of an MSC.
#[derive(Debug, Clone, Default)]
pub struct MscReport {
    /// Short messages for phones, in order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Messages that arrived while an earlier one for the same subscriber was unanswered.
    pub overlaps: u64,
    /// Subscribers that the HLR has located here.
    pub located: u64,
    /// Connections made.
    pub connections: u64,
    /// Malformed messages.
    pub broken: u64,
}

impl MscReport {
    /// Number of messages that phones accepted.
    pub fn accepted_count(&self) -> usize {
        self.arrivals.iter().filter(|arrival| arrival.accepted).count()
    }

    /// Number of messages whose sender indicated that more messages wait.
    pub fn more_count(&self) -> usize {
        self.arrivals.iter().filter(|arrival| arrival.more).count()
    }

    /// Number of messages per subscriber.
    pub fn per_subscriber(&self) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        for arrival in &self.arrivals {
            *counts.entry(arrival.imsi).or_default() += 1;
        }
        counts
    }

    /// Accepted messages that arrived after a later one of the same source connection for the same subscriber.
    pub fn out_of_order(&self) -> u64 {
        let mut latest = HashMap::new();
        let mut count = 0;
        for arrival in self.arrivals.iter().filter(|arrival| arrival.accepted) {
            let Some((number, lane)) = arrival.number else { continue };
            let before = latest.entry((arrival.imsi, lane)).or_insert(number);
            count += u64::from(*before > number);
            *before = number.max(*before);
        }
        count
    }

    /// Messages that were accepted more than once.
    pub fn duplicate_count(&self) -> u64 {
        let mut seen = HashMap::new();
        let numbers =
            self.arrivals.iter().filter(|arrival| arrival.accepted).filter_map(|arrival| arrival.number);
        numbers.map(|(number, _)| u64::from(seen.insert(number, ()).is_some())).sum()
    }
}

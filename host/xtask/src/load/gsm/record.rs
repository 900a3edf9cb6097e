use std::collections::HashMap;
use std::time::Instant;

/// One short message that came to an MSC for a phone.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// For whom.
    pub imsi: u64,
    /// The number and the source's connection in its text, where it is a numbered one.
    pub number: Option<(u64, usize)>,
    /// Whether more messages were said to wait.
    pub more: bool,
    /// Whether the phone took it.
    pub taken: bool,
    /// When it came.
    pub at: Instant,
    /// The TPDU, where the MSC keeps them.
    pub tpdu: Option<Box<[u8]>>,
}

impl Arrival {
    /// The text in the TPDU, as far as it is ASCII.
    pub fn text(&self) -> Option<String> {
        let octets = super::text::delivered(self.tpdu.as_deref()?)?;
        Some(String::from_utf8_lossy(&octets).into_owned())
    }
}

/// What an MSC saw.
#[derive(Debug, Clone, Default)]
pub struct MscReport {
    /// Short messages for phones, in the order in which they came.
    pub arrivals: Vec<Arrival>,
    /// How many came while an earlier one for the same subscriber was unanswered.
    pub overlaps: u64,
    /// How many subscribers the HLR has located here.
    pub located: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Messages that made no sense.
    pub broken: u64,
}

impl MscReport {
    /// How many the phones took.
    pub fn taken(&self) -> usize {
        self.arrivals.iter().filter(|arrival| arrival.taken).count()
    }

    /// How many said that more wait.
    pub fn more(&self) -> usize {
        self.arrivals.iter().filter(|arrival| arrival.more).count()
    }

    /// How many came for each subscriber.
    pub fn per_subscriber(&self) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        for arrival in &self.arrivals {
            *counts.entry(arrival.imsi).or_default() += 1;
        }
        counts
    }

    /// How many were taken after a later one of the same source's connection for the same subscriber.
    pub fn out_of_order(&self) -> u64 {
        let mut latest = HashMap::new();
        let mut count = 0;
        for arrival in self.arrivals.iter().filter(|arrival| arrival.taken) {
            let Some((number, lane)) = arrival.number else { continue };
            let before = latest.entry((arrival.imsi, lane)).or_insert(number);
            count += u64::from(*before > number);
            *before = number.max(*before);
        }
        count
    }

    /// How many were taken more than once.
    pub fn doubles(&self) -> u64 {
        let mut seen = HashMap::new();
        let numbers =
            self.arrivals.iter().filter(|arrival| arrival.taken).filter_map(|arrival| arrival.number);
        numbers.map(|(number, _)| u64::from(seen.insert(number, ()).is_some())).sum()
    }
}

use super::InstanceState;
use crate::bindings::host::switchyard::hooks::{details, quality as wit};
use crate::host_call_log::HostCallKind;
use capabilities::{PeerFigures, QualityDimension};

/// Kinds of scopes in the key of a recorded call.
const SCOPE_PEER: u8 = 0;
const SCOPE_DIGITS: u8 = 1;
const SCOPE_ATTRIBUTE: u8 = 2;

/// Encoding in the record: the ten counts of 4 octets in the order of their fields, and the two times of 8 octets; `u64::MAX`
/// for none.
fn encode(figures: PeerFigures) -> Vec<u8> {
    let PeerFigures {
        accepted,
        temporary,
        permanent,
        absent,
        memory_full,
        throttled,
        unanswered,
        delivered,
        failed,
        conversions,
        median,
        percentile95,
    } = figures;
    let counts = [
        accepted,
        temporary,
        permanent,
        absent,
        memory_full,
        throttled,
        unanswered,
        delivered,
        failed,
        conversions,
    ];
    let times = [median, percentile95].map(|time| time.unwrap_or(u64::MAX));
    counts
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .chain(times.iter().flat_map(|time| time.to_le_bytes()))
        .collect()
}

/// Decodes the output of [`encode`].
pub(crate) fn decode(octets: &[u8]) -> Option<PeerFigures> {
    let mut rest = octets;
    let mut count = || {
        let (count, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        Some(u32::from_le_bytes(*count))
    };
    let mut figures = PeerFigures {
        accepted: count()?,
        temporary: count()?,
        permanent: count()?,
        absent: count()?,
        memory_full: count()?,
        throttled: count()?,
        unanswered: count()?,
        delivered: count()?,
        failed: count()?,
        conversions: count()?,
        ..PeerFigures::default()
    };
    let (median, percentile95) = rest.split_first_chunk::<8>()?;
    let time = |octets: [u8; 8]| Some(u64::from_le_bytes(octets)).filter(|time| *time != u64::MAX);
    figures.median = time(*median);
    figures.percentile95 = time(percentile95.try_into().ok()?);
    Some(figures)
}

impl InstanceState {
    /// The current message's value for a scope; `None` if it has none.
    fn scope_value(&mut self, dimension: &QualityDimension) -> Option<Vec<u8>> {
        match dimension {
            QualityDimension::Peer => Some(Vec::new()),
            QualityDimension::Digits(digits) => self.destination.first(*digits),
            QualityDimension::Attribute(name) => {
                details::Host::attribute(self, name.to_string()).map(String::into_bytes)
            }
        }
    }

    fn observed_figures(
        &mut self,
        peer: &str,
        dimension: &QualityDimension,
    ) -> Result<PeerFigures, wit::Unavailable> {
        let context = self.context.clone();
        if !context.may_use_peer(peer) {
            return Err(wit::Unavailable::NotGranted);
        }
        let windows = context.quality.windows(dimension).ok_or(wit::Unavailable::NotGranted)?;
        let value = self.scope_value(dimension).ok_or(wit::Unavailable::NoValue)?;
        // A candidate with another window does not get the figures of the live chain.
        let window = u64::try_from(windows.window().as_millis()).unwrap_or(u64::MAX).to_le_bytes();
        let scope = match dimension {
            QualityDimension::Peer => vec![SCOPE_PEER],
            QualityDimension::Digits(digits) => vec![SCOPE_DIGITS, *digits],
            QualityDimension::Attribute(name) => [&[SCOPE_ATTRIBUTE], name.as_bytes()].concat(),
        };
        let key: &[&[u8]] = &[peer.as_bytes(), &window, &scope, &value];
        let recorded = self.call_log.recall(HostCallKind::Quality, key);
        if let Some(figures) = recorded.and_then(|recorded| decode(&recorded)) {
            return Ok(figures);
        }
        let figures = windows.figures(peer, &value, self.now);
        self.call_log.append(HostCallKind::Quality, key, &encode(figures));
        Ok(figures)
    }
}

/// Reads the key of a recorded call: peer, window in milliseconds, dimension and value.
pub(crate) fn decode_key(key: &[u8]) -> Option<(&[u8], u64, QualityDimension, &[u8])> {
    let end = key.iter().position(|octet| *octet == 0)?;
    let (peer, rest) = (key.get(..end)?, key.get(end + 1..)?);
    let (window, rest) = rest.split_first_chunk::<8>()?;
    let (kind, rest) = rest.strip_prefix(&[0])?.split_first()?;
    let (dimension, rest) = match *kind {
        SCOPE_PEER => (QualityDimension::Peer, rest),
        SCOPE_DIGITS => {
            let (digits, rest) = rest.split_first()?;
            (QualityDimension::Digits(*digits), rest)
        }
        _ => {
            let end = rest.iter().position(|octet| *octet == 0)?;
            let (name, rest) = rest.split_at_checked(end)?;
            (QualityDimension::Attribute(String::from_utf8_lossy(name).into()), rest)
        }
    };
    Some((peer, u64::from_le_bytes(*window), dimension, rest.strip_prefix(&[0])?))
}

impl wit::Host for InstanceState {
    fn observed(&mut self, peer: String, scope: wit::Scope) -> Result<wit::Figures, wit::Unavailable> {
        let dimension = match scope {
            wit::Scope::Peer => QualityDimension::Peer,
            wit::Scope::Digits(digits) => QualityDimension::Digits(digits),
            wit::Scope::Attribute(name) => QualityDimension::Attribute(name.into()),
        };
        let figures = self.observed_figures(&peer, &dimension)?;
        Ok(wit::Figures {
            accepted: figures.accepted,
            refused: wit::Refusals {
                temporary: figures.temporary,
                permanent: figures.permanent,
                absent: figures.absent,
                memory_full: figures.memory_full,
                throttled: figures.throttled,
            },
            unanswered: figures.unanswered,
            delivered: figures.delivered,
            failed: figures.failed,
            conversions: figures.conversions,
            median: figures.median,
            percentile95: figures.percentile95,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_encoding() {
        let figures = PeerFigures {
            accepted: 1,
            temporary: 2,
            permanent: 3,
            absent: 4,
            memory_full: 5,
            throttled: 6,
            unanswered: 7,
            delivered: 8,
            failed: 9,
            conversions: u32::MAX,
            median: Some(1_000),
            percentile95: None,
        };
        assert_eq!(decode(&encode(figures)), Some(figures));
        assert_eq!((decode(&[]), decode(&[0; 55]), decode(&[0; 57])), (None, None, None));
    }

    #[test]
    fn a_key_survives_encoding() {
        let window = 60_000_u64.to_le_bytes();
        let read = |scope: &[u8], value: &[u8]| {
            let key = [&b"north"[..], &window, scope, value].join(&0);
            let (peer, window, dimension, value) = decode_key(&key)?;
            assert_eq!((peer, window), (&b"north"[..], 60_000));
            Some((dimension, value.to_vec()))
        };
        assert_eq!(read(&[SCOPE_PEER], b""), Some((QualityDimension::Peer, Vec::new())));
        assert_eq!(read(&[SCOPE_DIGITS, 4], b"4915"), Some((QualityDimension::Digits(4), b"4915".to_vec())));
        let attribute = QualityDimension::Attribute("campaign".into());
        assert_eq!(read(b"\x02campaign", b"a\0b"), Some((attribute, b"a\0b".to_vec())));
        assert!(decode_key(b"north").is_none() && decode_key(b"north\x001234567").is_none());
    }
}

//! Observations of peers in cases: for the local host, and from faults.

use crate::plugin_host::{CaseFigures, CaseRefusals, CaseSetup};
use capabilities::{Observed, PeerFigures, PeerQuality, QualityAccess, QualityDimension, QualityGrant};
use model::{ErrorClass, ObservationKind, Timestamp};
use std::time::Duration;

/// The scope of figures: dimension and value.
fn scope(figures: &CaseFigures) -> Result<(QualityDimension, &str), String> {
    match (&figures.digits, &figures.attribute) {
        (Some(_), Some(_)) => {
            Err("quality: digits and attribute are two scopes; make an entry of each".to_owned())
        }
        (Some(digits), None) => {
            let length = u8::try_from(digits.len()).unwrap_or(u8::MAX);
            Ok((QualityDimension::Digits(length), digits))
        }
        (None, Some((name, value))) => Ok((QualityDimension::Attribute(name.as_str().into()), value)),
        (None, None) => Ok((QualityDimension::Peer, "")),
    }
}

/// Adds the observations of a case. The windows live as long as the result, which belongs to the binding that reads them.
pub(crate) fn observe(quality: &PeerQuality, setup: &CaseSetup) -> Result<QualityAccess, String> {
    let access = quality.access(setup.grants.quality.as_ref());
    for figures in &setup.quality {
        let (dimension, value) = scope(figures)?;
        let windows = access.windows(&dimension).ok_or_else(|| {
            format!(
                "quality of peer {:?}: grants.quality does not have {dimension:?}; add it to the grants of the case",
                figures.peer
            )
        })?;
        let CaseRefusals { temporary, permanent, absent, memory_full, throttled } = figures.refused;
        let after = Duration::from_millis(figures.dlr_ms);
        for (count, kind) in [
            (figures.accepted, ObservationKind::Accepted),
            (temporary, ObservationKind::Refused(ErrorClass::Temporary)),
            (permanent, ObservationKind::Refused(ErrorClass::Permanent)),
            (absent, ObservationKind::Refused(ErrorClass::Absent)),
            (memory_full, ObservationKind::Refused(ErrorClass::MemoryFull)),
            (throttled, ObservationKind::Refused(ErrorClass::Throttled)),
            (figures.unanswered, ObservationKind::Unanswered),
            (figures.delivered, ObservationKind::Delivered { after }),
            (figures.failed, ObservationKind::Failed { after: Some(after) }),
            (figures.conversions, ObservationKind::Converted),
        ] {
            for _ in 0..count {
                windows.observe(&[Observed {
                    peer: &figures.peer,
                    digits: value.as_bytes(),
                    attribute: &|_| Some(value.to_owned()),
                    at: Timestamp(setup.now),
                    kind,
                }]);
            }
        }
    }
    Ok(access)
}

/// Adds recorded figures to the setup of a case, and the grant that they need.
pub(crate) fn add_answer(
    setup: &mut CaseSetup,
    (peer, window): (&str, u64),
    (dimension, value): (&QualityDimension, &str),
    figures: &PeerFigures,
) {
    let grant = setup.grants.quality.get_or_insert(QualityGrant {
        window_ms: window,
        digits: Vec::new(),
        attributes: Vec::new(),
    });
    let (mut digits, mut attribute) = (None, None);
    match dimension {
        QualityDimension::Peer => {}
        QualityDimension::Digits(count) => {
            if !grant.digits.contains(count) {
                grant.digits.push(*count);
            }
            digits = Some(value.to_owned());
        }
        QualityDimension::Attribute(name) => {
            if !grant.attributes.iter().any(|known| **known == **name) {
                grant.attributes.push(name.to_string());
            }
            attribute = Some((name.to_string(), value.to_owned()));
        }
    }
    let count = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
    setup.quality.push(CaseFigures {
        peer: peer.to_owned(),
        digits,
        attribute,
        accepted: count(figures.accepted),
        refused: CaseRefusals {
            temporary: count(figures.temporary),
            permanent: count(figures.permanent),
            absent: count(figures.absent),
            memory_full: count(figures.memory_full),
            throttled: count(figures.throttled),
        },
        unanswered: count(figures.unanswered),
        delivered: count(figures.delivered),
        failed: count(figures.failed),
        conversions: count(figures.conversions),
        dlr_ms: figures.median.unwrap_or(0),
    });
}

//! Tokens of requests that links pass to the engine. Their 64 bits contain everything that the answer needs, so no
//! table is needed.

use smpp::CommandId;

/// The kind of a request that waits for the engine's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RequestKind {
    SubmitSm = 1,
    DataSm = 2,
    SubmitMulti = 3,
    QuerySm = 4,
    CancelSm = 5,
    ReplaceSm = 6,
    DeliverSm = 7,
}

impl RequestKind {
    pub(crate) fn command(self) -> CommandId {
        match self {
            Self::SubmitSm => CommandId::SUBMIT_SM,
            Self::DataSm => CommandId::DATA_SM,
            Self::SubmitMulti => CommandId::SUBMIT_MULTI,
            Self::QuerySm => CommandId::QUERY_SM,
            Self::CancelSm => CommandId::CANCEL_SM,
            Self::ReplaceSm => CommandId::REPLACE_SM,
            Self::DeliverSm => CommandId::DELIVER_SM,
        }
    }
}

/// Packs a token: the kind, a slot number of the link (24 bits), and the peer's sequence number.
pub(crate) fn pack(kind: RequestKind, slot: u32, sequence: u32) -> u64 {
    u64::from(kind as u8) << 56 | u64::from(slot & 0xFF_FFFF) << 32 | u64::from(sequence)
}

/// Unpacks a token made by [`pack`].
pub(crate) fn unpack(token: u64) -> Option<(RequestKind, u32, u32)> {
    let [octet, high, middle, low, sequence @ ..] = token.to_be_bytes();
    let kind = [
        RequestKind::SubmitSm,
        RequestKind::DataSm,
        RequestKind::SubmitMulti,
        RequestKind::QuerySm,
        RequestKind::CancelSm,
        RequestKind::ReplaceSm,
        RequestKind::DeliverSm,
    ]
    .into_iter()
    .find(|kind| *kind as u8 == octet)?;
    Some((kind, u32::from_be_bytes([0, high, middle, low]), u32::from_be_bytes(sequence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        for kind in [RequestKind::SubmitSm, RequestKind::SubmitMulti, RequestKind::DeliverSm] {
            for (slot, sequence) in [(0, 0), (1, 0xFFFF_FFFF), (0xFF_FFFF, 7)] {
                assert_eq!(unpack(pack(kind, slot, sequence)), Some((kind, slot, sequence)));
            }
        }
        assert_eq!(unpack(42), None);
    }
}

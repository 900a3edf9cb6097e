//! The marks under which links give requests to the engine: all that the answer needs, in 64 bits and without a table.

use smpp::CommandId;

/// What kind of request waits for the engine's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Asked {
    SubmitSm = 1,
    DataSm = 2,
    SubmitMulti = 3,
    QuerySm = 4,
    CancelSm = 5,
    ReplaceSm = 6,
    DeliverSm = 7,
    /// Not a peer's request at all: the engine's answer shows that all its earlier commands have come through.
    Barrier = 8,
}

impl Asked {
    pub(crate) fn command(self) -> CommandId {
        match self {
            Self::SubmitSm => CommandId::SUBMIT_SM,
            Self::DataSm => CommandId::DATA_SM,
            Self::SubmitMulti => CommandId::SUBMIT_MULTI,
            Self::QuerySm => CommandId::QUERY_SM,
            Self::CancelSm => CommandId::CANCEL_SM,
            Self::ReplaceSm => CommandId::REPLACE_SM,
            Self::DeliverSm => CommandId::DELIVER_SM,
            Self::Barrier => CommandId::GENERIC_NACK,
        }
    }
}

/// A request's mark: its kind, a slot of the link's own (24 bits) and the peer's sequence number.
pub(crate) fn pack(asked: Asked, slot: u32, sequence: u32) -> u64 {
    u64::from(asked as u8) << 56 | u64::from(slot & 0xFF_FFFF) << 32 | u64::from(sequence)
}

/// Reads what [`pack`] wrote.
pub(crate) fn unpack(token: u64) -> Option<(Asked, u32, u32)> {
    let [kind, high, middle, low, sequence @ ..] = token.to_be_bytes();
    let asked = [
        Asked::SubmitSm,
        Asked::DataSm,
        Asked::SubmitMulti,
        Asked::QuerySm,
        Asked::CancelSm,
        Asked::ReplaceSm,
        Asked::DeliverSm,
        Asked::Barrier,
    ]
    .into_iter()
    .find(|asked| *asked as u8 == kind)?;
    Some((asked, u32::from_be_bytes([0, high, middle, low]), u32::from_be_bytes(sequence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_read_what_they_write() {
        for asked in [Asked::SubmitSm, Asked::SubmitMulti, Asked::DeliverSm, Asked::Barrier] {
            for (slot, sequence) in [(0, 0), (1, 0xFFFF_FFFF), (0xFF_FFFF, 7)] {
                assert_eq!(unpack(pack(asked, slot, sequence)), Some((asked, slot, sequence)));
            }
        }
        assert_eq!(unpack(42), None);
    }
}

use model::{DlrState, SubmittedSegment};

/// The state of all segments together; `None` while one of them is not final.
pub(crate) fn state_of_segments(segments: &[SubmittedSegment]) -> Option<DlrState> {
    let mut worst = DlrState::Delivered;
    for segment in segments {
        match segment.state {
            None | Some(DlrState::Scheduled | DlrState::Enroute | DlrState::Accepted) => {
                return None;
            }
            Some(DlrState::Delivered) => {}
            Some(other) => worst = other,
        }
    }
    (!segments.is_empty()).then_some(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PeerMessageId;

    fn segment(state: Option<DlrState>) -> SubmittedSegment {
        SubmittedSegment { id: PeerMessageId::default(), state }
    }

    #[test]
    fn a_message_is_delivered_when_all_its_segments_are() {
        use DlrState::{Accepted, Delivered, Enroute, Undeliverable};
        assert_eq!(state_of_segments(&[]), None);
        assert_eq!(state_of_segments(&[segment(Some(Delivered)), segment(None)]), None);
        assert_eq!(state_of_segments(&[segment(Some(Delivered)), segment(Some(Enroute))]), None);
        assert_eq!(state_of_segments(&[segment(Some(Accepted))]), None);
        assert_eq!(state_of_segments(&[segment(Some(Delivered)), segment(Some(Delivered))]), Some(Delivered));
        assert_eq!(
            state_of_segments(&[segment(Some(Undeliverable)), segment(Some(Delivered))]),
            Some(Undeliverable)
        );
    }
}

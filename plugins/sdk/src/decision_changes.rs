//! Common methods of routers' and screens' decisions. The contract has a separate type for each, with equal fields.

/// Adds methods to a decision type: for its note, and for changes of TLVs and of pace.
macro_rules! changes_of_decisions {
    ($decision:ty) => {
        impl $decision {
            /// The same decision, with a note for the trace.
            #[must_use]
            pub fn because(mut self, note: impl Into<String>) -> Self {
                self.note = Some(note.into());
                self
            }

            /// The same decision, and the message goes out with this TLV.
            #[must_use]
            pub fn set_tlv(mut self, tag: u16, value: impl Into<Vec<u8>>) -> Self {
                self.changes.push($crate::Change::SetTlv($crate::Tlv { tag, value: value.into() }));
                self
            }

            /// The same decision, and the message goes out without the TLV of this tag.
            #[must_use]
            pub fn remove_tlv(mut self, tag: u16) -> Self {
                self.changes.push($crate::Change::RemoveTlv(tag));
                self
            }

            /// The same decision, and the submit attempts of the message take tokens from this bucket: at most 8.
            #[must_use]
            pub fn use_pace_bucket(mut self, bucket: $crate::pace::PaceBucket) -> Self {
                self.changes.push($crate::Change::UsePaceBucket(bucket));
                self
            }

            /// The same decision, and the message is sent only while this window is open: at most 4 windows, all of which
            /// must be open.
            #[must_use]
            pub fn use_send_window(mut self, window: $crate::pace::SendWindow) -> Self {
                self.changes.push($crate::Change::UseSendWindow(window));
                self
            }
        }
    };
}

pub(crate) use changes_of_decisions;

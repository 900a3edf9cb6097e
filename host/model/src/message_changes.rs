use crate::tlv::{put_tlv, tlvs};
use crate::{PaceBucketUse, SendWindowUse};
use bytes::Bytes;
use std::fmt;

/// Changes to the submitted message that its screens and router decided. They apply only with a forward verdict, and are
/// replaced when the message is routed again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MessageChanges {
    /// Tags of TLVs, each with its new value; `None` removes the TLV.
    pub tlvs: Vec<(u16, Option<Box<[u8]>>)>,
    /// Attributes for later plugins: name and value.
    pub attributes: Vec<(Box<str>, Box<str>)>,
    /// Pace buckets that its submit attempts take tokens from, each once.
    pub pace_buckets: Vec<PaceBucketUse>,
    /// Send windows, each once: the message is sent only while all are open.
    pub send_windows: Vec<SendWindowUse>,
}

/// Replaces the entry with this key, or adds one.
fn set<K: PartialEq, V>(entries: &mut Vec<(K, V)>, key: K, value: V) {
    match entries.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => entries.push((key, value)),
    }
}

impl MessageChanges {
    /// The largest number of changes of one message.
    pub const MAX: usize = 32;
    /// The longest value of an attribute, in octets.
    pub const MAX_ATTRIBUTE: usize = 255;
    /// The largest number of pace buckets that one decision names.
    pub const MAX_PACE_BUCKETS: usize = 8;
    /// The largest number of send windows that one decision names.
    pub const MAX_SEND_WINDOWS: usize = 4;

    /// Tags that a change cannot have, because the appliance itself sets their values: receipted_message_id,
    /// qos_time_to_live, the sar_ tags, sc_interface_version, network_error_code, message_payload, more_messages_to_send,
    /// message_state and congestion_state (SMPP 3.4 §5.3.2, 5.0 §4.8.4).
    pub const FIXED_TAGS: [u16; 11] =
        [0x001E, 0x0017, 0x020C, 0x020E, 0x020F, 0x0210, 0x0423, 0x0424, 0x0426, 0x0427, 0x0428];

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tlvs.len() + self.attributes.len() + self.pace_buckets.len() + self.send_windows.len()
    }

    /// Sets or removes a TLV.
    pub fn change_tlv(&mut self, tag: u16, value: Option<Box<[u8]>>) {
        set(&mut self.tlvs, tag, value);
    }

    /// Sets an attribute.
    pub fn set_attribute(&mut self, name: Box<str>, value: Box<str>) {
        set(&mut self.attributes, name, value);
    }

    /// Adds a pace bucket, or replaces the one with the same name.
    pub fn use_pace_bucket(&mut self, bucket: PaceBucketUse) {
        match self.pace_buckets.iter_mut().find(|known| known.name == bucket.name) {
            Some(known) => *known = bucket,
            None => self.pace_buckets.push(bucket),
        }
    }

    /// Adds a send window, or replaces the one with the same name.
    pub fn use_send_window(&mut self, window: SendWindowUse) {
        match self.send_windows.iter_mut().find(|known| known.name == window.name) {
            Some(known) => *known = window,
            None => self.send_windows.push(window),
        }
    }

    /// The value of an attribute, if it was set.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| **known == *name).map(|(_, value)| &**value)
    }

    /// Adds the changes of a later screen or router, which take precedence. Pace buckets and send windows of both apply.
    pub fn extend(&mut self, later: Self) {
        later.tlvs.into_iter().for_each(|(tag, value)| self.change_tlv(tag, value));
        later.attributes.into_iter().for_each(|(name, value)| self.set_attribute(name, value));
        later.pace_buckets.into_iter().for_each(|bucket| self.use_pace_bucket(bucket));
        later.send_windows.into_iter().for_each(|window| self.use_send_window(window));
    }

    /// The TLVs of a message with these changes.
    #[must_use]
    pub fn apply_to_tlvs(&self, submitted: &Bytes) -> Bytes {
        if self.tlvs.is_empty() {
            return submitted.clone();
        }
        let mut out = Vec::with_capacity(submitted.len());
        for (tag, value) in tlvs(submitted) {
            if self.tlvs.iter().all(|(changed, _)| *changed != tag) {
                put_tlv(&mut out, tag, value);
            }
        }
        for (tag, value) in &self.tlvs {
            if let Some(value) = value {
                put_tlv(&mut out, *tag, value);
            }
        }
        out.into()
    }

    /// Whether a text can be the name of an attribute: 1 to 64 of a-z, 0-9, dot, hyphen and underscore.
    #[must_use]
    pub fn is_attribute_name(name: &str) -> bool {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'-' | b'_'))
    }
}

/// The changes without values, which may be personal data.
impl fmt::Display for MessageChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (tag, value) in &self.tlvs {
            let becomes = if value.is_some() { "set" } else { "removed" };
            write!(f, "{separator}TLV {tag:#06x} {becomes}")?;
            separator = ", ";
        }
        for (name, _) in &self.attributes {
            write!(f, "{separator}attribute {name} set")?;
            separator = ", ";
        }
        for bucket in &self.pace_buckets {
            write!(f, "{separator}pace bucket {}", bucket.name)?;
            separator = ", ";
        }
        for window in &self.send_windows {
            write!(f, "{separator}send window {}", window.name)?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_change_of_the_same_thing_wins() {
        let mut changes = MessageChanges::default();
        changes.change_tlv(0x1401, Some(b"brand"[..].into()));
        changes.set_attribute("mcc".into(), "262".into());
        let mut later = MessageChanges::default();
        later.change_tlv(0x1401, None);
        later.change_tlv(0x1402, Some(b"campaign"[..].into()));
        later.set_attribute("mcc".into(), "460".into());
        changes.extend(later);
        assert_eq!(
            (changes.len(), changes.attribute("mcc"), changes.attribute("mnc")),
            (3, Some("460"), None)
        );
        assert_eq!(changes.to_string(), "TLV 0x1401 removed, TLV 0x1402 set, attribute mcc set");
        let mut submitted = Vec::new();
        put_tlv(&mut submitted, 0x1401, b"theirs");
        put_tlv(&mut submitted, 0x0204, &[0, 9]);
        let changed = changes.apply_to_tlvs(&submitted.into());
        let changed: Vec<_> = tlvs(&changed).collect();
        assert_eq!(changed, [(0x0204, &[0, 9][..]), (0x1402, b"campaign")]);
    }

    #[test]
    fn pace_limits_of_screens_and_routers_apply_together() {
        let bucket = |name: &str| PaceBucketUse { name: name.into(), defined: None };
        let window = |name: &str| SendWindowUse { name: name.into(), defined: None };
        let mut changes = MessageChanges::default();
        changes.use_pace_bucket(bucket("brand"));
        changes.use_send_window(window("day"));
        let mut later = MessageChanges::default();
        for name in ["campaign", "brand"] {
            later.use_pace_bucket(bucket(name));
        }
        changes.extend(later);
        assert_eq!(changes.to_string(), "pace bucket brand, pace bucket campaign, send window day");
        assert_eq!((changes.len(), changes.is_empty()), (3, false));
    }

    #[test]
    fn names_of_attributes() {
        for good in ["mcc", "line-type", "hlr.imsi_2", &"a".repeat(64)] {
            assert!(MessageChanges::is_attribute_name(good), "{good}");
        }
        for bad in ["", "MCC", "a b", "ä", &"a".repeat(65)] {
            assert!(!MessageChanges::is_attribute_name(bad), "{bad}");
        }
    }
}

//! TLVs and changes of a message in cases.

use crate::case_text::CaseText;
use model::{MessageChanges, PaceBucketUse, SendWindowUse};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// TLVs by tag. In a file the tags are four hexadecimal digits, and a value is a text or `{ hex = "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, CaseText>", into = "BTreeMap<String, TlvValue>")]
pub struct CaseTlvs(pub BTreeMap<u16, Vec<u8>>);

#[derive(Serialize)]
#[serde(untagged)]
enum TlvValue {
    Text(String),
    Octets { hex: String },
}

fn tag(digits: &str) -> Result<u16, String> {
    model::parse_tlv_tag(digits)
        .ok_or_else(|| format!("{digits:?} is not a tag: it has four hexadecimal digits, such as 1401"))
}

impl TryFrom<BTreeMap<String, CaseText>> for CaseTlvs {
    type Error = String;

    fn try_from(entries: BTreeMap<String, CaseText>) -> Result<Self, String> {
        entries
            .into_iter()
            .map(|(digits, value)| Ok((tag(&digits)?, value.octets)))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl From<CaseTlvs> for BTreeMap<String, TlvValue> {
    fn from(tlvs: CaseTlvs) -> Self {
        let value = |octets: Vec<u8>| match String::from_utf8(octets) {
            Ok(text) if !text.contains(char::is_control) => TlvValue::Text(text),
            Ok(text) => TlvValue::Octets { hex: model::hex(text.as_bytes()) },
            Err(error) => TlvValue::Octets { hex: model::hex(error.as_bytes()) },
        };
        tlvs.0.into_iter().map(|(tag, octets)| (format!("{tag:04x}"), value(octets))).collect()
    }
}

impl CaseTlvs {
    /// The TLVs of a message, encoded.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.0.iter().for_each(|(tag, value)| model::put_tlv(&mut octets, *tag, value));
        octets
    }

    pub(crate) fn read(octets: &[u8]) -> Self {
        Self(model::tlvs(octets).map(|(tag, value)| (tag, value.to_vec())).collect())
    }
}

/// The changes of a screen or router to a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CaseChanges {
    /// TLVs that it sets.
    #[serde(skip_serializing_if = "is_empty")]
    pub tlvs: CaseTlvs,
    /// Tags of TLVs that it removes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<CaseTag>,
    /// Attributes that it sets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Pace buckets that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pace_buckets: Vec<PaceBucketUse>,
    /// Send windows that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub send_windows: Vec<SendWindowUse>,
}

fn is_empty(tlvs: &CaseTlvs) -> bool {
    tlvs.0.is_empty()
}

/// A tag: four hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CaseTag(pub u16);

impl TryFrom<String> for CaseTag {
    type Error = String;

    fn try_from(digits: String) -> Result<Self, String> {
        tag(&digits).map(Self)
    }
}

impl From<CaseTag> for String {
    fn from(tag: CaseTag) -> Self {
        format!("{:04x}", tag.0)
    }
}

impl CaseChanges {
    pub(crate) fn of(changes: &MessageChanges) -> Self {
        let mut found = Self::default();
        for (tag, value) in &changes.tlvs {
            match value {
                Some(value) => drop(found.tlvs.0.insert(*tag, value.to_vec())),
                None => found.removed.push(CaseTag(*tag)),
            }
        }
        found.removed.sort_unstable();
        (found.pace_buckets, found.send_windows) =
            (changes.pace_buckets.clone(), changes.send_windows.clone());
        found.pace_buckets.sort_unstable();
        found.send_windows.sort_unstable();
        found.attributes =
            changes.attributes.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_limits_are_read_as_they_are_written() {
        let text = "[[pace-buckets]]\nname = \"brand\"\n\n\
                    [[pace-buckets]]\nname = \"c1\"\namount = 2000\nzone = \"UTC\"\ncounts = \"segments\"\n\n\
                    [[send-windows]]\nname = \"day\"\nzone = \"UTC\"\n\n\
                    [[send-windows.hours]]\ndays = [\"mon\", \"tue\"]\nopens = \"08:00\"\ncloses = \"21:00\"\n";
        let changes: CaseChanges = toml::from_str(text).unwrap();
        assert_eq!(toml::to_string(&changes).unwrap(), text);
        let mut named = MessageChanges::default();
        changes.pace_buckets.iter().rev().for_each(|bucket| named.use_pace_bucket(bucket.clone()));
        changes.send_windows.iter().for_each(|window| named.use_send_window(window.clone()));
        assert_eq!(CaseChanges::of(&named), changes, "in any order");
        let wrong =
            toml::from_str::<CaseChanges>("pace-buckets = [{ name = \"c1\", amount = 1 }]").unwrap_err();
        assert!(wrong.message().contains("needs `amount`, and `per-ms` or `zone`"), "{wrong}");
    }

    #[test]
    fn changes_are_read_as_they_are_written() {
        let mut changes = MessageChanges::default();
        changes.change_tlv(0x1401, Some(b"brand"[..].into()));
        changes.change_tlv(0x1402, Some([0, 255][..].into()));
        changes.change_tlv(0x0204, None);
        changes.set_attribute("mcc".into(), "262".into());
        let changes = CaseChanges::of(&changes);
        let text = toml::to_string(&changes).unwrap();
        assert_eq!(
            text,
            "removed = [\"0204\"]\n\n[tlvs]\n1401 = \"brand\"\n\n[tlvs.1402]\nhex = \"00ff\"\n\n[attributes]\nmcc = \"262\"\n"
        );
        assert_eq!(toml::from_str::<CaseChanges>(&text).unwrap(), changes);
        let octets = changes.tlvs.octets();
        assert_eq!(CaseTlvs::read(&octets), changes.tlvs);
        for wrong in ["tlvs = { 14 = \"x\" }", "removed = [\"wxyz\"]", "tlvs = { 1401 = { hex = \"0\" } }"] {
            assert!(toml::from_str::<CaseChanges>(wrong).is_err(), "{wrong}");
        }
    }
}

//! Texts of messages in cases.

use serde::Deserialize;

/// The octets of a message's text, in its data coding, including a user data header.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "TextEntry")]
pub struct CaseText {
    /// The octets.
    pub octets: Vec<u8>,
    /// Whether they begin with a user data header.
    pub udhi: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or an object of hex and udhi")]
enum TextEntry {
    Utf8(String),
    Octets(TextTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextTable {
    hex: String,
    #[serde(default)]
    udhi: bool,
}

impl TryFrom<TextEntry> for CaseText {
    type Error = String;

    fn try_from(written: TextEntry) -> Result<Self, String> {
        match written {
            TextEntry::Utf8(text) => Ok(Self { octets: text.into_bytes(), udhi: false }),
            TextEntry::Octets(TextTable { hex, udhi }) => {
                let octets = model::from_hex(&hex)
                    .ok_or_else(|| format!("hex = {hex:?} is not pairs of hexadecimal digits"))?;
                Ok(Self { octets, udhi })
            }
        }
    }
}

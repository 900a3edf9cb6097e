use bytes::Bytes;
use configuration::{KeyFormat, KeyValue, Keys, Section, Shape};
use model::{MessageChanges, from_hex, parse_tlv_tag, put_tlv, tlvs};
use serde_json::json;

/// TLVs that messages must have, and those that they get if they lack them (SMPP 3.4 §5.3.2).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TlvRules {
    /// Tags and values for messages without the tag.
    pub defaults: Vec<(u16, Bytes)>,
    /// Tags without which a message is refused.
    pub required: Vec<u16>,
}

impl TlvRules {
    /// The TLVs with the defaults.
    ///
    /// # Errors
    /// The tag of a TLV that is required and missing.
    pub fn apply(&self, own: Bytes) -> Result<Bytes, u16> {
        let is_missing = |tag: u16| !tlvs(&own).any(|(known, _)| known == tag);
        let missing: Vec<_> = self.defaults.iter().filter(|(tag, _)| is_missing(*tag)).collect();
        let is_default = |tag: u16| self.defaults.iter().any(|(known, _)| *known == tag);
        if let Some(tag) = self.required.iter().find(|tag| is_missing(**tag) && !is_default(**tag)) {
            return Err(*tag);
        }
        if missing.is_empty() {
            return Ok(own);
        }
        let mut all = own.to_vec();
        missing.into_iter().for_each(|(tag, value)| put_tlv(&mut all, *tag, value));
        Ok(all.into())
    }
}

/// The keys of [`TlvRules`].
#[derive(Clone, Keys)]
struct TlvTable {
    /// Tags of TLVs without which a message is refused, such as `"1400"`: four hexadecimal digits.
    #[key(default_as = "none")]
    required: Vec<String>,
    /// TLVs for messages without the tag, such as `{ 1401 = "brand", 1402 = "0x00FF" }`: a text, or octets in hexadecimal
    /// after 0x.
    #[key(format = TlvDefaults, default_as = "none")]
    defaults: Vec<(u16, Bytes)>,
}

fn tag(section: &Section<'_>, key: &'static str, digits: &str) -> Option<u16> {
    match parse_tlv_tag(digits) {
        Some(tag) if MessageChanges::FIXED_TAGS.contains(&tag) => {
            section.error(key, format!("has the tag {digits}, whose value the appliance makes itself"));
            None
        }
        Some(tag) => Some(tag),
        None => {
            section.error(
                key,
                format!("has the tag {digits:?}: a tag has four hexadecimal digits, such as 1401"),
            );
            None
        }
    }
}

struct TlvDefaults;

impl KeyFormat<Vec<(u16, Bytes)>> for TlvDefaults {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<Vec<(u16, Bytes)>> {
        let mut defaults = Vec::new();
        for (digits, text) in section.section(key).pairs() {
            let value = match text.strip_prefix("0x") {
                Some(hex) => from_hex(hex),
                None => Some(text.as_bytes().to_vec()),
            };
            let Some(value) = value.filter(|value| value.len() <= 255) else {
                section.error(key, format!("has a value for {digits} that is not a text or 0x and pairs of hexadecimal digits, of at most 255 octets"));
                continue;
            };
            defaults.extend(tag(section, key, digits).map(|tag| (tag, Bytes::from(value))));
        }
        Some(defaults)
    }

    fn shape(&self) -> Shape {
        Shape::Map(Box::new(Shape::Value("string", json!({ "type": "string" }))))
    }
}

/// The format of [`TlvRules`] in the configuration.
#[derive(Debug, Clone, Copy)]
pub struct TlvKeys;

impl KeyFormat<TlvRules> for TlvKeys {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<TlvRules> {
        let table = TlvTable::read_or_empty(section, key);
        let required = table.required.iter().filter_map(|digits| tag(section, key, digits));
        Some(TlvRules { required: required.collect(), defaults: table.defaults })
    }

    fn shape(&self) -> Shape {
        Shape::Table(TlvTable::keys())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_added_and_what_is_required_must_be_there() {
        let rules = TlvRules {
            defaults: vec![(0x1401, Bytes::from_static(b"ours")), (0x1402, Bytes::from_static(b"more"))],
            required: vec![0x1400, 0x1402],
        };
        let with = |own: &[(u16, &[u8])]| {
            let mut octets = Vec::new();
            own.iter().for_each(|(tag, value)| put_tlv(&mut octets, *tag, value));
            rules
                .apply(octets.into())
                .map(|all| tlvs(&all).map(|(tag, value)| (tag, value.to_vec())).collect())
        };
        let all: Vec<_> = with(&[(0x1400, b"a"), (0x1401, b"theirs")]).unwrap();
        assert_eq!(all, [(0x1400, b"a".to_vec()), (0x1401, b"theirs".to_vec()), (0x1402, b"more".to_vec())]);
        assert_eq!(with(&[(0x1401, b"theirs")]), Err(0x1400));
        assert_eq!(TlvRules::default().apply(Bytes::new()), Ok(Bytes::new()));
    }
}

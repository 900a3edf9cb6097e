//! The forms of an SMSC's message ids, which may differ between response and receipt.

use model::PeerMessageId;

/// Normalisation of a peer's message ids before they are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MessageIdForm {
    /// The same characters in responses and receipts.
    #[default]
    AsIs,
    /// Hexadecimal in the response, decimal in the receipt.
    HexToDecimal,
    /// Decimal in the response, hexadecimal in the receipt.
    DecimalToHex,
    /// Leading zeros may be missing.
    StripZeros,
    /// Upper and lower case are the same.
    FoldCase,
}

/// Maximum length of a stored id, in octets: four times the limit of SMPP (65 with the NUL, 34 §5.2.23), since some
/// peers use longer ones.
const MAX_ID_OCTETS: usize = 255;

impl MessageIdForm {
    /// The stored form of an id in a response. An id that is too long is stored as an empty id, because the message
    /// was accepted nevertheless.
    #[must_use]
    pub fn from_response(self, raw: &[u8]) -> PeerMessageId {
        match self {
            _ if raw.len() > MAX_ID_OCTETS => PeerMessageId::default(),
            Self::HexToDecimal => convert_radix(raw, 16),
            Self::DecimalToHex => convert_radix(raw, 10),
            Self::AsIs | Self::StripZeros | Self::FoldCase => self.normalize(raw),
        }
    }

    /// The stored form of an id in a receipt.
    #[must_use]
    pub fn from_receipt(self, raw: &[u8]) -> PeerMessageId {
        match self {
            _ if raw.len() > MAX_ID_OCTETS => PeerMessageId::default(),
            Self::HexToDecimal => convert_radix(raw, 10),
            Self::DecimalToHex => convert_radix(raw, 16),
            Self::AsIs | Self::StripZeros | Self::FoldCase => self.normalize(raw),
        }
    }

    fn normalize(self, raw: &[u8]) -> PeerMessageId {
        match self {
            Self::StripZeros => {
                let digits =
                    raw.iter().position(|octet| *octet != b'0').unwrap_or(raw.len().saturating_sub(1));
                PeerMessageId::new(raw.get(digits..).unwrap_or_default())
            }
            Self::FoldCase => PeerMessageId(raw.iter().map(u8::to_ascii_lowercase).collect()),
            _ => PeerMessageId::new(raw),
        }
    }
}

/// The number as decimal digits; the octets unchanged if they are not a number of at most 128 bits.
fn convert_radix(raw: &[u8], radix: u32) -> PeerMessageId {
    let number = std::str::from_utf8(raw).ok().and_then(|text| u128::from_str_radix(text.trim(), radix).ok());
    match number {
        Some(number) => PeerMessageId::new(number.to_string().as_bytes()),
        None => PeerMessageId::new(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_117_hexadecimal_and_decimal_forms_match() {
        let form = MessageIdForm::HexToDecimal;
        assert_eq!(form.from_response(b"39f99dd5"), form.from_receipt(b"972660181"));
        assert_eq!(form.from_response(b"0039F99DD5"), form.from_receipt(b"0972660181"));
        let form = MessageIdForm::DecimalToHex;
        assert_eq!(form.from_response(b"972660181"), form.from_receipt(b"39f99dd5"));
        let form = MessageIdForm::StripZeros;
        assert_eq!(form.from_response(b"0000012345"), form.from_receipt(b"12345"));
        assert_eq!(form.from_response(b"000"), form.from_receipt(b"0"));
        let form = MessageIdForm::FoldCase;
        assert_eq!(form.from_response(b"Ab-cD"), form.from_receipt(b"AB-CD"));
        let long = [b'7'; 60_000];
        assert_eq!(form.from_response(&long), PeerMessageId::default());
        assert_eq!(form.from_receipt(&long), PeerMessageId::default());
        assert_ne!(MessageIdForm::AsIs.from_response(b"01"), MessageIdForm::AsIs.from_receipt(b"1"));
        assert_eq!(MessageIdForm::HexToDecimal.from_response(b"not hex"), PeerMessageId::new(b"not hex"));
    }
}

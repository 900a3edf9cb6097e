//! The forms in which one SMSC shows one message id: in the answer this way, in the receipt another (sheet §2.9).

use model::PeerMessageId;

/// How ids of a peer are brought into one form before they are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MessageIdForm {
    /// The same characters in answers and receipts.
    #[default]
    AsIs,
    /// Hexadecimal in the answer, decimal in the receipt.
    HexToDecimal,
    /// Decimal in the answer, hexadecimal in the receipt.
    DecimalToHex,
    /// Leading zeros come and go.
    StripZeros,
    /// Upper and lower case come and go.
    FoldCase,
}

/// The longest id that is kept, in octets: four times what SMPP allows (65 with its end, 34 §5.2.23), since some have longer ones.
const LONGEST: usize = 255;

impl MessageIdForm {
    /// An id as it stood in an answer, in the form in which it is kept. One that is too long is kept as none: the message
    /// was taken all the same.
    #[must_use]
    pub fn of_answer(self, raw: &[u8]) -> PeerMessageId {
        match self {
            _ if raw.len() > LONGEST => PeerMessageId::default(),
            Self::HexToDecimal => reradix(raw, 16),
            Self::DecimalToHex => reradix(raw, 10),
            Self::AsIs | Self::StripZeros | Self::FoldCase => self.plain(raw),
        }
    }

    /// An id as it stood in a receipt, in the form in which it is kept.
    #[must_use]
    pub fn of_receipt(self, raw: &[u8]) -> PeerMessageId {
        match self {
            _ if raw.len() > LONGEST => PeerMessageId::default(),
            Self::HexToDecimal => reradix(raw, 10),
            Self::DecimalToHex => reradix(raw, 16),
            Self::AsIs | Self::StripZeros | Self::FoldCase => self.plain(raw),
        }
    }

    fn plain(self, raw: &[u8]) -> PeerMessageId {
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

/// The number as decimal digits; the octets themselves where they are no number of 128 bits.
fn reradix(raw: &[u8], radix: u32) -> PeerMessageId {
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
    fn check_117_hex_and_decimal_forms_meet() {
        let form = MessageIdForm::HexToDecimal;
        assert_eq!(form.of_answer(b"39f99dd5"), form.of_receipt(b"972660181"));
        assert_eq!(form.of_answer(b"0039F99DD5"), form.of_receipt(b"0972660181"));
        let form = MessageIdForm::DecimalToHex;
        assert_eq!(form.of_answer(b"972660181"), form.of_receipt(b"39f99dd5"));
        let form = MessageIdForm::StripZeros;
        assert_eq!(form.of_answer(b"0000012345"), form.of_receipt(b"12345"));
        assert_eq!(form.of_answer(b"000"), form.of_receipt(b"0"));
        let form = MessageIdForm::FoldCase;
        assert_eq!(form.of_answer(b"Ab-cD"), form.of_receipt(b"AB-CD"));
        let long = [b'7'; 60_000];
        assert_eq!(form.of_answer(&long), PeerMessageId::default());
        assert_eq!(form.of_receipt(&long), PeerMessageId::default());
        assert_ne!(MessageIdForm::AsIs.of_answer(b"01"), MessageIdForm::AsIs.of_receipt(b"1"));
        assert_eq!(MessageIdForm::HexToDecimal.of_answer(b"not hex"), PeerMessageId::new(b"not hex"));
    }
}

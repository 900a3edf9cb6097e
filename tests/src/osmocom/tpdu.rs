//! A handset's TPDUs, written independently of the appliance's codec: GSM 7-bit letters that equal ASCII,
//! and UCS-2.

use anyhow::{Context, Result, bail, ensure};

/// An SMS-SUBMIT.
#[derive(Debug, Clone)]
pub struct Submit {
    /// TP-Message-Reference.
    pub reference: u8,
    /// TP-Destination-Address: type octet (TON and NPI) and digits.
    pub to: (u8, String),
    /// Up to 160 letters.
    pub text: String,
    /// Relative validity (TP-VP), if any.
    pub validity: Option<u8>,
    /// TP-Status-Report-Request.
    pub report: bool,
    /// TP-Reject-Duplicates.
    pub reject_duplicates: bool,
    /// The user data header without its length, if any.
    pub header: Vec<u8>,
}

impl Submit {
    /// To an international number.
    pub fn new(reference: u8, to: &str, text: &str) -> Self {
        Self {
            reference,
            to: (0x91, to.to_owned()),
            text: text.to_owned(),
            validity: None,
            report: false,
            reject_duplicates: false,
            header: Vec::new(),
        }
    }

    /// The encoded TPDU.
    pub fn octets(&self) -> Vec<u8> {
        let mut first = 1;
        first |= u8::from(self.reject_duplicates) << 2;
        first |= if self.validity.is_some() { 2 << 3 } else { 0 };
        first |= u8::from(self.report) << 5;
        first |= u8::from(!self.header.is_empty()) << 6;
        let (kind, digits) = &self.to;
        let mut octets = vec![first, self.reference, digits.len() as u8, *kind];
        let halves: Vec<_> = digits.bytes().map(|digit| digit - b'0').collect();
        octets.extend(halves.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0xf) << 4));
        octets.extend_from_slice(&[0, 0]);
        octets.extend(self.validity);
        let mut septets = Vec::new();
        let mut data = Vec::new();
        if !self.header.is_empty() {
            data.push(self.header.len() as u8);
            data.extend_from_slice(&self.header);
        }
        // The text begins at the next septet boundary.
        let skipped = (data.len() * 8).div_ceil(7);
        septets.extend(self.text.bytes());
        octets.push((skipped + septets.len()) as u8);
        let bits = (skipped + septets.len()) * 7;
        data.resize(bits.div_ceil(8), 0);
        for (place, septet) in septets.iter().enumerate() {
            let bit = (skipped + place) * 7;
            let wide = u16::from(*septet) << (bit % 8);
            data[bit / 8] |= wide as u8;
            if wide > 0xff {
                data[bit / 8 + 1] |= (wide >> 8) as u8;
            }
        }
        octets.extend_from_slice(&data);
        octets
    }
}

/// The text of an SMS-DELIVER, without its header.
pub fn decode_text(tpdu: &[u8]) -> Result<String> {
    let broken = || format!("a TPDU that breaks off: {tpdu:02x?}");
    let first = *tpdu.first().with_context(broken)?;
    ensure!(first & 3 == 0, "no SMS-DELIVER: {tpdu:02x?}");
    let digits = usize::from(*tpdu.get(1).with_context(broken)?);
    let after = tpdu.get(3 + digits.div_ceil(2)..).with_context(broken)?;
    // TP-PID, TP-DCS, 7 octets of TP-SCTS, TP-UDL
    let (&[_, coding], after) = after.split_first_chunk::<2>().with_context(broken)?;
    let (&length, data) = after.get(7..).and_then(<[u8]>::split_first).with_context(broken)?;
    let header = if first & 0x40 == 0 { 0 } else { usize::from(*data.first().with_context(broken)?) + 1 };
    match coding >> 2 & 3 {
        0 => {
            let septets = (header * 8).div_ceil(7)..usize::from(length);
            let letter = |place: usize| {
                let bit = place * 7;
                let low = u16::from(*data.get(bit / 8)?);
                let high = data.get(bit / 8 + 1).map_or(0, |octet| u16::from(*octet));
                Some(char::from(((low | high << 8) >> (bit % 8) & 0x7f) as u8))
            };
            septets.map(letter).collect::<Option<String>>().with_context(broken)
        }
        2 => {
            let units = data.get(header..usize::from(length)).with_context(broken)?;
            let units: Vec<_> =
                units.chunks(2).map(|pair| u16::from(pair[0]) << 8 | u16::from(pair[1])).collect();
            Ok(String::from_utf16(&units)?)
        }
        other => bail!("alphabet {other}: {tpdu:02x?}"),
    }
}

/// TP-Message-Reference and TP-Status of an SMS-STATUS-REPORT (3GPP TS 23.040 §9.2.3.15).
pub fn decode_report(tpdu: &[u8]) -> Result<(u8, u8)> {
    let broken = || format!("a TPDU that breaks off: {tpdu:02x?}");
    let &[first, reference, digits] = tpdu.first_chunk().with_context(broken)?;
    ensure!(first & 3 == 2, "no SMS-STATUS-REPORT: {tpdu:02x?}");
    // TP-RA's type and digits, two time stamps
    let status = tpdu.get(4 + usize::from(digits).div_ceil(2) + 14).with_context(broken)?;
    Ok((reference, *status))
}

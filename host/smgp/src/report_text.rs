//! The text of a status report (SMGP 3.0.3 §6.2.63): fields at fixed offsets, with labels that gateways spell
//! differently.

use crate::SmgpMsgId;
use bytes::{Bytes, BytesMut};

/// The fields of a status report's text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportText {
    /// The id in the Submit's answer.
    pub id: SmgpMsgId,
    /// `YYMMDDhhmm` in China.
    pub submitted: Bytes,
    /// `YYMMDDhhmm` in China.
    pub done: Bytes,
    /// The state: seven characters.
    pub word: Bytes,
    /// The network's code: three characters, mostly digits.
    pub error: Bytes,
    /// The first octets of the message.
    pub text: Bytes,
}

/// The labels, each except the first with a leading space, and the lengths of their values in octets.
const LABELS: [(&str, usize); 8] = [
    ("id:", 10),
    (" sub:", 3),
    (" dlvrd:", 3),
    (" submit date:", 10),
    (" done date:", 10),
    (" stat:", 7),
    (" err:", 3),
    (" text:", 20),
];

/// The shortest text that has a state.
const MIN_LENGTH: usize = 88;

impl ReportText {
    /// Writes the text: 122 octets.
    #[must_use]
    pub fn write(&self) -> Bytes {
        let mut out = BytesMut::new();
        let values: [&[u8]; 8] = [
            &self.id.0,
            b"001",
            if self.word.starts_with(b"DELIVRD") { b"001" } else { b"000" },
            &self.submitted,
            &self.done,
            &self.word,
            &self.error,
            &self.text,
        ];
        for ((label, width), value) in LABELS.iter().zip(values) {
            out.extend_from_slice(label.as_bytes());
            let value = value.get(..*width).unwrap_or(value);
            out.extend_from_slice(value);
            let filler = if *width == 3 { b'0' } else { 0 };
            out.resize(out.len() + width - value.len(), filler);
        }
        out.freeze()
    }

    /// Parses the text: by the offsets of its fields; if they do not contain a state, by the labels. `None` if it is
    /// not a report.
    #[must_use]
    pub fn read(content: &[u8]) -> Option<Self> {
        if content.len() < MIN_LENGTH || !content.get(..3)?.eq_ignore_ascii_case(b"id:") {
            return None;
        }
        // The id may contain any octets, so nothing is searched for in it. Some gateways write its digits.
        let digits = content.get(3..23).and_then(SmgpMsgId::from_digits);
        let (id, rest) = match digits {
            Some(id) => (id, content.get(23..)?),
            None => (SmgpMsgId::of(content.get(3..13)?), content.get(13..)?),
        };
        let placed = |at: usize, width: usize| rest.get(at..at + width).map(Bytes::copy_from_slice);
        // Offsets after the id.
        let (submitted, done, word, error) =
            (placed(31, 10)?, placed(52, 10)?, placed(68, 7)?, placed(80, 3));
        let is_word = word.iter().all(u8::is_ascii_graphic) && has_label(rest, 68);
        if is_word {
            let text = rest.get(89..).map(Bytes::copy_from_slice).unwrap_or_default();
            return Some(Self { id, submitted, done, word, error: error.unwrap_or_default(), text });
        }
        let find = |label: &str, width: usize| labelled(rest, label, width);
        Some(Self {
            id,
            submitted: find("submitdate", 10).unwrap_or_default(),
            done: find("donedate", 10).unwrap_or_default(),
            word: find("stat", 7)?,
            error: find("err", 3).unwrap_or_default(),
            text: Bytes::new(),
        })
    }
}

/// Whether the value at this place follows the label of the state, however it is spelt.
fn has_label(rest: &[u8], at: usize) -> bool {
    let start = at.saturating_sub(5);
    rest.get(start..at).is_some_and(|label| label.eq_ignore_ascii_case(b"stat:"))
}

/// The value after a label. Case, spaces and underscores in the label are ignored. A value ends at the next space, or
/// after `width` octets.
fn labelled(rest: &[u8], label: &str, width: usize) -> Option<Bytes> {
    let mut at = 0;
    while let Some(colon) = rest.get(at..)?.iter().position(|octet| *octet == b':') {
        let before = rest.get(..at + colon)?;
        let letters: Vec<u8> = before
            .iter()
            .rev()
            .filter(|octet| !matches!(octet, b' ' | b'_'))
            .take(label.len())
            .map(u8::to_ascii_lowercase)
            .collect();
        at += colon + 1;
        if letters.iter().rev().eq(label.as_bytes()) {
            let value = rest.get(at..)?;
            let value = value.trim_ascii_start();
            let end = value.iter().position(|octet| *octet == b' ' || *octet == 0).unwrap_or(value.len());
            return Some(Bytes::copy_from_slice(&value[..end.min(width)]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> ReportText {
        ReportText {
            id: SmgpMsgId::from_digits(b"01006107080907000017").unwrap(),
            submitted: "2607080907".into(),
            done: "2607080908".into(),
            word: "DELIVRD".into(),
            error: "000".into(),
            text: Bytes::from_static(b"004\xb2\xe2\xca\xd4\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        }
    }

    #[test]
    fn check_17_every_spelling_of_a_report_is_read() {
        let written = report().write();
        assert_eq!(written.len(), 122);
        assert_eq!(ReportText::read(&written), Some(report()));
        let is_read = |octets: &[u8], id: SmgpMsgId| {
            let read = ReportText::read(octets).unwrap();
            assert_eq!((read.id, &read.word[..], &read.error[..]), (id, &b"DELIVRD"[..], &b"000"[..]));
            assert_eq!((&read.submitted[..], &read.done[..]), (&b"2607080907"[..], &b"2607080908"[..]));
        };
        let id = report().id;
        let replace = |octets: &[u8], from: &[u8], to: &[u8]| {
            let at = octets.windows(from.len()).position(|window| window == from).unwrap();
            [&octets[..at], to, &octets[at + from.len()..]].concat()
        };
        // The specification's own spelling.
        let capitals = replace(&replace(&written, b"submit", b"Submit"), b"text:", b"Text:");
        is_read(&capitals, id);
        // An s in place of every space before a label.
        let mut spelt = written.to_vec();
        for (from, to) in [
            (&b" sub:"[..], &b"sSub:"[..]),
            (b" dlvrd:", b"sDlvrd:"),
            (b" submit date:", b"sSubmit_Date:"),
            (b" done date:", b"sDone_Date:"),
            (b" stat:", b"sStat:"),
            (b" err:", b"sErr:"),
            (b" text:", b"sText:"),
        ] {
            spelt = replace(&spelt, from, to);
        }
        is_read(&spelt, id);
        // A space after the label: 123 octets.
        is_read(&replace(&written, b"done date:", b"done date: "), id);
        is_read(&written[..102], id);
        // An id that looks like labels, and one of digits.
        let mut odd = report();
        odd.id = SmgpMsgId(*b" sub: stat");
        is_read(&odd.write(), odd.id);
        let digits = [&b"id:01006107080907000017"[..], &written[13..]].concat();
        assert_eq!(digits.len(), 132);
        is_read(&digits, id);
        for short in [0, 2, 12, 40, 80] {
            assert_eq!(ReportText::read(&written[..short]), None);
        }
    }
}

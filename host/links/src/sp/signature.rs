//! Text signatures, 【name】: Chinese networks refuse texts without one.

use super::options::{SignaturePosition, SpNodeOptions};
use crate::content_coding::words_of;
use model::Text;

/// The brackets U+3010 and U+3011.
const OPEN: char = '【';
const CLOSE: char = '】';

/// Whether a text has a signature with any name.
fn is_signed(words: &str, place: SignaturePosition) -> bool {
    match place {
        SignaturePosition::Front => words.starts_with(OPEN) && words.contains(CLOSE),
        SignaturePosition::End => words.ends_with(CLOSE) && words.contains(OPEN),
    }
}

/// The text with the node's signature. `None` if it has one already, needs none, or cannot get one: segments of longer
/// texts and binary data are unchanged.
pub(super) fn signed(text: &Text, is_part: bool, node: &SpNodeOptions) -> Option<Text> {
    if node.signature.is_empty() || is_part {
        return None;
    }
    let words = words_of(text)?;
    if is_signed(&words, node.signature_place) {
        return None;
    }
    let name = &node.signature;
    let words = match node.signature_place {
        SignaturePosition::Front => format!("{OPEN}{name}{CLOSE}{words}"),
        SignaturePosition::End => format!("{words}{OPEN}{name}{CLOSE}"),
    };
    Some(Text { octets: sgip::text::utf16(&words), data_coding: 8, ..text.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use configuration::Keys as _;
    use sgip::text::{Coding, encode_as, utf16};

    #[test]
    fn check_69_a_text_has_one_signature() {
        let mut node = SpNodeOptions { signature: "阿里".to_owned(), ..SpNodeOptions::defaults() };
        let ucs2 = |words: &str| Text { octets: utf16(words), data_coding: 8, ..Text::default() };
        let gbk = |words: &str| Text {
            octets: encode_as(words, Coding::GBK).unwrap(),
            data_coding: 15,
            ..Text::default()
        };
        let ascii = Text { octets: "hello".into(), data_coding: 0, ..Text::default() };
        assert_eq!(signed(&ascii, false, &node), Some(ucs2("【阿里】hello")));
        assert_eq!(signed(&gbk("您好"), false, &node), Some(ucs2("【阿里】您好")));
        for text in ["【阿里】您好", "【other】hi"] {
            assert_eq!(signed(&ucs2(text), false, &node), None);
            assert_eq!(signed(&gbk(text), false, &node), None);
        }
        let octets = Text { data_coding: 4, ..ascii.clone() };
        let part = Text { udhi: true, ..ascii.clone() };
        assert_eq!((signed(&octets, false, &node), signed(&part, false, &node)), (None, None));
        assert_eq!(signed(&ascii, true, &node), None, "a part without a header");
        node.signature_place = SignaturePosition::End;
        assert_eq!(signed(&ascii, false, &node), Some(ucs2("hello【阿里】")));
        assert_eq!(signed(&ucs2("hello【阿里】"), false, &node), None);
        assert_eq!(signed(&ucs2("【阿里】hello"), false, &node), Some(ucs2("【阿里】hello【阿里】")));
        node.signature.clear();
        assert_eq!(signed(&ascii, false, &node), None);
    }
}

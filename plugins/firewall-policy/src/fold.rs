//! Comparison of texts without case, accents and lookalike characters. Words of the document and texts are folded in the same
//! way, so a fold only has to map characters that look alike to the same result.

/// The folded text: in lower case, without accents, invisible characters and repeated blanks.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    if text.is_ascii() {
        push_ascii(text, &mut folded);
        return folded;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let ascii = rest.bytes().take_while(u8::is_ascii).count();
        let (first, others) = rest.split_at(ascii);
        push_ascii(first, &mut folded);
        let mut others = others.chars();
        if let Some(c) = others.next() {
            push(c, &mut folded);
        }
        rest = others.as_str();
    }
    folded
}

/// Folds a run of ASCII characters. Most texts have only these, and a run costs much less than single characters.
fn push_ascii(text: &str, folded: &mut String) {
    if is_plain(text.as_bytes()) {
        let text = if folded.ends_with(' ') { text.trim_start_matches(' ') } else { text };
        let start = folded.len();
        folded.push_str(text);
        folded[start..].make_ascii_lowercase();
    } else {
        text.chars().for_each(|c| push(c, folded));
    }
}

/// Whether folding changes only the case of these ASCII characters: no control characters, no repeated spaces. Has no branch
/// for each octet, so that the compiler can use vector instructions.
fn is_plain(octets: &[u8]) -> bool {
    let has_control = octets.iter().fold(false, |has, octet| has | !(b' '..0x7f).contains(octet));
    let pairs = octets.iter().zip(octets.iter().skip(1));
    !has_control && !pairs.fold(false, |has, (one, next)| has | ((*one == b' ') & (*next == b' ')))
}

/// The range of `text` that was folded to the range `start..end` of its folded form.
pub(crate) fn original_range(text: &str, start: usize, end: usize) -> (usize, usize) {
    let mut folded = String::with_capacity(text.len());
    let (mut first, mut last) = (None, text.len());
    for (offset, c) in text.char_indices() {
        let before = folded.len();
        push(c, &mut folded);
        if first.is_none() && folded.len() > start {
            first = Some(offset);
        }
        // An accent or a joiner after the last letter belongs to it.
        if before >= end && folded.len() > before {
            last = offset;
            break;
        }
    }
    (first.unwrap_or(last), last)
}

fn push(c: char, folded: &mut String) {
    if c.is_ascii() {
        if c.is_ascii_whitespace() || c.is_ascii_control() {
            push_blank(folded);
        } else {
            folded.push(c.to_ascii_lowercase());
        }
    } else if c.is_whitespace() || c.is_control() {
        push_blank(folded);
    } else if !is_invisible(c) {
        for lower in c.to_lowercase().filter(|lower| !is_invisible(*lower)) {
            match base(lower) {
                Some(letters) => folded.push_str(letters),
                None => folded.push(ascii_form(lower).unwrap_or(lower)),
            }
        }
    }
}

fn push_blank(folded: &mut String) {
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
}

/// Characters without a width of their own: soft hyphens, joiners, direction marks, combining accents, variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// The ASCII letters for a lower-case letter with an accent, or for a Cyrillic or Greek letter that looks like them in
/// either case.
fn base(c: char) -> Option<&'static str> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'а' | 'α' => "a",
        'æ' => "ae",
        'в' | 'β' => "b",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' | 'с' => "c",
        'ď' | 'đ' | 'ð' | 'ԁ' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'е' | 'ё' | 'ε' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' | 'һ' | 'н' | 'η' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | 'і' | 'ї' | 'ι' => "i",
        'ĵ' | 'ј' => "j",
        'ķ' | 'ĸ' | 'к' | 'κ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'м' => "m",
        'ñ' | 'ń' | 'ņ' | 'ň' | 'ŉ' | 'ŋ' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'о' | 'ο' => "o",
        'œ' => "oe",
        'р' | 'ρ' => "p",
        'ԛ' => "q",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' | 'ſ' | 'ѕ' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' | 'т' | 'τ' => "t",
        'þ' => "th",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'υ' => "u",
        'ν' => "v",
        'ŵ' | 'ԝ' => "w",
        'х' | 'χ' => "x",
        'ý' | 'ÿ' | 'ŷ' | 'у' => "y",
        'ź' | 'ż' | 'ž' | 'ζ' => "z",
        _ => return None,
    })
}

/// The ASCII character of a full-width, circled or mathematical one.
fn ascii_form(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = |index: u32| char::from_u32(u32::from(b'a') + index % 26);
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xfee0).map(|c| c.to_ascii_lowercase()),
        0x24d0..=0x24e9 => letter(code - 0x24d0),
        0x1d400..=0x1d6a3 => letter((code - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => char::from_u32(u32::from(b'0') + (code - 0x1d7ce) % 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lookalike_characters_are_folded_to_the_same() {
        for (text, folded) in [
            ("Gewinn  \r\n JETZT", "gewinn jetzt"),
            ("Ünïçödé Straße", "unicode strasse"),
            ("РауРаl", "paypal"),
            ("v\u{200b}i\u{ad}a\u{301}gra", "viagra"),
            ("ＷＩＮ！", "win!"),
            ("𝐖𝐢𝐧 𝟕", "win 7"),
            ("Ⓕⓡⓔⓔ", "free"),
            ("İstanbul", "istanbul"),
            ("中奖", "中奖"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn a_range_is_found_in_the_original() {
        let text = "Die  Straße\u{200b} Ende";
        let folded = fold(text);
        let range = |part: &str| {
            let start = folded.find(part).unwrap();
            let (start, end) = original_range(text, start, start + part.len());
            &text[start..end]
        };
        assert_eq!(range("strasse"), "Straße\u{200b}");
        assert_eq!(range("die"), "Die");
        assert_eq!(range("ende"), "Ende");
    }

    proptest! {
        #[test]
        fn characters_are_folded_together_as_one_by_one(text in "([ -~]{0,6}| {0,3}|\\PC|\t){0,8}") {
            let mut one_by_one = String::new();
            text.chars().for_each(|c| push(c, &mut one_by_one));
            prop_assert_eq!(fold(&text), one_by_one);
        }

        #[test]
        fn a_folded_text_stays_as_it_is(text in "\\PC{0,40}") {
            let folded = fold(&text);
            prop_assert_eq!(fold(&folded), folded.clone());
            let (start, end) = original_range(&text, 0, folded.len());
            prop_assert!(start <= end && text.is_char_boundary(start) && text.is_char_boundary(end));
        }
    }
}

//! Functions on the characters of a text, for plugins.

/// Characters that end a web address in a text.
fn ends_address(c: char) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '<' | '>'
                | '"'
                | '\''
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '|'
                | '，'
                | '。'
                | '、'
                | '；'
                | '！'
                | '？'
                | '（'
                | '）'
                | '【'
                | '】'
                | '“'
                | '”'
        )
}

/// Whether a word without a scheme begins with the name of a host: labels of letters, digits and hyphens between dots, the
/// last one of at least two letters.
fn begins_with_host(word: &str) -> bool {
    if !word.contains('.') {
        return false;
    }
    let host = word.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let mut labels = host.rsplit('.');
    let is_top = |label: &str| label.len() >= 2 && label.chars().all(char::is_alphabetic);
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    labels.next().is_some_and(is_top) && {
        let mut others = labels.peekable();
        others.peek().is_some() && others.all(is_label)
    }
}

/// The addresses of web pages in a text, in their order: words with the scheme http or https, and words that begin with the
/// name of a host. A word like "end.Next" looks like a host, too.
pub(crate) fn urls(text: &str) -> impl Iterator<Item = &str> {
    // Many texts have no address. The check is cheap: a scheme has a colon, and the name of a host has a dot.
    let text = if text.contains(['.', ':']) { text } else { "" };
    text.split(ends_address).filter_map(|word| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let has_scheme = |scheme: &str| {
            word.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
                && word.len() > scheme.len()
        };
        if has_scheme("http://") || has_scheme("https://") {
            return Some(word);
        }
        (!word.contains('@') && begins_with_host(word)).then_some(word)
    })
}

/// A hash that is equal for texts that differ only in digits, case, spaces and punctuation: 64-bit FNV-1a of the lower-case
/// letters. `None` if the text has no letter.
pub(crate) fn near_duplicate_hash(text: &str) -> Option<u64> {
    let letters = text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase);
    let mut buffer = [0; 4];
    let (hash, count) = letters.fold((0xcbf2_9ce4_8422_2325_u64, 0_usize), |(hash, count), c| {
        let hash = c
            .encode_utf8(&mut buffer)
            .bytes()
            .fold(hash, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3));
        (hash, count + 1)
    });
    (count > 0).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_web_pages_are_found() {
        let of = |text| urls(text).collect::<Vec<_>>();
        assert_eq!(
            of("See https://example.com/a?b=c, HTTP://X.example or bit.example/2zQ (or www.example.org)."),
            ["https://example.com/a?b=c", "HTTP://X.example", "bit.example/2zQ", "www.example.org"]
        );
        assert_eq!(of("点击 t.example/abc。谢谢"), ["t.example/abc"]);
        for none in
            ["", "http://", "1.5 kg", "z.B. so", "a..example", "-a.example", "me@example.com", "10.0.0.1"]
        {
            assert!(of(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn near_duplicates_share_a_hash() {
        let hash = near_duplicate_hash;
        assert_eq!(hash("Your code is 1234."), hash("your CODE  is 98 76"));
        assert_ne!(hash("Your code is 1234."), hash("Your coat is 1234."));
        assert_eq!((hash("1234 !?"), hash("")), (None, None));
    }
}

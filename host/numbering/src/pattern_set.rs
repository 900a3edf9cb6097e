//! Digit patterns: `NXXXX`, `619555[0-4]XXX`, `49151.`, and ranges, for example `6195550100-6195550199`.

/// Maximum digits of a number (ITU-T E.164 §6.1).
pub(crate) const MAX_DIGITS: usize = 15;

/// The digits allowed at one position: bit n for digit n.
type Digits = u16;

const ANY: Digits = 0b11_1111_1111;

/// A pattern: allowed digits by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    positions: Vec<Digits>,
    /// Whether one or more further digits of any value follow.
    open: bool,
}

/// The patterns of one entry in the document: one pattern, or several that cover a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternSet {
    pub(crate) patterns: Vec<Pattern>,
    /// Number of matching numbers.
    pub(crate) size: u64,
}

impl PatternSet {
    /// Parses a pattern or a range. `X` is 0-9, `Z` 1-9, `N` 2-9, `[...]` a choice; a final dot means one or more
    /// further digits.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let patterns = match text.split_once('-') {
            Some((first, last)) if is_digits(first) && is_digits(last) => range(text, first, last)?,
            _ => vec![Pattern::parse(text)?],
        };
        if patterns.iter().any(|pattern| pattern.positions.len() + usize::from(pattern.open) > MAX_DIGITS) {
            return Err(format!("{text:?} has more than {MAX_DIGITS} digits"));
        }
        let size = patterns.iter().map(Pattern::size).sum();
        Ok(Self { patterns, size })
    }

    /// A set with one pattern.
    pub(crate) fn of(pattern: Pattern) -> Self {
        Self { size: pattern.size(), patterns: vec![pattern] }
    }

    /// Whether the first digit may be zero.
    pub(crate) fn may_begin_with_zero(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.positions.first().is_none_or(|position| position & 1 != 0))
    }

    /// Prepends these digits to each pattern.
    pub(crate) fn after(mut self, prefix: &str) -> Self {
        for pattern in &mut self.patterns {
            let mut positions: Vec<Digits> = prefix.bytes().map(digit_mask).collect();
            positions.append(&mut pattern.positions);
            pattern.positions = positions;
        }
        self
    }

    /// Whether the digits match.
    pub(crate) fn matches(&self, digits: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(digits))
    }

    /// Minimum and maximum number of digits.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let of = |pattern: &Pattern| match pattern.open {
            true => (pattern.positions.len() + 1, MAX_DIGITS),
            false => (pattern.positions.len(), pattern.positions.len()),
        };
        let lengths = self.patterns.iter().map(of);
        lengths.fold((usize::MAX, 0), |(least, most), (low, high)| (least.min(low), most.max(high)))
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            Err(format!(
                "{text:?} {what}; a pattern has digits, X (0-9), Z (1-9), N (2-9) and choices like [2-57], and may end \
                 with a dot for one or more further digits; a range is two numbers of the same length, \
                 \"6195550100-6195550199\""
            ))
        };
        let mut positions = Vec::new();
        let mut open = false;
        let mut rest = text.bytes();
        while let Some(octet) = rest.next() {
            if open {
                return wrong("continues after its final dot");
            }
            positions.push(match octet {
                b'0'..=b'9' => digit_mask(octet),
                b'X' => ANY,
                b'Z' => ANY & !1,
                b'N' => ANY & !0b11,
                b'[' => {
                    let choice: Vec<u8> = rest.by_ref().take_while(|octet| *octet != b']').collect();
                    match parse_choice(&choice) {
                        // Without a closing bracket all octets are consumed, and the text does not end in one.
                        Some(digits) if rest.len() > 0 || text.ends_with(']') => digits,
                        _ => return wrong("has an invalid choice"),
                    }
                }
                b'.' => {
                    open = true;
                    continue;
                }
                _ => return wrong("is not a pattern"),
            });
        }
        if positions.is_empty() {
            return wrong("does not begin with a digit");
        }
        Ok(Self { positions, open })
    }

    /// Whether the digits match.
    pub(crate) fn matches(&self, digits: &str) -> bool {
        let lengths_fit = match self.open {
            true => digits.len() > self.positions.len(),
            false => digits.len() == self.positions.len(),
        };
        lengths_fit
            && self
                .positions
                .iter()
                .zip(digits.bytes())
                .all(|(position, octet)| position & digit_mask(octet) != 0)
            && digits.bytes().all(|octet| octet.is_ascii_digit())
    }

    /// The matching number, if there is exactly one.
    pub(crate) fn single_number(&self) -> Option<String> {
        (!self.open).then(|| fixed(&self.positions)).flatten()
    }

    /// Whether some number matches both patterns.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (short, long) =
            if self.positions.len() <= other.positions.len() { (self, other) } else { (other, self) };
        let lengths_meet = match (short.open, long.open) {
            (true, true) => true,
            (true, false) => long.positions.len() > short.positions.len(),
            (false, false) => long.positions.len() == short.positions.len(),
            (false, true) => false,
        };
        lengths_meet && short.positions.iter().zip(&long.positions).all(|(a, b)| a & b != 0)
    }

    /// Splits off the last `last` digits: the fixed prefix and a pattern of the suffix. `None` if the prefix is not
    /// fixed.
    pub(crate) fn split_suffix(&self, last: usize) -> Option<(String, Self)> {
        let at = self.positions.len().checked_sub(last).filter(|_| !self.open)?;
        let (before, ending) = self.positions.split_at(at);
        Some((fixed(before)?, Self { positions: ending.to_vec(), open: false }))
    }

    fn size(&self) -> u64 {
        let choices = self.positions.iter().map(|position| u64::from(position.count_ones()));
        let further = if self.open { MAX_DIGITS.saturating_sub(self.positions.len()) } else { 0 };
        let tails = match further {
            0 => 1,
            _ => (1..=further as u32).map(|digits| 10_u64.saturating_pow(digits)).sum(),
        };
        choices.fold(tails, u64::saturating_mul)
    }
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit())
}

/// The mask for one digit; empty for other octets.
fn digit_mask(octet: u8) -> Digits {
    if octet.is_ascii_digit() { 1 << (octet - b'0') } else { 0 }
}

fn fixed(positions: &[Digits]) -> Option<String> {
    positions
        .iter()
        .map(|position| {
            (position.count_ones() == 1).then(|| char::from(b'0' + position.trailing_zeros() as u8))
        })
        .collect()
}

/// Parses the content of brackets: digits and digit ranges.
fn parse_choice(text: &[u8]) -> Option<Digits> {
    let mut digits = 0;
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let (last, after) = match after {
            [b'-', last, after @ ..] => (last, after),
            _ => (first, after),
        };
        if !first.is_ascii_digit() || !last.is_ascii_digit() || first > last {
            return None;
        }
        digits |= between(*first, *last);
        rest = after;
    }
    (digits != 0).then_some(digits)
}

/// The mask for all digits of a range.
fn between(first: u8, last: u8) -> Digits {
    (first..=last).map(digit_mask).fold(0, |all, digit| all | digit)
}

fn range(text: &str, first: &str, last: &str) -> Result<Vec<Pattern>, String> {
    if first.len() != last.len() || first > last {
        return Err(format!(
            "{text:?} is not a range: write two numbers of the same length, the lower one first, or a single number without \
             separators"
        ));
    }
    if first.len() > MAX_DIGITS {
        return Err(format!("{text:?} has more than {MAX_DIGITS} digits"));
    }
    let mut patterns = Vec::new();
    cover(&mut Vec::new(), first.as_bytes(), last.as_bytes(), &mut patterns);
    Ok(patterns)
}

/// Adds patterns that cover the numbers from `first` to `last` after the positions in `before`.
fn cover(before: &mut Vec<Digits>, first: &[u8], last: &[u8], patterns: &mut Vec<Pattern>) {
    let (Some((&low, first)), Some((&high, last))) = (first.split_first(), last.split_first()) else {
        return patterns.push(Pattern { positions: before.clone(), open: false });
    };
    let mut with = |digits: Digits, first: &[u8], last: &[u8]| {
        before.push(digits);
        cover(before, first, last, patterns);
        before.pop();
    };
    let (zeros, nines) = (vec![b'0'; first.len()], vec![b'9'; last.len()]);
    let (from_start, to_end) = (first == zeros, last == nines);
    if from_start && to_end {
        // Whole tens, hundreds, thousands: all following digits are free.
        before.push(between(low, high));
        let length = before.len() + first.len();
        let mut positions = before.clone();
        positions.resize(length, ANY);
        patterns.push(Pattern { positions, open: false });
        before.pop();
    } else if low == high {
        with(digit_mask(low), first, last);
    } else {
        if !from_start {
            with(digit_mask(low), first, &nines);
        }
        let (inner_low, inner_high) = (low + u8::from(!from_start), high - u8::from(!to_end));
        if inner_low <= inner_high {
            with(between(inner_low, inner_high), &zeros, &nines);
        }
        if !to_end {
            with(digit_mask(high), &zeros, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, digits: &str) -> bool {
        PatternSet::parse(pattern).unwrap().patterns.iter().any(|pattern| pattern.matches(digits))
    }

    #[test]
    fn patterns_match() {
        for (pattern, yes, no) in [
            ("NXXXX", vec!["20000", "99999", "55555"], vec!["10000", "2000", "200000", "2000a", ""]),
            ("Z", vec!["1", "9"], vec!["0", "11"]),
            ("911", vec!["911"], vec!["912", "9111"]),
            ("619555[0-4]XXX", vec!["6195550000", "6195554999"], vec!["6195555000"]),
            ("[2-579]1", vec!["21", "51", "71", "91"], vec!["61", "81", "11"]),
            ("49151.", vec!["491510", "491511234567890"], vec!["49151", "49152"]),
            ("0098-0102", vec!["0098", "0099", "0100", "0102"], vec!["0097", "0103", "98"]),
        ] {
            assert!(yes.iter().all(|digits| matches(pattern, digits)), "{pattern}");
            assert!(!no.iter().any(|digits| matches(pattern, digits)), "{pattern}");
        }
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for (pattern, expected) in [
            ("", "does not begin with a digit"),
            (".", "does not begin with a digit"),
            ("1.2", "after its final dot"),
            ("nxxxx", "is not a pattern"),
            ("+1619", "is not a pattern"),
            ("619-555-0123", "is not a pattern"),
            ("[", "has an invalid choice"),
            ("1[23", "has an invalid choice"),
            ("1[]", "has an invalid choice"),
            ("[3-1]", "has an invalid choice"),
            ("[1-]", "has an invalid choice"),
            ("[1x]", "has an invalid choice"),
            ("100-20", "same length"),
            ("200-100", "lower one first"),
            ("1234567890123456", "15 digits"),
            ("123456789012345.", "15 digits"),
            ("0000000000000000-1111111111111111", "15 digits"),
            ("1２", "is not a pattern"),
        ] {
            let refused = PatternSet::parse(pattern).unwrap_err();
            assert!(refused.contains(expected), "{pattern}: {refused}");
        }
    }

    #[test]
    fn suffixes_need_a_fixed_prefix() {
        let ending = |pattern: &str| PatternSet::parse(pattern).unwrap().patterns.remove(0).split_suffix(4);
        let (before, last) = ending("6195550XXX").unwrap();
        assert_eq!(before, "619555");
        assert!(last.matches("0123") && !last.matches("1123"));
        assert!(ending("61955[56]XXXX").is_none(), "two beginnings");
        assert!(ending("123").is_none() && ending("12345.").is_none());
        assert_eq!(ending("1234").unwrap().0, "");
    }

    fn any_pattern() -> impl Strategy<Value = String> {
        "([0-9XZN]|\\[[0-4]-[5-9]\\]){1,5}\\.?"
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails(text in "[0-9XZN.\\[\\]+a-]{0,20}", digits in "[0-9]{0,16}") {
            if let Ok(pattern_set) = PatternSet::parse(&text) {
                prop_assert!(!pattern_set.patterns.is_empty() && pattern_set.size > 0);
                for pattern in &pattern_set.patterns {
                    pattern.matches(&digits);
                }
            }
        }

        #[test]
        fn range_matches_exactly_its_numbers(a in 0_u64..100_000, b in 0_u64..100_000, c in 0_u64..100_000) {
            let (low, high) = (a.min(b), a.max(b));
            let pattern_set = PatternSet::parse(&format!("{low:05}-{high:05}")).unwrap();
            prop_assert_eq!(pattern_set.size, high - low + 1);
            let fitting = pattern_set.patterns.iter().filter(|pattern| pattern.matches(&format!("{c:05}"))).count();
            prop_assert_eq!(fitting, usize::from((low..=high).contains(&c)), "in one pattern of the range, or in none");
        }

        #[test]
        fn patterns_with_a_common_number_overlap(a in any_pattern(), b in any_pattern(), digits in "[0-9]{1,6}") {
            let (a, b) = (Pattern::parse(&a).unwrap(), Pattern::parse(&b).unwrap());
            prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
            prop_assert!(a.overlaps(&a));
            if a.matches(&digits) && b.matches(&digits) {
                prop_assert!(a.overlaps(&b));
            }
        }
    }
}

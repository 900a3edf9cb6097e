//! Patterns of digits: `NXXXX`, `619555[0-4]XXX`, `49151.`, and ranges such as `6195550100-6195550199`.

/// The most digits of a number (ITU-T E.164 §6.1).
pub(crate) const LONGEST: usize = 15;

/// Which digits may stand at one place: bit n for digit n.
type Digits = u16;

const ANY: Digits = 0b11_1111_1111;

/// Digits place by place, and whether more may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    places: Vec<Digits>,
    /// At least one more digit follows, of any value.
    open: bool,
}

/// What one text in the document stands for: one pattern, or the few that make up a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) patterns: Vec<Pattern>,
    /// How many numbers it stands for.
    pub(crate) size: u64,
}

impl Written {
    /// Reads a pattern or a range. Of the digits, `X` is 0-9, `Z` 1-9, `N` 2-9, `[...]` a choice; a point at the end is at
    /// least one digit more.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let patterns = match text.split_once('-') {
            Some((first, last)) if is_digits(first) && is_digits(last) => range(text, first, last)?,
            _ => vec![Pattern::read(text)?],
        };
        if patterns.iter().any(|pattern| pattern.places.len() + usize::from(pattern.open) > LONGEST) {
            return Err(format!("{text:?} has more than {LONGEST} digits"));
        }
        let size = patterns.iter().map(Pattern::size).sum();
        Ok(Self { patterns, size })
    }

    /// One pattern.
    pub(crate) fn of(pattern: Pattern) -> Self {
        Self { size: pattern.size(), patterns: vec![pattern] }
    }

    /// Whether the first digit may be a zero.
    pub(crate) fn may_begin_with_zero(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.places.first().is_none_or(|place| place & 1 != 0))
    }

    /// The same with these digits in front.
    pub(crate) fn after(mut self, prefix: &str) -> Self {
        for pattern in &mut self.patterns {
            let mut places: Vec<Digits> = prefix.bytes().map(one).collect();
            places.append(&mut pattern.places);
            pattern.places = places;
        }
        self
    }

    /// Whether these digits fit.
    pub(crate) fn fits(&self, digits: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.fits(digits))
    }

    /// The fewest and the most digits that it may have.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let of = |pattern: &Pattern| match pattern.open {
            true => (pattern.places.len() + 1, LONGEST),
            false => (pattern.places.len(), pattern.places.len()),
        };
        let lengths = self.patterns.iter().map(of);
        lengths.fold((usize::MAX, 0), |(least, most), (low, high)| (least.min(low), most.max(high)))
    }
}

impl Pattern {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            Err(format!(
                "{text:?} {what}; a pattern has digits, X (0-9), Z (1-9), N (2-9) and choices like [2-57], and may end \
                 in a point for one or more further digits; a range is two numbers of the same length, \
                 \"6195550100-6195550199\""
            ))
        };
        let mut places = Vec::new();
        let mut open = false;
        let mut rest = text.bytes();
        while let Some(octet) = rest.next() {
            if open {
                return wrong("goes on after its point");
            }
            places.push(match octet {
                b'0'..=b'9' => one(octet),
                b'X' => ANY,
                b'Z' => ANY & !1,
                b'N' => ANY & !0b11,
                b'[' => {
                    let choice: Vec<u8> = rest.by_ref().take_while(|octet| *octet != b']').collect();
                    match choice_of(&choice) {
                        // Without the closing bracket all was taken, and the text does not end in one.
                        Some(digits) if rest.len() > 0 || text.ends_with(']') => digits,
                        _ => return wrong("has a choice that is none"),
                    }
                }
                b'.' => {
                    open = true;
                    continue;
                }
                _ => return wrong("is no pattern"),
            });
        }
        if places.is_empty() {
            return wrong("begins with no digit");
        }
        Ok(Self { places, open })
    }

    /// Whether these digits fit.
    pub(crate) fn fits(&self, digits: &str) -> bool {
        let lengths_fit = match self.open {
            true => digits.len() > self.places.len(),
            false => digits.len() == self.places.len(),
        };
        lengths_fit
            && self.places.iter().zip(digits.bytes()).all(|(place, octet)| place & one(octet) != 0)
            && digits.bytes().all(|octet| octet.is_ascii_digit())
    }

    /// The only number that fits, if there is only one.
    pub(crate) fn only(&self) -> Option<String> {
        (!self.open).then(|| fixed(&self.places)).flatten()
    }

    /// Whether some number fits both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let (short, long) =
            if self.places.len() <= other.places.len() { (self, other) } else { (other, self) };
        let lengths_meet = match (short.open, long.open) {
            (true, true) => true,
            (true, false) => long.places.len() > short.places.len(),
            (false, false) => long.places.len() == short.places.len(),
            (false, true) => false,
        };
        lengths_meet && short.places.iter().zip(&long.places).all(|(a, b)| a & b != 0)
    }

    /// The digits before the last so many, where they are the same for all that fits, and a pattern of the last ones.
    pub(crate) fn ending(&self, last: usize) -> Option<(String, Self)> {
        let at = self.places.len().checked_sub(last).filter(|_| !self.open)?;
        let (before, ending) = self.places.split_at(at);
        Some((fixed(before)?, Self { places: ending.to_vec(), open: false }))
    }

    fn size(&self) -> u64 {
        let choices = self.places.iter().map(|place| u64::from(place.count_ones()));
        let further = if self.open { LONGEST.saturating_sub(self.places.len()) } else { 0 };
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

/// The place at which only this digit may stand; none for anything else.
fn one(octet: u8) -> Digits {
    if octet.is_ascii_digit() { 1 << (octet - b'0') } else { 0 }
}

fn fixed(places: &[Digits]) -> Option<String> {
    places
        .iter()
        .map(|place| (place.count_ones() == 1).then(|| char::from(b'0' + place.trailing_zeros() as u8)))
        .collect()
}

/// What stands between brackets: digits, and ranges of them.
fn choice_of(text: &[u8]) -> Option<Digits> {
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

/// All digits from one to the other.
fn between(first: u8, last: u8) -> Digits {
    (first..=last).map(one).fold(0, |all, digit| all | digit)
}

fn range(text: &str, first: &str, last: &str) -> Result<Vec<Pattern>, String> {
    if first.len() != last.len() || first > last {
        return Err(format!(
            "{text:?} is a range only of two numbers of the same length, the lower one first; write a single number without \
             separators"
        ));
    }
    if first.len() > LONGEST {
        return Err(format!("{text:?} has more than {LONGEST} digits"));
    }
    let mut patterns = Vec::new();
    cover(&mut Vec::new(), first.as_bytes(), last.as_bytes(), &mut patterns);
    Ok(patterns)
}

/// Patterns for all numbers from `first` to `last` after these places.
fn cover(before: &mut Vec<Digits>, first: &[u8], last: &[u8], patterns: &mut Vec<Pattern>) {
    let (Some((&low, first)), Some((&high, last))) = (first.split_first(), last.split_first()) else {
        return patterns.push(Pattern { places: before.clone(), open: false });
    };
    let mut with = |digits: Digits, first: &[u8], last: &[u8]| {
        before.push(digits);
        cover(before, first, last, patterns);
        before.pop();
    };
    let (zeros, nines) = (vec![b'0'; first.len()], vec![b'9'; last.len()]);
    let (from_start, to_end) = (first == zeros, last == nines);
    if from_start && to_end {
        // Whole tens, hundreds, thousands: every digit that follows is any.
        before.push(between(low, high));
        let length = before.len() + first.len();
        let mut places = before.clone();
        places.resize(length, ANY);
        patterns.push(Pattern { places, open: false });
        before.pop();
    } else if low == high {
        with(one(low), first, last);
    } else {
        if !from_start {
            with(one(low), first, &nines);
        }
        let (inner_low, inner_high) = (low + u8::from(!from_start), high - u8::from(!to_end));
        if inner_low <= inner_high {
            with(between(inner_low, inner_high), &zeros, &nines);
        }
        if !to_end {
            with(one(high), &zeros, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fits(pattern: &str, digits: &str) -> bool {
        Written::read(pattern).unwrap().patterns.iter().any(|pattern| pattern.fits(digits))
    }

    #[test]
    fn patterns_fit() {
        for (pattern, yes, no) in [
            ("NXXXX", vec!["20000", "99999", "55555"], vec!["10000", "2000", "200000", "2000a", ""]),
            ("Z", vec!["1", "9"], vec!["0", "11"]),
            ("911", vec!["911"], vec!["912", "9111"]),
            ("619555[0-4]XXX", vec!["6195550000", "6195554999"], vec!["6195555000"]),
            ("[2-579]1", vec!["21", "51", "71", "91"], vec!["61", "81", "11"]),
            ("49151.", vec!["491510", "491511234567890"], vec!["49151", "49152"]),
            ("0098-0102", vec!["0098", "0099", "0100", "0102"], vec!["0097", "0103", "98"]),
        ] {
            assert!(yes.iter().all(|digits| fits(pattern, digits)), "{pattern}");
            assert!(!no.iter().any(|digits| fits(pattern, digits)), "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (pattern, expected) in [
            ("", "no digit"),
            (".", "no digit"),
            ("1.2", "after its point"),
            ("nxxxx", "no pattern"),
            ("+1619", "no pattern"),
            ("619-555-0123", "no pattern"),
            ("[", "a choice that is none"),
            ("1[23", "a choice that is none"),
            ("1[]", "a choice that is none"),
            ("[3-1]", "a choice that is none"),
            ("[1-]", "a choice that is none"),
            ("[1x]", "a choice that is none"),
            ("100-20", "same length"),
            ("200-100", "lower one first"),
            ("1234567890123456", "15 digits"),
            ("123456789012345.", "15 digits"),
            ("0000000000000000-1111111111111111", "15 digits"),
            ("1２", "no pattern"),
        ] {
            let refused = Written::read(pattern).unwrap_err();
            assert!(refused.contains(expected), "{pattern}: {refused}");
        }
    }

    #[test]
    fn endings_need_one_beginning() {
        let ending = |pattern: &str| Written::read(pattern).unwrap().patterns.remove(0).ending(4);
        let (before, last) = ending("6195550XXX").unwrap();
        assert_eq!(before, "619555");
        assert!(last.fits("0123") && !last.fits("1123"));
        assert!(ending("61955[56]XXXX").is_none(), "two beginnings");
        assert!(ending("123").is_none() && ending("12345.").is_none());
        assert_eq!(ending("1234").unwrap().0, "");
    }

    fn any_pattern() -> impl Strategy<Value = String> {
        "([0-9XZN]|\\[[0-4]-[5-9]\\]){1,5}\\.?"
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_refused(text in "[0-9XZN.\\[\\]+a-]{0,20}", digits in "[0-9]{0,16}") {
            if let Ok(written) = Written::read(&text) {
                prop_assert!(!written.patterns.is_empty() && written.size > 0);
                for pattern in &written.patterns {
                    pattern.fits(&digits);
                }
            }
        }

        #[test]
        fn a_range_has_exactly_its_numbers(a in 0_u64..100_000, b in 0_u64..100_000, c in 0_u64..100_000) {
            let (low, high) = (a.min(b), a.max(b));
            let written = Written::read(&format!("{low:05}-{high:05}")).unwrap();
            prop_assert_eq!(written.size, high - low + 1);
            let fitting = written.patterns.iter().filter(|pattern| pattern.fits(&format!("{c:05}"))).count();
            prop_assert_eq!(fitting, usize::from((low..=high).contains(&c)), "in one pattern of the range, or in none");
        }

        #[test]
        fn patterns_that_one_number_fits_meet(a in any_pattern(), b in any_pattern(), digits in "[0-9]{1,6}") {
            let (a, b) = (Pattern::read(&a).unwrap(), Pattern::read(&b).unwrap());
            prop_assert_eq!(a.meets(&b), b.meets(&a));
            prop_assert!(a.meets(&a));
            if a.fits(&digits) && b.fits(&digits) {
                prop_assert!(a.meets(&b));
            }
        }
    }
}

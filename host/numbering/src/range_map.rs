use crate::pattern_set::{Pattern, PatternSet};
use rustc_hash::FxHashMap;

/// Maximum number of patterns that match several numbers: each is compared with all others, and checked for every
/// number.
pub(crate) const MAX_WIDE_PATTERNS: usize = 2_000;

/// Maps digits to values. If ranges overlap, the smaller one wins.
#[derive(Debug, Clone)]
pub(crate) struct RangeMap<T> {
    single_numbers: FxHashMap<String, Entry<T>>,
    /// Sorted by size, smallest first.
    wide_patterns: Vec<(Pattern, Entry<T>)>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    value: T,
    /// Size of the whole range of this pattern.
    size: u64,
    line: usize,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { single_numbers: FxHashMap::default(), wide_patterns: Vec::new() }
    }
}

impl<T: Clone + PartialEq> RangeMap<T> {
    /// Adds a range.
    ///
    /// # Errors
    /// A range of the same size with another value overlaps it (the error contains its line), or there are too many
    /// ranges.
    pub(crate) fn add(&mut self, pattern_set: PatternSet, value: &T, line: usize) -> Result<(), String> {
        let PatternSet { patterns, size } = pattern_set;
        for pattern in patterns {
            let entry = Entry { value: value.clone(), size, line };
            if size == 1
                && let Some(number) = pattern.single_number()
            {
                let other = self.single_numbers.entry(number).or_insert(entry);
                if other.value != *value {
                    return Err(duplicate_error(other.line));
                }
                continue;
            }
            let rival = self
                .wide_patterns
                .iter()
                .find(|(other, of)| of.size == size && of.value != *value && other.overlaps(&pattern));
            if let Some((_, other)) = rival {
                return Err(duplicate_error(other.line));
            }
            if self.wide_patterns.len() == MAX_WIDE_PATTERNS {
                return Err(format!(
                    "a plan has at most {MAX_WIDE_PATTERNS} patterns and ranges; single numbers are not counted"
                ));
            }
            let at = self.wide_patterns.partition_point(|(_, other)| other.size <= size);
            self.wide_patterns.insert(at, (pattern, entry));
        }
        Ok(())
    }

    /// Adds a range that must not overlap any range with another value, regardless of its size.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(crate) fn add_disjoint(
        &mut self,
        pattern_set: PatternSet,
        value: &T,
        line: usize,
    ) -> Result<(), String> {
        let number =
            pattern_set.patterns.first().filter(|_| pattern_set.size == 1).and_then(Pattern::single_number);
        let single_numbers = match &number {
            // A scan for each single number would take too long.
            Some(digits) => self.single_numbers.get(digits).filter(|entry| entry.value != *value),
            None => self
                .single_numbers
                .iter()
                .find(|(digits, entry)| entry.value != *value && pattern_set.matches(digits))
                .map(|(_, entry)| entry),
        };
        let wide_patterns = self.wide_patterns.iter().find(|(other, entry)| {
            entry.value != *value && pattern_set.patterns.iter().any(|own| own.overlaps(other))
        });
        match single_numbers.or(wide_patterns.map(|(_, entry)| entry)) {
            Some(other) => Err(duplicate_error(other.line)),
            None => self.add(pattern_set, value, line),
        }
    }

    /// The value for these digits.
    pub(crate) fn find(&self, digits: &str) -> Option<&T> {
        let wide_patterns =
            || self.wide_patterns.iter().find(|(pattern, _)| pattern.matches(digits)).map(|(_, entry)| entry);
        self.single_numbers.get(digits).or_else(wide_patterns).map(|entry| &entry.value)
    }
}

fn duplicate_error(line: usize) -> String {
    format!(
        "overlaps an entry with another meaning at line {line}; of two overlapping entries, one must be smaller, \
         and an abbreviation must be unambiguous"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(rows: &[(&str, char)]) -> Result<RangeMap<char>, String> {
        let mut ranges = RangeMap::default();
        for (line, (text, value)) in rows.iter().enumerate() {
            ranges.add(PatternSet::parse(text).unwrap(), value, line + 1)?;
        }
        Ok(ranges)
    }

    #[test]
    fn the_smaller_range_decides() {
        let rows = [("61955XXXXX", 'a'), ("6195550100-6195550109", 'b'), ("6195550100", 'c'), ("619.", 'd')];
        for turn in 0..rows.len() {
            let mut rows = rows;
            rows.rotate_left(turn);
            let ranges = ranges(&rows).unwrap();
            for (digits, value) in [
                ("6195550100", Some('c')),
                ("6195550101", Some('b')),
                ("6195550110", Some('a')),
                ("6196", Some('d')),
                ("620", None),
                ("", None),
            ] {
                assert_eq!(ranges.find(digits).copied(), value, "{digits} in {rows:?}");
            }
        }
    }

    #[test]
    fn range_ends_are_not_single_numbers() {
        for rows in [[("100-200", 'a'), ("2X0", 'b')], [("2X0", 'b'), ("100-200", 'a')]] {
            let ranges = ranges(&rows).unwrap();
            assert_eq!(ranges.find("200"), Some(&'b'));
            assert_eq!(ranges.find("199"), Some(&'a'));
        }
    }

    #[test]
    fn separate_entries_do_not_overlap() {
        for (text, taken) in
            [("1X3", true), ("103", true), ("10.", true), ("77", true), ("2X3", false), ("[1-7]X", true)]
        {
            let mut ranges = ranges(&[("1XX", 'a'), ("77", 'b')]).unwrap();
            assert_eq!(
                ranges.add_disjoint(PatternSet::parse(text).unwrap(), &'c', 3).is_err(),
                taken,
                "{text}"
            );
            ranges.add_disjoint(PatternSet::parse("1X3").unwrap(), &'a', 3).unwrap();
        }
    }

    #[test]
    fn overlapping_ranges_are_rejected() {
        for rows in [
            [("123", 'a'), ("123", 'b')],
            [("1X3", 'a'), ("12X", 'b')],
            [("100-109", 'a'), ("10X", 'b')],
            [("1.", 'a'), ("[12].", 'b')],
        ] {
            let refused = ranges(&rows).map(|_| ());
            if rows[1].0 == "[12]." {
                assert_eq!(refused, Ok(()), "of different size");
            } else {
                assert!(refused.unwrap_err().contains("line 1"), "{rows:?}");
            }
        }
        ranges(&[("1X3", 'a'), ("12X", 'a')]).unwrap();
    }
}

use crate::pattern::{Pattern, Written};
use rustc_hash::FxHashMap;

/// Patterns that stand for more than one number: each is compared with every other, and looked at for every number.
pub(crate) const PATTERNS: usize = 2_000;

/// Digits to what they belong to. Where ranges overlap the smaller one decides.
#[derive(Debug, Clone)]
pub(crate) struct Ranges<T> {
    single: FxHashMap<String, Entry<T>>,
    /// Smallest first.
    wide: Vec<(Pattern, Entry<T>)>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    value: T,
    /// How many numbers the range has of which this is part.
    size: u64,
    line: usize,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self { single: FxHashMap::default(), wide: Vec::new() }
    }
}

impl<T: Clone + PartialEq> Ranges<T> {
    /// Adds a range.
    ///
    /// # Errors
    /// A range of the same size that overlaps it and belongs to something else, with its line; or too many.
    pub(crate) fn add(&mut self, written: Written, value: &T, line: usize) -> Result<(), String> {
        let Written { patterns, size } = written;
        for pattern in patterns {
            let entry = Entry { value: value.clone(), size, line };
            if size == 1
                && let Some(only) = pattern.only()
            {
                let other = self.single.entry(only).or_insert(entry);
                if other.value != *value {
                    return Err(twice(other.line));
                }
                continue;
            }
            let rival = self
                .wide
                .iter()
                .find(|(other, of)| of.size == size && of.value != *value && other.meets(&pattern));
            if let Some((_, other)) = rival {
                return Err(twice(other.line));
            }
            if self.wide.len() == PATTERNS {
                return Err(format!(
                    "a plan has at most {PATTERNS} patterns and ranges; single numbers are not counted"
                ));
            }
            let at = self.wide.partition_point(|(_, other)| other.size <= size);
            self.wide.insert(at, (pattern, entry));
        }
        Ok(())
    }

    /// Adds a range that may overlap nothing that belongs to something else, of whatever size.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(crate) fn add_apart(&mut self, written: Written, value: &T, line: usize) -> Result<(), String> {
        let only = written.patterns.first().filter(|_| written.size == 1).and_then(Pattern::only);
        let single = match &only {
            // Looking through all of them for each of many would take too long.
            Some(digits) => self.single.get(digits).filter(|entry| entry.value != *value),
            None => self
                .single
                .iter()
                .find(|(digits, entry)| entry.value != *value && written.fits(digits))
                .map(|(_, entry)| entry),
        };
        let wide = self.wide.iter().find(|(other, entry)| {
            entry.value != *value && written.patterns.iter().any(|own| own.meets(other))
        });
        match single.or(wide.map(|(_, entry)| entry)) {
            Some(other) => Err(twice(other.line)),
            None => self.add(written, value, line),
        }
    }

    /// What these digits belong to.
    pub(crate) fn find(&self, digits: &str) -> Option<&T> {
        let wide = || self.wide.iter().find(|(pattern, _)| pattern.fits(digits)).map(|(_, entry)| entry);
        self.single.get(digits).or_else(wide).map(|entry| &entry.value)
    }
}

fn twice(line: usize) -> String {
    format!(
        "has numbers that belong to something else at line {line} already; where two overlap, one must be the smaller, \
         and an abbreviation may mean nothing else"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(rows: &[(&str, char)]) -> Result<Ranges<char>, String> {
        let mut ranges = Ranges::default();
        for (line, (text, value)) in rows.iter().enumerate() {
            ranges.add(Written::read(text).unwrap(), value, line + 1)?;
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
    fn the_ends_of_a_range_are_not_numbers_of_their_own() {
        for rows in [[("100-200", 'a'), ("2X0", 'b')], [("2X0", 'b'), ("100-200", 'a')]] {
            let ranges = ranges(&rows).unwrap();
            assert_eq!(ranges.find("200"), Some(&'b'));
            assert_eq!(ranges.find("199"), Some(&'a'));
        }
    }

    #[test]
    fn what_stands_apart_overlaps_nothing() {
        for (text, taken) in
            [("1X3", true), ("103", true), ("10.", true), ("77", true), ("2X3", false), ("[1-7]X", true)]
        {
            let mut ranges = ranges(&[("1XX", 'a'), ("77", 'b')]).unwrap();
            assert_eq!(ranges.add_apart(Written::read(text).unwrap(), &'c', 3).is_err(), taken, "{text}");
            ranges.add_apart(Written::read("1X3").unwrap(), &'a', 3).unwrap();
        }
    }

    #[test]
    fn no_number_belongs_to_two() {
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

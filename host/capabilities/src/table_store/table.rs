use super::string_arena::StringArena;
use api::{TableFillResult, TableKind};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Maximum number of digits of a prefix table's key.
const MAX_PREFIX_DIGITS: usize = 30;
/// Maximum number of digits of a short key: with four bits each and a leading one they fit into 64 bits.
const MAX_SHORT_DIGITS: usize = 15;
/// Maximum length of an exact table's key, and of a value, in octets.
const MAX_TEXT_OCTETS: usize = 256;

/// An immutable table from keys to texts.
///
/// Most tables of an operator have many keys, which are numbers, and few different values. So a key of up to 15 digits is
/// packed into 64 bits, equal values are stored once, and a row takes 12 octets in a hash table: 17 to 27 octets including
/// the free slots. `cargo run --release -p capabilities --example table_cost` measures it.
#[derive(Debug)]
pub struct Table {
    kind: TableKind,
    hasher: DefaultHashBuilder,
    short: HashTable<ShortRow>,
    long: HashTable<LongRow>,
    /// Keys of the long rows.
    keys: StringArena,
    values: StringArena,
    /// Bit n: some key of a prefix table has n digits.
    lengths: u32,
}

/// A row whose key has up to 15 digits. The key is split into two halves, so that a row needs no padding.
#[derive(Debug)]
struct ShortRow {
    low: u32,
    high: u32,
    value: u32,
}

impl ShortRow {
    fn key(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Any other row.
#[derive(Debug)]
struct LongRow {
    key: u32,
    value: u32,
}

/// A one, then four bits for each digit; `None` if the key is not a number of up to 15 digits.
fn pack(key: &str) -> Option<u64> {
    if key.len() > MAX_SHORT_DIGITS {
        return None;
    }
    key.bytes().try_fold(1_u64, |packed, digit| {
        digit.is_ascii_digit().then(|| packed << 4 | u64::from(digit - b'0'))
    })
}

impl Table {
    /// The kind of the table: how it is searched.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        self.kind
    }

    /// Kind and size.
    #[must_use]
    pub fn info(&self) -> TableFillResult {
        let memory_octets = self.short.allocation_size()
            + self.long.allocation_size()
            + self.keys.memory_octets()
            + self.values.memory_octets();
        TableFillResult {
            kind: self.kind,
            rows: (self.short.len() + self.long.len()) as u64,
            octets: memory_octets as u64,
        }
    }

    /// The value of exactly this key, in a table of either kind.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let value = match pack(key) {
            Some(packed) => self.find_short(packed),
            None => self.find_long(key),
        };
        self.values.get(value?)
    }

    /// The longest key that is a prefix of `number`: its number of digits and its value. Reads up to the first octet
    /// that is not a digit; skips a leading plus sign. `None` in an exact table.
    #[must_use]
    pub fn longest(&self, number: &str) -> Option<(u32, &str)> {
        let number = number.strip_prefix('+').unwrap_or(number);
        let digits = number.bytes().take(MAX_PREFIX_DIGITS).take_while(u8::is_ascii_digit).count();
        // Digits are one octet each, so this is a character boundary.
        let number = number.get(..digits)?;
        let short = number.get(..digits.min(MAX_SHORT_DIGITS)).and_then(pack)?;
        let mut candidates = self.lengths & ((2_u32 << digits) - 1);
        while candidates != 0 {
            let length = 31 - candidates.leading_zeros();
            let key = number.get(..length as usize)?;
            let value = if key.len() > MAX_SHORT_DIGITS {
                self.find_long(key)
            } else {
                self.find_short(short >> (4 * (digits.min(MAX_SHORT_DIGITS) - key.len())))
            };
            if let Some(value) = value {
                return Some((length, self.values.get(value)?));
            }
            candidates &= !(1 << length);
        }
        None
    }

    fn find_short(&self, packed: u64) -> Option<u32> {
        let found = self.short.find(self.hasher.hash_one(packed), |row| row.key() == packed)?;
        Some(found.value)
    }

    fn find_long(&self, key: &str) -> Option<u32> {
        let is_it = |row: &LongRow| self.keys.get(row.key) == Some(key);
        Some(self.long.find(self.hasher.hash_one(key), is_it)?.value)
    }
}

/// A table under construction.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    table: Table,
    /// Index of values, so that equal values are stored once.
    known: HashTable<u32>,
}

impl TableBuilder {
    pub(crate) fn new(kind: TableKind) -> Self {
        let table = Table {
            kind,
            hasher: DefaultHashBuilder::default(),
            short: HashTable::new(),
            long: HashTable::new(),
            keys: StringArena::default(),
            values: StringArena::default(),
            lengths: 0,
        };
        Self { table, known: HashTable::new() }
    }

    /// Adds a row. A later row with the same key replaces an earlier one.
    ///
    /// # Errors
    /// The reason why the row is invalid.
    pub(crate) fn insert(&mut self, key: &str, value: &str) -> Result<(), String> {
        if self.table.kind == TableKind::Prefix {
            if key.len() > MAX_PREFIX_DIGITS || !key.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(format!(
                    "key {} is not at most {MAX_PREFIX_DIGITS} decimal digits",
                    truncated(key)
                ));
            }
            self.table.lengths |= 1 << key.len();
        }
        for (what, text) in [("key", key), ("value", value)] {
            if text.len() > MAX_TEXT_OCTETS {
                return Err(format!(
                    "a {what} of {} octets exceeds the limit of {MAX_TEXT_OCTETS}",
                    text.len()
                ));
            }
        }
        let value = self.value(value).ok_or_else(arena_full)?;
        let Table { hasher, short, long, keys, .. } = &mut self.table;
        if let Some(packed) = pack(key) {
            let rehash = |row: &ShortRow| hasher.hash_one(row.key());
            match short.entry(hasher.hash_one(packed), |row| row.key() == packed, rehash) {
                Entry::Occupied(mut row) => row.get_mut().value = value,
                Entry::Vacant(handle) => {
                    let (low, high) = (packed as u32, (packed >> 32) as u32);
                    handle.insert(ShortRow { low, high, value });
                }
            }
            return Ok(());
        }
        let hash = hasher.hash_one(key);
        if let Some(row) = long.find_mut(hash, |row| keys.get(row.key) == Some(key)) {
            row.value = value;
            return Ok(());
        }
        let row = LongRow { key: keys.push(key).ok_or_else(arena_full)?, value };
        long.insert_unique(hash, row, |row| hasher.hash_one(keys.get(row.key).unwrap_or_default()));
        Ok(())
    }

    fn value(&mut self, text: &str) -> Option<u32> {
        let Table { hasher, values, .. } = &mut self.table;
        let hash = hasher.hash_one(text);
        if let Some(known) = self.known.find(hash, |known| values.get(*known) == Some(text)) {
            return Some(*known);
        }
        let new = values.push(text)?;
        let rehash = |known: &u32| hasher.hash_one(values.get(*known).unwrap_or_default());
        self.known.insert_unique(hash, new, rehash);
        Some(new)
    }

    pub(crate) fn build(mut self) -> Table {
        self.table.keys.shrink();
        self.table.values.shrink();
        self.table
    }
}

fn arena_full() -> String {
    "all keys or values together exceed 4 GiB".to_owned()
}

/// Truncates a key for an error message.
fn truncated(key: &str) -> String {
    let mut truncated: String = key.chars().take(40).collect();
    if truncated.len() < key.len() {
        truncated.push('…');
    }
    format!("{truncated:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn table<'a>(kind: TableKind, rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Table {
        let mut builder = TableBuilder::new(kind);
        for (key, value) in rows {
            builder.insert(key, value).unwrap();
        }
        builder.build()
    }

    #[test]
    fn the_longest_prefix_wins() {
        let long = "123456789012345678901234567890";
        let rows =
            [("", "all"), ("8", "one"), ("8613", "cmcc"), (long, "long"), (&long[..16], "16"), ("00", "0")];
        let table = table(TableKind::Prefix, rows);
        assert_eq!(table.longest("8613900000000"), Some((4, "cmcc")));
        assert_eq!(table.longest("+8613900000000"), Some((4, "cmcc")));
        assert_eq!(table.longest("8614"), Some((1, "one")));
        assert_eq!(table.longest("86x3"), Some((1, "one")));
        assert_eq!(table.longest("49"), Some((0, "all")));
        assert_eq!(table.longest("ACME"), Some((0, "all")));
        assert_eq!(table.longest("++8613"), Some((0, "all")));
        assert_eq!(table.longest("004"), Some((2, "0")));
        assert_eq!(table.longest("0"), Some((0, "all")));
        assert_eq!(table.longest(long), Some((30, "long")));
        assert_eq!(table.longest(&format!("{long}1")), Some((30, "long")));
        assert_eq!(table.longest(&long[..29]), Some((16, "16")));
        assert_eq!(table.get("8613"), Some("cmcc"));
        assert_eq!(table.get("86139"), None);
        assert_eq!(TableBuilder::new(TableKind::Prefix).build().longest("86"), None);
    }

    #[test]
    fn non_digit_keys_are_refused_in_a_prefix_table() {
        let mut builder = TableBuilder::new(TableKind::Prefix);
        let refused = builder.insert("+86", "x").unwrap_err();
        assert_eq!(refused, "key \"+86\" is not at most 30 decimal digits");
        assert!(builder.insert(&"1".repeat(31), "x").is_err());
        let refused = builder.insert(&"ü".repeat(500), "x").unwrap_err();
        assert!(refused.len() < 140, "{refused}");
    }

    #[test]
    fn size_limits_are_enforced() {
        let mut builder = TableBuilder::new(TableKind::Exact);
        assert!(builder.insert(&"k".repeat(256), &"v".repeat(256)).is_ok());
        assert_eq!(
            builder.insert(&"k".repeat(257), "").unwrap_err(),
            "a key of 257 octets exceeds the limit of 256"
        );
        assert_eq!(
            builder.insert("", &"v".repeat(257)).unwrap_err(),
            "a value of 257 octets exceeds the limit of 256"
        );
    }

    proptest! {
        #[test]
        fn an_exact_table_is_a_map(
            rows in proptest::collection::vec(("[0-2]{0,3}|[0-9]{14,17}|[a-zü+]{0,3}", "[a-c]{0,2}"), 0..100),
            others in proptest::collection::vec("[0-2]{0,3}|[a-zü+]{0,3}", 0..20),
        ) {
            let table = table(TableKind::Exact, rows.iter().map(|(k, v)| (k.as_str(), v.as_str())));
            let model: HashMap<&str, &str> = rows.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            prop_assert_eq!(table.info().rows, model.len() as u64);
            for key in rows.iter().map(|(key, _)| key).chain(&others) {
                prop_assert_eq!(table.get(key), model.get(key.as_str()).copied());
            }
        }

        #[test]
        fn the_longest_prefix_matches_a_naive_model(
            rows in proptest::collection::vec("[0-1]{0,30}", 0..60),
            numbers in proptest::collection::vec("[+]?[0-1]{0,32}[x]?[0-1]{0,2}", 1..40),
        ) {
            let table = table(TableKind::Prefix, rows.iter().map(|key| (key.as_str(), key.as_str())));
            for number in rows.iter().chain(&numbers) {
                let digits = number.strip_prefix('+').unwrap_or(number);
                let best = rows.iter().filter(|key| digits.starts_with(key.as_str())).max_by_key(|key| key.len());
                prop_assert_eq!(table.longest(number), best.map(|key| (key.len() as u32, key.as_str())));
            }
        }
    }
}

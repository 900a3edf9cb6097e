use super::State;
use crate::bindings::host::switchyard::hooks::tables::{Found, FoundText, Host, Row};
use crate::reference::ReferenceKind;
use crate::seen::Asked;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Longest-prefix matching over decimal digits: a hash table per row, and which lengths there are.
///
/// A key of up to 30 digits packs into 128 bits. A look-up tries only lengths that occur, from the longest, so its cost
/// depends on how many different lengths there are and not on the number of rows.
#[derive(Debug, Default)]
pub struct PrefixTable {
    rows: FxHashMap<u128, u32>,
    /// Bit n: some key has n digits.
    lengths: u32,
}

/// The most digits of a key.
const DIGITS: usize = 30;

impl PrefixTable {
    /// Adds a row; of several with one key the last counts.
    ///
    /// # Errors
    /// A key that is not at most 30 decimal digits.
    pub fn insert(&mut self, key: &str, value: u32) -> Result<(), String> {
        if key.len() > DIGITS || !key.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(format!("key {key:?} is not at most {DIGITS} decimal digits"));
        }
        let packed = key.bytes().fold(1_u128, |packed, digit| packed << 4 | u128::from(digit - b'0'));
        self.rows.insert(packed, value);
        self.lengths |= 1 << key.len();
        Ok(())
    }

    /// The value and length of the longest key that `text` begins with.
    #[must_use]
    pub fn longest(&self, text: &str) -> Option<(u32, u32)> {
        self.longest_of(Digits::of(text.as_bytes()), u32::MAX)
    }

    /// The same for digits that are packed already, of which only the first `most` count.
    fn longest_of(&self, digits: Digits, most: u32) -> Option<(u32, u32)> {
        let Digits { packed, length } = digits;
        let mut candidates = self.lengths & (u32::MAX >> (31 - length.min(most).min(31)));
        while candidates != 0 {
            let longest = 31 - candidates.leading_zeros();
            if let Some(value) = self.rows.get(&(packed >> (4 * (length - longest)))) {
                return Some((*value, longest));
            }
            candidates &= !(1 << longest);
        }
        None
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The decimal digits at the front of a text, packed: a one, then four bits each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits {
    packed: u128,
    length: u32,
}

impl Digits {
    pub(crate) const NONE: Self = Self { packed: 1, length: 0 };

    pub(crate) fn of(text: &[u8]) -> Self {
        let mut digits = Self::NONE;
        for digit in text.iter().take(DIGITS).take_while(|digit| digit.is_ascii_digit()) {
            digits.packed = digits.packed << 4 | u128::from(digit - b'0');
            digits.length += 1;
        }
        digits
    }

    /// Of an address: a leading plus sign does not count.
    pub(crate) fn of_address(value: &[u8]) -> Self {
        Self::of(value.strip_prefix(b"+").unwrap_or(value))
    }
}

/// A table that a generation has a handle for.
#[derive(Debug)]
enum Handle {
    /// Its own.
    Own(Arc<PrefixTable>),
    /// One of the appliance's: what is in it may be replaced at any time.
    House(capabilities::Slot),
}

/// The tables of one generation of a plugin, shared by its instances. A handle is a place in the list.
#[derive(Debug)]
pub(crate) struct Tables {
    tables: RwLock<Vec<(String, Handle)>>,
    /// Rows that all tables together may have.
    limit: usize,
}

impl Tables {
    pub(crate) fn new(limit: usize) -> Self {
        Self { tables: RwLock::default(), limit }
    }

    fn define(&self, name: String, rows: &[Row]) -> Result<u32, String> {
        if name.len() > NAME {
            return Err(format!("a table's name of {} octets: at most {NAME}", name.len()));
        }
        let mut tables = self.tables.write();
        // Every instance is configured with the same document: the first one fills the table, the others find it.
        let own = |(known, handle): &(String, Handle)| *known == name && matches!(handle, Handle::Own(_));
        if let Some(index) = tables.iter().position(own) {
            return u32::try_from(index).map_err(|_| "too many tables".to_owned());
        }
        let held: usize = tables
            .iter()
            .map(|(_, handle)| match handle {
                Handle::Own(table) => table.len(),
                Handle::House(_) => 0,
            })
            .sum();
        if held + rows.len() > self.limit {
            return Err(format!(
                "{} rows are more than the {} that the binding allows",
                held + rows.len(),
                self.limit
            ));
        }
        let mut table = PrefixTable::default();
        for row in rows {
            table.insert(&row.key, row.value)?;
        }
        let index = u32::try_from(tables.len()).map_err(|_| "too many tables".to_owned())?;
        if tables.len() >= HANDLES {
            return Err(format!("more than {HANDLES} tables"));
        }
        tables.push((name, Handle::Own(Arc::new(table))));
        Ok(index)
    }

    fn open(&self, name: String, place: capabilities::Slot) -> Result<u32, String> {
        let mut tables = self.tables.write();
        let house = |(known, handle): &(String, Handle)| *known == name && matches!(handle, Handle::House(_));
        let index = match tables.iter().position(house) {
            Some(index) => index,
            None if tables.len() >= HANDLES => return Err(format!("more than {HANDLES} tables")),
            None => {
                tables.push((name, Handle::House(place)));
                tables.len() - 1
            }
        };
        u32::try_from(index).map_err(|_| "too many tables".to_owned())
    }

    /// The handle for a table of the appliance's that another instance has opened.
    fn opened(&self, name: &str) -> Option<u32> {
        let tables = self.tables.read();
        let house = |(known, handle): &(String, Handle)| known == name && matches!(handle, Handle::House(_));
        u32::try_from(tables.iter().position(house)?).ok()
    }

    /// Looks something up in an own table.
    fn with_own<T>(&self, table: u32, look: impl FnOnce(&PrefixTable) -> Option<T>) -> Option<T> {
        match self.tables.read().get(table as usize)? {
            (_, Handle::Own(table)) => look(table),
            (_, Handle::House(_)) => None,
        }
    }

    /// A table of the appliance's, with its name.
    fn house(&self, table: u32) -> Option<(String, capabilities::Slot)> {
        match self.tables.read().get(table as usize)? {
            (name, Handle::House(place)) => Some((name.clone(), place.clone())),
            (_, Handle::Own(_)) => None,
        }
    }
}

/// Octets of the name of a plugin's own table.
const NAME: usize = 256;

/// Tables that one plugin may have handles for.
const HANDLES: usize = 64;

impl Host for State {
    fn define_prefixes(&mut self, name: String, rows: Vec<Row>) -> Result<u32, String> {
        if !self.configuring {
            return Err("tables are filled while the plugin is configured, and at no other time".to_owned());
        }
        self.tables.define(name, &rows)
    }

    fn longest_prefix(&mut self, table: u32, key: String) -> Option<Found> {
        let (value, length) = self.tables.with_own(table, |table| table.longest(&key))?;
        Some(Found { length, value })
    }

    fn match_destination(&mut self, table: u32, digits: u32) -> Option<Found> {
        let (value, length) =
            self.tables.with_own(table, |table| table.longest_of(self.destination, digits))?;
        Some(Found { length, value })
    }

    fn open(&mut self, name: String) -> Result<u32, String> {
        if !self.configuring {
            return Err("tables are opened while the plugin is configured, and at no other time".to_owned());
        }
        if !self.label.grants.tables.contains(&name) {
            return Err(format!("the binding does not grant table {name:?}: add it to grants.tables"));
        }
        self.refer(ReferenceKind::Table, &name);
        // A handle stays good: an instance that is made later finds its table, though it is gone from the shelf.
        if let Some(index) = self.tables.opened(&name) {
            return Ok(index);
        }
        let shelf = &self.powers.shelf;
        let place = if self.label.had_tables { shelf.promised(&name) } else { shelf.place(&name) };
        match place {
            Some(place) => self.tables.open(name, place),
            None => Err(format!("there is no table {name:?}: upload it with PUT /v1/tables/{name}")),
        }
    }

    fn get(&mut self, table: u32, key: String) -> Option<String> {
        let (name, place) = self.tables.house(table)?;
        let asked = [name.as_bytes(), key.as_bytes()];
        if let Some(then) = self.seen.recall(Asked::Table, &asked) {
            return then.split_first().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        }
        let found = place.read(|table| table.get(&key).map(str::to_owned)).flatten();
        // Nothing found is an empty answer; a value has a one in front of it.
        let answer = found.as_ref().map_or_else(Vec::new, |value| [&[1], value.as_bytes()].concat());
        self.seen.note(Asked::Table, &asked, &answer);
        found
    }

    fn get_prefix(&mut self, table: u32, key: String) -> Option<FoundText> {
        let (name, place) = self.tables.house(table)?;
        let asked = [name.as_bytes(), key.as_bytes()];
        if let Some(then) = self.seen.recall(Asked::Prefix, &asked) {
            let (length, value) = then.split_first()?;
            return Some(FoundText {
                length: u32::from(*length),
                value: String::from_utf8_lossy(value).into_owned(),
            });
        }
        let longest = |table: &capabilities::Table| {
            table.longest(&key).map(|(length, value)| (length, value.to_owned()))
        };
        let found = place.read(longest).flatten();
        let answer = found.as_ref().map_or_else(Vec::new, |(length, value)| {
            [&[u8::try_from(*length).unwrap_or(u8::MAX)], value.as_bytes()].concat()
        });
        self.seen.note(Asked::Prefix, &asked, &answer);
        found.map(|(length, value)| FoundText { length, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let mut table = PrefixTable::default();
        for (key, value) in [("", 0), ("8", 1), ("86", 2), ("8613", 3), ("123456789012345678901234567890", 4)]
        {
            table.insert(key, value).unwrap();
        }
        assert_eq!(table.longest("8613900000000"), Some((3, 4)));
        assert_eq!(table.longest("8614"), Some((2, 2)));
        assert_eq!(table.longest("8"), Some((1, 1)));
        assert_eq!(table.longest("49"), Some((0, 0)));
        assert_eq!(table.longest("ACME"), Some((0, 0)));
        assert_eq!(table.longest("86x3"), Some((2, 2)));
        assert_eq!(table.longest("1234567890123456789012345678901"), Some((4, 30)));
        assert!(table.insert("+86", 1).is_err());
        assert_eq!(PrefixTable::default().longest("86"), None);
    }

    #[test]
    fn leading_zeros_count() {
        let mut table = PrefixTable::default();
        table.insert("00", 7).unwrap();
        assert_eq!(table.longest("0"), None);
        assert_eq!(table.longest("004"), Some((7, 2)));
    }
}

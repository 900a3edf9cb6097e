use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::tables::{Found, FoundText, Host, Row};
use crate::host_call_log::HostCallKind;
use api::PolicyReferenceKind;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Longest-prefix matching over decimal digits: a hash table of the rows, and a bit set of the key lengths.
///
/// A key of up to 30 digits packs into 128 bits. A look-up tries only the lengths that occur, longest first, so its
/// cost depends on the number of different lengths and not on the number of rows.
#[derive(Debug, Default)]
pub struct PrefixTable {
    rows: FxHashMap<u128, u32>,
    /// Bit n: some key has n digits.
    lengths: u32,
}

/// Maximum number of digits of a key.
const MAX_DIGITS: usize = 30;

impl PrefixTable {
    /// Inserts a row. A later row with the same key replaces an earlier one.
    ///
    /// # Errors
    /// The key is not a sequence of at most 30 decimal digits.
    pub fn insert(&mut self, key: &str, value: u32) -> Result<(), String> {
        if key.len() > MAX_DIGITS || !key.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(format!("key {key:?} is not at most {MAX_DIGITS} decimal digits"));
        }
        let packed = key.bytes().fold(1_u128, |packed, digit| packed << 4 | u128::from(digit - b'0'));
        self.rows.insert(packed, value);
        self.lengths |= 1 << key.len();
        Ok(())
    }

    /// The value and length of the longest key that is a prefix of `text`.
    #[must_use]
    pub fn longest(&self, text: &str) -> Option<(u32, u32)> {
        self.longest_of(Digits::of(text.as_bytes()), u32::MAX)
    }

    /// Like [`PrefixTable::longest`] for packed digits, with keys of at most `most` digits.
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

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The leading decimal digits of a text, packed: a one, then four bits for each digit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digits {
    packed: u128,
    length: u32,
}

impl Digits {
    pub(crate) const NONE: Self = Self { packed: 1, length: 0 };

    pub(crate) fn of(text: &[u8]) -> Self {
        let mut digits = Self::NONE;
        for digit in text.iter().take(MAX_DIGITS).take_while(|digit| digit.is_ascii_digit()) {
            digits.packed = digits.packed << 4 | u128::from(digit - b'0');
            digits.length += 1;
        }
        digits
    }

    /// This number of leading digits; `None` if there are fewer.
    pub(crate) fn first(self, digits: u8) -> Option<Vec<u8>> {
        let skipped = self.length.checked_sub(u32::from(digits))?;
        let digit = |place: u32| b'0' | u8::try_from(self.packed >> (4 * place) & 0xf).unwrap_or(0);
        Some((skipped..self.length).rev().map(digit).collect())
    }

    /// The digits of an address, without a leading plus sign.
    pub(crate) fn from_address(value: &[u8]) -> Self {
        Self::of(value.strip_prefix(b"+").unwrap_or(value))
    }
}

/// A table for which a generation has a handle.
#[derive(Debug)]
enum TableSource {
    /// A table of the plugin itself.
    Own(Arc<PrefixTable>),
    /// A table of the appliance. An upload may replace its contents at any time.
    Appliance(capabilities::TableHandle),
}

/// The tables of one generation of a plugin, shared by its instances. A handle is an index into the list.
#[derive(Debug)]
pub(crate) struct PluginTables {
    tables: RwLock<Vec<(String, TableSource)>>,
    /// Maximum number of rows over all own tables.
    limit: usize,
}

impl PluginTables {
    pub(crate) fn new(limit: usize) -> Self {
        Self { tables: RwLock::default(), limit }
    }

    fn define(&self, name: String, rows: &[Row]) -> Result<u32, String> {
        if name.len() > MAX_NAME_OCTETS {
            return Err(format!("a table's name of {} octets: the maximum is {MAX_NAME_OCTETS}", name.len()));
        }
        let mut tables = self.tables.write();
        // All instances are configured with the same document: the first one fills the table, the others find it.
        let is_own =
            |(known, source): &(String, TableSource)| *known == name && matches!(source, TableSource::Own(_));
        if let Some(index) = tables.iter().position(is_own) {
            return u32::try_from(index).map_err(|_| "too many tables".to_owned());
        }
        let own_rows: usize = tables
            .iter()
            .map(|(_, source)| match source {
                TableSource::Own(table) => table.len(),
                TableSource::Appliance(_) => 0,
            })
            .sum();
        if own_rows + rows.len() > self.limit {
            return Err(format!(
                "{} rows exceed the {} that the binding allows",
                own_rows + rows.len(),
                self.limit
            ));
        }
        let mut table = PrefixTable::default();
        for row in rows {
            table.insert(&row.key, row.value)?;
        }
        let index = u32::try_from(tables.len()).map_err(|_| "too many tables".to_owned())?;
        if tables.len() >= MAX_HANDLES {
            return Err(format!("more than {MAX_HANDLES} tables"));
        }
        tables.push((name, TableSource::Own(Arc::new(table))));
        Ok(index)
    }

    fn open(&self, name: String, handle: capabilities::TableHandle) -> Result<u32, String> {
        let mut tables = self.tables.write();
        let is_appliance = |(known, source): &(String, TableSource)| {
            *known == name && matches!(source, TableSource::Appliance(_))
        };
        let index = match tables.iter().position(is_appliance) {
            Some(index) => index,
            None if tables.len() >= MAX_HANDLES => return Err(format!("more than {MAX_HANDLES} tables")),
            None => {
                tables.push((name, TableSource::Appliance(handle)));
                tables.len() - 1
            }
        };
        u32::try_from(index).map_err(|_| "too many tables".to_owned())
    }

    /// The handle of an appliance table that another instance has opened.
    fn open_handle(&self, name: &str) -> Option<u32> {
        let tables = self.tables.read();
        let is_appliance = |(known, source): &(String, TableSource)| {
            known == name && matches!(source, TableSource::Appliance(_))
        };
        u32::try_from(tables.iter().position(is_appliance)?).ok()
    }

    /// Looks up something in a table of the plugin itself.
    fn with_own_table<T>(&self, table: u32, look_up: impl FnOnce(&PrefixTable) -> Option<T>) -> Option<T> {
        match self.tables.read().get(table as usize)? {
            (_, TableSource::Own(table)) => look_up(table),
            (_, TableSource::Appliance(_)) => None,
        }
    }

    /// An appliance table, with its name.
    fn appliance_table(&self, table: u32) -> Option<(String, capabilities::TableHandle)> {
        match self.tables.read().get(table as usize)? {
            (name, TableSource::Appliance(handle)) => Some((name.clone(), handle.clone())),
            (_, TableSource::Own(_)) => None,
        }
    }
}

/// Maximum length of the name of an own table, in octets.
const MAX_NAME_OCTETS: usize = 256;

/// Maximum number of table handles of one plugin.
const MAX_HANDLES: usize = 64;

impl Host for InstanceState {
    fn define_prefixes(&mut self, name: String, rows: Vec<Row>) -> Result<u32, String> {
        self.count_call(HostInterface::Tables);
        if !self.configuring {
            return Err("tables can only be filled in configure".to_owned());
        }
        self.tables.define(name, &rows)
    }

    fn longest_prefix(&mut self, table: u32, key: String) -> Option<Found> {
        self.count_call(HostInterface::Tables);
        let (value, length) = self.tables.with_own_table(table, |table| table.longest(&key))?;
        Some(Found { length, value })
    }

    fn match_destination(&mut self, table: u32, digits: u32) -> Option<Found> {
        self.count_call(HostInterface::Tables);
        let (value, length) =
            self.tables.with_own_table(table, |table| table.longest_of(self.destination, digits))?;
        Some(Found { length, value })
    }

    fn open(&mut self, name: String) -> Result<u32, String> {
        self.count_call(HostInterface::Tables);
        if !self.configuring {
            return Err("tables can only be opened in configure".to_owned());
        }
        if !self.context.grants.tables.contains(&name) {
            return Err(format!("the binding does not grant table {name:?}: add it to grants.tables"));
        }
        self.add_reference(PolicyReferenceKind::Table, &name);
        // A handle stays valid: an instance that is created later finds its table even after the table was removed.
        if let Some(index) = self.tables.open_handle(&name) {
            return Ok(index);
        }
        let table_store = &self.services.tables;
        let handle = if self.context.allow_missing_tables {
            table_store.handle_or_create(&name)
        } else {
            table_store.handle(&name)
        };
        match handle {
            Some(handle) => self.tables.open(name, handle),
            None => Err(format!("there is no table {name:?}: upload it with PUT /v1/tables/{name}")),
        }
    }

    fn get(&mut self, table: u32, key: String) -> Option<String> {
        self.count_call(HostInterface::Tables);
        let (name, handle) = self.tables.appliance_table(table)?;
        let key_parts = [name.as_bytes(), key.as_bytes()];
        if let Some(recorded) = self.call_log.recall(HostCallKind::Table, &key_parts) {
            return recorded.split_first().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        }
        let found = handle.read(|table| table.get(&key).map(str::to_owned)).flatten();
        // An empty answer means not found; a found value has a leading one.
        let answer = found.as_ref().map_or_else(Vec::new, |value| [&[1], value.as_bytes()].concat());
        self.call_log.append(HostCallKind::Table, &key_parts, &answer);
        found
    }

    fn get_prefix(&mut self, table: u32, key: String) -> Option<FoundText> {
        self.count_call(HostInterface::Tables);
        let (name, handle) = self.tables.appliance_table(table)?;
        let key_parts = [name.as_bytes(), key.as_bytes()];
        if let Some(recorded) = self.call_log.recall(HostCallKind::Prefix, &key_parts) {
            let (length, value) = recorded.split_first()?;
            return Some(FoundText {
                length: u32::from(*length),
                value: String::from_utf8_lossy(value).into_owned(),
            });
        }
        let longest = |table: &capabilities::Table| {
            table.longest(&key).map(|(length, value)| (length, value.to_owned()))
        };
        let found = handle.read(longest).flatten();
        let answer = found.as_ref().map_or_else(Vec::new, |(length, value)| {
            [&[u8::try_from(*length).unwrap_or(u8::MAX)], value.as_bytes()].concat()
        });
        self.call_log.append(HostCallKind::Prefix, &key_parts, &answer);
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

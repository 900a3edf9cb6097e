//! Overwrites the unused octets of SQLite's pages.
//!
//! `secure_delete` overwrites a value that is deleted or changed, but not the copies that stay in the unused part of a page
//! when the page is split or merged. These copies may be of values that are erased later. So all pages are read, and unused
//! octets are overwritten with zeros, through the table `sqlite_dbpage`: in transactions, concurrently with other
//! connections.
//!
//! Source: <https://www.sqlite.org/fileformat2.html> §1.6 and <https://www.sqlite.org/dbpage.html>.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use std::ops::RangeInclusive;

/// The maximum number of pages. In larger files the first octet of an overflow page could be mistaken for the flag of a
/// b-tree page.
pub(super) const MAX_PAGES: u32 = 0x0200_0000 - 1;

/// Flags of b-tree pages, and the lengths of their headers.
const PAGE_KINDS: [(u8, usize); 4] = [(0x02, 12), (0x05, 12), (0x0a, 8), (0x0d, 8)];

/// The length of the file's header, which precedes the header of the first page.
const FILE_HEADER: usize = 100;

/// The number of pages.
pub(super) fn page_count(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA page_count", [], |row| row.get(0))
}

/// Whether values were erased since the last overwriting of all pages. The mark is in the file, and survives a crash.
pub(super) fn is_due(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0).map(|version: i64| version == 1))
}

/// Overwrites unused octets of some pages, in one transaction. Returns the number of changed pages.
pub(super) fn overwrite(connection: &mut Connection, pages: RangeInclusive<u32>) -> rusqlite::Result<usize> {
    // IMMEDIATE: no other connection changes a page after it was read.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut changed = 0;
    {
        let mut read = transaction.prepare("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let mut write = transaction.prepare("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
        for number in pages {
            let page = read.query_row([number], |row| row.get::<_, Option<Vec<u8>>>(0)).optional()?;
            let Some(Some(mut page)) = page else { continue };
            if clear(&mut page, number == 1) == Some(true) {
                write.execute(rusqlite::params![number, page])?;
                changed += 1;
            }
        }
    }
    transaction.commit()?;
    Ok(changed)
}

/// Overwrites the octets of a page that no cell uses. Returns whether any of them was not zero; `None` if it is no b-tree
/// page.
fn clear(page: &mut [u8], is_first: bool) -> Option<bool> {
    let begin = if is_first { FILE_HEADER } else { 0 };
    let two =
        |page: &[u8], at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    let flag = *page.get(begin)?;
    let (_, header) = PAGE_KINDS.into_iter().find(|(kind, _)| *kind == flag)?;
    let cells = two(page, begin + 3)?;
    let content = match two(page, begin + 5)? {
        0 => 65_536,
        at => at,
    };
    let pointers = begin + header + 2 * cells;
    // Between the pointers and the first cell.
    let mut changed = clear_range(page.get_mut(pointers..content)?);
    // Free blocks, in ascending order: 2 octets of the next one's place, 2 of the length, and the rest.
    let (mut block, mut last) = (two(page, begin + 1)?, content);
    while block != 0 {
        if block < last {
            return None;
        }
        let (next, length) = (two(page, block)?, two(page, block + 2)?);
        changed |= clear_range(page.get_mut(block + 4..block + length)?);
        last = block + length;
        block = next;
    }
    Some(changed)
}

fn clear_range(octets: &mut [u8]) -> bool {
    let is_used = octets.iter().any(|octet| *octet != 0);
    if is_used {
        octets.fill(0);
    }
    is_used
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("a.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA secure_delete = on;
                 CREATE TABLE t (id INTEGER PRIMARY KEY, value TEXT); CREATE INDEX i ON t (value);",
            )
            .unwrap();
        (folder, connection)
    }

    fn rows(connection: &Connection) -> Vec<(i64, String)> {
        let mut select = connection.prepare("SELECT id, value FROM t ORDER BY id").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Any history of inserts, changes and deletes: the rows stay, the file is sound, and no removed value is in it.
        #[test]
        fn only_unused_octets_are_overwritten(
            operations in proptest::collection::vec((0..3_u8, 0..200_i64, 1..900_usize), 1..400)
        ) {
            let (folder, mut connection) = file();
            for (number, (kind, id, length)) in operations.iter().enumerate() {
                let value = format!("<{number}>{}", "v".repeat(*length));
                let sql = match kind {
                    0 => "DELETE FROM t WHERE id = ?1 AND ?2 <> ''",
                    _ => "INSERT INTO t VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                };
                connection.execute(sql, rusqlite::params![id, value]).unwrap();
            }
            let before = rows(&connection);
            let pages = page_count(&connection).unwrap();
            overwrite(&mut connection, 1..=pages).unwrap();
            prop_assert_eq!(overwrite(&mut connection, 1..=pages).unwrap(), 0);
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            prop_assert_eq!(rows(&connection), before.clone());
            let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            prop_assert_eq!(check, "ok");
            let octets = std::fs::read(folder.path().join("a.db")).unwrap();
            for number in 0..operations.len() {
                let mark = format!("<{number}>v");
                let is_there = memchr::memmem::find(&octets, mark.as_bytes()).is_some();
                let is_stored = before.iter().any(|(_, value)| value.starts_with(&mark));
                prop_assert_eq!(is_there, is_stored, "{}", mark);
            }
        }

        #[test]
        fn any_octets_are_read(mut page in proptest::collection::vec(any::<u8>(), 0..600), first: bool, kind in 0..4_usize) {
            if let Some(flag) = page.get_mut(if first { FILE_HEADER } else { 0 }) {
                *flag = PAGE_KINDS[kind].0;
            }
            let _ = clear(&mut page, first);
        }
    }
}

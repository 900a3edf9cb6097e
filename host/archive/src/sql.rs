//! Statements, values and columns without a data base behind them.

use crate::row::{Direction, Row};

/// What a column holds, as far as its writing and reading is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A number of 64 bits.
    Big,
    /// A number of 16 bits.
    Small,
    Text,
    Octets,
}

/// The columns of table `messages`, in the order of [`values`].
pub(crate) const COLUMNS: [(&str, Kind); 28] = [
    ("id", Kind::Big),
    ("accepted_at", Kind::Big),
    ("ended_at", Kind::Big),
    ("direction", Kind::Text),
    ("account", Kind::Text),
    ("peer", Kind::Text),
    ("source", Kind::Text),
    ("source_ton", Kind::Small),
    ("source_npi", Kind::Small),
    ("destination", Kind::Text),
    ("destination_ton", Kind::Small),
    ("destination_npi", Kind::Small),
    ("state", Kind::Text),
    ("error", Kind::Big),
    ("peer_message_id", Kind::Text),
    ("attempts", Kind::Small),
    ("priority", Kind::Small),
    ("data_coding", Kind::Small),
    ("udhi", Kind::Small),
    ("body", Kind::Octets),
    ("router", Kind::Text),
    ("router_version", Kind::Text),
    ("note", Kind::Text),
    ("trace", Kind::Text),
    ("price", Kind::Big),
    ("price_account", Kind::Text),
    ("price_state", Kind::Text),
    ("decision", Kind::Octets),
];

/// A value on its way in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(i64),
    Maybe(Option<i64>),
    Text(Option<&'a str>),
    Octets(Option<&'a [u8]>),
}

/// A row's values in the order of [`COLUMNS`].
pub(crate) fn values(row: &Row) -> [Value<'_>; COLUMNS.len()] {
    let number = Value::Number;
    let text = |text| Value::Text(Some(text));
    [
        number(row.id),
        number(row.accepted_at),
        number(row.ended_at),
        text(row.direction.name()),
        text(&row.account),
        text(&row.peer),
        text(&row.source),
        number(row.source_ton),
        number(row.source_npi),
        text(&row.destination),
        number(row.destination_ton),
        number(row.destination_npi),
        text(row.state),
        number(row.error),
        Value::Text(row.peer_message_id.as_deref()),
        // Counts attempts in 16 bits; the column has 15.
        number(row.attempts.min(i64::from(i16::MAX))),
        number(row.priority),
        number(row.data_coding),
        number(i64::from(row.udhi)),
        Value::Octets((!row.body.is_empty()).then_some(&row.body[..])),
        text(&row.router),
        text(&row.router_version),
        Value::Text(row.note.as_deref()),
        text(&row.trace),
        Value::Maybe(row.price),
        Value::Text(row.price_account.as_deref()),
        Value::Text(row.price_state),
        Value::Octets(Some(&row.decision)),
    ]
}

/// The ways in which data bases differ in what we say to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Sqlite,
    MySql,
    Postgres,
}

/// A value that a statement holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Bound {
    Number(i64),
    Text(String),
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) bound: Vec<Bound>,
    dialect: Dialect,
}

impl Statement {
    pub(crate) fn new(dialect: Dialect, sql: &str) -> Self {
        Self { sql: sql.to_owned(), bound: Vec::new(), dialect }
    }

    /// Text of our own; never anything from outside.
    pub(crate) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// A value, as a placeholder.
    pub(crate) fn bind(&mut self, value: Bound) -> &mut Self {
        self.bound.push(value);
        match self.dialect {
            Dialect::Postgres => {
                self.sql.push('$');
                self.sql.push_str(&self.bound.len().to_string());
            }
            Dialect::Sqlite | Dialect::MySql => self.sql.push('?'),
        }
        self
    }

    pub(crate) fn number(&mut self, value: i64) -> &mut Self {
        self.bind(Bound::Number(value))
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bind(Bound::Text(value.to_owned()))
    }
}

/// A value on its way out; anything may be NULL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Number(i64),
    Text(String),
    Octets(Vec<u8>),
}

impl Cell {
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn into_octets(self) -> Option<Vec<u8>> {
        match self {
            Self::Octets(octets) => Some(octets),
            _ => None,
        }
    }
}

/// `INSERT INTO table (columns) VALUES (?, …), …`, as many rows as given.
pub(crate) fn insert_rows(dialect: Dialect, rows: usize) -> String {
    let mut sql = String::from("INSERT INTO messages (");
    for (index, (name, _)) in COLUMNS.iter().enumerate() {
        if index > 0 {
            sql.push(',');
        }
        sql.push_str(name);
    }
    sql.push_str(") VALUES ");
    let mut number = 0;
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ",(" });
        for column in 0..COLUMNS.len() {
            if column > 0 {
                sql.push(',');
            }
            number += 1;
            match dialect {
                Dialect::Postgres => {
                    sql.push('$');
                    sql.push_str(&number.to_string());
                }
                Dialect::Sqlite | Dialect::MySql => sql.push('?'),
            }
        }
        sql.push(')');
    }
    sql
}

/// Cuts a list into pieces of the given sizes, the largest that fit first; what is shorter than the smallest stays whole.
///
/// With few sizes there are few different statements, so that a server's prepared ones are used again.
pub(crate) fn pieces<'a, T>(mut list: &'a [T], sizes: &'a [usize]) -> impl Iterator<Item = &'a [T]> {
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|size| *size > 0 && *size <= list.len()).unwrap_or(list.len());
        let (piece, rest) = list.split_at(size);
        list = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Adds up the statistics and the hours, keys in pieces of these sizes.
pub(crate) fn add_sums(dialect: Dialect, sums: &crate::measure::Sums, sizes: &[usize]) -> Vec<Statement> {
    let mut statements = Vec::new();
    let keys: Vec<_> = sums.counts.iter().collect();
    for some in pieces(&keys, sizes) {
        let mut statement = Statement::new(
            dialect,
            "INSERT INTO statistics (hour, account, peer, direction, measure, code, amount) VALUES ",
        );
        for (index, (key, amount)) in some.iter().enumerate() {
            statement.push(if index == 0 { "(" } else { ",(" });
            statement.number(key.hour).push(",").text(&key.account).push(",").text(&key.peer).push(",");
            statement.text(Direction::name(key.direction)).push(",").text(key.measure.name()).push(",");
            statement.number(key.code).push(",").number(**amount).push(")");
        }
        statement.push(match dialect {
            Dialect::MySql => " ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)",
            Dialect::Sqlite | Dialect::Postgres => {
                " ON CONFLICT (hour, account, peer, direction, measure, code) DO UPDATE SET amount = statistics.amount + excluded.amount"
            }
        });
        statements.push(statement);
    }
    let hours: Vec<_> = sums.hours.iter().collect();
    for some in pieces(&hours, sizes) {
        let mut statement = Statement::new(dialect, "INSERT INTO hours (hour, first_id, last_id) VALUES ");
        for (index, (hour, (first, last))) in some.iter().enumerate() {
            statement.push(if index == 0 { "(" } else { ",(" });
            statement.number(**hour).push(",").number(*first).push(",").number(*last).push(")");
        }
        statement.push(match dialect {
            Dialect::MySql => {
                " ON DUPLICATE KEY UPDATE first_id = LEAST(first_id, VALUES(first_id)), last_id = GREATEST(last_id, VALUES(last_id))"
            }
            Dialect::Sqlite => {
                " ON CONFLICT (hour) DO UPDATE SET first_id = min(hours.first_id, excluded.first_id), last_id = max(hours.last_id, excluded.last_id)"
            }
            Dialect::Postgres => {
                " ON CONFLICT (hour) DO UPDATE SET first_id = LEAST(hours.first_id, excluded.first_id), last_id = GREATEST(hours.last_id, excluded.last_id)"
            }
        });
        statements.push(statement);
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_list() {
        let list: Vec<_> = (0..1000).collect();
        for length in [0, 1, 7, 63, 64, 65, 127, 640, 1000] {
            for sizes in [&[64][..], &[256, 64, 16, 4, 1], &[]] {
                let cut: Vec<_> = pieces(&list[..length], sizes).collect();
                assert_eq!(cut.concat(), list[..length]);
                assert!(cut.iter().all(|piece| sizes.is_empty() || piece.len() <= sizes[0]), "{length}");
            }
        }
        let sizes =
            |length| pieces(&list[..length], &[256, 64, 16, 4, 1]).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(600), [256, 256, 64, 16, 4, 4]);
    }
}

//! Statements, values and columns, independent of a database.

use crate::row::Row;
use model::Direction;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnType {
    /// A 64-bit integer.
    Big,
    /// A 16-bit integer.
    Small,
    Text,
    Octets,
}

/// The columns of table `messages`, in the order of [`values`].
pub(crate) const COLUMNS: [(&str, ColumnType); 30] = [
    ("id", ColumnType::Big),
    ("accepted_at", ColumnType::Big),
    ("ended_at", ColumnType::Big),
    ("direction", ColumnType::Text),
    ("account", ColumnType::Text),
    ("peer", ColumnType::Text),
    ("source", ColumnType::Text),
    ("source_ton", ColumnType::Small),
    ("source_npi", ColumnType::Small),
    ("destination", ColumnType::Text),
    ("destination_ton", ColumnType::Small),
    ("destination_npi", ColumnType::Small),
    ("state", ColumnType::Text),
    ("error", ColumnType::Big),
    ("peer_message_id", ColumnType::Text),
    ("attempts", ColumnType::Small),
    ("priority", ColumnType::Small),
    ("data_coding", ColumnType::Small),
    ("udhi", ColumnType::Small),
    ("body", ColumnType::Octets),
    ("router", ColumnType::Text),
    ("router_version", ColumnType::Text),
    ("note", ColumnType::Text),
    ("trace", ColumnType::Text),
    ("price", ColumnType::Big),
    ("price_account", ColumnType::Text),
    ("price_state", ColumnType::Text),
    ("decision", ColumnType::Octets),
    ("content_erased_at", ColumnType::Big),
    ("text_key", ColumnType::Big),
];

/// A value to be inserted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(i64),
    OptionalNumber(Option<i64>),
    Text(Option<&'a str>),
    Octets(Option<&'a [u8]>),
}

/// The values of a row in the order of [`COLUMNS`].
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
        // Attempts are counted in 16 bits; the column has 15.
        number(row.attempts.min(i64::from(i16::MAX))),
        number(row.priority),
        number(row.data_coding),
        number(i64::from(row.udhi)),
        Value::Octets((!row.body.is_empty()).then_some(&row.body[..])),
        text(&row.router),
        text(&row.router_version),
        Value::Text(row.note.as_deref()),
        text(&row.trace),
        Value::OptionalNumber(row.price),
        Value::Text(row.price_account.as_deref()),
        Value::Text(row.price_state),
        Value::Octets((!row.decision.is_empty()).then_some(&row.decision[..])),
        Value::OptionalNumber(row.content_erased_at),
        Value::OptionalNumber(row.text_key),
    ]
}

/// The SQL dialects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Sqlite,
    MySql,
    Postgres,
}

/// A parameter of a statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Parameter {
    Number(i64),
    Text(String),
}

/// A statement with its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) bound: Vec<Parameter>,
    dialect: Dialect,
}

impl Statement {
    pub(crate) fn new(dialect: Dialect, sql: &str) -> Self {
        Self { sql: sql.to_owned(), bound: Vec::new(), dialect }
    }

    /// Appends constant SQL; never external input.
    pub(crate) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    /// Appends a placeholder and its value.
    pub(crate) fn bind(&mut self, value: Parameter) -> &mut Self {
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
        self.bind(Parameter::Number(value))
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bind(Parameter::Text(value.to_owned()))
    }
}

/// A value of a result; may be NULL.
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

/// Builds `INSERT INTO table (columns) VALUES (?, …), …` for a number of rows.
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

/// Splits a list into parts of the given sizes, the largest that fit first. A remainder shorter than the smallest size stays
/// one part.
///
/// Few sizes mean few different statements, so that the server can reuse prepared ones.
pub(crate) fn split_by_sizes<'a, T>(mut list: &'a [T], sizes: &'a [usize]) -> impl Iterator<Item = &'a [T]> {
    std::iter::from_fn(move || {
        let size = sizes.iter().copied().find(|size| *size > 0 && *size <= list.len()).unwrap_or(list.len());
        let (piece, rest) = list.split_at(size);
        list = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Builds the statements that add to the tables `statistics` and `hours`, keys in parts of these sizes.
pub(crate) fn add_sums(
    dialect: Dialect,
    sums: &crate::measures::StatisticsDelta,
    sizes: &[usize],
) -> Vec<Statement> {
    let mut statements = Vec::new();
    let keys: Vec<_> = sums.counts.iter().collect();
    for some in split_by_sizes(&keys, sizes) {
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
    for some in split_by_sizes(&hours, sizes) {
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
    fn split_parts_concatenate_to_the_list() {
        let list: Vec<_> = (0..1000).collect();
        for length in [0, 1, 7, 63, 64, 65, 127, 640, 1000] {
            for sizes in [&[64][..], &[256, 64, 16, 4, 1], &[]] {
                let cut: Vec<_> = split_by_sizes(&list[..length], sizes).collect();
                assert_eq!(cut.concat(), list[..length]);
                assert!(cut.iter().all(|piece| sizes.is_empty() || piece.len() <= sizes[0]), "{length}");
            }
        }
        let sizes = |length| {
            split_by_sizes(&list[..length], &[256, 64, 16, 4, 1]).map(<[_]>::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(600), [256, 256, 64, 16, 4, 4]);
    }
}

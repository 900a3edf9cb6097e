//! Erases all data of one number in the archive: the contents of its messages, and the number itself.

use crate::backend::Session;
use crate::content_erasure::{STEP, push_ids};
use crate::erased_trace::{with_erasure_step, without_submitted_text};
use crate::error::Fault;
use crate::row::milliseconds;
use crate::sql::{Cell, ColumnType, Dialect, Statement};
use crate::{Archive, ArchiveError};
use model::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// The text that replaces an erased number.
pub const ERASED_NUMBER: &str = "erased";

/// Maximum number of rows that one call changes.
const MAX_ROWS: usize = 10_000;

/// Keys of a trace that are removed: a subscriber's identity, and octets that may have numbers.
const REMOVED_KEYS: [&str; 3] = ["imsi", "tlvs", "protocol_fields"];

/// The result of [`Archive::erase_number`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NumberErasure {
    /// Rows in which the number was replaced.
    pub rows: u64,
    /// The rows of these whose content was erased now, and not before.
    pub contents: u64,
    /// Whether no row has the number as its source or destination any more.
    pub is_complete: bool,
}

/// A row with the number.
struct Found {
    id: i64,
    source: String,
    destination: String,
    trace: String,
    note: Option<String>,
    had_content: bool,
}

impl Archive {
    /// Erases a number, given by its digits, in at most 10,000 messages that it sent or received: their contents, and the
    /// number as source, destination, and within trace and note. The messages stay, for statistics and accounting. A
    /// repetition continues. With SQLite, the file is overwritten as by [`Archive::erase_content`].
    ///
    /// # Errors
    /// Fails if the database does not answer. Earlier steps remain.
    pub async fn erase_number(
        &self,
        digits: &str,
        at: Timestamp,
        by: &Arc<str>,
    ) -> Result<NumberErasure, ArchiveError> {
        let mut session = self.with_timeout(self.backend.connect()).await?;
        let dialect = self.backend.dialect();
        let work = async {
            session.mark_erasure().await?;
            let mut erasure = NumberErasure { is_complete: true, ..NumberErasure::default() };
            let mut left = MAX_ROWS;
            for column in ["destination", "source"] {
                for form in self.redaction.forms(column, digits) {
                    while left > 0 {
                        let found = find(&mut *session, dialect, column, &form, STEP.min(left)).await?;
                        if found.is_empty() {
                            break;
                        }
                        left -= found.len();
                        erasure.rows += found.len() as u64;
                        erasure.contents += found.iter().filter(|row| row.had_content).count() as u64;
                        update(&mut *session, dialect, found, (digits, &form, at, by)).await?;
                    }
                    erasure.is_complete &= left > 0;
                }
            }
            session.mark_erasure().await?;
            self.begin_overwriting();
            session.overwrite_erased().await?;
            Ok(erasure)
        };
        let erased = self.with_timeout(work).await;
        session.close().await;
        erased
    }
}

async fn find(
    session: &mut dyn Session,
    dialect: Dialect,
    column: &str,
    form: &str,
    most: usize,
) -> Result<Vec<Found>, Fault> {
    let mut select = Statement::new(
        dialect,
        "SELECT id, source, destination, trace, note, content_erased_at FROM messages WHERE ",
    );
    select.push(column).push(" = ").text(form).push(" LIMIT ").push(&most.to_string());
    let text = ColumnType::Text;
    let kinds = [ColumnType::Big, text, text, text, text, ColumnType::Big];
    let rows = session.select(&select, &kinds).await?;
    let found = rows.into_iter().filter_map(|row| {
        let [id, source, destination, trace, note, erased_at] = <[Cell; 6]>::try_from(row).ok()?;
        Some(Found {
            id: id.number()?,
            source: source.into_text()?,
            destination: destination.into_text()?,
            trace: trace.into_text()?,
            note: note.into_text(),
            had_content: erased_at.number().is_none(),
        })
    });
    Ok(found.collect())
}

async fn update(
    session: &mut dyn Session,
    dialect: Dialect,
    rows: Vec<Found>,
    (digits, form, at, by): (&str, &str, Timestamp, &Arc<str>),
) -> Result<(), Fault> {
    let other = |text: &str| text.replace(form, ERASED_NUMBER).replace(digits, ERASED_NUMBER);
    let is_it = |text: &str| text == form || text.strip_prefix('+').unwrap_or(text) == digits;
    let address = |text: &str| if is_it(text) { ERASED_NUMBER.to_owned() } else { text.to_owned() };
    let mut update = Statement::new(dialect, "UPDATE messages SET body = NULL, decision = NULL");
    let mut column = |name: &str, value: &dyn Fn(&Found) -> Option<String>| {
        update.push(", ").push(name).push(" = CASE id");
        for row in &rows {
            if let Some(value) = value(row) {
                update.push(" WHEN ").push(&row.id.to_string()).push(" THEN ").text(&value);
            }
        }
        update.push(" WHEN -1 THEN ").push(name).push(" ELSE ").push(name).push(" END");
    };
    column("source", &|row| Some(address(&row.source)));
    column("destination", &|row| Some(address(&row.destination)));
    column("note", &|row| row.note.as_deref().map(other));
    column("trace", &|row| {
        let step = row.had_content.then_some((at, by));
        Some(trace_without_number(&row.trace, &[form, digits], step).unwrap_or_else(|| "{}".to_owned()))
    });
    update.push(", content_erased_at = COALESCE(content_erased_at, ").number(milliseconds(at)).push(")");
    update.push(" WHERE id IN (");
    push_ids(&mut update, rows.iter().map(|row| row.id));
    update.push(")");
    session.execute(&update).await.map(drop)
}

/// A trace without the number, and, with `step`, without its content. `None` if it is not a trace.
fn trace_without_number(trace: &str, forms: &[&str], step: Option<(Timestamp, &Arc<str>)>) -> Option<String> {
    let mut trace: Value = serde_json::from_str(trace).ok()?;
    remove_number(&mut trace, forms);
    without_submitted_text(&mut trace);
    if let Some((at, by)) = step {
        with_erasure_step(&mut trace, at, by)?;
    }
    serde_json::to_string(&trace).ok()
}

fn remove_number(value: &mut Value, forms: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !REMOVED_KEYS.contains(&key.as_str()));
            fields.values_mut().for_each(|value| remove_number(value, forms));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_number(item, forms)),
        Value::String(text) => {
            for form in forms.iter().filter(|form| text.contains(**form)).collect::<Vec<_>>() {
                *text = text.replace(*form, ERASED_NUMBER);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_loses_the_number_and_stays_a_trace() {
        let trace = concat!(
            r#"{"submission":{"tlvs":"0381000a","expires_at":17},"#,
            r#""route":{"legs":[{"peer":"north","destination":"491701234567","imsi":"262011234567890"}]},"#,
            r#""screening":{"plugin":"p","version":"1","submitted":{"octets":"68656c6c6f"}},"#,
            r#""steps":[{"at":1,"step":"decided","hook":"router","plugin":"p","version":"v","note":"asked for 491701234567"},"#,
            r#"{"at":2,"step":"asked_anew","imsi":"262011234567890"}]}"#,
        );
        let erased =
            trace_without_number(trace, &["491701234567"], Some((Timestamp(7), &"ada".into()))).unwrap();
        for gone in ["491701234567", "262011234567890", "0381000a", "68656c6c6f"] {
            assert!(!erased.contains(gone), "{gone}: {erased}");
        }
        let decoded = crate::trace::decode_trace(&erased).unwrap();
        assert_eq!(model::content_erased_at(&decoded.steps), Some(Timestamp(7)));
        assert!(decoded.verdict.is_some());
    }
}

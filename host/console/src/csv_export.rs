//! Exports of tables as files: CSV and JSON.

use crate::api_caller::{ApiError, with_query};
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use maud::{Markup, html};
use serde_json::Value;
use std::future::Future;

/// A part of an export: its rows, and the position of the next part.
pub(crate) struct ExportPart {
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) next: Option<String>,
}

/// Link to an export of the contents of a page.
pub(crate) fn export_link(path: &str, parameters: &[(&str, &str)]) -> Markup {
    let file = path.rsplit('/').next().unwrap_or(path);
    let format = file.rsplit_once('.').map_or("CSV", |(_, end)| if end == "json" { "JSON" } else { "CSV" });
    html! { a.button.quiet href=(with_query(path, parameters)) download=(file) { "Export as " (format) } }
}

/// A table with values of JSON, for files in both formats.
pub(crate) struct ExportTable<'a> {
    /// File name without extension.
    pub(crate) name: &'a str,
    pub(crate) heads: &'a [&'a str],
    pub(crate) rows: Vec<Vec<Value>>,
}

impl ExportTable<'_> {
    /// The file in this format: `json` has an object for each row, anything else is CSV.
    pub(crate) fn file(&self, format: &str) -> Response {
        if format == "json" {
            return self.json_file();
        }
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(text).collect()).collect();
        csv_file(&format!("{}.csv", self.name), self.heads, &rows)
    }

    fn json_file(&self) -> Response {
        let object = |row: &Vec<Value>| {
            let fields = self.heads.iter().zip(row).map(|(head, value)| ((*head).to_owned(), value.clone()));
            Value::Object(fields.collect())
        };
        let all = Value::Array(self.rows.iter().map(object).collect());
        file_response(&format!("{}.json", self.name), "application/json", format!("{all:#}\n").into())
    }
}

/// Rows as lines of CSV.
fn lines<T: AsRef<str>>(rows: &[Vec<T>]) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        writer.write_record(row.iter().map(T::as_ref))?;
    }
    writer.into_inner().map_err(|error| std::io::Error::other(error.to_string()))
}

fn response(file: &str, body: Body) -> Response {
    file_response(file, "text/csv; charset=utf-8", body)
}

fn file_response(file: &str, media_type: &str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\"")),
    ];
    (headers, body).into_response()
}

/// A table as a file.
pub(crate) fn csv_file(file: &str, heads: &[&str], rows: &[Vec<String>]) -> Response {
    match lines(&[heads.to_vec()]).and_then(|mut text| {
        text.extend(lines(rows)?);
        Ok(text)
    }) {
        Ok(text) => response(file, text.into()),
        Err(error) => {
            tracing::error!(%error, "an export cannot be written");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A long table as a file, part by part. `read` reads the part at a position. The caller has read the first part, so an error there
/// becomes an error response. An error in a later part breaks the connection, so that a truncated file is not taken for a complete one.
pub(crate) fn csv_stream<F, R>(file: &str, heads: &[&str], first: ExportPart, read: R) -> Response
where
    F: Future<Output = Result<ExportPart, ApiError>> + Send,
    R: Fn(String) -> F + Send + 'static,
{
    let head = lines(&[heads.to_vec()]).and_then(|mut text| {
        text.extend(lines(&first.rows)?);
        Ok(text)
    });
    let rest = stream::unfold((read, first.next), |(read, next)| async move {
        let part = read(next?).await;
        Some(match part {
            Ok(part) => (lines(&part.rows), (read, part.next)),
            Err(error) => (Err(std::io::Error::other(error.detail)), (read, None)),
        })
    });
    response(file, Body::from_stream(stream::once(async { head }).chain(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let rows = [vec!["a,b".to_owned(), "\"c\"".to_owned()]];
        assert_eq!(String::from_utf8(lines(&rows).unwrap()).unwrap(), "\"a,b\",\"\"\"c\"\"\"\r\n");
        let link = export_link("/pools/x/numbers.csv", &[("state", "idle+up"), ("prefix", "")]).into_string();
        assert!(
            link.contains("href=\"/pools/x/numbers.csv?state=idle%2Bup\" download=\"numbers.csv\""),
            "{link}"
        );
    }
}

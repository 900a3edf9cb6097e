//! Import and export of a pool's numbers as files.

use super::events::weight;
use super::{Pools, bad_request, name, no_such_pool, unexpected_answer};
use crate::problem::Problem;
use crate::request::{Flag, PathParams, QueryParams};
use crate::service::Service;
use api::name_schemas::PoolNameSchema;
use api::{PoolImportErrorView, PoolImportResult};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use model::{
    NumberState, NumberStatus, PoolAnswer, PoolName, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal,
    PoolRequest,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use utoipa::{IntoParams, ToSchema};

/// Lines per batch. Other requests wait some milliseconds for a batch.
const BATCH_LINES: usize = 2_000;
/// Maximum octets of a line.
const MAX_LINE_OCTETS: usize = 512;
/// Maximum lines of an import.
const MAX_LINES: u64 = 10_000_000;
/// Maximum errors listed in the result.
const MAX_ERRORS: usize = 100;
/// Numbers that an export reads at a time.
const EXPORT_PAGE: u32 = 5_000;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Csv,
    Lines,
}

impl FileFormat {
    /// The format of a media type, or of the first supported one in a list.
    fn of(media_type: &str) -> Option<Self> {
        media_type.split([',', ';']).find_map(|part| match part.trim() {
            "text/csv" | "text/plain" => Some(Self::Csv),
            "application/x-ndjson" | "application/jsonl" => Some(Self::Lines),
            _ => None,
        })
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// A parsed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImportRow {
    number: PoolNumber,
    is_up: bool,
    weight: Option<u8>,
}

/// A line in JSON format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRow {
    number: String,
    state: Option<String>,
    weight: Option<u8>,
}

/// Parses the lines of a file in order.
struct RowReader {
    format: FileFormat,
    /// Columns of number, state and weight; set by the first line of a CSV file.
    columns: Option<[Option<usize>; 3]>,
}

impl RowReader {
    fn new(format: FileFormat) -> Self {
        Self { format, columns: None }
    }

    /// Parses a line. `None` for empty lines and the header.
    fn read(&mut self, line: &[u8]) -> Result<Option<ImportRow>, String> {
        let text = std::str::from_utf8(line).map_err(|_| "is no UTF-8".to_owned())?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(None);
        }
        match self.format {
            FileFormat::Lines => {
                let line: JsonRow = serde_json::from_str(text).map_err(|error| error.to_string())?;
                row(&line.number, line.state.as_deref().unwrap_or_default(), line.weight).map(Some)
            }
            FileFormat::Csv => self.csv(text),
        }
    }

    fn csv(&mut self, text: &str) -> Result<Option<ImportRow>, String> {
        // No valid field contains a comma or a quote.
        let fields: Vec<&str> = text.split(',').map(|field| field.trim().trim_matches('"').trim()).collect();
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let column = |name: &str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
                let named = ["number", "state", "weight"].map(column);
                let header = named[0].is_some();
                let columns = if header { named } else { [Some(0), Some(1), Some(2)] };
                self.columns = Some(columns);
                if header {
                    return Ok(None);
                }
                columns
            }
        };
        let [number, state, weight] =
            columns.map(|column| column.and_then(|column| fields.get(column)).copied().unwrap_or_default());
        let weight = match weight {
            "" => None,
            text => Some(text.parse().map_err(|_| format!("weight: is {text:?}, and must be 1 to 16"))?),
        };
        row(number, state, weight).map(Some)
    }
}

fn row(number: &str, state: &str, given_weight: Option<u8>) -> Result<ImportRow, String> {
    let number = number.parse().map_err(|error: model::ParsePoolNumberError| error.to_string())?;
    let is_up = match (state, state.parse()) {
        ("up", _) | (_, Ok(NumberState::IdleUp | NumberState::BusyUp)) => true,
        ("" | "down", _) | (_, Ok(NumberState::IdleDown | NumberState::BusyDown)) => false,
        _ => {
            return Err(format!(
                "state: is {state:?}, and must be up, down, idle+up, idle+down, busy+up or busy+down"
            ));
        }
    };
    Ok(ImportRow { number, is_up, weight: weight(given_weight)? })
}

/// A running import.
struct Import {
    backend: Service<dyn Pools>,
    pool: PoolName,
    reader: RowReader,
    /// Make all numbers available.
    all_up: bool,
    operations: Vec<PoolOperation>,
    rows: usize,
    result: PoolImportResult,
}

impl Import {
    async fn line(&mut self, line: &[u8], is_whole: bool) -> Result<(), Problem> {
        self.result.lines += 1;
        if self.result.lines > MAX_LINES {
            self.flush().await?;
            let what = format!(
                "an import has at most {MAX_LINES} lines; the first {MAX_LINES} were imported, import the rest separately"
            );
            return Err(bad_request(what));
        }
        let read = match is_whole {
            true => self.reader.read(line),
            false => Err(format!("is longer than {MAX_LINE_OCTETS} octets")),
        };
        match read {
            Ok(None) => {}
            Ok(Some(row)) => {
                self.operations.push(PoolOperation::Add { number: row.number, weight: row.weight });
                if row.is_up || self.all_up {
                    self.operations.push(PoolOperation::Reg { number: row.number });
                }
                self.rows += 1;
                if self.rows >= BATCH_LINES {
                    self.flush().await?;
                }
            }
            Err(detail) => {
                self.result.wrong += 1;
                if self.result.errors.len() < MAX_ERRORS {
                    self.result.errors.push(PoolImportErrorView { line: self.result.lines, detail });
                }
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Problem> {
        if self.operations.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows) as u64;
        let operations = std::mem::take(&mut self.operations);
        let filled = self.backend.fill_pool(self.pool.clone(), operations).await?;
        let full = |outcome: &&PoolOutcome| **outcome == PoolOutcome::Refused(PoolRefusal::Full);
        let refused = filled.outcomes.iter().filter(full).count() as u64;
        let added = filled.added as u64;
        self.result.added += added;
        self.result.refused += refused;
        self.result.already += rows.saturating_sub(added + refused);
        Ok(())
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportQuery {
    /// Make all imported numbers available.
    #[param(inline)]
    reg: Option<Flag>,
}

/// Imports the numbers of a file of at most 10,000,000 lines.
///
/// The file is CSV with the columns number, state and weight, named in the first line or in that order, or a JSON object on
/// each line. Numbers with the state up become available. Numbers already in the pool stay; only a state of up and a given
/// weight are applied to them. Lines are applied in batches as they arrive.
#[utoipa::path(
    post,
    path = "/v1/pools/{pool}/import",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name."), ImportQuery),
    request_body(content((String = "text/csv"), (String = "application/x-ndjson")), description = "The file."),
    responses((status = 200, description = "The result of the import.", body = PoolImportResult)),
)]
pub(super) async fn import(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(ImportQuery { reg }): QueryParams<ImportQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<PoolImportResult>, Problem> {
    let pool = name(&pool)?;
    let all_up = reg.unwrap_or_default().0;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = FileFormat::of(kind).ok_or_else(|| {
        bad_request(format!("Content-Type: is {kind:?}, and must be text/csv or application/x-ndjson"))
    })?;
    let mut import = Import {
        backend,
        pool,
        reader: RowReader::new(format),
        all_up,
        operations: Vec::new(),
        rows: 0,
        result: PoolImportResult::default(),
    };
    let mut pieces = body.into_data_stream();
    // The incomplete current line, up to the maximum length.
    let (mut line, mut is_whole) = (Vec::with_capacity(MAX_LINE_OCTETS), true);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| bad_request(format!("the body ended too early: {error}")))?;
        let mut parts = piece.split(|octet| *octet == b'\n').peekable();
        while let Some(part) = parts.next() {
            let fits = line.len() + part.len() <= MAX_LINE_OCTETS;
            is_whole &= fits;
            if fits {
                line.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                import.line(&line, is_whole).await?;
                line.clear();
                is_whole = true;
            }
        }
    }
    if !line.is_empty() || !is_whole {
        import.line(&line, is_whole).await?;
    }
    import.flush().await?;
    let Import { pool, result, .. } = import;
    tracing::info!(%pool, added = result.added, already = result.already, wrong = result.wrong, "numbers imported");
    Ok(Json(result))
}

/// A running export.
struct Export {
    backend: Service<dyn Pools>,
    pool: PoolName,
    format: FileFormat,
    /// Numbers read but not yet written.
    page: Vec<NumberStatus>,
    next: Option<u32>,
    header_written: bool,
}

impl Export {
    async fn read(&mut self, from: u32) -> Result<(), Problem> {
        let request = PoolRequest::Numbers { from, most: EXPORT_PAGE, state: None, prefix: None };
        match self.backend.ask_pool(self.pool.clone(), request).await? {
            PoolAnswer::Numbers { numbers, next } => {
                (self.page, self.next) = (numbers, next);
                Ok(())
            }
            PoolAnswer::NoPool => Err(no_such_pool(&self.pool)),
            _ => Err(unexpected_answer()),
        }
    }

    fn write(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::replace(&mut self.header_written, true) && self.format == FileFormat::Csv {
            text.push_str("number,state,weight\n");
        }
        for NumberStatus { number, row } in self.page.drain(..) {
            // No field needs quoting in either format, and writing to a string cannot fail.
            let _ = match self.format {
                FileFormat::Csv => writeln!(text, "{number},{},{}", row.state, row.weight),
                FileFormat::Lines => {
                    writeln!(
                        text,
                        "{{\"number\":\"{number}\",\"state\":\"{}\",\"weight\":{}}}",
                        row.state, row.weight
                    )
                }
            };
        }
        text
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// Format of the file; default: the `Accept` header.
    #[param(inline)]
    format: Option<ExportFormat>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    Csv,
    Ndjson,
}

/// Exports all numbers of a pool as a file for import.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/export",
    params(("pool" = inline(PoolNameSchema), Path, description = "The pool's name."), ExportQuery),
    responses((
        status = 200,
        description = "The file.",
        content((String = "text/csv"), (String = "application/x-ndjson")),
    )),
)]
pub(super) async fn export(
    backend: Service<dyn Pools>,
    PathParams(pool): PathParams<String>,
    QueryParams(ExportQuery { format }): QueryParams<ExportQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pool = name(&pool)?;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = match format {
        Some(ExportFormat::Csv) => FileFormat::Csv,
        Some(ExportFormat::Ndjson) => FileFormat::Lines,
        None => accepted.and_then(FileFormat::of).unwrap_or(FileFormat::Csv),
    };
    let mut export = Export { backend, pool, format, page: Vec::new(), next: None, header_written: false };
    // Errors of the first page become a problem; later errors end the response.
    export.read(0).await?;
    let pieces = stream::unfold(Some(export), |export| async move {
        let mut export = export?;
        let piece = export.write();
        Some(match export.next.take() {
            None => (Ok(piece), None),
            Some(from) => match export.read(from).await {
                Ok(()) => (Ok(piece), Some(export)),
                Err(problem) => (Err(std::io::Error::other(problem.detail.clone())), None),
            },
        })
    });
    Ok(([(header::CONTENT_TYPE, format.media_type())], Body::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    type RowResult = Result<Option<(String, bool, Option<u8>)>, String>;

    fn read(format: FileFormat, lines: &[&str]) -> Vec<RowResult> {
        let mut reader = RowReader::new(format);
        let result = |row: ImportRow| (row.number.to_string(), row.is_up, row.weight);
        lines.iter().map(|line| reader.read(line.as_bytes()).map(|row| row.map(result))).collect()
    }

    fn good(number: &str, is_up: bool, weight: impl Into<Option<u8>>) -> RowResult {
        Ok(Some((number.to_owned(), is_up, weight.into())))
    }

    #[test]
    fn csv_with_and_without_header_and_reordered_columns() {
        let plain = read(FileFormat::Csv, &["\u{feff}100\r", "", " 101 ", "102,idle+up", "103,down,16"]);
        let expected = [
            good("100", false, None),
            Ok(None),
            good("101", false, None),
            good("102", true, None),
            good("103", false, 16),
        ];
        assert_eq!(plain, expected);
        let named = read(FileFormat::Csv, &["Weight,owner,\"number\"", "3,x,\"+49\"", ",x,*1#"]);
        assert_eq!(named, [Ok(None), good("+49", false, 3), good("*1#", false, None)]);
        let states = read(FileFormat::Csv, &["number,state,weight", "1,busy+up,1", "2,busy+down,1", "3,up,"]);
        assert_eq!(states[1..], [good("1", true, 1), good("2", false, 1), good("3", true, None)]);
    }

    #[test]
    fn json_lines_are_parsed() {
        let lines = [r#"{"number":"1"}"#, r#"{"number":"2","state":"idle+up","weight":4}"#, ""];
        assert_eq!(read(FileFormat::Lines, &lines), [good("1", false, None), good("2", true, 4), Ok(None)]);
    }

    #[test]
    fn invalid_lines_have_error_texts() {
        for (format, line, word) in [
            (FileFormat::Csv, "abc", "is not a pool number"),
            (FileFormat::Csv, "1,asleep", "state"),
            (FileFormat::Csv, "1,up,0", "1 to 16"),
            (FileFormat::Csv, "1,up,x", "1 to 16"),
            (FileFormat::Csv, ",up", "is not a pool number"),
            (FileFormat::Lines, "1", "expected"),
            (FileFormat::Lines, r#"{"number":"1","colour":"red"}"#, "colour"),
            (FileFormat::Lines, r#"{"number":"1","weight":17}"#, "1 to 16"),
        ] {
            let result = read(format, &[line]).remove(0).unwrap_err();
            assert!(result.contains(word), "{line}: {result}");
        }
        assert!(RowReader::new(FileFormat::Csv).read(&[0xff]).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn media_types_select_the_format() {
        assert_eq!(FileFormat::of("text/csv; charset=utf-8"), Some(FileFormat::Csv));
        assert_eq!(FileFormat::of("text/html, application/x-ndjson;q=0.9"), Some(FileFormat::Lines));
        assert_eq!(FileFormat::of("application/json"), None);
    }
}

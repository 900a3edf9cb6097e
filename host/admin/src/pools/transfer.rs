//! Numbers in bulk: lines of a file, into a pool and out of it.

use super::events::weight;
use super::words::NameText;
use super::{bad, name, nowhere, strange};
use crate::api::Shared;
use crate::problem::Problem;
use crate::request::{At, Flag, Parameters};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use model::{
    NumberStanding, NumberState, PoolAnswer, PoolName, PoolNumber, PoolOperation, PoolOutcome, PoolRefusal,
    PoolRequest,
};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use utoipa::{IntoParams, ToSchema};

/// Lines that are done in one piece: what else is wanted of the appliance waits some milliseconds for it.
const PIECE: usize = 2_000;
/// Octets of a line, at most.
const LINE: usize = 512;
/// The most lines of an import: what is beyond belongs into a second one.
const LINES: u64 = 10_000_000;
/// Wrong lines that are told singly.
const TOLD: usize = 100;
/// Numbers of an export that are read at a time.
const PAGE: u32 = 5_000;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Lines,
}

impl Format {
    /// By a media type, or a list of them.
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

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    number: PoolNumber,
    up: bool,
    weight: Option<u8>,
}

/// A line of JSON, in and out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    number: String,
    state: Option<String>,
    weight: Option<u8>,
}

/// Reads lines of one file, one after the other.
struct Reader {
    format: Format,
    /// Where number, state and weight stand, once the first line of CSV has been seen.
    columns: Option<[Option<usize>; 3]>,
}

impl Reader {
    fn new(format: Format) -> Self {
        Self { format, columns: None }
    }

    /// What a line says; nothing, if it is empty or the header.
    fn read(&mut self, line: &[u8]) -> Result<Option<Row>, String> {
        let text = std::str::from_utf8(line).map_err(|_| "is no UTF-8".to_owned())?;
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(None);
        }
        match self.format {
            Format::Lines => {
                let line: Line = serde_json::from_str(text).map_err(|error| error.to_string())?;
                row(&line.number, line.state.as_deref().unwrap_or_default(), line.weight).map(Some)
            }
            Format::Csv => self.csv(text),
        }
    }

    fn csv(&mut self, text: &str) -> Result<Option<Row>, String> {
        // No field of ours can have a comma or a quote in it.
        let fields: Vec<&str> = text.split(',').map(|field| field.trim().trim_matches('"').trim()).collect();
        let columns = match self.columns {
            Some(columns) => columns,
            None => {
                let place = |name: &str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
                let named = ["number", "state", "weight"].map(place);
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
            columns.map(|place| place.and_then(|place| fields.get(place)).copied().unwrap_or_default());
        let weight = match weight {
            "" => None,
            text => Some(text.parse().map_err(|_| format!("weight: is {text:?}, and must be 1 to 16"))?),
        };
        row(number, state, weight).map(Some)
    }
}

fn row(number: &str, state: &str, given: Option<u8>) -> Result<Row, String> {
    let number = number.parse().map_err(|error: model::ParsePoolNumberError| error.to_string())?;
    let up = match (state, state.parse()) {
        ("up", _) | (_, Ok(NumberState::IdleUp | NumberState::BusyUp)) => true,
        ("" | "down", _) | (_, Ok(NumberState::IdleDown | NumberState::BusyDown)) => false,
        _ => {
            return Err(format!(
                "state: is {state:?}, and must be up, down, idle+up, idle+down, busy+up or busy+down"
            ));
        }
    };
    Ok(Row { number, up, weight: weight(given)? })
}

/// What became of a file of numbers.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = PoolImport)]
pub(super) struct Imported {
    /// Lines of the file.
    lines: u64,
    /// Numbers that are in the pool now and were not before.
    added: u64,
    /// Numbers that were in it.
    already: u64,
    /// Numbers that were not taken: the appliance has as many as it takes.
    refused: u64,
    /// Lines that could not be understood.
    wrong: u64,
    /// The first hundred of them.
    errors: Vec<Wrong>,
}

/// A line that could not be understood.
#[derive(Serialize, ToSchema)]
#[schema(as = PoolImportError)]
struct Wrong {
    /// Counted from 1.
    line: u64,
    detail: String,
}

/// An import on its way.
struct Import {
    appliance: Shared,
    pool: PoolName,
    reader: Reader,
    /// All numbers are to be up.
    up: bool,
    operations: Vec<PoolOperation>,
    rows: usize,
    told: Imported,
}

impl Import {
    async fn line(&mut self, line: &[u8], whole: bool) -> Result<(), Problem> {
        self.told.lines += 1;
        if self.told.lines > LINES {
            self.flush().await?;
            let what = format!(
                "an import has at most {LINES} lines; the first {LINES} were done, import the rest by itself"
            );
            return Err(bad(what));
        }
        let read = match whole {
            true => self.reader.read(line),
            false => Err(format!("is longer than {LINE} octets")),
        };
        match read {
            Ok(None) => {}
            Ok(Some(row)) => {
                self.operations.push(PoolOperation::Add { number: row.number, weight: row.weight });
                if row.up || self.up {
                    self.operations.push(PoolOperation::Reg { number: row.number });
                }
                self.rows += 1;
                if self.rows >= PIECE {
                    self.flush().await?;
                }
            }
            Err(detail) => {
                self.told.wrong += 1;
                if self.told.errors.len() < TOLD {
                    self.told.errors.push(Wrong { line: self.told.lines, detail });
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
        let filled = self.appliance.fill_pool(self.pool.clone(), operations).await?;
        let full = |outcome: &&PoolOutcome| **outcome == PoolOutcome::Refused(PoolRefusal::Full);
        let refused = filled.outcomes.iter().filter(full).count() as u64;
        let added = filled.grown as u64;
        self.told.added += added;
        self.told.refused += refused;
        self.told.already += rows.saturating_sub(added + refused);
        Ok(())
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Importing {
    /// Bring all of them up.
    #[param(inline)]
    reg: Option<Flag>,
}

/// Adds the numbers of a file of at most 10,000,000 lines.
///
/// CSV with the columns number, state and weight, named in a first line or in that order; or an object of them on each line.
/// Those whose state is up are brought up; a number that is there already stays, but for that and a weight that is named.
/// Lines are done as they come, in pieces.
#[utoipa::path(
    post,
    path = "/v1/pools/{pool}/import",
    params(("pool" = inline(NameText), Path, description = "Its name."), Importing),
    request_body(content((String = "text/csv"), (String = "application/x-ndjson")), description = "The file."),
    responses((status = 200, description = "What became of it.", body = Imported)),
)]
pub(super) async fn import(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(Importing { reg }): Parameters<Importing>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Imported>, Problem> {
    let pool = name(&pool)?;
    let up = reg.unwrap_or_default().0;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::of(kind).ok_or_else(|| {
        bad(format!("Content-Type: is {kind:?}, and must be text/csv or application/x-ndjson"))
    })?;
    let mut import = Import {
        appliance,
        pool,
        reader: Reader::new(format),
        up,
        operations: Vec::new(),
        rows: 0,
        told: Imported::default(),
    };
    let mut pieces = body.into_data_stream();
    // The line that has begun, as far as it is looked at.
    let (mut line, mut whole) = (Vec::with_capacity(LINE), true);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| bad(format!("the body ended too early: {error}")))?;
        let mut parts = piece.split(|octet| *octet == b'\n').peekable();
        while let Some(part) = parts.next() {
            let fits = line.len() + part.len() <= LINE;
            whole &= fits;
            if fits {
                line.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                import.line(&line, whole).await?;
                line.clear();
                whole = true;
            }
        }
    }
    if !line.is_empty() || !whole {
        import.line(&line, whole).await?;
    }
    import.flush().await?;
    let Import { pool, told, .. } = import;
    tracing::info!(%pool, added = told.added, already = told.already, wrong = told.wrong, "numbers imported");
    Ok(Json(told))
}

/// An export on its way.
struct Export {
    appliance: Shared,
    pool: PoolName,
    format: Format,
    /// Read already.
    page: Vec<NumberStanding>,
    next: Option<u32>,
    begun: bool,
}

impl Export {
    async fn read(&mut self, from: u32) -> Result<(), Problem> {
        let request = PoolRequest::Numbers { from, most: PAGE, state: None, prefix: None };
        match self.appliance.ask_pool(self.pool.clone(), request).await? {
            PoolAnswer::Numbers { numbers, next } => {
                (self.page, self.next) = (numbers, next);
                Ok(())
            }
            PoolAnswer::NoPool => Err(nowhere(&self.pool)),
            _ => Err(strange()),
        }
    }

    fn write(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) && self.format == Format::Csv {
            text.push_str("number,state,weight\n");
        }
        for NumberStanding { number, row } in self.page.drain(..) {
            // Nothing of it needs quotes, in either format; and writing into a string cannot fail.
            let _ = match self.format {
                Format::Csv => writeln!(text, "{number},{},{}", row.state, row.weight),
                Format::Lines => {
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
pub(super) struct Exporting {
    /// How lines are written; otherwise as the header Accept says.
    #[param(inline)]
    format: Option<Named>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Named {
    Csv,
    Ndjson,
}

/// All numbers of a pool as a file that can be imported.
#[utoipa::path(
    get,
    path = "/v1/pools/{pool}/export",
    params(("pool" = inline(NameText), Path, description = "Its name."), Exporting),
    responses((
        status = 200,
        description = "The file, as it is read.",
        content((String = "text/csv"), (String = "application/x-ndjson")),
    )),
)]
pub(super) async fn export(
    State(appliance): State<Shared>,
    At(pool): At<String>,
    Parameters(Exporting { format }): Parameters<Exporting>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pool = name(&pool)?;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = match format {
        Some(Named::Csv) => Format::Csv,
        Some(Named::Ndjson) => Format::Lines,
        None => accepted.and_then(Format::of).unwrap_or(Format::Csv),
    };
    let mut export = Export { appliance, pool, format, page: Vec::new(), next: None, begun: false };
    // What can be told as a problem is told before the answer begins.
    export.read(0).await?;
    let pieces = stream::unfold(Some(export), |export| async move {
        let mut export = export?;
        let piece = export.write();
        Some(match export.next.take() {
            None => (Ok(piece), None),
            Some(from) => match export.read(from).await {
                Ok(()) => (Ok(piece), Some(export)),
                Err(problem) => (Err(std::io::Error::other(problem.detail)), None),
            },
        })
    });
    Ok(([(header::CONTENT_TYPE, format.media_type())], Body::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = Result<Option<(String, bool, Option<u8>)>, String>;

    fn read(format: Format, lines: &[&str]) -> Vec<Told> {
        let mut reader = Reader::new(format);
        let told = |row: Row| (row.number.to_string(), row.up, row.weight);
        lines.iter().map(|line| reader.read(line.as_bytes()).map(|row| row.map(told))).collect()
    }

    fn good(number: &str, up: bool, weight: impl Into<Option<u8>>) -> Told {
        Ok(Some((number.to_owned(), up, weight.into())))
    }

    #[test]
    fn csv_with_a_header_without_one_and_with_columns_in_another_order() {
        let plain = read(Format::Csv, &["\u{feff}100\r", "", " 101 ", "102,idle+up", "103,down,16"]);
        let expected = [
            good("100", false, None),
            Ok(None),
            good("101", false, None),
            good("102", true, None),
            good("103", false, 16),
        ];
        assert_eq!(plain, expected);
        let named = read(Format::Csv, &["Weight,owner,\"number\"", "3,x,\"+49\"", ",x,*1#"]);
        assert_eq!(named, [Ok(None), good("+49", false, 3), good("*1#", false, None)]);
        let states = read(Format::Csv, &["number,state,weight", "1,busy+up,1", "2,busy+down,1", "3,up,"]);
        assert_eq!(states[1..], [good("1", true, 1), good("2", false, 1), good("3", true, None)]);
    }

    #[test]
    fn lines_of_json() {
        let lines = [r#"{"number":"1"}"#, r#"{"number":"2","state":"idle+up","weight":4}"#, ""];
        assert_eq!(read(Format::Lines, &lines), [good("1", false, None), good("2", true, 4), Ok(None)]);
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        for (format, line, word) in [
            (Format::Csv, "abc", "cannot be a number"),
            (Format::Csv, "1,asleep", "state"),
            (Format::Csv, "1,up,0", "1 to 16"),
            (Format::Csv, "1,up,x", "1 to 16"),
            (Format::Csv, ",up", "cannot be a number"),
            (Format::Lines, "1", "expected"),
            (Format::Lines, r#"{"number":"1","colour":"red"}"#, "colour"),
            (Format::Lines, r#"{"number":"1","weight":17}"#, "1 to 16"),
        ] {
            let told = read(format, &[line]).remove(0).unwrap_err();
            assert!(told.contains(word), "{line}: {told}");
        }
        assert!(Reader::new(Format::Csv).read(&[0xff]).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn formats_by_their_media_types() {
        assert_eq!(Format::of("text/csv; charset=utf-8"), Some(Format::Csv));
        assert_eq!(Format::of("text/html, application/x-ndjson;q=0.9"), Some(Format::Lines));
        assert_eq!(Format::of("application/json"), None);
    }
}

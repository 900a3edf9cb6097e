//! Lines of CDR files.

use super::fields::{FieldValue, Fields, HEADER_FIELDS, RECORD_FIELDS, TRAILER_FIELDS};
use super::options::{CdrFormat, CdrOptions};
use super::template::Template;
use serde_json::{Map, Value};

/// Writes the lines of a file.
#[derive(Debug)]
pub(crate) enum LineFormat {
    /// The fields of a record.
    Csv(Vec<String>),
    /// The fields of a record.
    JsonLines(Vec<String>),
    Fixed {
        header: Template,
        record: Template,
        trailer: Template,
    },
}

/// The type of a line.
#[derive(Debug, Clone, Copy)]
enum LineType {
    Header,
    Record,
    Trailer,
}

impl LineFormat {
    /// The format for checked options.
    pub(crate) fn new(options: &CdrOptions) -> Self {
        let columns = match options.columns.as_slice() {
            [] => RECORD_FIELDS.iter().map(|&name| name.to_owned()).collect(),
            columns => columns.to_vec(),
        };
        let template = |text: &str, fields| {
            // The configuration was checked, so parsing does not fail.
            Template::parse(text, fields).unwrap_or_else(|_| Template::empty())
        };
        match options.format {
            CdrFormat::Csv => Self::Csv(columns),
            CdrFormat::JsonLines => Self::JsonLines(columns),
            CdrFormat::Fixed => Self::Fixed {
                header: template(&options.header, HEADER_FIELDS),
                record: template(&options.record, RECORD_FIELDS),
                trailer: template(&options.trailer, TRAILER_FIELDS),
            },
        }
    }

    /// Appends the first line; for CSV also a line with the names of the columns.
    pub(crate) fn header(&self, out: &mut Vec<u8>, fields: &Fields) {
        self.line(out, LineType::Header, fields);
        if let Self::Csv(columns) = self {
            csv_line(out, "N", columns.iter().map(String::as_str));
        }
    }

    pub(crate) fn record(&self, out: &mut Vec<u8>, fields: &Fields) {
        self.line(out, LineType::Record, fields);
    }

    pub(crate) fn trailer(&self, out: &mut Vec<u8>, fields: &Fields) {
        self.line(out, LineType::Trailer, fields);
    }

    fn line(&self, out: &mut Vec<u8>, line: LineType, fields: &Fields) {
        match (self, line) {
            (Self::Csv(columns), LineType::Record) => {
                let values: Vec<_> = columns.iter().map(|name| text_of(fields, name)).collect();
                csv_line(out, "R", values.iter().map(|value| &**value));
            }
            (Self::Csv(_), _) => {
                let name = if matches!(line, LineType::Header) { "H" } else { "T" };
                let values: Vec<_> = fields.0.iter().map(|(_, value)| value.text()).collect();
                csv_line(out, name, values.iter().map(|value| &**value));
            }
            (Self::JsonLines(columns), LineType::Record) => {
                let selected = columns.iter().filter_map(|name| Some((name.as_str(), fields.get(name)?)));
                json_line(out, "record", selected);
            }
            (Self::JsonLines(_), _) => {
                let name = if matches!(line, LineType::Header) { "header" } else { "trailer" };
                json_line(out, name, fields.0.iter().map(|(name, value)| (*name, value)));
            }
            (Self::Fixed { header, .. }, LineType::Header) => header.write(out, fields),
            (Self::Fixed { record, .. }, LineType::Record) => record.write(out, fields),
            (Self::Fixed { trailer, .. }, LineType::Trailer) => trailer.write(out, fields),
        }
    }
}

fn text_of<'a>(fields: &'a Fields, name: &str) -> std::borrow::Cow<'a, str> {
    fields.get(name).map(FieldValue::text).unwrap_or_default()
}

fn csv_line<'a>(out: &mut Vec<u8>, line: &'a str, values: impl Iterator<Item = &'a str>) {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(&mut *out);
    // Writing into memory does not fail.
    if let Err(error) = writer.write_record(std::iter::once(line).chain(values)) {
        tracing::error!(%error, "formatting a line of a CDR file failed");
    }
}

fn json_line<'a>(out: &mut Vec<u8>, line: &str, values: impl Iterator<Item = (&'a str, &'a FieldValue)>) {
    let mut object = Map::new();
    object.insert("type".to_owned(), line.into());
    for (name, value) in values {
        let value = match value {
            FieldValue::Text(text) if text.is_empty() => continue,
            FieldValue::Text(text) => Value::from(text.as_ref()),
            FieldValue::Number(number) => Value::from(*number),
        };
        object.insert(name.to_owned(), value);
    }
    out.extend_from_slice(Value::Object(object).to_string().as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use configuration::Keys;

    fn lines(options: &CdrOptions) -> String {
        let format = LineFormat::new(options);
        let mut out = Vec::new();
        let number = FieldValue::Number;
        let text = |text: &'static str| FieldValue::Text(text.into());
        format.header(&mut out, &Fields(vec![("name", text("billing")), ("file", number(7))]));
        let record =
            vec![("message", text("1000000042")), ("account", text("a \"b\", c")), ("captured", number(5))];
        format.record(&mut out, &Fields(record));
        format.trailer(&mut out, &Fields(vec![("file", number(7)), ("records", number(1))]));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn files_have_a_header_and_a_trailer_in_each_format() {
        let columns = ["message", "account", "captured"].map(str::to_owned).to_vec();
        let csv = CdrOptions { columns: columns.clone(), ..CdrOptions::defaults() };
        assert_eq!(
            lines(&csv),
            "H,billing,7\r\nN,message,account,captured\r\nR,1000000042,\"a \"\"b\"\", c\",5\r\nT,7,1\r\n"
        );
        let json = CdrOptions { format: CdrFormat::JsonLines, ..csv };
        assert_eq!(
            lines(&json),
            concat!(
                r#"{"file":7,"name":"billing","type":"header"}"#,
                "\n",
                r#"{"account":"a \"b\", c","captured":5,"message":"1000000042","type":"record"}"#,
                "\n",
                r#"{"file":7,"records":1,"type":"trailer"}"#,
                "\n"
            )
        );
        let fixed = CdrOptions {
            format: CdrFormat::Fixed,
            header: "H{file:0>4}".to_owned(),
            record: "R{message:0>12}{captured:>6}".to_owned(),
            trailer: "T{records:0>6}".to_owned(),
            ..CdrOptions::defaults()
        };
        assert_eq!(lines(&fixed), "H0007\nR001000000042     5\nT000001\n");
    }
}

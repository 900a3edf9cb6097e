//! Line templates with columns of fixed width.

use super::fields::{FieldValue, Fields};

/// Maximum width of a column.
const MAX_COLUMN_WIDTH: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Column { field: String, fill: char, is_right: bool, width: usize },
}

/// A line template: `{FIELD:>8}`, `{FIELD:<20}`, `{FIELD:0>12}`; `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

impl Template {
    /// A template of an empty line.
    pub(crate) const fn empty() -> Self {
        Self(Vec::new())
    }

    /// Parses a template; `known` are the permitted fields.
    ///
    /// # Errors
    /// A description of the fault, for the author of the configuration.
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Self, String> {
        if text.contains(['\n', '\r']) {
            return Err("must be one line".to_owned());
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = brace.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = brace.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(after) = brace.strip_prefix('{') {
                let (column, after) = after.split_once('}').ok_or("has a column without a closing brace")?;
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(column_of(column, known)?);
                rest = after;
            } else {
                return Err("has a closing brace without a column; write }} for a brace".to_owned());
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self(parts))
    }

    /// Appends the line with its line end. A text that is too long is cut. A number that is too long is replaced by
    /// asterisks, since a cut number would be a different one.
    pub(crate) fn write(&self, out: &mut Vec<u8>, fields: &Fields) {
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Column { field, fill, is_right, width } => {
                    let value = fields.get(field);
                    let text = value.map(FieldValue::text).unwrap_or_default();
                    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                    let count = text.chars().count();
                    let is_number = matches!(value, Some(FieldValue::Number(_)));
                    let shown: String = match count > *width {
                        true if is_number => "*".repeat(*width),
                        true => text.chars().take(*width).collect(),
                        false => text,
                    };
                    let padding: String = std::iter::repeat_n(*fill, width.saturating_sub(count)).collect();
                    let (first, second) = if *is_right { (padding, shown) } else { (shown, padding) };
                    out.extend_from_slice(first.as_bytes());
                    out.extend_from_slice(second.as_bytes());
                }
            }
        }
        out.push(b'\n');
    }
}

fn column_of(text: &str, known: &[&str]) -> Result<Part, String> {
    let form = || format!("has {{{text}}}; a column is {{FIELD:>8}}, {{FIELD:<8}} or {{FIELD:0>8}}");
    let (field, layout) = text.split_once(':').ok_or_else(form)?;
    if !known.contains(&field) {
        return Err(format!("has {field:?}, which is not a field; known are: {}", known.join(", ")));
    }
    let mut characters = layout.chars();
    let first = characters.next().ok_or_else(form)?;
    let (fill, align) = match first {
        '<' | '>' if characters.clone().next().is_none_or(|c| c.is_ascii_digit()) => (' ', first),
        fill => (fill, characters.next().ok_or_else(form)?),
    };
    if !matches!(align, '<' | '>') || fill.is_control() {
        return Err(form());
    }
    let width: usize = characters.as_str().parse().map_err(|_| form())?;
    if width == 0 || width > MAX_COLUMN_WIDTH {
        return Err(format!("has {{{text}}}; a column has 1 to {MAX_COLUMN_WIDTH} characters"));
    }
    Ok(Part::Column { field: field.to_owned(), fill, is_right: align == '>', width })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KNOWN: &[&str] = &["account", "captured"];

    fn line(template: &str, account: &str, captured: u64) -> String {
        let fields = Fields(vec![
            ("account", FieldValue::Text(account.to_owned().into())),
            ("captured", FieldValue::Number(captured)),
        ]);
        let mut out = Vec::new();
        Template::parse(template, KNOWN).unwrap().write(&mut out, &fields);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_filled_cut_and_aligned() {
        assert_eq!(line("R{account:<6}{captured:0>8}|{{", "shop", 1250), "Rshop  00001250|{\n");
        assert_eq!(line("{account:>6};{captured:.<5}", "a-long-name", 7), "a-long;7....\n");
        // A number is never cut.
        assert_eq!(line("{captured:>3}", "", 1250), "***\n");
        assert_eq!(line("{account:<4}", "a\nb\u{fc}", 0), "a b\u{fc}\n");
    }

    #[test]
    fn template_errors_are_described() {
        for (template, text) in [
            ("{account}", "a column is"),
            ("{account:^4}", "a column is"),
            ("{account:>}", "a column is"),
            ("{account:>0}", "1 to 1000"),
            ("{account:>4", "without a closing brace"),
            ("a}", "without a column"),
            ("{nothing:>4}", "known are: account, captured"),
            ("a\nb", "one line"),
        ] {
            let error = Template::parse(template, KNOWN).unwrap_err();
            assert!(error.contains(text), "{template}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_template_or_an_error(text in "[{}:<>0-9a-z \u{e9}]{0,40}") {
            let _ = Template::parse(&text, KNOWN);
        }

        #[test]
        fn a_line_has_the_width_of_its_columns(account in any::<String>(), captured in any::<u64>(), width in 1usize..40) {
            let line = line(&format!("{{account:<{width}}}{{captured:0>{width}}}"), &account, captured);
            prop_assert_eq!(line.chars().count(), 2 * width + 1);
        }
    }
}

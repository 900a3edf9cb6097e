//! Shows problems at their lines of a text.

use maud::{Markup, html};

/// The line number in an error message: `line 3` or `line: 3`.
pub(crate) fn line_in_message(message: &str) -> Option<usize> {
    let lower = message.to_ascii_lowercase();
    lower.match_indices("line").find_map(|(at, _)| {
        let after = lower.get(at + 4..)?.trim_start_matches([' ', ':', '=']);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after.get(..end)?.parse().ok().filter(|line| *line > 0)
    })
}

/// The lines around the problems of a text, numbered, each with its problems below it.
pub(crate) fn excerpt(text: &str, problems_by_line: &[(usize, String)]) -> Markup {
    let lines: Vec<&str> = text.lines().collect();
    let is_near = |line: usize| problems_by_line.iter().any(|(at, _)| line.abs_diff(*at) <= 2);
    let shown: Vec<usize> =
        (1..=lines.len()).filter(|line| is_near(*line)).take(crate::table::MAX_ROWS).collect();
    html! {
        @if !shown.is_empty() {
            div.excerpt tabindex="0" role="group" aria-label="Problems in the text" {
                ol {
                    @for (index, line) in shown.iter().enumerate() {
                        @if index > 0 && shown[index - 1] + 1 != *line { li.gap aria-hidden="true" { "⋯" } }
                        @let line_problems: Vec<_> = problems_by_line.iter().filter(|(at, _)| at == line).collect();
                        li.invalid[!line_problems.is_empty()] id=(format!("line-{line}")) {
                            span.number { (line) }
                            code { (lines[line - 1]) }
                            @for (_, what) in line_problems { strong.problem { (what) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_in_parser_errors() {
        assert_eq!(line_in_message("TOML parse error at line 12, column 3"), Some(12));
        assert_eq!(line_in_message("the outline is wrong; Line: 4"), Some(4));
        assert_eq!(line_in_message("no place is known"), None);
    }

    #[test]
    fn an_excerpt_is_escaped_and_marks_its_line() {
        let html_text = excerpt("a\nb\n<b>\nd\ne\nf", &[(3, "no <b> here".to_owned())]).into_string();
        assert!(html_text.contains("&lt;b&gt;") && !html_text.contains("<b>"), "{html_text}");
        assert!(html_text.contains("id=\"line-1\"") && !html_text.contains("id=\"line-6\""), "{html_text}");
    }
}

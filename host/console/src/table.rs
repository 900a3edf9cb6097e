//! Tables and pagination. On narrow screens, tables become lists of cards.

use crate::api_caller::with_query;
use maud::{Markup, html};

/// The maximum number of rows of a table; further rows are on the next page.
pub(crate) const MAX_ROWS: usize = 200;

/// A column of a table, with its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    Text(&'a str),
    /// Numbers, aligned at the right.
    Number(&'a str),
}

impl<'a> Column<'a> {
    fn head(self) -> &'a str {
        match self {
            Self::Text(head) | Self::Number(head) => head,
        }
    }

    fn class(self) -> Option<&'static str> {
        match self {
            Self::Text(_) => None,
            Self::Number(_) => Some("number"),
        }
    }
}

/// A table of texts with a caption, headings and rows; see [`numeric_table`].
pub(crate) fn table(caption: &str, heads: &[&str], rows: &[Vec<Markup>], empty: &Markup) -> Markup {
    let columns: Vec<Column<'_>> = heads.iter().map(|head| Column::Text(head)).collect();
    numeric_table(caption, &columns, rows, empty)
}

/// A table with a caption, columns and rows; the first cell of a row is its heading. Without rows, `empty` is shown.
pub(crate) fn numeric_table(
    caption: &str,
    columns: &[Column<'_>],
    rows: &[Vec<Markup>],
    empty: &Markup,
) -> Markup {
    if rows.is_empty() {
        return html! { div.empty { (empty) } };
    }
    html! {
        table role="table" {
            caption.visually-hidden { (caption) }
            thead role="rowgroup" { tr role="row" { @for column in columns { th scope="col" role="columnheader" class=[column.class()] { (column.head()) } } } }
            tbody role="rowgroup" {
                @for row in rows.iter().take(MAX_ROWS) {
                    tr role="row" {
                        @for (index, cell) in row.iter().enumerate() {
                            @let column = columns.get(index).copied().unwrap_or(Column::Text(""));
                            @let head = column.head();
                            @if index == 0 {
                                th scope="row" role="rowheader" class=[column.class()] data-label=(head) { (cell) }
                            } @else {
                                td role="cell" class=[column.class()] data-label=(head) { span.cell { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Names and values as a description list.
pub(crate) fn detail_list(pairs: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, what) in pairs { div { dt { (name) } dd { (what) } } } } }
}

/// A link to the next page.
pub(crate) fn next_page_link(path: &str, parameters: &[(&str, &str)]) -> Markup {
    html! { p.more { a.button href=(with_query(path, parameters)) { "Next page" } } }
}

/// A page of a list whose length is known.
pub(crate) struct Pagination {
    pub(crate) from: usize,
    pub(crate) upto: usize,
    all: usize,
    page: usize,
}

impl Pagination {
    /// The page with this number, from 1.
    pub(crate) fn new(all: usize, page: &str) -> Self {
        let last = all.div_ceil(MAX_ROWS).max(1);
        let page = page.parse().unwrap_or(1_usize).clamp(1, last);
        let from = (page - 1) * MAX_ROWS;
        Self { from, upto: (from + MAX_ROWS).min(all), all, page }
    }

    /// The position in the list, with links to the pages before and after.
    pub(crate) fn links(&self, path: &str, parameters: &[(&str, &str)]) -> Markup {
        if self.all <= MAX_ROWS {
            return html! {};
        }
        let to = |page: usize| {
            let page = page.to_string();
            let mut all = parameters.to_vec();
            all.push(("page", &page));
            with_query(path, &all)
        };
        html! {
            nav.pages aria-label="Pages" {
                @if self.page > 1 { a.button rel="prev" href=(to(self.page - 1)) { "Previous" } }
                span { (self.from + 1) " to " (self.upto) " of " (crate::format::count(self.all as u64)) }
                @if self.upto < self.all { a.button rel="next" href=(to(self.page + 1)) { "Next" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_within_the_list_and_the_row_limit() {
        for (all, page, from, upto) in [
            (0, "1", 0, 0),
            (200, "1", 0, 200),
            (201, "2", 200, 201),
            (201, "9", 200, 201),
            (5, "x", 0, 5),
            (5, "0", 0, 5),
        ] {
            let part = Pagination::new(all, page);
            assert_eq!((part.from, part.upto), (from, upto), "{all} {page}");
        }
        let rows = vec![vec![html! { "a" }]; 500];
        let html_text = table("", &["x"], &rows, &html! {}).into_string();
        assert_eq!(html_text.matches("rowheader").count(), MAX_ROWS);
    }
}

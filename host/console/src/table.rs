//! Tables, which become lists of cards on narrow screens.

use crate::ask::with_query;
use maud::{Markup, html};

/// Rows of one table at most. What is more is on the next page.
pub(crate) const MOST: usize = 200;

/// A table: what it is of, its heads, and its rows; the first cell of a row names it. Without rows, `empty` stands there.
pub(crate) fn table(caption: &str, heads: &[&str], rows: &[Vec<Markup>], empty: &Markup) -> Markup {
    if rows.is_empty() {
        return html! { div.empty { (empty) } };
    }
    html! {
        table role="table" {
            caption.visually-hidden { (caption) }
            thead role="rowgroup" { tr role="row" { @for head in heads { th scope="col" role="columnheader" { (head) } } } }
            tbody role="rowgroup" {
                @for row in rows.iter().take(MOST) {
                    tr role="row" {
                        @for (place, cell) in row.iter().enumerate() {
                            @let head = heads.get(place).copied().unwrap_or_default();
                            @if place == 0 {
                                th scope="row" role="rowheader" data-label=(head) { (cell) }
                            } @else {
                                td role="cell" data-label=(head) { span.cell { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Pairs of a name and what it is.
pub(crate) fn facts(pairs: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, what) in pairs { div { dt { (name) } dd { (what) } } } } }
}

/// A link to what follows.
pub(crate) fn more(path: &str, parameters: &[(&str, &str)]) -> Markup {
    html! { p.more { a.button href=(with_query(path, parameters)) { "Next page" } } }
}

/// A part of many things that are all known: which of them, and links to the pages beside it.
pub(crate) struct Part {
    pub(crate) from: usize,
    pub(crate) upto: usize,
    all: usize,
    page: usize,
}

impl Part {
    /// The page of this number, from 1.
    pub(crate) fn new(all: usize, page: &str) -> Self {
        let last = all.div_ceil(MOST).max(1);
        let page = page.parse().unwrap_or(1_usize).clamp(1, last);
        let from = (page - 1) * MOST;
        Self { from, upto: (from + MOST).min(all), all, page }
    }

    /// Which part this is, with the ways to the others.
    pub(crate) fn links(&self, path: &str, parameters: &[(&str, &str)]) -> Markup {
        if self.all <= MOST {
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
                span { (self.from + 1) " to " (self.upto) " of " (crate::words::count(self.all as u64)) }
                @if self.upto < self.all { a.button rel="next" href=(to(self.page + 1)) { "Next" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_has_more_rows_than_it_should_and_none_is_beyond_the_end() {
        for (all, page, from, upto) in [
            (0, "1", 0, 0),
            (200, "1", 0, 200),
            (201, "2", 200, 201),
            (201, "9", 200, 201),
            (5, "x", 0, 5),
            (5, "0", 0, 5),
        ] {
            let part = Part::new(all, page);
            assert_eq!((part.from, part.upto), (from, upto), "{all} {page}");
        }
        let rows = vec![vec![html! { "a" }]; 500];
        let drawn = table("", &["x"], &rows, &html! {}).into_string();
        assert_eq!(drawn.matches("rowheader").count(), MOST);
    }
}

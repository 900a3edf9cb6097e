//! Filters of lists: a text with suggestions, and a choice with the number of entries of each value.

use crate::form::Form;
use crate::format::count;
use maud::{Markup, html};

/// The maximum number of names that a field suggests.
const MAX_SUGGESTIONS: usize = 50;

/// Suggestions for the fields that name this list: the first names.
pub(crate) fn suggestions<'a>(id: &str, names: impl Iterator<Item = &'a str>) -> Markup {
    html! { datalist id=(id) { @for name in names.take(MAX_SUGGESTIONS) { option value=(name); } } }
}

/// A value of the choice: its name in the address, its label, and the number of entries that have it.
pub(crate) struct FilterState {
    pub(crate) value: &'static str,
    pub(crate) label: &'static str,
    pub(crate) count: usize,
}

/// The filter of a list, by the parameters `q` and `state`.
pub(crate) struct ListFilter<'a> {
    query: &'a Form,
    text: String,
}

impl<'a> ListFilter<'a> {
    pub(crate) fn new(query: &'a Form) -> Self {
        Self { query, text: query.text("q").to_lowercase() }
    }

    /// Whether a text of an entry contains the text of the filter.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.text.is_empty() || text.to_lowercase().contains(&self.text)
    }

    /// The chosen state; empty for any.
    pub(crate) fn state(&self) -> &'a str {
        self.query.text("state")
    }

    /// Whether the filter excludes any entries.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.text.is_empty() || !self.state().is_empty()
    }

    /// The parameters, for links that keep them.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, &'a str)> {
        let all = [("q", self.query.text("q")), ("state", self.state())];
        all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    /// The form. `all` is the number of entries that match the text.
    pub(crate) fn form<'n>(
        &self,
        (path, title, label): (&str, &str, &str),
        names: impl Iterator<Item = &'n str>,
        all: usize,
        states: &[FilterState],
    ) -> Markup {
        let option = |value: &str, label: &str, entries: usize| {
            html! { option value=(value) selected[self.state() == value] { (label) " (" (count(entries as u64)) ")" } }
        };
        html! {
            form.card.search method="get" action=(path) role="search" aria-label=(title) {
                p { label for="q" { (label) } input #q name="q" type="search" value=(self.query.text("q")) list="names" autocomplete="off"; }
                (suggestions("names", names))
                p {
                    label for="state" { "State" }
                    select #state name="state" {
                        (option("", "any", all))
                        @for state in states { (option(state.value, state.label, state.count)) }
                    }
                }
                p.actions { button type="submit" { "Filter" } @if self.is_narrow() { a.button.quiet href=(path) { "Clear" } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_its_values_and_counts_those_of_others() {
        let form = Form::of(vec![("q".to_owned(), "Nor".to_owned()), ("state".to_owned(), "up".to_owned())]);
        let filter = ListFilter::new(&form);
        assert!(filter.matches("the NORTH") && !filter.matches("south") && filter.is_narrow());
        assert_eq!(filter.parameters(), [("q", "Nor"), ("state", "up")]);
        let states = [
            FilterState { value: "up", label: "a link is up", count: 1_200 },
            FilterState { value: "down", label: "no link is up", count: 0 },
        ];
        let names = ["north", "<b>"];
        let html = filter.form(("/peers", "Peers", "Name"), names.into_iter(), 1_200, &states).into_string();
        assert!(
            html.contains("<option value=\"up\" selected>a link is up (1\u{202f}200)</option>"),
            "{html}"
        );
        assert!(html.contains("<option value=\"down\">no link is up (0)</option>"), "{html}");
        assert!(html.contains("list=\"names\"") && html.contains("&lt;b&gt;"), "{html}");
        assert!(html.contains("value=\"Nor\""), "{html}");
    }
}

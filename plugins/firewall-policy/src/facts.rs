//! Details of the current message; each is fetched once, when a rule needs it.

use crate::Host;
use crate::fold::fold;
use crate::links::Domain;
use crate::words::{WordMatch, WordSearch, words_of};
use std::cell::OnceCell;

/// Maximum number of different words of a text that are looked up in a table.
const MAX_LOOK_UPS: usize = 200;

/// The current message.
pub(crate) struct Facts<'a, H> {
    pub(crate) host: &'a H,
    search: &'a WordSearch,
    text: OnceCell<Option<String>>,
    folded: OnceCell<String>,
    words: OnceCell<Vec<WordMatch>>,
    links: OnceCell<Vec<Link>>,
}

/// A link in the text.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) url: String,
    pub(crate) domain: Domain,
}

impl<'a, H: Host> Facts<'a, H> {
    pub(crate) fn new(host: &'a H, search: &'a WordSearch) -> Self {
        Self {
            host,
            search,
            text: OnceCell::new(),
            folded: OnceCell::new(),
            words: OnceCell::new(),
            links: OnceCell::new(),
        }
    }

    /// `None` for 8-bit data.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.get_or_init(|| self.host.text()).as_deref()
    }

    pub(crate) fn folded(&self) -> &str {
        self.folded.get_or_init(|| self.text().map(fold).unwrap_or_default())
    }

    /// The words of all rules in the text.
    pub(crate) fn words(&self) -> &[WordMatch] {
        self.words.get_or_init(|| self.search.find(self.folded()))
    }

    /// The words of the text that are in a table.
    pub(crate) fn words_in_table(&self, table: usize) -> impl Iterator<Item = &str> {
        let words = words_of(self.folded(), MAX_LOOK_UPS);
        words.into_iter().filter(move |word| self.host.look_up(table, word).is_some())
    }

    pub(crate) fn links(&self) -> &[Link] {
        self.links.get_or_init(|| {
            let urls = self.host.urls().into_iter();
            urls.filter_map(|url| Domain::of(&url).map(|domain| Link { url, domain })).collect()
        })
    }
}

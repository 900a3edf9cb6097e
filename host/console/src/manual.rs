//! The manual in the binary, rendered as HTML.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A page: its path below `docs`, without `.md`, and its text.
pub(crate) type ManualPage = (&'static str, &'static str);

macro_rules! manual_pages {
    ($($path:literal,)*) => {
        &[$(($path, include_str!(concat!("../../../docs/", $path, ".md"))),)*]
    };
}

/// The pages, sorted, without the decision records.
const PAGES: &[ManualPage] = manual_pages![
    "README",
    "glossary",
    "guide/README",
    "guide/accounts-and-binds",
    "guide/appliance-image",
    "guide/archive",
    "guide/backup-and-upgrade",
    "guide/billing",
    "guide/cdr",
    "guide/cluster",
    "guide/cmpp-and-smgp",
    "guide/command-line",
    "guide/configuration",
    "guide/dlrs-and-retries",
    "guide/events",
    "guide/firewall",
    "guide/gsm",
    "guide/http-and-webhooks",
    "guide/http-peers",
    "guide/install",
    "guide/monitoring",
    "guide/moving-from-kannel-and-jasmin",
    "guide/number-pools",
    "guide/number-portability",
    "guide/operation",
    "guide/plugin-sources",
    "guide/plugins",
    "guide/privacy",
    "guide/queues",
    "guide/redis-clients",
    "guide/sgip",
    "guide/smpp",
    "guide/subscribers-command-line",
    "guide/tenants",
    "guide/tls-and-users",
    "internals/cluster-faults",
    "internals/invariants",
    "internals/journal",
    "internals/life-of-a-message",
    "internals/overview",
    "internals/plugin-runtime",
    "internals/pools-journal",
    "internals/record-formats",
    "internals/testing",
    "plugin-author/README",
    "plugin-author/cases",
    "plugin-author/details",
    "plugin-author/faults",
    "plugin-author/front-ends",
    "plugin-author/languages",
    "plugin-author/lookups",
    "plugin-author/peers",
    "plugin-author/policy-schema",
    "plugin-author/pool-numbers",
    "plugin-author/profiling",
    "plugin-author/quality",
    "plugin-author/quotas",
    "plugin-author/rules",
    "plugin-author/screens",
    "plugin-author/ten-minutes",
    "reference/business-api",
    "reference/cli",
    "reference/configuration",
    "reference/configuration-changes",
    "reference/http-api",
    "reference/metrics",
    "reference/status-map",
    "reference/wit",
    "tutorial/console",
    "tutorial/first-message",
    "tutorial/first-plugin",
];

/// The table of contents: headings, and below them a list of links.
const SUMMARY: &str = include_str!("../../../docs/SUMMARY.md");

/// The page at a path below `docs`, without `.md`.
pub(crate) fn find(path: &str) -> Option<&'static ManualPage> {
    PAGES.iter().find(|(known, _)| *known == path)
}

/// The title of a page: its first heading.
pub(crate) fn title(text: &'static str) -> &'static str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Help")
}

/// The path in the console for a link of a page; `None` if the link leads out of the manual.
fn console_path(page: &str, target: &str) -> Option<String> {
    let (path, anchor) = match target.find('#') {
        Some(start) => target.split_at(start),
        None => (target, ""),
    };
    if path.is_empty() {
        return Some(anchor.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.strip_suffix(".md")?.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    match path.as_str() {
        "SUMMARY" => Some("/help".to_owned()),
        path => find(path).map(|_| format!("/help/{path}{anchor}")),
    }
}

/// The table of contents: sections with their titles, and the titles and paths of their pages.
pub(crate) fn contents() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let mut sections: Vec<(&str, Vec<(&str, String)>)> = Vec::new();
    for line in SUMMARY.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            sections.push((title, Vec::new()));
        }
        let link = line.strip_prefix("- [").and_then(|link| link.strip_suffix(')')?.split_once("]("));
        if let (Some((title, target)), Some((_, pages))) = (link, sections.last_mut())
            && let Some(path) = console_path("SUMMARY", target)
        {
            pages.push((title, path));
        }
    }
    sections.retain(|(_, pages)| !pages.is_empty());
    sections
}

/// The anchor of a heading by GitHub's rule, which the links in the manual follow.
pub(crate) fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A heading of the manual.
#[derive(Debug)]
pub(crate) struct ManualHeading {
    /// The heading, without markup.
    pub(crate) text: String,
    /// The title of its page.
    pub(crate) page: &'static str,
    /// The path in the console.
    pub(crate) path: String,
}

static HEADINGS: LazyLock<Vec<ManualHeading>> = LazyLock::new(|| {
    let pages = PAGES.iter().filter(|(path, _)| !path.starts_with("reference/"));
    pages.flat_map(headings_of).collect()
});

/// All headings of the manual, except for the reference.
pub(crate) fn headings() -> &'static [ManualHeading] {
    &HEADINGS
}

/// The headings of a page. Lines in code blocks may begin with a number sign as well.
fn headings_of(page: &ManualPage) -> Vec<ManualHeading> {
    let (path, text) = *page;
    let mut in_code = false;
    let mut headings = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let heading = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#'));
        if let (false, Some(heading)) = (in_code, heading.and_then(|heading| heading.strip_prefix(' '))) {
            let is_title = headings.is_empty();
            let anchor = if is_title { String::new() } else { format!("#{}", slug(heading)) };
            headings.push(ManualHeading {
                text: heading.replace('`', ""),
                page: title(text),
                path: format!("/help/{path}{anchor}"),
            });
        }
    }
    headings
}

/// Gives each heading its anchor. A repeated heading gets a number.
fn add_anchors(events: &mut [Event<'_>]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let is_heading = |event: &Event<'_>| matches!(event, Event::Start(Tag::Heading { .. }));
    let headings: Vec<usize> = (0..events.len()).filter(|index| is_heading(&events[*index])).collect();
    for start in headings {
        let inside =
            events[start..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let words = inside.filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(&**text),
            _ => None,
        });
        let slug = slug(&words.collect::<String>());
        let count = counts.entry(slug.clone()).or_default();
        let anchor = if *count == 0 { slug } else { format!("{slug}-{count}") };
        *count += 1;
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(anchor.into());
        }
    }
}

/// A page as HTML. Links between pages lead to the console's pages; links out of the manual are text.
pub(crate) fn render((page, text): &ManualPage) -> Markup {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    add_anchors(&mut events);
    let mut in_removed_link = false;
    let mut in_image = false;
    let events = events.into_iter().filter_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => match console_path(page, &dest_url) {
            Some(path) => Some(Event::Start(Tag::Link { link_type, dest_url: path.into(), title, id })),
            None => {
                in_removed_link = true;
                None
            }
        },
        Event::End(TagEnd::Link) if in_removed_link => {
            in_removed_link = false;
            None
        }
        // The pictures show the console, which the reader is using.
        Event::Start(Tag::Image { .. }) => {
            in_image = true;
            None
        }
        Event::End(TagEnd::Image) => {
            in_image = false;
            None
        }
        _ if in_image => None,
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        event => Some(event),
    });
    let mut markup = String::new();
    html::push_html(&mut markup, events);
    PreEscaped(markup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Adds the pages below a folder.
    fn add_pages(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                add_pages(&entry.path(), &format!("{prefix}{name}/"), found);
            } else if let Some(page) = name.strip_suffix(".md") {
                found.push(format!("{prefix}{page}"));
            }
        }
    }

    #[test]
    fn every_page_of_the_manual_is_here() {
        let mut found = Vec::new();
        add_pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"), "", &mut found);
        found.retain(|page| page != "SUMMARY" && !page.starts_with("adr/"));
        found.sort();
        let known: Vec<&str> = PAGES.iter().map(|(path, _)| *path).collect();
        assert_eq!(known, found);
    }

    #[test]
    fn a_page_is_rendered_with_links_into_the_console() {
        let page = (
            "guide/x",
            "# A <b>`page`</b>\n\n[one](queues.md#drain-mode), [two](../../README.md), [three](#a-page), <https://example.org>\n\n\
             ## Twice\n## Twice\n\n| a |\n|---|\n| b |\n\n![not here](x.webp)\n",
        );
        let markup = render(&page).into_string();
        for part in [
            "<h1 id=\"a-page\">A &lt;b&gt;<code>page</code>&lt;/b&gt;</h1>",
            "<a href=\"/help/guide/queues#drain-mode\">one</a>, two, <a href=\"#a-page\">three</a>, https://example.org",
            "<h2 id=\"twice\">",
            "<h2 id=\"twice-1\">",
            "<td>b</td>",
        ] {
            assert!(markup.contains(part), "{part}: {markup}");
        }
        assert!(!markup.contains("not here") && !markup.contains("<img"), "{markup}");
        assert_eq!(console_path("README", "SUMMARY.md"), Some("/help".to_owned()));
        assert_eq!(console_path("README", "../README.md"), None);
    }

    #[test]
    fn the_contents_have_each_page_of_the_guide() {
        let contents = contents();
        let listed: Vec<&String> =
            contents.iter().flat_map(|(_, pages)| pages).map(|(_, path)| path).collect();
        for (path, _) in PAGES.iter().filter(|(path, _)| path.contains('/')) {
            assert!(listed.contains(&&format!("/help/{path}")), "{path}: {listed:?}");
        }
    }
}

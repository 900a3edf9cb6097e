//! Links of the manual and of the project's other pages lead somewhere, and the entry pages stay short.

use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// Pages outside `docs`.
const PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "UPGRADING.md",
    "plugins/README.md",
];

/// Pages with a maximum length in octets.
const MAX_LENGTHS: &[(&str, usize)] = &[("README.md", 6_144), ("ARCHITECTURE.md", 10_240)];

const SUMMARY: &str = "docs/SUMMARY.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// All Markdown pages below `docs`, as paths from the top of the source tree.
fn docs() -> Result<BTreeSet<String>> {
    let (mut pages, mut folders) = (BTreeSet::new(), vec!["docs".to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).with_context(|| folder.clone())? {
            let entry = entry?;
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") {
                pages.insert(path);
            }
        }
    }
    Ok(pages)
}

/// The lines of a page outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// A line without its code spans.
fn without_spans(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The targets of a page's links.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).collect::<Vec<_>>().join("\n");
    let plain = without_spans(&prose);
    let inline = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let mut targets: Vec<String> = inline.map(|(target, _)| target.to_owned()).collect();
    let definitions = plain.lines().filter(|line| line.starts_with('['));
    targets.extend(
        definitions.filter_map(|line| line.split_once("]: ")).map(|(_, target)| target.trim().to_owned()),
    );
    targets
}

/// The anchor that GitHub gives to a heading: lower case, without punctuation, with hyphens for spaces.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text of a heading: of a link, only the words.
fn heading_text(heading: &str) -> String {
    let (mut text, mut rest) = (String::new(), heading);
    while let Some((before, (words, (_, after)))) = rest.split_once('[').and_then(|(before, link)| {
        let (words, target) = link.split_once("](")?;
        Some((before, (words, target.split_once(')')?)))
    }) {
        text.push_str(before);
        text.push_str(words);
        rest = after;
    }
    text + rest
}

/// The anchors of a page. A repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let slug = slug(heading_text(line.trim_start_matches('#')).trim());
        let count = counts.entry(slug.clone()).or_default();
        found.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    found
}

/// The path of a link's target, from the top of the source tree. None: above it.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for component in Path::new(page).parent().unwrap_or(Path::new("")).join(target).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(parts.join("/"))
}

/// The fault of a link on a page; `None` if it works.
fn fault(page: &str, link: &str) -> Result<Option<String>> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
    let Some(target) = target else { return Ok(Some("leads out of the source tree".to_owned())) };
    if !root().join(&target).exists() {
        return Ok(Some(format!("{target} does not exist")));
    }
    let Some(anchor) = anchor else { return Ok(None) };
    if !target.ends_with(".md") {
        return Ok(Some("only a page has anchors".to_owned()));
    }
    let has_anchor = anchors(&read(&target)?).contains(anchor);
    Ok((!has_anchor).then(|| format!("{target} has no heading with the anchor {anchor}")))
}

#[test]
fn every_link_leads_somewhere() -> Result<()> {
    let mut wrong = String::new();
    let mut count = 0;
    for page in docs()?.into_iter().chain(PAGES.iter().map(|page| (*page).to_owned())) {
        for link in links(&read(&page)?) {
            count += 1;
            if let Some(fault) = fault(&page, &link)? {
                writeln!(wrong, "{page}: {link}: {fault}")?;
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    ensure!(count >= 100, "fewer links than there were: {count}");
    Ok(())
}

#[test]
fn entry_pages_stay_short() -> Result<()> {
    for (page, max) in MAX_LENGTHS {
        let length = read(page)?.len();
        ensure!(length <= *max, "{page} has {length} octets; the maximum is {max}. Move text to docs/");
    }
    Ok(())
}

/// The pages that the table of contents lists.
fn listed() -> Result<BTreeSet<String>> {
    Ok(links(&read(SUMMARY)?).iter().filter_map(|link| resolve(SUMMARY, link)).collect())
}

#[test]
fn the_summary_lists_every_page() -> Result<()> {
    let listed = listed()?;
    let missing: Vec<String> =
        docs()?.into_iter().filter(|page| page != SUMMARY && !listed.contains(page)).collect();
    ensure!(missing.is_empty(), "{SUMMARY} does not list {missing:?}");
    Ok(())
}

/// Whether a link of a page below `docs` works in the rendered book: its target must be a listed page, or a file below
/// `docs` that mdBook copies, for example an image.
fn resolves_in_book(page: &str, link: &str, listed: &BTreeSet<String>) -> bool {
    if link.contains("://") || link.starts_with("mailto:") {
        return true;
    }
    let path = link.split_once('#').map_or(link, |(path, _)| path);
    let target = if path.is_empty() { Some(page.to_owned()) } else { resolve(page, path) };
    target.is_some_and(|target| {
        listed.contains(&target)
            || (target.starts_with("docs/") && !target.ends_with(".md") && root().join(&target).is_file())
    })
}

/// The book has nothing from outside `docs`, and only listed pages.
#[test]
fn every_link_of_the_manual_works_in_the_book() -> Result<()> {
    let (listed, mut wrong) = (listed()?, String::new());
    for page in docs()? {
        for link in links(&read(&page)?) {
            if !resolves_in_book(&page, &link, &listed) {
                writeln!(
                    wrong,
                    "{page}: {link}: not in the book; write the path in backticks instead of the link"
                )?;
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}

/// mdBook renders `README.md` as `index.html`, but does not change the links to it.
#[test]
fn the_book_redirects_links_to_readme_pages() -> Result<()> {
    let book = read("docs/book.toml")?;
    for page in listed()?.iter().filter_map(|page| page.strip_prefix("docs")?.strip_suffix("README.md")) {
        let redirect = format!("\"{page}README.html\" = \"index.html\"");
        ensure!(book.contains(&redirect), "docs/book.toml needs the redirect {redirect}");
    }
    Ok(())
}

#[test]
fn links_out_of_the_book_are_found() {
    let listed = BTreeSet::from(["docs/guide/a.md".to_owned(), "docs/guide/b.md".to_owned()]);
    let works = |link: &str| resolves_in_book("docs/guide/a.md", link, &listed);
    for link in ["b.md", "b.md#part", "#part", "https://example.org/x.md", "../book.toml"] {
        assert!(works(link), "{link}");
    }
    for link in ["c.md", "../../README.md", "../../wit", "../guide", "../../../x.md", "none.png"] {
        assert!(!works(link), "{link}");
    }
}

#[test]
fn anchors_follow_githubs_rule() {
    let page = "# `switchyard pool`\n## A number, as the [sender](x.md)!\n## Twice\n## Twice\n```sh\n# no heading\n```\n";
    let expected = ["switchyard-pool", "a-number-as-the-sender", "twice", "twice-1"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into_iter().collect());
    assert_eq!(links("[a](b.md#c) `[x](y)`\n```\n[n](o)\n```\n[d]: e.md\n"), ["b.md#c", "e.md"]);
    assert_eq!(resolve("docs/guide/x.md", "../../wit"), Some("wit".to_owned()));
    assert_eq!(resolve("README.md", "../x"), None);
}

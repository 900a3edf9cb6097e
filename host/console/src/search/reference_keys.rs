//! The configuration keys, read from their reference page in the manual.

use crate::manual;
use std::sync::LazyLock;

/// A configuration key.
#[derive(Debug)]
pub(super) struct ReferenceKey {
    /// The name within its section.
    pub(super) name: &'static str,
    /// Section and name, for example `account.business.push.url`.
    pub(super) path: String,
    /// The meaning.
    pub(super) meaning: &'static str,
    /// The anchor of its section in the reference.
    pub(super) anchor: String,
}

impl ReferenceKey {
    /// The first sentence of the meaning, without markup.
    pub(super) fn summary(&self) -> String {
        let first = self.meaning.split_once(". ").map_or(self.meaning, |(first, _)| first);
        first.replace('`', "")
    }
}

static KEYS: LazyLock<Vec<ReferenceKey>> =
    LazyLock::new(|| manual::find("reference/configuration").map_or_else(Vec::new, |(_, text)| read(text)));

/// All configuration keys.
pub(super) fn configuration_keys() -> &'static [ReferenceKey] {
    &KEYS
}

fn read(text: &'static str) -> Vec<ReferenceKey> {
    let mut keys = Vec::new();
    let (mut section, mut anchor) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) {
            section = heading.chars().filter(|c| !matches!(c, '`' | '[' | ']')).collect();
            anchor = manual::slug(heading);
        } else if let Some(row) = line.strip_prefix("| `") {
            let Some((name, rest)) = row.split_once('`') else { continue };
            // key | type | default | change | meaning |
            let meaning = rest.splitn(5, " | ").nth(4).unwrap_or_default();
            let meaning = meaning.trim().trim_end_matches('|').trim();
            keys.push(ReferenceKey {
                name,
                path: format!("{section}.{name}"),
                meaning,
                anchor: anchor.clone(),
            });
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_section_and_meaning() {
        let url = configuration_keys().iter().find(|key| key.path == "account.business.push.url").unwrap();
        assert_eq!((url.name, url.anchor.as_str()), ("url", "accountbusinesspush"));
        assert!(url.meaning.starts_with("An http or https URL"), "{url:?}");
        assert!(configuration_keys().len() > 100);
        assert!(configuration_keys().iter().all(|key| !key.meaning.is_empty()));
    }
}

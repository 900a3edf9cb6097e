use configuration::Section;
use std::collections::HashMap;

/// Checks that the names of the items of a list are unique.
pub(super) fn check_unique<'a>(sections: &[Section<'_>], names: impl Iterator<Item = &'a str>, kind: &str) {
    let mut known: HashMap<&str, ()> = HashMap::new();
    for (section, name) in sections.iter().zip(names) {
        if !name.is_empty() && known.insert(name, ()).is_some() {
            section.error("name", format!("{name:?} is also the name of another {kind}"));
        }
    }
}

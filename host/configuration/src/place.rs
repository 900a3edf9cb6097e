//! Places in the tree: names of keys one below the other, and which lists are lists of named things.

use serde_json::{Map, Value};

/// Lists whose items have names, as pointers: they are patched and compared by name, and their order means nothing.
pub const NAMED_LISTS: [&str; 7] =
    ["/account", "/gateway", "/gsm", "/listener", "/peer", "/pool", "/redis/account"];

/// A JSON pointer (RFC 6901) of these tokens.
#[must_use]
pub fn pointer<T: AsRef<str>>(tokens: &[T]) -> String {
    let mut pointer = String::new();
    for token in tokens {
        push(&mut pointer, token.as_ref());
    }
    pointer
}

pub(crate) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

/// Whether a list of named things is expected here.
pub(crate) fn is_named_list(path: &[String]) -> bool {
    match path {
        [list] => NAMED_LISTS.iter().any(|known| known.strip_prefix('/') == Some(list)),
        [section, list] => section == "redis" && list == "account",
        _ => false,
    }
}

/// The name of an item of such a list.
pub(crate) fn name_of(item: &Value) -> Option<&str> {
    item.as_object()?.get("name")?.as_str()
}

/// The items of a list by name; `None` where some have none, or one name is there twice. What is not there is an empty list.
pub(crate) fn by_name(list: Option<&Value>) -> Option<Map<String, Value>> {
    let Some(list) = list else { return Some(Map::new()) };
    let mut items = Map::new();
    for item in list.as_array()? {
        if items.insert(name_of(item)?.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_what_rfc_6901_escapes() {
        assert_eq!(pointer::<&str>(&[]), "");
        assert_eq!(pointer(&["peer", "a/b~c", ""]), "/peer/a~1b~0c/");
    }
}

//! Named lists of the document.

use crate::key::{Key, find};
use serde_json::{Map, Value};

/// Whether the list at this path is a named list: its items have unique names, are patched and compared by name, and
/// have no order.
pub(crate) fn is_named_list<T: AsRef<str>>(keys: &[Key], path: &[T]) -> bool {
    find(keys, path).is_some_and(|key| key.named)
}

/// The name of an item of a named list.
pub(crate) fn item_name(item: &Value) -> Option<&str> {
    item.as_object()?.get("name")?.as_str()
}

/// The items of a list by name. Returns `None` if an item has no name or a name occurs twice. A missing list is empty.
pub(crate) fn items_by_name(list: Option<&Value>) -> Option<Map<String, Value>> {
    let Some(list) = list else { return Some(Map::new()) };
    let mut items = Map::new();
    for item in list.as_array()? {
        if items.insert(item_name(item)?.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(items)
}

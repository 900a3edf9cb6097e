//! The configuration as pages need it: read once for each version, since it may be megabytes.

use crate::ask::Refusal;
use crate::visit::Visit;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// The configuration, and what is said of it.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) version: u64,
    /// What `If-Match` wants.
    pub(crate) tag: String,
    /// When, by whom, why, in which mode, and whether it waits for its confirmation.
    pub(crate) about: Value,
    pub(crate) content: Value,
}

/// The version that was read last. It holds no secrets, and whoever sees it has been allowed to by the API at this very
/// visit.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Option<Arc<Document>>>);

impl Documents {
    /// The configuration as it is now.
    pub(crate) async fn read(&self, visit: &Visit) -> Result<Arc<Document>, Refusal> {
        let answer = visit
            .asker
            .ask(axum::http::Method::GET, "/v1/configuration", crate::ask::Sent::default())
            .await?;
        let tag = answer.header("etag").unwrap_or_default().to_owned();
        let mut about: Value = answer.read()?;
        let version = about["version"].as_u64().unwrap_or(0);
        let content = about["document"].take();
        let tag = if tag.is_empty() { format!("\"{version}\"") } else { tag };
        let document = Arc::new(Document { version, tag, about, content });
        *self.0.lock() = Some(document.clone());
        Ok(document)
    }

    /// The same for those who only want what is in it: of this version, and not read anew where it was read before.
    pub(crate) async fn known(&self, visit: &Visit) -> Result<Arc<Document>, Refusal> {
        let newest: Value = visit.get("/v1/configuration/versions?limit=1").await?;
        let newest = &newest["versions"][0];
        let known = self.0.lock().clone();
        match (newest["version"].as_u64(), known) {
            (Some(version), Some(known)) if known.is(version, &newest["at"]) => Ok(known),
            _ => self.read(visit).await,
        }
    }
}

impl Document {
    /// Whether this is a version as it is now. One that waits for its confirmation may have it by now.
    fn is(&self, version: u64, at: &Value) -> bool {
        self.version == version && self.about["at"] == *at && self.about["pending"].is_null()
    }

    /// The named things of a list, by name.
    pub(crate) fn named<'a>(&'a self, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.content[list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (one["name"].as_str().unwrap_or_default(), one))
    }

    /// One of them.
    pub(crate) fn one(&self, list: &str, name: &str) -> Option<&Value> {
        self.named(list).find(|(one, _)| *one == name).map(|(_, one)| one)
    }
}

/// What has to be merged into `before` so that it is `after` (RFC 7396).
pub(crate) fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = serde_json::Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(known) if known == value => {}
            Some(known) => {
                patch.insert(key.clone(), merge_patch(known, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_says_what_is_new_what_is_other_and_what_is_gone() {
        let before = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2], "f": "x" });
        let after = json!({ "a": 1, "b": { "c": 5 }, "e": [2], "g": true });
        let patch = merge_patch(&before, &after);
        assert_eq!(patch, json!({ "b": { "c": 5, "d": null }, "e": [2], "f": null, "g": true }));
        assert_eq!(merge_patch(&before, &before), json!({}));
    }
}

//! A cache of the configuration: each version is read once, because it may be megabytes.

use crate::api_caller::ApiError;
use crate::request_context::RequestContext;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// A version of the configuration, with its metadata.
#[derive(Debug, Default)]
pub(crate) struct ConfigurationDocument {
    pub(crate) version: u64,
    /// The entity tag for `If-Match`.
    pub(crate) tag: String,
    /// Metadata: time, author, reason, mode, and whether the version waits for confirmation.
    pub(crate) about: Value,
    pub(crate) content: Value,
}

/// The version that was read last. It holds no secrets. Each request checks with the API whether the user may read the
/// configuration.
#[derive(Debug, Default)]
pub(crate) struct ConfigurationCache(Mutex<Option<Arc<ConfigurationDocument>>>);

impl ConfigurationCache {
    /// Reads the active configuration.
    pub(crate) async fn read(
        &self,
        context: &RequestContext,
    ) -> Result<Arc<ConfigurationDocument>, ApiError> {
        let answer = context
            .api_caller
            .call(axum::http::Method::GET, "/v1/configuration", crate::api_caller::ApiRequest::default())
            .await?;
        let tag = answer.header("etag").unwrap_or_default().to_owned();
        let mut about: Value = answer.read()?;
        let version = about["version"].as_u64().unwrap_or(0);
        let content = about["document"].take();
        let tag = if tag.is_empty() { format!("\"{version}\"") } else { tag };
        let document = Arc::new(ConfigurationDocument { version, tag, about, content });
        *self.0.lock() = Some(document.clone());
        Ok(document)
    }

    /// The active configuration, from the cache if its version is unchanged.
    pub(crate) async fn cached(
        &self,
        context: &RequestContext,
    ) -> Result<Arc<ConfigurationDocument>, ApiError> {
        let newest: Value = context.get("/v1/configuration/versions?limit=1").await?;
        let newest = &newest["versions"][0];
        let known = self.0.lock().clone();
        match (newest["version"].as_u64(), known) {
            (Some(version), Some(known)) if known.is(version, &newest["at"]) => Ok(known),
            _ => self.read(context).await,
        }
    }
}

impl ConfigurationDocument {
    /// Whether this is the given version. A version that waits for confirmation is never reused, because it may be confirmed by now.
    fn is(&self, version: u64, at: &Value) -> bool {
        self.version == version && self.about["at"] == *at && self.about["pending"].is_null()
    }

    /// The entries of a list, with their names.
    pub(crate) fn named<'a>(&'a self, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.content[list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (one["name"].as_str().unwrap_or_default(), one))
    }

    /// The entry of a list with this name.
    pub(crate) fn one(&self, list: &str, name: &str) -> Option<&Value> {
        self.named(list).find(|(one, _)| *one == name).map(|(_, one)| one)
    }
}

/// The merge patch from `before` to `after` (RFC 7396).
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
    fn a_merge_patch_has_added_changed_and_removed_values() {
        let before = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2], "f": "x" });
        let after = json!({ "a": 1, "b": { "c": 5 }, "e": [2], "g": true });
        let patch = merge_patch(&before, &after);
        assert_eq!(patch, json!({ "b": { "c": 5, "d": null }, "e": [2], "f": null, "g": true }));
        assert_eq!(merge_patch(&before, &before), json!({}));
    }
}

//! A cache of the configuration: each version is read once, because it may be megabytes.

use crate::api_caller::ApiError;
use crate::request_context::RequestContext;
use crate::settings::{Field, fields_of};
use api::{ConfigVersionPageView, ConfigVersionSummaryView, CurrentConfiguration};
use parking_lot::Mutex;
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A version of the configuration.
#[derive(Debug)]
pub(crate) struct ConfigurationDocument(CurrentConfiguration);

impl Deref for ConfigurationDocument {
    type Target = CurrentConfiguration;

    fn deref(&self) -> &CurrentConfiguration {
        &self.0
    }
}

/// The version that was read last, and the schema. The version holds no secrets. Each request checks with the API whether
/// the user may read the configuration.
#[derive(Debug, Default)]
pub(crate) struct ConfigurationCache {
    document: Mutex<Option<Arc<ConfigurationDocument>>>,
    /// The schema; it does not change while the daemon runs.
    schema: OnceCell<Value>,
}

impl ConfigurationCache {
    /// Reads the active configuration.
    pub(crate) async fn read(
        &self,
        context: &RequestContext,
    ) -> Result<Arc<ConfigurationDocument>, ApiError> {
        let document = Arc::new(ConfigurationDocument(context.get("/v1/configuration").await?));
        *self.document.lock() = Some(document.clone());
        Ok(document)
    }

    /// The form fields of the items of a list.
    pub(crate) async fn fields(&self, context: &RequestContext, list: &str) -> Result<Vec<Field>, ApiError> {
        let schema = self.schema.get_or_try_init(|| context.get("/v1/configuration/schema")).await?;
        Ok(fields_of(schema, list))
    }

    /// The active configuration, from the cache if its version is unchanged.
    pub(crate) async fn cached(
        &self,
        context: &RequestContext,
    ) -> Result<Arc<ConfigurationDocument>, ApiError> {
        let newest: ConfigVersionPageView = context.get("/v1/configuration/versions?limit=1").await?;
        let known = self.document.lock().clone();
        match (newest.versions.first(), known) {
            (Some(newest), Some(known)) if known.is(newest) => Ok(known),
            _ => self.read(context).await,
        }
    }
}

impl ConfigurationDocument {
    /// Whether this is the given version. A version that waits for confirmation is never reused, because it may be confirmed by now.
    fn is(&self, newest: &ConfigVersionSummaryView) -> bool {
        self.version == newest.version && self.at == newest.at && self.pending.is_none()
    }

    /// The entity tag for `If-Match`.
    pub(crate) fn tag(&self) -> String {
        format!("\"{}\"", self.version)
    }

    /// The entries of a list, with their names.
    pub(crate) fn named<'a>(&'a self, list: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.document[list]
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

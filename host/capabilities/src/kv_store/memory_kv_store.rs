use super::{KvStore, KvUsage, check_sizes};
use crate::Error;
use parking_lot::Mutex;
use std::collections::HashMap;

/// A key-value store in memory, for tests of plugins.
#[derive(Debug, Default)]
pub struct MemoryKvStore(Mutex<HashMap<String, PluginValues>>);

#[derive(Debug, Default)]
struct PluginValues {
    values: HashMap<String, Vec<u8>>,
    usage: KvUsage,
}

impl KvStore for MemoryKvStore {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.lock().get(plugin).and_then(|plugin| plugin.values.get(key)).cloned())
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        check_sizes(key, value)?;
        let mut plugins = self.0.lock();
        let plugin = plugins.entry(plugin.to_owned()).or_default();
        let after = plugin.usage.after_change(key, plugin.values.get(key).map(Vec::len), Some(value.len()));
        after.check_quota(quota, plugin.usage)?;
        plugin.values.insert(key.to_owned(), value.to_vec());
        plugin.usage = after;
        Ok(())
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        let mut plugins = self.0.lock();
        let Some(plugin) = plugins.get_mut(plugin) else { return Ok(false) };
        let Some(old) = plugin.values.remove(key) else { return Ok(false) };
        plugin.usage = plugin.usage.after_change(key, Some(old.len()), None);
        Ok(true)
    }

    fn usage(&self, plugin: &str) -> Result<KvUsage, Error> {
        Ok(self.0.lock().get(plugin).map(|plugin| plugin.usage).unwrap_or_default())
    }
}

use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::kv::Host;
use crate::host_call_log::{HostCallKind, HostCallLog};
use capabilities::{Error, KvStore, KvUsage, MemoryKvStore};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Maximum total time that one call may wait for the disk before it changes no more values.
const MAX_DISK_WAIT: Duration = Duration::from_millis(250);

/// An overlay for a plugin on trial: reads see the values of the live plugin, writes stay in the overlay.
pub(super) struct KvOverlay {
    base: Arc<dyn KvStore>,
    own: MemoryKvStore,
    /// Keys of the base that were deleted in the overlay.
    deleted: Mutex<HashSet<String>>,
}

impl KvOverlay {
    pub(super) fn new(base: Arc<dyn KvStore>) -> Self {
        Self { base, own: MemoryKvStore::default(), deleted: Mutex::default() }
    }
}

impl KvStore for KvOverlay {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.own.get(plugin, key)? {
            Some(value) => Ok(Some(value)),
            None if self.deleted.lock().contains(key) => Ok(None),
            None => self.base.get(plugin, key),
        }
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        self.own.set(plugin, key, value, quota)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        let was_there = self.get(plugin, key)?.is_some();
        self.own.delete(plugin, key)?;
        if was_there && self.base.get(plugin, key)?.is_some() {
            self.deleted.lock().insert(key.to_owned());
        }
        Ok(was_there)
    }

    fn usage(&self, plugin: &str) -> Result<KvUsage, Error> {
        self.own.usage(plugin)
    }
}

impl InstanceState {
    /// Whether the binding grants any kv storage. Without a grant a plugin has none, even if an earlier version left
    /// values.
    fn has_kv_grant(&self) -> bool {
        self.context.grants.kv > 0
    }

    fn measure_disk_wait<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = self.host_time;
        let result = self.measure_wait(work);
        self.disk_wait += self.host_time - before;
        result
    }

    /// The store of the plugin; in a preview, an overlay that lasts for one call.
    fn kv_store(&mut self) -> Arc<dyn KvStore> {
        let kv = &self.context.kv_store;
        match self.call_log {
            HostCallLog::Preview => {
                self.kv_overlay.get_or_insert_with(|| Arc::new(KvOverlay::new(kv.clone()))).clone()
            }
            _ => kv.clone(),
        }
    }
}

impl Host for InstanceState {
    fn get(&mut self, key: String) -> Option<Vec<u8>> {
        self.count_call(HostInterface::Kv);
        if !self.has_kv_grant() {
            return None;
        }
        // A replay counts the message as inexact, and uses the plugin's current value.
        self.call_log.recall(HostCallKind::Value, &[key.as_bytes()]);
        let store = self.kv_store();
        let plugin = self.context.space.clone();
        match self.measure_disk_wait(|| store.get(&plugin, &key)) {
            Ok(value) => value,
            Err(error) => {
                if self.context.may_log() {
                    tracing::warn!(plugin = &*self.context.plugin, %error, "kv read failed");
                }
                None
            }
        }
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), String> {
        self.count_call(HostInterface::Kv);
        if !self.has_kv_grant() {
            return Err("the binding grants no kv: give it a quota in grants.kv".to_owned());
        }
        if self.disk_wait >= MAX_DISK_WAIT {
            return Err(format!(
                "this call has waited {} ms for the disk: write less in one call",
                MAX_DISK_WAIT.as_millis()
            ));
        }
        if self.peer.is_some() {
            // The value may be a credential that the peer has issued.
            self.call_log.stop_recording();
        }
        let (quota, may_wait) = (self.context.grants.kv, self.may_wait());
        let store = self.kv_store();
        let plugin = self.context.space.clone();
        let set = self.measure_disk_wait(|| match may_wait {
            true => store.set(&plugin, &key, &value, quota),
            false => store.set_soon(&plugin, &key, &value, quota),
        });
        set.map_err(|error| error.to_string())
    }

    fn delete(&mut self, key: String) -> bool {
        self.count_call(HostInterface::Kv);
        if !self.has_kv_grant() || self.disk_wait >= MAX_DISK_WAIT {
            return false;
        }
        let may_wait = self.may_wait();
        let store = self.kv_store();
        let plugin = self.context.space.clone();
        let deleted = self.measure_disk_wait(|| match may_wait {
            true => store.delete(&plugin, &key),
            false => store.delete_soon(&plugin, &key),
        });
        match deleted {
            Ok(was_there) => was_there,
            Err(error) => {
                if self.context.may_log() {
                    tracing::warn!(plugin = &*self.context.plugin, %error, "kv write failed");
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlay_changes_stay_in_the_overlay() {
        let live: Arc<dyn KvStore> = Arc::new(MemoryKvStore::default());
        for key in ["a", "b"] {
            live.set("p", key, b"live", 100).unwrap();
        }
        let overlay = KvOverlay::new(live.clone());
        let value = |key| overlay.get("p", key).unwrap();
        assert_eq!(value("a").as_deref(), Some(&b"live"[..]));
        overlay.set("p", "a", b"own", 100).unwrap();
        assert_eq!(value("a").as_deref(), Some(&b"own"[..]));
        assert!(overlay.set("p", "c", &[0; 100], 100).is_err(), "the quota holds here too");
        assert!(overlay.delete("p", "a").unwrap() && overlay.delete("p", "b").unwrap());
        assert!(!overlay.delete("p", "a").unwrap() && !overlay.delete("p", "never").unwrap());
        assert_eq!((value("a"), value("b")), (None, None));
        overlay.set("p", "b", b"anew", 100).unwrap();
        assert_eq!(value("b").as_deref(), Some(&b"anew"[..]));
        for key in ["a", "b"] {
            assert_eq!(live.get("p", key).unwrap().as_deref(), Some(&b"live"[..]));
        }
    }
}

use super::State;
use crate::bindings::host::switchyard::hooks::kv::Host;
use crate::seen::Seen;
use capabilities::{Error, MemoryValues, Usage, Values};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one call may wait for the disk in all. The deadline of a call counts the plugin's own time and does not see it.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// What a plugin that is only tried out keeps: it sees what the live one keeps, and what it changes it changes for itself.
pub(super) struct Aside {
    below: Arc<dyn Values>,
    own: MemoryValues,
    /// Keys of those below that it deleted.
    gone: Mutex<HashSet<String>>,
}

impl Aside {
    pub(super) fn over(below: Arc<dyn Values>) -> Self {
        Self { below, own: MemoryValues::default(), gone: Mutex::default() }
    }
}

impl Values for Aside {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.own.get(plugin, key)? {
            Some(value) => Ok(Some(value)),
            None if self.gone.lock().contains(key) => Ok(None),
            None => self.below.get(plugin, key),
        }
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8], quota: u64) -> Result<(), Error> {
        self.own.set(plugin, key, value, quota)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<bool, Error> {
        let was_there = self.get(plugin, key)?.is_some();
        self.own.delete(plugin, key)?;
        if was_there && self.below.get(plugin, key)?.is_some() {
            self.gone.lock().insert(key.to_owned());
        }
        Ok(was_there)
    }

    fn usage(&self, plugin: &str) -> Result<Usage, Error> {
        self.own.usage(plugin)
    }
}

impl State {
    /// A plugin whose binding grants no kv has none, whatever an earlier one has left.
    fn has_kv(&self) -> bool {
        self.label.grants.kv > 0
    }

    /// What it keeps; for somebody who only wants to know, no longer than the call.
    fn values(&mut self) -> Arc<dyn Values> {
        let kept = &self.label.values;
        match self.seen {
            Seen::Looking => self.aside.get_or_insert_with(|| Arc::new(Aside::over(kept.clone()))).clone(),
            _ => kept.clone(),
        }
    }
}

impl Host for State {
    fn get(&mut self, key: String) -> Option<Vec<u8>> {
        if !self.has_kv() {
            return None;
        }
        match self.values().get(&self.label.plugin, &key) {
            Ok(value) => value,
            Err(error) => {
                if self.label.may_say() {
                    tracing::warn!(plugin = &*self.label.plugin, %error, "kv not readable");
                }
                None
            }
        }
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), String> {
        if !self.has_kv() {
            return Err("the binding grants no kv: give it a quota in grants.kv".to_owned());
        }
        if self.waited >= LONGEST_WAIT {
            return Err(format!(
                "this call has waited for the disk for {} ms: write less in one call",
                LONGEST_WAIT.as_millis()
            ));
        }
        let (quota, begun) = (self.label.grants.kv, Instant::now());
        let set = self.values().set(&self.label.plugin, &key, &value, quota);
        self.waited += begun.elapsed();
        set.map_err(|error| error.to_string())
    }

    fn delete(&mut self, key: String) -> bool {
        if !self.has_kv() {
            return false;
        }
        if self.waited >= LONGEST_WAIT {
            return false;
        }
        let begun = Instant::now();
        let deleted = self.values().delete(&self.label.plugin, &key);
        self.waited += begun.elapsed();
        match deleted {
            Ok(was_there) => was_there,
            Err(error) => {
                if self.label.may_say() {
                    tracing::warn!(plugin = &*self.label.plugin, %error, "kv not writable");
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
    fn what_is_changed_aside_is_changed_nowhere_else() {
        let live: Arc<dyn Values> = Arc::new(MemoryValues::default());
        for key in ["a", "b"] {
            live.set("p", key, b"live", 100).unwrap();
        }
        let aside = Aside::over(live.clone());
        let value = |key| aside.get("p", key).unwrap();
        assert_eq!(value("a").as_deref(), Some(&b"live"[..]));
        aside.set("p", "a", b"own", 100).unwrap();
        assert_eq!(value("a").as_deref(), Some(&b"own"[..]));
        assert!(aside.set("p", "c", &[0; 100], 100).is_err(), "the quota holds here too");
        assert!(aside.delete("p", "a").unwrap() && aside.delete("p", "b").unwrap());
        assert!(!aside.delete("p", "a").unwrap() && !aside.delete("p", "never").unwrap());
        assert_eq!((value("a"), value("b")), (None, None));
        aside.set("p", "b", b"anew", 100).unwrap();
        assert_eq!(value("b").as_deref(), Some(&b"anew"[..]));
        for key in ["a", "b"] {
            assert_eq!(live.get("p", key).unwrap().as_deref(), Some(&b"live"[..]));
        }
    }
}

use super::State;
use crate::bindings::host::switchyard::hooks::kv::Host;

impl Host for State {
    fn get(&mut self, key: String) -> Option<Vec<u8>> {
        let plugin = &self.label.plugin;
        match self.powers.values.get(plugin, &key) {
            Ok(value) => value,
            Err(error) => {
                tracing::warn!(plugin = &**plugin, %error, "kv not readable");
                None
            }
        }
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<(), String> {
        let quota = self.label.grants.kv;
        if quota == 0 {
            return Err("the binding grants no kv: give it a quota in grants.kv".to_owned());
        }
        self.powers.values.set(&self.label.plugin, &key, &value, quota).map_err(|error| error.to_string())
    }

    fn delete(&mut self, key: String) -> bool {
        let plugin = &self.label.plugin;
        match self.powers.values.delete(plugin, &key) {
            Ok(was_there) => was_there,
            Err(error) => {
                tracing::warn!(plugin = &**plugin, %error, "kv not writable");
                false
            }
        }
    }
}

use super::State;
use crate::bindings::switchyard::hooks::log::{Host, Level};

/// Lines per call, and octets per line; what is over is left out, so that a talkative plugin fills no disk.
pub(crate) const LINES: u32 = 16;
const OCTETS: usize = 1024;

impl Host for State {
    fn write(&mut self, level: Level, text: String) {
        if self.log_lines == 0 {
            return;
        }
        self.log_lines -= 1;
        let plugin = &*self.plugin;
        let text: String = text.chars().filter(|c| !c.is_control()).take(OCTETS).collect();
        match level {
            Level::Debug => tracing::debug!(plugin, text, "plugin says"),
            Level::Info => tracing::info!(plugin, text, "plugin says"),
            Level::Warn => tracing::warn!(plugin, text, "plugin says"),
            Level::Error => tracing::error!(plugin, text, "plugin says"),
        }
    }
}

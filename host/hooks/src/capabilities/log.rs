use super::State;
use crate::bindings::host::switchyard::hooks::log::{Host, Level};
use crate::generation::short;

/// Lines per call, and octets per line; what is over is left out, so that a talkative plugin fills no disk.
pub(crate) const LINES: u32 = 16;
const OCTETS: usize = 1024;

impl State {
    /// A line for the log, if the call and the plugin may still write one.
    pub(super) fn log(&mut self, level: Level, text: &str) {
        if self.log_lines == 0 {
            self.label.lines.leave_out();
            return;
        }
        let Some(left_out) = self.label.lines.take(crate::hooks::wall()) else { return };
        self.log_lines -= 1;
        let (plugin, version) = (&*self.label.plugin, &*self.label.version);
        let text = short(text.chars().filter(|c| !c.is_control()).take(OCTETS).collect(), OCTETS);
        match level {
            Level::Debug => tracing::debug!(plugin, version, left_out, text, "plugin says"),
            Level::Info => tracing::info!(plugin, version, left_out, text, "plugin says"),
            Level::Warn => tracing::warn!(plugin, version, left_out, text, "plugin says"),
            Level::Error => tracing::error!(plugin, version, left_out, text, "plugin says"),
        }
    }
}

impl Host for State {
    fn write(&mut self, level: Level, text: String) {
        self.log(level, &text);
    }
}

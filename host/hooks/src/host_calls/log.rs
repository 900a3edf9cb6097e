use super::{HostInterface, InstanceState};
use crate::bindings::host::switchyard::hooks::log::{Host, Level};
use crate::text_limits::truncate;
use model::Timestamp;

/// Maximum number of lines per call, and of octets per line. Anything beyond is dropped, so that a plugin cannot fill
/// the disk.
pub(crate) const LINES: u32 = 16;
const MAX_LINE_OCTETS: usize = 1024;

impl InstanceState {
    /// Writes a line to the log, if the limits of the call and the plugin's budget allow it.
    pub(super) fn log(&mut self, level: Level, text: &str) {
        if self.log_lines_left == 0 {
            self.context.log_budget.drop_line();
            return;
        }
        let Some(dropped) = self.context.log_budget.take(Timestamp::now()) else { return };
        self.log_lines_left -= 1;
        let (plugin, version) = (&*self.context.plugin, &*self.context.version);
        let text = truncate(
            text.chars().filter(|c| !c.is_control()).take(MAX_LINE_OCTETS).collect(),
            MAX_LINE_OCTETS,
        );
        match level {
            Level::Debug => tracing::debug!(plugin, version, dropped, text, "plugin says"),
            Level::Info => tracing::info!(plugin, version, dropped, text, "plugin says"),
            Level::Warn => tracing::warn!(plugin, version, dropped, text, "plugin says"),
            Level::Error => tracing::error!(plugin, version, dropped, text, "plugin says"),
        }
    }
}

impl Host for InstanceState {
    fn write(&mut self, level: Level, text: String) {
        self.count_call(HostInterface::Log);
        self.log(level, &text);
    }
}

//! The progress of long commands, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Read;

/// The progress of a command, on standard error. It disappears when it is dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// The progress of a transfer of octets. `shown`: whether standard error is a terminal; `total`: the number of octets, if it is known.
    #[must_use]
    pub fn for_octets(shown: bool, what: &'static str, total: Option<u64>) -> Self {
        let style = match total {
            Some(_) => {
                "{msg} {bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
            }
            None => "{spinner} {msg} {binary_bytes}, {binary_bytes_per_sec}, {elapsed}",
        };
        Self::with_style(shown, what, total, style)
    }

    /// The progress of work on items, such as messages.
    #[must_use]
    pub fn for_items(shown: bool, what: &'static str, total: Option<u64>) -> Self {
        let style = match total {
            Some(_) => "{msg} {bar:30} {human_pos} of {human_len}, {per_sec}, {eta} left",
            None => "{spinner} {msg} {human_pos}, {per_sec}, {elapsed}",
        };
        Self::with_style(shown, what, total, style)
    }

    fn with_style(shown: bool, what: &'static str, total: Option<u64>, style: &str) -> Self {
        if !shown {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Self(bar)
    }

    /// A reader whose octets are counted.
    pub fn reader<R: Read>(&self, from: R) -> impl Read + use<R> {
        self.0.wrap_read(from)
    }

    /// Counts octets or items.
    pub fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Sets the number of octets or items so far.
    pub fn set(&self, count: u64) {
        self.0.set_position(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_and_items_are_counted() {
        let progress = Progress::for_octets(false, "uploaded", Some(5));
        let mut text = String::new();
        progress.reader(&b"hello"[..]).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), progress.0.position()), ("hello", 5));
        let progress = Progress::for_items(false, "messages", None);
        progress.set(7);
        progress.add(1);
        assert_eq!(progress.0.position(), 8);
    }

    #[test]
    fn the_templates_are_valid() {
        for template in [
            "{msg} {bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
            "{spinner} {msg} {human_pos}, {per_sec}, {elapsed}",
        ] {
            ProgressStyle::with_template(template).unwrap();
        }
    }
}

//! The previous version's interfaces, served by today's.

use super::State;
use crate::bindings::host::switchyard::hooks as today;
use crate::bindings::previous::switchyard::hooks as old;

impl old::types::Host for State {}

impl old::log::Host for State {
    fn write(&mut self, level: old::log::Level, text: String) {
        let level = match level {
            old::log::Level::Debug => today::log::Level::Debug,
            old::log::Level::Info => today::log::Level::Info,
            old::log::Level::Warn => today::log::Level::Warn,
            old::log::Level::Error => today::log::Level::Error,
        };
        today::log::Host::write(self, level, text);
    }
}

impl old::clock::Host for State {
    fn now(&mut self) -> u64 {
        today::clock::Host::now(self)
    }
}

impl old::body::Host for State {
    fn octets(&mut self) -> Vec<u8> {
        today::body::Host::octets(self)
    }
}

impl old::peers::Host for State {
    fn state(&mut self, peer: String) -> Option<old::peers::PeerState> {
        let state = self.peer_state(&peer)?;
        Some(old::peers::PeerState { links: state.links, queued: state.queued })
    }
}

impl old::tables::Host for State {
    fn define_prefixes(&mut self, name: String, rows: Vec<old::tables::Row>) -> Result<u32, String> {
        let rows =
            rows.into_iter().map(|row| today::tables::Row { key: row.key, value: row.value }).collect();
        today::tables::Host::define_prefixes(self, name, rows)
    }

    fn longest_prefix(&mut self, table: u32, key: String) -> Option<old::tables::Found> {
        let found = today::tables::Host::longest_prefix(self, table, key)?;
        Some(old::tables::Found { length: found.length, value: found.value })
    }

    fn match_destination(&mut self, table: u32, digits: u32) -> Option<old::tables::Found> {
        let found = today::tables::Host::match_destination(self, table, digits)?;
        Some(old::tables::Found { length: found.length, value: found.value })
    }
}

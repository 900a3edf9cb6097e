//! Implements the interfaces of the previous contract version with those of the current one.

use super::InstanceState;
use crate::bindings::host::switchyard::hooks as current;
use crate::bindings::previous::switchyard::hooks as old;

impl old::types::Host for InstanceState {}

impl old::log::Host for InstanceState {
    fn write(&mut self, level: old::log::Level, text: String) {
        let level = match level {
            old::log::Level::Debug => current::log::Level::Debug,
            old::log::Level::Info => current::log::Level::Info,
            old::log::Level::Warn => current::log::Level::Warn,
            old::log::Level::Error => current::log::Level::Error,
        };
        current::log::Host::write(self, level, text);
    }
}

impl old::clock::Host for InstanceState {
    fn now(&mut self) -> u64 {
        current::clock::Host::now(self)
    }
}

impl old::body::Host for InstanceState {
    fn octets(&mut self) -> Vec<u8> {
        current::body::Host::octets(self)
    }
}

impl old::peers::Host for InstanceState {
    fn state(&mut self, peer: String) -> Option<old::peers::PeerState> {
        let state = self.peer_state(&peer)?;
        Some(old::peers::PeerState { links: state.links, queued: state.queued })
    }
}

impl old::tables::Host for InstanceState {
    fn define_prefixes(&mut self, name: String, rows: Vec<old::tables::Row>) -> Result<u32, String> {
        let rows =
            rows.into_iter().map(|row| current::tables::Row { key: row.key, value: row.value }).collect();
        current::tables::Host::define_prefixes(self, name, rows)
    }

    fn longest_prefix(&mut self, table: u32, key: String) -> Option<old::tables::Found> {
        let found = current::tables::Host::longest_prefix(self, table, key)?;
        Some(old::tables::Found { length: found.length, value: found.value })
    }

    fn match_destination(&mut self, table: u32, digits: u32) -> Option<old::tables::Found> {
        let found = current::tables::Host::match_destination(self, table, digits)?;
        Some(old::tables::Found { length: found.length, value: found.value })
    }
}

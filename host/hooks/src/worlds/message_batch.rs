//! The messages of a batch, as plugins receive them: all texts in one string.

use crate::bindings::guest::switchyard::hooks::types as wit;
use model::{Address, Directory, Message, Text};

/// Octets of the texts of a usual message: the origin's name, and two numbers.
const TYPICAL_TEXT_OCTETS: usize = 48;

/// A batch under construction. Lengths are below 4 GiB, because all addresses, names and service types together are.
pub(crate) struct MessageBatch {
    texts: String,
    messages: Vec<wit::BatchMessage>,
}

impl MessageBatch {
    /// An empty batch with room for `count` messages.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            texts: String::with_capacity(count * TYPICAL_TEXT_OCTETS),
            messages: Vec::with_capacity(count),
        }
    }

    /// Appends a message with this text.
    pub(crate) fn push(&mut self, message: &Message, text: &Text, directory: &Directory) {
        let start = octets(self.texts.len());
        let origin = self.push_text(&directory.name(message.origin));
        let source = self.push_address(&message.source);
        let destination = self.push_address(&message.destination);
        let service_type = self.push_octets(&message.service_type);
        self.messages.push(wit::BatchMessage {
            start,
            origin,
            source,
            destination,
            service_type,
            data_coding: text.data_coding,
            priority: message.priority.level(),
            length: octets(text.octets.len()),
            parts: text.segment_count(),
            udhi: text.udhi,
            wants_receipt: message.dlr_request.any(),
        });
    }

    /// Appends a text to the texts of the last message; returns its length in octets.
    pub(crate) fn push_text(&mut self, text: &str) -> u32 {
        self.texts.push_str(text);
        octets(text.len())
    }

    /// Appends octets as text, with replacement characters for octets outside UTF-8. These are rare, and a check of the
    /// whole is cheaper than a conversion octet by octet.
    fn push_octets(&mut self, octets: &[u8]) -> u32 {
        match std::str::from_utf8(octets) {
            Ok(text) => self.push_text(text),
            Err(_) => self.push_text(&String::from_utf8_lossy(octets)),
        }
    }

    fn push_address(&mut self, address: &Address) -> wit::BatchAddress {
        let length = self.push_octets(&address.value);
        wit::BatchAddress { ton: address.ton, npi: address.npi, length }
    }

    /// The batch, as an argument.
    pub(crate) fn argument(&self) -> wit::MessageBatch<'_> {
        wit::MessageBatch { texts: &self.texts, messages: &self.messages }
    }
}

fn octets(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

//! The messages of a batch that the host has loaded into this instance.

use crate::bindings::router::switchyard::hooks::types::{BatchAddress, MessageBatch};
use crate::{Address, Message};

/// A batch, and its current message. The message is built in place, so that it needs no allocation.
pub struct LoadedMessages {
    batch: MessageBatch,
    message: Message,
}

fn no_address() -> Address {
    Address { ton: 0, npi: 0, value: String::new() }
}

impl Default for LoadedMessages {
    fn default() -> Self {
        let message = Message {
            origin: String::new(),
            source: no_address(),
            destination: no_address(),
            service_type: None,
            data_coding: 0,
            priority: 0,
            length: 0,
            parts: 0,
            udhi: false,
            wants_receipt: false,
        };
        Self { batch: MessageBatch { texts: String::new(), messages: Vec::new() }, message }
    }
}

/// Moves the first `length` octets of `texts` into `text`.
fn take_text(texts: &mut &str, length: u32, text: &mut String) {
    let (taken, rest) = texts.split_at(length as usize);
    text.clear();
    text.push_str(taken);
    *texts = rest;
}

fn take_address(texts: &mut &str, from: &BatchAddress, address: &mut Address) {
    (address.ton, address.npi) = (from.ton, from.npi);
    take_text(texts, from.length, &mut address.value);
}

impl LoadedMessages {
    /// Stores a batch, in place of the previous one.
    pub fn load(&mut self, batch: MessageBatch) {
        self.batch = batch;
    }

    /// The message at this index, and the remaining texts after its own.
    ///
    /// # Panics
    /// There is no such message: the host asks only about loaded messages.
    pub fn message(&mut self, index: u32) -> (&Message, &str) {
        let Self { batch, message } = self;
        let one = &batch.messages[index as usize];
        let mut texts = &batch.texts[one.start as usize..];
        take_text(&mut texts, one.origin, &mut message.origin);
        take_address(&mut texts, &one.source, &mut message.source);
        take_address(&mut texts, &one.destination, &mut message.destination);
        if one.service_type == 0 {
            message.service_type = None;
        } else {
            take_text(&mut texts, one.service_type, message.service_type.get_or_insert_default());
        }
        message.data_coding = one.data_coding;
        message.priority = one.priority;
        message.length = one.length;
        message.parts = one.parts;
        message.udhi = one.udhi;
        message.wants_receipt = one.wants_receipt;
        (message, texts)
    }
}

//! Fields with a fixed encoding, and tables of records that consist of such fields.

use crate::{Cursor, RecordError, put_short, put_text};
use model::{
    AddressBytes, AdminActionKind, Hook, Imsi, MessageId, NoticeKind, PeerId, PeerMessageId, PluginVersion,
    PoolId, PoolName, PoolNumber, QueueActionId, Timestamp,
};
use std::sync::Arc;

/// A field of a record.
pub(crate) trait Field: Sized {
    /// Writes it.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads it.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError>;
}

/// Numbers, little-endian.
macro_rules! numbers {
    ($($type:ident),*) => { $(impl Field for $type {
        fn put(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.to_le_bytes());
        }

        fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
            cursor.$type()
        }
    })* };
}

/// Types with a number.
macro_rules! wrapped_numbers {
    ($($type:ident),*) => { $(impl Field for $type {
        fn put(&self, out: &mut Vec<u8>) {
            self.0.put(out);
        }

        fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
            Ok(Self(Field::read(cursor)?))
        }
    })* };
}

/// Optional numbers; a number that is never assigned encodes `None`.
macro_rules! optional_numbers {
    ($($type:ident = $none:expr),*) => { $(impl Field for Option<$type> {
        fn put(&self, out: &mut Vec<u8>) {
            self.map_or($none, |some| some.0).put(out);
        }

        fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
            let number = Field::read(cursor)?;
            Ok((number != $none).then_some($type(number)))
        }
    })* };
}

/// Enumerations with an octet for each value.
macro_rules! octets {
    ($($type:ident = $unknown:literal),*) => { $(impl Field for $type {
        fn put(&self, out: &mut Vec<u8>) {
            out.push(*self as u8);
        }

        fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
            let octet = cursor.u8()?;
            Self::from_octet(octet).ok_or_else(|| cursor.damaged($unknown))
        }
    })* };
}

/// Octets after an octet with their length.
macro_rules! short_octets {
    ($($type:ident),*) => { $(impl Field for $type {
        fn put(&self, out: &mut Vec<u8>) {
            put_short(out, &self.0);
        }

        fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
            Ok(Self(AddressBytes::from_slice(cursor.short()?)))
        }
    })* };
}

numbers!(u8, u16, u32, u64);
wrapped_numbers!(Timestamp, MessageId, PeerId, PoolId, QueueActionId);
optional_numbers!(PeerId = u32::MAX, QueueActionId = 0);
octets!(Hook = "unknown hook", AdminActionKind = "unknown action", NoticeKind = "unknown notice");
short_octets!(PeerMessageId, Imsi);

impl Field for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        Ok(cursor.u8()? != 0)
    }
}

impl Field for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        Ok(cursor.text()?.into())
    }
}

/// 1 whether there is a value, 2 length, UTF-8.
impl Field for Option<Box<str>> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(text) = self {
            put_text(out, text);
        }
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        Ok(if bool::read(cursor)? { Some(cursor.text()?.into()) } else { None })
    }
}

/// 2 length, octets. A longer value is not written.
impl Field for Box<[u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        let octets = if u16::try_from(self.len()).is_ok() { &**self } else { &[] };
        (octets.len() as u16).put(out);
        out.extend_from_slice(octets);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        let length = usize::from(cursor.u16()?);
        Ok(cursor.take(length)?.into())
    }
}

impl Field for Arc<PluginVersion> {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, &self.plugin);
        put_text(out, &self.version);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        let (plugin, version) = (cursor.text()?.to_owned(), cursor.text()?.to_owned());
        Ok(Self::new(PluginVersion { plugin, version }))
    }
}

impl Field for PoolName {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self.as_str());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        cursor.text()?.parse().map_err(|_| cursor.damaged("no name of a pool"))
    }
}

impl Field for PoolNumber {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RecordError> {
        Self::from_octets(cursor.array()?).ok_or_else(|| cursor.damaged("no number of a pool"))
    }
}

//! The JSON form of verdicts and steps in the archive's traces.

use crate::text_escape::{escape, unescape};
use crate::{Address, AddressBytes, AdminActionKind, Imsi, PeerMessageId, PoolName, PoolNumber};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

pub(crate) fn one() -> u16 {
    1
}

// The signatures are required by serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_at_most_one(value: &u16) -> bool {
    *value <= 1
}

/// Durations as milliseconds.
pub(crate) mod milliseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    // The signature is required by serde.
    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

/// Reads escaped text. Text that is not a valid escape is used unchanged.
fn octets(text: &str) -> AddressBytes {
    unescape(text).map_or_else(|| AddressBytes::from_slice(text.as_bytes()), AddressBytes::from_vec)
}

/// Two keys of an address: its escaped value, and its type of number and numbering plan, which older versions omitted.
macro_rules! address_form {
    ($form:ident, $value:literal, $type:literal) => {
        #[derive(Serialize, Deserialize)]
        pub(crate) struct $form {
            #[serde(rename = $value, default, skip_serializing_if = "Option::is_none")]
            value: Option<String>,
            #[serde(rename = $type, default, skip_serializing_if = "Option::is_none")]
            kind: Option<(u8, u8)>,
        }

        impl $form {
            // The signature is required by serde.
            #[allow(clippy::ref_option)]
            pub(crate) fn serialize<S: Serializer>(
                address: &Option<Address>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let value = address.as_ref().map(|address| escape(&address.value));
                let kind = address.as_ref().map(|address| (address.ton, address.npi));
                Serialize::serialize(&Self { value, kind }, serializer)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<Address>, D::Error> {
                let Self { value, kind } = Deserialize::deserialize(deserializer)?;
                let (ton, npi) = kind.unwrap_or_default();
                Ok(value.map(|value| Address { ton, npi, value: octets(&value) }))
            }
        }
    };
}

address_form!(SourceForm, "source", "source_type");
address_form!(DestinationForm, "destination", "destination_type");

/// A type as text.
macro_rules! text_form {
    ($type:ty, $write:expr, $read:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text: String = $write(self);
                serializer.serialize_str(&text)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                let read: Option<Self> = $read(&*text);
                read.ok_or_else(|| D::Error::custom(format!("unexpected {text:?}")))
            }
        }
    };
}

text_form!(PeerMessageId, |id: &PeerMessageId| escape(&id.0), |text: &str| Some(PeerMessageId(octets(text))));
text_form!(Imsi, |imsi: &Imsi| escape(&imsi.0), |text: &str| Some(Imsi(octets(text))));
text_form!(PoolName, |name: &PoolName| name.to_string(), |text: &str| text.parse().ok());
text_form!(PoolNumber, |number: &PoolNumber| number.to_string(), |text: &str| text.parse().ok());
text_form!(AdminActionKind, |action: &AdminActionKind| action.name().to_owned(), |text: &str| {
    AdminActionKind::ALL.into_iter().find(|known| known.name() == text)
});

//! The result of the lookup of a message's number.

use crate::routing::Layout;
use crate::{Cursor, RecordError};
use model::{Lookup, LookupResult, PluginVersion};
use std::sync::Arc;

const CACHED: u8 = 1;
const NOTE: u8 = 2;
const HOST_CALLS: u8 = 4;

/// Writes the result of a lookup: 1 result (0 failed, 1 unknown, 2 found); 1 flags (bit 0 cached, 1 note, 2 host calls); texts plugin and
/// version; note, if flagged; 1 number of attributes, each texts name and value; host calls, if
/// flagged: length, octets.
pub fn put_lookup<L: Layout>(out: &mut Vec<u8>, lookup: &Lookup) {
    let Lookup { result, attributes, by, note, cached, host_calls } = lookup;
    let flag = |bit: u8, set: bool| if set { bit } else { 0 };
    let flags = flag(CACHED, *cached) | flag(NOTE, note.is_some()) | flag(HOST_CALLS, host_calls.is_some());
    out.extend_from_slice(&[*result as u8, flags]);
    L::put_text(out, &by.plugin);
    L::put_text(out, &by.version);
    if let Some(note) = note {
        L::put_text(out, note);
    }
    let attributes = attributes.get(..255).unwrap_or(attributes);
    out.push(attributes.len() as u8);
    for (name, value) in attributes {
        L::put_text(out, name);
        L::put_text(out, value);
    }
    if let Some(host_calls) = host_calls {
        L::put_octets(out, host_calls);
    }
}

/// Reads the result of a lookup. `by` returns the plugin version with that name and version.
///
/// # Errors
/// The octets are no such result.
pub fn lookup<L: Layout>(
    cursor: &mut Cursor<'_>,
    by: impl FnOnce(&str, &str) -> Arc<PluginVersion>,
) -> Result<Lookup, RecordError> {
    let result =
        LookupResult::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown result of a lookup"))?;
    let flags = cursor.u8()?;
    let (plugin, version) = (L::text(cursor)?, L::text(cursor)?);
    let by = by(plugin, version);
    let note = if flags & NOTE == 0 { None } else { Some(L::text(cursor)?.into()) };
    let mut attributes = Vec::new();
    for _ in 0..cursor.u8()? {
        attributes.push((L::text(cursor)?.into(), L::text(cursor)?.into()));
    }
    let host_calls = if flags & HOST_CALLS == 0 { None } else { Some(L::octets(cursor)?.into()) };
    Ok(Lookup { result, attributes, by, note, cached: flags & CACHED != 0, host_calls })
}

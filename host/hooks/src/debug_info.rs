//! Debug information of components (DWARF): it maps code to source lines. It is stored with the component that serves, and
//! read when an admin looks at a fault.
//!
//! The component that serves has no debug sections, so that it is small. Debug information belongs to a component if
//! removing its debug sections gives exactly the octets of the component: then all code offsets are the same.

use crate::stack::WasmFrame;
use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{Parser, Payload};

type Octets<'a> = EndianSlice<'a, LittleEndian>;

/// The function name and the source line of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) function: Option<String>,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
}

/// The core modules of a component with debug information.
pub(crate) struct DebugInfo<'a> {
    modules: Vec<ModuleDebugInfo<'a>>,
}

#[derive(Default)]
struct ModuleDebugInfo<'a> {
    /// Start of the module in these octets.
    start: usize,
    /// Start of the module in the component without debug sections. Offsets of frames count from the start of that
    /// component.
    stripped_start: usize,
    /// Start of the contents of its code section, from the module's start.
    code: usize,
    /// Ranges of its functions' bodies, from the module's start.
    bodies: Vec<Range<usize>>,
    sections: HashMap<&'a str, &'a [u8]>,
    /// The index of the debug sections, made for the first frame; `None` if they cannot be read.
    index: OnceCell<Option<addr2line::Context<Octets<'a>>>>,
}

impl<'a> DebugInfo<'a> {
    /// Finds the modules with debug information. `None` if the octets are no valid component.
    pub(crate) fn read(component: &'a [u8]) -> Option<Self> {
        let mut modules: Vec<ModuleDebugInfo<'a>> = Vec::new();
        // The open components and modules at this nesting.
        let mut open: Vec<Option<usize>> = vec![None];
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.ok()?;
            let module = open.last().copied().flatten();
            match payload {
                Payload::ModuleSection { unchecked_range, .. } => {
                    modules
                        .push(ModuleDebugInfo { start: unchecked_range.start, ..ModuleDebugInfo::default() });
                    open.push(Some(modules.len() - 1));
                }
                Payload::ComponentSection { .. } => open.push(None),
                Payload::End(_) => {
                    open.pop();
                }
                Payload::CodeSectionStart { range, .. } => {
                    if let Some(module) = module.and_then(|index| modules.get_mut(index)) {
                        module.code = range.start.checked_sub(module.start)?;
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    if let Some(module) = module.and_then(|index| modules.get_mut(index)) {
                        let Range { start, end } = body.range();
                        module.bodies.push(start.checked_sub(module.start)?..end.checked_sub(module.start)?);
                    }
                }
                Payload::CustomSection(section) if is_debug_section(section.name()) => {
                    if let Some(module) = module.and_then(|index| modules.get_mut(index)) {
                        module.sections.insert(section.name(), section.data());
                    }
                }
                _ => {}
            }
        }
        let stripped = strip_debug_info(component)?;
        let starts = Parser::new(0).parse_all(&stripped).filter_map(|payload| match payload {
            Ok(Payload::ModuleSection { unchecked_range, .. }) => Some(unchecked_range.start),
            _ => None,
        });
        for (module, start) in modules.iter_mut().zip(starts) {
            module.stripped_start = start;
        }
        modules.retain(|module| !module.sections.is_empty());
        Some(Self { modules })
    }

    /// The source locations of a frame: first the functions inlined into it, then the function itself.
    pub(crate) fn locations(&self, frame: &WasmFrame) -> Vec<SourceLocation> {
        self.modules.iter().find_map(|module| module.locations(frame)).unwrap_or_default()
    }
}

impl<'a> ModuleDebugInfo<'a> {
    fn index(&self) -> Option<addr2line::Context<Octets<'a>>> {
        let section = |id: addr2line::gimli::SectionId| {
            let octets = self.sections.get(id.name()).copied().unwrap_or_default();
            Ok::<_, addr2line::gimli::Error>(Octets::new(octets, LittleEndian))
        };
        addr2line::Context::from_dwarf(Dwarf::load(section).ok()?).ok()
    }

    /// The source locations of a frame, if it is in this module.
    fn locations(&self, frame: &WasmFrame) -> Option<Vec<SourceLocation>> {
        let offset = frame.offset()?.checked_sub(self.stripped_start)?;
        let body = self.bodies.iter().find(|body| body.contains(&offset))?;
        if !frame.is_in_body(self.stripped_start + body.start) {
            return None;
        }
        let context = self.index.get_or_init(|| self.index()).as_ref()?;
        let address = u64::try_from(offset.checked_sub(self.code)?).ok()?;
        let mut frames = context.find_frames(address).skip_all_loads().ok()?;
        let mut locations = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let Some((file, line)) = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line)))
            else {
                continue;
            };
            let function = frame
                .function
                .and_then(|function| function.raw_name().ok().map(|name| crate::stack::demangle(&name)));
            locations.push(SourceLocation { function, file, line });
        }
        Some(locations)
    }
}

fn is_debug_section(name: &str) -> bool {
    name.starts_with(".debug_")
}

/// The octets of a component or module without its debug sections. `None` if its sections cannot be read.
#[must_use]
pub fn strip_debug_info(octets: &[u8]) -> Option<Vec<u8>> {
    /// Sections of components (Component Model, Binary.md): core modules and components are nested.
    const CORE_MODULE: u8 = 1;
    const COMPONENT: u8 = 4;
    /// A custom section of modules and components.
    const CUSTOM: u8 = 0;
    /// The deepest nesting. Tools nest one level.
    const MAX_DEPTH: usize = 8;

    fn strip(octets: &[u8], depth: usize) -> Option<Vec<u8>> {
        let (header, mut rest) = octets.split_at_checked(8)?;
        let is_component = header.get(4..8)? != [1, 0, 0, 0];
        let mut out = header.to_vec();
        while let Some((id, after)) = rest.split_first() {
            let (length, after) = read_length(after)?;
            let (content, after) = after.split_at_checked(length)?;
            let whole = rest.get(..rest.len() - after.len())?;
            rest = after;
            let nested = is_component && matches!(*id, CORE_MODULE | COMPONENT);
            if nested && depth < MAX_DEPTH {
                let stripped = strip(content, depth + 1)?;
                if stripped.len() != content.len() {
                    out.push(*id);
                    put_length(&mut out, stripped.len());
                    out.extend_from_slice(&stripped);
                    continue;
                }
            }
            if *id == CUSTOM && is_debug_section(&section_name(content)?) {
                continue;
            }
            out.extend_from_slice(whole);
        }
        Some(out)
    }
    strip(octets, 0)
}

fn section_name(content: &[u8]) -> Option<String> {
    let (length, rest) = read_length(content)?;
    Some(String::from_utf8_lossy(rest.get(..length)?).into_owned())
}

/// Reads an unsigned LEB128 number of at most 32 bits.
fn read_length(octets: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, octet) in octets.iter().enumerate().take(5) {
        value |= u64::from(octet & 0x7f) << (7 * index);
        if octet & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, octets.get(index + 1..)?));
        }
    }
    None
}

fn put_length(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let octet = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value == 0 { octet } else { octet | 0x80 });
        if value == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![id];
        put_length(&mut out, content.len());
        out.extend_from_slice(content);
        out
    }

    fn custom(name: &str, content: &[u8]) -> Vec<u8> {
        let mut inner = Vec::new();
        put_length(&mut inner, name.len());
        inner.extend_from_slice(name.as_bytes());
        inner.extend_from_slice(content);
        section(0, &inner)
    }

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn debug_sections_are_removed_and_nothing_else() {
        let kept = [MODULE, &custom("name", b"names"), &custom("producers", b"x")].concat();
        let with = |lines: &[u8]| {
            [MODULE, &custom("name", b"names"), &custom(".debug_line", lines), &custom("producers", b"x")]
                .concat()
        };
        assert_eq!(strip_debug_info(&with(&[1; 300])).unwrap(), kept);
        let component = |module: &[u8]| [COMPONENT, &section(1, module), &custom("name", b"c")].concat();
        assert_eq!(strip_debug_info(&component(&with(&[1; 300]))).unwrap(), component(&kept));
        let nested = |module: &[u8]| [COMPONENT, &section(4, &component(module))].concat();
        assert_eq!(strip_debug_info(&nested(&with(b""))).unwrap(), nested(&kept));
        assert_eq!(strip_debug_info(&component(&kept)).unwrap(), component(&kept));
    }

    #[test]
    fn a_length_with_needless_octets_stays_if_nothing_changes() {
        let padded = [MODULE, &[0, 0x83, 0x80, 0x00, 1, b'n', b'x']].concat();
        assert_eq!(strip_debug_info(&padded).unwrap(), padded);
    }

    #[test]
    fn damaged_octets_have_no_sections() {
        let whole = [COMPONENT, &section(1, &[MODULE, &custom(".debug_info", b"abc")].concat())].concat();
        for cut in 0..whole.len() {
            if let Some(stripped) = strip_debug_info(&whole[..cut]) {
                assert_eq!((cut, stripped), (8, COMPONENT.to_vec()));
            }
        }
        assert!(DebugInfo::read(b"\0asm").is_none());
    }
}

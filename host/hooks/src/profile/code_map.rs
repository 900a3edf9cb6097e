//! The profiler's map of a component's code: the starts of function bodies, and the functions that only pass calls on.

use crate::HookError;
use crate::stack::WasmFrame;
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{Parser, Payload};

/// The table through which `wit-component` lets a module call the host's functions before these are instantiated. The module
/// that exports it has a function for each host function.
const SHIM_TABLE: &str = "$imports";

/// The code of a component, by offset in octets.
#[derive(Debug, Default)]
pub(super) struct CodeMap {
    /// The first instruction of each function, by the start of its body.
    first_instructions: HashMap<usize, usize>,
    /// The modules that only pass calls on.
    shims: Vec<Range<usize>>,
}

impl CodeMap {
    /// Reads a component.
    ///
    /// # Errors
    /// The octets are no component.
    pub(super) fn read(component: &[u8]) -> Result<Self, HookError> {
        let broken = |error: wasmparser::BinaryReaderError| HookError::Broken(error.to_string());
        let mut map = Self::default();
        let mut module = 0..0;
        for payload in Parser::new(0).parse_all(component) {
            match payload.map_err(broken)? {
                Payload::ModuleSection { unchecked_range, .. } => module = unchecked_range,
                Payload::ExportSection(exports) => {
                    for export in exports {
                        if export.map_err(broken)?.name == SHIM_TABLE {
                            map.shims.push(module.clone());
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let first = body.get_operators_reader().map_err(broken)?.original_position();
                    map.first_instructions.insert(body.range().start, first);
                }
                _ => {}
            }
        }
        Ok(map)
    }

    /// Whether the frame's function only passes a call on to the host.
    pub(super) fn is_shim(&self, frame: &WasmFrame) -> bool {
        frame.offset().is_some_and(|offset| self.shims.iter().any(|shim| shim.contains(&offset)))
    }

    /// Whether the frame's function has not run anything yet.
    pub(super) fn is_at_entry(&self, frame: &WasmFrame) -> bool {
        let Some(offset) = frame.offset() else { return true };
        let first = frame.body().and_then(|body| self.first_instructions.get(&body));
        first.is_some_and(|first| offset <= *first)
    }
}

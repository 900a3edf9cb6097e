//! The call stack of a plugin at a fault.

use crate::debug_info::{DebugInfo, SourceLocation};
use api::StackFrame;
use wasmtime::FrameInfo;

/// A frame as wasmtime describes it. Names and source lines are resolved when an admin looks at the fault.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WasmFrame {
    /// The function's name in the module, perhaps mangled.
    name: Option<Box<str>>,
    /// The function's index in its module.
    function: u32,
    /// Offset of the instruction in the component, in octets.
    offset: Option<usize>,
    /// Offset of the function's body in the component, in octets.
    body: Option<usize>,
}

impl WasmFrame {
    pub(crate) fn of(frame: &FrameInfo) -> Self {
        let offset = frame.module_offset();
        Self {
            name: frame.func_name().map(Into::into),
            function: frame.func_index(),
            offset,
            body: offset.zip(frame.func_offset()).and_then(|(offset, within)| offset.checked_sub(within)),
        }
    }

    pub(crate) fn offset(&self) -> Option<usize> {
        self.offset
    }

    /// The function's name as in the source; without one, its number.
    pub(crate) fn function_name(&self) -> String {
        match &self.name {
            Some(name) => demangle(name),
            None => format!("function {}", self.function),
        }
    }

    /// Offset of the body of its function.
    pub(crate) fn body(&self) -> Option<usize> {
        self.body
    }

    /// Whether it is in the function whose body begins at this offset.
    pub(crate) fn is_in_body(&self, start: usize) -> bool {
        self.body.is_none_or(|body| body == start)
    }
}

/// The name as in the source: without the mangling and the hash of Rust's compiler.
pub(crate) fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// Name prefixes of the functions between a panic and the code that panicked.
const PANIC_FUNCTIONS: [&str; 14] = [
    "std::panicking",
    "core::panicking",
    "std::sys",
    "std::process",
    "std::rt",
    "core::result::unwrap_failed",
    "core::option::unwrap_failed",
    "core::option::expect_failed",
    "core::slice::index",
    "core::str::slice_error",
    "alloc::alloc::handle",
    "rust_panic",
    "__rust",
    "abort",
];

fn is_of_panic(function: &str) -> bool {
    let name = function.trim_start_matches('<');
    PANIC_FUNCTIONS.iter().any(|begin| name.starts_with(begin))
}

/// Source path prefixes of languages' own libraries, as written by compilers and the appliance's builds. Frames in them say
/// nothing about the plugin.
const LIBRARY_SOURCES: [&str; 3] = ["/rustc/", "/guest-toolchain/", "/cargo/"];

/// The name without its type arguments.
pub(crate) fn without_type_arguments(name: &str) -> String {
    match name.find('<') {
        Some(end) if end > 0 => name[..end].trim_end_matches("::").to_owned(),
        _ => name.to_owned(),
    }
}

/// The frames for people, innermost first, without the machinery of a panic. The debug information gives source lines and
/// inlined functions.
pub(crate) fn describe_stack(frames: &[WasmFrame], debug_info: Option<&DebugInfo<'_>>) -> Vec<StackFrame> {
    let described = frames.iter().flat_map(|frame| {
        let name = frame.function_name();
        let locations = debug_info.map(|info| info.locations(frame)).unwrap_or_default();
        if locations.is_empty() {
            return vec![StackFrame { function: name, source: None }];
        }
        let last = locations.len() - 1;
        let location = |(index, location): (usize, SourceLocation)| StackFrame {
            function: match location.function {
                Some(function) => without_type_arguments(&function),
                None if index == last => name.clone(),
                None => "inlined".to_owned(),
            },
            source: Some(match location.line {
                Some(line) => format!("{}:{line}", location.file),
                None => location.file,
            }),
        };
        locations.into_iter().enumerate().map(location).collect()
    });
    let is_library = |frame: &StackFrame| {
        let source = frame.source.as_deref().unwrap_or_default();
        LIBRARY_SOURCES.iter().any(|begin| source.starts_with(begin))
    };
    let mut described: Vec<StackFrame> = described.filter(|frame| !is_library(frame)).collect();
    // A closure and the functions inlined around it have the same source line.
    described.dedup();
    let begin = described.iter().position(|frame| !is_of_panic(&frame.function)).unwrap_or_default();
    described.into_iter().skip(begin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str) -> WasmFrame {
        WasmFrame { name: Some(name.into()), function: 7, offset: None, body: None }
    }

    #[test]
    fn names_are_demangled_and_the_machinery_of_a_panic_is_left_out() {
        let frames = [
            frame("abort"),
            frame("_ZN4core9panicking9panic_fmt17h0123456789abcdefE"),
            frame("_ZN6router5check17h0123456789abcdefE"),
            frame("rust_panic_later"),
            WasmFrame { name: None, ..frame("") },
        ];
        let names: Vec<String> =
            describe_stack(&frames, None).into_iter().map(|frame| frame.function).collect();
        assert_eq!(names, ["router::check", "rust_panic_later", "function 7"]);
        assert_eq!(describe_stack(&frames[..2], None).len(), 2, "nothing else is known");
        assert_eq!(without_type_arguments("try_with<core::cell::RefCell<T>, F>"), "try_with");
        assert_eq!(without_type_arguments("<T as Guest>::route"), "<T as Guest>::route");
    }
}

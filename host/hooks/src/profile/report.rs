//! Samples in readable form: names of functions and source lines.

use super::SampledStack;
use crate::debug_info::DebugInfo;
use crate::stack::{WasmFrame, without_type_arguments};
use std::collections::HashMap;
use std::time::Duration;

/// The sampled stacks of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Each different stack, in no particular order.
    pub stacks: Vec<ProfiledStack>,
    /// Number of all samples.
    pub samples: u64,
    /// The time between two samples, on average.
    pub interval: Duration,
}

/// A stack that was sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfiledStack {
    /// The frames, outermost first.
    pub frames: Vec<ProfiledFrame>,
    /// Number of its samples.
    pub samples: u64,
}

/// A function of a sampled stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProfiledFrame {
    /// The function's name as in the source; for a host function, after the name of its interface: `peers.state`.
    pub function: String,
    /// File and line, if there is debug information.
    pub source: Option<String>,
    /// It is a function of the host.
    pub is_host: bool,
}

pub(super) fn describe(stacks: &HashMap<SampledStack, u64>, debug_info: Option<&[u8]>) -> Vec<ProfiledStack> {
    let debug_info = debug_info.and_then(DebugInfo::read);
    let mut described: HashMap<&WasmFrame, Vec<ProfiledFrame>> = HashMap::new();
    let mut result = Vec::new();
    for ((frames, host_function), samples) in stacks {
        let mut stack = Vec::new();
        for frame in frames.iter().rev() {
            let found = described.entry(frame).or_insert_with(|| describe_frame(frame, debug_info.as_ref()));
            stack.extend(found.iter().cloned());
        }
        stack.extend(host_function.map(|name| ProfiledFrame {
            function: name.to_owned(),
            source: None,
            is_host: true,
        }));
        result.push(ProfiledStack { frames: stack, samples: *samples });
    }
    result
}

/// A frame and the functions that were inlined into it, outermost first.
fn describe_frame(frame: &WasmFrame, debug_info: Option<&DebugInfo<'_>>) -> Vec<ProfiledFrame> {
    let name = frame.function_name();
    let locations = debug_info.map(|info| info.locations(frame)).unwrap_or_default();
    let outermost = locations.len().saturating_sub(1);
    let location = |(index, location): (usize, crate::debug_info::SourceLocation)| ProfiledFrame {
        function: match location.function {
            Some(function) => without_type_arguments(&function),
            None if index == outermost => name.clone(),
            None => "inlined".to_owned(),
        },
        source: Some(match location.line {
            Some(line) => format!("{}:{line}", location.file),
            None => location.file,
        }),
        is_host: false,
    };
    let mut frames: Vec<ProfiledFrame> = locations.into_iter().enumerate().map(location).collect();
    frames.reverse();
    if frames.is_empty() {
        frames.push(ProfiledFrame { function: name, source: None, is_host: false });
    }
    frames
}

//! An empty WASI 0.2 world, for guests in other languages, whose run-time libraries import WASI even if the plugin does not
//! use it. It has no files, sockets, environment, arguments or input. Its clock shows the time of the call and does not
//! advance, random numbers depend on the grant, and output goes to the plugin's log.
//!
//! Nothing here blocks: a wait for the clock ends at once, and does not advance the clock. Functions that are not
//! implemented can be linked, and trap when called.

use model::Random;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType,
};
use wasmtime::{Result, StoreContextMut, bail};

/// The services of the empty world, provided by the store's state.
pub(crate) trait WasiHost {
    /// The time of the call, in milliseconds since the Unix epoch.
    fn now_ms(&mut self) -> u64;
    /// A random number; `None` without a grant: the fixed sequence is used.
    fn random(&mut self) -> Option<u64>;
    /// State of the fixed sequence. To make calls exactly repeatable, set it to 0 before each call.
    fn random_sequence(&mut self) -> &mut Random;
    /// Prints a line to the log: at most [`MAX_LINE_OCTETS`], not empty, with any characters that the guest printed.
    fn print_line(&mut self, line: &str);
}

/// Maximum length of a printed line, in octets; longer lines are split.
pub(crate) const MAX_LINE_OCTETS: usize = 1024;
/// Maximum number of lines in one write; further lines are dropped.
const MAX_LINES_PER_WRITE: usize = 64;
/// Number of octets that a guest may write at once.
const MAX_WRITE_OCTETS: u64 = 4096;
/// Number of random octets that a guest may request at once.
const MAX_RANDOM_OCTETS: u64 = 64 * 1024;

/// Whether an import belongs to this world.
pub(crate) fn is_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Links the WASI 0.2 imports of a component, each with the version that the component names. Does nothing for a
/// component without such imports.
///
/// # Errors
/// Another major version, which has other types, or a name that the linker has already.
pub(crate) fn link<T: WasiHost + 'static>(linker: &mut Linker<T>, component: &Component) -> Result<()> {
    let engine = linker.engine().clone();
    for (import, item) in component.component_type().imports(&engine) {
        if !is_wasi(import) {
            continue;
        }
        let (interface, version) = import.split_once('@').unwrap_or((import, ""));
        let ComponentItem::ComponentInstance(items) = item.ty else {
            bail!("imports {import}, which is not an interface");
        };
        if !version.starts_with("0.2.") {
            bail!("imports {import}; the host supports WASI 0.2: build the plugin for wasip2");
        }
        let mut instance = linker.instance(import)?;
        for (name, item) in items.exports(&engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) if !define(&mut instance, interface, name)? => {
                    let what = format!("{interface}#{name}");
                    instance.func_new(name, move |_, _, _, _| {
                        bail!("{what} is not available: a plugin has no files, no sockets and no environment")
                    })?;
                }
                // Every interface that uses a resource lists it again under its name.
                ComponentItem::Resource(_) => instance.resource(name, resource(name), |_, _| Ok(()))?,
                _ => (),
            }
        }
    }
    Ok(())
}

/// Standard input, which is always at its end.
enum StdinStream {}
/// Standard output or standard error.
enum OutputStream {}
/// A pollable that is always ready.
enum Pollable {}
/// The error of a stream; streams never fail.
enum StreamFailure {}
/// A resource type without instances.
enum UnusedResource {}

fn resource(name: &str) -> ResourceType {
    match name {
        "input-stream" => ResourceType::host::<StdinStream>(),
        "output-stream" => ResourceType::host::<OutputStream>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "error" => ResourceType::host::<StreamFailure>(),
        _ => ResourceType::host::<UnusedResource>(),
    }
}

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "part of the type, and no operation fails")]
    Failed(Resource<StreamFailure>),
    #[component(name = "closed")]
    Closed,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// All resources of a type are alike, so they need no numbers, and no state is kept for them.
fn resource_handle<R: 'static>() -> Resource<R> {
    Resource::new_own(0)
}

type Store<'a, T> = StoreContextMut<'a, T>;
type StreamResult<R> = std::result::Result<R, StreamError>;

/// Defines a function if the interface has it. The linker checks the types of its parameters and results.
fn define<T: WasiHost + 'static>(
    to: &mut LinkerInstance<'_, T>,
    interface: &str,
    name: &str,
) -> Result<bool> {
    match interface {
        "wasi:cli/environment" | "wasi:cli/exit" | "wasi:filesystem/preopens" => environment(to, name)?,
        "wasi:cli/stdin" | "wasi:cli/stdout" | "wasi:cli/stderr" => standard(to, name)?,
        "wasi:cli/terminal-stdin" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((None::<Resource<UnusedResource>>,)))?;
        }
        "wasi:clocks/wall-clock" => wall_clock(to, name)?,
        "wasi:clocks/monotonic-clock" => monotonic_clock(to, name)?,
        "wasi:io/poll" => poll(to, name)?,
        "wasi:io/streams" => return streams(to, name),
        "wasi:random/random" | "wasi:random/insecure" | "wasi:random/insecure-seed" => random(to, name)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn unknown_function(name: &str) -> Result<()> {
    bail!("{name} is not in this host's WASI 0.2")
}

fn environment<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-environment" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((Vec::<(String, String)>::new(),)))
        }
        "get-arguments" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((Vec::<String>::new(),))),
        "initial-cwd" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((None::<String>,))),
        "get-directories" => to.func_wrap(name, |_: Store<'_, T>, (): ()| {
            Ok((Vec::<(Resource<UnusedResource>, String)>::new(),))
        }),
        "exit" => to.func_wrap(name, |_: Store<'_, T>, (status,): (std::result::Result<(), ()>,)| {
            exit(u8::from(status.is_err()))
        }),
        "exit-with-code" => to.func_wrap(name, |_: Store<'_, T>, (code,): (u8,)| exit(code)),
        _ => unknown_function(name),
    }
}

fn exit(code: u8) -> Result<()> {
    bail!("the plugin called exit with code {code}; it must return from its calls")
}

fn standard<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-stdin" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((resource_handle::<StdinStream>(),))),
        "get-stdout" | "get-stderr" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((resource_handle::<OutputStream>(),)))
        }
        _ => unknown_function(name),
    }
}

fn wall_clock<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "now" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            let now = store.data_mut().now_ms();
            Ok((Datetime { seconds: now / 1000, nanoseconds: (now % 1000) as u32 * 1_000_000 },))
        }),
        "resolution" => to.func_wrap(name, |_: Store<'_, T>, (): ()| {
            Ok((Datetime { seconds: 0, nanoseconds: 1_000_000 },))
        }),
        _ => unknown_function(name),
    }
}

fn monotonic_clock<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "now" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            Ok((store.data_mut().now_ms().saturating_mul(1_000_000),))
        }),
        "resolution" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((1_000_000_u64,))),
        "subscribe-instant" | "subscribe-duration" => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (u64,)| Ok((resource_handle::<Pollable>(),)))
        }
        _ => unknown_function(name),
    }
}

fn poll<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "[method]pollable.ready" => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Pollable>,)| Ok((true,)))
        }
        "[method]pollable.block" => to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Pollable>,)| Ok(())),
        "poll" => to.func_wrap(name, |_: Store<'_, T>, (wanted,): (Vec<Resource<Pollable>>,)| {
            if wanted.is_empty() {
                bail!("a poll of an empty list would never end");
            }
            Ok(((0..).take(wanted.len()).collect::<Vec<u32>>(),))
        }),
        _ => unknown_function(name),
    }
}

fn streams<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<bool> {
    let Some((kind, method)) = name.strip_prefix("[method]").and_then(|name| name.split_once('.')) else {
        return Ok(false);
    };
    match (kind, method) {
        ("input-stream", "read" | "blocking-read") => {
            to.func_wrap(name, |_: Store<'_, T>, (_, _): (Resource<StdinStream>, u64)| {
                Ok((StreamResult::<Vec<u8>>::Err(StreamError::Closed),))
            })?;
        }
        ("input-stream", "skip" | "blocking-skip") => {
            to.func_wrap(name, |_: Store<'_, T>, (_, _): (Resource<StdinStream>, u64)| {
                Ok((StreamResult::<u64>::Err(StreamError::Closed),))
            })?;
        }
        ("input-stream", "subscribe") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<StdinStream>,)| {
                Ok((resource_handle::<Pollable>(),))
            })?;
        }
        ("output-stream", "subscribe") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<OutputStream>,)| {
                Ok((resource_handle::<Pollable>(),))
            })?;
        }
        ("output-stream", "check-write") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<OutputStream>,)| {
                Ok((StreamResult::Ok(MAX_WRITE_OCTETS),))
            })?;
        }
        ("output-stream", "flush" | "blocking-flush") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<OutputStream>,)| {
                Ok((StreamResult::Ok(()),))
            })?;
        }
        ("output-stream", "write" | "blocking-write-and-flush") => {
            to.func_wrap(name, |mut store: Store<'_, T>, (_, octets): (Resource<OutputStream>, Vec<u8>)| {
                print_lines(store.data_mut(), &octets);
                Ok((StreamResult::Ok(()),))
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Prints octets line by line. A line that arrives in several writes becomes several lines: the libraries of guests
/// buffer lines themselves.
fn print_lines(to: &mut impl WasiHost, octets: &[u8]) {
    let lines = octets.split(|octet| matches!(octet, b'\n' | b'\r')).filter(|line| !line.is_empty());
    for chunk in lines.flat_map(|line| line.chunks(MAX_LINE_OCTETS / 3)).take(MAX_LINES_PER_WRITE) {
        // Replacement characters make an invalid octet three octets long.
        to.print_line(&String::from_utf8_lossy(chunk));
    }
}

fn random<T: WasiHost + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-random-u64" | "get-insecure-random-u64" => {
            to.func_wrap(name, |mut store: Store<'_, T>, (): ()| Ok((next_random(store.data_mut()),)))
        }
        "insecure-seed" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            let state = store.data_mut();
            Ok(((next_random(state), next_random(state)),))
        }),
        "get-random-bytes" | "get-insecure-random-bytes" => {
            to.func_wrap(name, |mut store: Store<'_, T>, (length,): (u64,)| {
                if length > MAX_RANDOM_OCTETS {
                    bail!("{length} random octets at once exceed the limit of {MAX_RANDOM_OCTETS}");
                }
                let mut octets = Vec::with_capacity(length as usize + 8);
                while (octets.len() as u64) < length {
                    octets.extend_from_slice(&next_random(store.data_mut()).to_le_bytes());
                }
                octets.truncate(length as usize);
                Ok((octets,))
            })
        }
        _ => unknown_function(name),
    }
}

/// A random number, or the next number of the fixed sequence (SplitMix64 from 0). The sequence never repeats a single
/// number, so that rejection sampling ends.
fn next_random(from: &mut impl WasiHost) -> u64 {
    if let Some(number) = from.random() {
        return number;
    }
    from.random_sequence().next()
}

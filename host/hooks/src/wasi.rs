//! The empty world for guests of other languages, whose run-time libraries ask for WASI 0.2 whether the plugin needs it or
//! not: no files, no sockets, no environment, no arguments, no input; a clock that stands at the time of the call; chance as
//! granted; what is printed goes to the plugin's log.
//!
//! Nothing here blocks: to wait for a clock ends at once, at the same time as it began. What is not there can be linked, and
//! traps when it is called.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType,
};
use wasmtime::{Result, StoreContextMut, bail};

/// What the empty world has: what a store's state gives to it.
pub(crate) trait Ambient {
    /// The time of the call, in milliseconds since the Unix epoch.
    fn now_ms(&mut self) -> u64;
    /// A random number; `None`: chance is not granted, and the fixed sequence is used.
    fn random(&mut self) -> Option<u64>;
    /// Where the fixed sequence stands. Whoever sets it to 0 before each call has calls that are repeated exactly.
    fn sequence(&mut self) -> &mut u64;
    /// A line for the log: at most [`LINE`] octets, not empty, with whatever characters the guest printed.
    fn say(&mut self, line: &str);
}

/// Octets of a line that is printed; longer ones come in pieces.
pub(crate) const LINE: usize = 1024;
/// Lines of one write: what is over is left out.
const LINES: usize = 64;
/// Octets that a guest is told it may write at a time.
const WRITE: u64 = 4096;
/// Random octets that a guest may have at a time.
const RANDOM: u64 = 64 * 1024;

/// Whether an import is of this world.
pub(crate) fn is_ambient(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Links what a component imports of WASI 0.2, each name with the version that the component names. For a component that
/// imports nothing of it, nothing is done.
///
/// # Errors
/// Another major version, which has other types; or the linker has such a name already.
pub(crate) fn serve<T: Ambient + 'static>(linker: &mut Linker<T>, component: &Component) -> Result<()> {
    let engine = linker.engine().clone();
    for (import, item) in component.component_type().imports(&engine) {
        if !is_ambient(import) {
            continue;
        }
        let (interface, version) = import.split_once('@').unwrap_or((import, ""));
        let ComponentItem::ComponentInstance(items) = item.ty else {
            bail!("imports {import}, which is no interface");
        };
        if !version.starts_with("0.2.") {
            bail!("imports {import}; the host has the names of WASI 0.2: build the plugin for wasip2");
        }
        let mut instance = linker.instance(import)?;
        for (name, item) in items.exports(&engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) if !define(&mut instance, interface, name)? => {
                    let what = format!("{interface}#{name}");
                    instance.func_new(name, move |_, _, _, _| {
                        bail!("{what} is not there: a plugin has no files, no sockets and no other world")
                    })?;
                }
                // The same resource comes again under its name in each interface that uses it.
                ComponentItem::Resource(_) => instance.resource(name, resource(name), |_, _| Ok(()))?,
                _ => (),
            }
        }
    }
    Ok(())
}

/// Standard input, which is at its end.
enum Input {}
/// Standard output or standard error.
enum Output {}
/// Something to wait for; it is always ready.
enum Pollable {}
/// Why a stream failed; no stream does.
enum Failure {}
/// A resource that there is never one of.
enum Nothing {}

fn resource(name: &str) -> ResourceType {
    match name {
        "input-stream" => ResourceType::host::<Input>(),
        "output-stream" => ResourceType::host::<Output>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "error" => ResourceType::host::<Failure>(),
        _ => ResourceType::host::<Nothing>(),
    }
}

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[allow(dead_code, reason = "part of the type, and no operation fails")]
    Failed(Resource<Failure>),
    #[component(name = "closed")]
    Closed,
}

#[derive(ComponentType, Lift, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

/// Any resource of a kind is like any other, so they need no numbers and nothing is kept for them.
fn any<R: 'static>() -> Resource<R> {
    Resource::new_own(0)
}

type Store<'a, T> = StoreContextMut<'a, T>;
type Streamed<R> = std::result::Result<R, StreamError>;

/// Defines a function, if it is there. The types of arguments and answers are checked when a component is linked.
fn define<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, interface: &str, name: &str) -> Result<bool> {
    match interface {
        "wasi:cli/environment" | "wasi:cli/exit" | "wasi:filesystem/preopens" => surroundings(to, name)?,
        "wasi:cli/stdin" | "wasi:cli/stdout" | "wasi:cli/stderr" => standard(to, name)?,
        "wasi:cli/terminal-stdin" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((None::<Resource<Nothing>>,)))?;
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

fn unknown(name: &str) -> Result<()> {
    bail!("{name} is not of WASI 0.2 as this host knows it")
}

fn surroundings<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-environment" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((Vec::<(String, String)>::new(),)))
        }
        "get-arguments" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((Vec::<String>::new(),))),
        "initial-cwd" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((None::<String>,))),
        "get-directories" => {
            to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((Vec::<(Resource<Nothing>, String)>::new(),)))
        }
        "exit" => to.func_wrap(name, |_: Store<'_, T>, (status,): (std::result::Result<(), ()>,)| {
            exit(u8::from(status.is_err()))
        }),
        "exit-with-code" => to.func_wrap(name, |_: Store<'_, T>, (code,): (u8,)| exit(code)),
        _ => unknown(name),
    }
}

fn exit(code: u8) -> Result<()> {
    bail!("the plugin ended itself with code {code}; it is to return from its calls")
}

fn standard<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-stdin" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((any::<Input>(),))),
        "get-stdout" | "get-stderr" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((any::<Output>(),))),
        _ => unknown(name),
    }
}

fn wall_clock<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "now" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            let now = store.data_mut().now_ms();
            Ok((Datetime { seconds: now / 1000, nanoseconds: (now % 1000) as u32 * 1_000_000 },))
        }),
        "resolution" => to.func_wrap(name, |_: Store<'_, T>, (): ()| {
            Ok((Datetime { seconds: 0, nanoseconds: 1_000_000 },))
        }),
        _ => unknown(name),
    }
}

fn monotonic_clock<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "now" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            Ok((store.data_mut().now_ms().saturating_mul(1_000_000),))
        }),
        "resolution" => to.func_wrap(name, |_: Store<'_, T>, (): ()| Ok((1_000_000_u64,))),
        "subscribe-instant" | "subscribe-duration" => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (u64,)| Ok((any::<Pollable>(),)))
        }
        _ => unknown(name),
    }
}

fn poll<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "[method]pollable.ready" => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Pollable>,)| Ok((true,)))
        }
        "[method]pollable.block" => to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Pollable>,)| Ok(())),
        "poll" => to.func_wrap(name, |_: Store<'_, T>, (wanted,): (Vec<Resource<Pollable>>,)| {
            if wanted.is_empty() {
                bail!("poll of nothing would never end");
            }
            Ok(((0..).take(wanted.len()).collect::<Vec<u32>>(),))
        }),
        _ => unknown(name),
    }
}

fn streams<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<bool> {
    let Some((kind, method)) = name.strip_prefix("[method]").and_then(|name| name.split_once('.')) else {
        return Ok(false);
    };
    match (kind, method) {
        ("input-stream", "read" | "blocking-read") => {
            to.func_wrap(name, |_: Store<'_, T>, (_, _): (Resource<Input>, u64)| {
                Ok((Streamed::<Vec<u8>>::Err(StreamError::Closed),))
            })?;
        }
        ("input-stream", "skip" | "blocking-skip") => {
            to.func_wrap(name, |_: Store<'_, T>, (_, _): (Resource<Input>, u64)| {
                Ok((Streamed::<u64>::Err(StreamError::Closed),))
            })?;
        }
        ("input-stream", "subscribe") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Input>,)| Ok((any::<Pollable>(),)))?;
        }
        ("output-stream", "subscribe") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Output>,)| Ok((any::<Pollable>(),)))?;
        }
        ("output-stream", "check-write") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Output>,)| Ok((Streamed::Ok(WRITE),)))?;
        }
        ("output-stream", "flush" | "blocking-flush") => {
            to.func_wrap(name, |_: Store<'_, T>, (_,): (Resource<Output>,)| Ok((Streamed::Ok(()),)))?;
        }
        ("output-stream", "write" | "blocking-write-and-flush") => {
            to.func_wrap(name, |mut store: Store<'_, T>, (_, octets): (Resource<Output>, Vec<u8>)| {
                print(store.data_mut(), &octets);
                Ok((Streamed::Ok(()),))
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Says what was printed, line by line. A line that comes in several writes is several lines: the libraries of guests collect
/// lines themselves.
fn print(to: &mut impl Ambient, octets: &[u8]) {
    let lines = octets.split(|octet| matches!(octet, b'\n' | b'\r')).filter(|line| !line.is_empty());
    for piece in lines.flat_map(|line| line.chunks(LINE / 3)).take(LINES) {
        // An octet that is no UTF-8 becomes three.
        to.say(&String::from_utf8_lossy(piece));
    }
}

fn random<T: Ambient + 'static>(to: &mut LinkerInstance<'_, T>, name: &str) -> Result<()> {
    match name {
        "get-random-u64" | "get-insecure-random-u64" => {
            to.func_wrap(name, |mut store: Store<'_, T>, (): ()| Ok((draw(store.data_mut()),)))
        }
        "insecure-seed" => to.func_wrap(name, |mut store: Store<'_, T>, (): ()| {
            let state = store.data_mut();
            Ok(((draw(state), draw(state)),))
        }),
        "get-random-bytes" | "get-insecure-random-bytes" => {
            to.func_wrap(name, |mut store: Store<'_, T>, (length,): (u64,)| {
                if length > RANDOM {
                    bail!("{length} random octets at once are more than {RANDOM}");
                }
                let mut octets = Vec::with_capacity(length as usize + 8);
                while (octets.len() as u64) < length {
                    octets.extend_from_slice(&draw(store.data_mut()).to_le_bytes());
                }
                octets.truncate(length as usize);
                Ok((octets,))
            })
        }
        _ => unknown(name),
    }
}

/// A random number, or the next of the fixed sequence (SplitMix64 from 0): never one number for ever, which would be endless
/// to those who draw until they like it.
fn draw(from: &mut impl Ambient) -> u64 {
    if let Some(number) = from.random() {
        return number;
    }
    let state = from.sequence();
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

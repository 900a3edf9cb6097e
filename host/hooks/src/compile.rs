//! Compiling, out of the way of traffic.

use crate::HookError;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Gives this thread the lowest priority. On Linux niceness is a thread's own; without it the thread is only less polite.
pub(crate) fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19) {
        tracing::debug!(%error, "working at ordinary priority");
    }
}

/// Compiles a component on a thread of its own that gives way to all others: with traffic on every processor it takes
/// longer, and traffic does not notice. For the same reason the engine does not compile on several threads.
pub(crate) fn compile(engine: &Engine, octets: &[u8]) -> Result<Component, HookError> {
    let compiled = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("hook-compile".to_owned())
            .spawn_scoped(scope, || {
                give_way();
                Component::new(engine, octets).map_err(|error| HookError::Broken(format!("{error:#}")))
            })
            .map(std::thread::ScopedJoinHandle::join)
    });
    match compiled {
        Ok(Ok(compiled)) => compiled,
        Ok(Err(_)) => Err(HookError::Broken("the compiler panicked".to_owned())),
        Err(error) => Err(HookError::Engine(format!("starting a thread to compile on: {error}"))),
    }
}

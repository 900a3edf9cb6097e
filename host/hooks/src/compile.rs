//! Compilation. During traffic it has the lowest priority, so that it does not slow traffic down.

use crate::HookError;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Sets this thread to the lowest priority. On Linux niceness belongs to a thread; elsewhere the thread keeps its
/// priority.
pub(crate) fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19) {
        tracing::debug!(%error, "running at normal priority");
    }
}

/// The priority of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// The daemon's own priority, for compilations before traffic begins: at the lowest priority, a busy machine would delay
    /// them for minutes.
    Normal,
    /// The lowest priority: if traffic uses all processors, the compilation takes longer, and traffic is not slowed down.
    Lowest,
}

/// Compiles a component on a dedicated thread. The engine compiles on one thread, so that traffic keeps the other
/// processors.
pub(crate) fn compile(engine: &Engine, octets: &[u8], priority: Priority) -> Result<Component, HookError> {
    let compiled = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("hook-compile".to_owned())
            .spawn_scoped(scope, || {
                if priority == Priority::Lowest {
                    lower_priority();
                }
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

//! Critical threads. If one of them panics, the process exits at once, so that the service manager restarts it;
//! accepted messages are on disk.

use journal::JournalError;
use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::thread::{Builder, JoinHandle};
use store::StoreError;

/// The exit status after a panic of a critical thread; 3 is that of a failed store.
pub(crate) const PANICKED: i32 = 4;
/// Exit status of a node that another node has replaced as leader.
const REPLACED: i32 = 5;

thread_local! {
    static IS_CRITICAL: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Starts a critical thread.
///
/// # Errors
/// Fails if the system cannot start a thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if IS_CRITICAL.get() {
                stop(panic);
            }
        }));
    });
    Builder::new().name(name.to_owned()).spawn(move || {
        IS_CRITICAL.set(true);
        work();
    })
}

/// Exits before the thread unwinds: other threads must not use its state, and dropping millions of messages takes time.
fn stop(panic: &PanicHookInfo<'_>) -> ! {
    let at = panic.location().map(ToString::to_string);
    tracing::error!(
        thread = std::thread::current().name(),
        at,
        "critical thread panicked, exiting; accepted messages are recovered at the next start"
    );
    std::process::exit(PANICKED);
}

/// Exits after a failure of the store: no answers may be sent any more. Everything that was answered is on disk, and
/// a restart recovers it.
pub(crate) fn fail_stop(error: &StoreError) -> ! {
    if let StoreError::Journal(JournalError::Fenced { by }) = error {
        let term = by.0;
        tracing::error!(term, "another node leads the cluster, exiting; start again to follow it");
        std::process::exit(REPLACED);
    }
    tracing::error!(%error, "commit failed, exiting; nothing of the failed batch was acknowledged");
    std::process::exit(3);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_loop;
    use std::process::Command;

    /// Runs one test of this executable in another process, with a variable set.
    fn in_another_process(test: &str) -> Option<i32> {
        let program = std::env::current_exe().unwrap();
        let ended = Command::new(program).args(["--exact", test]).env("IN_ANOTHER_PROCESS", "1").output();
        ended.unwrap().status.code()
    }

    fn is_other_process() -> bool {
        std::env::var_os("IN_ANOTHER_PROCESS").is_some()
    }

    #[test]
    fn a_panic_of_a_critical_thread_exits_with_its_own_status() {
        if is_other_process() {
            let _ = spawn("vital", || panic!("injected fault")).unwrap().join();
            return;
        }
        let test = "critical_thread::tests::a_panic_of_a_critical_thread_exits_with_its_own_status";
        assert_eq!(in_another_process(test), Some(PANICKED));
    }

    #[test]
    fn a_panic_of_the_core_ends_the_process() {
        if is_other_process() {
            let core = core_loop::tests::running_core();
            let _ = core.query(|_, _| panic!("injected fault"));
            return;
        }
        let test = "critical_thread::tests::a_panic_of_the_core_ends_the_process";
        assert_eq!(in_another_process(test), Some(PANICKED));
    }

    #[test]
    fn a_panic_of_another_thread_ends_that_thread_only() {
        if is_other_process() {
            spawn("vital", || ()).unwrap().join().unwrap();
            let other = std::thread::spawn(|| panic!("injected fault"));
            assert!(other.join().is_err());
            return;
        }
        let test = "critical_thread::tests::a_panic_of_another_thread_ends_that_thread_only";
        assert_eq!(in_another_process(test), Some(0));
    }
}

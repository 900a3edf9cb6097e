//! Threads without which the appliance does no work. If one of them panics, the process ends at once, so that the service
//! manager starts it again: what was promised is on disk.

use std::cell::Cell;
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::thread::{Builder, JoinHandle};

/// The exit status of the process after a panic of a vital thread; 3 is that of a failed store.
pub(crate) const PANICKED: i32 = 4;

thread_local! {
    static VITAL: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Starts a vital thread.
///
/// # Errors
/// When the system has no thread left.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if VITAL.get() {
                stop(panic);
            }
        }));
    });
    Builder::new().name(name.to_owned()).spawn(move || {
        VITAL.set(true);
        work();
    })
}

/// Before the thread unwinds: nothing of its state may be used by the others, and dropping millions of messages takes time.
fn stop(panic: &PanicHookInfo<'_>) -> ! {
    let at = panic.location().map(ToString::to_string);
    tracing::error!(
        thread = std::thread::current().name(),
        at,
        "a thread without which nothing works panicked; stopping at once, a start recovers what was accepted"
    );
    std::process::exit(PANICKED);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_loop;
    use std::process::Command;

    /// Runs one test of this program again, with this variable set.
    fn in_another_process(test: &str) -> Option<i32> {
        let program = std::env::current_exe().unwrap();
        let ended = Command::new(program).args(["--exact", test]).env("IN_ANOTHER_PROCESS", "1").output();
        ended.unwrap().status.code()
    }

    fn is_other_process() -> bool {
        std::env::var_os("IN_ANOTHER_PROCESS").is_some()
    }

    #[test]
    fn a_panic_of_a_vital_thread_ends_the_process_with_its_own_status() {
        if is_other_process() {
            let _ = spawn("vital", || panic!("a fault, as the test wants it")).unwrap().join();
            return;
        }
        let test = "vital::tests::a_panic_of_a_vital_thread_ends_the_process_with_its_own_status";
        assert_eq!(in_another_process(test), Some(PANICKED));
    }

    #[test]
    fn a_panic_of_the_core_ends_the_process() {
        if is_other_process() {
            let core = core_loop::tests::alone();
            let _ = core.look(|_, _| panic!("a fault, as the test wants it"));
            return;
        }
        let test = "vital::tests::a_panic_of_the_core_ends_the_process";
        assert_eq!(in_another_process(test), Some(PANICKED));
    }

    #[test]
    fn a_panic_of_another_thread_ends_that_thread_only() {
        if is_other_process() {
            spawn("vital", || ()).unwrap().join().unwrap();
            let other = std::thread::spawn(|| panic!("a fault, as the test wants it"));
            assert!(other.join().is_err());
            return;
        }
        let test = "vital::tests::a_panic_of_another_thread_ends_that_thread_only";
        assert_eq!(in_another_process(test), Some(0));
    }
}

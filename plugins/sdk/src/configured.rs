//! The configured plugin of an instance.

use std::cell::OnceCell;

/// The configured plugin of this instance. The host configures an instance once, before its first call; it creates a
/// new instance for a new document.
pub struct Configured<T>(OnceCell<T>);

impl<T> Configured<T> {
    /// Creates an unconfigured cell.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    /// Stores the result of `configure`.
    ///
    /// # Errors
    /// The instance is configured already.
    pub fn set(&self, plugin: T) -> Result<(), String> {
        self.0.set(plugin).map_err(|_| "this instance is configured already".to_owned())
    }

    /// The result of `configure`.
    ///
    /// # Panics
    /// The instance is not configured, or `configure` failed: the host does not call such an instance.
    pub fn get(&self) -> &T {
        self.0.get().expect("asked before it was configured")
    }
}

impl<T> Default for Configured<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reports the message and the source line of a panic to the host, which shows them with the fault.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| crate::fault::report(&panic.to_string())));
}

/// Stores a plugin in its instance, and implements the exported functions for it.
#[doc(hidden)]
#[macro_export]
macro_rules! __configured_guest {
    ($plugin:ty, $trait:ident, $guest:ident, |$cell:ident| { $($calls:tt)* }) => {
        std::thread_local! {
            static PLUGIN: $crate::configured::Configured<$plugin> = const { $crate::configured::Configured::new() };
        }
        struct Exported;
        impl $crate::$guest for Exported {
            fn configure(document: String) -> Result<(), String> {
                $crate::configured::report_panics();
                let plugin = <$plugin as $crate::$trait>::configure(&document)?;
                PLUGIN.with(|cell| cell.set(plugin))
            }
            $($calls)*
        }
    };
}

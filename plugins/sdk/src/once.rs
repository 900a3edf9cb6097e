//! Where an instance keeps what `configure` made.

use std::cell::OnceCell;

/// The plugin of this instance. The host configures an instance once, before its first call; it makes a new instance for
/// a new document.
pub struct Configured<T>(OnceCell<T>);

impl<T> Configured<T> {
    /// Not configured yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    /// Keeps what `configure` made.
    ///
    /// # Errors
    /// The instance was configured before.
    pub fn set(&self, plugin: T) -> Result<(), String> {
        self.0.set(plugin).map_err(|_| "this instance is configured already".to_owned())
    }

    /// What `configure` made.
    ///
    /// # Panics
    /// When it was not called, or refused: the host does not ask such an instance.
    pub fn get(&self) -> &T {
        self.0.get().expect("asked before it was configured")
    }
}

impl<T> Default for Configured<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps a plugin in its instance, and makes of it what the host calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __kept {
    ($plugin:ty, $trait:ident, $guest:ident, |$kept:ident| { $($calls:tt)* }) => {
        std::thread_local! {
            static PLUGIN: $crate::once::Configured<$plugin> = const { $crate::once::Configured::new() };
        }
        struct Exported;
        impl $crate::$guest for Exported {
            fn configure(document: String) -> Result<(), String> {
                let plugin = <$plugin as $crate::$trait>::configure(&document)?;
                PLUGIN.with(|kept| kept.set(plugin))
            }
            $($calls)*
        }
    };
}

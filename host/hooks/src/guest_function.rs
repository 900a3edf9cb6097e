//! Functions that guests export.
//!
//! A guest's functions are found by names that contain its contract version: most types are the same in all versions, but
//! the code that wasmtime generates contains only one name.
//!
//! `unsafe`: [`TypedFunc::new_unchecked`] needs the proof that a function has a certain type. wasmtime's own check
//! ([`Func::typed`]) gives it when the instance is made, for arguments that borrow for `'static`. A call borrows for a
//! shorter time, which wasmtime's types cannot express after the check, and the representation of arguments does not
//! depend on a lifetime.
#![allow(unsafe_code)]

use crate::contract::{PACKAGE, WitVersion};
use crate::host_calls::InstanceState;
use std::marker::PhantomData;
use wasmtime::component::{ComponentNamedList, Func, Instance, Lift, Lower, TypedFunc};
use wasmtime::{Result, Store, format_err};

/// The name and type of an exported function.
pub(crate) trait Signature {
    const NAME: &'static str;
    /// The arguments, as a tuple. Only lifetimes may depend on `'a`.
    type Arguments<'a>: ComponentNamedList + Lower;
    type Answer: Lift + 'static;
}

/// The name and type of an exported function without a result.
pub(crate) trait Procedure {
    const NAME: &'static str;
    /// The arguments, as for [`Signature`].
    type Arguments<'a>: ComponentNamedList + Lower;
}

/// `configure`, which all worlds have.
pub(crate) struct Configure;

impl Signature for Configure {
    const NAME: &'static str = "configure";
    type Arguments<'a> = (&'a str,);
    type Answer = std::result::Result<(), String>;
}

/// The exported interface of an instance.
pub(crate) struct Exports<'s> {
    pub(crate) store: &'s mut Store<InstanceState>,
    pub(crate) instance: Instance,
    pub(crate) interface: &'static str,
    pub(crate) version: WitVersion,
}

/// An exported function of an instance.
pub(crate) struct GuestFunction<S> {
    function: Func,
    signature: PhantomData<fn() -> S>,
}

impl Exports<'_> {
    /// The exports of another interface that the world does not require; `None` if the component lacks it.
    pub(crate) fn optional(&mut self, interface: &'static str) -> Option<Exports<'_>> {
        let name = format!("{PACKAGE}{interface}@{}", self.version.number());
        self.instance.get_export_index(&mut *self.store, None, &name)?;
        Some(Exports { store: self.store, instance: self.instance, interface, version: self.version })
    }
}

/// Finds a function by its name.
fn find(exports: &mut Exports<'_>, name: &str) -> Result<Func> {
    let Exports { store, instance, interface, version } = exports;
    let interface = format!("{PACKAGE}{interface}@{}", version.number());
    let found = instance
        .get_export_index(&mut *store, None, &interface)
        .and_then(|index| instance.get_export_index(&mut *store, Some(&index), name))
        .and_then(|index| instance.get_func(&mut *store, index));
    found.ok_or_else(|| format_err!("{interface} has no function {name}"))
}

impl<S: Signature> GuestFunction<S> {
    /// Finds the function, and checks its type.
    pub(crate) fn find(exports: &mut Exports<'_>) -> Result<Self> {
        let function = find(exports, S::NAME)?;
        function.typed::<S::Arguments<'static>, (S::Answer,)>(&*exports.store)?;
        Ok(Self { function, signature: PhantomData })
    }

    /// Calls the function.
    pub(crate) fn call(
        &self,
        store: &mut Store<InstanceState>,
        arguments: S::Arguments<'_>,
    ) -> Result<S::Answer> {
        // SAFETY: `find` has checked the type, except for the lifetime of the arguments.
        let function = unsafe { TypedFunc::<S::Arguments<'_>, (S::Answer,)>::new_unchecked(self.function) };
        function.call(store, arguments).map(|(answer,)| answer)
    }
}

impl<P: Procedure> GuestFunction<P> {
    /// Finds the function, and checks its type.
    pub(crate) fn find_procedure(exports: &mut Exports<'_>) -> Result<Self> {
        let function = find(exports, P::NAME)?;
        function.typed::<P::Arguments<'static>, ()>(&*exports.store)?;
        Ok(Self { function, signature: PhantomData })
    }

    /// Calls the function.
    pub(crate) fn run(&self, store: &mut Store<InstanceState>, arguments: P::Arguments<'_>) -> Result<()> {
        // SAFETY: `find_procedure` has checked the type, except for the lifetime of the arguments.
        let function = unsafe { TypedFunc::<P::Arguments<'_>, ()>::new_unchecked(self.function) };
        function.call(store, arguments)
    }
}

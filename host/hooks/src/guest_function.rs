//! Functions that guests export.
//!
//! A guest's functions are found by the name of its contract version, because most types are the same in all versions
//! and the code that wasmtime generates knows one name only.
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

impl<S: Signature> GuestFunction<S> {
    /// Finds the function, and checks its type.
    pub(crate) fn find(exports: &mut Exports<'_>) -> Result<Self> {
        let Exports { store, instance, interface, version } = exports;
        let interface = format!("{PACKAGE}{interface}@{}", version.number());
        let found = instance
            .get_export_index(&mut *store, None, &interface)
            .and_then(|index| instance.get_export_index(&mut *store, Some(&index), S::NAME))
            .and_then(|index| instance.get_func(&mut *store, index));
        let function = found.ok_or_else(|| format_err!("{interface} has no function {}", S::NAME))?;
        function.typed::<S::Arguments<'static>, (S::Answer,)>(&*store)?;
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

//! The types of routers of earlier contract versions that differ from the current version.

use crate::bindings::guest::exports::switchyard::hooks::routing as wit;
use crate::bindings::guest::switchyard::hooks::types::AddressParam;
use crate::guest_function::Signature;
use wasmtime::component::{ComponentType, Lift, Lower};

pub(crate) struct RouteV0_2;

impl Signature for RouteV0_2 {
    const NAME: &'static str = "route";
    type Arguments<'a> = (wit::Message<'a>,);
    type Answer = DecisionV0_2;
}

pub(crate) struct RouteV0_1;

impl Signature for RouteV0_1 {
    const NAME: &'static str = "route";
    type Arguments<'a> = (MessageV0_1<'a>,);
    type Answer = DecisionV0_1;
}

/// A decision without changes.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct DecisionV0_2 {
    verdict: wit::Verdict,
    note: Option<String>,
}

impl From<DecisionV0_2> for wit::Decision {
    fn from(DecisionV0_2 { verdict, note }: DecisionV0_2) -> Self {
        Self { verdict, changes: Vec::new(), note }
    }
}

/// A message without its number of segments.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct MessageV0_1<'a> {
    origin: &'a str,
    source: AddressParam<'a>,
    destination: AddressParam<'a>,
    #[component(name = "service-type")]
    service_type: Option<&'a str>,
    #[component(name = "data-coding")]
    data_coding: u8,
    priority: u8,
    length: u32,
    udhi: bool,
    #[component(name = "wants-receipt")]
    wants_receipt: bool,
}

impl<'a> From<wit::Message<'a>> for MessageV0_1<'a> {
    fn from(message: wit::Message<'a>) -> Self {
        Self {
            origin: message.origin,
            source: message.source,
            destination: message.destination,
            service_type: message.service_type,
            data_coding: message.data_coding,
            priority: message.priority,
            length: message.length,
            udhi: message.udhi,
            wants_receipt: message.wants_receipt,
        }
    }
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct DecisionV0_1 {
    verdict: VerdictV0_1,
    note: Option<String>,
}

/// A verdict without `home`.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub(crate) enum VerdictV0_1 {
    #[component(name = "pass")]
    Pass,
    #[component(name = "forward")]
    Forward(Vec<wit::Leg>),
    #[component(name = "hold")]
    Hold(u64),
    #[component(name = "reject")]
    Reject(wit::RejectReason),
}

impl From<DecisionV0_1> for wit::Decision {
    fn from(DecisionV0_1 { verdict, note }: DecisionV0_1) -> Self {
        let verdict = match verdict {
            VerdictV0_1::Pass => wit::Verdict::Pass,
            VerdictV0_1::Forward(legs) => wit::Verdict::Forward(legs),
            VerdictV0_1::Hold(until) => wit::Verdict::Hold(until),
            VerdictV0_1::Reject(reason) => wit::Verdict::Reject(reason),
        };
        Self { verdict, changes: Vec::new(), note }
    }
}

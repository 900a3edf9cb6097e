//! Front ends: requests of customers and their responses.

use super::{Hooks, describe_fault};
use crate::chain::ChainOutcome;
use crate::fault_examples::LazyMessageId;
use crate::front_end_calls::{FrontEndOutcome, FrontEndReading, FrontEndRequest};
use crate::host_call_log::HostCallLog;
use crate::worlds::{FrontEndAnswer, FrontEndCall, FrontEndQuestion, PluginResponse};
use model::Timestamp;

impl Hooks {
    /// Lets a front end read a request. Returns the result, and the call for [`Hooks::reply`].
    ///
    /// # Errors
    /// The description of the plugin's fault, or no plugin of that name is bound.
    pub fn read_request(
        &self,
        request: &FrontEndRequest,
        now: Timestamp,
    ) -> Result<(FrontEndReading, FrontEndCall), String> {
        let question = FrontEndQuestion::Read(request);
        match self.front_end.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(FrontEndAnswer::Read(reading), generation) => {
                Ok((*reading, FrontEndCall(generation)))
            }
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(FrontEndAnswer::Replied(_), _) | ChainOutcome::Undecided { .. } => {
                Err(format!("plugin {} is not bound to the hook front-end", request.plugin))
            }
        }
    }

    /// Lets the version that read a request write its response.
    ///
    /// # Errors
    /// The description of the plugin's fault.
    pub fn reply(
        &self,
        call: &FrontEndCall,
        request: &FrontEndRequest,
        outcome: &FrontEndOutcome,
        now: Timestamp,
    ) -> Result<PluginResponse, String> {
        match self.front_end.ask_generation(&call.0, FrontEndQuestion::Reply(request, outcome), now) {
            ChainOutcome::Decided(FrontEndAnswer::Replied(response), _) => Ok(response),
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(FrontEndAnswer::Read(_), _) | ChainOutcome::Undecided { .. } => {
                Err("the plugin did not answer".to_owned())
            }
        }
    }
}

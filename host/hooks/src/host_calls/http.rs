use super::{HostInterface, InstanceState, recorded_answers};
use crate::bindings::host::switchyard::hooks::http::{Failure, Host, Request, Response};
use crate::host_call_log::HostCallKind;
use capabilities::FetchFailure;

/// Maximum number of requests in one call.
pub(crate) const MAX_FETCHES_PER_CALL: u32 = 16;

impl Host for InstanceState {
    fn fetch(&mut self, request: Request) -> Result<Response, Failure> {
        self.count_call(HostInterface::Http);
        if !self.may_fetch || self.configuring {
            return Err(Failure::NotNow);
        }
        if self.fetches_left == 0 {
            return Err(Failure::NotAllowed(format!(
                "more than {MAX_FETCHES_PER_CALL} requests in one call"
            )));
        }
        self.fetches_left -= 1;
        let key = recorded_answers::request_key(&request);
        if let Some(recorded) = self.call_log.recall(HostCallKind::Http, &[&key]) {
            return recorded_answers::read_response(&recorded);
        }
        if self.call_log.is_replay() {
            return Err(Failure::NotNow);
        }
        let request = capabilities::FetchRequest {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        };
        let result = self.services.fetch.fetch(&self.context.plugin, &self.context.http_grants, request);
        let was_not_sent =
            matches!(&result, Err(FetchFailure::NotAllowed(_) | FetchFailure::NotConnected(_)));
        self.has_sent_request |= !was_not_sent;
        self.has_unanswered_request |= !was_not_sent && result.is_err();
        let result = match result {
            Ok(answer) => Ok(Response { status: answer.status, headers: answer.headers, body: answer.body }),
            Err(FetchFailure::NotAllowed(why)) => Err(Failure::NotAllowed(why)),
            Err(FetchFailure::TimedOut) => Err(Failure::TimedOut),
            Err(FetchFailure::TooLarge) => Err(Failure::TooLarge),
            Err(FetchFailure::NotConnected(why) | FetchFailure::Unreachable(why)) => {
                Err(Failure::Unreachable(why))
            }
        };
        self.call_log.append(HostCallKind::Http, &[&key], &recorded_answers::write_response(&result));
        result
    }
}

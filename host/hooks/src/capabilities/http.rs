use super::State;
use crate::bindings::host::switchyard::hooks::http::{Failure, Host, Request, Response};
use capabilities::FetchFailure;

/// Requests that one call may make.
pub(crate) const FETCHES: u32 = 16;

impl Host for State {
    fn fetch(&mut self, request: Request) -> Result<Response, Failure> {
        if !self.may_fetch || self.configuring {
            return Err(Failure::NotNow);
        }
        if self.fetches == 0 {
            return Err(Failure::NotAllowed(format!("more than {FETCHES} requests in one call")));
        }
        self.fetches -= 1;
        let request = capabilities::Request {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        };
        match self.powers.fetch.fetch(&self.label.plugin, &self.label.places, request) {
            Ok(answer) => Ok(Response { status: answer.status, headers: answer.headers, body: answer.body }),
            Err(FetchFailure::NotAllowed(why)) => Err(Failure::NotAllowed(why)),
            Err(FetchFailure::TimedOut) => Err(Failure::TimedOut),
            Err(FetchFailure::TooLarge) => Err(Failure::TooLarge),
            Err(FetchFailure::Unreachable(why)) => Err(Failure::Unreachable(why)),
        }
    }
}

use super::{HostInterface, InstanceState, recorded_answers};
use crate::bindings::host::switchyard::hooks::http::{Failure, Host, Request, Response};
use crate::host_call_log::HostCallKind;
use capabilities::{FetchFailure, FetchRequest, FetchResponse};

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
        let request = FetchRequest {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        };
        // Requests to a peer contain secrets, and another policy makes other requests: the answers are recorded by their
        // order.
        let is_for_peer = self.peer.is_some();
        let digest = recorded_answers::request_key(&request);
        let key: &[u8] = if is_for_peer { &[] } else { &digest };
        if is_for_peer {
            self.call_log.add_request(&request);
        }
        if let Some(recorded) = self.call_log.recall(HostCallKind::Http, &[key]) {
            let result = recorded_answers::read_response(&recorded).ok_or(Failure::NotNow)?;
            return self.finish_fetch(result);
        }
        if self.call_log.is_replay() {
            return Err(Failure::NotNow);
        }
        let result = self.services.fetch.fetch(&self.context.space, &self.context.http_grants, request);
        if is_for_peer {
            self.record_answer_of_peer(&result);
        } else {
            self.call_log.append(HostCallKind::Http, &[key], &recorded_answers::write_response(&result));
        }
        self.finish_fetch(result)
    }
}

impl InstanceState {
    fn record_answer_of_peer(&mut self, result: &Result<FetchResponse, FetchFailure>) {
        if !self.call_log.is_recording() {
            return;
        }
        let kept = recorded_answers::without_private_parts(result);
        let peer = self.peer.as_deref().unwrap_or_default();
        let has_secret = |octets: &[u8]| self.services.peer_secrets.occur_in(peer, octets);
        let quotes_secret = kept.as_ref().is_ok_and(|response| {
            has_secret(&response.body)
                || response.headers.iter().any(|(_, value)| has_secret(value.as_bytes()))
        });
        if quotes_secret {
            self.call_log.stop_recording();
        } else {
            self.call_log.append(HostCallKind::Http, &[&[]], &recorded_answers::write_response(&kept));
        }
    }

    /// Records whether the request was sent and answered, and returns the result for the plugin.
    fn finish_fetch(&mut self, result: Result<FetchResponse, FetchFailure>) -> Result<Response, Failure> {
        let was_not_sent =
            matches!(&result, Err(FetchFailure::NotAllowed(_) | FetchFailure::NotConnected(_)));
        self.has_sent_request |= !was_not_sent;
        self.has_unanswered_request |= !was_not_sent && result.is_err();
        match result {
            Ok(answer) => Ok(Response { status: answer.status, headers: answer.headers, body: answer.body }),
            Err(FetchFailure::NotAllowed(why)) => Err(Failure::NotAllowed(why)),
            Err(FetchFailure::TimedOut) => Err(Failure::TimedOut),
            Err(FetchFailure::TooLarge) => Err(Failure::TooLarge),
            Err(FetchFailure::NotConnected(why) | FetchFailure::Unreachable(why)) => {
                Err(Failure::Unreachable(why))
            }
        }
    }
}

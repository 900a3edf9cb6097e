//! A resolver that queries another system over HTTP.

use resolver_policy::Resolution;
use resolver_policy::http::Policy;
use switchyard_sdk::{Resolved, Resolver, http};

struct HttpResolver(Policy);

impl Resolver for HttpResolver {
    fn configure(document: &str) -> Result<Self, String> {
        Policy::parse(document).map(Self)
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        self.ask(msisdn).into()
    }
}

impl HttpResolver {
    fn ask(&self, msisdn: &str) -> Resolution {
        let Some(request) = self.0.request(msisdn) else { return self.0.invalid_number(msisdn) };
        let answer = http::fetch(&http::Request {
            method: request.method.to_owned(),
            url: request.url,
            headers: request.headers,
            body: request.body.into_bytes(),
        });
        match answer {
            Ok(response) => self.0.reply(response.status, &response.body),
            Err(failure) => self.0.try_later(match failure {
                http::Failure::NotAllowed(why) => format!("the appliance does not allow the request: {why}"),
                http::Failure::TimedOut => "no reply in time".to_owned(),
                http::Failure::TooLarge => "the reply is larger than the binding allows".to_owned(),
                http::Failure::Unreachable(why) => format!("unreachable: {why}"),
                http::Failure::NotNow => "requests are not possible now".to_owned(),
            }),
        }
    }
}

switchyard_sdk::export_resolver!(HttpResolver);

//! A lookup that finds network, porting and line type of a number in tables of the appliance, ENUM and HTTP services.

use number_portability_policy::{Answer, Naptr, Nothing, Number, Policy, Request, Sources};
use std::time::Duration;
use switchyard_sdk::lookup::{self, LookedUp, found, try_later, unknown};
use switchyard_sdk::{Lookup, dns, http, tables};

struct NumberPortability {
    policy: Policy,
    opened: Opened,
}

/// The tables, by the index of their source.
struct Opened(Vec<(usize, u32)>);

impl Lookup for NumberPortability {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        let opened = policy.tables().map(|(index, name)| Ok((index, tables::open(name)?)));
        let opened = Opened(opened.collect::<Result<_, String>>()?);
        Ok(Self { policy, opened })
    }

    fn look_up(&self, number: &lookup::Number) -> LookedUp {
        let number = Number { digits: &number.digits, international: number.international };
        let outcome = self.policy.look_up(number, &self.opened);
        let answer = match outcome.answer {
            Answer::Found(attributes, valid) => {
                attributes.iter().fold(found(valid), |answer, (name, value)| answer.with(name, value))
            }
            Answer::Unknown(valid) => unknown(valid),
            Answer::TryLater => try_later(),
        };
        answer.because(outcome.note)
    }
}

impl Sources for Opened {
    fn row(&self, source: usize, number: &str) -> Option<String> {
        let (_, table) = self.0.iter().find(|(index, _)| *index == source)?;
        // A table of whole numbers has no prefixes.
        tables::get(*table, number).or_else(|| Some(tables::get_prefix(*table, number)?.value))
    }

    fn naptrs(&self, name: &str) -> Result<(Vec<Naptr>, u32), Nothing> {
        let found = dns::query_naptr(name).map_err(|failure| match failure {
            dns::Failure::None(ttl) => Nothing::Unknown(Some(Duration::from_secs(u64::from(ttl)))),
            dns::Failure::NotAllowed(why) => {
                Nothing::Failed(format!("the appliance does not allow the question: {why}"))
            }
            dns::Failure::TimedOut => Nothing::Failed("no answer in time".to_owned()),
            dns::Failure::Failed(why) => Nothing::Failed(why),
            dns::Failure::NotNow => Nothing::Failed("questions are not possible now".to_owned()),
        })?;
        let records = found.records.into_iter().map(|record| Naptr {
            flags: record.flags,
            services: record.services,
            regexp: record.regexp,
        });
        Ok((records.collect(), found.ttl))
    }

    fn fetch(&self, request: Request) -> Result<(u16, Vec<u8>), String> {
        let Request { url, headers } = request;
        let request = http::Request { method: "GET".to_owned(), url, headers, body: Vec::new() };
        match http::fetch(&request) {
            Ok(response) => Ok((response.status, response.body)),
            Err(http::Failure::NotAllowed(why)) => {
                Err(format!("the appliance does not allow the request: {why}"))
            }
            Err(http::Failure::TimedOut) => Err("no response in time".to_owned()),
            Err(http::Failure::TooLarge) => Err("the response is larger than the binding allows".to_owned()),
            Err(http::Failure::Unreachable(why)) => Err(format!("unreachable: {why}")),
            Err(http::Failure::NotNow) => Err("requests are not possible now".to_owned()),
        }
    }
}

switchyard_sdk::export_lookup!(NumberPortability);

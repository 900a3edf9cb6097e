//! HTTP requests to the appliance and their responses, in the types of front ends and plugins of peers.

use crate::bindings::guest::switchyard::hooks::types as wit;
use crate::fault::Fault;

/// Maximum number of headers of a response.
const MAX_HEADERS: usize = 50;
/// Maximum length of the names and values of all headers of a response, in octets.
const MAX_HEADER_OCTETS: usize = 8_192;

/// A plugin's response to an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginResponse {
    /// The HTTP status, 200 to 599.
    pub status: u16,
    /// Names and values: at most 50, of 8,192 octets together. They are not checked against HTTP.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The headers of a request, in the guest's types.
pub(super) fn header_params(headers: &[(String, String)]) -> Vec<wit::HttpHeaderParam<'_>> {
    headers.iter().map(|(name, value)| wit::HttpHeaderParam { name, value }).collect()
}

pub(super) fn decode_response(response: wit::HttpResponse) -> Result<PluginResponse, Fault> {
    let wit::HttpResponse { status, headers, body } = response;
    if !(200..600).contains(&status) {
        return Err(Fault::verdict(format!("the response has status {status}: it is 200 to 599")));
    }
    let count = headers.len();
    if count > MAX_HEADERS {
        return Err(Fault::verdict(format!("the response has {count} headers: at most {MAX_HEADERS}")));
    }
    let octets: usize = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
    if octets > MAX_HEADER_OCTETS {
        return Err(Fault::verdict(format!(
            "the headers of the response have {octets} octets: at most {MAX_HEADER_OCTETS}"
        )));
    }
    let headers = headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(PluginResponse { status, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(status: u16, count: usize, length: usize) -> Result<PluginResponse, Fault> {
        let header = wit::HttpHeaderResult { name: "x".to_owned(), value: "v".repeat(length - 1) };
        decode_response(wit::HttpResponse { status, headers: vec![header; count], body: Vec::new() })
    }

    #[test]
    fn status_and_headers_have_limits() {
        assert_eq!(decode(200, MAX_HEADERS, 2).unwrap().headers.len(), MAX_HEADERS);
        assert!(decode(599, 1, MAX_HEADER_OCTETS).is_ok());
        for (status, count, length, why) in [
            (99, 0, 1, "status 99"),
            (600, 0, 1, "status 600"),
            (200, MAX_HEADERS + 1, 1, "51 headers"),
            (200, 1, MAX_HEADER_OCTETS + 1, "8193 octets"),
        ] {
            let fault = decode(status, count, length).unwrap_err();
            assert!(fault.what.contains(why), "{}", fault.what);
        }
    }
}

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// Headers that control the transport. A plugin that could set them could smuggle a second request into the first, or
/// address another host.
const TRANSPORT_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn method(text: &str) -> Result<Method, String> {
    let method = Method::from_bytes(text.as_bytes()).map_err(|_| "not an HTTP method".to_owned())?;
    if text.len() > 16 || matches!(method, Method::CONNECT | Method::TRACE) {
        return Err("plugins may not use this method".to_owned());
    }
    Ok(method)
}

pub(super) fn headers(requested: &[(String, String)]) -> Result<HeaderMap, String> {
    if requested.len() > MAX_HEADERS {
        return Err(format!("{} headers exceed the limit of {MAX_HEADERS}", requested.len()));
    }
    let mut headers = HeaderMap::with_capacity(requested.len());
    for (name, value) in requested {
        let wrong = || format!("header {:?} has an invalid character", name.escape_debug());
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        if TRANSPORT_HEADERS.contains(&name.as_str()) {
            return Err(format!("plugins may not set the header {name}"));
        }
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_carry_the_request_are_refused() {
        let one = |name: &str, value: &str| headers(&[(name.to_owned(), value.to_owned())]);
        assert_eq!(one("X-Key", "a b\tü").unwrap().len(), 1);
        for name in ["Host", "content-length", "Transfer-Encoding", "CONNECTION", "upgrade"] {
            assert!(one(name, "1").unwrap_err().starts_with("plugins may not set the header"), "{name}");
        }
        for (name, value) in
            [("x", "a\r\nHost: evil"), ("x", "a\nb"), ("x", "a\0"), ("x\r\ny", "1"), ("x y", "1"), ("", "1")]
        {
            assert!(one(name, value).unwrap_err().contains("has an invalid character"), "{name:?} {value:?}");
        }
        assert!(headers(&vec![("x".to_owned(), String::new()); 65]).is_err());
        let twice = headers(&vec![("x".to_owned(), "1".to_owned()); 2]).unwrap();
        assert_eq!(twice.get_all("x").iter().count(), 2);
    }

    #[test]
    fn tunnel_methods_are_refused() {
        assert_eq!(method("PATCH").unwrap(), Method::PATCH);
        assert!(method("CONNECT").is_err() && method("TRACE").is_err());
        assert!(
            method("GET / HTTP/1.1\r\n").is_err()
                && method("").is_err()
                && method("ABCDEFGHIJKLMNOPQ").is_err()
        );
    }
}

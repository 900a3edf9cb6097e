//! Extractors of request parts. For invalid input, they return a [`Problem`] that names its position.

use crate::problem::{Problem, ProblemKind};
use api::FieldProblem;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::Segment;
use std::error::Error as _;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// Query parameters. A parameter with an empty value counts as omitted.
///
/// Unknown parameters are refused earlier: see [`crate::known_parameters`].
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parameters(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parameters<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let has_value = |part: &&str| part.split_once('=').is_some_and(|(_, value)| !value.is_empty());
    let parts: Vec<&str> = query.split('&').filter(has_value).collect();
    let wrong = |what: String| Problem::new(ProblemKind::BadRequest, what);
    let uri: Uri =
        format!("/?{}", parts.join("&")).parse().map_err(|_| wrong("the query is malformed".to_owned()))?;
    let read = Query::try_from_uri(&uri);
    // The outer error only states that the query is invalid.
    let Query(read) =
        read.map_err(|error| wrong(error.source().map_or_else(|| error.body_text(), ToString::to_string)))?;
    Ok(read)
}

/// Path parameters.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(read)| Self(read))
            .map_err(|error| Problem::new(ProblemKind::BadRequest, error.body_text()))
    }
}

/// The raw body.
#[derive(Debug)]
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Bytes::from_request(request, state).await.map(Self).map_err(|error: BytesRejection| {
            match error.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(ProblemKind::TooLarge, "the body is too large for this operation")
                }
                _ => Problem::new(ProblemKind::BadRequest, error.body_text()),
            }
        })
    }
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(body) = RawBody::from_request(request, state).await?;
        json(&body).map(Self)
    }
}

/// A JSON body whose content is refused like that of a document (422) if it is valid JSON, but not of this type.
#[derive(Debug)]
pub(crate) struct JsonContent<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonContent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(body) = RawBody::from_request(request, state).await?;
        json(&body).map(Self).map_err(|problem| {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_ok();
            let kind = if is_json { ProblemKind::Unprocessable } else { ProblemKind::BadRequest };
            Problem::new(kind, problem.0.detail).with_problems(problem.0.problems)
        })
    }
}

/// A JSON body that may be omitted or `null`; the default then applies.
#[derive(Debug)]
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(body) = RawBody::from_request(request, state).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        json::<Option<T>>(&body).map(|read| Self(read.unwrap_or_default()))
    }
}

/// Parses a JSON body. Errors contain the JSON pointer of their position.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut octets = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut octets);
    let read = read.map_err(|error| (pointer(error.path()), error.into_inner()));
    let read = read.and_then(|read| octets.end().map(|()| read).map_err(|error| (String::new(), error)));
    read.or_else(|error| parse_with_integral_floats(body).ok_or(error)).map_err(|(pointer, error)| {
        let mut problem = Problem::new(ProblemKind::BadRequest, format!("the body is invalid: {error}"));
        problem.problems.push(FieldProblem { pointer, what: error.to_string(), allowed: None });
        problem
    })
}

/// Parses again with integral floats such as 7.0 as integers: in JSON, and for some clients, 7.0 equals 7.
fn parse_with_integral_floats<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    /// Above this, floats do not represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    fn whole(value: &mut Value) -> bool {
        match value {
            Value::Number(number) if number.is_f64() => {
                let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT);
                let Some(float) = float else { return false };
                *number = (float as i64).into();
                true
            }
            // Not `any`: every item must be converted.
            Value::Array(items) => items.iter_mut().fold(false, |found, item| whole(item) | found),
            Value::Object(map) => map.values_mut().fold(false, |found, item| whole(item) | found),
            _ => false,
        }
    }
    let mut value = serde_json::from_slice(body).ok()?;
    if whole(&mut value) { T::deserialize(value).ok() } else { None }
}

/// The JSON pointer (RFC 6901) of the position where parsing stopped.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let segments = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    segments.collect()
}

/// A boolean query parameter: `true` or `1`, `false` or `0`; false if omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "1" | "true" => Ok(Self(true)),
            "0" | "false" => Ok(Self(false)),
            other => Err(serde::de::Error::custom(format!("is {other:?}, and must be true or false"))),
        }
    }
}

impl ToSchema for Flag {}

impl PartialSchema for Flag {
    fn schema() -> RefOr<Schema> {
        enum_schema(["true", "false", "1", "0"])
    }
}

/// The name of a subscriber: `imsi-` or `msisdn-`, then digits.
pub(crate) struct SubscriberText;

impl ToSchema for SubscriberText {}

impl PartialSchema for SubscriberText {
    fn schema() -> RefOr<Schema> {
        let pattern = "^(imsi-[0-9]{6,15}|msisdn-[0-9]{3,20})$";
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

/// Binary data.
pub(crate) struct Binary;

impl ToSchema for Binary {}

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

/// The schema of a string enum.
pub(crate) fn enum_schema<const N: usize>(values: [&str; N]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values)).into()
}

/// Validates a page limit: 1 to `most`, default 100.
pub(crate) fn page_limit(requested: Option<usize>, most: usize) -> Result<usize, Problem> {
    let limit = requested.unwrap_or(100);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::new(ProblemKind::BadRequest, format!("limit: is {limit}, and must be 1 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct TestParams {
        limit: Option<usize>,
        with_numbers: Option<Flag>,
        name: Option<String>,
    }

    #[test]
    fn query_parameter_errors_name_the_parameter() {
        let read = parameters::<TestParams>("limit=7&with-numbers=1&name=%2B49").unwrap();
        let name = Some("+49".to_owned());
        assert_eq!(read, TestParams { limit: Some(7), with_numbers: Some(Flag(true)), name });
        let nothing = TestParams { limit: None, with_numbers: None, name: None };
        assert_eq!(parameters::<TestParams>("").unwrap(), nothing);
        assert_eq!(parameters::<TestParams>("limit=&name&with-numbers=").unwrap(), nothing);
        for (query, words) in [
            ("limit=x", "limit: invalid digit"),
            ("limit=-1", "limit: invalid digit"),
            ("with-numbers=maybe", "with-numbers: is \"maybe\", and must be true or false"),
            ("limit=1&limit=2", "duplicate field `limit`"),
            ("colour=red", "colour"),
        ] {
            let problem = parameters::<TestParams>(query).unwrap_err();
            assert_eq!(problem.status, 400);
            assert!(problem.detail.contains(words), "{query}: {}", problem.detail);
        }
    }

    #[test]
    fn integral_floats_are_accepted_as_integers() {
        #[derive(Debug, Deserialize)]
        struct Body {
            count: u64,
            share: f64,
        }
        let read: Body = json(br#"{"count":7.0,"share":2.0}"#).unwrap();
        assert_eq!((read.count, read.share), (7, 2.0));
        for wrong in
            [r#"{"count":7.5,"share":1}"#, r#"{"count":-7.0,"share":1}"#, r#"{"count":1e300,"share":1}"#]
        {
            let problem = json::<Body>(wrong.as_bytes()).unwrap_err();
            assert_eq!(problem.problems[0].pointer, "/count", "{}", problem.detail);
        }
    }

    #[test]
    fn body_errors_have_json_pointers() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Body {
            #[serde(rename = "a/b")]
            _list: Vec<u8>,
        }
        for (body, pointer, word) in [
            (r#"{"a/b":[1,"x"]}"#, "/a~1b/1", "u8"),
            (r#"{"a/b":[],"colour":1}"#, "/colour", "colour"),
            (r#"{"a/b":[]} x"#, "", "trailing"),
            ("", "", "EOF"),
            ("{", "", "EOF"),
        ] {
            let problem = json::<Body>(body.as_bytes()).unwrap_err();
            assert!(problem.detail.contains("the body is invalid"), "{}", problem.detail);
            assert_eq!(problem.problems[0].pointer, pointer, "{body}");
            assert!(problem.problems[0].what.contains(word), "{body}: {}", problem.problems[0].what);
        }
    }
}

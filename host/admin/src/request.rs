//! What a request brings, taken apart; what is wrong with it is a [`Problem`] that says where.

use crate::problem::{Kind, Misplaced, Problem};
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
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// The parameters after the question mark. One without a value is as one that is not there.
///
/// Unknown ones do not come as far as this: [`crate::known`] has refused them.
#[derive(Debug)]
pub(crate) struct Parameters<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parameters(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn parameters<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let has_value = |part: &&str| part.split_once('=').is_some_and(|(_, value)| !value.is_empty());
    let given: Vec<&str> = query.split('&').filter(has_value).collect();
    let wrong = |what: String| Problem::new(Kind::BadRequest, what);
    let uri: Uri =
        format!("/?{}", given.join("&")).parse().map_err(|_| wrong("the query is no query".to_owned()))?;
    let read = Query::try_from_uri(&uri);
    // What is around the cause only says that it is about the query.
    let Query(read) =
        read.map_err(|error| wrong(error.source().map_or_else(|| error.body_text(), ToString::to_string)))?;
    Ok(read)
}

/// The variable parts of the path.
#[derive(Debug)]
pub(crate) struct At<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for At<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(read)| Self(read)).map_err(|error| Problem::new(Kind::BadRequest, error.body_text()))
    }
}

/// The body as it came.
#[derive(Debug)]
pub(crate) struct Octets(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Octets {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Bytes::from_request(request, state).await.map(Self).map_err(|error: BytesRejection| {
            match error.status() {
                StatusCode::PAYLOAD_TOO_LARGE => {
                    Problem::new(Kind::TooLarge, "the body is larger than this operation takes")
                }
                _ => Problem::new(Kind::BadRequest, error.body_text()),
            }
        })
    }
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Document<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Document<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Octets(body) = Octets::from_request(request, state).await?;
        json(&body).map(Self)
    }
}

/// A JSON body that may be left out or `null`, and then says what is usual.
#[derive(Debug)]
pub(crate) struct IfAny<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for IfAny<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Octets(body) = Octets::from_request(request, state).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        json::<Option<T>>(&body).map(|read| Self(read.unwrap_or_default()))
    }
}

/// What the octets of a body say, or what is wrong with them and where.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut octets = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut octets);
    let read = read.map_err(|error| (pointer(error.path()), error.into_inner()));
    let read = read.and_then(|read| octets.end().map(|()| read).map_err(|error| (String::new(), error)));
    read.or_else(|error| with_whole_numbers(body).ok_or(error)).map_err(|(pointer, error)| {
        let mut problem = Problem::new(Kind::BadRequest, format!("the body is not as expected: {error}"));
        problem.problems.push(Misplaced { pointer, what: error.to_string(), allowed: None });
        problem
    })
}

/// The same once more, where numbers such as 7.0 are all that was wrong: to JSON, and to some who write it, 7.0 is 7.
fn with_whole_numbers<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    /// Beyond, not every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    fn whole(value: &mut Value) -> bool {
        match value {
            Value::Number(number) if number.is_f64() => {
                let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT);
                let Some(float) = float else { return false };
                *number = (float as i64).into();
                true
            }
            // Not `any`: all of them are to be looked at.
            Value::Array(items) => items.iter_mut().fold(false, |found, item| whole(item) | found),
            Value::Object(map) => map.values_mut().fold(false, |found, item| whole(item) | found),
            _ => false,
        }
    }
    let mut value = serde_json::from_slice(body).ok()?;
    if whole(&mut value) { T::deserialize(value).ok() } else { None }
}

/// A JSON pointer (RFC 6901) to where reading stopped.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let segments = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    segments.collect()
}

/// Yes or no, after the question mark: `true` or `1`, `false` or `0`; no where it is left out.
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
        words(["true", "false", "1", "0"])
    }
}

/// A time, in texts: as RFC 3339 has it, or milliseconds since the epoch.
pub(crate) struct TimeText;

impl ToSchema for TimeText {}

impl PartialSchema for TimeText {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let date_time = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let moment = text().format(Some(date_time)).description(Some("As RFC 3339 has it."));
        let count = text().pattern(Some("^[0-9]{1,19}$")).description(Some("Milliseconds since the epoch."));
        AnyOfBuilder::new().item(moment).item(count).into()
    }
}

/// The id of a message.
pub(crate) struct IdText;

impl ToSchema for IdText {}

impl PartialSchema for IdText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9]{1,19}$")).into()
    }
}

/// The name of a subscriber: `imsi-` or `msisdn-` and digits.
pub(crate) struct SubscriberText;

impl ToSchema for SubscriberText {}

impl PartialSchema for SubscriberText {
    fn schema() -> RefOr<Schema> {
        let pattern = "^(imsi-[0-9]{6,15}|msisdn-[0-9]{3,20})$";
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

/// Octets that are no text.
pub(crate) struct Binary;

impl ToSchema for Binary {}

impl PartialSchema for Binary {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

/// One of these words.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

/// How many are wanted, of at most `most`; a hundred where nobody says.
pub(crate) fn limit(given: Option<usize>, most: usize) -> Result<usize, Problem> {
    let limit = given.unwrap_or(100);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::new(Kind::BadRequest, format!("limit: is {limit}, and must be 1 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Asked {
        limit: Option<usize>,
        with_numbers: Option<Flag>,
        name: Option<String>,
    }

    #[test]
    fn parameters_are_read_and_what_is_wrong_is_told_by_name() {
        let read = parameters::<Asked>("limit=7&with-numbers=1&name=%2B49").unwrap();
        let name = Some("+49".to_owned());
        assert_eq!(read, Asked { limit: Some(7), with_numbers: Some(Flag(true)), name });
        let nothing = Asked { limit: None, with_numbers: None, name: None };
        assert_eq!(parameters::<Asked>("").unwrap(), nothing);
        assert_eq!(parameters::<Asked>("limit=&name&with-numbers=").unwrap(), nothing);
        for (query, words) in [
            ("limit=x", "limit: invalid digit"),
            ("limit=-1", "limit: invalid digit"),
            ("with-numbers=maybe", "with-numbers: is \"maybe\", and must be true or false"),
            ("limit=1&limit=2", "duplicate field `limit`"),
            ("colour=red", "colour"),
        ] {
            let told = parameters::<Asked>(query).unwrap_err();
            assert_eq!(told.status, 400);
            assert!(told.detail.contains(words), "{query}: {}", told.detail);
        }
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
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
            let told = json::<Body>(wrong.as_bytes()).unwrap_err();
            assert_eq!(told.problems[0].pointer, "/count", "{}", told.detail);
        }
    }

    #[test]
    fn what_is_wrong_with_a_body_is_told_with_its_place() {
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
            let told = json::<Body>(body.as_bytes()).unwrap_err();
            assert!(told.detail.contains("the body is not as expected"), "{}", told.detail);
            assert_eq!(told.problems[0].pointer, pointer, "{body}");
            assert!(told.problems[0].what.contains(word), "{body}: {}", told.problems[0].what);
        }
    }
}

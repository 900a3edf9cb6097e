//! Validates answers against the API document.

pub(crate) use testkit::api_document::check;

//! The fields of a submitted form.

use axum::extract::{FromRequest, Query, Request};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};

/// The fields of a form, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// A form with these fields.
    pub(crate) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// The fields of a query, for example `?q=x&state=up`; none if the query is invalid.
    pub(crate) fn from_query(query: &str) -> Self {
        let uri = format!("/{query}").parse::<Uri>().ok();
        let fields = uri.and_then(|uri| Query::<Vec<(String, String)>>::try_from_uri(&uri).ok());
        Self(fields.map(|Query(fields)| fields).unwrap_or_default())
    }

    /// The value of a field, trimmed; empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The value of a field, with Unix line ends.
    pub(crate) fn multiline(&self, name: &str) -> String {
        self.raw(name).replace("\r\n", "\n")
    }

    /// The value of a field, unchanged: for passwords.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a checkbox is ticked, or a button was pressed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// All values of a repeated field.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        axum::Form::from_request(request, state)
            .await
            .map(|axum::Form(fields)| Self(fields))
            .map_err(IntoResponse::into_response)
    }
}

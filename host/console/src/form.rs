//! What a form has sent.

use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};

/// The fields of a form, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// A form with these fields.
    pub(crate) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// The text of a field without blanks around it; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// The text of a field as it was typed, with the line ends of a text file.
    pub(crate) fn whole(&self, name: &str) -> String {
        self.raw(name).replace("\r\n", "\n")
    }

    /// The text of a field exactly as it came: passwords.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether a box is ticked, or a button was the one that was pressed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// All values of a field of which there are several.
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

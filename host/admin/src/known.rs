//! Parameters that nobody has described are refused: a typing error is not silently ignored.

use crate::problem::{Kind, Problem};
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::{OpenApi, RefOr};

/// What may stand after the question mark, by operation, as the operations say of themselves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<HashMap<(Method, String), Vec<String>>>);

impl Known {
    pub(crate) fn of(described: &OpenApi) -> Self {
        let mut known = HashMap::new();
        for (path, item) in &described.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            for (method, operation) in operations {
                let Some(operation) = operation else { continue };
                let parameters =
                    operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
                        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
                            Some(parameter.name.clone())
                        }
                        _ => None,
                    });
                known.insert((method, path.clone()), parameters.collect());
            }
        }
        Self(Arc::new(known))
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
        let known = self.0.get(&(method.clone(), path.to_owned())).map(Vec::as_slice).unwrap_or_default();
        let bad = |what: String| Problem::new(Kind::BadRequest, what);
        let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let Query(given) = given.map_err(|error| bad(error.body_text()))?;
        match given.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) if known.is_empty() => Err(bad(format!("{name}: is unknown; there are none"))),
            Some((name, _)) => Err(bad(format!("{name}: is unknown; there are {}", known.join(", ")))),
        }
    }
}

/// Lets requests pass whose parameters all are known.
pub(crate) async fn only_known(State(known): State<Known>, request: Request, next: Next) -> Response {
    match known.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

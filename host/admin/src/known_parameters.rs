//! Refuses undocumented query parameters, so that typing errors are not ignored.

use crate::problem::{Problem, ProblemKind};
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::{OpenApi, RefOr};

/// The documented query parameters of each operation.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownParameters(Arc<HashMap<(Method, String), Vec<String>>>);

impl KnownParameters {
    pub(crate) fn of(described: &OpenApi) -> Self {
        let mut known_parameters = HashMap::new();
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
                known_parameters.insert((method, path.clone()), parameters.collect());
            }
        }
        Self(Arc::new(known_parameters))
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
        let known_parameters =
            self.0.get(&(method.clone(), path.to_owned())).map(Vec::as_slice).unwrap_or_default();
        let bad = |what: String| Problem::new(ProblemKind::BadRequest, what);
        let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
        let Query(query) = query.map_err(|error| bad(error.body_text()))?;
        match query.iter().find(|(name, _)| !known_parameters.contains(name)) {
            None => Ok(()),
            Some((name, _)) if known_parameters.is_empty() => {
                Err(bad(format!("{name}: is unknown; this operation has no parameters")))
            }
            Some((name, _)) => {
                Err(bad(format!("{name}: is unknown; the parameters are {}", known_parameters.join(", "))))
            }
        }
    }
}

/// Middleware that refuses requests with unknown query parameters.
pub(crate) async fn reject_unknown_parameters(
    State(known_parameters): State<KnownParameters>,
    request: Request,
    next: Next,
) -> Response {
    match known_parameters.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

//! Event transport for HTTP: the HTTP protocol binding of CloudEvents 1.0.

use crate::EventsError;
use crate::options::{EventMode, EventSinkOptions};
use crate::transport::{EncodedEvent, EventTransport, SendError};
use ureq::Agent;
use ureq::tls::TlsConfig;

/// Posts events to a URL, one request after the other.
pub(crate) struct HttpTransport {
    agent: Agent,
    url: String,
    /// Value of the header `Authorization`; `None` without a token.
    authorization: Option<String>,
    mode: EventMode,
}

impl HttpTransport {
    pub(crate) fn new(options: &EventSinkOptions) -> Result<Self, EventsError> {
        let roots = client::root_certificates(options.ca.as_deref())
            .map_err(|source| EventsError::Authority { sink: options.name.clone(), source })?;
        let config = Agent::config_builder()
            .timeout_global(Some(options.timeout))
            // A redirect would send the events to a system that is not in the configuration.
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("switchyard/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build();
        Ok(Self {
            agent: Agent::new_with_config(config),
            url: options.url.clone(),
            authorization: (!options.token.is_empty()).then(|| format!("Bearer {}", options.token)),
            mode: options.mode,
        })
    }

    fn post(&self, content_type: &str, body: &[u8]) -> Result<(), SendError> {
        let mut request = self.agent.post(&self.url).content_type(content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let response = request.send(body).map_err(|error| SendError(error.to_string()))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(SendError(format!("HTTP status {}", status.as_u16()))) }
    }
}

impl EventTransport for HttpTransport {
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError> {
        match self.mode {
            EventMode::Batch => {
                let mut body = vec![b'['];
                for event in events {
                    if body.len() > 1 {
                        body.push(b',');
                    }
                    body.extend_from_slice(&event.json);
                }
                body.push(b']');
                self.post("application/cloudevents-batch+json; charset=utf-8", &body)
            }
            EventMode::Structured => events
                .iter()
                .try_for_each(|event| self.post("application/cloudevents+json; charset=utf-8", &event.json)),
        }
    }
}

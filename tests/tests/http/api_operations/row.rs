//! A row of the table: one operation.

/// The expected result of two concurrent requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConcurrentOutcome {
    /// Both succeed, one after the other.
    Both,
    /// One request succeeds; the other one gets this status.
    One(u16),
    /// Either of these, depending on timing.
    Either(u16),
}

/// One operation with a request that succeeds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) method: &'static str,
    /// Its path in the document.
    pub(crate) path: &'static str,
    /// The path of the request.
    pub(crate) at: &'static str,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Vec<u8>,
    /// The expected status.
    pub(crate) status: u16,
    /// Preconditions: method, path, body. A `?` after the method means that it may exist already.
    pub(crate) before: Vec<(&'static str, &'static str, &'static str)>,
    /// Invalid bodies, in addition to those that are derived for every operation.
    pub(crate) bad: Vec<(&'static [u8], u16)>,
    pub(crate) concurrent: ConcurrentOutcome,
    /// The body has no end, or is not text: only its beginning is checked.
    pub(crate) is_endless: bool,
    /// It accepts any JSON and reports errors in its answer.
    pub(crate) validates: bool,
}

impl Row {
    pub(crate) fn new(method: &'static str, path: &'static str, at: &'static str) -> Self {
        Self {
            method,
            path,
            at,
            headers: Vec::new(),
            body: Vec::new(),
            status: 200,
            before: Vec::new(),
            bad: Vec::new(),
            concurrent: ConcurrentOutcome::Both,
            is_endless: false,
            validates: false,
        }
    }

    pub(crate) fn get(path: &'static str, at: &'static str) -> Self {
        Self::new("GET", path, at)
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn before(mut self, method: &'static str, at: &'static str, body: &'static str) -> Self {
        self.before.push((method, at, body));
        self
    }

    pub(crate) fn bad(mut self, body: &'static [u8], status: u16) -> Self {
        self.bad.push((body, status));
        self
    }

    pub(crate) fn concurrent(mut self, concurrent: ConcurrentOutcome) -> Self {
        self.concurrent = concurrent;
        self
    }

    pub(crate) fn endless(mut self) -> Self {
        self.is_endless = true;
        self
    }

    pub(crate) fn validates_only(mut self) -> Self {
        self.validates = true;
        self
    }
}

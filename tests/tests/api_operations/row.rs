//! One operation in the table.

/// What becomes of two requests that come at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtOnce {
    /// Both are done, one after the other.
    Both,
    /// One is done; the other is told with this status that somebody was faster.
    One(u16),
    /// As one of these two, by how long the first one takes.
    Either(u16),
}

/// One operation, with a request that succeeds.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) method: &'static str,
    /// As the document has it.
    pub(crate) path: &'static str,
    /// Where the request goes.
    pub(crate) at: &'static str,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Vec<u8>,
    /// What is answered.
    pub(crate) status: u16,
    /// What must have happened for it to succeed: method, path, body. With a `?` after the method it may have happened already.
    pub(crate) before: Vec<(&'static str, &'static str, &'static str)>,
    /// Bodies that are refused, beside those that can be thought of for any operation.
    pub(crate) bad: Vec<(&'static [u8], u16)>,
    pub(crate) at_once: AtOnce,
    /// Its answer has no end, or is no text: only its beginning is looked at.
    pub(crate) is_endless: bool,
    /// It says itself what is wrong with any JSON.
    pub(crate) judges: bool,
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
            at_once: AtOnce::Both,
            is_endless: false,
            judges: false,
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

    pub(crate) fn at_once(mut self, at_once: AtOnce) -> Self {
        self.at_once = at_once;
        self
    }

    pub(crate) fn endless(mut self) -> Self {
        self.is_endless = true;
        self
    }

    pub(crate) fn judging(mut self) -> Self {
        self.judges = true;
        self
    }
}

//! A registry in memory whose answers a test can change.

use oci::ContentDigest;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A request, as far as tests look at it.
#[derive(Debug, Clone)]
pub(crate) struct FakeRequest {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) struct FakeAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl FakeAnswer {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        body.clone_into(&mut self.body);
        self
    }
}

/// An HTTP server on loopback; stopped when dropped.
pub(crate) struct FakeServer {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<FakeRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    /// Serves with this function, one connection after the other.
    pub(crate) fn start(mut serve: impl FnMut(&FakeRequest) -> FakeAnswer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, seen) = (Arc::clone(&stop), Arc::clone(&requests));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let stream = stream.unwrap();
                let Some(request) = read_request(&stream) else { continue };
                let answer = serve(&request);
                let is_head = request.method == "HEAD";
                seen.lock().unwrap().push(request);
                write_answer(&stream, &answer, is_head);
            }
        });
        Self { address, requests, stop, thread: Some(thread) }
    }

    /// Whether a request arrived with a header `Authorization` that a function accepts.
    pub(crate) fn has_request_with_authorization(&self, fits: impl Fn(&FakeRequest) -> bool) -> bool {
        self.requests.lock().unwrap().iter().any(fits)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<FakeRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let (mut authorization, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            "transfer-encoding" => panic!("registries want a length"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(FakeRequest { method, target, authorization, body })
}

fn write_answer(mut stream: &TcpStream, answer: &FakeAnswer, is_head: bool) {
    let mut text = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", answer.status);
    text += &format!("content-length: {}\r\n", answer.body.len());
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    // The client may have gone: it need not read an answer that is too long.
    let _ = stream.write_all(text.as_bytes());
    if !is_head {
        let _ = stream.write_all(&answer.body);
    }
}

/// The contents of one repository, `sms/first`.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// By tag and by digest.
    pub(crate) manifests: BTreeMap<String, Vec<u8>>,
    /// Digests of manifests with a subject, by subject, if the repository maintains the list of referrers.
    pub(crate) referrers: Option<BTreeMap<String, Vec<String>>>,
}

impl Repository {
    /// A repository that maintains the list of referrers.
    pub(crate) fn with_referrers() -> Self {
        Self { referrers: Some(BTreeMap::new()), ..Self::default() }
    }

    /// Serves as the specification says.
    pub(crate) fn serve(&mut self, request: &FakeRequest) -> FakeAnswer {
        let missing = || FakeAnswer::new(404).body(br#"{"errors":[{"code":"UNKNOWN","message":"unknown"}]}"#);
        let path = request.target.strip_prefix("/v2/sms/first/").expect("another repository");
        let digest = ContentDigest::of(&request.body).to_string();
        match (&*request.method, path.split_once('/')) {
            ("POST", Some(("blobs", "uploads/"))) => {
                FakeAnswer::new(202).header("location", "/v2/sms/first/blobs/uploads/1?_state=hush")
            }
            ("PUT", Some(("blobs", upload))) => {
                assert_eq!(upload, format!("uploads/1?_state=hush&digest={digest}"));
                self.blobs.insert(digest, request.body.clone());
                FakeAnswer::new(201)
            }
            ("PUT", Some(("manifests", name))) => {
                let manifest: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
                for name in [name, &digest] {
                    self.manifests.insert(name.to_owned(), request.body.clone());
                }
                match (&mut self.referrers, manifest["subject"]["digest"].as_str()) {
                    (Some(referrers), Some(subject)) => {
                        referrers.entry(subject.to_owned()).or_default().push(digest);
                        FakeAnswer::new(201).header("oci-subject", subject)
                    }
                    _ => FakeAnswer::new(201),
                }
            }
            ("GET", Some(("referrers", subject))) => match &self.referrers {
                Some(referrers) => FakeAnswer::new(200).body(&self.list(referrers.get(subject))),
                None => missing(),
            },
            ("GET", Some(("tags", _))) => {
                let tags: Vec<_> = self.manifests.keys().filter(|name| !name.contains(':')).collect();
                let list = serde_json::json!({ "name": "sms/first", "tags": tags });
                FakeAnswer::new(200).body(list.to_string().as_bytes())
            }
            (_, Some(("blobs", digest))) => {
                self.blobs.get(digest).map_or_else(missing, |octets| FakeAnswer::new(200).body(octets))
            }
            (_, Some(("manifests", name))) => {
                self.manifests.get(name).map_or_else(missing, |octets| FakeAnswer::new(200).body(octets))
            }
            _ => missing(),
        }
    }

    fn list(&self, digests: Option<&Vec<String>>) -> Vec<u8> {
        let entry = |digest: &String| {
            let octets = &self.manifests[digest];
            let manifest: serde_json::Value = serde_json::from_slice(octets).unwrap();
            serde_json::json!({
                "mediaType": manifest["mediaType"], "digest": digest, "size": octets.len(),
                "artifactType": manifest["artifactType"],
            })
        };
        let manifests: Vec<_> = digests.into_iter().flatten().map(entry).collect();
        serde_json::json!({ "schemaVersion": 2, "manifests": manifests }).to_string().into_bytes()
    }
}

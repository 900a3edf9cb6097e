//! `cargo xtask screenshots`: the pictures of the manual, of the console over a fake API, in a headless browser.

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use base64::Engine as _;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::fake_api::FakeApi;
use testkit::load::StopFlag;
use testkit::test_daemon::free_port;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Folder for the pictures; default: `docs/images/console`.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// The pages: name of the picture, path, height of the window in pixels.
const PAGES: [(&str, &str, u32); 12] = [
    ("overview", "/", 1_000),
    ("messages", "/messages", 800),
    ("message", "/messages/1", 900),
    ("queues", "/queues", 800),
    ("peers", "/peers", 700),
    ("peer", "/peers/north", 1_000),
    ("account", "/accounts/acme", 900),
    ("hook", "/plugins/router", 1_000),
    ("set-up", "/plugins/router/set-up?plugin=router&version=9be10cc2d877", 1_000),
    ("policy", "/policies/router", 800),
    ("ledger", "/ledger", 700),
    ("configuration", "/configuration", 900),
];

/// Width of the window, in pixels.
const WIDTH: u32 = 1_200;
/// Quality of the pictures, from 0 to 100.
const QUALITY: u32 = 60;
/// Maximum size of a picture in octets, so that the manual stays small.
const MAX_OCTETS: usize = 120_000;
/// Maximum time for the browser to start or to load a page.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = options.folder.clone().unwrap_or_else(|| workspace::root().join("docs/images/console"));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let console = serve_console()?;
    let browser = Browser::start()?;
    for (name, path, height) in PAGES {
        let picture = browser.picture(&format!("http://{console}{path}"), height)?;
        ensure!(picture.len() <= MAX_OCTETS, "the picture of {path} has {} octets", picture.len());
        let file = folder.join(format!("{name}.webp"));
        std::fs::write(&file, &picture).with_context(|| file.display().to_string())?;
        println!("screenshots: {name}, {} KB", picture.len().div_ceil(1_000));
    }
    println!("screenshots: {} pictures in {}", PAGES.len(), folder.display());
    Ok(())
}

/// Serves the console over a fake API until the process ends. Every visitor is the admin.
fn serve_console() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let api = FakeApi::appliance(6, 4).router().layer(middleware::map_response(without_test_markup));
    let console = console::router(api).layer(middleware::from_fn(as_admin));
    std::thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(serve(listener, console))
    });
    Ok(address)
}

async fn serve(listener: std::net::TcpListener, console: Router) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(axum::serve(listener, console.into_make_service_with_connect_info::<SocketAddr>()).await?)
}

/// Names with markup in the fake API, which the console's tests use. In a picture they would look like faults.
const TEST_MARKUP: [(&str, &str); 6] = [
    ("<b>", ""),
    ("</b>", ""),
    ("<i>", ""),
    ("<meridian>", "meridian"),
    ("<cheapest>", "the cheapest"),
    ("<fault>", "fault"),
];

async fn without_test_markup(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // The fake API has the whole body in memory.
    let octets = to_bytes(body, usize::MAX).await.unwrap_or_default();
    parts.headers.remove(header::CONTENT_LENGTH);
    let mut text = String::from_utf8_lossy(&octets).into_owned();
    for (markup, plain) in TEST_MARKUP {
        text = text.replace(markup, plain);
    }
    Response::from_parts(parts, Body::from(text))
}

async fn as_admin(mut request: Request, next: Next) -> Response {
    let cookies = HeaderValue::from_static("switchyard-session=admin; switchyard-theme=light");
    request.headers_mut().insert(header::COOKIE, cookies);
    next.run(request).await
}

/// Chromium and its driver. Both end when this is dropped.
struct Browser {
    driver: Child,
    /// The URL of the session.
    session: String,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = ureq::delete(&self.session).call();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Sends a command to the driver and returns its value.
fn command(url: &str, body: &Value) -> Result<Value> {
    let mut answer = ureq::post(url)
        .header("content-type", "application/json")
        .send(body.to_string())
        .with_context(|| format!("the browser's driver refuses {url}"))?;
    let mut answer: Value = serde_json::from_reader(answer.body_mut().as_reader())?;
    Ok(answer["value"].take())
}

impl Browser {
    fn start() -> Result<Self> {
        let port = free_port()?;
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("chromedriver does not start: run cargo xtask setup")?;
        let profile = tempfile::tempdir()?;
        // As root, the browser cannot use its sandbox; it visits only the fake API.
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            format!("--user-data-dir={}", profile.path().display()),
        ]);
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": arguments } } } });
        let base = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, session: base.clone(), _profile: profile };
        let begun = Instant::now();
        loop {
            match command(&base, &wanted) {
                Ok(started) => {
                    let id = started["sessionId"].as_str().context("the driver names no session")?;
                    browser.session = format!("{base}/{id}");
                    return Ok(browser);
                }
                // The driver may not listen yet.
                Err(error) if begun.elapsed() > TIMEOUT => return Err(error),
                Err(_) => {
                    StopFlag::default().pause(Duration::from_millis(100));
                }
            }
        }
    }

    fn devtools(&self, name: &str, parameters: &Value) -> Result<Value> {
        command(&format!("{}/goog/cdp/execute", self.session), &json!({ "cmd": name, "params": parameters }))
    }

    /// A page as a WebP picture.
    fn picture(&self, url: &str, height: u32) -> Result<Vec<u8>> {
        let metrics = json!({ "width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics)?;
        command(&format!("{}/url", self.session), &json!({ "url": url }))?;
        let title = command(
            &format!("{}/execute/sync", self.session),
            &json!({ "script": "return document.title", "args": [] }),
        )?;
        if title.as_str().is_none_or(|title| title.starts_with("Error") || title.is_empty()) {
            bail!("{url} shows an error");
        }
        let taken =
            self.devtools("Page.captureScreenshot", &json!({ "format": "webp", "quality": QUALITY }))?;
        let data = taken["data"].as_str().context("the browser takes no picture")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_tour_shows_every_picture() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tour = std::fs::read_to_string(root.join("docs/tutorial/console.md")).unwrap();
        for (name, _, _) in PAGES {
            assert!(tour.contains(&format!("(../images/console/{name}.webp)")), "{name}");
        }
        let stored = std::fs::read_dir(root.join("docs/images/console")).unwrap();
        let mut stored: Vec<String> =
            stored.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        stored.sort();
        let mut known: Vec<String> = PAGES.iter().map(|(name, _, _)| format!("{name}.webp")).collect();
        known.sort();
        assert_eq!(stored, known);
    }
}

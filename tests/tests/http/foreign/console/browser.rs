//! A headless browser: chromium and its driver, both from Debian.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::test_daemon::free_port;
use behaviour_tests::{TIMEOUT, load};
use fantoccini::elements::Element;
use fantoccini::wd::TimeoutConfiguration;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSTALL: &str = "the console is tested with Debian's chromium: apt-get install chromium chromium-driver, or cargo xtask setup";

/// The window widths: desktop and phone.
const WIDTHS: [u32; 2] = [1280, 390];

/// The colour scheme that the browser requests.
const SCHEMES: [&str; 2] = ["light", "dark"];

/// The driver, killed with the test.
struct Driver {
    process: Child,
    port: u16,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A browser window on the console of one appliance.
pub(crate) struct Browser {
    client: Client,
    driver: Driver,
    base: String,
    axe: String,
    screenshots: PathBuf,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window; `base` is the appliance's URL.
    pub(crate) async fn open(base: String) -> Result<Self> {
        let path = workspace::peers().join("node_modules/axe-core/axe.min.js");
        let axe = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: run cargo xtask setup", path.display()))?;
        let port = free_port()?;
        let process = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context(INSTALL)?;
        let driver = Driver { process, port };
        let profile = tempfile::tempdir()?;
        let arguments = [
            // A test that runs as root cannot use the sandbox; it visits only its own appliance.
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--hide-scrollbars",
            "--window-size=1280,1200",
        ];
        let mut arguments = arguments.map(str::to_owned).to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let wanted = json!({
            "goog:chromeOptions": { "args": arguments },
            "unhandledPromptBehavior": "accept",
        });
        let wanted = wanted.as_object().cloned().context("no object")?;
        let begun = Instant::now();
        let client = loop {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            match builder.capabilities(wanted.clone()).connect(&format!("http://127.0.0.1:{port}")).await {
                Ok(client) => break client,
                // The driver has just been started.
                Err(error) if begun.elapsed() > 2 * TIMEOUT => bail!("{error}; {INSTALL}"),
                Err(_) => pause(),
            }
        };
        // The machine may be busy: the content is checked, not the time.
        let timeouts = TimeoutConfiguration::new(Some(2 * TIMEOUT), Some(2 * TIMEOUT), None);
        client.update_timeouts(timeouts).await?;
        let screenshots = workspace::target().join("screenshots");
        std::fs::create_dir_all(&screenshots)?;
        Ok(Self { client, driver, base, axe, screenshots, _profile: profile })
    }

    /// Closes the window: the driver would leave it open.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.client.clone().close().await?)
    }

    /// Opens a page.
    pub(crate) async fn open_page(&self, path: &str) -> Result<()> {
        self.client.goto(&format!("{}{path}", self.base)).await.with_context(|| format!("going to {path}"))
    }

    /// The current path and query.
    pub(crate) async fn path(&self) -> Result<String> {
        let url = self.client.current_url().await?;
        Ok(url.as_str().strip_prefix(&self.base).unwrap_or(url.as_str()).to_owned())
    }

    /// The visible text of the page.
    pub(crate) async fn words(&self) -> Result<String> {
        Ok(self.client.find(Locator::Css("body")).await?.text().await?)
    }

    /// Waits until the page contains this text; pages may update themselves.
    pub(crate) async fn reads(&self, words: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            // A page that is being left has no body.
            let there = self.words().await.unwrap_or_default();
            if there.contains(words) {
                return Ok(());
            }
            ensure!(begun.elapsed() < 2 * TIMEOUT, "timeout: {words:?} on {}:\n{there}", self.path().await?);
            pause();
        }
    }

    /// Whether the element exists.
    pub(crate) async fn has(&self, css: &str) -> Result<bool> {
        Ok(!self.client.find_all(Locator::Css(css)).await?.is_empty())
    }

    /// Waits for an element: a click does not wait for the next page.
    pub(crate) async fn shows(&self, css: &str) -> Result<()> {
        let begun = Instant::now();
        while !self.has(css).await.unwrap_or_default() {
            let there = self.words().await.unwrap_or_default();
            ensure!(begun.elapsed() < 2 * TIMEOUT, "timeout: {css:?} on {}:\n{there}", self.path().await?);
            pause();
        }
        Ok(())
    }

    /// An attribute of an element.
    pub(crate) async fn attribute(&self, css: &str, name: &str) -> Result<String> {
        let element = self.client.find(Locator::Css(css)).await?;
        Ok(element.attr(name).await?.unwrap_or_default())
    }

    async fn by_id(&self, id: &str) -> Result<Element> {
        self.client.find(Locator::Id(id)).await.with_context(|| format!("the field {id}"))
    }

    /// Replaces the text of a field.
    pub(crate) async fn fill(&self, id: &str, text: &str) -> Result<()> {
        let field = self.by_id(id).await?;
        field.clear().await?;
        field.send_keys(text).await.with_context(|| format!("typing into {id}"))
    }

    /// Sets a multi-line text.
    pub(crate) async fn put(&self, id: &str, text: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        self.client.execute("arguments[0].value = arguments[1]", vec![field, text.into()]).await?;
        Ok(())
    }

    /// Types at the end of a field's text.
    pub(crate) async fn append(&self, id: &str, text: &str) -> Result<()> {
        self.by_id(id).await?.send_keys(text).await.with_context(|| format!("typing into {id}"))
    }

    /// The value of a field.
    pub(crate) async fn value(&self, id: &str) -> Result<String> {
        Ok(self.by_id(id).await?.prop("value").await?.unwrap_or_default())
    }

    /// Selects a file for upload.
    pub(crate) async fn choose_file(&self, id: &str, path: &std::path::Path) -> Result<()> {
        Ok(self.by_id(id).await?.send_keys(&path.display().to_string()).await?)
    }

    /// Selects an option by its value.
    pub(crate) async fn choose(&self, id: &str, value: &str) -> Result<()> {
        Ok(self.by_id(id).await?.select_by_value(value).await?)
    }

    /// Checks a box.
    pub(crate) async fn tick(&self, id: &str) -> Result<()> {
        self.by_id(id).await?.click().await.with_context(|| format!("ticking {id}"))
    }

    /// Clicks the button, link or summary with this label, and confirms if asked.
    pub(crate) async fn click(&self, label: &str) -> Result<()> {
        let path = format!("//*[self::button or self::a or self::summary][normalize-space()='{label}']");
        let begun = Instant::now();
        loop {
            // There may be another in a closed section, or one that is being redrawn.
            for element in self.client.find_all(Locator::XPath(&path)).await? {
                if element.is_displayed().await.unwrap_or(false) && element.click().await.is_ok() {
                    let _ = self.client.accept_alert().await;
                    return Ok(());
                }
            }
            ensure!(
                begun.elapsed() < TIMEOUT,
                "nothing to press is called {label:?} on {}",
                self.path().await?
            );
            pause();
        }
    }

    /// Adds an option to a list and selects it.
    pub(crate) async fn offer(&self, id: &str, value: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        let add = "arguments[0].add(new Option(arguments[1], arguments[1], true, true))";
        self.client.execute(add, vec![field, value.into()]).await?;
        Ok(())
    }

    /// The visible text of an element.
    pub(crate) async fn part(&self, id: &str) -> Result<String> {
        Ok(self.by_id(id).await?.text().await?)
    }

    /// Marks the current page; a reloaded page has no mark.
    pub(crate) async fn mark(&self) -> Result<()> {
        self.client.execute("window.marked = true", Vec::new()).await?;
        Ok(())
    }

    /// Whether the page is still the marked one.
    pub(crate) async fn is_marked(&self) -> Result<bool> {
        Ok(self.client.execute("return window.marked === true", Vec::new()).await? == json!(true))
    }

    /// Saves a screenshot.
    pub(crate) async fn screenshot(&self, name: &str) -> Result<()> {
        let image = self.client.screenshot().await?;
        let path = self.screenshots.join(format!("{name}.png"));
        std::fs::write(&path, image).with_context(|| path.display().to_string())
    }

    /// Submits the form that contains the field.
    pub(crate) async fn submit(&self, id: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        self.client.execute("arguments[0].form.querySelector('button').click()", vec![field]).await?;
        Ok(())
    }

    /// Sends a command that the protocol does not define to the driver.
    async fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        let session = self.client.session_id().await?.context("no session")?;
        let url = format!("http://127.0.0.1:{}/session/{session}/goog/cdp/execute", self.driver.port);
        let body = json!({ "cmd": command, "params": parameters }).to_string();
        let mut answer = ureq::post(&url).header("content-type", "application/json").send(body)?;
        let answer: Value = serde_json::from_reader(answer.body_mut().as_reader())?;
        Ok(answer["value"].clone())
    }

    /// Visits a page at both widths, light and dark: saves screenshots, checks that nothing is wider than the window, and
    /// checks accessibility with axe.
    pub(crate) async fn inspect(&self, path: &str) -> Result<()> {
        let name = path.trim_matches('/').replace(['/', '?', '&', '='], "-");
        let name = if name.is_empty() { "overview".to_owned() } else { name };
        for width in WIDTHS {
            let metrics =
                json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
            self.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
            self.open_page(path).await?;
            for scheme in SCHEMES {
                let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
                self.devtools("Emulation.setEmulatedMedia", features).await?;
                self.accessible(&format!("{path} at {width}, {scheme}")).await?;
                self.screenshot(&format!("{name}-{width}-{scheme}")).await?;
            }
            let wide = self.client.execute("return document.documentElement.scrollWidth", Vec::new()).await?;
            ensure!(
                wide.as_u64().is_some_and(|wide| wide <= u64::from(width)),
                "{path} is {wide} wide at {width}"
            );
        }
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [] })).await?;
        self.devtools("Emulation.clearDeviceMetricsOverride", json!({})).await?;
        Ok(())
    }

    async fn accessible(&self, what: &str) -> Result<()> {
        self.client.execute(&self.axe, Vec::new()).await?;
        let run = "const done = arguments[arguments.length - 1]; axe.run(document).then(r => done(r.violations.map(v => \
                   ({ id: v.id, impact: v.impact, help: v.help, where: v.nodes.slice(0, 5).map(n => n.html) }))), e => done(String(e)))";
        let found = self.client.execute_async(run, Vec::new()).await?;
        let found = found.as_array().with_context(|| format!("axe on {what}: {found}"))?;
        ensure!(found.is_empty(), "{what}: {found:#?}");
        Ok(())
    }
}

/// A short pause before the next poll.
pub(crate) fn pause() {
    load::StopFlag::default().pause(Duration::from_millis(50));
}

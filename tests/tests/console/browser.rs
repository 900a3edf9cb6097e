//! A browser without a screen, as people have one: chromium by its driver, both of Debian.

use anyhow::{Context, Result, bail, ensure};
use behaviour_tests::{PATIENCE, appliance, load};
use fantoccini::elements::Element;
use fantoccini::wd::TimeoutConfiguration;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xtask::house;

const INSTALL: &str = "the console is tested with Debian's chromium: apt-get install chromium chromium-driver, or cargo xtask setup";

/// Widths at which every page is looked at: a desk, and a phone.
const WIDTHS: [u32; 2] = [1280, 390];

/// What the visitor's system says of its colours.
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

/// One window of a browser, at the door of one appliance.
pub(crate) struct Browser {
    client: Client,
    driver: Driver,
    base: String,
    axe: String,
    pictures: PathBuf,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window; `base` is where the appliance is.
    pub(crate) async fn open(base: String) -> Result<Self> {
        let path = house::peers().join("node_modules/axe-core/axe.min.js");
        let axe = std::fs::read_to_string(&path)
            .with_context(|| format!("{}: run cargo xtask setup", path.display()))?;
        let port = appliance::free_port()?;
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
            // A test that runs as root has no sandbox to be in; it looks at nothing but its own appliance.
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
                Err(error) if begun.elapsed() > 2 * PATIENCE => bail!("{error}; {INSTALL}"),
                Err(_) => pause(),
            }
        };
        // The machine may be busy: what is judged is what is there, not how long it took.
        let patient = TimeoutConfiguration::new(Some(6 * PATIENCE), Some(6 * PATIENCE), None);
        client.update_timeouts(patient).await?;
        let pictures = house::target().join("screenshots");
        std::fs::create_dir_all(&pictures)?;
        Ok(Self { client, driver, base, axe, pictures, _profile: profile })
    }

    /// Closes it: what the driver does not close stays behind.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.client.clone().close().await?)
    }

    /// Goes to a page.
    pub(crate) async fn go(&self, path: &str) -> Result<()> {
        self.client.goto(&format!("{}{path}", self.base)).await.with_context(|| format!("going to {path}"))
    }

    /// Where it is: path and query.
    pub(crate) async fn place(&self) -> Result<String> {
        let url = self.client.current_url().await?;
        Ok(url.as_str().strip_prefix(&self.base).unwrap_or(url.as_str()).to_owned())
    }

    /// All that can be read on the page.
    pub(crate) async fn words(&self) -> Result<String> {
        Ok(self.client.find(Locator::Css("body")).await?.text().await?)
    }

    /// Waits until these words can be read, on a page that may change by itself.
    pub(crate) async fn reads(&self, words: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            // A page that is being left has no body.
            let there = self.words().await.unwrap_or_default();
            if there.contains(words) {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < 2 * PATIENCE,
                "in vain: {words:?} on {}:\n{there}",
                self.place().await?
            );
            pause();
        }
    }

    /// Whether there is such an element.
    pub(crate) async fn has(&self, css: &str) -> Result<bool> {
        Ok(!self.client.find_all(Locator::Css(css)).await?.is_empty())
    }

    /// Waits for such an element: a click does not wait for the page that it leads to.
    pub(crate) async fn shows(&self, css: &str) -> Result<()> {
        let begun = Instant::now();
        while !self.has(css).await.unwrap_or_default() {
            let there = self.words().await.unwrap_or_default();
            ensure!(begun.elapsed() < 2 * PATIENCE, "in vain: {css:?} on {}:\n{there}", self.place().await?);
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

    /// Types into a field, instead of what is in it.
    pub(crate) async fn fill(&self, id: &str, text: &str) -> Result<()> {
        let field = self.by_id(id).await?;
        field.clear().await?;
        field.send_keys(text).await.with_context(|| format!("typing into {id}"))
    }

    /// Puts a text of several lines into a field.
    pub(crate) async fn put(&self, id: &str, text: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        self.client.execute("arguments[0].value = arguments[1]", vec![field, text.into()]).await?;
        Ok(())
    }

    /// What is in a field.
    pub(crate) async fn value(&self, id: &str) -> Result<String> {
        Ok(self.by_id(id).await?.prop("value").await?.unwrap_or_default())
    }

    /// Chooses a file to be sent.
    pub(crate) async fn choose_file(&self, id: &str, path: &std::path::Path) -> Result<()> {
        Ok(self.by_id(id).await?.send_keys(&path.display().to_string()).await?)
    }

    /// Chooses from a list, by the value.
    pub(crate) async fn choose(&self, id: &str, value: &str) -> Result<()> {
        Ok(self.by_id(id).await?.select_by_value(value).await?)
    }

    /// Ticks a box.
    pub(crate) async fn tick(&self, id: &str) -> Result<()> {
        self.by_id(id).await?.click().await.with_context(|| format!("ticking {id}"))
    }

    /// Presses the button, or follows the link, or opens what has this label, and says yes if it is asked about once more.
    pub(crate) async fn press(&self, label: &str) -> Result<()> {
        let path = format!("//*[self::button or self::a or self::summary][normalize-space()='{label}']");
        let begun = Instant::now();
        loop {
            // There may be one in a part that is not open, or being drawn anew.
            for element in self.client.find_all(Locator::XPath(&path)).await? {
                if element.is_displayed().await.unwrap_or(false) && element.click().await.is_ok() {
                    let _ = self.client.accept_alert().await;
                    return Ok(());
                }
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "nothing to press is called {label:?} on {}",
                self.place().await?
            );
            pause();
        }
    }

    /// Puts something into a list to choose from that is not in it, and chooses it.
    pub(crate) async fn offer(&self, id: &str, value: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        let add = "arguments[0].add(new Option(arguments[1], arguments[1], true, true))";
        self.client.execute(add, vec![field, value.into()]).await?;
        Ok(())
    }

    /// What can be read in one part of the page.
    pub(crate) async fn part(&self, id: &str) -> Result<String> {
        Ok(self.by_id(id).await?.text().await?)
    }

    /// Marks the page as it is; one that is loaded anew has no mark.
    pub(crate) async fn mark(&self) -> Result<()> {
        self.client.execute("window.marked = true", Vec::new()).await?;
        Ok(())
    }

    /// Whether it is still the page that was marked.
    pub(crate) async fn is_marked(&self) -> Result<bool> {
        Ok(self.client.execute("return window.marked === true", Vec::new()).await? == json!(true))
    }

    /// Keeps a picture of what is to be seen now.
    pub(crate) async fn picture(&self, name: &str) -> Result<()> {
        let picture = self.client.screenshot().await?;
        let path = self.pictures.join(format!("{name}.png"));
        std::fs::write(&path, picture).with_context(|| path.display().to_string())
    }

    /// Sends the form in which a field is.
    pub(crate) async fn submit(&self, id: &str) -> Result<()> {
        let field = serde_json::to_value(self.by_id(id).await?)?;
        self.client.execute("arguments[0].form.querySelector('button').click()", vec![field]).await?;
        Ok(())
    }

    /// Asks the driver for what the protocol has no word for.
    async fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        let session = self.client.session_id().await?.context("no session")?;
        let url = format!("http://127.0.0.1:{}/session/{session}/goog/cdp/execute", self.driver.port);
        let body = json!({ "cmd": command, "params": parameters }).to_string();
        let mut answer = ureq::post(&url).header("content-type", "application/json").send(body)?;
        let answer: Value = serde_json::from_reader(answer.body_mut().as_reader())?;
        Ok(answer["value"].clone())
    }

    /// Looks at a page at both widths, light and dark: keeps a picture of each, sees that nothing is wider than the window, and
    /// has axe say what stands in somebody's way.
    pub(crate) async fn inspect(&self, path: &str) -> Result<()> {
        let name = path.trim_matches('/').replace(['/', '?', '&', '='], "-");
        let name = if name.is_empty() { "overview".to_owned() } else { name };
        for width in WIDTHS {
            let metrics =
                json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
            self.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
            self.go(path).await?;
            for scheme in SCHEMES {
                let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
                self.devtools("Emulation.setEmulatedMedia", features).await?;
                self.accessible(&format!("{path} at {width}, {scheme}")).await?;
                self.picture(&format!("{name}-{width}-{scheme}")).await?;
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
        let grave = |one: &&Value| matches!(one["impact"].as_str(), Some("serious" | "critical"));
        let grave: Vec<_> = found.iter().filter(grave).collect();
        ensure!(grave.is_empty(), "{what}: {grave:#?}");
        Ok(())
    }
}

/// A moment until the next look.
pub(crate) fn pause() {
    load::Stop::default().pause(Duration::from_millis(50));
}

//! Kannel's bearerbox and smsbox: a widely used ESME.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use testkit::load::StopFlag;
use testkit::test_daemon::free_port;

/// A running bearerbox and smsbox; stopped when dropped.
#[derive(Debug)]
pub struct Kannel {
    boxes: Vec<Child>,
    folder: PathBuf,
    sendsms: u16,
    admin: u16,
    /// Requests to the URLs that Kannel calls: path with query.
    calls: Receiver<String>,
    web: u16,
}

impl Kannel {
    /// Starts both boxes. `centres` are the groups of the SMSCs to which it binds.
    pub fn start(folder: &Path, centres: &str) -> Result<Self> {
        for program in ["/usr/sbin/bearerbox", "/usr/sbin/smsbox"] {
            if !Path::new(program).exists() {
                bail!("{program} is not installed; run: cargo xtask setup");
            }
        }
        let folder = folder.join("kannel");
        std::fs::create_dir_all(&folder)?;
        let (admin, boxes, sendsms) = (free_port()?, free_port()?, free_port()?);
        let (web, calls) = listen()?;
        let config = format!(
            r#"group = core
admin-port = {admin}
admin-password = secret
smsbox-port = {boxes}
box-allow-ip = "127.0.0.1"
log-file = "bearerbox.log"
log-level = 0
dlr-storage = internal

{centres}

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = {sendsms}
log-file = "smsbox.log"
log-level = 0

group = sendsms-user
username = user
password = secret
max-messages = 10
concatenation = true

group = sms-service
keyword = default
catch-all = true
get-url = "http://127.0.0.1:{web}/mo?from=%p&to=%P&text=%a"
max-messages = 0
"#
        );
        std::fs::write(folder.join("kannel.conf"), config)?;
        let mut kannel = Self { boxes: Vec::new(), folder, sendsms, admin, calls, web };
        kannel.run("/usr/sbin/bearerbox", boxes)?;
        kannel.run("/usr/sbin/smsbox", sendsms)?;
        Ok(kannel)
    }

    /// The group of an SMPP SMSC.
    pub fn smsc_group(name: &str, port: u16, system_id: &str, password: &str, more: &str) -> String {
        format!(
            "group = smsc\nsmsc = smpp\nsmsc-id = {name}\nhost = 127.0.0.1\nport = {port}\ntransceiver-mode = true\n\
             smsc-username = \"{system_id}\"\nsmsc-password = \"{password}\"\nsystem-type = \"\"\ninterface-version = 34\n\
             reconnect-delay = 1\n{more}\n"
        )
    }

    /// Starts a box and waits until its port accepts connections.
    fn run(&mut self, program: &str, port: u16) -> Result<()> {
        let child = Command::new(program)
            .arg("kannel.conf")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        self.boxes.push(child);
        let deadline = Instant::now() + crate::TIMEOUT;
        let pause = StopFlag::default();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            ensure!(Instant::now() < deadline, "{program} does not listen:\n{}", self.log());
            pause.pause(Duration::from_millis(20));
        }
        Ok(())
    }

    fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let text = read("bearerbox.log") + &read("smsbox.log");
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    fn http(port: u16, path: &str) -> Result<String> {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        socket.set_read_timeout(Some(crate::TIMEOUT))?;
        write!(socket, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or(answer))
    }

    /// Waits until the SMSC with this name is online.
    pub fn wait_until_online(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + crate::TIMEOUT;
        let pause = StopFlag::default();
        loop {
            let status = Self::http(self.admin, "/status.txt?password=secret")?;
            if status.lines().any(|line| line.contains(name) && line.contains("online")) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{name} does not come online:\n{status}\n{}", self.log());
            pause.pause(Duration::from_millis(50));
        }
    }

    /// Submits over Kannel's HTTP interface, with all delivery reports; `text` must need no escaping except for spaces.
    pub fn submit(&self, from: &str, to: &str, text: &str) -> Result<()> {
        let text = text.replace(' ', "+");
        let report = format!("http%3A%2F%2F127.0.0.1%3A{}%2Fdlr%3Ftype%3D%25d%26to%3D%25p", self.web);
        let path = format!(
            "/cgi-bin/sendsms?username=user&password=secret&from={from}&to={to}&text={text}&dlr-mask=31&dlr-url={report}"
        );
        let answer = Self::http(self.sendsms, &path)?;
        ensure!(answer.starts_with("0:"), "sendsms answered {answer:?}");
        Ok(())
    }

    /// Waits until Kannel calls a matching URL.
    pub fn expect_call(&self, fits: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + crate::TIMEOUT;
        let mut others = Vec::new();
        loop {
            match self.calls.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(call) if fits(&call) => return Ok(call),
                Ok(call) => others.push(call),
                Err(_) => bail!("no matching call; received {others:?}\n{}", self.log()),
            }
        }
    }
}

/// A web server that records the requested paths.
fn listen() -> Result<(u16, Receiver<String>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let (sender, calls) = channel();
    std::thread::Builder::new().name("web".to_owned()).spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&socket).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            for _ in lines.by_ref().take_while(|line| !line.is_empty()) {}
            let answer = "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
            // The caller may have disconnected.
            let _ = (&socket).write_all(answer.as_bytes());
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            if sender.send(path).is_err() {
                break;
            }
        }
    })?;
    Ok((port, calls))
}

impl Drop for Kannel {
    fn drop(&mut self) {
        for mut child in self.boxes.drain(..).rev() {
            // It may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

//! A real Chromium without a window, driven over the DevTools protocol through a pipe: no port is opened, and a message is a line of
//! JSON that ends with a zero byte.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for an answer: a machine may be busy, but a test must end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names of the program on various systems.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// One browser with one page.
pub struct Browser {
    process: Child,
    pipe: ChildStdin,
    messages: Receiver<Value>,
    /// What the page did since it was opened, as the protocol reports it.
    events: Vec<Value>,
    session: Option<String>,
    last_id: u64,
    folder: TempDir,
}

impl Browser {
    /// Starts it with an empty page of this size, in pixels of the page, `density` pixels of the screen each.
    pub fn start(width: u32, height: u32, density: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = launch(folder.path());
        let pipe = process.stdin.take().unwrap();
        let messages = listen(process.stdout.take().unwrap());
        let mut browser = Self { process, pipe, messages, events: Vec::new(), session: None, last_id: 0, folder };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(width, height, density);
        browser
    }

    pub fn resize(&mut self, width: u32, height: u32, density: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": density, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", feature);
    }

    /// Opens a page from a file, as a user would; `fragment` is what comes after the `#`.
    pub fn open(&mut self, html: &str, fragment: &str) {
        let file = self.folder.path().join("page.html");
        fs::write(&file, html).unwrap();
        self.events.clear();
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": format!("file://{}#{fragment}", file.display())}));
        while !self.events.iter().any(|event| {
            event["method"] == "Page.frameNavigated"
                && event["params"]["frame"]["url"].as_str().is_some_and(|url| url.starts_with("file:"))
        }) {
            self.next_event();
        }
        self.evaluate(
            "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))",
        );
        self.settle();
    }

    /// The value of an expression in the page; a promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let what = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", what);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        self.evaluate(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).to_owned()
    }

    pub fn number(&mut self, expression: &str) -> f64 {
        self.evaluate(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// Waits until the requested change is drawn.
    pub fn settle(&mut self) {
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))",
        );
    }

    /// Presses a key, named as in `KeyboardEvent.key`.
    pub fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
        }
        self.settle();
    }

    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
        self.settle();
    }

    /// Moves the pointer to a point of the window, and presses it there if `press`.
    pub fn point(&mut self, x: f64, y: f64, press: bool) {
        let mut event = |kind: &str, button: &str| {
            let what = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", what);
        };
        event("mouseMoved", "none");
        if press {
            event("mousePressed", "left");
            event("mouseReleased", "left");
        }
        self.settle();
    }

    /// Drags with the mouse from one point of the window to another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let mut event = |kind: &str, (x, y): (f64, f64), buttons: u32| {
            let what = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", what);
        };
        event("mousePressed", from, 1);
        event("mouseMoved", ((from.0 + to.0) / 2.0, to.1), 1);
        event("mouseMoved", to, 1);
        event("mouseReleased", to, 0);
        self.settle();
    }

    /// Turns the wheel over a point of the window.
    pub fn wheel(&mut self, (x, y): (f64, f64), down: f64) {
        let what = json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": down, "modifiers": 2});
        self.call("Input.dispatchMouseEvent", what);
        self.settle();
    }

    /// Taps a point of the window with a finger.
    pub fn tap(&mut self, x: f64, y: f64) {
        self.call("Emulation.setTouchEmulationEnabled", json!({"enabled": true}));
        self.call("Input.dispatchTouchEvent", json!({"type": "touchStart", "touchPoints": [{"x": x, "y": y}]}));
        self.call("Input.dispatchTouchEvent", json!({"type": "touchEnd", "touchPoints": []}));
        self.settle();
    }

    /// Errors in the console and the log of the page, and exceptions.
    pub fn complaints(&mut self) -> Vec<String> {
        self.settle();
        let complaint = |event: &Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "verbose",
            _ => false,
        };
        self.events.iter().filter(|event| complaint(event)).map(Value::to_string).collect()
    }

    /// Addresses that were requested since the page was opened, including that of the page.
    pub fn requests(&mut self) -> Vec<String> {
        self.settle();
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The page as a PNG.
    pub fn screenshot(&mut self, file: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let bytes =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, answer["data"].as_str().unwrap());
        fs::write(file, bytes.unwrap()).unwrap();
    }

    /// Shows the page as it is printed; `screen` shows it as on a screen again.
    pub fn show_as(&mut self, medium: &str) {
        self.call("Emulation.setEmulatedMedia", json!({"media": medium}));
        self.settle();
    }

    /// The page on paper, as a PDF.
    pub fn print(&mut self) -> Vec<u8> {
        let answer = self.call("Page.printToPDF", json!({"printBackground": true, "preferCSSPageSize": true}));
        let data = answer["data"].as_str().unwrap();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap()
    }

    /// Calls a method of the protocol and waits for its result; what happens meanwhile is remembered.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.pipe.write_all(&bytes).unwrap();
        self.pipe.flush().unwrap();
        loop {
            let answer = self.next_message(method);
            if answer["id"] == self.last_id {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn next_event(&mut self) {
        let event = self.next_message("waiting for an event");
        self.events.push(event);
    }

    fn next_message(&self, during: &str) -> Value {
        self.messages.recv_timeout(PATIENCE).unwrap_or_else(|fault| panic!("Chromium says nothing ({during}): {fault}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser is first asked to close, since only then do its child processes end; a browser that is already
        // gone needs nothing.
        let _ = self.pipe.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        for _ in 0..100 {
            if self.process.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(folder: &Path) -> Child {
    let program = PROGRAMS.into_iter().find(|name| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    });
    let program = program
        .unwrap_or_else(|| panic!("this test needs Chromium, and none of {PROGRAMS:?} is there: run scripts/setup.sh"));
    // Chromium reads from 3 and writes to 4.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null", program]);
    command.args([
        "--headless=new",
        "--remote-debugging-pipe",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--force-color-profile=srgb",
    ]);
    command.args(["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    // Its sandbox refuses to run as root.
    if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.arg("--no-sandbox");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Reads messages until the browser is gone.
fn listen(out: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut out = BufReader::new(out);
        let mut message = Vec::new();
        while out.read_until(0, &mut message).is_ok_and(|read| read > 0) {
            message.pop();
            let Ok(value) = serde_json::from_slice(&message) else { break };
            message.clear();
            if sender.send(value).is_err() {
                break;
            }
        }
    });
    receiver
}

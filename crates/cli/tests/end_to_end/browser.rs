//! A real browser without a window, driven over its debugging pipe.
//!
//! Debian's Chromium speaks its debugging protocol on file descriptors 3 and 4: messages of JSON,
//! each ended by a zero byte. A shell makes standard input and output of them.

use crate::install::{self, Needed};
use crate::support::Folder;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const CHROMIUM: &str = "/usr/bin/chromium";
const PATIENCE: Duration = Duration::from_mins(1);
/// Screenshots go to the folder that this names, if it is set.
const SCREENSHOTS: &str = "ISOLDE_SCREENSHOTS";

/// One browser at a time: they share two cores with everything else, and times are measured.
static ALONE: Mutex<()> = Mutex::new(());

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    next_id: u64,
    /// Errors and warnings that the page caused.
    pub(crate) complaints: Vec<String>,
    _profile: Folder,
    _alone: MutexGuard<'static, ()>,
}

impl Browser {
    /// A browser, if there is one or it can be installed; else says that the test is skipped.
    pub(crate) fn start() -> Option<Browser> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !install::is_there(&Needed { file: CHROMIUM, packages: &["chromium"] }) {
            return None;
        }
        let profile = Folder::with(&[]);
        let script = format!(
            "exec {CHROMIUM} --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
             --no-first-run --disable-extensions --remote-debugging-pipe --user-data-dir=\"$0\" \
             about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(profile.path("profile"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let commands = child.stdin.take().expect("piped");
        let mut answers = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|count| count > 0) {
                message.pop();
                let Ok(json) = serde_json::from_slice(&message) else { break };
                message.clear();
                if sender.send(json).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            child,
            commands,
            messages,
            session: String::new(),
            next_id: 0,
            complaints: Vec::new(),
            _profile: profile,
            _alone: alone,
        };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = self.call(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        let session = attached["sessionId"].as_str().expect("a session");
        session.clone_into(&mut self.session);
        for domain in ["Runtime", "Page", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Calls a method of the protocol.
    #[expect(clippy::needless_pass_by_value, reason = "calls read better")]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser listens");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.messages.recv_timeout(left).expect("the browser answers in time");
            if answer["id"] == json!(id) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    /// Keeps what the page complains about, and everything it tried to load from elsewhere.
    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] != json!("log") => {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") => self.complaints.push(params["entry"].to_string()),
            Some("Page.javascriptDialogOpening") => {
                self.complaints.push(format!("a dialog: {}", params["message"]));
            }
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or("");
                if !url.starts_with("file://") && !url.starts_with("http://127.0.0.1") {
                    self.complaints.push(format!("loaded {url}"));
                }
            }
            _ => {}
        }
    }

    /// Sets the size of the window, and whether it is a phone's.
    pub(crate) fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}),
        );
    }

    /// Opens a page and waits until it is ready; returns the milliseconds that it took, as the
    /// page itself measured them.
    pub(crate) fn open(&mut self, url: &str) -> u64 {
        self.call("Page.navigate", json!({"url": url}));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ready = self.value("document.documentElement?.dataset.ready || ''");
            if let Some(milliseconds) = ready.as_str().and_then(|text| text.parse().ok()) {
                return milliseconds;
            }
            assert!(Instant::now() < deadline, "{url} is not ready: {:?}", self.complaints);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Opens a page of a folder.
    pub(crate) fn open_file(&mut self, path: &Path) -> u64 {
        self.open(&format!("file://{}", path.display()))
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true}),
        );
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { key };
        let mut down = json!({"type": "keyDown", "key": key, "code": key});
        if text.chars().count() == 1 {
            down["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key, "code": key}));
    }

    /// Keeps a picture of the page, for people to look at.
    pub(crate) fn screenshot(&mut self, name: &str, whole: bool) {
        let Some(folder) = std::env::var_os(SCREENSHOTS) else { return };
        let shot = self.call("Page.captureScreenshot", json!({"captureBeyondViewport": whole}));
        let bytes = BASE64_STANDARD.decode(shot["data"].as_str().expect("text")).expect("Base64");
        std::fs::write(Path::new(&folder).join(name), bytes).expect("a writable folder");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

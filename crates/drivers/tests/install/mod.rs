//! Servers for tests, from Debian's packages, installed if they are missing.
//!
//! Only root on a machine with `apt-get` can install them. Everybody else sees a line
//! `skipped: no server (…)`, and the test passes. No service is started: the tests start
//! private servers themselves.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a test needs.
pub(crate) struct Needed {
    /// A file that is there if the packages are; `*` stands for any one folder.
    pub(crate) file: &'static str,
    /// The packages.
    pub(crate) packages: &'static [&'static str],
}

/// Whether the server is there, now at the latest. If not, says so.
pub(crate) fn is_there(needed: &Needed) -> bool {
    // Held to the end: what another test is installing is there before it is ready.
    let lock = File::create(std::env::temp_dir().join("isolde-install.lock"));
    let _locked = lock.as_ref().map(File::lock);
    if exists(needed.file) {
        return true;
    }
    let reason = match install(needed) {
        Ok(()) if exists(needed.file) => return true,
        Ok(()) => format!("the packages have no {}", needed.file),
        Err(reason) => reason,
    };
    // Not by `eprintln`, which tests that pass do not show.
    let packages = needed.packages.join(" ");
    let _ = writeln!(std::io::stderr(), "skipped: no server ({packages}: {reason})");
    false
}

fn exists(file: &str) -> bool {
    let Some((folder, rest)) = file.split_once("/*/") else { return Path::new(file).exists() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(rest)).any(|path| path.exists())
}

fn install(needed: &Needed) -> Result<(), String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root || !exists("/usr/bin/apt-get") {
        return Err("only root can install it, on Debian".to_owned());
    }
    let _quiet = NoServices::new();
    if apt_get("install", needed.packages).is_ok() {
        return Ok(());
    }
    apt_get("update", &[])?;
    apt_get("install", needed.packages)
}

fn apt_get(task: &str, packages: &[&str]) -> Result<(), String> {
    let output = Command::new("timeout")
        .args(["300", "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120", task])
        .args(if task == "install" { &["--no-install-recommends"][..] } else { &[] })
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(message.lines().last().unwrap_or("apt-get failed").to_owned())
}

/// Keeps packages from starting services, as long as it lives.
struct NoServices {
    is_ours: bool,
}

/// Asked by Debian's packages; 101 is a no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

impl NoServices {
    fn new() -> NoServices {
        let is_ours = !exists(POLICY)
            && fs::write(POLICY, "#!/bin/sh\nexit 101\n").is_ok()
            && fs::set_permissions(POLICY, PermissionsExt::from_mode(0o755)).is_ok();
        NoServices { is_ours }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(POLICY);
        }
    }
}

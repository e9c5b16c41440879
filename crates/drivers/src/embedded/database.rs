//! An embedded store as a database: a new place, which is removed in the end.

use super::session::EmbeddedSession;
use super::{Store, unusable};
use crate::Stop;
use crate::managed::Home;
use isolde_harness::{
    Access, Address, Claim, Database, Endpoint, Failure, Needs, RequestKind, Session,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store at a place of its own.
pub(super) struct Embedded {
    name: &'static str,
    version: &'static str,
    claims: Vec<Claim>,
    endpoints: Vec<Endpoint>,
    path: PathBuf,
    open: fn(&Path) -> Result<Arc<dyn Store>, Failure>,
    store: Option<Arc<dyn Store>>,
    /// The folder it is in, if that is a temporary one.
    home: Option<Home>,
}

impl Embedded {
    /// A store of this kind at the place that the address names, which must not exist, or
    /// among the temporary files.
    pub(super) fn open(
        (address, stop): (&Address, &Stop),
        (name, version): (&'static str, &'static str),
        claim: Claim,
        store: fn(&Path) -> Result<Arc<dyn Store>, Failure>,
    ) -> Result<Box<dyn Database>, Failure> {
        if !address.hosts.is_empty() {
            return Err(Failure::Refused(format!(
                "expected a path, as in {}:/path/to/store, found a server's address",
                address.scheme
            )));
        }
        // A run that is killed cannot remove it, but whoever watches over servers does.
        let home = if address.path.is_empty() {
            Some(Home::new(&address.scheme, &[], stop)?)
        } else {
            None
        };
        let path = match &home {
            Some(home) => home.path().join("store"),
            None => PathBuf::from(&address.path),
        };
        if path.exists() {
            return Err(Failure::Refused(format!(
                "expected a path where nothing is yet, found {}",
                path.display()
            )));
        }
        // Folders are not ours to create: we would have to remove them.
        if path.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
            return Err(unusable(&format!("{} is in no folder", path.display())));
        }
        let mut database = Embedded {
            name,
            version,
            claims: vec![claim],
            endpoints: vec![Endpoint {
                name: path.display().to_string(),
                access: Access::ReadWrite,
            }],
            path,
            open: store,
            store: None,
            home,
        };
        // A path that cannot be used shows now.
        (database.open)(&database.path)?;
        database.clean_up()?;
        Ok(Box::new(database))
    }
}

impl Database for Embedded {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        &self.claims[0].isolation
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        !kind.is_by_condition()
    }

    fn prepare(&mut self, _needs: &Needs) -> Result<(), Failure> {
        self.store = Some((self.open)(&self.path)?);
        Ok(())
    }

    fn connect(&self, _endpoint: usize, _isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let store = self.store.as_ref().ok_or_else(|| {
            Failure::Refused("expected a store that was prepared, found none".to_owned())
        })?;
        Ok(Box::new(EmbeddedSession::new(Arc::clone(store))))
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.store = None;
        let removed = match std::fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(&self.path),
            Ok(_) => std::fs::remove_file(&self.path),
            Err(_) => Ok(()),
        };
        removed.map_err(|error| {
            Failure::Refused(format!("cannot remove {}: {error}", self.path.display()))
        })
    }

    fn removal(&self) -> Option<String> {
        let path = self.path.display().to_string().replace('\'', "'\\''");
        // Who watches over a temporary place removes it.
        (self.home.is_none() && self.path.exists()).then(|| format!("rm -r '{path}'"))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

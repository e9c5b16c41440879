//! SHA-256, by which a page tells the browser the only script and style that it may use.
//!
//! The data of a page comes from histories of others. Should any of it ever end up as a script
//! against all care, the browser refuses to run it, because its hash is not in the policy.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// The hash of `text` as a policy names it: `sha256-` and Base64.
pub(crate) fn source(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn sources_are_written_as_policies_have_them() {
        assert_eq!(source(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}

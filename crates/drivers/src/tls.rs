//! Encrypted connections: whom a client trusts, and who it says it is.
//!
//! Every address has the same options for that, called as PostgreSQL's own clients call
//! them. MySQL's client has encryption of its own, with the names that its users know.
//!
//! | `sslmode` | who is trusted |
//! |---|---|
//! | `require` | anybody |
//! | `verify-ca` | whom a certificate of `sslrootcert` vouches for |
//! | `verify-full` | the same, if the certificate names the server |
//!
//! `sslrootcert` is a file of certificates, or `system`. `sslcert` and `sslkey` are files
//! with the certificate of the client and its key, for servers that ask for one.

use isolde_harness::{Address, Failure};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::fmt::Display;
use std::sync::Arc;

/// Options of an address that are about encryption.
pub(crate) const OPTIONS: &[&str] = &["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// Where systems keep the certificates they trust.
const SYSTEM_CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// How much of a certificate must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Anybody,
    Issuer,
    IssuerAndName,
}

/// What connections are encrypted with if an address always means encrypted ones, such as
/// `rediss://`: everything is verified, unless the options say otherwise.
pub(crate) fn always(address: &Address) -> Result<Arc<ClientConfig>, Failure> {
    let trust = match address.option("sslmode").unwrap_or("verify-full") {
        "require" => Trust::Anybody,
        "verify-ca" => Trust::Issuer,
        "verify-full" => Trust::IssuerAndName,
        other => {
            return Err(Failure::Refused(format!(
                "expected sslmode require, verify-ca or verify-full in an address of {}, found \
                 `{other}`",
                address.scheme
            )));
        }
    };
    configured(address, trust, Some("system"))
}

/// What connections are encrypted with. Without `sslrootcert`, these roots are trusted.
pub(crate) fn configured(
    address: &Address,
    trust: Trust,
    default_roots: Option<&str>,
) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(ring::default_provider());
    let roots = match (trust, address.option("sslrootcert").or(default_roots)) {
        (Trust::Anybody, _) => None,
        (_, Some(path)) => Some(roots(path)?),
        (_, None) => {
            return Err(Failure::Refused(
                "expected sslrootcert, a file of certificates or `system`, beside sslmode \
                 verify-ca and verify-full"
                    .to_owned(),
            ));
        }
    };
    let inner = roots.map(|roots| {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()
    });
    let inner = inner.transpose().map_err(|error| {
        Failure::Refused(format!("cannot use the certificates in sslrootcert: {error}"))
    })?;
    let verifier = Verifier { inner, trust, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the protocol versions it is compiled with")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match (address.option("sslcert"), address.option("sslkey")) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = certificates("sslcert", certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("a key", "sslkey", key, &error))?;
            config.with_client_auth_cert(chain, key).map_err(|error| {
                Failure::Refused(format!("cannot use sslcert and sslkey: {error}"))
            })?
        }
        _ => {
            return Err(Failure::Refused(
                "expected sslcert and sslkey together, found one of them".to_owned(),
            ));
        }
    };
    Ok(Arc::new(config))
}

fn unreadable(what: &str, option: &str, path: &str, error: &dyn Display) -> Failure {
    Failure::Refused(format!("cannot read {what} from {option} {path}: {error}"))
}

/// The certificates in a file that an option names; at least one.
fn certificates(option: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let unreadable = |error: &dyn Display| unreadable("certificates", option, path, error);
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(unreadable(&"there is none in it")) } else { Ok(found) }
}

fn roots(path: &str) -> Result<RootCertStore, Failure> {
    let path = match path {
        "system" => SYSTEM_CERTIFICATES
            .iter()
            .find(|path| std::path::Path::new(path).is_file())
            .ok_or_else(|| {
                Failure::Refused("expected the system's certificates, found none".to_owned())
            })?,
        path => path,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("sslrootcert", path)? {
        // A system may trust certificates of a kind that we do not know.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(unreadable("certificates", "sslrootcert", path, &"none of them can be used"));
    }
    Ok(roots)
}

/// Judges certificates by [`Trust`].
#[derive(Debug)]
struct Verifier {
    /// Invariant: there is one unless anybody is trusted.
    inner: Option<Arc<WebPkiServerVerifier>>,
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is looked at last, so everything else was right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.trust == Trust::Issuer => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

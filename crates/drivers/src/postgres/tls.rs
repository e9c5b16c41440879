//! Encrypted connections to PostgreSQL, by `sslmode` as its own clients understand it.
//!
//! | `sslmode` | encrypted | who is trusted |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer`, the default | if the server can | anybody |
//! | `require` | yes | anybody |
//! | `verify-ca` | yes | whom a certificate of `sslrootcert` vouches for |
//! | `verify-full` | yes | the same, if the certificate names the server |
//!
//! `sslrootcert` is a file of certificates, or `system`.

use isolde_harness::{Address, Failure};
use postgres::Socket;
use postgres::config::SslMode;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Where systems keep the certificates they trust.
const SYSTEM_CERTIFICATES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// How a connection is encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) mode: SslMode,
    config: Arc<ClientConfig>,
}

/// How much of a certificate must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Anybody,
    Issuer,
    IssuerAndName,
}

impl Tls {
    /// What the options of the address ask for.
    pub(super) fn of(address: &Address) -> Result<Tls, Failure> {
        let (mode, trust) = match address.option("sslmode").unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Trust::Anybody),
            "prefer" => (SslMode::Prefer, Trust::Anybody),
            "require" => (SslMode::Require, Trust::Anybody),
            "verify-ca" => (SslMode::Require, Trust::Issuer),
            "verify-full" => (SslMode::Require, Trust::IssuerAndName),
            other => {
                return Err(Failure::Refused(format!(
                    "expected sslmode disable, prefer, require, verify-ca or verify-full, found \
                     `{other}`"
                )));
            }
        };
        let provider = Arc::new(ring::default_provider());
        let roots = match (trust, address.option("sslrootcert")) {
            (Trust::Anybody, _) => None,
            (_, Some(path)) => Some(certificates(path)?),
            (_, None) => {
                return Err(Failure::Refused(
                    "expected sslrootcert, a file of certificates or `system`, beside sslmode \
                     verify-ca and verify-full"
                        .to_owned(),
                ));
            }
        };
        let inner = roots.map(|roots| {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
        });
        let inner = inner.transpose().map_err(|error| {
            Failure::Refused(format!("cannot use the certificates in sslrootcert: {error}"))
        })?;
        let verifier = Verifier { inner, trust, provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the protocol versions it is compiled with")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Tls { mode, config: Arc::new(config) })
    }
}

fn certificates(path: &str) -> Result<RootCertStore, Failure> {
    let path = match path {
        "system" => SYSTEM_CERTIFICATES
            .iter()
            .find(|path| std::path::Path::new(path).is_file())
            .ok_or_else(|| {
                Failure::Refused("expected the system's certificates, found none".to_owned())
            })?,
        path => path,
    };
    let unreadable = |what: &dyn std::fmt::Display| {
        Failure::Refused(format!("cannot read certificates from sslrootcert {path}: {what}"))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        // A system may trust certificates of a kind that we do not know.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() { Err(unreadable(&"there is none in it")) } else { Ok(roots) }
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

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, server: &str) -> io::Result<Connect> {
        let name = ServerName::try_from(server.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Connect { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

/// A connection to one server, before it is encrypted.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Stream(self.connector.connect(self.name, socket).await?)) })
    }
}

/// An encrypted connection.
pub(super) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

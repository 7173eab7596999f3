//! Encrypted connections, with a certificate of the operator's.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Makes connections encrypted ones.
#[derive(Clone)]
pub struct Encryption(TlsAcceptor);

impl std::fmt::Debug for Encryption {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Encryption")
    }
}

/// Why a certificate or a key cannot be used.
#[derive(Debug)]
pub enum Unusable {
    Certificate(PathBuf, PemError),
    NoCertificate(PathBuf),
    Key(PathBuf, PemError),
    /// They do not belong together, or are of a kind that is not known.
    Both(rustls::Error),
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Certificate(path, error) => write!(
                formatter,
                "the certificate `{}` cannot be read: {error}; it must be PEM",
                path.display()
            ),
            Self::NoCertificate(path) => {
                write!(formatter, "`{}` has no certificate in it", path.display())
            }
            Self::Key(path, error) => write!(
                formatter,
                "the key `{}` cannot be read: {error}; it must be PEM without a password",
                path.display()
            ),
            Self::Both(error) => {
                write!(
                    formatter,
                    "the certificate and the key cannot be used: {error}"
                )
            }
        }
    }
}

impl Encryption {
    /// Reads the certificate, with those that lead to its root, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Unusable> {
        let unreadable = |error| Unusable::Certificate(certificate.to_owned(), error);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .map_err(unreadable)?
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        if chain.is_empty() {
            return Err(Unusable::NoCertificate(certificate.to_owned()));
        }
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| Unusable::Key(key.to_owned(), error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(Unusable::Both)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// The same connection, encrypted, once both sides have agreed.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept(stream).await
    }
}

//! Opening a connection: TCP, startup, authentication (trust, cleartext on request, SCRAM-SHA-256 by password or by the
//! keys of a client's own exchange). Follows <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP>.

use std::time::{Duration, Instant};

use base64::Engine;
use pgherd_wire::backend::{self, Authentication};
use pgherd_wire::frontend;
use pgherd_wire::scram::ScramClient;
use tokio::net::TcpStream;

use crate::liveness::{SERVERS, keep_alive};
use crate::{BackendError, Connection};

/// How long a server may take to accept and authenticate a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What proves who we are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Credentials {
    /// The server trusts us.
    None,
    Password(String),
    /// The ClientKey and ServerKey of a SCRAM exchange against the same verifier.
    ScramKeys {
        client_key: [u8; 32],
        server_key: [u8; 32],
    },
}

#[derive(Debug, Clone)]
pub struct Target {
    pub address: Address,
    pub user: String,
    pub database: String,
    pub credentials: Credentials,
    /// Further startup parameters.
    pub parameters: Vec<(String, String)>,
    /// Kept as [`Connection::label`] on a connection that is opened.
    pub label: Option<String>,
}

/// Connects and authenticates; the connection is idle and ready when this returns.
pub async fn connect(target: &Target) -> Result<Connection, BackendError> {
    match tokio::time::timeout(CONNECT_TIMEOUT, connect_untimed(target)).await {
        Ok(result) => result,
        Err(_) => Err(BackendError::Connect {
            address: target.address.to_string(),
            source: std::io::Error::new(std::io::ErrorKind::TimedOut, "timeout expired"),
        }),
    }
}

async fn connect_untimed(target: &Target) -> Result<Connection, BackendError> {
    let address = target.address.to_string();
    let stream = TcpStream::connect((target.address.host.as_str(), target.address.port))
        .await
        .map_err(|source| BackendError::Connect { address: address.clone(), source })?;
    let _ = stream.set_nodelay(true);
    keep_alive(&stream, SERVERS);
    let mut connection = Connection::new(stream, address.clone());
    connection.label = target.label.clone();
    let mut parameters = vec![
        ("user".to_owned(), target.user.clone()),
        ("database".to_owned(), target.database.clone()),
        ("client_encoding".to_owned(), "UTF8".to_owned()),
    ];
    parameters.extend(target.parameters.iter().cloned());
    frontend::write_startup(connection.buffer(), (3, 0), &parameters);
    let mut scram: Option<ScramClient> = None;
    loop {
        let frame = connection.frame().await?;
        match frame.tag() {
            b'R' => {
                let step = backend::parse_authentication(&frame).map_err(|e| BackendError::protocol(&address, &e))?;
                authenticate(&mut connection, target, &mut scram, step)?;
            }
            b'E' => {
                let fields = backend::parse_error(&frame).map_err(|e| BackendError::protocol(&address, &e))?;
                return Err(BackendError::Server(Box::new(fields)));
            }
            b'Z' => {
                connection.since = Instant::now();
                return Ok(connection);
            }
            // ParameterStatus and BackendKeyData are kept by the connection, notices say nothing we need.
            _ => {}
        }
    }
}

fn authenticate(
    connection: &mut Connection,
    target: &Target,
    scram: &mut Option<ScramClient>,
    step: Authentication,
) -> Result<(), BackendError> {
    let address = target.address.to_string();
    let refuse = |reason: &str| BackendError::Protocol { address: address.clone(), reason: reason.to_owned() };
    match step {
        Authentication::Ok => {}
        Authentication::CleartextPassword => match &target.credentials {
            Credentials::Password(password) => {
                let mut bytes = password.clone().into_bytes();
                bytes.push(0);
                frontend::write_password(connection.buffer(), &bytes);
            }
            _ => return Err(refuse("the server asks for a password and none is known")),
        },
        Authentication::Sasl { mechanisms } => {
            if !mechanisms.iter().any(|m| m == "SCRAM-SHA-256") {
                return Err(refuse("the server offers no SASL mechanism that is known"));
            }
            let nonce = nonce().map_err(|e| refuse(&e))?;
            let client = match &target.credentials {
                Credentials::Password(password) => ScramClient::from_password(password, &nonce),
                Credentials::ScramKeys { client_key, server_key } => {
                    ScramClient::from_keys(*client_key, *server_key, &nonce)
                }
                Credentials::None => return Err(refuse("the server asks for a password and none is known")),
            };
            frontend::write_sasl_initial(connection.buffer(), "SCRAM-SHA-256", client.first_message().as_bytes());
            *scram = Some(client);
        }
        Authentication::SaslContinue { data } => {
            let client = scram.as_mut().ok_or_else(|| refuse("SASL continuation without a start"))?;
            let reply = client.handle_server_first(&data).map_err(|e| refuse(&e.to_string()))?;
            frontend::write_sasl_response(connection.buffer(), reply.as_bytes());
        }
        Authentication::SaslFinal { data } => {
            let client = scram.as_mut().ok_or_else(|| refuse("SASL end without a start"))?;
            client.handle_server_final(&data).map_err(|e| refuse(&e.to_string()))?;
        }
        other => return Err(refuse(&format!("authentication method {other:?} is not supported"))),
    }
    Ok(())
}

/// A SCRAM nonce: 18 random bytes in base64.
fn nonce() -> Result<String, String> {
    let mut bytes = [0u8; 18];
    getrandom::fill(&mut bytes).map_err(|e| format!("no random bytes: {e}"))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

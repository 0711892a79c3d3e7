//! From an accepted connection to a session: startup packet, encryption requests, cancel requests, authentication.
//! Follows <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP>.

use std::rc::Rc;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use pgherd_backend::Credentials;
use pgherd_wire::backend::{self, ErrorFields};
use pgherd_wire::frame::{Startup, next_startup};
use pgherd_wire::frontend::{self, FrontendMessage};
use pgherd_wire::scram::ScramServer;
use tokio::net::TcpStream;

use crate::callback;
use crate::callers::{Caller, Line, LocalLine};
use crate::client::Client;
use crate::database;
use crate::encoding::ClientEncoding;
use crate::error::{Failure, Result};
use crate::listen::AuthMode;
use crate::placement::Incoming;
use crate::session::{NewSession, Session};
use crate::settings::Settings;
use crate::shared::{Seat, Thread};

/// A client that has not authenticated by then is dropped (PostgreSQL's `authentication_timeout`).
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves one connection to its end. Every error ends here.
pub async fn accept(thread: Rc<Thread>, stream: TcpStream) {
    let mut client = Client::new(stream);
    let result = match tokio::time::timeout(AUTHENTICATION_TIMEOUT, begin(&thread, &mut client)).await {
        Ok(result) => result,
        Err(_) => return,
    };
    let failure = match result {
        Ok(Begun::Over) => return,
        Ok(Begun::Callback { caller, role }) => {
            callback::serve(thread, client, caller, role).await;
            return;
        }
        Ok(Begun::Session(new)) => match Session::start(thread, client, *new).await {
            Ok(session) => return serve(session).await,
            Err((mut client, failure)) => {
                tell(&mut client, failure).await;
                return;
            }
        },
        Err(failure) => failure,
    };
    tell(&mut client, failure).await;
}

/// Serves a session to its end, or until it goes to another thread.
pub async fn serve(session: Session) {
    let thread = session.thread.clone();
    if let Some((seed, to)) = session.run().await
        && let Err(Incoming::Session(seed)) = thread.placement.send(to, Incoming::Session(Box::new(seed)))
    {
        // That thread has stopped, and so will this one.
        seed.abandon(&thread);
    }
}

/// The last message of a connection that never became a session.
async fn tell(client: &mut impl Line, failure: Failure) {
    if let Failure::Statement(mut fields) | Failure::Fatal(mut fields) = failure {
        fields.set(b'S', "FATAL");
        fields.set(b'V', "FATAL");
        backend::write_error(client.out(), &fields);
        let _ = client.flush().await;
    }
}

enum Begun {
    /// Nothing more to do: a cancel request was served.
    Over,
    Callback {
        caller: Caller,
        /// With whose rights the coordinator reads, where it says so.
        role: Option<u32>,
    },
    Session(Box<NewSession>),
}

/// Encryption is not offered: the client goes on in the clear or leaves. Whoever has gone on already, without waiting for
/// this, spoke in the clear what was meant to be secret, or somebody else did (CVE-2021-23214).
async fn decline(client: &mut Client, request: &str) -> Result<()> {
    client.out.extend_from_slice(b"N");
    client.flush().await?;
    if client.read.is_empty() {
        return Ok(());
    }
    let fields = ErrorFields::new("FATAL", "08P01", format!("received unencrypted data after {request}"));
    Err(Failure::Fatal(Box::new(fields.with(
        b'D',
        "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
    ))))
}

fn unsupported_version((major, minor): (u16, u16)) -> Failure {
    Failure::fatal("0A000", format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2"))
}

async fn begin(thread: &Rc<Thread>, client: &mut Client) -> Result<Begun> {
    // Encryption is asked for once; what asks again is no version of the protocol.
    let (mut ssl_done, mut gss_done) = (false, false);
    let (version, params) = loop {
        let packet = loop {
            if let Some(packet) = next_startup(&mut client.read)? {
                break packet;
            }
            client.fill().await?;
        };
        match packet {
            Startup::SslRequest if !ssl_done => {
                ssl_done = true;
                decline(client, "SSL request").await?;
            }
            Startup::GssEncRequest if !gss_done => {
                gss_done = true;
                decline(client, "GSSAPI encryption request").await?;
            }
            Startup::SslRequest => return Err(unsupported_version((1234, 5679))),
            Startup::GssEncRequest => return Err(unsupported_version((1234, 5680))),
            Startup::Cancel { pid, key } => {
                if let Some(state) = thread.shared.find_cancel(pid, &key) {
                    state.cancel_all().await;
                }
                return Ok(Begun::Over);
            }
            Startup::Startup { version, params } => break (version, params),
        }
    };
    if version.0 != 3 {
        return Err(unsupported_version(version));
    }
    let mut settings = Settings::new();
    let (mut user, mut database, mut unknown, mut options) = (None, None, Vec::new(), String::new());
    for (name, value) in params {
        match name.as_str() {
            "user" => user = Some(value),
            "database" => database = Some(value),
            "options" => options = value,
            "replication" => match (value.as_str(), crate::settings::boolean(&value)) {
                (_, Some(false)) => {}
                ("database", _) | (_, Some(true)) => {
                    return Err(Failure::fatal("0A000", "replication connections are not supported by the router"));
                }
                _ => {
                    let message = format!("invalid value for parameter \"replication\": \"{value}\"");
                    let hint = "Valid values are: \"false\", 0, \"true\", 1, \"database\".";
                    return Err(Failure::fatal("22023", message).hint(hint));
                }
            },
            _ if name.starts_with("_pq_.") => unknown.push(name),
            _ => {
                settings.insert(name.to_lowercase(), value);
            }
        }
    }
    // What is wrong with them is told to who has logged in.
    let mut of_options = Settings::new();
    let options = crate::settings::parse_options(&options, &mut of_options);
    // A parameter of its own counts for more.
    for (name, value) in of_options.iter() {
        if !settings.contains_key(name) {
            settings.insert(name.clone(), value.clone());
        }
    }
    if let Some(token) = settings.get("application_name").and_then(|name| name.strip_prefix(callback::PREFIX)) {
        let caller = Caller::Token(token.to_owned());
        authenticate_callback(thread, client, &caller).await?;
        return Ok(Begun::Callback { caller, role: role_of(user.as_deref()) });
    }
    if version.1 > 2 || !unknown.is_empty() {
        backend::write_negotiate_protocol_version(&mut client.out, (3, version.1.min(2)), &unknown);
    }
    let user = user
        .filter(|u| !u.is_empty())
        .ok_or_else(|| Failure::fatal("28000", "no PostgreSQL user name specified in startup packet"))?;
    let database = database.filter(|d| !d.is_empty()).unwrap_or_else(|| user.clone());
    let encoding = crate::settings::take_encoding(&mut settings);
    let mut seat = Seat::take(&thread.shared)?;
    let login = thread.login(&user, &database).await?;
    let credentials = match thread.shared.config.auth {
        AuthMode::Trust => thread.shared.config.coordinator.credentials_if(&user),
        AuthMode::ScramSha256 => authenticate(thread, client, &user, login.verifier()).await?,
    };
    backend::write_authentication_ok(&mut client.out);
    thread.check_allowed(&login, &credentials).await?;
    let database = database::open(&thread.shared, &database).await?;
    login.check_limits(seat.of_role(&user), database.sessions() + 1)?;
    options?;
    let encoding = encoding?;
    let long_cancel_key = version.1 >= 2;
    let encoding = encoding.or_else(|| login.encoding()).unwrap_or(crate::encoding::UTF8);
    let encoding = ClientEncoding::new(thread.shared.charset(encoding, &database.name).await?);
    Ok(Begun::Session(Box::new(NewSession { user, database, credentials, settings, encoding, long_cancel_key, seat })))
}

/// With whose rights the coordinator reads, where the user mapping says so.
fn role_of(user: Option<&str>) -> Option<u32> {
    user?.strip_prefix(callback::ROLE_PREFIX)?.parse().ok()
}

/// Serves one connection over the socket of callbacks to its end.
pub async fn accept_local(thread: Rc<Thread>, stream: tokio::net::UnixStream) {
    let mut line = LocalLine::new(stream);
    let begun = tokio::time::timeout(AUTHENTICATION_TIMEOUT, begin_local(&thread, &mut line)).await;
    match begun {
        Ok(Ok((caller, role))) => callback::serve(thread, line, caller, role).await,
        Ok(Err(failure)) => tell(&mut line, failure).await,
        Err(_) => {}
    }
}

async fn begin_local(thread: &Rc<Thread>, line: &mut LocalLine) -> Result<(Caller, Option<u32>)> {
    let params = loop {
        match line.startup().await? {
            Startup::SslRequest | Startup::GssEncRequest => {
                line.out().extend_from_slice(b"N");
                line.flush().await?;
            }
            Startup::Startup { version: (3, _), params } => break params,
            _ => return Err(Failure::fatal("08P01", "only callbacks of the coordinator come here")),
        }
    };
    let process = line.process().ok_or_else(|| Failure::fatal("28000", "callback connection of an unknown process"))?;
    let caller = Caller::Process(process);
    authenticate_callback(thread, line, &caller).await?;
    let user = params.iter().find(|(name, _)| name == "user").map(|(_, user)| user.as_str());
    Ok((caller, role_of(user)))
}

/// A token is known to who may run SQL on that connection of the coordinator. The password is not: what comes with it
/// is asked by postgres_fdw itself.
async fn authenticate_callback(thread: &Rc<Thread>, line: &mut impl Line, caller: &Caller) -> Result<()> {
    let failed = |what: &str| Failure::fatal("28000", format!("callback connection {what}"));
    let Some(called) = thread.shared.callers.find(caller) else {
        return Err(match caller {
            Caller::Process(_) => failed("of a process that serves no session"),
            Caller::Token(_) => failed("with an unknown token"),
        });
    };
    let Some(secret) = called.secret else { return Ok(()) };
    backend::write_authentication_cleartext(line.out());
    line.flush().await?;
    let given = password_message(line).await?;
    let given = given.strip_suffix(b"\0").unwrap_or(&given);
    let hash = |text: &[u8]| pgherd_wire::scram::sha256_hex(text);
    match hash(given) == hash(secret.as_bytes()) {
        true => Ok(()),
        false => Err(failed("with a wrong password")),
    }
}

/// SCRAM-SHA-256 against the verifier that the coordinator holds. What the exchange reveals logs in to the servers.
async fn authenticate(
    thread: &Rc<Thread>,
    client: &mut Client,
    user: &str,
    verifier: Option<&str>,
) -> Result<Credentials> {
    backend::write_authentication_sasl(&mut client.out, &["SCRAM-SHA-256"]);
    client.flush().await?;
    let mut nonce = [0u8; 18];
    getrandom::fill(&mut nonce).map_err(|e| Failure::fatal("XX000", format!("no random bytes: {e}")))?;
    let nonce = base64::engine::general_purpose::STANDARD.encode(nonce);
    let failed = || Failure::fatal("28P01", format!("password authentication failed for user \"{user}\""));
    let mut server = match verifier {
        Some(verifier) => ScramServer::from_verifier(verifier, &nonce).map_err(|_| failed())?,
        None => ScramServer::mock(user, &thread.shared.mock_secret, &nonce),
    };
    let first = password_message(client).await?;
    let initial = frontend::parse_sasl_initial(&first)?;
    if initial.mechanism != "SCRAM-SHA-256" {
        return Err(Failure::fatal("08P01", "client selected an invalid SASL authentication mechanism"));
    }
    let reply = server
        .handle_client_first(initial.data.unwrap_or_default())
        .map_err(|e| Failure::fatal(e.sqlstate(), e.to_string()))?;
    backend::write_authentication_sasl_continue(&mut client.out, reply.as_bytes());
    client.flush().await?;
    let last = password_message(client).await?;
    let (reply, keys) = server.handle_client_final(&last).map_err(|_| {
        thread.forget_login(user);
        failed()
    })?;
    backend::write_authentication_sasl_final(&mut client.out, reply.as_bytes());
    thread.shared.remember_keys(user, &keys);
    Ok(Credentials::ScramKeys { client_key: keys.client_key, server_key: keys.server_key })
}

async fn password_message(client: &mut impl Line) -> Result<Bytes> {
    // Before anybody is known, nothing longer than a password is read.
    let tag = client.first_byte().await?;
    if tag == b'X' {
        return Err(Failure::ClientGone);
    }
    if tag != b'p' {
        return Err(Failure::fatal("08P01", format!("expected SASL response, got message type {tag}")));
    }
    let frame = client.frame().await?;
    match frontend::parse_frontend(&frame)? {
        FrontendMessage::Password(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        _ => Err(Failure::fatal("08P01", format!("expected SASL response, got message type {}", frame.tag()))),
    }
}

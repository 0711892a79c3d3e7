//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it: the server's side for the router's clients, the client's
//! side for connections to servers, and the verifiers that PostgreSQL keeps in `pg_authid.rolpassword`.
//!
//! Follows src/backend/libpq/auth-scram.c, src/common/scram-common.c and src/interfaces/libpq/fe-auth-scram.c, with
//! their errors. Random nonces and salts come from the caller. TLS channel binding (SCRAM-SHA-256-PLUS) is left out
//! until there is TLS: flag `n` and flag `y` are accepted, `p` is refused.

use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::error::{FEATURE_NOT_SUPPORTED, ProtocolError};

/// The mechanism's name in AuthenticationSASL.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// Of ClientKey, StoredKey, ServerKey and signatures.
pub const KEY_LEN: usize = 32;
/// PostgreSQL's `scram_iterations`.
pub const ITERATIONS_DEFAULT: u32 = 4096;
/// Of a salt that PostgreSQL makes.
pub const SALT_LEN: usize = 16;
/// Bytes of random that PostgreSQL puts into a nonce; see [`encode_nonce`].
pub const NONCE_RANDOM_LEN: usize = 18;
/// More rounds than this are refused from a server: they only burn our time. About a second of one core.
pub const ITERATIONS_MAX: u32 = 4_000_000;

/// A SHA-256 sized key.
pub type Key = [u8; KEY_LEN];

/// PostgreSQL does not look at the unused bits of the last character.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Why an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramError {
    /// The proof is wrong, or the user does not exist. What the client may read is the same in both cases:
    /// `password authentication failed for user "…"`, SQLSTATE 28P01; the name is the caller's to fill in.
    AuthenticationFailed,
    /// The peer broke the protocol.
    Protocol(ProtocolError),
}

impl ScramError {
    /// The SQLSTATE for the client.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            ScramError::AuthenticationFailed => "28P01",
            ScramError::Protocol(error) => error.sqlstate,
        }
    }
}

impl fmt::Display for ScramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScramError::AuthenticationFailed => f.write_str("password authentication failed"),
            ScramError::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ScramError {}

impl From<ProtocolError> for ScramError {
    fn from(error: ProtocolError) -> Self {
        ScramError::Protocol(error)
    }
}

fn malformed(detail: impl Into<std::borrow::Cow<'static, str>>) -> ScramError {
    ProtocolError::fatal("malformed SCRAM message").with_detail(detail).into()
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> ScramError {
    ProtocolError::fatal(message).into()
}

/// Random bytes as a nonce that any peer takes.
pub fn encode_nonce(random: &[u8]) -> String {
    BASE64.encode(random)
}

/// What a server keeps of a password: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    pub iterations: u32,
    /// In base64, as it is sent.
    pub salt: String,
    pub stored_key: Key,
    pub server_key: Key,
}

impl ScramVerifier {
    /// None if `text` is not a verifier (`parse_scram_secret`): an md5 hash, for example.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (iterations, rest) = rest.split_once(':')?;
        let (salt, rest) = rest.split_once('$')?;
        let (stored_key, server_key) = rest.split_once(':')?;
        let iterations = iterations.parse().ok().filter(|rounds| *rounds > 0)?;
        BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?;
        Some(Self {
            iterations,
            salt: salt.to_owned(),
            stored_key: decode_key(stored_key)?,
            server_key: decode_key(server_key)?,
        })
    }

    /// From a plain password.
    pub fn from_password(password: &str, salt: &[u8], iterations: u32) -> Self {
        let keys = ScramKeys::from_password(password, salt, iterations);
        Self {
            iterations,
            salt: BASE64.encode(salt),
            stored_key: sha256(&keys.client_key),
            server_key: keys.server_key,
        }
    }

    /// Whether a plain password is the right one.
    pub fn verify_password(&self, password: &str) -> bool {
        self.keys_of(password).is_some()
    }

    /// With which whoever knows the password logs in; none: it is another one.
    pub fn keys_of(&self, password: &str) -> Option<ScramKeys> {
        let salt = BASE64.decode(&self.salt).ok()?;
        let keys = ScramKeys::from_password(password, &salt, self.iterations);
        equal(&keys.server_key, &self.server_key).then_some(keys)
    }
}

impl fmt::Display for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stored_key, server_key) = (BASE64.encode(self.stored_key), BASE64.encode(self.server_key));
        write!(f, "{MECHANISM}${}:{}${stored_key}:{server_key}", self.iterations, self.salt)
    }
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramVerifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// The verifier of a password, as PostgreSQL would store it.
pub fn build_verifier(password: &str, salt: &[u8], iterations: u32) -> String {
    ScramVerifier::from_password(password, salt, iterations).to_string()
}

/// What logs in to any server that holds the same verifier (same salt and iterations), without the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ScramKeys {
    pub client_key: Key,
    pub server_key: Key,
}

impl ScramKeys {
    /// The slow part (PBKDF2). The password goes through SASLprep first.
    pub fn from_password(password: &str, salt: &[u8], iterations: u32) -> Self {
        let mut salted = Key::default();
        let prepared = saslprep(password);
        pbkdf2::pbkdf2_hmac::<Sha256>(prepared.as_bytes(), salt, iterations, &mut salted);
        Self { client_key: hmac(&salted, &[b"Client Key"]), server_key: hmac(&salted, &[b"Server Key"]) }
    }
}

impl fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys(..)")
    }
}

/// The server's side of one exchange.
pub struct ScramServer {
    verifier: ScramVerifier,
    /// The user does not exist or has no verifier: go through the motions, then refuse.
    doomed: bool,
    nonce: String,
    /// Set by the first message of the client.
    begun: Option<Begun>,
}

/// What the server remembers of the first pair of messages.
struct Begun {
    /// What the client's final message must repeat: `n,,` or `y,,` in base64.
    channel_binding: &'static str,
    client_first_bare: String,
    server_first: String,
    /// The client's nonce with ours behind it.
    nonce: String,
}

impl ScramServer {
    /// For a user with this verifier. `nonce`: fresh random, printable, without commas (see [`encode_nonce`]).
    pub fn new(verifier: ScramVerifier, nonce: &str) -> Self {
        Self { verifier, doomed: false, nonce: nonce.to_owned(), begun: None }
    }

    /// From a user's `rolpassword`. An error if that is no SCRAM verifier: go on with [`ScramServer::mock`] then.
    pub fn from_verifier(rolpassword: &str, nonce: &str) -> Result<Self, ScramError> {
        let verifier = ScramVerifier::parse(rolpassword).ok_or(ScramError::AuthenticationFailed)?;
        Ok(Self::new(verifier, nonce))
    }

    /// For a user that does not exist or has no verifier: looks and lasts like a real exchange and ends in
    /// [`ScramError::AuthenticationFailed`]. The salt depends on the user's name and on `secret`, which must stay the
    /// same from one attempt to the next and from one router to the other, or else the changing salt would tell.
    pub fn mock(user: &str, secret: &[u8], nonce: &str) -> Self {
        Self::mock_with_iterations(user, secret, ITERATIONS_DEFAULT, nonce)
    }

    /// As [`ScramServer::mock`], where `scram_iterations` (PostgreSQL 16 and later) is not the default: the number that
    /// real verifiers have.
    pub fn mock_with_iterations(user: &str, secret: &[u8], iterations: u32, nonce: &str) -> Self {
        let digest: Key = Sha256::new().chain_update(user.as_bytes()).chain_update(secret).finalize().into();
        let salt = BASE64.encode(&digest[..SALT_LEN]);
        let verifier = ScramVerifier { iterations, salt, stored_key: Key::default(), server_key: Key::default() };
        Self { verifier, doomed: true, nonce: nonce.to_owned(), begun: None }
    }

    /// Takes the client's first message (of SASLInitialResponse; where the client sent none, an empty
    /// AuthenticationSASLContinue makes it send it); gives what AuthenticationSASLContinue carries.
    pub fn handle_client_first(&mut self, data: &[u8]) -> Result<String, ScramError> {
        if self.begun.is_some() {
            return Err(refused("invalid SCRAM exchange state"));
        }
        let text = exchange_text(data)?;
        let (flag, rest) = channel_binding_flag(text)?;
        if rest.first() == Some(&b'a') {
            return Err(ProtocolError {
                sqlstate: FEATURE_NOT_SUPPORTED,
                ..ProtocolError::fatal("client uses authorization identity, but it is not supported")
            }
            .into());
        }
        let Some(bare) = rest.strip_prefix(b",") else {
            return Err(malformed(format!("Unexpected attribute \"{}\" in client-first-message.", shown(rest))));
        };
        if bare.first() == Some(&b'm') {
            return Err(ProtocolError {
                sqlstate: FEATURE_NOT_SUPPORTED,
                ..ProtocolError::fatal("client requires an unsupported SCRAM extension")
            }
            .into());
        }
        let mut attributes = Attributes { rest: bare };
        // The user's name was in the startup packet; this one is not looked at, as in PostgreSQL.
        attributes.value(b'n')?;
        let client_nonce = attributes.value(b'r')?;
        if !client_nonce.iter().all(|byte| matches!(byte, 0x21..=0x7e)) {
            return Err(refused("non-printable characters in SCRAM nonce"));
        }
        while !attributes.rest.is_empty() {
            attributes.any()?;
        }
        let nonce = format!("{}{}", String::from_utf8_lossy(client_nonce), self.nonce);
        let server_first = format!("r={nonce},s={},i={}", self.verifier.salt, self.verifier.iterations);
        self.begun = Some(Begun {
            channel_binding: if flag == b'y' { "eSws" } else { "biws" },
            client_first_bare: String::from_utf8(bare.to_vec())
                .map_err(|_| malformed("The message is not in UTF-8."))?,
            server_first: server_first.clone(),
            nonce,
        });
        Ok(server_first)
    }

    /// Takes the client's final message. Gives what AuthenticationSASLFinal carries (AuthenticationOk follows), and the
    /// keys that log in elsewhere as the same user.
    pub fn handle_client_final(&mut self, data: &[u8]) -> Result<(String, ScramKeys), ScramError> {
        let Some(begun) = self.begun.take() else { return Err(refused("invalid SCRAM exchange state")) };
        let text = exchange_text(data)?;
        let mut attributes = Attributes { rest: text };
        if attributes.value(b'c')? != begun.channel_binding.as_bytes() {
            return Err(refused("unexpected SCRAM channel-binding attribute in client-final-message"));
        }
        let nonce = attributes.value(b'r')?;
        let (without_proof, proof) = loop {
            // The comma before the proof is not part of what is signed.
            let before = &text[..(text.len() - attributes.rest.len()).saturating_sub(1)];
            let (attribute, value) = attributes.any()?;
            if attribute == b'p' {
                break (before, value);
            }
        };
        let proof = std::str::from_utf8(proof)
            .ok()
            .and_then(decode_key)
            .ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        if !attributes.rest.is_empty() {
            return Err(malformed("Garbage found at the end of client-final-message."));
        }
        if nonce != begun.nonce.as_bytes() {
            return Err(ProtocolError::fatal("invalid SCRAM response").with_detail("Nonce does not match.").into());
        }

        let signed = [begun.client_first_bare.as_bytes(), begun.server_first.as_bytes(), without_proof];
        let client_key = xor(&proof, &sign(&self.verifier.stored_key, &signed));
        // The proof is computed for doomed exchanges too, so that time does not tell.
        if !equal(&sha256(&client_key), &self.verifier.stored_key) || self.doomed {
            return Err(ScramError::AuthenticationFailed);
        }
        let server_key = self.verifier.server_key;
        let server_final = format!("v={}", BASE64.encode(sign(&server_key, &signed)));
        Ok((server_final, ScramKeys { client_key, server_key }))
    }
}

impl fmt::Debug for ScramServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramServer(..)")
    }
}

/// The client's side of one exchange. Channel binding flag `n`: we do not offer it.
pub struct ScramClient {
    secret: Secret,
    nonce: String,
    /// Set by the server's first message: what the server must prove at the end.
    server_signature: Option<Key>,
    proven: bool,
}

enum Secret {
    Password(String),
    Keys(ScramKeys),
}

impl ScramClient {
    /// `nonce`: fresh random, printable, without commas (see [`encode_nonce`]).
    pub fn from_password(password: &str, nonce: &str) -> Self {
        Self::new(Secret::Password(password.to_owned()), nonce)
    }

    /// With the keys of another exchange against the same verifier ([`ScramServer::handle_client_final`]).
    pub fn from_keys(client_key: Key, server_key: Key, nonce: &str) -> Self {
        Self::new(Secret::Keys(ScramKeys { client_key, server_key }), nonce)
    }

    fn new(secret: Secret, nonce: &str) -> Self {
        Self { secret, nonce: nonce.to_owned(), server_signature: None, proven: false }
    }

    /// For SASLInitialResponse. The user's name is left empty: PostgreSQL takes it from the startup packet.
    pub fn first_message(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Takes what AuthenticationSASLContinue carries; gives the final message for SASLResponse. With a password this is
    /// the slow step.
    pub fn handle_server_first(&mut self, data: &[u8]) -> Result<String, ScramError> {
        if self.server_signature.is_some() {
            return Err(refused("duplicate SCRAM challenge"));
        }
        let mut attributes = Attributes { rest: exchange_text(data)? };
        let nonce = attributes.value(b'r')?;
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(self.nonce.as_bytes()) {
            return Err(refused("invalid SCRAM response (nonce mismatch)"));
        }
        let salt =
            BASE64.decode(attributes.value(b's')?).map_err(|_| refused("malformed SCRAM message (invalid salt)"))?;
        let iterations = std::str::from_utf8(attributes.value(b'i')?)
            .ok()
            .and_then(|text| text.parse::<u32>().ok())
            .filter(|rounds| (1..=ITERATIONS_MAX).contains(rounds))
            .ok_or_else(|| refused("malformed SCRAM message (invalid iteration count)"))?;
        // As in libpq, extensions are refused here.
        if !attributes.rest.is_empty() {
            return Err(refused("malformed SCRAM message (garbage at end of server-first-message)"));
        }
        let keys = match &self.secret {
            Secret::Password(password) => ScramKeys::from_password(password, &salt, iterations),
            Secret::Keys(keys) => *keys,
        };
        let without_proof = format!("c=biws,r={}", String::from_utf8_lossy(nonce));
        let bare = self.first_bare();
        let signed = [bare.as_bytes(), data, without_proof.as_bytes()];
        let proof = xor(&keys.client_key, &sign(&sha256(&keys.client_key), &signed));
        self.server_signature = Some(sign(&keys.server_key, &signed));
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }

    /// Takes what AuthenticationSASLFinal carries: the server's proof that it knows the verifier too.
    pub fn handle_server_final(&mut self, data: &[u8]) -> Result<(), ScramError> {
        let Some(expected) = self.server_signature.take() else { return Err(refused("invalid SCRAM exchange state")) };
        let mut attributes = Attributes { rest: exchange_text(data)? };
        if attributes.rest.first() == Some(&b'e') {
            let reason = String::from_utf8_lossy(attributes.value(b'e')?).into_owned();
            return Err(refused(format!("error received from server in SCRAM exchange: {reason}")));
        }
        let signature = attributes.value(b'v')?;
        if !attributes.rest.is_empty() {
            return Err(refused("malformed SCRAM message (garbage at end of server-final-message)"));
        }
        let signature = std::str::from_utf8(signature)
            .ok()
            .and_then(decode_key)
            .ok_or_else(|| refused("malformed SCRAM message (invalid server signature)"))?;
        if !equal(&signature, &expected) {
            return Err(refused("incorrect server signature"));
        }
        self.proven = true;
        Ok(())
    }

    /// Whether the server has proved that it knows the verifier. AuthenticationOk before that must be refused: anyone
    /// could send it.
    pub fn server_is_proven(&self) -> bool {
        self.proven
    }
}

impl fmt::Debug for ScramClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramClient(..)")
    }
}

/// A message as `scram_exchange` accepts it.
fn exchange_text(data: &[u8]) -> Result<&[u8], ScramError> {
    if data.is_empty() {
        return Err(malformed("The message is empty."));
    }
    if data.contains(&0) {
        return Err(malformed("Message length does not match input length."));
    }
    Ok(data)
}

/// Reads `n,` or `y,` off the front.
fn channel_binding_flag(text: &[u8]) -> Result<(u8, &[u8]), ScramError> {
    let (&flag, rest) = text.split_first().ok_or_else(|| malformed("The message is empty."))?;
    match flag {
        b'n' | b'y' => match rest.split_first() {
            Some((b',', rest)) => Ok((flag, rest)),
            _ => Err(malformed(format!("Comma expected, but found character \"{}\".", shown(rest)))),
        },
        b'p' => Err(malformed(
            "The client selected SCRAM-SHA-256 without channel binding, \
             but the SCRAM message includes channel binding data.",
        )),
        _ => Err(malformed(format!("Unexpected channel-binding flag \"{}\".", shown(text)))),
    }
}

/// The comma-separated attributes of a message, front to back.
struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The value of the next attribute, which must be this one.
    fn value(&mut self, attribute: u8) -> Result<&'a [u8], ScramError> {
        if self.rest.first() != Some(&attribute) {
            return Err(malformed(format!(
                "Expected attribute \"{}\" but found \"{}\".",
                char::from(attribute),
                shown(self.rest)
            )));
        }
        self.any().map(|(_, value)| value)
    }

    /// The next attribute, whatever it is.
    fn any(&mut self) -> Result<(u8, &'a [u8]), ScramError> {
        let (&attribute, rest) =
            self.rest.split_first().ok_or_else(|| malformed("Attribute expected, but found end of string."))?;
        if !attribute.is_ascii_alphabetic() {
            return Err(malformed(format!(
                "Attribute expected, but found invalid character \"{}\".",
                shown(self.rest)
            )));
        }
        let Some(rest) = rest.strip_prefix(b"=") else {
            return Err(malformed(format!("Expected character \"=\" for attribute \"{}\".", char::from(attribute))));
        };
        let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
        self.rest = rest.get(end + 1..).unwrap_or_default();
        Ok((attribute, &rest[..end]))
    }
}

/// The first character of what was found, as PostgreSQL shows it (`sanitize_char`); the end of the text shows as 0x00.
fn shown(text: &[u8]) -> String {
    match text.first().copied().unwrap_or_default() {
        byte @ 0x21..=0x7e => format!("'{}'", char::from(byte)),
        byte => format!("0x{byte:02x}"),
    }
}

/// SASLprep; a password that it refuses is taken as it is (`pg_be_scram_build_secret`).
fn saslprep(password: &str) -> std::borrow::Cow<'_, str> {
    match stringprep::saslprep(password) {
        Ok(prepared) if !prepared.is_empty() => prepared,
        _ => password.into(),
    }
}

fn decode_key(text: &str) -> Option<Key> {
    BASE64.decode(text).ok()?.try_into().ok()
}

fn sha256(data: &[u8]) -> Key {
    Sha256::digest(data).into()
}

/// SHA-256 in hexadecimal, as `encode(sha256(…), 'hex')` writes it.
pub fn sha256_hex(data: &[u8]) -> String {
    sha256(data).iter().map(|b| format!("{b:02x}")).collect()
}

/// A signature of the three messages, joined by commas.
fn sign(key: &Key, messages: &[&[u8]; 3]) -> Key {
    hmac(key, &[messages[0], b",", messages[1], b",", messages[2]])
}

fn hmac(key: &Key, parts: &[&[u8]]) -> Key {
    // HMAC fills a short key up to a block of the hash with zeros.
    let mut block = [0; 64];
    block[..KEY_LEN].copy_from_slice(key);
    let mac = <Hmac<Sha256> as Mac>::new(&block.into());
    parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}

fn xor(left: &Key, right: &Key) -> Key {
    std::array::from_fn(|i| left[i] ^ right[i])
}

/// In the same time wherever they differ.
fn equal(left: &Key, right: &Key) -> bool {
    std::hint::black_box(left.iter().zip(right).fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

use pgherd_wire::scram::{
    ITERATIONS_MAX, ScramClient, ScramError, ScramServer, ScramVerifier, build_verifier, encode_nonce,
};

/// RFC 7677, section 3.
mod rfc7677 {
    pub const PASSWORD: &str = "pencil";
    pub const SALT: [u8; 16] = *b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";
    pub const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    pub const CLIENT_FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    pub const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    pub const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    pub const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
}

/// PostgreSQL 15.18: `SET password_encryption = 'scram-sha-256'; CREATE ROLE scram_user PASSWORD 'pässword ☃'`, then
/// `SELECT rolpassword FROM pg_authid`.
const POSTGRESQL_VERIFIER: &str = "SCRAM-SHA-256$4096:UNHS0fGugUbeiNGJ5sMFXQ==$\
     jBsWOD1wWltGSH/J+bfZn5/8QDkjyN1XunIcZjVuxpI=:/GeeCh8+nBe7NPM/AZpgcFXZd94QLcxWBdSwrQ0meDk=";
const POSTGRESQL_PASSWORD: &str = "pässword ☃";
/// The same with `PASSWORD U&'\2168\00AD\00BA'`: Roman nine, soft hyphen, masculine ordinal, which SASLprep makes
/// `IXo`.
const PREPARED_VERIFIER: &str = "SCRAM-SHA-256$4096:/7aFsP8iVhqfPvLjGuwiGQ==$\
     qAGev2DtC2Z+E9JqdFz2MTi6vH19l+iwo5ryK5KAiTE=:GFO3GuyiKtEpcTX4Y2/I+qDP8OtAs5RLlr4UbGbDmaA=";

fn rfc_server() -> ScramServer {
    let verifier = ScramVerifier::from_password(rfc7677::PASSWORD, &rfc7677::SALT, 4096);
    ScramServer::new(verifier, rfc7677::SERVER_NONCE)
}

#[test]
fn the_exchange_of_rfc_7677() {
    let mut server = rfc_server();
    assert_eq!(server.handle_client_first(rfc7677::CLIENT_FIRST.as_bytes()).unwrap(), rfc7677::SERVER_FIRST);
    let (server_final, _) = server.handle_client_final(rfc7677::CLIENT_FINAL.as_bytes()).unwrap();
    assert_eq!(server_final, rfc7677::SERVER_FINAL);
}

#[test]
fn verifiers_are_postgresqls() {
    for (text, password) in [
        (POSTGRESQL_VERIFIER, POSTGRESQL_PASSWORD),
        (PREPARED_VERIFIER, "IXo"),
        (PREPARED_VERIFIER, "\u{2168}\u{ad}\u{ba}"),
    ] {
        let verifier = ScramVerifier::parse(text).unwrap();
        assert_eq!(verifier.to_string(), text);
        assert!(verifier.verify_password(password));
        assert!(!verifier.verify_password("other"));
    }
    // The salts of the two, decoded.
    let salt = *b"\x50\xd1\xd2\xd1\xf1\xae\x81\x46\xde\x88\xd1\x89\xe6\xc3\x05\x5d";
    assert_eq!(build_verifier(POSTGRESQL_PASSWORD, &salt, 4096), POSTGRESQL_VERIFIER);
}

#[test]
fn what_is_no_verifier() {
    for text in [
        "",
        "md5a3556571e93b0d20722ba62be61e8c2d",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256$4096:UNHS0fGugUbeiNGJ5sMFXQ==",
        "SCRAM-SHA-256$x:UNHS0fGugUbeiNGJ5sMFXQ==$jBsWOD1wWltGSH/J+bfZn5/8QDkjyN1XunIcZjVuxpI=:/GeeCh8+nBe7NPM/AZpgcFXZd94QLcxWBdSwrQ0meDk=",
        "SCRAM-SHA-256$4096:!!$jBsWOD1wWltGSH/J+bfZn5/8QDkjyN1XunIcZjVuxpI=:/GeeCh8+nBe7NPM/AZpgcFXZd94QLcxWBdSwrQ0meDk=",
        "SCRAM-SHA-256$4096:UNHS0fGugUbeiNGJ5sMFXQ==$jBsWOD1w:/GeeCh8+nBe7NPM/AZpgcFXZd94QLcxWBdSwrQ0meDk=",
        "SCRAM-SHA-512$4096:UNHS0fGugUbeiNGJ5sMFXQ==$jBsWOD1wWltGSH/J+bfZn5/8QDkjyN1XunIcZjVuxpI=:/GeeCh8+nBe7NPM/AZpgcFXZd94QLcxWBdSwrQ0meDk=",
    ] {
        assert_eq!(ScramVerifier::parse(text), None, "{text}");
    }
}

/// One exchange between our own two sides: the keys that the server learns.
fn exchange(client: &mut ScramClient, server: &mut ScramServer) -> Result<([u8; 32], [u8; 32]), ScramError> {
    let server_first = server.handle_client_first(client.first_message().as_bytes())?;
    let client_final = client.handle_server_first(server_first.as_bytes())?;
    let (server_final, keys) = server.handle_client_final(client_final.as_bytes())?;
    assert!(!client.server_is_proven());
    client.handle_server_final(server_final.as_bytes())?;
    assert!(client.server_is_proven());
    Ok((keys.client_key, keys.server_key))
}

fn postgresql_server(nonce: &str) -> ScramServer {
    ScramServer::new(ScramVerifier::parse(POSTGRESQL_VERIFIER).unwrap(), nonce)
}

#[test]
fn the_keys_of_one_exchange_log_in_to_another_server() {
    let mut client = ScramClient::from_password(POSTGRESQL_PASSWORD, &encode_nonce(b"client"));
    let (client_key, server_key) = exchange(&mut client, &mut postgresql_server("first")).unwrap();
    let mut again = ScramClient::from_keys(client_key, server_key, &encode_nonce(b"router"));
    assert_eq!(exchange(&mut again, &mut postgresql_server("second")), Ok((client_key, server_key)));
}

#[test]
fn a_wrong_password_and_an_unknown_user_look_alike() {
    let mut wrong = ScramClient::from_password("wrong", "c");
    let known = exchange(&mut wrong, &mut postgresql_server("s"));
    let mut wrong = ScramClient::from_password("wrong", "c");
    let unknown = exchange(&mut wrong, &mut ScramServer::mock("nobody", b"secret", "s"));
    assert_eq!(known, Err(ScramError::AuthenticationFailed));
    assert_eq!(unknown, known);

    let first = |user: &str, secret: &[u8], nonce: &str| {
        ScramServer::mock(user, secret, nonce).handle_client_first(b"n,,n=,r=c").unwrap()
    };
    assert_eq!(first("nobody", b"secret", "s"), first("nobody", b"secret", "s"), "the salt stays the same");
    assert_ne!(first("nobody", b"secret", "s"), first("noone", b"secret", "s"));
    assert_ne!(first("nobody", b"secret", "s"), first("nobody", b"other", "s"));
    let real = postgresql_server("s").handle_client_first(b"n,,n=,r=c").unwrap();
    assert_eq!(first("nobody", b"secret", "s").len(), real.len());
    // Even the keys that a mock pretends to have do not open it.
    let mut zero = ScramClient::from_keys([0; 32], [0; 32], "c");
    assert_eq!(exchange(&mut zero, &mut ScramServer::mock("x", b"s", "n")), Err(ScramError::AuthenticationFailed));
    let more = ScramServer::mock_with_iterations("x", b"s", 5000, "n").handle_client_first(b"n,,n=,r=c").unwrap();
    assert!(more.ends_with(",i=5000"));
    let md5 = ScramServer::from_verifier("md5a3556571e93b0d20722ba62be61e8c2d", "n");
    assert_eq!(md5.unwrap_err(), ScramError::AuthenticationFailed);
}

#[test]
fn a_client_that_could_bind_to_tls_says_y_in_both_messages() {
    let password = rfc7677::PASSWORD;
    // What a client with flag y signs differs only in the repeated flag.
    let mut server = rfc_server();
    let server_first = server.handle_client_first(b"y,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
    assert_eq!(server_first, rfc7677::SERVER_FIRST);
    let error = server.handle_client_final(rfc7677::CLIENT_FINAL.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "unexpected SCRAM channel-binding attribute in client-final-message");
    let mut server = rfc_server();
    server.handle_client_first(b"y,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
    let with_y = rfc7677::CLIENT_FINAL.replace("biws", "eSws");
    assert_eq!(
        server.handle_client_final(with_y.as_bytes()).unwrap_err(),
        ScramError::AuthenticationFailed,
        "{password}"
    );
}

/// `SQLSTATE message: detail` of an error.
fn shown(error: &ScramError) -> String {
    format!("{} {error}", error.sqlstate())
}

#[test]
fn broken_first_messages_of_a_client() {
    fn check(message: &[u8], expected: &str) {
        let error = rfc_server().handle_client_first(message).unwrap_err();
        assert_eq!(shown(&error), expected, "{}", String::from_utf8_lossy(message));
    }
    let malformed = |detail: &str| format!("08P01 malformed SCRAM message: {detail}");
    check(b"", &malformed("The message is empty."));
    check(b"n,,n=\0,r=x", &malformed("Message length does not match input length."));
    check(
        b"p=tls-server-end-point,,n=,r=x",
        &malformed(
            "The client selected SCRAM-SHA-256 without channel binding, \
             but the SCRAM message includes channel binding data.",
        ),
    );
    check(b"x,,n=,r=x", &malformed("Unexpected channel-binding flag \"'x'\"."));
    check(b"n;,n=,r=x", &malformed("Comma expected, but found character \"';'\"."));
    check(b"n", &malformed("Comma expected, but found character \"0x00\"."));
    check(b"n,a=me,n=,r=x", "0A000 client uses authorization identity, but it is not supported");
    check(b"n,b,n=,r=x", &malformed("Unexpected attribute \"'b'\" in client-first-message."));
    check(b"n,,m=x,n=,r=x", "0A000 client requires an unsupported SCRAM extension");
    check(b"n,,r=x", &malformed("Expected attribute \"n\" but found \"'r'\"."));
    check(b"n,,n,r=x", &malformed("Expected character \"=\" for attribute \"n\"."));
    check(b"n,,n=", &malformed("Expected attribute \"r\" but found \"0x00\"."));
    check(b"n,,n=,r=\x01", "08P01 non-printable characters in SCRAM nonce");
    check(b"n,,n=,r=x,1=2", &malformed("Attribute expected, but found invalid character \"'1'\"."));
}

#[test]
fn broken_final_messages_of_a_client() {
    fn check(message: &str, expected: &str) {
        let mut server = rfc_server();
        server.handle_client_first(rfc7677::CLIENT_FIRST.as_bytes()).unwrap();
        assert_eq!(shown(&server.handle_client_final(message.as_bytes()).unwrap_err()), expected, "{message}");
    }
    let malformed = |detail: &str| format!("08P01 malformed SCRAM message: {detail}");
    let good = rfc7677::CLIENT_FINAL;
    check("", &malformed("The message is empty."));
    check("r=x", &malformed("Expected attribute \"c\" but found \"'r'\"."));
    check("c=biws,r=x", &malformed("Attribute expected, but found end of string."));
    check("c=biws,r=x,p=AAAA", &malformed("Malformed proof in client-final-message."));
    check(&format!("{good},x=y"), &malformed("Garbage found at the end of client-final-message."));
    check(&good.replace("k0,", "k1,"), "08P01 invalid SCRAM response: Nonce does not match.");
    check(&good.replace("p=dHz", "p=AHz"), "28P01 password authentication failed");
    // An extension is allowed, and signed.
    check(&good.replace(",p=", ",x=y,p="), "28P01 password authentication failed");
}

#[test]
fn messages_out_of_turn() {
    let mut server = rfc_server();
    let error = server.handle_client_final(rfc7677::CLIENT_FINAL.as_bytes()).unwrap_err();
    assert_eq!(shown(&error), "08P01 invalid SCRAM exchange state");
    server.handle_client_first(rfc7677::CLIENT_FIRST.as_bytes()).unwrap();
    let error = server.handle_client_first(rfc7677::CLIENT_FIRST.as_bytes()).unwrap_err();
    assert_eq!(shown(&error), "08P01 invalid SCRAM exchange state");
    let mut client = ScramClient::from_password("x", "c");
    let error = client.handle_server_final(b"v=AAAA").unwrap_err();
    assert_eq!(shown(&error), "08P01 invalid SCRAM exchange state");
}

#[test]
fn what_a_client_does_not_believe() {
    fn first(message: &str) -> Result<String, String> {
        ScramClient::from_password("x", "abc").handle_server_first(message.as_bytes()).map_err(|e| e.to_string())
    }
    assert!(first("r=abcd,s=AAAA,i=1").is_ok());
    let nonce = Err("invalid SCRAM response (nonce mismatch)".to_owned());
    assert_eq!(first("r=abc,s=AAAA,i=1"), nonce, "the server added nothing");
    assert_eq!(first("r=xbcd,s=AAAA,i=1"), nonce);
    assert_eq!(first("r=abcd,s=!,i=1").unwrap_err(), "malformed SCRAM message (invalid salt)");
    for rounds in ["0", "-1", "x", "", "99999999999"] {
        let error = first(&format!("r=abcd,s=AAAA,i={rounds}")).unwrap_err();
        assert_eq!(error, "malformed SCRAM message (invalid iteration count)");
    }
    assert!(first(&format!("r=abcd,s=AAAA,i={}", ITERATIONS_MAX + 1)).is_err(), "would burn our time");
    assert_eq!(
        first("r=abcd,s=AAAA,i=1,x=y").unwrap_err(),
        "malformed SCRAM message (garbage at end of server-first-message)"
    );

    fn last(message: &str) -> String {
        let mut client = ScramClient::from_password("x", "abc");
        client.handle_server_first(b"r=abcd,s=AAAA,i=1").unwrap();
        let error = client.handle_server_final(message.as_bytes()).unwrap_err();
        assert!(!client.server_is_proven());
        error.to_string()
    }
    assert_eq!(last("e=other-error"), "error received from server in SCRAM exchange: other-error");
    assert_eq!(last("v=AAAA"), "malformed SCRAM message (invalid server signature)");
    assert_eq!(last("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), "incorrect server signature");
}

#[test]
fn secrets_are_not_printed() {
    let verifier = ScramVerifier::parse(POSTGRESQL_VERIFIER).unwrap();
    assert_eq!(format!("{verifier:?}"), "ScramVerifier { iterations: 4096, .. }");
    assert_eq!(format!("{:?}", ScramClient::from_password("secret", "x")), "ScramClient(..)");
}

use bytes::{Bytes, BytesMut};
use pgherd_wire::backend::{self, Authentication, CopyResponse, Notification, command_tag_rows, field};
use pgherd_wire::frontend::{self, SaslInitial, parse_password, parse_sasl_initial};
use pgherd_wire::{
    BindMessage, ErrorFields, FieldDescription, Frame, FrontendMessage, TransactionStatus, next_frame, parse_frontend,
};

/// The one frame that `write` makes.
fn frame(write: impl FnOnce(&mut BytesMut)) -> Frame {
    let mut buf = BytesMut::from("before");
    write(&mut buf);
    let mut buf = buf.split_off(6);
    let frame = next_frame(&mut buf, 1_000_000).unwrap().unwrap();
    assert!(buf.is_empty(), "one message was written");
    frame
}

fn frame_of(tag: u8, body: &[u8]) -> Frame {
    let mut raw = vec![tag];
    raw.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    raw.extend_from_slice(body);
    Frame { raw: raw.into() }
}

#[test]
fn client_messages_are_read_as_they_were_written() {
    fn check(write: impl FnOnce(&mut BytesMut), bytes: &[u8], expected: FrontendMessage<'_>) {
        let frame = frame(write);
        assert_eq!(frame.raw, bytes, "{expected:?}");
        assert_eq!(parse_frontend(&frame), Ok(expected));
    }
    use FrontendMessage::*;
    check(|b| frontend::write_query(b, "SELECT 'ä'"), b"Q\0\0\0\x10SELECT '\xc3\xa4'\0", Query { sql: "SELECT 'ä'" });
    check(
        |b| frontend::write_parse(b, "s1", "SELECT $1", &[23, 4_000_000_000]),
        b"P\0\0\0\x1bs1\0SELECT $1\0\0\x02\0\0\0\x17\xee\x6b\x28\0",
        Parse { name: "s1", sql: "SELECT $1", param_types: vec![23, 4_000_000_000] },
    );
    check(
        |b| frontend::write_bind(b, "", "s1", &[0, 1], &[Some(&b"x"[..]), None], &[1]),
        b"B\0\0\0\x1d\0s1\0\0\x02\0\0\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01",
        Bind(BindMessage {
            portal: "",
            statement: "s1",
            param_formats: vec![0, 1],
            params: vec![Some(b"x"), None],
            result_formats: vec![1],
        }),
    );
    check(|b| frontend::write_describe(b, b'S', "s1"), b"D\0\0\0\x08Ss1\0", Describe { kind: b'S', name: "s1" });
    check(|b| frontend::write_close(b, b'P', ""), b"C\0\0\0\x06P\0", Close { kind: b'P', name: "" });
    check(|b| frontend::write_execute(b, "p", 5), b"E\0\0\0\x0ap\0\0\0\0\x05", Execute { portal: "p", max_rows: 5 });
    check(frontend::write_sync, b"S\0\0\0\x04", Sync);
    check(frontend::write_flush, b"H\0\0\0\x04", Flush);
    check(|b| frontend::write_copy_data(b, b"1\t2\n"), b"d\0\0\0\x081\t2\n", CopyData(b"1\t2\n"));
    check(frontend::write_copy_done, b"c\0\0\0\x04", CopyDone);
    check(|b| frontend::write_copy_fail(b, "no"), b"f\0\0\0\x07no\0", CopyFail { message: "no" });
    check(|b| frontend::write_password(b, b"pw\0"), b"p\0\0\0\x07pw\0", Password(b"pw\0"));
    check(|b| frontend::write_sasl_response(b, b"c=biws"), b"p\0\0\0\x0ac=biws", Password(b"c=biws"));
    check(
        |b| frontend::write_sasl_initial(b, "M", b"n,,"),
        b"p\0\0\0\x0dM\0\0\0\0\x03n,,",
        Password(b"M\0\0\0\0\x03n,,"),
    );
    check(frontend::write_terminate, b"X\0\0\0\x04", Terminate);
    check(|b| frontend::write_function_call(b, b"\0\0"), b"F\0\0\0\x06\0\0", FunctionCall(b"\0\0"));
}

#[test]
fn broken_client_messages_have_postgresql_errors() {
    fn check(tag: u8, body: &[u8], expected: &str) {
        let frame = frame_of(tag, body);
        let error = parse_frontend(&frame).unwrap_err();
        let severity = if error.fatal { "FATAL" } else { "ERROR" };
        assert_eq!(format!("{severity} {} {}", error.sqlstate, error.message), expected);
    }
    check(b'Q', b"SELECT 1", "ERROR 08P01 invalid string in message");
    check(b'Q', b"", "ERROR 08P01 invalid string in message");
    check(b'Q', b"SELECT 1\0x", "ERROR 08P01 invalid message format");
    check(b'Q', b"SELECT '\xe4'\0", "ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0xe4 0x27");
    check(b'Q', b"\xed\xa0\x80\0", "ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0xed 0xa0 0x80");
    check(b'P', b"\0SELECT 1\0", "ERROR 08P01 insufficient data left in message");
    check(b'P', b"\0SELECT 1\0\0\x01\0\0", "ERROR 08P01 insufficient data left in message");
    check(b'P', b"\0SELECT 1\0\0\0\0", "ERROR 08P01 invalid message format");
    check(b'B', b"\0\0\0\x02\0\0\0\0\0\x01", "ERROR 08P01 bind message has 2 parameter formats but 1 parameters");
    check(b'B', b"\0\0\0\0\0\x01\0\0\0\x09x\0\0", "ERROR 08P01 insufficient data left in message");
    check(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0", "ERROR 08P01 insufficient data left in message");
    check(b'B', b"\0\0\0\0\0\0\0\0\0", "ERROR 08P01 invalid message format");
    check(b'D', b"", "ERROR 08P01 no data left in message");
    check(b'D', b"X\0", "ERROR 08P01 invalid DESCRIBE message subtype 88");
    check(b'C', b"X\0", "ERROR 08P01 invalid CLOSE message subtype 88");
    check(b'E', b"\0\0\0", "ERROR 08P01 insufficient data left in message");
    check(b'S', b"x", "ERROR 08P01 invalid message format");
    check(b'H', b"x", "ERROR 08P01 invalid message format");
    check(b'z', b"", "FATAL 08P01 invalid frontend message type 122");
    check(0, b"", "FATAL 08P01 invalid frontend message type 0");
}

#[test]
fn one_format_holds_for_all() {
    let bind = |param_formats: Vec<i16>, result_formats: Vec<i16>| BindMessage {
        portal: "",
        statement: "",
        param_formats,
        params: vec![],
        result_formats,
    };
    let formats = |bind: BindMessage<'_>| [bind.param_format(0), bind.param_format(1), bind.result_format(1)];
    assert_eq!(formats(bind(vec![], vec![])), [0, 0, 0]);
    assert_eq!(formats(bind(vec![1], vec![1])), [1, 1, 1]);
    assert_eq!(formats(bind(vec![1, 0], vec![0, 1])), [1, 0, 1]);
}

#[test]
fn passwords_and_first_sasl_messages() {
    assert_eq!(parse_password(b"secret\0"), Ok("secret"));
    let message = |body: &[u8]| parse_password(body).unwrap_err().message;
    assert_eq!(message(b"secret"), "invalid password packet size");
    assert_eq!(message(b"se\0cret\0"), "invalid password packet size");
    assert_eq!(message(b""), "invalid password packet size");
    assert_eq!(parse_password(b"\0").unwrap_err().sqlstate, "28P01");
    assert_eq!(
        parse_sasl_initial(b"SCRAM-SHA-256\0\0\0\0\x03n,,"),
        Ok(SaslInitial { mechanism: "SCRAM-SHA-256", data: Some(b"n,,") })
    );
    assert_eq!(parse_sasl_initial(b"M\0\xff\xff\xff\xff"), Ok(SaslInitial { mechanism: "M", data: None }));
    let message = |body: &[u8]| parse_sasl_initial(body).unwrap_err().message;
    assert_eq!(message(b"M\0\0\0\0\x03n,"), "insufficient data left in message");
    assert_eq!(message(b"M\0\0\0\0\x03n,,x"), "invalid message format");
}

#[test]
fn a_nul_inside_a_text_does_not_make_new_fields() {
    let written = frame(|b| frontend::write_parse(b, "s\0SELECT 2\0", "SELECT 1", &[]));
    assert_eq!(
        parse_frontend(&written),
        Ok(FrontendMessage::Parse { name: "s", sql: "SELECT 1", param_types: vec![] })
    );
}

#[test]
fn server_messages_are_read_as_they_were_written() {
    fn check<T: PartialEq + std::fmt::Debug>(
        write: impl FnOnce(&mut BytesMut),
        bytes: &[u8],
        read: impl FnOnce(&Frame) -> T,
        expected: T,
    ) {
        let frame = frame(write);
        assert_eq!(frame.raw, bytes, "{expected:?}");
        assert_eq!(read(&frame), expected);
    }
    let columns = vec![FieldDescription {
        name: "ä".into(),
        table_oid: 1,
        column_id: -2,
        type_oid: 25,
        type_len: -1,
        type_modifier: -1,
        format: 1,
    }];
    check(
        |b| backend::write_row_description(b, &columns),
        b"T\0\0\0\x1b\0\x01\xc3\xa4\0\0\0\0\x01\xff\xfe\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\x01",
        |f| backend::parse_row_description(f).unwrap(),
        columns.clone(),
    );
    check(
        |b| backend::write_data_row(b, &[Some("a"), None, Some("")]),
        b"D\0\0\0\x13\0\x03\0\0\0\x01a\xff\xff\xff\xff\0\0\0\0",
        |f| backend::parse_data_row(f).unwrap().map(|v| v.unwrap().map(<[u8]>::to_vec)).collect::<Vec<_>>(),
        vec![Some(b"a".to_vec()), None, Some(vec![])],
    );
    check(
        |b| backend::write_data_row::<&str>(b, &[]),
        b"D\0\0\0\x06\0\0",
        |f| backend::parse_data_row(f).unwrap().count(),
        0,
    );
    check(
        |b| backend::write_command_complete(b, "SELECT 1"),
        b"C\0\0\0\x0dSELECT 1\0",
        |f| backend::parse_command_complete(f).unwrap().to_owned(),
        "SELECT 1".to_owned(),
    );
    check(
        |b| backend::write_parameter_status(b, "TimeZone", "UTC"),
        b"S\0\0\0\x11TimeZone\0UTC\0",
        |f| backend::parse_parameter_status(f).map(|(name, value)| format!("{name}={value}")).unwrap(),
        "TimeZone=UTC".to_owned(),
    );
    check(
        |b| backend::write_backend_key_data(b, 258, b"\x01\x02\x03\x04"),
        b"K\0\0\0\x0c\0\0\x01\x02\x01\x02\x03\x04",
        |f| backend::parse_backend_key_data(f).map(|(pid, key)| (pid, key.to_vec())).unwrap(),
        (258, vec![1, 2, 3, 4]),
    );
    for (status, byte) in
        [(TransactionStatus::Idle, b'I'), (TransactionStatus::InBlock, b'T'), (TransactionStatus::Failed, b'E')]
    {
        let bytes = [b'Z', 0, 0, 0, 5, byte];
        check(
            |b| backend::write_ready_for_query(b, status),
            &bytes,
            |f| backend::parse_ready_for_query(f).unwrap(),
            status,
        );
        check(
            |b| backend::write_ready_for_query(b, byte),
            &bytes,
            |f| backend::parse_ready_for_query(f).unwrap(),
            status,
        );
    }
    check(
        |b| backend::write_parameter_description(b, &[23, 25]),
        b"t\0\0\0\x0e\0\x02\0\0\0\x17\0\0\0\x19",
        |f| backend::parse_parameter_description(f).unwrap(),
        vec![23, 25],
    );
    let copy = CopyResponse { format: 1, column_formats: vec![1, 1] };
    check(
        |b| backend::write_copy_in_response(b, 1, &[1, 1]),
        b"G\0\0\0\x0b\x01\0\x02\0\x01\0\x01",
        |f| backend::parse_copy_response(f).unwrap(),
        copy.clone(),
    );
    check(
        |b| backend::write_copy_out_response(b, 1, &[1, 1]),
        b"H\0\0\0\x0b\x01\0\x02\0\x01\0\x01",
        |f| backend::parse_copy_response(f).unwrap(),
        copy,
    );
    check(
        |b| backend::write_notification(b, 7, "ch", "pay"),
        b"A\0\0\0\x0f\0\0\0\x07ch\0pay\0",
        |f| backend::parse_notification(f).unwrap(),
        Notification { pid: 7, channel: "ch".into(), payload: "pay".into() },
    );
    let authentication = |f: &Frame| backend::parse_authentication(f).unwrap();
    check(backend::write_authentication_ok, b"R\0\0\0\x08\0\0\0\0", authentication, Authentication::Ok);
    check(
        backend::write_authentication_cleartext,
        b"R\0\0\0\x08\0\0\0\x03",
        authentication,
        Authentication::CleartextPassword,
    );
    check(
        |b| backend::write_authentication_sasl(b, &["A", "B"]),
        b"R\0\0\0\x0d\0\0\0\x0aA\0B\0\0",
        authentication,
        Authentication::Sasl { mechanisms: vec!["A".into(), "B".into()] },
    );
    check(
        |b| backend::write_authentication_sasl_continue(b, b"r=x"),
        b"R\0\0\0\x0b\0\0\0\x0br=x",
        authentication,
        Authentication::SaslContinue { data: Bytes::from_static(b"r=x") },
    );
    check(
        |b| backend::write_authentication_sasl_final(b, b""),
        b"R\0\0\0\x08\0\0\0\x0c",
        authentication,
        Authentication::SaslFinal { data: Bytes::new() },
    );
    check(
        |b| backend::write_negotiate_protocol_version(b, (3, 2), &["_pq_.x"]),
        b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0",
        |f| backend::parse_negotiate_protocol_version(f).map(|n| (n.version, n.unrecognized)).unwrap(),
        ((3, 2), vec!["_pq_.x".to_owned()]),
    );
    type Write = fn(&mut BytesMut);
    let empty: [(Write, &[u8]); 6] = [
        (backend::write_parse_complete, b"1\0\0\0\x04"),
        (backend::write_bind_complete, b"2\0\0\0\x04"),
        (backend::write_close_complete, b"3\0\0\0\x04"),
        (backend::write_no_data, b"n\0\0\0\x04"),
        (backend::write_portal_suspended, b"s\0\0\0\x04"),
        (backend::write_empty_query_response, b"I\0\0\0\x04"),
    ];
    for (write, bytes) in empty {
        assert_eq!(frame(write).raw, bytes);
    }
}

/// From PostgreSQL 15: `SELECT * FROM nix`.
const ERROR: &[u8] = b"SERROR\0VERROR\0C42P01\0Mrelation \"nix\" does not exist\0P15\0Fparse_relation.c\0L1392\0\
                       RparserOpenTable\0\0";

#[test]
fn error_fields_are_kept_and_changed() {
    let recorded = frame_of(b'E', ERROR);
    let mut fields = backend::parse_error(&recorded).unwrap();
    assert_eq!(
        (fields.severity(), fields.sqlstate(), fields.message(), fields.get(field::POSITION), fields.get(field::HINT)),
        ("ERROR", "42P01", "relation \"nix\" does not exist", Some("15"), None)
    );
    assert_eq!(frame(|b| backend::write_error(b, &fields)), recorded);
    assert_eq!(frame(|b| backend::write_notice(b, &fields)), frame_of(b'N', ERROR));
    assert!(!fields.is_fatal());

    assert_eq!(fields.remove(field::POSITION).as_deref(), Some("15"));
    assert_eq!(fields.remove(field::POSITION), None);
    fields.set(field::MESSAGE, "other");
    fields.set(field::DETAIL, "more");
    let codes: Vec<u8> = fields.fields.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, b"SVCMDFLR", "a new field stands where PostgreSQL sends it");
    assert_eq!(fields.message(), "other");

    let made = ErrorFields::new("FATAL", "57P01", "bye").with(field::HINT, "come back");
    assert!(made.is_fatal());
    assert_eq!(
        frame(|b| backend::write_error(b, &made)),
        frame_of(b'E', b"SFATAL\0VFATAL\0C57P01\0Mbye\0Hcome back\0Fpgherd\0L0\0Rpgherd\0\0")
    );
    let old_server = backend::parse_error(&frame_of(b'E', b"SFEHLER\0C42P01\0Mx\xff\0\0")).unwrap();
    assert_eq!((old_server.severity(), old_server.message()), ("FEHLER", "x\u{fffd}"));
}

#[test]
fn broken_server_messages_are_errors() {
    fn check<T: std::fmt::Debug>(
        read: impl FnOnce(&Frame) -> Result<T, pgherd_wire::ProtocolError>,
        body: &[u8],
    ) -> String {
        read(&frame_of(b'?', body)).unwrap_err().message.into_owned()
    }
    let cut = "insufficient data left in message";
    assert_eq!(check(backend::parse_error, b"SERROR\0"), "no data left in message");
    assert_eq!(check(backend::parse_error, b"SERROR"), "invalid string in message");
    assert_eq!(check(backend::parse_error, b"SERROR\0\0x"), "invalid message format");
    assert_eq!(check(backend::parse_row_description, b"\0\x01a\0\0\0"), cut);
    assert_eq!(check(backend::parse_row_description, b"\xff\xff"), "invalid string in message");
    assert_eq!(check(backend::parse_row_description, b"\0\0x"), "invalid message format");
    assert_eq!(check(backend::parse_ready_for_query, b"x"), "invalid transaction status 0x78");
    assert_eq!(
        check(|f| backend::parse_backend_key_data(f).map(|(pid, _)| pid), b"\0\0\0\x01\0"),
        "invalid cancel key length 1 in message"
    );
    assert_eq!(check(backend::parse_authentication, b"\0\0\0\x0aSCRAM\0"), "invalid string in message");
    assert_eq!(check(backend::parse_authentication, b"\0\0\0\x05abc"), cut);
    assert_eq!(
        check(backend::parse_negotiate_protocol_version, b"\0\0\0\0\xff\xff\xff\xff"),
        "invalid string in message"
    );
    assert_eq!(check(backend::parse_copy_response, b"\0\0\x02\0\0"), cut);

    let row = frame_of(b'D', b"\0\x03\0\0\0\x01a\0\0\0\x09b");
    let values: Vec<_> = backend::parse_data_row(&row).unwrap().collect();
    assert_eq!(values.len(), 2, "nothing comes after the first error");
    assert_eq!(values[0], Ok(Some(&b"a"[..])));
    assert_eq!(values[1].as_ref().unwrap_err().message, cut);
    let row = frame_of(b'D', b"\0\x01\0\0\0\x01ab");
    let values: Vec<_> = backend::parse_data_row(&row).unwrap().collect();
    assert_eq!(values[0].as_ref().unwrap_err().message, "invalid message format");
}

#[test]
fn old_servers_name_only_the_minor_version() {
    let negotiate = backend::parse_negotiate_protocol_version(&frame_of(b'v', b"\0\0\0\0\0\0\0\0")).unwrap();
    assert_eq!(negotiate.version, (3, 0));
}

#[test]
fn command_tags_count_rows() {
    let cases = [
        ("INSERT 0 3", Some(3)),
        ("SELECT 12", Some(12)),
        ("UPDATE 0", Some(0)),
        ("COPY 5", Some(5)),
        ("MERGE 2", Some(2)),
        ("BEGIN", None),
        ("CREATE TABLE", None),
        ("SELECT", None),
        ("INSERT 0", None),
    ];
    for (tag, rows) in cases {
        assert_eq!(command_tag_rows(tag), rows, "{tag}");
    }
}

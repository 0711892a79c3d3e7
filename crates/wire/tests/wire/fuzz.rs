//! Arbitrary bytes never make a parser panic, and never make it give more than it got.

use bytes::{Bytes, BytesMut};
use pgherd_wire::copy::{CopyFormat, CopyOptions, CopySplitter, Header, decode_binary_row, decode_text_row};
use pgherd_wire::scram::{ScramClient, ScramServer, ScramVerifier};
use pgherd_wire::{Frame, backend, frontend, next_frame, next_startup, parse_frontend, peek_frame};

use crate::copy::split_pieces;
use crate::random::Random;

const ROUNDS: usize = 20_000;
const FRONTEND_TAGS: &[u8] = b"QPBDECSHdcfpXF?";

/// Bytes in which small numbers, ends of strings and high bits are frequent.
fn tricky(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len)
        .map(|_| match random.below(4) {
            0 => 0,
            1 => random.below(5) as u8,
            2 => *random.pick(b"\xffSPa,=\"\\\n\r\t."),
            _ => random.next() as u8,
        })
        .collect()
}

#[test]
fn messages() {
    let mut random = Random::new(0x7067_6865_7264);
    let mut parsed = 0;
    for _ in 0..ROUNDS {
        let len = random.below(40);
        let mut raw = vec![*random.pick(FRONTEND_TAGS)];
        raw.extend_from_slice(&(len as u32 + 4).to_be_bytes());
        raw.extend(tricky(&mut random, len));
        let frame = Frame { raw: Bytes::from(raw) };
        parsed += u32::from(parse_frontend(&frame).is_ok());
        let _ = frontend::parse_password(frame.body());
        let _ = frontend::parse_sasl_initial(frame.body());
        let _ = backend::parse_error(&frame);
        let _ = backend::parse_row_description(&frame);
        if let Ok(row) = backend::parse_data_row(&frame) {
            let values: usize = row.filter_map(|value| value.ok().flatten()).map(<[u8]>::len).sum();
            assert!(values <= len);
        }
        let _ = backend::parse_command_complete(&frame);
        let _ = backend::parse_parameter_status(&frame);
        let _ = backend::parse_backend_key_data(&frame);
        let _ = backend::parse_ready_for_query(&frame);
        let _ = backend::parse_parameter_description(&frame);
        let _ = backend::parse_copy_response(&frame);
        let _ = backend::parse_authentication(&frame);
        let _ = backend::parse_notification(&frame);
        let _ = backend::parse_negotiate_protocol_version(&frame);
    }
    assert!(parsed > 100, "some bytes are messages");
}

#[test]
fn streams() {
    let mut random = Random::new(0x7374_7265_616d);
    for _ in 0..ROUNDS {
        let len = random.below(64);
        let bytes = tricky(&mut random, len);
        let peeked = peek_frame(&bytes);
        let mut buf = BytesMut::from(&bytes[..]);
        let first = next_frame(&mut buf, 100);
        match (&first, peeked) {
            (Ok(Some(frame)), Some(peeked)) => assert_eq!((frame.tag(), frame.raw.len()), peeked),
            (Ok(Some(_)), None) => panic!("a whole frame was not seen"),
            _ => {}
        }
        while let Ok(Some(_)) = next_frame(&mut buf, 100) {}
        let mut buf = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = next_startup(&mut buf) {}
    }
}

#[test]
fn scram_messages() {
    let mut random = Random::new(0x0073_6372_616d);
    for _ in 0..ROUNDS / 10 {
        let text: Vec<u8> = (0..random.below(30)).map(|_| *random.pick(b"nyp,,,===rscivea1x\0\xff")).collect();
        let mut server = ScramServer::mock("x", b"y", "nonce");
        let _ = server.handle_client_first(&text);
        let mut server = ScramServer::mock("x", b"y", "nonce");
        server.handle_client_first(b"n,,n=,r=x").unwrap();
        assert!(server.handle_client_final(&text).is_err());
        let mut client = ScramClient::from_keys([1; 32], [2; 32], "r");
        let _ = client.handle_server_first(&text);
        assert!(client.handle_server_final(&text).is_err());
        let _ = ScramVerifier::parse(&format!("SCRAM-SHA-256${}", String::from_utf8_lossy(&text)));
    }
}

#[test]
fn copy_data() {
    let mut random = Random::new(0x636f_7079);
    for round in 0..ROUNDS {
        let format = *random.pick(&[CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary]);
        let mut options = CopyOptions::new(format, *random.pick(&[15, 18]));
        options.header = *random.pick(&[Header::None, Header::Skip, Header::Match]);
        options.escape = *random.pick(b"\"\\");
        options.column_names = vec!["a".into(); 2];
        options.row_len_max = *random.pick(&[20, 1000]);
        let mut splitter = CopySplitter::new(options, random.below(3), 2);
        let mut pushed = 0;
        let mut taken = 0;
        if format == CopyFormat::Binary && random.below(4) > 0 {
            splitter.push(&pgherd_wire::copy::BINARY_HEADER);
        }
        'pieces: for _ in 0..4 {
            let len = random.below(30);
            let piece = tricky(&mut random, len);
            pushed += len;
            splitter.push(&piece);
            loop {
                match splitter.next_row() {
                    Ok(Some(row)) => taken += row.raw.len(),
                    Ok(None) => break,
                    Err(error) => {
                        assert!(!error.message().is_empty());
                        break 'pieces;
                    }
                }
            }
        }
        while let Ok(Some(row)) = splitter.finish() {
            taken += row.raw.len();
        }
        assert!(taken <= pushed, "round {round}");
        let len = random.below(30);
        let line = tricky(&mut random, len);
        assert!(!decode_text_row(&line).is_empty());
        let _ = decode_binary_row(&line);
    }
}

#[test]
fn copy_rows_are_the_same_in_any_pieces() {
    let mut random = Random::new(0x7069_6563_6573);
    let mut rows = 0;
    for _ in 0..ROUNDS {
        let format = *random.pick(&[CopyFormat::Text, CopyFormat::Csv]);
        let mut options = CopyOptions::new(format, *random.pick(&[15, 18]));
        (options.delimiter, options.escape) = (b',', *random.pick(b"\"\\"));
        let newline = *random.pick(b"\n\r");
        let data: Vec<u8> = (0..random.below(25))
            .map(|_| match random.below(3) {
                0 => *random.pick(&[newline, newline, b'\n', b'\r']),
                _ => *random.pick(b",,a\\\"."),
            })
            .collect();
        let whole = split_pieces(&options, 0, 2, &[&data]);
        let cut = random.below(data.len() + 1);
        let (left, right) = data.split_at(cut);
        let cut = random.below(right.len() + 1);
        assert_eq!(
            split_pieces(&options, 0, 2, &[left, &right[..cut], &right[cut..]]),
            whole,
            "{}",
            data.escape_ascii()
        );
        let bytes: Vec<&[u8]> = data.chunks(1).collect();
        assert_eq!(split_pieces(&options, 0, 2, &bytes), whole, "{}", data.escape_ascii());
        rows += whole.0.len();
    }
    assert!(rows > 1000, "{rows} rows");
}

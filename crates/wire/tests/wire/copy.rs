use bytes::BytesMut;
use pgherd_wire::copy::{
    BINARY_HEADER, BINARY_TRAILER, CopyError, CopyFormat, CopyOptions, CopySplitter, Header, KeyField,
    append_binary_fields, append_field, append_fields, decode_binary_row, decode_csv_row, decode_text_row,
    encode_text_row, write_binary_row, write_text_row,
};

/// Each row's own bytes, key and line; the header; the error.
type Outcome = (Vec<(Vec<u8>, KeyField<'static>, u64)>, Option<Vec<u8>>, Option<CopyError>);

/// Everything that comes out of the data when it arrives in these pieces, up to an error.
pub fn split_pieces(options: &CopyOptions, key_column: usize, column_count: usize, pieces: &[&[u8]]) -> Outcome {
    let mut splitter = CopySplitter::new(options.clone(), key_column, column_count);
    let mut rows = Vec::new();
    let mut run = |splitter: &mut CopySplitter| -> Result<(), CopyError> {
        for piece in pieces {
            splitter.push(piece);
            while let Some(row) = splitter.next_row()? {
                rows.push((row.raw.to_vec(), row.key.into_owned(), row.line));
            }
        }
        while let Some(row) = splitter.finish()? {
            rows.push((row.raw.to_vec(), row.key.into_owned(), row.line));
        }
        Ok(())
    };
    let error = run(&mut splitter).err();
    assert_eq!(splitter.next_row(), Ok(None), "nothing comes after the end or an error");
    (rows, splitter.header().map(|header| header.to_vec()), error)
}

/// Rows as `line: raw key`, the header, and the error, the same for every way to cut the data.
fn shown(options: &CopyOptions, data: &[u8]) -> String {
    let whole = split_pieces(options, 0, 2, &[data]);
    for at in 0..=data.len() {
        assert_eq!(split_pieces(options, 0, 2, &[&data[..at], &data[at..]]), whole, "split at {at}");
    }
    let bytes: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(split_pieces(options, 0, 2, &bytes), whole, "byte by byte");

    let (rows, header, error) = whole;
    let mut text = String::new();
    if let Some(header) = header {
        text += &format!("header \"{}\"\n", header.escape_ascii());
    }
    for (raw, key, line) in rows {
        let key = match key {
            KeyField::Null => "NULL".to_owned(),
            KeyField::Default => "DEFAULT".to_owned(),
            KeyField::Text(text) => format!("'{}'", text.escape_ascii()),
            KeyField::Binary(bytes) => format!("binary '{}'", bytes.escape_ascii()),
        };
        text += &format!("{line}: \"{}\" {key}\n", raw.escape_ascii());
    }
    if let Some(error) = error {
        let fields = error.to_fields("t");
        for (code, field) in &fields.fields {
            if !b"SV".contains(code) {
                text += &format!("{}: {field}\n", char::from(*code));
            }
        }
    }
    text
}

fn options(format: CopyFormat) -> CopyOptions {
    CopyOptions { column_names: vec!["a".into(), "b".into()], ..CopyOptions::new(format, 18) }
}

#[track_caller]
fn check(options: &CopyOptions, data: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(shown(options, data.as_ref()), expected);
}

#[test]
fn text_rows_end_as_the_first_one_does() {
    let text = options(CopyFormat::Text);
    check(&text, "1\tx\n2\ty\n", "1: \"1\\tx\\n\" '1'\n2: \"2\\ty\\n\" '2'\n");
    check(&text, "1\tx\r\n2\ty\r\n", "1: \"1\\tx\\r\\n\" '1'\n2: \"2\\ty\\r\\n\" '2'\n");
    check(&text, "1\tx\r2\ty\r", "1: \"1\\tx\\r\" '1'\n2: \"2\\ty\\r\" '2'\n");
    check(&text, "1\tx\n2\ty", "1: \"1\\tx\\n\" '1'\n2: \"2\\ty\" '2'\n");
    check(&text, "1\tx\r\n2\ty", "1: \"1\\tx\\r\\n\" '1'\n2: \"2\\ty\" '2'\n");
    check(&text, "1\tx\r", "1: \"1\\tx\\r\" '1'\n");
    check(&text, "", "");
    check(
        &text,
        "1\tx\n2\ty\r\n",
        "1: \"1\\tx\\n\" '1'\nC: 22P04\nM: literal carriage return found in data\n\
         H: Use \"\\r\" to represent carriage return.\nW: COPY t, line 2\n",
    );
    check(
        &text,
        "1\tx\r\n2\ty\n",
        "1: \"1\\tx\\r\\n\" '1'\nC: 22P04\nM: literal newline found in data\n\
         H: Use \"\\n\" to represent newline.\nW: COPY t, line 2\n",
    );
}

#[test]
fn text_keys_are_unescaped() {
    let text = options(CopyFormat::Text);
    check(&text, "\\N\tx\n", "1: \"\\\\N\\tx\\n\" NULL\n");
    check(&text, "\tx\n", "1: \"\\tx\\n\" ''\n");
    check(
        &text,
        "a\\tb\\\\\\n\\x41\\101\\q\\xg\tx\n",
        "1: \"a\\\\tb\\\\\\\\\\\\n\\\\x41\\\\101\\\\q\\\\xg\\tx\\n\" 'a\\tb\\\\\\nAAqxg'\n",
    );
    // A backslash makes data of whatever follows, the delimiter and the newline too.
    check(&text, "a\\\tb\tx\n", "1: \"a\\\\\\tb\\tx\\n\" 'a\\tb'\n");
    check(&text, "a\\\nb\tx\n", "1: \"a\\\\\\nb\\tx\\n\" 'a\\nb'\n");
    // At the end of the data it is dropped before the field is compared with the null string.
    let (rows, ..) = split_pieces(&text, 1, 2, &[b"1\t\\N\\"]);
    assert_eq!(rows, [(b"1\t\\N\\".to_vec(), KeyField::Null, 1)]);
}

#[test]
fn other_delimiters_and_markers() {
    let text =
        CopyOptions { delimiter: b'|', null: "nil".into(), default: Some("\\D".into()), ..options(CopyFormat::Text) };
    check(
        &text,
        "nil|x\n\\D|x\n\\N|x\nn\\il|x\n",
        "1: \"nil|x\\n\" NULL\n2: \"\\\\D|x\\n\" DEFAULT\n3: \"\\\\N|x\\n\" 'N'\n4: \"n\\\\il|x\\n\" 'nil'\n",
    );
}

#[test]
fn a_row_must_have_every_column() {
    let text = options(CopyFormat::Text);
    check(
        &text,
        "1\tx\n2\n",
        "1: \"1\\tx\\n\" '1'\nC: 22P04\nM: missing data for column \"b\"\nW: COPY t, line 2: \"2\"\n",
    );
    check(&text, "\n", "C: 22P04\nM: missing data for column \"b\"\nW: COPY t, line 1: \"\"\n");
    check(
        &text,
        "1\tx\ty\n",
        "C: 22P04\nM: extra data after last expected column\nW: COPY t, line 1: \"1\\tx\\ty\"\n"
            .replace("\\t", "\t")
            .as_str(),
    );
    let unnamed = CopyOptions { column_names: vec![], ..text };
    check(&unnamed, "1\n", "C: 22P04\nM: missing data for column 2\nW: COPY t, line 1: \"1\"\n");
    let long = "ä".repeat(60);
    check(
        &unnamed,
        &long,
        &format!("C: 22P04\nM: missing data for column 2\nW: COPY t, line 1: \"{}...\"\n", "ä".repeat(50)),
    );
}

#[test]
fn the_end_marker_ends_text() {
    let text = options(CopyFormat::Text);
    check(&text, "1\tx\n\\.\n2\ty\n", "1: \"1\\tx\\n\" '1'\n");
    check(&text, "\\.\nrubbish\r\n\n", "");
    check(&text, "1\tx\r\n\\.\r\n", "1: \"1\\tx\\r\\n\" '1'\n");
    check(
        &text,
        "1\tx\r\n\\.\n",
        "1: \"1\\tx\\r\\n\" '1'\nC: 22P04\nM: end-of-copy marker does not match previous newline style\nW: COPY t, line 2\n",
    );
    check(&text, "\\.x\n", "C: 22P04\nM: end-of-copy marker is not alone on its line\nW: COPY t, line 1\n");
    check(&text, "1\tx\\.\n", "C: 22P04\nM: end-of-copy marker is not alone on its line\nW: COPY t, line 1\n");
    // An escaped backslash is no marker.
    check(&text, "\\\\.\tx\n", "1: \"\\\\\\\\.\\tx\\n\" '\\\\.'\n");
    let before_18 = CopyOptions { server_major: 17, ..text };
    check(&before_18, "1\tx\\.\n2\ty\n", "1: \"1\\tx\" '1'\n");
    check(&before_18, "\\.x\n", "C: 22P04\nM: end-of-copy marker corrupt\nW: COPY t, line 1\n");
    check(&before_18, "\\.", "C: 22P04\nM: end-of-copy marker corrupt\nW: COPY t, line 1\n");
}

#[test]
fn csv_rows_may_hold_newlines_in_quotes() {
    let csv = options(CopyFormat::Csv);
    check(&csv, "1,x\n\"2\",y\n", "1: \"1,x\\n\" '1'\n2: \"\\\"2\\\",y\\n\" '2'\n");
    check(&csv, "1,\"a\nb\n\"\n2,\n", "1: \"1,\\\"a\\nb\\n\\\"\\n\" '1'\n2: \"2,\\n\" '2'\n");
    check(&csv, "0,\n1,\"a\nb\"\n2,\n", "1: \"0,\\n\" '0'\n3: \"1,\\\"a\\nb\\\"\\n\" '1'\n4: \"2,\\n\" '2'\n");
    check(&csv, "\"a\"\"b\"c,x\n", "1: \"\\\"a\\\"\\\"b\\\"c,x\\n\" 'a\\\"bc'\n");
    check(&csv, "\"a\r\nb\",x\r\n1,2\r\n", "2: \"\\\"a\\r\\nb\\\",x\\r\\n\" 'a\\r\\nb'\n3: \"1,2\\r\\n\" '1'\n");
    check(&csv, "\"a,\",x", "1: \"\\\"a,\\\",x\" 'a,'\n");
    check(&csv, "a\\,x\n", "1: \"a\\\\,x\\n\" 'a\\\\'\n");
    check(&csv, "\"a\nb,x\n", "C: 22P04\nM: unterminated CSV quoted field\nW: COPY t, line 1: \"\"a\nb,x\n\"\n");
    check(
        &csv,
        "1,2\n3,4\r\n",
        "1: \"1,2\\n\" '1'\nC: 22P04\nM: unquoted carriage return found in data\n\
         H: Use quoted CSV field to represent carriage return.\nW: COPY t, line 2\n",
    );
}

#[test]
fn csv_with_other_quotes() {
    let csv = CopyOptions { quote: b'\'', escape: b'\\', delimiter: b';', ..options(CopyFormat::Csv) };
    check(&csv, "'a\\'b;\n';x\n", "1: \"\\'a\\\\\\'b;\\n\\';x\\n\" 'a\\'b;\\n'\n");
    check(&csv, "'a\\\\';x\n", "1: \"\\'a\\\\\\\\\\';x\\n\" 'a\\\\'\n");
    check(&csv, "'a\\b';x\n", "1: \"\\'a\\\\b\\';x\\n\" 'a\\\\b'\n");
    // An escape was taken to hold for a quote in the next piece, with other bytes between them.
    check(&csv, "'a\\b';x\n'c\\,';x\n", "1: \"\\'a\\\\b\\';x\\n\" 'a\\\\b'\n2: \"\\'c\\\\,\\';x\\n\" 'c\\\\,'\n");
    check(&csv, "\"a;x\n", "1: \"\\\"a;x\\n\" '\\\"a'\n");
}

#[test]
fn csv_null_is_what_is_not_quoted() {
    let csv = options(CopyFormat::Csv);
    check(&csv, ",x\n\"\",x\n", "1: \",x\\n\" NULL\n2: \"\\\"\\\",x\\n\" ''\n");
    let force_null = CopyOptions { force_null: true, ..csv.clone() };
    check(&force_null, ",x\n\"\",x\n", "1: \",x\\n\" NULL\n2: \"\\\"\\\",x\\n\" NULL\n");
    let force_not_null = CopyOptions { force_not_null: true, ..csv.clone() };
    check(&force_not_null, ",x\n\"\",x\n", "1: \",x\\n\" ''\n2: \"\\\"\\\",x\\n\" ''\n");
    let marked = CopyOptions { null: "nil".into(), default: Some("def".into()), ..csv };
    check(
        &marked,
        "nil,x\n\"nil\",x\ndef,x\n\"def\",x\n",
        "1: \"nil,x\\n\" NULL\n2: \"\\\"nil\\\",x\\n\" 'nil'\n3: \"def,x\\n\" DEFAULT\n4: \"\\\"def\\\",x\\n\" 'def'\n",
    );
}

#[test]
fn the_end_marker_ends_csv_before_postgresql_18() {
    let now = options(CopyFormat::Csv);
    let before = CopyOptions { server_major: 17, ..now.clone() };
    let missing = "C: 22P04\nM: missing data for column \"b\"\nW: COPY t, line 2: \"\\.\"\n";
    check(&now, "1,x\n\\.\n2,y\n", &format!("1: \"1,x\\n\" '1'\n{missing}"));
    check(&before, "1,x\n\\.\n2,y\n", "1: \"1,x\\n\" '1'\n");
    check(&before, "\\.,x\n", "1: \"\\\\.,x\\n\" '\\\\.'\n");
    check(&before, "\\,x\n", "1: \"\\\\,x\\n\" '\\\\'\n");
    check(&before, "\"\n\\.\n\",x\n", "1: \"\\\"\\n\\\\.\\n\\\",x\\n\" '\\n\\\\.\\n'\n");
}

#[test]
fn header_lines_are_kept_apart() {
    let text = CopyOptions { header: Header::Skip, ..options(CopyFormat::Text) };
    check(&text, "whatever\n1\tx\n", "header \"whatever\\n\"\n2: \"1\\tx\\n\" '1'\n");
    check(&text, "whatever", "header \"whatever\"\n");
    let csv = CopyOptions { header: Header::Match, ..options(CopyFormat::Csv) };
    check(&csv, "a,\"b\"\r\n1,x\r\n", "header \"a,\\\"b\\\"\\r\\n\"\n2: \"1,x\\r\\n\" '1'\n");
    check(
        &csv,
        "a\n",
        "C: 22P04\nM: wrong number of fields in header line: got 1, expected 2\nW: COPY t, line 1: \"a\"\n",
    );
    check(
        &csv,
        "a,c\n",
        "C: 22P04\nM: column name mismatch in header line field 2: got \"c\", expected \"b\"\nW: COPY t, line 1: \"a,c\"\n",
    );
    check(
        &csv,
        ",b\n",
        "C: 22P04\nM: column name mismatch in header line field 1: got null value (\"\"), expected \"a\"\n\
         W: COPY t, line 1: \",b\"\n",
    );
    check(&csv, "", "C: 22P04\nM: wrong number of fields in header line: got 1, expected 2\nW: COPY t, line 1: \"\"\n");
    let unnamed = CopyOptions { column_names: vec![], ..csv };
    check(
        &unnamed,
        "a,b\n",
        "C: XX000\nM: column names are needed to match the header line\nW: COPY t, line 1: \"a,b\"\n",
    );
}

/// Header, tuples, trailer: two columns each.
fn binary(rows: &[[Option<&[u8]>; 2]]) -> Vec<u8> {
    let mut buf = BytesMut::from(&BINARY_HEADER[..]);
    rows.iter().for_each(|row| write_binary_row(&mut buf, row));
    buf.extend_from_slice(&BINARY_TRAILER);
    buf.to_vec()
}

#[test]
fn binary_tuples() {
    let data = binary(&[[Some(b"\0\0\0\x01"), None], [None, Some(b"x")], [Some(b""), Some(b"\xff\xff")]]);
    let header = "header \"PGCOPY\\n\\xff\\r\\n\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"\n";
    let rows = format!(
        "{header}1: \"\\x00\\x02\\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x01\\xff\\xff\\xff\\xff\" binary '\\x00\\x00\\x00\\x01'\n\
         2: \"\\x00\\x02\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x01x\" NULL\n\
         3: \"\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\xff\\xff\" binary ''\n"
    );
    let options = options(CopyFormat::Binary);
    check(&options, &data, &rows);
    check(&options, &data[..data.len() - 2], &rows);
    check(
        &options,
        [&data[..], b"x"].concat(),
        &format!("{rows}C: 22P04\nM: received copy data after EOF marker\nW: COPY t, line 4\n"),
    );
    check(
        &options,
        &data[..data.len() - 3],
        &format!(
            "{}C: 22P04\nM: unexpected EOF in COPY data\nW: COPY t, line 3, column b\n",
            rows.split_inclusive('\n').take(3).collect::<String>()
        ),
    );
    let mut extended = data.clone();
    extended[18] = 3;
    extended.splice(19..19, *b"abc");
    check(&options, &extended, &rows.replacen("\\x00\\x00\"\n", "\\x00\\x03\"\n", 1));
}

#[test]
fn broken_binary_data() {
    let options = options(CopyFormat::Binary);
    let head = BINARY_HEADER;
    let header = "header \"PGCOPY\\n\\xff\\r\\n\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\"\n";
    let failed = |message: &str| format!("C: 22P04\nM: {message}\n");
    check(&options, "", &failed("COPY file signature not recognized"));
    check(&options, "1\tx\n", &failed("COPY file signature not recognized"));
    check(&options, &head[..10], &failed("COPY file signature not recognized"));
    check(&options, &head[..14], &failed("invalid COPY file header (missing flags)"));
    check(&options, &head[..17], &failed("invalid COPY file header (missing length)"));
    let with = |at: usize, value: u8| {
        let mut head = head;
        head[at] = value;
        head
    };
    check(&options, with(12, 1), &failed("invalid COPY file header (WITH OIDS)"));
    check(&options, with(11, 1), &failed("unrecognized critical flags in COPY file header"));
    check(&options, with(15, 0x80), &failed("invalid COPY file header (missing length)"));
    check(&options, with(18, 1), &failed("invalid COPY file header (wrong length)"));
    check(
        &options,
        [&head[..], b"\0\x03"].concat(),
        &(header.to_owned() + &failed("row field count is 3, expected 2") + "W: COPY t, line 1\n"),
    );
    check(
        &options,
        [&head[..], b"\0\x02\xff\xff\xff\xfe"].concat(),
        &(header.to_owned() + "C: 22P04\nM: invalid field size\nW: COPY t, line 1, column a\n"),
    );
    check(&options, [&head[..], b"\0"].concat(), header);
}

#[test]
fn a_key_that_is_not_copied_takes_its_default() {
    for (format, data) in [
        (CopyFormat::Text, b"1\tx\n".to_vec()),
        (CopyFormat::Csv, b"1,x\n".to_vec()),
        (CopyFormat::Binary, binary(&[[Some(b"1"), None]])),
    ] {
        let (rows, _, error) = split_pieces(&options(format), 2, 2, &[&data]);
        assert_eq!((rows[0].1.clone(), error), (KeyField::Default, None));
        let (rows, ..) = split_pieces(&options(format), 1, 2, &[&data]);
        assert_ne!(rows[0].1, KeyField::Default);
    }
    // A table without columns has empty lines.
    let (rows, _, error) = split_pieces(&options(CopyFormat::Text), 0, 0, &[b"\n\nx\n"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(error.unwrap().message(), "extra data after last expected column");
}

#[test]
fn rows_without_end_are_refused() {
    for (format, start) in
        [(CopyFormat::Text, &b""[..]), (CopyFormat::Csv, b"\""), (CopyFormat::Binary, &BINARY_HEADER)]
    {
        let mut splitter = CopySplitter::new(CopyOptions { row_len_max: 1000, ..options(format) }, 0, 2);
        splitter.push(start);
        splitter.push(b"\0\x02\0\0\x07\xff");
        let mut pushes = 0;
        let error = loop {
            assert!(pushes < 200, "{format:?} keeps {} bytes", splitter.buffered_len());
            match splitter.next_row() {
                Ok(row) => assert_eq!(row, None),
                Err(error) => break error,
            }
            splitter.push(b"0123456789");
            pushes += 1;
        };
        assert_eq!((error.sqlstate(), error.message().as_ref()), ("54000", "out of memory"));
    }
}

#[test]
fn lines_of_text_made_and_read() {
    let row = [Some(&b"a\tb\n\\\r\x08\x0b\x0c\\."[..]), None, Some(b""), Some("ä".as_bytes())];
    let line = b"a\\tb\\n\\\\\\r\\b\\v\\f\\\\.\t\\N\t\t\xc3\xa4\n";
    assert_eq!(encode_text_row(&row), line);
    let mut buf = BytesMut::from("x");
    write_text_row(&mut buf, &row);
    assert_eq!(buf[1..], line[..]);
    let read: Vec<Option<Vec<u8>>> = row.iter().map(|field| field.map(<[u8]>::to_vec)).collect();
    assert_eq!(decode_text_row(line), read);
    assert_eq!(decode_text_row(&line[..line.len() - 1]), read);
    assert_eq!(decode_text_row(b"\n"), [Some(vec![])]);
    let csv = decode_csv_row(b"\"a,b\",,c", &CopyOptions::new(CopyFormat::Csv, 18)).unwrap();
    assert_eq!(csv, [Some(b"a,b".to_vec()), None, Some(b"c".to_vec())]);
}

#[test]
fn fields_are_appended_as_the_options_say() {
    let options = |format, delimiter| CopyOptions { delimiter, ..CopyOptions::new(format, 18) };
    let quoted = CopyOptions { quote: b'\'', escape: b'\\', null: "nil".to_owned(), ..options(CopyFormat::Csv, b':') };
    for options in
        [options(CopyFormat::Text, b'\t'), options(CopyFormat::Text, b'-'), options(CopyFormat::Csv, b','), quoted]
    {
        let fields = [Some(&b"2026-11-24 10:00:00+00"[..]), None, Some(b"a\tb\\'\",:-\n"), Some(b"")];
        let mut behind = BytesMut::new();
        fields.iter().for_each(|field| append_field(&mut behind, *field, &options));
        for data in [&b"x\n"[..], b"x\r\n", b"x", b"x\\", b"x\\\n", b"x\\\\", b"x\\\r\n"] {
            let mut splitter = CopySplitter::new(options.clone(), 0, 1);
            splitter.push(data);
            let Ok(Some(row)) = splitter.finish() else { panic!("{data:?}") };
            let key = row.key.clone().into_owned();
            let longer = append_fields(row.raw, row.content_len, &behind, &options);
            let mut splitter = CopySplitter::new(options.clone(), 0, fields.len() + 1);
            splitter.push(&longer);
            let row = splitter.finish().unwrap().unwrap();
            assert_eq!(row.key, key, "{data:?}");
            let read = decode_csv_row(&row.raw[..row.content_len], &options).unwrap();
            assert_eq!(read[1..], fields.map(|field| field.map(<[u8]>::to_vec)), "{data:?}");
            assert_eq!(splitter.finish().unwrap(), None);
        }
    }
}

#[test]
fn binary_tuples_made_and_read() {
    let mut buf = BytesMut::new();
    write_binary_row(&mut buf, &[Some("x"), None, Some("")]);
    assert_eq!(decode_binary_row(&buf).unwrap(), [Some(&b"x"[..]), None, Some(b"")]);
    assert_eq!(decode_binary_row(&buf[..buf.len() - 1]), None);
    assert_eq!(decode_binary_row(&[&buf[..], b"x"].concat()), None);
    let mut behind = BytesMut::new();
    write_binary_row(&mut behind, &[None, Some("yz")]);
    let longer = append_binary_fields(&buf, 2, &behind[2..]);
    assert_eq!(decode_binary_row(&longer).unwrap(), [Some(&b"x"[..]), None, Some(b""), None, Some(b"yz")]);
    assert_eq!(decode_binary_row(&BINARY_TRAILER), None);
}

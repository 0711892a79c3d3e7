//! Where the text is in values in binary format: it is to be in another encoding, and the rest is to stay.

use bytes::{Buf, BufMut, BytesMut};

/// How the bytes of a type's values are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// They are text.
    Text,
    /// There is no text in them.
    Plain,
    /// Text behind a byte for the version.
    Versioned,
    /// Values of one type, which they name by number.
    Array,
    /// Values of several types, which they name by number.
    Record,
    /// Bounds of this type.
    Range(u32),
    /// Ranges of this type.
    Multirange(u32),
    Hstore,
    Tsvector,
    Tsquery,
    /// Not known.
    Other,
}

/// Why a value is not converted.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread<E> {
    /// A text in it is not.
    Text(E),
    /// Nobody knows where its text is.
    Unknown,
    /// It is not what its type says: whoever reads it will say so.
    Malformed,
}

impl Form {
    /// By the function that writes it. `inner`: of a range the type of its bounds, of a multirange the range.
    pub fn written_by(function: &str, inner: u32) -> Form {
        match function {
            "textsend" | "varcharsend" | "bpcharsend" | "namesend" | "unknownsend" | "cstring_send" | "json_send"
            | "enum_send" | "citextsend" => Form::Text,
            "jsonb_send" | "jsonpath_send" | "ltree_send" | "lquery_send" | "ltxtq_send" => Form::Versioned,
            "array_send" => Form::Array,
            "record_send" => Form::Record,
            "range_send" => Form::Range(inner),
            "multirange_send" => Form::Multirange(inner),
            "hstore_send" => Form::Hstore,
            "tsvectorsend" => Form::Tsvector,
            "tsquerysend" => Form::Tsquery,
            _ if PLAIN_FUNCTIONS.contains(&function) => Form::Plain,
            _ => Form::Other,
        }
    }

    /// Of a type that has the same number everywhere.
    pub fn built_in(type_oid: u32) -> Option<Form> {
        match type_oid {
            // name, text, json, unknown, bpchar, varchar, refcursor, cstring.
            19 | 25 | 114 | 705 | 1042 | 1043 | 1790 | 2275 => Some(Form::Text),
            // Their arrays, those of jsonb, jsonpath, tsvector, tsquery.
            199 | 1002 | 1003 | 1009 | 1014 | 1015 | 1263 | 2201 | 3643 | 3645 | 3807 | 4073 => Some(Form::Array),
            3802 | 4072 => Some(Form::Versioned),
            2249 => Some(Form::Record),
            2287 => Some(Form::Array),
            3614 => Some(Form::Tsvector),
            3615 => Some(Form::Tsquery),
            // xml says its encoding itself.
            142 | 143 => Some(Form::Other),
            oid if PLAIN.contains(&oid) => Some(Form::Plain),
            _ => None,
        }
    }
}

/// Of the extensions that come with PostgreSQL, and of domains over built-in types.
const PLAIN_FUNCTIONS: &[&str] = &[
    "boolsend",
    "byteasend",
    "charsend",
    "int2send",
    "int4send",
    "int8send",
    "float4send",
    "float8send",
    "oidsend",
    "numeric_send",
    "cash_send",
    "uuid_send",
    "date_send",
    "time_send",
    "timetz_send",
    "timestamp_send",
    "timestamptz_send",
    "interval_send",
    "bit_send",
    "varbit_send",
    "inet_send",
    "cidr_send",
    "macaddr_send",
    "macaddr8_send",
    "point_send",
    "lseg_send",
    "path_send",
    "box_send",
    "poly_send",
    "line_send",
    "circle_send",
    "cube_send",
    "regclasssend",
    "regtypesend",
    "regprocsend",
    "regproceduresend",
    "regopersend",
    "regoperatorsend",
    "regrolesend",
    "regnamespacesend",
    "regconfigsend",
    "regdictionarysend",
    "regcollationsend",
    "xidsend",
    "xid8send",
    "cidsend",
    "tidsend",
    "pg_lsn_send",
    "void_send",
    "int2vectorsend",
    "oidvectorsend",
];

/// bool, bytea, "char", numbers, object ids, geometry, addresses, dates and times, bits, numeric, uuid, positions in
/// the log, 64-bit transactions; arrays of such; ranges and multiranges.
#[rustfmt::skip]
const PLAIN: &[u32] = &[
    16, 17, 18, 20, 21, 23, 24, 26, 27, 28, 29, 600, 601, 602, 603, 604, 628, 650, 700, 701, 718, 774, 790, 829, 869,
    1082, 1083, 1114, 1184, 1186, 1266, 1560, 1562, 1700, 2202, 2203, 2204, 2205, 2206, 2278, 2950, 3220, 3734, 3769,
    4089, 4096, 5069,
    22, 30, 629, 651, 719, 775, 791, 1000, 1001, 1005, 1007, 1010, 1011, 1012, 1016, 1017, 1018, 1019, 1020, 1021,
    1022, 1027, 1028, 1040, 1041, 1115, 1182, 1183, 1185, 1187, 1231, 1270, 1561, 1563, 2951,
    3904, 3906, 3908, 3910, 3912, 3926, 4451, 4532, 4533, 4534, 4535, 4536,
];

/// How deep values may be in others: what a client sends says it itself.
const DEPTH_MAX: usize = 100;
/// No value is longer.
const VALUE_MAX: usize = 1 << 30;

/// Appends a text in the other encoding.
pub type ConvertText<'a, E> = dyn Fn(&[u8], &mut BytesMut) -> Result<(), E> + 'a;

/// What converts values: what is known of types, and how a text is converted.
pub struct Converter<'a, E> {
    pub form: &'a dyn Fn(u32) -> Form,
    pub text: &'a ConvertText<'a, E>,
}

impl<E> Converter<'_, E> {
    /// Appends a value. What was appended before an error is of no use.
    pub fn value(&self, form: Form, value: &[u8], out: &mut BytesMut) -> Result<(), Unread<E>> {
        self.nested(form, value, DEPTH_MAX, out)
    }

    fn nested(&self, form: Form, value: &[u8], depth: usize, out: &mut BytesMut) -> Result<(), Unread<E>> {
        // Whoever reads it has a limit, too.
        let depth = depth.checked_sub(1).ok_or(Unread::Malformed)?;
        if form == Form::Plain || value.is_ascii() {
            out.extend_from_slice(value);
            return Ok(());
        }
        let mut rest = value;
        match form {
            Form::Plain => {}
            Form::Text => return self.text(rest, out),
            Form::Versioned => {
                copy(&mut rest, 1, out)?;
                return self.text(rest, out);
            }
            Form::Array => {
                let dimensions = number(&mut rest, out)?;
                copy(&mut rest, 4, out)?;
                let element = number(&mut rest, out)?;
                if dimensions > 6 {
                    return Err(Unread::Malformed);
                }
                copy(&mut rest, 8 * dimensions as usize, out)?;
                self.all((self.form)(element), rest, depth, out)?;
            }
            Form::Record => {
                number(&mut rest, out)?;
                while !rest.is_empty() {
                    let field = number(&mut rest, out)?;
                    self.sized((self.form)(field), &mut rest, depth, out)?;
                }
            }
            Form::Range(bound) => {
                copy(&mut rest, 1, out)?;
                self.all((self.form)(bound), rest, depth, out)?;
            }
            Form::Multirange(range) => {
                number(&mut rest, out)?;
                self.all((self.form)(range), rest, depth, out)?;
            }
            Form::Hstore => {
                number(&mut rest, out)?;
                self.all(Form::Text, rest, depth, out)?;
            }
            Form::Tsvector => {
                number(&mut rest, out)?;
                while !rest.is_empty() {
                    self.terminated(&mut rest, out)?;
                    let positions = short(&mut rest, out)?;
                    copy(&mut rest, 2 * usize::from(positions), out)?;
                }
            }
            Form::Tsquery => {
                number(&mut rest, out)?;
                while !rest.is_empty() {
                    self.query_item(&mut rest, out)?;
                }
            }
            Form::Other => return Err(Unread::Unknown),
        }
        Ok(())
    }

    /// A word with its weights, or an operator, which may have a distance.
    fn query_item(&self, rest: &mut &[u8], out: &mut BytesMut) -> Result<(), Unread<E>> {
        const WORD: u8 = 1;
        const FOLLOWED_BY: u8 = 4;
        match copy(rest, 1, out)? {
            [WORD] => {
                copy(rest, 2, out)?;
                self.terminated(rest, out)
            }
            _ => match copy(rest, 1, out)? {
                [FOLLOWED_BY] => copy(rest, 2, out).map(drop),
                _ => Ok(()),
            },
        }
    }

    fn text(&self, text: &[u8], out: &mut BytesMut) -> Result<(), Unread<E>> {
        (self.text)(text, out).map_err(Unread::Text)
    }

    /// A text with a zero behind it.
    fn terminated(&self, rest: &mut &[u8], out: &mut BytesMut) -> Result<(), Unread<E>> {
        let end = rest.iter().position(|byte| *byte == 0).ok_or(Unread::Malformed)?;
        self.text(&rest[..end], out)?;
        rest.advance(end);
        copy(rest, 1, out).map(drop)
    }

    /// Values of one form to the end.
    fn all(&self, form: Form, mut rest: &[u8], depth: usize, out: &mut BytesMut) -> Result<(), Unread<E>> {
        while !rest.is_empty() {
            self.sized(form, &mut rest, depth, out)?;
        }
        Ok(())
    }

    /// A value behind its length.
    fn sized(&self, form: Form, rest: &mut &[u8], depth: usize, out: &mut BytesMut) -> Result<(), Unread<E>> {
        let at = out.len();
        let Ok(len) = usize::try_from(number(rest, out)? as i32) else { return Ok(()) };
        let value = rest.get(..len).ok_or(Unread::Malformed)?;
        self.nested(form, value, depth, out)?;
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
        rest.advance(value.len());
        Ok(())
    }
}

/// What stays as it is.
fn copy<'a, E>(rest: &mut &'a [u8], len: usize, out: &mut BytesMut) -> Result<&'a [u8], Unread<E>> {
    let (head, tail) = rest.split_at_checked(len).ok_or(Unread::Malformed)?;
    out.extend_from_slice(head);
    *rest = tail;
    Ok(head)
}

fn number<E>(rest: &mut &[u8], out: &mut BytesMut) -> Result<u32, Unread<E>> {
    copy(rest, 4, out).map(|mut bytes| bytes.get_u32())
}

fn short<E>(rest: &mut &[u8], out: &mut BytesMut) -> Result<u16, Unread<E>> {
    copy(rest, 2, out).map(|mut bytes| bytes.get_u16())
}

/// The data of a COPY in binary format on their way, in pieces of any size.
#[derive(Debug, Default)]
pub struct CopyStream {
    columns: Vec<Form>,
    place: Place,
    waiting: BytesMut,
}

#[derive(Debug, Default, Clone, Copy)]
enum Place {
    #[default]
    Header,
    Row,
    /// So many fields of the row are left.
    Fields(u16, usize),
    /// Behind the last row, or in what is none.
    End,
}

impl CopyStream {
    pub fn new(columns: Vec<Form>) -> CopyStream {
        CopyStream { columns, ..CopyStream::default() }
    }

    /// Appends what is here of `piece` and of what was before it.
    pub fn feed<E>(&mut self, piece: &[u8], converter: &Converter<'_, E>, out: &mut BytesMut) -> Result<(), Unread<E>> {
        const HEADER: usize = 19;
        self.waiting.extend_from_slice(piece);
        loop {
            let here = self.waiting.len();
            let long = |at: usize| self.waiting.get(at..at + 4).map(|mut bytes| bytes.get_i32());
            match self.place {
                Place::Header => {
                    let Some(more) = long(HEADER - 4) else { return Ok(()) };
                    let len = HEADER.saturating_add(usize::try_from(more).unwrap_or(0));
                    if len > VALUE_MAX {
                        self.place = Place::End;
                        continue;
                    }
                    if here < len {
                        return Ok(());
                    }
                    out.put(self.waiting.split_to(len));
                    self.place = Place::Row;
                }
                Place::Row => {
                    let Some(mut count) = self.waiting.get(..2) else { return Ok(()) };
                    self.place = match u16::try_from(count.get_i16()) {
                        Ok(count) => Place::Fields(count, 0),
                        Err(_) => Place::End,
                    };
                    out.put(self.waiting.split_to(2));
                }
                Place::Fields(count, at) if at == usize::from(count) => self.place = Place::Row,
                Place::Fields(count, at) => {
                    let Some(len) = long(0) else { return Ok(()) };
                    let len = match usize::try_from(len) {
                        Ok(len) if len <= VALUE_MAX => len,
                        Err(_) if len == -1 => 0,
                        _ => {
                            self.place = Place::End;
                            continue;
                        }
                    };
                    if here < 4 + len {
                        return Ok(());
                    }
                    let field = self.waiting.split_to(4 + len);
                    let form = self.columns.get(at).copied().unwrap_or(Form::Other);
                    converter.sized(form, &mut &field[..], DEPTH_MAX, out)?;
                    self.place = Place::Fields(count, at + 1);
                }
                Place::End => {
                    out.put(self.waiting.split());
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POEM: u32 = 16_400;
    const RANGE: u32 = 16_401;

    /// Each ä becomes ae; no other letter that is not ASCII can.
    fn convert(form: Form, value: &[u8]) -> Result<Vec<u8>, Unread<String>> {
        let mut out = BytesMut::new();
        let form_of = |oid| match oid {
            POEM => Form::Text,
            RANGE => Form::Range(POEM),
            oid => Form::built_in(oid).unwrap_or(Form::Other),
        };
        Converter { form: &form_of, text: &text }.value(form, value, &mut out)?;
        Ok(out.to_vec())
    }

    fn text(text: &[u8], out: &mut BytesMut) -> Result<(), String> {
        let text = String::from_utf8_lossy(text).replace('ä', "ae");
        out.extend_from_slice(text.as_bytes());
        if text.is_ascii() { Ok(()) } else { Err(text) }
    }

    fn sized(value: &[u8]) -> Vec<u8> {
        [&(value.len() as u32).to_be_bytes()[..], value].concat()
    }

    fn array(element: u32, values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [1, 1, element, values.len() as u32, 1] {
            out.extend(number.to_be_bytes());
        }
        for value in values {
            out.extend(value.map_or(vec![255; 4], sized));
        }
        out
    }

    fn record(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let fields = fields.iter().flat_map(|(oid, value)| [oid.to_be_bytes().to_vec(), sized(value)].concat());
        (1_u32).to_be_bytes().into_iter().chain(fields).collect()
    }

    #[test]
    fn texts_are_found_in_what_is_made_of_them() {
        assert_eq!(convert(Form::Text, "ä".as_bytes()).unwrap(), b"ae");
        assert_eq!(convert(Form::Versioned, "\u{1}{\"ä\":1}".as_bytes()).unwrap(), b"\x01{\"ae\":1}");
        let values = [Some("ä".as_bytes()), None, Some(b"b")];
        assert_eq!(convert(Form::Array, &array(POEM, &values)).unwrap(), array(POEM, &[Some(b"ae"), None, Some(b"b")]));
        let number = &[0, 0, 0xc3, 0xa4][..];
        let inner = array(25, &[Some("xäy".as_bytes())]);
        assert_eq!(
            convert(Form::Record, &record(&[(23, number), (1009, &inner), (POEM, "ä".as_bytes())])).unwrap(),
            record(&[(23, number), (1009, &array(25, &[Some(b"xaey")])), (POEM, b"ae")])
        );
        let range = |low: &[u8]| [&[2][..], &sized(low), &sized(b"z")].concat();
        let two = |low: &[u8]| [&2_u32.to_be_bytes()[..], &sized(&range(low)), &sized(&range(b"a"))].concat();
        assert_eq!(convert(Form::Multirange(RANGE), &two("ä".as_bytes())).unwrap(), two(b"ae"));
        let pairs = |key: &[u8]| [&1_u32.to_be_bytes()[..], &sized(key), &[255; 4]].concat();
        assert_eq!(convert(Form::Hstore, &pairs("ä".as_bytes())).unwrap(), pairs(b"ae"));
        let words = |word: &str| [b"\0\0\0\x01", word.as_bytes(), b"\0\0\x01\xc0\x01"].concat();
        assert_eq!(convert(Form::Tsvector, &words("ä")).unwrap(), words("ae"));
        let query = |word: &str| [b"\0\0\0\x03\x02\x04\0\xff\x01\0\0", word.as_bytes(), b"\0\x01\0\0b\0"].concat();
        assert_eq!(convert(Form::Tsquery, &query("ä")).unwrap(), query("ae"));
    }

    #[test]
    fn what_is_not_known_or_not_whole_is_told() {
        assert_eq!(convert(Form::Other, b"plain").unwrap(), b"plain");
        assert_eq!(convert(Form::Other, "ä".as_bytes()), Err(Unread::Unknown));
        assert_eq!(convert(Form::Array, &array(99_999, &[Some("ä".as_bytes())])), Err(Unread::Unknown));
        assert_eq!(convert(Form::Text, "ö".as_bytes()), Err(Unread::Text("ö".to_owned())));
        let whole = array(25, &[Some("ä".as_bytes())]);
        for len in (0..whole.len()).filter(|len| !whole[..*len].is_ascii()) {
            assert_eq!(convert(Form::Array, &whole[..len]), Err(Unread::Malformed), "{len}");
        }
        assert_eq!(convert(Form::Array, &[255; 40]), Err(Unread::Malformed));
        // As deep as a message is long.
        let level = [0u32, 0, 1009, 0x7fff_fff0].iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
        let mut deep = "\u{e4}".as_bytes().to_vec();
        for _ in 0..1000 {
            let len = (deep.len() as u32).to_be_bytes();
            deep = [&level[..12], &len, &deep].concat();
        }
        assert_eq!(convert(Form::Array, &deep), Err(Unread::Malformed));
    }

    #[test]
    fn a_copy_comes_in_pieces() {
        let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x02ab";
        let row = |word: &[u8]| [&[0, 3][..], &sized(word), &sized(&[0, 0, 0xc3, 0xa4]), &[255; 4]].concat();
        let all = |word: &[u8]| [&header[..], &row(word), &row(b""), &[255, 255]].concat();
        let (sent, expected) = (all("äa".as_bytes()), all(b"aea"));
        let converter = Converter { form: &|_| Form::Other, text: &text };
        for size in 1..sent.len() {
            let mut stream = CopyStream::new(vec![Form::Text, Form::Plain, Form::Text]);
            let mut out = BytesMut::new();
            for piece in sent.chunks(size) {
                stream.feed(piece, &converter, &mut out).unwrap();
            }
            assert_eq!(out, expected, "{size}");
        }
    }
}

//! Encodings whose characters are one to four bytes. What converts into what is no table of ours: a server has been
//! asked (crates/control/sql/encoding.sql), so that it is as that server does it. What is here is how long a character
//! is, and whether its bytes can be one (src/common/wchar.c), for what PostgreSQL says of those that are not.

use bytes::BytesMut;

use crate::encoding::Unconvertible;

/// Their names: those that PostgreSQL converts to UTF-8 and back.
const NAMES: [&str; 12] = [
    "BIG5",
    "EUC_CN",
    "EUC_JIS_2004",
    "EUC_JP",
    "EUC_KR",
    "EUC_TW",
    "GB18030",
    "GBK",
    "JOHAB",
    "SHIFT_JIS_2004",
    "SJIS",
    "UHC",
];

/// A character of two of Unicode's, and its number.
type Pair = (u32, u32, u32);

/// One encoding as a server converts it.
#[derive(Debug)]
pub struct Multibyte {
    pub name: &'static str,
    /// From characters' numbers (see [`number`]) to Unicode, and back.
    decoded: Vec<Run>,
    encoded: Vec<Run>,
    pairs: Vec<Pair>,
}

/// So many in a row stand for as many in a row.
#[derive(Debug)]
struct Run {
    from: u32,
    to: u32,
    count: u32,
}

/// The name of one of these.
pub fn name_of(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|known| **known == name).copied()
}

impl Multibyte {
    /// From what the server said; none where that cannot be read.
    pub fn learned(name: &'static str, text: &str) -> Option<Multibyte> {
        let (mut decoded, mut encoded, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.split(' ');
            let (kind, first, second) = (words.next()?, words.next()?, words.next()?);
            match kind {
                "c" => {
                    let begin = u32::from_str_radix(first, 16).ok()?;
                    for (c, bytes) in (begin..).zip(second.split(',')) {
                        encoded.push((c, number(&from_hex(bytes)?)));
                    }
                }
                "p" => {
                    let begin = u32::from_str_radix(first, 16).ok()?;
                    let bytes = from_hex(second)?;
                    for (c, bytes) in (begin..).zip(bytes.chunks(bytes.len().div_ceil(0x1_0000).max(1))) {
                        encoded.push((c, number(bytes)));
                        decoded.push((number(bytes), c));
                    }
                }
                _ => {
                    let mut bytes = if first == "-" { Vec::new() } else { from_hex(first)? };
                    let begin = u8::from_str_radix(second, 16).ok()?;
                    for (last, text) in (begin..=u8::MAX).zip(words.next()?.split(',')) {
                        bytes.push(last);
                        let text = String::from_utf8(from_hex(text)?).ok()?;
                        let mut characters = text.chars().map(u32::from);
                        match (characters.next()?, characters.next()) {
                            (c, None) => decoded.push((number(&bytes), c)),
                            (first, Some(second)) => pairs.push((first, second, number(&bytes))),
                        }
                        bytes.pop();
                    }
                }
            }
        }
        Some(Multibyte { name, decoded: runs(decoded), encoded: runs(encoded), pairs })
    }

    /// Memory that it takes.
    pub fn size(&self) -> usize {
        (self.decoded.len() + self.encoded.len()) * size_of::<Run>() + self.pairs.len() * size_of::<Pair>()
    }

    /// Appends a client's bytes as UTF-8. What is at the end and not whole is left, and its length given, where `more`
    /// may come.
    pub fn decode(&self, bytes: &[u8], more: bool, out: &mut BytesMut) -> Result<usize, Unconvertible> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if first < 0x80 {
                let plain = rest.iter().position(|b| *b >= 0x80).unwrap_or(rest.len());
                out.extend_from_slice(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            }
            let len = self.length(rest);
            if more && rest.len() < len {
                return Ok(rest.len());
            }
            let Some(bytes) = rest.get(..len) else { return Err(Unconvertible::invalid(rest)) };
            match self.character(number(bytes)) {
                Some(text) => text.into_iter().flatten().for_each(|c| {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }),
                None if self.is_valid(bytes) => return Err(Unconvertible::no_equivalent(bytes)),
                None => return Err(Unconvertible::invalid(bytes)),
            }
            rest = &rest[len..];
        }
        Ok(0)
    }

    fn character(&self, number: u32) -> Option<[Option<char>; 2]> {
        match find(&self.decoded, number) {
            Some(c) => Some([char::from_u32(c), None]),
            None => {
                let pair = self.pairs.iter().find(|(_, _, known)| *known == number)?;
                Some([char::from_u32(pair.0), char::from_u32(pair.1)])
            }
        }
    }

    /// Appends UTF-8 as a client's bytes.
    pub fn encode(&self, text: &[u8], out: &mut BytesMut) -> Result<(), Unconvertible> {
        let text = std::str::from_utf8(text).map_err(|error| Unconvertible::invalid(&text[error.valid_up_to()..]))?;
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            if c.is_ascii() {
                out.extend_from_slice(&[c as u8]);
                continue;
            }
            let next = characters.peek().map(|next| u32::from(*next));
            let pair = self.pairs.iter().find(|(first, second, _)| *first == u32::from(c) && Some(*second) == next);
            let number = match pair {
                Some((_, _, number)) => {
                    characters.next();
                    *number
                }
                None => find(&self.encoded, u32::from(c))
                    .ok_or_else(|| Unconvertible::no_equivalent(c.encode_utf8(&mut [0; 4]).as_bytes()))?,
            };
            write_number(number, out);
        }
        Ok(())
    }

    /// How long the character is that begins so (`pg_encoding_mblen`).
    fn length(&self, bytes: &[u8]) -> usize {
        let (first, second) = (bytes.first().copied().unwrap_or(0), bytes.get(1).copied());
        match (self.name, first) {
            (_, 0..0x80) => 1,
            ("SJIS" | "SHIFT_JIS_2004", 0xa1..=0xdf) => 1,
            ("EUC_JP" | "EUC_JIS_2004" | "EUC_KR" | "JOHAB" | "EUC_TW", 0x8f) => 3,
            ("EUC_TW", 0x8e) => 4,
            // Of EUC_CN none begins so: it is only how much of it is told.
            ("EUC_CN", 0x8e | 0x8f) => 3,
            ("GB18030", _) if second.is_some_and(|byte| byte.is_ascii_digit()) => 4,
            _ => 2,
        }
    }

    /// Whether so many bytes can be a character (`pg_encoding_verifymbchar`).
    fn is_valid(&self, bytes: &[u8]) -> bool {
        let euc = |bytes: &[u8]| bytes.iter().all(|byte| (0xa1..=0xfe).contains(byte));
        // Has no meaning in any of these, and is never taken.
        let reserved = bytes == [0x8d, b' '];
        match (self.name, bytes) {
            (_, [0..0x80]) => true,
            ("SJIS" | "SHIFT_JIS_2004", [0xa1..=0xdf]) => true,
            ("SJIS" | "SHIFT_JIS_2004", [0x81..=0x9f | 0xe0..=0xfc, 0x40..=0x7e | 0x80..=0xfc]) => true,
            ("EUC_JP" | "EUC_JIS_2004", [0x8e, second]) => (0xa1..=0xdf).contains(second),
            ("EUC_JP" | "EUC_JIS_2004", [0x8f, rest @ ..]) => euc(rest),
            ("EUC_TW", [0x8e, 0xa1..=0xa7, rest @ ..]) => euc(rest),
            ("EUC_TW", [0x8e | 0x8f, ..]) => false,
            ("EUC_TW" | "JOHAB", [_, rest @ ..]) => euc(rest),
            ("EUC_JP" | "EUC_JIS_2004" | "EUC_KR" | "EUC_CN", _) => euc(bytes),
            ("BIG5" | "GBK" | "UHC", [_, second]) => *second != 0 && !reserved,
            ("GB18030", [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe]) => true,
            ("GB18030", [0x81..=0xfe, b'0'..=b'9', 0x81..=0xfe, b'0'..=b'9']) => true,
            _ => false,
        }
    }
}

/// A character's bytes as a number, such that characters in a row mostly have numbers in a row: the bytes, but for
/// those of four bytes in GB18030, which are counted.
fn number(bytes: &[u8]) -> u32 {
    match bytes {
        [a @ 0x81..=0xfe, b @ b'0'..=b'9', c @ 0x81..=0xfe, d @ b'0'..=b'9'] => {
            let [a, b, c, d] =
                [(*a, 0x81), (*b, b'0'), (*c, 0x81), (*d, b'0')].map(|(byte, least)| u32::from(byte - least));
            GB18030 + ((a * 10 + b) * 126 + c) * 10 + d
        }
        _ => bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)),
    }
}

/// Larger than what three bytes give, and less than what four do.
const GB18030: u32 = 0x0100_0000;

fn write_number(number: u32, out: &mut BytesMut) {
    if (GB18030..GB18030 * 2).contains(&number) {
        let at = number - GB18030;
        let digits = [(at / 12600, 0x81), (at / 1260 % 10, 0x30), (at / 10 % 126, 0x81), (at % 10, 0x30)];
        out.extend_from_slice(&digits.map(|(digit, least)| digit as u8 + least));
        return;
    }
    let bytes = number.to_be_bytes();
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
    out.extend_from_slice(&bytes[start..]);
}

fn runs(mut all: Vec<(u32, u32)>) -> Vec<Run> {
    all.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (from, to) in all {
        match runs.last_mut() {
            Some(run) if run.from + run.count == from && run.to + run.count == to => run.count += 1,
            _ => runs.push(Run { from, to, count: 1 }),
        }
    }
    runs.shrink_to_fit();
    runs
}

fn find(runs: &[Run], from: u32) -> Option<u32> {
    let run = runs.get(runs.partition_point(|run| run.from <= from).checked_sub(1)?)?;
    (from - run.from < run.count).then(|| run.to + (from - run.from))
}

/// Bytes of pairs of hexadecimal digits.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sjis() -> Multibyte {
        let learned = "c a5 5c\nc 8868 955c\nc 203e 7e\nb - b1 efbdb1,efbdb2\nb 95 5c e8a1a8";
        Multibyte::learned("SJIS", learned).unwrap()
    }

    fn decoded(encoding: &Multibyte, bytes: &[u8], more: bool) -> Result<(String, usize), Unconvertible> {
        let mut out = BytesMut::new();
        encoding.decode(bytes, more, &mut out).map(|left| (String::from_utf8(out.to_vec()).unwrap(), left))
    }

    #[test]
    fn a_second_byte_may_be_a_backslash() {
        let encoding = sjis();
        assert_eq!(decoded(&encoding, b"a\x95\\\\\xb2", false), Ok(("a表\\ｲ".to_owned(), 0)));
        let mut out = BytesMut::new();
        encoding.encode("表\\".as_bytes(), &mut out).unwrap();
        assert_eq!(&out[..], b"\x95\\\\");
        assert_eq!(encoding.encode("é".as_bytes(), &mut out), Err(Unconvertible::no_equivalent("é".as_bytes())));
    }

    #[test]
    fn bytes_that_are_no_character_are_told_from_those_without_equivalent() {
        let encoding = sjis();
        assert_eq!(decoded(&encoding, b"\x95\x41", false), Err(Unconvertible::no_equivalent(b"\x95\x41")));
        assert_eq!(decoded(&encoding, b"\x95\x20", false), Err(Unconvertible::invalid(b"\x95\x20")));
        assert_eq!(decoded(&encoding, b"x\x95", false), Err(Unconvertible::invalid(b"\x95")));
        assert_eq!(decoded(&encoding, b"x\x95", true), Ok(("x".to_owned(), 1)));
    }

    #[test]
    fn numbers_of_characters_are_their_bytes_again() {
        for bytes in
            [&b"\xb1"[..], b"\x81\x40", b"\x8f\xa1\xfe", b"\x8e\xa7\xa1\xa1", b"\x81\x30\x81\x30", b"\xe3\x32\x9a\x35"]
        {
            let mut out = BytesMut::new();
            write_number(number(bytes), &mut out);
            assert_eq!(&out[..], bytes);
        }
        // What is no character is not counted as another.
        assert_ne!(number(b"\x82\x31\x27\x2c"), number(b"\x82\x31\x81\x30"));
        // The last of plane 0 in GB18030 and the one behind it.
        assert_eq!(number(b"\x84\x31\xa4\x39") + 1, number(b"\x84\x31\xa5\x30"));
    }

    #[test]
    fn two_characters_may_be_one() {
        let encoding = Multibyte::learned("EUC_JIS_2004", "c 304b a4ab\nb a4 ab e3818b\nb a4 f7 e3818be3829a").unwrap();
        assert_eq!(decoded(&encoding, b"\xa4\xf7\xa4\xab", false), Ok(("か\u{309a}か".to_owned(), 0)));
        let mut out = BytesMut::new();
        encoding.encode("か\u{309a}か".as_bytes(), &mut out).unwrap();
        assert_eq!(&out[..], b"\xa4\xf7\xa4\xab");
    }
}

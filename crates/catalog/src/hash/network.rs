//! inet, cidr and macaddr: src/backend/utils/adt/network.c (`network_in`, `hashinetextended`), mac.c.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::bytes::hex_digit;
use super::value::{Value, trim};

/// `PGSQL_AF_INET` (Linux's AF_INET) and `PGSQL_AF_INET6` (the next number), as stored and as sent.
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

/// A whole address with an optional prefix length. cidr takes fewer octets, and both take other notations: those are
/// left to the server, as is white space, which is an error.
pub(super) fn read_inet_text(text: &[u8]) -> Option<Value<'static>> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(read_bits(bits)?)),
        None => (text, None),
    };
    if let Ok(v4) = address.parse::<Ipv4Addr>() {
        return inet(FAMILY_V4, bits.unwrap_or(32), &v4.octets());
    }
    let v6 = address.parse::<Ipv6Addr>().ok()?;
    inet(FAMILY_V6, bits.unwrap_or(128), &v6.octets())
}

fn read_bits(text: &str) -> Option<u8> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Family, prefix length, a flag that is ignored, the address's length, the address.
pub(super) fn read_inet_binary(binary: &[u8]) -> Option<Value<'static>> {
    let [family, bits, _is_cidr, length, address @ ..] = binary else { return None };
    if usize::from(*length) != address.len() {
        return None;
    }
    inet(*family, *bits, address)
}

fn inet(family: u8, bits: u8, address: &[u8]) -> Option<Value<'static>> {
    match (family, address.len(), bits) {
        (FAMILY_V4, 4, 0..=32) | (FAMILY_V6, 16, 0..=128) => {}
        _ => return None,
    }
    let mut stored = [0u8; 18];
    stored[0] = family;
    stored[1] = bits;
    stored[2..2 + address.len()].copy_from_slice(address);
    Some(Value::Short(stored, 2 + address.len() as u8))
}

/// Six pairs of hex digits in the groupings `macaddr_in` lists.
pub(super) fn read_macaddr_text(text: &[u8]) -> Option<Value<'static>> {
    let text = trim(text);
    let digits_per_group = match (text.len(), text.get(2), text.get(4), text.get(6)) {
        (17, Some(b':' | b'-'), ..) => 2,
        (14, _, Some(b'.' | b'-'), _) => 4,
        (13, _, _, Some(b':' | b'-')) => 6,
        (12, ..) => 12,
        _ => return None,
    };
    let separator = text.get(digits_per_group).copied();
    let mut address = [0u8; 6];
    let mut count = 0;
    for (i, byte) in text.iter().enumerate() {
        if i % (digits_per_group + 1) == digits_per_group {
            if Some(*byte) != separator {
                return None;
            }
            continue;
        }
        let pair = address.get_mut(count / 2)?;
        *pair = (*pair << 4) | hex_digit(*byte)?;
        count += 1;
    }
    if count != 12 {
        return None;
    }
    Value::short(&address)
}

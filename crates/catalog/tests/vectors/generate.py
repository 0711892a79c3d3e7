#!/usr/bin/env python3
"""Writes the vectors of tests/partition_hash.rs: what PostgreSQL itself says of each key value's partition hash.

    generate.py [--only TYPE,...] PG_BIN_DIR...

Starts a throw-away server of each installation (one per version), asks each about every spelling under several
settings, and writes one <type>.tsv beside this file: verdict, text, binary form in hex, partition hash. Verdicts:

    fast    the same value on every server and under every setting; the router must hash it
    ask     the same, but so unusual that the router may leave it to a server
    varies  meaning or validity depends on a setting or on the version; the router must ask
    error   no server accepts it; the router must ask (so that the server reports it)
    loose   no server accepts it, but the router cannot know; anything goes
    null    the partition hash of NULL

Text is escaped as COPY does. The value's hash is that of a record around it (as in `ask_server_sql`), combined into
the partition hash here and proved on the server by satisfies_hash_partition under three coprime moduli whose product exceeds 2^64 (which
leaves one 64-bit hash), and by inserting the value into a table with 32 hash partitions.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 0x7A5B22367996DCFD
MODULI = (2147483647, 2147483646, 2147483645)

# Every setting that input functions look at, each in several values.
SETTINGS = [
    {},
    {"DateStyle": "ISO, DMY", "IntervalStyle": "sql_standard", "TimeZone": "America/St_Johns"},
    {"DateStyle": "ISO, YMD", "IntervalStyle": "iso_8601", "TimeZone": "Asia/Kolkata", "timezone_abbreviations": "India"},
    {"DateStyle": "German, DMY", "IntervalStyle": "postgres_verbose", "TimeZone": "Pacific/Auckland"},
    {"DateStyle": "SQL, DMY", "TimeZone": "Europe/Moscow", "timezone_abbreviations": "Australia"},
    {"DateStyle": "SQL, MDY", "TimeZone": "Pacific/Apia", "bytea_output": "escape", "extra_float_digits": "-15"},
    {"DateStyle": "Postgres, YMD", "IntervalStyle": "sql_standard", "TimeZone": "UTC", "xmloption": "document"},
    {"DateStyle": "Postgres, DMY", "TimeZone": "<+05:30>-05:30", "lc_monetary": "C", "lc_numeric": "C"},
]


# Another value each time: never the same, whatever this run found.
CLOCK_WORDS = ("now", "today", "tomorrow", "yesterday")


def spellings():
    """type -> (SQL name, send function, [(tag, text)])"""
    rnd = random.Random(20240131)
    out = {}

    def add(name, sql, send, fast=(), ask=(), loose=()):
        seen = set()
        rows = []
        for tag, texts in (("fast", fast), ("ask", ask), ("loose", loose)):
            for text in texts:
                if text not in seen:
                    seen.add(text)
                    rows.append((tag, text))
        out[name] = (sql, send, rows)

    spaces = ["", " ", "\t", "\n", "\r", "\v", "\f", "  \t "]

    # integers
    for name, sql, bits in (("int2", "int2", 16), ("int4", "int4", 32), ("int8", "int8", 64)):
        top = 2 ** (bits - 1)
        numbers = {0, 1, 2, 5, 7, 9, 10, 42, 99, 100, 255, 256, 9999, 10000, 32766, top - 2, top - 1, top // 2}
        numbers |= {2**n for n in range(bits - 1)} | {2**n - 1 for n in range(bits)}
        numbers |= {rnd.randrange(top) for _ in range(60)}
        numbers = {n for n in numbers if n < top}
        fast = [str(n) for n in sorted(numbers)] + [str(-n) for n in sorted(numbers)] + [str(-top)]
        for text in ("42", "-42", "+42", "0042", "-0", "+0", "-00042", "00", "0" * 30 + "7"):
            fast += [before + text + after for before in spaces for after in ("", " ", "\n")]
        bad = [str(top), str(-top - 1), str(10**30), "", " ", "+", "-", "--1", "+-1", "- 1", "1 2", "1.0", "1e3", "a1", "1a",
               "42;", "\u00a042", "٤٢", "NULL", "true", "'42'", ".5", "5."]
        varies = ["0x2a", "0X2A", "-0x2a", "0b101", "0o17", "1_000", "0x", "1__0", "_1", "1_", "0x_ff", "0b102", "0_1"]
        add(name, sql, name + "send", fast, bad + varies)

    # text
    alphabet = "abcxyzABC 0189-_.,;:äöüßñ漢字€😀\t\n\\'\"%$"
    words = ["", " ", "  ", "a", "A", "a ", " a", "abc", "ABC", "abc ", "abc  ", "NULL", "null", "\\N", "\\", "\\\\", "'", "\"",
             "'quoted'", "tab\tbed", "new\nline", "cr\rlf\r\n", "ä", "a\u0308", "ß", "漢字", "😀", "e\u0301", "\u00a0", "\ufeff",
             "x" * 63, "x" * 64, "x" * 255, "x" * 256, "0", "1", "42", "-1", "1e5", "t", "user@example.com", "2024-01-31"]
    for length in range(0, 101):
        words.append("".join(rnd.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(length)))
    for length in range(0, 60):
        words.append("".join(rnd.choice(alphabet) for _ in range(length)))
    add("text", "text", "textsend", words)
    add("varchar", "varchar", "varcharsend", words)
    add("bpchar", "bpchar", "bpcharsend", words + [w + " " * n for w in ("a", "abc", "ä", "x\t", "漢") for n in range(1, 8)]
        + ["abc\n", "abc\u00a0", " abc "])
    add("name", "name", "namesend", [w for w in words if len(w.encode()) <= 63],
        [w for w in words if len(w.encode()) > 63] + ["ä" * 32, "漢" * 22])

    # uuid
    fast = []
    plain = ["0" * 32, "f" * 32, "00112233445566778899aabbccddeeff", "a0eebc999c0b4ef8bb6d6bb9bd380a11"]
    plain += ["%032x" % rnd.getrandbits(128) for _ in range(100)]
    for hexed in plain:
        groups = [hexed[i:i + 4] for i in range(0, 32, 4)]
        canonical = f"{hexed[:8]}-{hexed[8:12]}-{hexed[12:16]}-{hexed[16:20]}-{hexed[20:]}"
        fast += [canonical]
        if len(fast) < 150:
            fast += [hexed, canonical.upper(), "{" + canonical + "}", "-".join(groups), "{" + hexed + "}",
                     hexed[:4] + "-" + hexed[4:], hexed[:28] + "-" + hexed[28:]]
    c = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    bad = ["", "x", c[:-1], c + "1", " " + c, c + " ", "{" + c, c + "}", "{{" + c + "}}", c + "-", "-" + c, c.replace("-", "--"),
           c.replace("-", " "), "g" + c[1:], "a0-eebc999c0b4ef8bb6d6bb9bd380a11", "(" + c + ")", "{ " + c + "}", "{}", "-", "ä" * 16,
           "urn:uuid:" + c]
    add("uuid", "uuid", "uuid_send", fast, bad)

    # date
    days = ["2000-01-01", "1999-12-31", "2024-02-29", "1970-01-01", "1900-02-28", "2000-02-29", "0001-01-01", "9999-12-31",
            "10000-01-01", "12345-06-07", "294276-12-31", "294277-01-01", "5874897-12-31", "1582-10-04", "1582-10-15", "0044-03-15",
            "0099-12-31", "0100-01-01", "2024-1-5", "2024-01-5", "2024-1-05", "0009-09-09", "2100-03-01", "2400-02-29",
            "012024-01-02", "0012024-01-02"]
    bc = ["0001-01-01 BC", "0044-03-15 BC", "4714-11-24 BC", "4713-01-01 BC", "0005-02-29 BC", "0400-12-31 bc", "0100-03-01 Bc",
          "4714-12-31  BC", "2024-01-31BC"]
    days += bc
    days += [f"{rnd.randrange(1, 10000):04}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02}" for _ in range(80)]
    days += [f"{rnd.randrange(10000, 290000)}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02}" for _ in range(20)]
    days += [f"{rnd.randrange(1, 4700):04}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02} BC" for _ in range(20)]
    infinities = ["infinity", "-infinity", "Infinity", "-INFINITY", " infinity "]
    spaced = [" 2024-01-31", "2024-01-31 ", "\t2024-01-31\n", "  2024-01-31  "]
    wrong_days = ["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-01-32", "0000-01-01", "-2024-01-31",
                  "1900-02-29", "4714-11-23 BC", "5874898-01-01", "0000-01-01 BC", "2024-01", "2024-01-31-02", "2024-01-31-",
                  "99999999-01-01", "0004-02-29 BC", "2024--01-31", "2024-01--31", "2024- 01-31", "2024-001-31", "2024-01-031"]
    setting_days = ["01-02-2024", "01/02/2024", "02.01.2024", "01-02-03", "1/2/3", "13/01/2024", "01/13/2024", "99-01-02", "024-01-02",
                    "Jan 31 2024", "31 Jan 2024", "2024 Jan 31", "January 31, 2024", "20240131", "240131", "2024.031", "J2451545",
                    "2024/01/31", "2024.01.31", "2024-Jan-31", "31-Jan-24", "24-Jan-31", "epoch", "today", "now", "tomorrow",
                    "yesterday", "allballs", "", "x", "invalid", "2024-01-31 AD", "2024-01-31 ad", "999-01-01", "y2024m01d31",
                    "2024-01-31 BC BC", "inf", "-inf", "+infinity", "infinity BC", "Wed 2024-01-31", "2024-01-31 Wed", "Bc", "2024-01-31 x"]
    with_time = ["2024-01-31 10:00:00", "2024-01-31 23:59:59.999999", "2024-01-31T10:00:00", "2024-01-31 10:00:00+02",
                 "2024-01-31 +02", "2024-01-31+02", "2024-01-31 -02", "2024-01-31 10:00", "2024-01-31 00:00:00+15", "2024-01-31 Z",
                 "2024-01-31T00:00:00Z", "2024-01-31 +05:30", "2024-01-31+0530"]
    with_time_ask = ["2024-01-31 24:00:00", "2024-01-31Z", "2024-01-31 10:00:60", "2024-01-31 10:00:00 UTC", "2024-01-31 10:00 PM"]
    add("date", "date", "date_send", days + infinities + spaced + with_time, wrong_days + setting_days + with_time_ask)

    # times of day
    times = ["00:00:00", "00:00:01", "12:00:00", "23:59:59", "23:59:59.999999", "10:20:30.4", "10:20:30.45", "10:20:30.456",
             "10:20:30.4567", "10:20:30.45678", "10:20:30.456789", "10:20:30.000001", "10:20:30.0", "10:20:30.000000", "10:20",
             "1:02:03", "01:02", "9:59", "0:00", "00:00:00.1", "00:00:00.999999"]
    times += [f"{rnd.randrange(24):02}:{rnd.randrange(60):02}:{rnd.randrange(60):02}" for _ in range(50)]
    times += [f"{rnd.randrange(24):02}:{rnd.randrange(60):02}:{rnd.randrange(60):02}.{rnd.randrange(10**6):06}" for _ in range(80)]
    times += [f"10:20:30.{rnd.randrange(10**9):09}" for _ in range(30)] + ["10:20:30.1234567", "10:20:30.12345649", "10:20:30.123456501",
                                                                        "10:20:30.999999499", "10:20:30.000000499", "10:20:30.0000006"]
    zones = ["+00", "-00", "+02", "-05", "+05:30", "-03:30", "+0530", "-0330", "+15", "-15", "+15:59:59", "-15:59", "+2", "-3",
             "+00:00:01", "+01:02:03", " +02", " -02", "  +05:30", "Z", "z", " Z", "+00:00"]
    wrong_times = ["24:00:01", "25:00:00", "10:60:00", "10:00:61", "10:61", "-01:00:00", "10", "10:", ":10", "", "x", "10:00:00x",
                   "1:2:3:4", "10::00", "10:00:00..1", "100:00:00"]
    odd_times = ["24:00:00", "23:59:60", "10:00:60", "10:20:30.4567895", "10:20:30.0000005", "10:20:30.0000015", "10:20:30.999999500", "10:20:30.9999995", "10:20:30.9999997", "10:20:30.", "10:20:30,5", "1:2:3",
                 "10:5", "10:20 PM", "10:20 am", "102030", "1020", "T10:20:30", "t102030", "10:20:30.1234567890123", "allballs", "now",
                 "2024-01-31 10:20:30", "10:20:30 PST", "10:20:30 UTC", "10:20:30 America/New_York", "2024-07-01 10:20 America/New_York",
                 "10:20.5", "10:20:30+16", "10:20:30+1", "10:20:30+053015", "10:20:30+5:3", "10:20:30+99"]
    add("time", "time", "time_send",
        times + [" 10:20:30 ", "10:20:30 "] + ["10:20:30" + z for z in zones], wrong_times + odd_times)
    add("timetz", "timetz", "timetz_send",
        [t + z for z in zones for t in times[:4]] + [t + rnd.choice(zones) for t in times]
        + [" 10:20:30+02 ", "10:20:30.5 -03:30"],
        wrong_times + odd_times + times[:10] + ["24:00:00+02", "24:00:00+00", "10:20:30+16:00", "10:20:30-16", "10:20:30+02:60"])

    # timestamps
    stamps = ["2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2024-02-29 12:34:56.789", "0001-01-01 00:00:00",
              "294276-12-31 23:59:59.999999", "4714-11-24 00:00:00 BC", "0044-03-15 12:00:00 BC", "2024-01-31T10:20:30",
              "2024-01-31t10:20:30.5", "2024-01-31 10:20", "2024-01-31  10:20:30", " 2024-01-31 10:20:30 ", "2024-1-5 1:02:03",
              "12024-01-31 00:00:00.000001", "2024-01-31 10:20:30.123456", "2024-01-31 10:20:30.000000"]
    stamps += [f"{rnd.randrange(1900, 2100)}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02} {rnd.choice(times)}" for _ in range(100)]
    stamps += [f"{rnd.randrange(1, 10000):04}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02}T{rnd.choice(times)}" for _ in range(40)]
    stamps += [f"{rnd.randrange(1, 4700):04}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02} {rnd.choice(times)} BC" for _ in range(15)]
    limits = ["294277-01-01 00:00:00", "4714-11-23 23:59:59 BC", "294276-12-31 24:00:00"]
    odd = ["2024-01-31 " + t for t in odd_times + wrong_times if not t.startswith("2024")]
    odd += [d + " 10:20:30" for d in wrong_days + setting_days if d not in ("2024-01-31-02",)] + limits
    odd += ["2024-01-31 10:20:30 BC AD", "2024-01-31T", "2024-01-31 T10:20:30", "2024-01-31T 10:20:30", "2024-01-31T10", "2024-01-31TT10:20",
            "20240131T102030", "20240131 102030", "2024-01-31_10:20:30", "2024-01-31 10:20:30+", "2024-01-31 10:20:30 America/New_York",
            "2024-01-31 10:20:30 EST", "2024-01-31 10:20:30 IST", "2024-01-31 10:20:30 UTC", "2024-01-31 10:20:30+02 BC AD", "2024-01-31-02:00",
            "2024-01-31Z", "2024-01-31\n10:20:30", "2024-01-31\t10:20:30", "now", "today", "epoch", "inf", "10:20:30"]
    no_zone = days + infinities + spaced
    no_zone = [d for d in no_zone if not d.startswith(("294277", "5874897"))]
    add("timestamp", "timestamp", "timestamp_send",
        stamps + no_zone + ["2024-01-31 10:20:30" + z for z in zones] + ["2024-01-31 +02", "2024-01-31+02", "2024-01-31 10:20:30+02 BC"], odd)
    zoned = [s + rnd.choice(zones) for s in stamps if not s.endswith((" ", "BC")) and not s.startswith("294276")]
    zoned += [s[:-3] + rnd.choice(zones[:18]) + " BC" for s in stamps if s.endswith("BC") and not s.startswith("4714")]
    zoned += ["2024-01-31 10:20:30" + z for z in zones] + ["2024-01-31T10:20:30.123Z", "2024-01-31T10:20:30.123456+05:30"]
    zoned += ["294276-12-31 23:59:59.999999+00", "294276-12-31 23:59:59+15", "4714-11-24 00:00:00+00 BC", "4714-11-24 15:00:00+15 BC"]
    zoned += ["2024-01-31 +02", "2024-01-31+02", "2024-01-31 -02", "2024-01-31 Z", " 2024-01-31 10:20:30+02 "]
    add("timestamptz", "timestamptz", "timestamptz_send", zoned + infinities,
        stamps + days + odd + ["294276-12-31 23:59:59-01", "4714-11-24 00:00:00+01 BC", "2024-01-31 10:20:30+16", "2024-01-31 10:20:30-15:60"])

    # numeric
    fast = ["0", "-0", "+0", "0.0", "0.000", "00", ".0", "0.", "1", "-1", "+1", "1.0", "1.00", "01", "1.", "10", "100", "1000", "10000", "100000",
            "1e4", "1E4", "1e+4", "1e0", "1e-0", "1.5e3", "1500", "15e2", ".15e4", "0.5", ".5", "+.5", "-.5", "0.05", "0.005", "0.0005", "0.00005",
            "5e-1", "5e-5", "50e-6", "9999", "9999.9999", "99999999", "0.9999", "12345678.87654321", "1e100", "1e-100", "-1e100", "1e1000",
            "1e-1000", "NaN", "nan", "NAN", " NaN ", "Infinity", "-Infinity", "infinity", "inf", "-inf", "+inf", "+Infinity", " Inf ", "-INFINITY",
            " 42 ", "\t42", "42\n", "42.000", "4.2e1", "420e-1", "0042", "0042.00", "3.14159265358979323846264338327950288",
            "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1" + "0" * 200, "0." + "0" * 200 + "1", "9" * 900]
    for length in range(1, 101):
        digits = "".join(rnd.choice("0123456789") for _ in range(length))
        point = rnd.randrange(length + 1)
        fast.append(rnd.choice(["", "-", "+"]) + digits[:point] + "." + digits[point:])
        fast.append(f"{digits}e{rnd.randrange(-120, 120)}")
        fast.append("0" * rnd.randrange(6) + digits + "0" * rnd.randrange(9))
    ask = ["", " ", ".", "e5", "1e", "1e+", "1.2.3", "--1", "+ 1", "- 1", "1 2", "1e5.5", "+NaN", "-nan", "nano", "infi", "1e1001", "1e-1001", "1e5000",
           "1e200000", "1e-20000", "1e-16383", "1e-16384", "1e131071", "1e131072", "1e999999999999", "9" * 1500, "0x10", "0b1", "0o7", "1_000", "1_0.0_1",
           "1e1_0", "1,5", "$1", "1e 5", "٤٢", "a", "0x", "_1", "1_", "in f", "1ee5", "1d5", "1f"]
    add("numeric", "numeric", "numeric_send", fast, ask)

    # bytea
    fast = ["", "\\x", "\\x00", "\\xff", "\\xFF", "\\xdeadbeef", "\\xDEADBEEF", "\\xde ad be ef", "\\x de\tad\nbe\ref ", "\\x" + "00" * 40,
            "abc", "a\\\\b", "\\\\", "\\\\x00", "\\000", "\\377", "\\101bc", "a\\000b", "tab\tnew\n", " ", "  x  ", "x\\134y", "\\\\\\\\", "'", "x"]
    for length in range(0, 101):
        raw = bytes(rnd.getrandbits(8) for _ in range(length))
        fast.append("\\x" + raw.hex())
        if length < 60:
            fast.append("".join(chr(b) if 33 <= b < 127 and b != 92 else f"\\{b:03o}" for b in raw))
    add("bytea", "bytea", "byteasend", fast, ["\\x0", "\\xg0", "\\xd eadbeef", "\\x0 0", "\\", "\\1", "\\12", "\\400", "\\18", "\\X00", "a\\", "ä", "\\x00\\x",
                                             "\\xä", "漢字", "\\999", "\\x00\v11"])

    # bool
    fast = []
    for word in ("true", "false", "yes", "no", "on", "off", "1", "0"):
        for end in range(1, len(word) + 1):
            prefix = word[:end]
            if prefix != "o":
                for cased in {prefix, prefix.upper(), prefix.capitalize(), prefix.swapcase()}:
                    fast += [cased] + [a + cased + b for a, b in ((" ", ""), ("", " "), ("\t", "\n"), ("  ", "\r"), ("\v", "\f"))]
    add("bool", "bool", "boolsend", sorted(fast), ["", " ", "o", "O", "tr ue", "truee", "2", "-1", "00", "01", "yess", "offf", "x", "T RUE", "nope", "NULL", "ye\u00df"])

    # inet, cidr
    v4 = ["0.0.0.0", "255.255.255.255", "127.0.0.1", "10.0.0.1", "192.168.1.1", "1.2.3.4", "224.0.0.1"]
    v4 += [".".join(str(rnd.randrange(256)) for _ in range(4)) for _ in range(60)]
    v6 = ["::", "::1", "fe80::1", "2001:db8::1", "2001:DB8::1", "2001:0db8:0000:0000:0000:0000:0000:0001", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4",
          "::1.2.3.4", "1::8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8:0:0:1:0:0:1", "64:ff9b::192.0.2.33"]
    v6 += [":".join("%x" % rnd.getrandbits(16) for _ in range(8)) for _ in range(40)]
    fast = v4 + v6 + [f"{a}/{rnd.randrange(33)}" for a in v4] + [f"{a}/{rnd.randrange(129)}" for a in v6]
    fast += [f"10.1.2.3/{n}" for n in range(33)] + ["::1/0", "::1/128", "2001:db8::/32"]
    ask = ["", " ", "10", "10.1", "10.1.2", "10/8", "10.1/16", "10.1.2/24", "010.1.2.3", "1.2.3.04", "1.2.3.4/08", "1.2.3.4/", "1.2.3.4/33", "::1/129",
           "1.2.3.256", "1.2.3.4.5", " 1.2.3.4", "1.2.3.4 ", "0x0a010203", "0xa.1.2.3", "::1%eth0", ":::", "1::2::3", "12345::", "g::", "[::1]", "1.2.3.4/24/8",
           "1.2.3.4/-1", "1.2.3.4/+8", "1.2.3.4/255.255.255.0", "::ffff:1.2.3", "::1.2.3.4/00", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "localhost", "1.2.3.4/032",
           "::ffff:01.2.3.4", "0:0:0:0:0:0:1.2.3.4", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8"]
    add("inet", "inet", "inet_send", fast, ask)
    nets = [f"10.{rnd.randrange(256)}.{rnd.randrange(256)}.0/24" for _ in range(60)]
    nets += [f"10.{rnd.randrange(256)}.0.0/16" for _ in range(30)] + ["10.0.0.0/8", "0.0.0.0/0", "::/0", "::1/128", "2001:db8::/32", "1.2.3.4/32"]
    nets += ["2001:db8:%x::/48" % rnd.getrandbits(16) for _ in range(50)] + v4[:10] + v6[:10]
    add("cidr", "cidr", "cidr_send", nets, ["10", "10.1", "10/8", "10.1/16", "10.1.2", "192.168", "224", "", "x", "2001:db8"],
        ["10.0.0.1/8", "2001:db8::1/32", "1.2.3.4/0"])

    # macaddr
    fast = []
    macs = ["08002b010203", "000000000000", "ffffffffffff"] + ["%012x" % rnd.getrandbits(48) for _ in range(80)]
    for m in macs:
        pairs = [m[i:i + 2] for i in range(0, 12, 2)]
        fast.append(":".join(pairs))
        if len(fast) < 120:
            fast += ["-".join(pairs), m[:6] + ":" + m[6:], m[:6] + "-" + m[6:], m[:4] + "." + m[4:8] + "." + m[8:], m[:4] + "-" + m[4:8] + "-" + m[8:], m,
                     ":".join(pairs).upper()]
    fast += [" 08:00:2b:01:02:03", "08:00:2b:01:02:03 ", "\t08002b010203\n"]
    add("macaddr", "macaddr", "macaddr_send", fast,
        ["8:0:2b:1:2:3", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08:00-2b:01:02:03", "08 00 2b 01 02 03", "0800.2b01-0203", "", "x", "08:00:2b:01:02:0g",
         "08002b01020", "08002b0102034", "8002b:10203", "08:00:2b:01:02:100", "0x:00:2b:01:02:03", "08.00.2b.01.02.03", "-8:00:2b:01:02:03", "08::2b:01:02:03",
         "0800:2b01:0203", "+8:00:2b:01:02:03", "08002b.010203"])

    # interval
    fast = ["1 day", "2 days", "-1 day", "+1 day", "0 days", "1 week", "3 weeks", "1 month", "1 mon", "2 mons", "1 months", "1 year", "2 years", "10 years",
            "1 hour", "36 hours", "-5 hours", "1 minute", "90 minutes", "1 min", "2 mins", "1 second", "1 sec", "3 secs", "86400 seconds", "24 hours", "30 days",
            "12 months", "360 days", "1 day 02:00:00", "1 day 2:03:04", "1 year 2 mons 3 days 04:05:06", "1 year 2 months 3 days 4 hours 5 minutes 6 seconds",
            "04:05:06", "-04:05:06", "+04:05:06", "100:00:00", "4:05:06.7", "4:05:06.123456", "00:00:00", "00:00:00.000001", "-00:00:00.000001",
            "-1 days +02:00:00", "1 day -02:00:00", "-1 day -02:00:00", "-1 years -2 mons +3 days -04:05:06", "1 mon -30 days", "0", " 1 day ", "1  day", "1 DAY",
            "1 Day 01:00:00", "99999999 days", "-99999999 days", "99999999 hours", "14 weeks 2 days", "00:59:59.999999", "178000000 years"]
    for _ in range(80):
        parts = [f"{rnd.randrange(1000)} {unit}" for unit in ("years", "mons", "days") if rnd.random() < 0.6]
        if rnd.random() < 0.7 or not parts:
            parts.append(f"{rnd.randrange(100):02}:{rnd.randrange(60):02}:{rnd.randrange(60):02}.{rnd.randrange(10**6):06}")
        fast.append(" ".join(parts))
    for _ in range(60):
        fast.append(f"{rnd.choice(['', '-'])}{rnd.randrange(10**7)} {rnd.choice(['day', 'days', 'hours', 'minutes', 'seconds', 'mons', 'weeks'])}")
    fast = [f for f in fast if f not in ("0", "178000000 years")]
    ask = ["0", "5", "-1 days 02:00:00", "-1 year 2 mons", "1.5 days", "1.5 hours", "0.1 seconds", "1 day ago", "@ 1 day", "P1D", "P1Y2M3DT4H5M6S", "PT0.5S",
           "1-2", "-1-2", "1-2 3 4:05:06", "-1-2 -3 -4:05:06", "-1-2 3 4:05:06", "3 4:05:06", "-3 4:05:06", "1 day 1 day", "04:05", "1d", "1h", "1 d", "1 m",
           "1 mons 1 min", "1 decade", "1 century", "1 ms", "1 us", "1 millennium", "infinity", "-infinity", "", " ", "day", "1", "1 dayz", "1 day 2", "04:60:00",
           "04:00:60", "04:05:06.1234567", "999999999999 days", "178000001 years", "2147483647 days", "2147483648 days", "2147483647 mons",
           "-2147483648 days", "1 hour 04:05:06", "1day", "1day 2hours", "1 day, 2 hours", "1 day and 2 hours", "- 1 day", "1e3 days", "1 day 02:00",
           "178000000 years", "2562047788 hours", "00:00:00.0000001", "1 qtr", "1 quarter", "1 weekend", "1 y", "1 yr", "1 yrs", "1 hr", "-1 day 02:00:00 ago",
           "1 timezone", "+-1 day", "2:3:4", "1 day\t2 hours", "9223372036854775807 us", "99999999 years", "99999999 weeks"]
    add("interval", "interval", "interval_send", fast, ask)

    # floats
    for name, sql, top, least in (("float4", "float4", "3.4028234e38", "1.4e-45"), ("float8", "float8", "1.7976931348623157e308", "4.9e-324")):
        fast = ["0", "-0", "0.0", "+0", "-0.0", "0e5", "0.0e-400", "1", "-1", "1.0", "1e0", "1.", ".5", "-.5", "+.5", "5e-1", "0.1", "0.2", "0.3", "1e10", "1E10", "1e+10",
                "16777217", "16777216", "9007199254740993", "0.1000000001", "3.141592653589793", "2.718281828459045", "NaN", "nan", "NAN", "Infinity", "-Infinity",
                "infinity", "inf", "-inf", "+inf", "+Infinity", "INF", " 1 ", "\t1.5\n", " NaN ", " -Infinity ", "1e37", "1e-37", top, "-" + top, "123456789", "00012",
                "1e-38", "33554433", "0.30000001192092896", "0.30000001192092900"]
        fast += [repr(rnd.uniform(-1000, 1000)) for _ in range(60)] + [f"{rnd.uniform(1, 10):.{rnd.randrange(20)}f}e{rnd.randrange(-37, 38)}" for _ in range(60)]
        fast += ["".join(rnd.choice("0123456789") for _ in range(n)) + "." + "".join(rnd.choice("0123456789") for _ in range(30)) for n in range(1, 25)]
        ask = ["", " ", ".", "e5", "1e", "--1", "1 2", "1e400", "-1e400", "1e-400", "1e39", "1e-46", least, "1e-40", "5e-324", "0x10", "0x1p3", "nan(1)", "nan()", "infin", "1_0", "1,5",
               "+nan", "-nan", "1e5.5", "1.2.3", "+ 1", "1f", "1d", "infinit", "2.2250738585072014e-308", "1e309", "3.4028236e38", "1e99999999999", "٤"]
        add(name, sql, name + "send", fast, ask)
    return out


class Server:
    """A throw-away server. Never as root; stopped whatever happens."""

    def __init__(self, bin_dir):
        self.bin = bin_dir
        self.as_user = []
        self.dir = tempfile.mkdtemp(prefix="pgherd-vectors.")
        if os.geteuid() == 0:
            shutil.chown(self.dir, "postgres")
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def run(self, program, *args, **kwargs):
        command = self.as_user + [os.path.join(self.bin, program), *args]
        return subprocess.run(command, cwd=self.dir, check=True, stdout=subprocess.PIPE, text=True, **kwargs).stdout

    def __enter__(self):
        data = os.path.join(self.dir, "data")
        self.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        options = f"-c listen_addresses= -c unix_socket_directories={self.dir} -c fsync=off -p 5432"
        self.run("pg_ctl", "-D", data, "-l", os.path.join(self.dir, "log"), "-w", "-o", options, "start")
        return self

    def __exit__(self, *_):
        try:
            self.run("pg_ctl", "-D", os.path.join(self.dir, "data"), "-m", "immediate", "stop")
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)

    def sql(self, script):
        psql = shutil.which("psql") or os.path.join(self.bin, "psql")
        done = subprocess.run([psql, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", self.dir, "-p", "5432", "-U", "postgres"],
                              input=script, check=True, stdout=subprocess.PIPE, encoding="utf-8", errors="surrogateescape",
                              env={**os.environ, "PGCLIENTENCODING": "UTF8", "PGOPTIONS": ""})
        return done.stdout


def escape(text):
    for raw, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\v", "\\v"), ("\f", "\\f"), ("\b", "\\b")):
        text = text.replace(raw, escaped)
    return text


def ask(server, sql_type, send, texts):
    """[(binary, partition hash) or None if refused] per text, for each of SETTINGS."""
    rows = "".join(f"{i}\t{escape(text)}\n" for i, text in enumerate(texts))
    partitions = "".join(f"CREATE TABLE key_{r} PARTITION OF keyed FOR VALUES WITH (modulus 32, remainder {r});" for r in range(32))
    script = [f"""
        SET client_min_messages = warning; DROP TABLE IF EXISTS keyed, spelling;
        CREATE TABLE keyed (k {sql_type}) PARTITION BY HASH (k); {partitions}
        CREATE TABLE spelling (id int, txt text);
        CREATE OR REPLACE FUNCTION look(txt text, OUT sent text, OUT hash bigint, OUT part int) LANGUAGE plpgsql AS $$
        BEGIN
            EXECUTE format('SELECT encode({send}(%1$L::{sql_type}), ''hex''), hash_record_extended(ROW(%1$L::{sql_type}), {SEED})', txt) INTO sent, hash;
            EXECUTE format('INSERT INTO keyed VALUES (%L::{sql_type}) RETURNING substr(tableoid::regclass::text, 5)::int', txt) INTO part;
        EXCEPTION WHEN data_exception OR program_limit_exceeded THEN sent := NULL;
        END $$;
        CREATE OR REPLACE FUNCTION proved(txt text, hash numeric) RETURNS bool LANGUAGE plpgsql AS $$
        DECLARE yes bool;
        BEGIN
            EXECUTE format('SELECT bool_and(satisfies_hash_partition(''keyed''::regclass, m, mod(%s, m)::int, %L::{sql_type})) FROM unnest(ARRAY{list(MODULI)}) m',
                hash, txt) INTO yes;
            RETURN yes;
        END $$;
        COPY spelling FROM stdin;
{rows}\\.
        SELECT 'null', satisfies_hash_partition('keyed'::regclass, {MODULI[0]}, 0, NULL::{sql_type});"""]
    for settings in SETTINGS:
        script.append("RESET ALL; SET client_encoding = 'UTF8'; SET client_min_messages = warning;")
        script += [f"SET {name} = '{value}';" for name, value in settings.items()]
        script.append("SELECT 'setting';")
        script.append("SELECT id, coalesce(sent, '-'), hash, part FROM spelling, LATERAL look(txt) ORDER BY id;")
    results, proofs = [], []
    for line in server.sql("\n".join(script)).splitlines():
        if line == "setting":
            results.append([])
            continue
        if line.startswith("null|"):
            assert line == "null|t", f"NULL is not in remainder 0 of {sql_type}"
            continue
        number, sent, value_hash, part = line.split("|")
        assert int(number) == len(results[-1])
        if sent == "-":
            results[-1].append(None)
            continue
        combined = (int(value_hash) + 0x49A0F4DD15E5A8E3) % 2**64
        assert combined % 32 == int(part), f"{sql_type} {texts[int(number)]!r}: row went to another partition"
        if len(results) == 1 and not texts[int(number)].startswith(CLOCK_WORDS):
            proofs.append((int(number), combined))
        results[-1].append((sent, combined))
    # Under the settings of the first pass.
    script = "".join(f"SELECT id, proved(txt, {h}) FROM spelling WHERE id = {i};" for i, h in proofs)
    for (number, _), line in zip(proofs, server.sql(script).split(), strict=True):
        assert line == f"{number}|t", f"{sql_type} {texts[number]!r}: satisfies_hash_partition disagrees"
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("pg_bin", nargs="+")
    args = parser.parse_args()
    todo = {name: what for name, what in spellings().items() if not args.only or name in args.only.split(",")}
    answers = {name: [] for name in todo}
    versions = []
    for bin_dir in args.pg_bin:
        with Server(bin_dir) as server:
            versions.append(server.sql("SHOW server_version").split()[0])
            for name, (sql_type, send, rows) in todo.items():
                print(f"PostgreSQL {versions[-1]}: {name}", file=sys.stderr)
                answers[name] += ask(server, sql_type, send, [text for _, text in rows])
    for name, (_, _, rows) in todo.items():
        lines = [f"# Written by generate.py: PostgreSQL {', '.join(versions)}. verdict, text, binary, partition hash\n", "null\t\\N\t\\N\t0\n"]
        for i, (tag, text) in enumerate(rows):
            got = {answer[i] for answer in answers[name]}
            if len({g and g[1] for g in got}) > 1 or text.startswith(CLOCK_WORDS):
                verdict, sent, hashed = "varies", "-", "-"
            elif got == {None}:
                verdict, sent, hashed = "loose" if tag == "loose" else "error", "-", "-"
            else:
                verdict, (sent, hashed) = tag, next(iter(got))
            if tag == "fast" and verdict != "fast":
                print(f"{name}: {text!r} was expected to be plain, but: {verdict}", file=sys.stderr)
            lines.append(f"{verdict}\t{escape(text)}\t{sent}\t{hashed}\n")
        with open(os.path.join(HERE, name + ".tsv"), "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
        print(f"{name}: {len(lines) - 1} lines", file=sys.stderr)


if __name__ == "__main__":
    main()

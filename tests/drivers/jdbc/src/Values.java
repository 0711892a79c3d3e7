package drivers;

import static drivers.Suite.connected;
import static drivers.Suite.distribute;
import static drivers.Suite.execute;
import static drivers.Suite.failure;
import static drivers.Suite.KINDS;
import static drivers.Suite.modes;
import static drivers.Suite.ok;
import static drivers.Suite.rows;
import static drivers.Suite.same;
import static drivers.Suite.state;
import static drivers.Suite.table;
import static drivers.Suite.tables;
import static drivers.Suite.update;
import static drivers.Suite.value;

import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;

/** Values in and out. */
final class Values {
    private static final String[] BOTH = {"local", "distributed"};
    private static final String[] TRANSFERS = {"", "prepareThreshold=1&binaryTransfer=true",
        "prepareThreshold=-1&binaryTransfer=true", "prepareThreshold=1&binaryTransfer=false",
        "preferQueryMode=simple"};
    private static final UUID ID = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");

    static void add() {
        scalars();
        nulls();
        numbers();
        times();
        strings();
        arrays();
        objects();
        types();
        keys();
        streams();
    }

    private interface Each {
        void run(Connection connection, String kind) throws Exception;
    }

    private static void each(String name, String[] kinds, Each body) {
        for (String transfer : TRANSFERS) {
            String how = transfer.isEmpty() ? "default" : transfer;
            tables("values: " + name + ", " + how, transfer, kinds, body::run);
        }
    }

    private static void there(Connection c, String type, Object in, Object out, Class<?> as) throws Exception {
        try (PreparedStatement s = c.prepareStatement("select ?::" + type)) {
            for (int i = 0; i < 7; i++) {
                s.setObject(1, in);
                try (ResultSet r = s.executeQuery()) {
                    ok(r.next());
                    same(as == null ? r.getObject(1) : r.getObject(1, as), out);
                }
            }
        }
    }

    private static void scalars() {
        each("scalars", KINDS, (c, kind) -> {
            table(c, kind, "jd_scalars", "k int primary key, b boolean, s smallint, l bigint, r real, d float8, t "
                + "text, "
                + "v varchar(5), c char(4), y bytea, u uuid, n numeric(12,3), a \"char\", o oid, m name, x money");
            try (PreparedStatement s = c.prepareStatement(
                    "insert into jd_scalars values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'z', 77, 'nm', 12.5::money)")) {
                for (int i = 0; i < 8; i++) {
                    s.setObject(1, i);
                    s.setObject(2, i % 2 == 0);
                    s.setObject(3, (short) (i - 3));
                    s.setObject(4, Long.MAX_VALUE - i);
                    s.setObject(5, i / 4f);
                    s.setObject(6, i / 8.0);
                    s.setObject(7, "é" + i);
                    s.setObject(8, "v" + i);
                    s.setObject(9, "c" + i);
                    s.setObject(10, new byte[] {0, (byte) i, -1, 92, 39});
                    s.setObject(11, ID);
                    s.setObject(12, new BigDecimal(i + ".125"));
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_scalars where k = ?")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    same(r.getObject(1), i);
                    same(r.getObject(2), i % 2 == 0);
                    same(r.getObject(3), i - 3);
                    same(r.getShort(3), (short) (i - 3));
                    same(r.getObject(4), Long.MAX_VALUE - i);
                    same(r.getObject(5), i / 4f);
                    same(r.getObject(6), i / 8.0);
                    same(r.getObject(7), "é" + i);
                    same(r.getObject(8), "v" + i);
                    same(r.getObject(9), "c" + i + "  ");
                    same(r.getObject(10), new byte[] {0, (byte) i, -1, 92, 39});
                    same(r.getObject(11), ID);
                    same(r.getObject(12), new BigDecimal(i + ".125"));
                    same(r.getString(13), "z");
                    same(r.getObject(14), 77L);
                    same(r.getString(15), "nm");
                    same(r.getString(16), "$12.50");
                    ok(!r.next());
                }
            }
            same(rows(c, "select count(*), sum(s), min(l), max(r), sum(d), sum(n), min(u::text) from jd_scalars"),
                "8,4,9223372036854775800,1.75,3.5,29.000," + ID);
        });
        each("ranges of values", new String[] {"local"}, (c, kind) -> {
            there(c, "bool", true, true, null);
            there(c, "int2", Short.MIN_VALUE, (int) Short.MIN_VALUE, null);
            there(c, "int4", Integer.MIN_VALUE, Integer.MIN_VALUE, null);
            there(c, "int8", Long.MIN_VALUE, Long.MIN_VALUE, null);
            there(c, "float4", Float.MIN_VALUE, Float.MIN_VALUE, null);
            there(c, "float4", Float.NaN, Float.NaN, null);
            there(c, "float8", Double.MAX_VALUE, Double.MAX_VALUE, null);
            there(c, "float8", Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY, null);
            there(c, "uuid", ID, ID, UUID.class);
            there(c, "bytea", new byte[0], new byte[0], null);
            there(c, "text", "", "", null);
            there(c, "text", "\\ ' \" \n\t $1 ? 漢字 😀", "\\ ' \" \n\t $1 ? 漢字 😀", String.class);
            there(c, "numeric", new BigDecimal("5"), new BigDecimal("5"), BigDecimal.class);
            same(state(() -> there(c, "int2", 70000, 0, null)), "22003");
        });
    }

    private static void nulls() {
        each("nulls", KINDS, (c, kind) -> {
            table(c, kind, "jd_nulls", "k int primary key, i int, t text, d date, z timestamptz, a int[], u uuid, j "
                + "jsonb, "
                + "y bytea, n numeric, b boolean");
            int[] codes = {Types.INTEGER, Types.VARCHAR, Types.DATE, Types.TIMESTAMP_WITH_TIMEZONE, Types.ARRAY,
                Types.OTHER, Types.OTHER, Types.BINARY, Types.NUMERIC, Types.BOOLEAN};
            try (PreparedStatement s = c.prepareStatement(
                    "insert into jd_nulls values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    for (int j = 0; j < codes.length; j++) s.setNull(j + 2, i % 2 == 0 ? codes[j] : Types.NULL);
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_nulls where k = ? and i is null")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    for (int j = 2; j <= 11; j++) {
                        same(r.getObject(j), null);
                        ok(r.wasNull());
                    }
                    same(r.getInt(2), 0);
                    ok(r.wasNull());
                    same(r.getBoolean(11), false);
                    ok(r.wasNull());
                }
            }
            try (PreparedStatement s = c.prepareStatement(
                    "select count(*) from jd_nulls where t is not distinct from ?::text and ?::int is null")) {
                for (int i = 0; i < 7; i++) {
                    s.setObject(1, null);
                    s.setNull(2, Types.INTEGER);
                    same(rows(s.executeQuery()), "8");
                }
            }
            same(rows(c, "select count(i), count(*), coalesce(max(t), 'none'), array_agg(distinct n) from jd_nulls"),
                "0,8,none,{NULL}");
        });
    }

    private static void numbers() {
        each("numeric", KINDS, (c, kind) -> {
            table(c, kind, "jd_numeric", "k int primary key, n numeric, f numeric(20,5)");
            String[] all = {"0", "1", "-1", "0.1", "10000", "12345678901234567890.12345", "-0.00001", "1000000000000",
                "99999.99999", "0.00000000000000000001", "123456789012345678901234567890"};
            try (PreparedStatement s = c.prepareStatement("insert into jd_numeric values (?, ?, ?)")) {
                for (int i = 0; i < all.length; i++) {
                    s.setInt(1, i);
                    s.setBigDecimal(2, new BigDecimal(all[i]));
                    s.setObject(3, new BigDecimal(i), Types.NUMERIC);
                    s.executeUpdate();
                }
            }
            try (PreparedStatement s = c.prepareStatement("select n, f from jd_numeric where k = ?")) {
                for (int i = 0; i < all.length; i++) {
                    s.setInt(1, i);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    same(r.getBigDecimal(1), new BigDecimal(all[i]));
                    same(r.getBigDecimal(2), new BigDecimal(i + ".00000"));
                    same(r.getInt(2), i);
                }
            }
            same(rows(c, "select sum(n), avg(f), stddev(f)::numeric(10,4) from jd_numeric where k < 5"),
                "10000.1,2.0000000000000000,1.5811");
            try (PreparedStatement s = c.prepareStatement("select k from jd_numeric where n = ?")) {
                for (int i = 0; i < all.length; i++) {
                    s.setBigDecimal(1, new BigDecimal(all[i]));
                    same(rows(s.executeQuery()), String.valueOf(i));
                }
            }
            update(c, "insert into jd_numeric values (100, 'NaN', null)");
            same(value(c, "select max(n) from jd_numeric"), "NaN");
            same(state(() -> update(c, "insert into jd_numeric values (101, 0, 1e15)")), "22003");
        });
    }

    private static void times() {
        each("times", KINDS, (c, kind) -> {
            table(c, kind, "jd_times", "k int primary key, d date, t time, z timetz, s timestamp, w timestamptz, i "
                + "interval");
            LocalDateTime at = LocalDateTime.of(2024, 2, 29, 23, 59, 58, 123456000);
            OffsetDateTime with = OffsetDateTime.of(at, ZoneOffset.ofHours(-5));
            try (PreparedStatement s = c.prepareStatement("insert into jd_times values (?, ?, ?, ?, ?, ?, ?)")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    s.setObject(2, at.toLocalDate().plusDays(i));
                    s.setObject(3, at.toLocalTime());
                    s.setObject(4, OffsetTime.of(1, 2, 3, 0, ZoneOffset.ofHours(2)));
                    s.setObject(5, at.plusMonths(i));
                    s.setObject(6, with.plusHours(i));
                    s.setObject(7, new PGInterval(1, 2, i, 4, 5, 6.5));
                    s.executeUpdate();
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_times where k = ?")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    same(r.getObject(2, LocalDate.class), at.toLocalDate().plusDays(i));
                    same(r.getDate(2), Date.valueOf(at.toLocalDate().plusDays(i)));
                    same(r.getObject(3, LocalTime.class), at.toLocalTime());
                    same(r.getObject(4, OffsetTime.class), OffsetTime.of(1, 2, 3, 0, ZoneOffset.ofHours(2)));
                    same(r.getObject(5, LocalDateTime.class), at.plusMonths(i));
                    same(r.getTimestamp(5), Timestamp.valueOf(at.plusMonths(i)));
                    same(r.getObject(6, OffsetDateTime.class).toInstant(), with.plusHours(i).toInstant());
                    same(r.getTimestamp(6).toInstant(), with.plusHours(i).toInstant());
                    same(r.getObject(7), new PGInterval(1, 2, i, 4, 5, 6.5));
                }
            }
            same(rows(c, "select k, d, t, s, w from jd_times where k = 1"),
                "1,2024-03-01,23:59:58.123456,2024-03-29 23:59:58.123456,2024-03-01 11:29:58.123456+05:30");
            same(value(c, "show timezone"), "Asia/Kolkata");
            same(rows(c, "select max(w) - min(w), max(i), date_trunc('day', min(w)) from jd_times"),
                "07:00:00,1 year 2 mons 7 days 04:05:06.5,2024-03-01 00:00:00+05:30");
            try (PreparedStatement s = c.prepareStatement("select count(*) from jd_times where w < ? and s >= ?")) {
                for (int i = 0; i < 8; i++) {
                    s.setObject(1, with.plusHours(i));
                    s.setObject(2, at);
                    same(rows(s.executeQuery()), String.valueOf(i));
                }
            }
        });
        each("times: ends", new String[] {"local"}, (c, kind) -> {
            there(c, "date", LocalDate.MAX, LocalDate.MAX, LocalDate.class);
            there(c, "timestamp", LocalDateTime.MIN, LocalDateTime.MIN, LocalDateTime.class);
            there(c, "timestamptz", OffsetDateTime.MAX, OffsetDateTime.MAX, OffsetDateTime.class);
            there(c, "date", LocalDate.of(1, 1, 1), LocalDate.of(1, 1, 1), LocalDate.class);
            there(c, "timestamp", LocalDateTime.of(-43, 3, 15, 12, 0), LocalDateTime.of(-43, 3, 15, 12, 0),
                LocalDateTime.class);
            there(c, "time", LocalTime.MIDNIGHT, LocalTime.MIDNIGHT, LocalTime.class);
        });
        connected("values: time zones", "", c -> {
            table(c, "distributed", "jd_zones", "k int, w timestamptz");
            execute(c, "set timezone to 'America/New_York'");
            update(c, "insert into jd_zones select i, '2024-07-01 12:00' from generate_series(1, 5) i");
            same(value(c, "select w::text from jd_zones where k = 3"), "2024-07-01 12:00:00-04");
            execute(c, "set timezone to 'UTC'");
            same(value(c, "select string_agg(distinct w::text, ' ') from jd_zones"), "2024-07-01 16:00:00+00");
            execute(c, "set datestyle to 'ISO, DMY'");
            update(c, "insert into jd_zones select i, '02/03/2024' from generate_series(6, 9) i");
            same(value(c, "select string_agg(distinct w::date::text, ' ') from jd_zones where k > 5"), "2024-03-02");
            same(state(() -> execute(c, "set datestyle to 'SQL, DMY'")), "08006");
        });
    }

    private static void strings() {
        each("strings", BOTH, (c, kind) -> {
            table(c, kind, "jd_strings", "k text primary key, v varchar(10), c char(6)");
            String[] all = {"", " ", "'", "\\", "\"", "a\nb", "$1", "?", "é", "😀", "NULL", "null", "{}", "%_", ";--"};
            try (PreparedStatement s = c.prepareStatement("insert into jd_strings values (?, ?, ?)")) {
                for (String one : all) {
                    s.setString(1, one);
                    s.setObject(2, one, Types.VARCHAR);
                    s.setObject(3, one, Types.CHAR);
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select k, v, c, length(k) from jd_strings where k = ?")) {
                for (String one : all) {
                    s.setString(1, one);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    same(r.getString(1), one);
                    same(r.getString(2), one);
                    same(r.getInt(4), one.codePointCount(0, one.length()));
                    same(r.getString(3).length() >= 6, true);
                }
            }
            same(value(c, "select count(*) from jd_strings where k = v and c = v::char(6)"), "15");
            same(state(() -> update(c, "insert into jd_strings values ('x', 'too long for it', '')")), "22001");
            try (PreparedStatement s = c.prepareStatement("select ?::text")) {
                s.setString(1, "a\0b");
                failure(s::executeQuery);
            }
            same(value(c, "select 1"), "1");
        });
    }

    private static void arrays() {
        each("arrays", KINDS, (c, kind) -> {
            table(c, kind, "jd_arrays", "k int primary key, i int[], t text[], m int[][], u uuid[], n numeric[], "
                + "b boolean[], d float8[], l bigint[], z timestamptz[]");
            try (PreparedStatement s = c.prepareStatement("insert into jd_arrays values (?, ?, ?, ?, ?, ?, ?, ?, ?, "
                + "?)")) {
                for (int k = 0; k < 8; k++) {
                    s.setInt(1, k);
                    s.setArray(2, c.createArrayOf("int4", new Integer[] {k, null, -k}));
                    s.setArray(3, c.createArrayOf("text", new String[] {"a,b", "\"q\"", "", null, "NULL", "{x}",
                        "\\"}));
                    s.setArray(4, c.createArrayOf("int4", new Integer[][] {{k, 2}, {3, 4}}));
                    s.setArray(5, c.createArrayOf("uuid", new UUID[] {ID, ID}));
                    s.setArray(6, c.createArrayOf("numeric", new BigDecimal[] {new BigDecimal("1.50"), null}));
                    s.setArray(7, c.createArrayOf("bool", new Boolean[] {true, false}));
                    s.setObject(8, new double[] {0.5, k});
                    s.setObject(9, new long[] {});
                    s.setArray(10, c.createArrayOf("timestamptz", new String[] {"2024-01-01 00:00:00+00"}));
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_arrays where k = ?")) {
                for (int k = 0; k < 8; k++) {
                    s.setInt(1, k);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    Array ints = r.getArray(2);
                    same(ints.getBaseTypeName(), "int4");
                    same(ints.getArray(), new Integer[] {k, null, -k});
                    same(ints.getArray(3, 1), new Integer[] {-k});
                    same(rows(ints.getResultSet()), "1," + k + "|2,null|3," + -k);
                    same(r.getArray(3).getArray(), new String[] {"a,b", "\"q\"", "", null, "NULL", "{x}", "\\"});
                    same(r.getArray(4).getArray(), new Integer[][] {{k, 2}, {3, 4}});
                    same(r.getArray(5).getArray(), new UUID[] {ID, ID});
                    same(r.getArray(6).getArray(), new BigDecimal[] {new BigDecimal("1.50"), null});
                    same(r.getArray(7).getArray(), new Boolean[] {true, false});
                    same(r.getArray(8).getArray(), new Double[] {0.5, (double) k});
                    same(r.getArray(9).getArray(), new Long[] {});
                    same(((Timestamp[]) r.getArray(10).getArray())[0].getTime(), 1704067200000L);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select count(*), sum(k) from jd_arrays where k = any (?)")) {
                for (int k = 0; k < 8; k++) {
                    s.setArray(1, c.createArrayOf("int4", new Integer[] {k, 1, 7, 100}));
                    same(rows(s.executeQuery()), k == 1 || k == 7 ? "2,8" : "3," + (8 + k));
                }
            }
            try (PreparedStatement s = c.prepareStatement(
                    "insert into jd_arrays (k, t) select * from unnest(?::int[], ?::_text) t (k, v) where false "
                    + "union all select k, array[v] from unnest(?::int[], ?::text[]) t (k, v)")) {
                s.setArray(1, c.createArrayOf("int4", new Integer[] {}));
                s.setArray(2, c.createArrayOf("text", new String[] {}));
                s.setArray(3, c.createArrayOf("int4", new Integer[] {20, 21, 22}));
                s.setArray(4, c.createArrayOf("text", new String[] {"x", "y", "z"}));
                String problem = null;
                try {
                    s.executeUpdate();
                } catch (java.sql.SQLException e) {
                    problem = e.getSQLState();
                }
                same(problem, "42804");
            }
            try (PreparedStatement s = c.prepareStatement(
                    "insert into jd_arrays (k, t) select k, array[v] from unnest(?::int[], ?::text[]) t (k, v)")) {
                for (int i = 0; i < 7; i++) {
                    int k = 100 + i * 10;
                    s.setArray(1, c.createArrayOf("int4", new Integer[] {k, k + 1, k + 2}));
                    s.setArray(2, c.createArrayOf("text", new String[] {"x", "y", "z"}));
                    same(s.executeUpdate(), 3);
                }
            }
            same(rows(c, "select array_agg(t order by k)::text from jd_arrays where k between 100 and 102"),
                "{{x},{y},{z}}");
        });
    }

    private static PGobject object(String type, String value) throws Exception {
        PGobject o = new PGobject();
        o.setType(type);
        o.setValue(value);
        return o;
    }

    private static void objects() {
        each("json, ranges, addresses, bits, points", KINDS, (c, kind) -> {
            table(c, kind, "jd_objects", "k int primary key, j json, b jsonb, r int4range, w tstzrange, m "
                + "int4multirange, "
                + "a inet, n cidr, h macaddr, x bit(4), v varbit, p point, q box, t tsvector, e xml");
            String[][] all = {{"json", "{\"b\": 1,  \"a\": [null]}"}, {"jsonb", "{\"a\": [null], \"b\": 1}"},
                {"int4range", "[1,10)"}, {"tstzrange", "[\"2024-01-01 05:30:00+05:30\",)"},
                {"int4multirange", "{[1,3),[7,9)}"}, {"inet", "10.0.0.1/8"}, {"cidr", "10.0.0.0/8"},
                {"macaddr", "08:00:2b:01:02:03"}, {"bit", "1010"}, {"varbit", "110"}, {"point", "(1.5,2.5)"},
                {"box", "(3.5,4.5),(1.5,2.5)"}, {"tsvector", "'a':1 'b':2"}, {"xml", "<a>x</a>"}};
            try (PreparedStatement s = c.prepareStatement(
                    "insert into jd_objects values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                for (int k = 0; k < 8; k++) {
                    s.setInt(1, k);
                    for (int i = 0; i < all.length; i++) s.setObject(i + 2, object(all[i][0], all[i][1]));
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_objects where k = ?")) {
                for (int k = 0; k < 8; k++) {
                    s.setInt(1, k);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    for (int i = 0; i < all.length; i++) {
                        same(r.getString(i + 2), all[i][1]);
                        same(r.getMetaData().getColumnTypeName(i + 2), all[i][0]);
                    }
                    same(((PGobject) r.getObject(3)).getType(), "jsonb");
                    same(r.getSQLXML(15).getString(), "<a>x</a>");
                }
            }
            try (PreparedStatement s = c.prepareStatement(
                    "select count(*) from jd_objects where b @> ? and b ?? 'a' and r @> ? and a << ?::inet")) {
                for (int i = 0; i < 7; i++) {
                    s.setObject(1, object("jsonb", "{\"b\": 1}"));
                    s.setInt(2, 9);
                    s.setObject(3, object("inet", "10.0.0.0/7"));
                    same(rows(s.executeQuery()), "8");
                }
            }
            same(rows(c, "select sum((b->>'b')::int), jsonb_agg(b->'a'->0) from jd_objects where k < 2"),
                "2,[null, null]");
        });
    }

    private static void types() {
        each("enum, domain, composite", KINDS, (c, kind) -> {
            execute(c, "drop type if exists jd_mood, jd_pair cascade; drop domain if exists jd_positive cascade",
                "create type jd_mood as enum ('sad', 'ok', 'happy')", "create type jd_pair as (a int, b text)",
                "create domain jd_positive as int check (value > 0)");
            table(c, kind, "jd_typed", "k int primary key, m jd_mood, p jd_pair, d jd_positive, a jd_mood[], q "
                + "jd_pair[]");
            String[] moods = {"sad", "ok", "happy"};
            try (PreparedStatement s = c.prepareStatement("insert into jd_typed values (?, ?, ?, ?, ?, ?)")) {
                for (int k = 0; k < 9; k++) {
                    s.setInt(1, k);
                    if (k % 2 == 0) s.setObject(2, moods[k % 3], Types.OTHER);
                    else s.setObject(2, object("jd_mood", moods[k % 3]));
                    s.setObject(3, object("jd_pair", "(" + k + ",\"x, y\")"));
                    s.setInt(4, k + 1);
                    s.setArray(5, c.createArrayOf("jd_mood", new String[] {"ok", moods[k % 3]}));
                    s.setArray(6, c.createArrayOf("jd_pair", new Object[] {"(1,a)", "(2,)"}));
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select * from jd_typed where k = ?")) {
                for (int k = 0; k < 9; k++) {
                    s.setInt(1, k);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    same(r.getString(2), moods[k % 3]);
                    same(r.getObject(2), moods[k % 3]);
                    PGobject pair = (PGobject) r.getObject(3);
                    same(pair.getType() + pair.getValue(), "jd_pair(" + k + ",\"x, y\")");
                    same(r.getObject(4), k + 1);
                    same(r.getString(5), "{ok," + moods[k % 3] + "}");
                    same(r.getArray(5).getArray(), new String[] {"ok", moods[k % 3]});
                    same(r.getString(6), "{\"(1,a)\",\"(2,)\"}");
                    same(r.getMetaData().getColumnTypeName(2), "jd_mood");
                    same(r.getMetaData().getColumnTypeName(4), "int4");
                }
            }
            same(rows(c, "select m, count(*), sum((p).a), max(d) from jd_typed group by m order by m"),
                "sad,3,9,7|ok,3,12,8|happy,3,15,9");
            same(rows(c, "select max(m), min(m), max(p::text) from jd_typed"), "happy,sad,(8,\"x, y\")");
            same(state(() -> update(c, "insert into jd_typed (k, d) values (50, 0)")), "23514");
            same(state(() -> update(c, "insert into jd_typed (k, m) values (50, 'none')")), "22P02");
            try (PreparedStatement s = c.prepareStatement("select count(*) from jd_typed where m >= ?::jd_mood")) {
                for (int i = 0; i < 7; i++) {
                    s.setString(1, "ok");
                    same(rows(s.executeQuery()), "6");
                }
            }
        });
        modes("values: string types not given", c -> {
            table(c, "local", "jd_loose", "k int, u uuid, j jsonb");
            try (PreparedStatement s = c.prepareStatement("insert into jd_loose values (1, ?, null)")) {
                s.setString(1, ID.toString());
                boolean simple = c.unwrap(PGConnection.class).getPreferQueryMode().value().equals("simple");
                if (!simple) same(state(s::executeUpdate), "42804");
            }
        });
        for (String kind : BOTH) {
            connected("values: stringtype=unspecified [" + kind + "]", "stringtype=unspecified", c -> {
                table(c, kind, "jd_loose", "k int primary key, u uuid, j jsonb, n numeric, t timestamptz");
                try (PreparedStatement s = c.prepareStatement("insert into jd_loose values (?, ?, ?, ?, ?)")) {
                    for (int i = 0; i < 8; i++) {
                        s.setString(1, String.valueOf(i));
                        s.setString(2, ID.toString());
                        s.setString(3, "[1]");
                        s.setString(4, "1.5");
                        s.setString(5, "2024-01-01 00:00:00+00");
                        same(s.executeUpdate(), 1);
                    }
                }
                same(rows(c, "select * from jd_loose where k = 7"), "7," + ID + ",[1],1.5,2024-01-01 05:30:00+05:30");
            });
        }
    }

    private static void keys() {
        String[][] all = {{"int8", "9000000001", "-5"}, {"text", "a'b", ""}, {"varchar(20)", "é", "x "},
            {"uuid", ID.toString(), "00000000-0000-0000-0000-000000000001"}, {"date", "2024-02-29", "1999-12-31"},
            {"numeric", "1.5", "100"}, {"int2", "-1", "300"}, {"char(3)", "ab ", "xyz"},
            {"timestamptz", "2024-01-01 05:30:00+05:30", "2023-01-01 05:30:00+05:30"}};
        for (String[] one : all) {
            each("key of type " + one[0], new String[] {"distributed"}, (c, kind) -> {
                table(c, kind, "jd_key", "k " + one[0] + " primary key, v int");
                try (PreparedStatement put = c.prepareStatement("insert into jd_key values (?, ?)");
                        PreparedStatement get = c.prepareStatement("select k, v from jd_key where k = ?");
                        PreparedStatement gone = c.prepareStatement("delete from jd_key where k = ? and v = ?")) {
                    for (int i = 0; i < 14; i++) {
                        PGobject key = object(one[0].replaceAll("\\(.*", "").replace("char", "bpchar")
                            .replace("varbpchar", "varchar"), one[1 + i % 2]);
                        put.setObject(1, key);
                        put.setInt(2, i);
                        same(put.executeUpdate(), 1);
                        get.setObject(1, key);
                        same(rows(get.executeQuery()), one[1 + i % 2] + "," + i);
                        gone.setObject(1, key);
                        gone.setInt(2, i);
                        same(gone.executeUpdate(), 1);
                    }
                }
                same(value(c, "select count(*) from jd_key"), "0");
            });
        }
        each("reference table", new String[] {"reference"}, (c, kind) -> {
            table(c, "local", "jd_reference", "k int primary key, u uuid, a text[], w timestamptz");
            distribute(c, "jd_reference", null);
            try (PreparedStatement s = c.prepareStatement("insert into jd_reference values (?, ?, ?, ?)")) {
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, i);
                    s.setObject(2, ID);
                    s.setArray(3, c.createArrayOf("text", new String[] {"a", null}));
                    s.setObject(4, OffsetDateTime.of(2024, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC));
                    same(s.executeUpdate(), 1);
                }
            }
            same(rows(c, "select k, u, a::text, w from jd_reference where k = 7"), "7," + ID
                + ",{a,NULL},2024-01-01 05:30:00+05:30");
            same(value(c, "select count(*) from jd_reference"), "8");
        });
    }

    private static void streams() {
        each("streams", BOTH, (c, kind) -> {
            table(c, kind, "jd_streams", "k int primary key, y bytea, t text");
            byte[] bytes = new byte[300000];
            for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) (i * 7);
            String text = "aé'\\".repeat(50000);
            try (PreparedStatement s = c.prepareStatement("insert into jd_streams values (?, ?, ?)")) {
                for (int i = 0; i < 6; i++) {
                    s.setInt(1, i);
                    s.setBinaryStream(2, new ByteArrayInputStream(bytes), bytes.length);
                    s.setCharacterStream(3, new StringReader(text), text.length());
                    same(s.executeUpdate(), 1);
                }
            }
            try (PreparedStatement s = c.prepareStatement("select y, t from jd_streams where k = ?")) {
                for (int i = 0; i < 6; i++) {
                    s.setInt(1, i);
                    ResultSet r = s.executeQuery();
                    ok(r.next());
                    ok(Arrays.equals(r.getBinaryStream(1).readAllBytes(), bytes));
                    ok(r.getString(2).equals(text));
                }
            }
            same(value(c, "select sum(length(y)) || ' ' || sum(length(t)) from jd_streams"), "1800000 1200000");
        });
        connected("values: large objects", "", c -> {
            c.setAutoCommit(false);
            var large = c.unwrap(PGConnection.class).getLargeObjectAPI();
            long oid = large.createLO();
            try (var o = large.open(oid)) {
                o.write(new byte[] {1, 2, 3, 4});
                o.seek(1);
                same(o.read(2), new byte[] {2, 3});
                same(o.size(), 4);
                o.truncate(2);
            }
            c.commit();
            same(value(c, "select lo_get(" + oid + ")::text"), "\\x0102");
            large.delete(oid);
            c.commit();
        });
    }

    private Values() {}
}

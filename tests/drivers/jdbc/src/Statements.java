package drivers;

import static drivers.Suite.connect;
import static drivers.Suite.connected;
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

import java.sql.BatchUpdateException;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.util.Arrays;
import org.postgresql.PGConnection;
import org.postgresql.PGResultSetMetaData;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** Statements, their results and transactions. */
final class Statements {
    private static final String[] BOTH = {"local", "distributed"};

    static void add() {
        results();
        batches();
        keys();
        cursors();
        updatable();
        errors();
        transactions();
        prepared();
        cancelled();
        routines();
    }

    private static boolean isSimple(Connection c) throws SQLException {
        return c.unwrap(PGConnection.class).getPreferQueryMode().value().equals("simple");
    }

    /** What several statements have answered: rows in brackets, and how many were changed. */
    private static String all(Statement s, boolean counts) throws SQLException {
        StringBuilder all = new StringBuilder();
        while (true) {
            ResultSet rows = s.getResultSet();
            if (rows != null) all.append('[').append(rows(rows)).append(']');
            else if (s.getUpdateCount() < 0) return all.toString();
            else if (counts) all.append(s.getUpdateCount());
            s.getMoreResults();
        }
    }

    private static void results() {
        modes("results: counts", KINDS, (c, kind) -> {
            table(c, kind, "jd_counts", "k int primary key, v text default 'd'");
            same(update(c, "insert into jd_counts select generate_series(1, 20)"), 20);
            same(update(c, "update jd_counts set v = 'x' where k <= 5"), 5);
            same(update(c, "update jd_counts set v = 'x' where k = 5"), 1);
            same(update(c, "update jd_counts set v = 'x' where k = 99"), 0);
            same(update(c, "delete from jd_counts where k > 18"), 2);
            same(update(c, "insert into jd_counts values (1), (30) on conflict do nothing"), 1);
            same(update(c, "insert into jd_counts values (1), (31) on conflict (k) do update set v = 'new'"), 2);
            same(update(c, "create index on jd_counts (v)"), 0);
            same(value(c, "select count(*) from jd_counts where v in ('x', 'new')"), "5");
            try (PreparedStatement put = c.prepareStatement("insert into jd_counts values (?, ?)");
                    PreparedStatement change = c.prepareStatement("update jd_counts set v = ? where k between ? and ?");
                    PreparedStatement gone = c.prepareStatement("delete from jd_counts where k = ?")) {
                for (int i = 0; i < 12; i++) {
                    put.setInt(1, 100 + i);
                    put.setString(2, "v" + i);
                    same(put.executeUpdate(), 1);
                    change.setString(1, "w" + i);
                    change.setInt(2, 100);
                    change.setInt(3, 100 + i);
                    same(change.executeLargeUpdate(), (long) i + 1);
                    gone.setInt(1, i + 1);
                    same(gone.executeUpdate(), 1);
                }
            }
            same(rows(c, "select count(*), min(k), max(v) from jd_counts where v like 'w%'"), "12,100,w11");
        });
        modes("results: several statements", KINDS, (c, kind) -> {
            table(c, kind, "jd_several", "k int, v text");
            // Where the driver asks for what statements answer before it sends them, it leaves out those without rows.
            boolean asks = c.unwrap(PGConnection.class).getPrepareThreshold() < 0;
            try (Statement s = c.createStatement()) {
                s.execute("insert into jd_several values (1, 'a'), (2, 'b'); select k from jd_several order by k; "
                    + "update jd_several set v = 'c'; select 'last'; delete from jd_several where k = 1");
                same(all(s, !asks).replace("[]", ""), asks ? "[1|2][last]" : "2[1|2]2[last]1");
            }
            try (PreparedStatement s = c.prepareStatement("insert into jd_several values (?, ?); "
                    + "select v from jd_several where k = ?; delete from jd_several where k = ?")) {
                for (int i = 10; i < 18; i++) {
                    s.setInt(1, i);
                    s.setString(2, "v" + i);
                    s.setInt(3, i);
                    s.setInt(4, i);
                    s.execute();
                    same(all(s, !asks).replace("[]", ""), asks ? "[v" + i + "]" : "1[v" + i + "]1");
                }
            }
            // One of them fails, and none has been.
            same(state(() -> execute(c, "insert into jd_several values (50, 'x'); select 1 / 0")), "22012");
            same(value(c, "select count(*) from jd_several where k = 50"), "0");
        });
        modes("results: RETURNING", KINDS, (c, kind) -> {
            table(c, kind, "jd_returning", "k int primary key, v text default 'd'");
            same(rows(c, "insert into jd_returning values (1, 'a'), (2, default) returning v, k * 10"), "a,10|d,20");
            try (PreparedStatement s = c.prepareStatement("update jd_returning set v = v || ? where k = ? returning *")) {
                for (int i = 0; i < 8; i++) {
                    s.setString(1, String.valueOf(i));
                    s.setInt(2, 1);
                    ok(s.execute());
                    same(rows(s.getResultSet()), "1,a01234567".substring(0, 4 + i));
                }
            }
            same(rows(c, "with gone as (delete from jd_returning returning k) select sum(k) from gone"), "3");
        });
        modes("results: what columns are told of", KINDS, (c, kind) -> {
            table(c, kind, "jd_columns", "k int not null, \"Mixed\" varchar(10), n numeric(8,3), t timestamptz(2)");
            try (PreparedStatement s = c.prepareStatement(
                    "select k as key, \"Mixed\", n, t, k + 1 as more, 'x' from jd_columns where k > ?")) {
                s.setInt(1, 0);
                boolean simple = isSimple(c);
                var told = simple ? s.executeQuery().getMetaData() : s.getMetaData();
                StringBuilder all = new StringBuilder();
                for (int i = 1; i <= told.getColumnCount(); i++) {
                    var more = (PGResultSetMetaData) told;
                    all.append(told.getColumnLabel(i)).append(' ').append(more.getBaseColumnName(i)).append(' ')
                        .append(more.getBaseTableName(i)).append(' ').append(told.getColumnTypeName(i)).append(' ')
                        .append(told.getColumnType(i)).append(' ').append(told.getPrecision(i)).append(' ')
                        .append(told.getScale(i)).append(' ').append(told.isNullable(i)).append(' ')
                        .append(told.isAutoIncrement(i)).append(' ').append(told.getColumnDisplaySize(i)).append('|');
                }
                same(all.toString(), "key k jd_columns int4 4 10 0 0 false 11|Mixed Mixed jd_columns varchar 12 10 0 1 "
                    + "false 10|n n jd_columns numeric 2 8 3 1 false 10|t t jd_columns timestamptz 93 31 2 1 false 31|"
                    + "more   int4 4 10 0 2 false 11|?column?   text 12 2147483647 0 2 false 2147483647|");
                if (!simple) same(s.getParameterMetaData().getParameterTypeName(1), "int4");
            }
        });
        modes("results: nothing, and much", c -> {
            try (Statement s = c.createStatement()) {
                same(s.execute(""), false);
                same(s.execute("-- a comment"), false);
                same(s.execute(";;"), false);
                ok(s.execute("select"));
                s.setMaxRows(7);
                // Only the extended protocol can say how many rows at most.
                boolean extended = c.unwrap(PGConnection.class).getPreferQueryMode().value().startsWith("extended")
                    && !c.unwrap(PGConnection.class).getPreferQueryMode().value().equals("extendedForPrepared");
                same(rows(s.executeQuery("select i from generate_series(1, 100) i")).split("\\|").length, extended ? 7 : 100);
                s.setMaxRows(0);
                ResultSet many = s.executeQuery("select i, repeat('x', 100) from generate_series(1, 50000) i");
                int n = 0;
                while (many.next()) n++;
                same(n, 50000);
            }
            try (PreparedStatement s = c.prepareStatement("select length(?), length(?)")) {
                for (int i = 0; i < 6; i++) {
                    s.setString(1, "é".repeat(1000000));
                    s.setBytes(2, new byte[2000000]);
                    same(rows(s.executeQuery()), "1000000,2000000");
                }
            }
        });
    }

    private static void batches() {
        for (String rewritten : new String[] {"", "reWriteBatchedInserts=true", "prepareThreshold=1",
                "preferQueryMode=simple"}) {
            String how = rewritten.isEmpty() ? "default" : rewritten;
            tables("batches: " + how, rewritten, KINDS, (c, kind) -> {
                table(c, kind, "jd_batch", "k int primary key, v text");
                try (Statement s = c.createStatement()) {
                    s.addBatch("insert into jd_batch values (1, 'a')");
                    s.addBatch("insert into jd_batch values (2, 'b'), (3, 'c')");
                    s.addBatch("update jd_batch set v = 'x'");
                    s.addBatch("create index on jd_batch (v)");
                    s.addBatch("delete from jd_batch where k = 3");
                    same(s.executeBatch(), new int[] {1, 2, 3, 0, 1});
                }
                try (PreparedStatement s = c.prepareStatement("insert into jd_batch values (?, ?)")) {
                    for (int round = 0; round < 3; round++) {
                        for (int i = 0; i < 1000; i++) {
                            s.setInt(1, 1000 * (round + 1) + i);
                            s.setString(2, "v" + i);
                            s.addBatch();
                        }
                        int[] counts = s.executeBatch();
                        same(counts.length, 1000);
                        int[] expected = new int[1000];
                        Arrays.fill(expected, rewritten.startsWith("reWrite") ? Statement.SUCCESS_NO_INFO : 1);
                        same(counts, expected);
                    }
                }
                same(rows(c, "select count(*), sum(k) from jd_batch"), "3002,7498503");
                try (PreparedStatement s = c.prepareStatement("update jd_batch set v = ? where k between ? and ?")) {
                    for (int i = 0; i < 300; i++) {
                        s.setString(1, "u" + i);
                        s.setInt(2, 1000 + i * 3);
                        s.setInt(3, 1000 + i * 3 + i % 3);
                        s.addBatch();
                    }
                    int[] counts = s.executeBatch();
                    for (int i = 0; i < 300; i++) same(counts[i], i % 3 + 1);
                }
                // A batch stops at what fails; without a transaction of its own none of it is kept. Simple statements
                // have one each, and the driver goes on behind what failed.
                for (boolean commits : new boolean[] {true, false}) {
                    c.setAutoCommit(commits);
                    try (PreparedStatement s = c.prepareStatement("insert into jd_batch values (?, 'n')")) {
                        for (int k : new int[] {9001, 9002, 1000, 9003}) {
                            s.setInt(1, k);
                            s.addBatch();
                        }
                        var e = (BatchUpdateException) failure(s::executeBatch);
                        same(e.getSQLState(), "23505");
                        same(e.getNextException().getSQLState(), "23505");
                        ok(e.getUpdateCounts().length == 4);
                    }
                    if (!commits) c.rollback();
                    c.setAutoCommit(true);
                    same(value(c, "select count(*) from jd_batch where k > 9000"), commits && isSimple(c) ? "3" : "0");
                    update(c, "delete from jd_batch where k > 9000");
                }
                try (PreparedStatement s = c.prepareStatement("delete from jd_batch where k = ?")) {
                    for (int k : new int[] {1, 1, 2, -1}) {
                        s.setInt(1, k);
                        s.addBatch();
                    }
                    same(s.executeBatch(), new int[] {1, 0, 1, 0});
                }
            });
        }
    }

    private static void keys() {
        modes("generated keys", KINDS, (c, kind) -> {
            table(c, kind, "jd_keys", "k serial primary key, v text, d date default '2024-01-02'");
            try (Statement s = c.createStatement()) {
                s.executeUpdate("insert into jd_keys (v) values ('a'), ('b')", Statement.RETURN_GENERATED_KEYS);
                same(rows(s.getGeneratedKeys()), "1,a,2024-01-02|2,b,2024-01-02");
                s.executeUpdate("insert into jd_keys (v) values ('c')", new String[] {"k", "d"});
                same(rows(s.getGeneratedKeys()), "3,2024-01-02");
            }
            try (PreparedStatement s = c.prepareStatement("insert into jd_keys (v) values (?)", new String[] {"k"})) {
                for (int i = 0; i < 8; i++) {
                    s.setString(1, "p" + i);
                    same(s.executeUpdate(), 1);
                    same(rows(s.getGeneratedKeys()), String.valueOf(4 + i));
                }
                for (int i = 0; i < 5; i++) {
                    s.setString(1, "b" + i);
                    s.addBatch();
                }
                same(s.executeBatch().length, 5);
                same(rows(s.getGeneratedKeys()), "12|13|14|15|16");
            }
            try (PreparedStatement s = c.prepareStatement("update jd_keys set v = 'u' where k < ?",
                    Statement.RETURN_GENERATED_KEYS)) {
                s.setInt(1, 3);
                same(s.executeUpdate(), 2);
                ResultSet keys = s.getGeneratedKeys();
                ok(keys.next() && keys.getString("v").equals("u") && keys.next() && !keys.next());
            }
            same(value(c, "select max(k) || ' ' || currval('jd_keys_k_seq') || ' ' || lastval() from jd_keys"),
                "16 16 16");
        });
        tables("generated keys: identity", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_identity", "k bigint generated always as identity primary key, v text");
            try (PreparedStatement s = c.prepareStatement("insert into jd_identity (v) values (?)",
                    Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 1; i <= 7; i++) {
                    s.setString(1, "x");
                    s.executeUpdate();
                    same(rows(s.getGeneratedKeys()), i + ",x");
                }
            }
            same(state(() -> update(c, "insert into jd_identity values (5, 'x')")), "428C9");
            same(update(c, "insert into jd_identity overriding system value values (50, 'x')"), 1);
        });
        tables("generated keys: many in one INSERT", "reWriteBatchedInserts=true", BOTH, (c, kind) -> {
            table(c, kind, "jd_keys", "k serial primary key, v text");
            try (PreparedStatement s = c.prepareStatement("insert into jd_keys (v) values (?)",
                    Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < 300; i++) {
                    s.setString(1, "v" + i);
                    s.addBatch();
                }
                s.executeBatch();
                ResultSet keys = s.getGeneratedKeys();
                for (int i = 0; i < 300; i++) {
                    ok(keys.next());
                    same(keys.getInt(1) + " " + keys.getString(2), (i + 1) + " v" + i);
                }
                ok(!keys.next());
            }
        });
    }

    private static void cursors() {
        modes("cursors: some rows at a time", KINDS, (c, kind) -> {
            table(c, kind, "jd_cursor", "k int primary key, v text");
            update(c, "insert into jd_cursor select i, 'v' || i from generate_series(1, 1000) i");
            c.setAutoCommit(false);
            for (String text : new String[] {"select k from jd_cursor where k > ? order by k",
                    "select k from jd_cursor where k > ?"}) {
                try (PreparedStatement s = c.prepareStatement(text)) {
                    s.setFetchSize(70);
                    for (int round = 0; round < 3; round++) {
                        s.setInt(1, 100);
                        long sum = 0;
                        int n = 0;
                        try (ResultSet r = s.executeQuery()) {
                            while (r.next()) {
                                sum += r.getInt(1);
                                n++;
                            }
                        }
                        same(n + " " + sum, "900 495450");
                    }
                }
            }
            // Two at once, and what is done between.
            try (PreparedStatement a = c.prepareStatement("select k from jd_cursor order by k");
                    PreparedStatement b = c.prepareStatement("select v from jd_cursor order by k desc")) {
                a.setFetchSize(3);
                b.setFetchSize(5);
                ResultSet left = a.executeQuery();
                ResultSet right = b.executeQuery();
                for (int i = 1; i <= 40; i++) {
                    ok(left.next() && right.next());
                    same(left.getInt(1) + right.getString(1), i + "v" + (1001 - i));
                    same(update(c, "update jd_cursor set v = v || '!' where k = " + (1001 - i)), 1);
                }
                left.close();
                c.commit();
                // Its rows have gone with the transaction; those of a simple query are all there already.
                int more = 0;
                String ended = null;
                try {
                    while (right.next()) more++;
                } catch (SQLException e) {
                    ended = e.getSQLState();
                }
                boolean simple = c.unwrap(PGConnection.class).getPreferQueryMode().value().equals("simple");
                same(more + " " + ended, simple ? "960 null" : "0 34000");
            }
            c.rollback();
            same(value(c, "select count(*) from jd_cursor where v like '%!'"), "40");
            c.commit();
        });
        tables("cursors: an error later", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_cursor", "k int primary key");
            update(c, "insert into jd_cursor select generate_series(1, 100)");
            c.setAutoCommit(false);
            try (PreparedStatement s = c.prepareStatement(
                    "select 1 / (50 - k) from (select k from jd_cursor order by k offset 0) t")) {
                s.setFetchSize(10);
                ResultSet r = s.executeQuery();
                for (int i = 0; i < 40; i++) ok(r.next());
                same(state(() -> {
                    while (r.next()) r.getInt(1);
                }), "22012");
            }
            same(state(() -> value(c, "select 1")), "25P02");
            c.rollback();
        });
        tables("cursors: scrolled", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_cursor", "k int primary key");
            update(c, "insert into jd_cursor select generate_series(1, 50)");
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
                ResultSet r = s.executeQuery("select k from jd_cursor order by k");
                ok(r.last());
                same(r.getRow(), 50);
                ok(r.absolute(-3) && r.getInt(1) == 48 && r.relative(-7) && r.getInt(1) == 41 && r.first() && r.getInt(1) == 1);
                ok(!r.previous() && r.isBeforeFirst());
            }
        });
        tables("cursors: of functions", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_cursor", "k int primary key");
            update(c, "insert into jd_cursor select generate_series(1, 10)");
            execute(c, "create or replace function jd_open() returns refcursor language plpgsql as $$ declare r refcursor; "
                + "begin open r for select k from jd_cursor order by k; return r; end $$");
            c.setAutoCommit(false);
            try (CallableStatement s = c.prepareCall("{? = call jd_open()}")) {
                s.registerOutParameter(1, Types.REF_CURSOR);
                s.execute();
                same(rows((ResultSet) s.getObject(1)), "1|2|3|4|5|6|7|8|9|10");
            }
            c.commit();
        });
    }

    private static void updatable() {
        tables("updatable results", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_updatable", "k int primary key, v text, n numeric default 7");
            update(c, "insert into jd_updatable values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)");
            for (int type : new int[] {ResultSet.TYPE_FORWARD_ONLY, ResultSet.TYPE_SCROLL_INSENSITIVE}) {
                try (Statement s = c.createStatement(type, ResultSet.CONCUR_UPDATABLE)) {
                    ResultSet r = s.executeQuery("select k, v, n from jd_updatable order by k");
                    ok(r.next());
                    r.updateString("v", "changed " + type);
                    r.updateRow();
                    ok(r.next());
                    r.updateNull(3);
                    r.updateRow();
                    r.moveToInsertRow();
                    r.updateInt(1, type);
                    r.updateString(2, "new");
                    r.insertRow();
                    r.moveToCurrentRow();
                    ok(r.next());
                    r.deleteRow();
                }
                same(rows(c, "select * from jd_updatable order by k"),
                    "1,changed " + type + ",1|2,b,null|" + type + ",new,7");
                update(c, "delete from jd_updatable where k > 1000");
                update(c, "insert into jd_updatable values (3, 'c', 3)");
            }
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet r = s.executeQuery("select * from jd_updatable where k = 1");
                ok(r.next());
                update(c, "update jd_updatable set v = 'elsewhere' where k = 1");
                r.refreshRow();
                same(r.getString("v"), "elsewhere");
            }
        });
    }

    private static void errors() {
        for (String mode : new String[] {"preferQueryMode=simple", "prepareThreshold=1"}) {
            tables("errors: fields, " + mode, mode, KINDS, (c, kind) -> {
                table(c, kind, "jd_errors", "k int primary key, v text not null, n int constraint positive check (n > 0)");
                update(c, "insert into jd_errors values (1, 'a', 1)");
                same(told(c, "insert into jd_errors values (1, 'b', 1)"), "ERROR 23505 duplicate key value violates unique "
                    + "constraint \"jd_errors_pkey\" / Key (k)=(1) already exists. / null / 0 / jd_errors / null / jd_errors_pkey");
                same(told(c, "insert into jd_errors (k) values (2)"), "ERROR 23502 null value in column \"v\" of relation "
                    + "\"jd_errors\" violates not-null constraint / Failing row contains (2, null, null). / null / 0 / "
                    + "jd_errors / v / null");
                same(told(c, "insert into jd_errors values (2, 'b', 0)"), "ERROR 23514 new row for relation \"jd_errors\" "
                    + "violates check constraint \"positive\" / Failing row contains (2, b, 0). / null / 0 / jd_errors / null / "
                    + "positive");
                same(told(c, "select nothing from jd_errors"),
                    "ERROR 42703 column \"nothing\" does not exist / null / null / 8 / null / null / null");
                same(told(c, "select * from jd_nowhere"),
                    "ERROR 42P01 relation \"jd_nowhere\" does not exist / null / null / 15 / null / null / null");
                same(told(c, "selec 1"), "ERROR 42601 syntax error at or near \"selec\" / null / null / 1 / null / null / null");
                same(told(c, "select 1 / (k - 1) from jd_errors"),
                    "ERROR 22012 division by zero / null / null / 0 / null / null / null");
                same(told(c, "select sum(v) from jd_errors"), "ERROR 42883 function sum(text) does not exist / null / No function "
                    + "matches the given name and argument types. You might need to add explicit type casts. / 8 / null / null / "
                    + "null");
                try (PreparedStatement s = c.prepareStatement("insert into jd_errors values (?, ?, ?)")) {
                    for (int i = 0; i < 7; i++) {
                        s.setInt(1, 1);
                        s.setString(2, "x");
                        s.setInt(3, 1);
                        same(state(s::executeUpdate), "23505");
                        s.setInt(1, 10 + i);
                        same(s.executeUpdate(), 1);
                    }
                }
                same(value(c, "select count(*) from jd_errors"), "8");
            });
        }
        modes("errors: values of parameters", c -> {
            try (PreparedStatement s = c.prepareStatement("select ?::int")) {
                for (int i = 0; i < 7; i++) {
                    s.setString(1, "x");
                    same(state(s::executeQuery), "22P02");
                    s.setString(1, "5");
                    same(rows(s.executeQuery()), "5");
                }
            }
            try (PreparedStatement s = c.prepareStatement("select ?")) {
                same(state(s::executeQuery), "22023");
            }
        });
        connected("warnings", "", c -> {
            try (Statement s = c.createStatement()) {
                s.execute("do $$ begin raise notice 'one'; raise warning 'two' using errcode = 'ABC12'; end $$");
                var first = s.getWarnings();
                same(first.getMessage() + " " + first.getSQLState(), "one 00000");
                same(first.getNextWarning().getMessage() + " " + first.getNextWarning().getSQLState(), "two ABC12");
            }
        });
    }

    private static String told(Connection c, String text) throws Exception {
        ServerErrorMessage m;
        if (text.length() % 2 == 0) {
            m = ((PSQLException) failure(() -> execute(c, text))).getServerErrorMessage();
        } else {
            try (PreparedStatement s = c.prepareStatement(text)) {
                m = ((PSQLException) failure(s::execute)).getServerErrorMessage();
            }
        }
        return m.getSeverity() + " " + m.getSQLState() + " " + m.getMessage() + " / " + m.getDetail() + " / " + m.getHint() + " / "
            + m.getPosition() + " / " + m.getTable() + " / " + m.getColumn() + " / " + m.getConstraint();
    }

    private static void transactions() {
        modes("transactions: savepoints", KINDS, (c, kind) -> {
            table(c, kind, "jd_tx", "k int primary key, v text");
            c.setAutoCommit(false);
            update(c, "insert into jd_tx values (1, 'a')");
            Savepoint named = c.setSavepoint("named one");
            update(c, "insert into jd_tx values (2, 'b')");
            same(state(() -> update(c, "insert into jd_tx values (1, 'again')")), "23505");
            same(state(() -> value(c, "select 1")), "25P02");
            c.rollback(named);
            Savepoint second = c.setSavepoint();
            update(c, "insert into jd_tx values (3, 'c'), (4, 'd')");
            c.releaseSavepoint(second);
            Savepoint third = c.setSavepoint();
            update(c, "delete from jd_tx");
            c.rollback(third);
            c.commit();
            same(rows(c, "select * from jd_tx order by k"), "1,a|3,c|4,d");
            update(c, "delete from jd_tx");
            c.rollback();
            same(value(c, "select count(*) from jd_tx"), "3");
            c.rollback();
            // COMMIT of what has failed is a ROLLBACK.
            update(c, "insert into jd_tx values (5, 'e')");
            same(state(() -> update(c, "insert into jd_tx values (5, 'e')")), "23505");
            c.commit();
            c.rollback();
            same(value(c, "select count(*) from jd_tx"), "3");
        });
        for (String autosave : new String[] {"always", "conservative"}) {
            tables("transactions: autosave=" + autosave, "autosave=" + autosave + "&prepareThreshold=1", KINDS, (c, kind) -> {
                table(c, kind, "jd_tx", "k int primary key, v text");
                c.setAutoCommit(false);
                try (PreparedStatement s = c.prepareStatement("insert into jd_tx values (?, 'x')")) {
                    for (int i = 1; i <= 5; i++) {
                        s.setInt(1, i);
                        same(s.executeUpdate(), 1);
                        if (autosave.equals("always")) {
                            same(state(s::executeUpdate), "23505");
                            same(state(() -> value(c, "select nothing")), "42703");
                        }
                    }
                }
                c.commit();
                try (PreparedStatement s = c.prepareStatement("select * from jd_tx order by k limit 1")) {
                    for (int i = 0; i < 3; i++) same(rows(s.executeQuery()), "1,x");
                    c.commit();
                    // Its plan does not fit any more, and is made anew behind a savepoint.
                    update(c, "alter table jd_tx add w int default 9");
                    c.commit();
                    same(rows(s.executeQuery()), "1,x,9");
                    same(rows(s.executeQuery()), "1,x,9");
                    try (Connection other = connect("")) {
                        if (!kind.equals("temporary")) {
                            c.commit();
                            update(other, "alter table jd_tx drop w");
                            same(rows(s.executeQuery()), "1,x");
                        }
                    }
                }
                c.commit();
            });
        }
        tables("transactions: isolation", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_tx", "k int primary key, v int");
            update(c, "insert into jd_tx select i, 0 from generate_series(1, 10) i");
            try (Connection other = connect("")) {
                for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ,
                        Connection.TRANSACTION_SERIALIZABLE}) {
                    c.setAutoCommit(false);
                    c.setTransactionIsolation(level);
                    same(c.getTransactionIsolation(), level);
                    String before = value(c, "select sum(v) from jd_tx");
                    update(other, "update jd_tx set v = v + 1");
                    String after = value(c, "select sum(v) from jd_tx");
                    same(before.equals(after), level != Connection.TRANSACTION_READ_COMMITTED);
                    if (level != Connection.TRANSACTION_READ_COMMITTED) {
                        same(state(() -> update(c, "update jd_tx set v = 5 where k = 3")), "40001");
                    }
                    c.rollback();
                    c.setAutoCommit(true);
                }
            }
            c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            c.setReadOnly(true);
            ok(c.isReadOnly());
            c.setAutoCommit(false);
            same(state(() -> update(c, "update jd_tx set v = 1")), "25006");
            c.rollback();
            c.setReadOnly(false);
            same(update(c, "update jd_tx set v = 1"), 10);
            c.commit();
        });
        for (String readOnly : new String[] {"ignore", "transaction", "always"}) {
            connected("transactions: readOnlyMode=" + readOnly, "readOnlyMode=" + readOnly, c -> {
                table(c, "distributed", "jd_read", "k int");
                c.setReadOnly(true);
                same(value(c, "show transaction_read_only"), readOnly.equals("always") ? "on" : "off");
                String[] refused = new String[2];
                for (boolean commits : new boolean[] {true, false}) {
                    c.setAutoCommit(commits);
                    try {
                        update(c, "insert into jd_read values (1)");
                        refused[commits ? 0 : 1] = "no";
                    } catch (SQLException e) {
                        refused[commits ? 0 : 1] = e.getSQLState();
                    }
                    if (!commits) c.rollback();
                }
                same(refused, readOnly.equals("ignore") ? new String[] {"no", "no"}
                    : readOnly.equals("always") ? new String[] {"25006", "25006"} : new String[] {"no", "25006"});
            });
        }
        tables("transactions: locks", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_lock", "k int primary key, v int");
            update(c, "insert into jd_lock values (1, 0), (2, 0)");
            c.setAutoCommit(false);
            same(rows(c, "select k from jd_lock where k = 1 for update"), "1");
            try (Connection other = connect("options=-c%20lock_timeout=100ms")) {
                same(state(() -> value(other, "select k from jd_lock where k = 1 for update nowait")), "55P03");
                same(state(() -> update(other, "update jd_lock set v = 1 where k = 1")), "55P03");
                same(rows(other, "select k from jd_lock order by k for update skip locked"), "2");
                same(rows(other, "select v from jd_lock where k = 1"), "0");
            }
            c.rollback();
        });
    }

    private static void prepared() {
        modes("prepared: again and again", KINDS, (c, kind) -> {
            table(c, kind, "jd_again", "k int primary key, v text, n numeric");
            update(c, "insert into jd_again select i, 'v' || i, i / 4.0 from generate_series(1, 50) i");
            try (PreparedStatement one = c.prepareStatement("select v, n from jd_again where k = ?");
                    PreparedStatement many = c.prepareStatement("select count(*), sum(n) from jd_again where k <= ?");
                    PreparedStatement list = c.prepareStatement("select count(*) from jd_again where k = any(?)")) {
                for (int i = 1; i <= 12; i++) {
                    one.setInt(1, i);
                    ResultSet r = one.executeQuery();
                    ok(r.next());
                    same(r.getString(1) + " " + r.getBigDecimal(2).doubleValue(), "v" + i + " " + i / 4.0);
                    many.setInt(1, i);
                    r = many.executeQuery();
                    ok(r.next());
                    same(r.getInt(1) + " " + r.getDouble(2), i + " " + i * (i + 1) / 8.0);
                    list.setArray(1, c.createArrayOf("int4", new Object[] {i, i + 1, 99}));
                    same(rows(list.executeQuery()), "2");
                    // Of another type, and none.
                    one.setObject(1, null);
                    same(rows(one.executeQuery()), "");
                    one.setLong(1, i);
                    ok(rows(one.executeQuery()).startsWith("v" + i + ","));
                    one.setString(1, "x");
                    if (isSimple(c)) {
                        same(state(one::executeQuery), "22P02");
                    } else {
                        same(state(one::executeQuery), "42883");
                    }
                }
            }
        });
        modes("prepared: the table changes", KINDS, (c, kind) -> {
            table(c, kind, "jd_changing", "k int primary key, v text");
            update(c, "insert into jd_changing values (1, 'a')");
            // Outside of a transaction block the driver prepares anew by itself.
            try (PreparedStatement s = c.prepareStatement("select * from jd_changing where k = ?")) {
                s.setInt(1, 1);
                for (int i = 0; i < 7; i++) same(rows(s.executeQuery()), "1,a");
                update(c, "alter table jd_changing add w int default 3");
                for (int i = 0; i < 7; i++) same(rows(s.executeQuery()), "1,a,3");
                update(c, "alter table jd_changing drop v");
                same(rows(s.executeQuery()), "1,3");
                update(c, "alter table jd_changing alter w type text using 'w' || w");
                same(rows(s.executeQuery()), "1,w3");
            }
            table(c, kind, "jd_changing", "k int primary key, other date");
            try (PreparedStatement s = c.prepareStatement("select * from jd_changing where k = ?")) {
                s.setInt(1, 1);
                same(rows(s.executeQuery()), "");
            }
        });
        tables("prepared: the table changes in a transaction", "prepareThreshold=1", KINDS, (c, kind) -> {
            table(c, kind, "jd_changing", "k int primary key, v text");
            update(c, "insert into jd_changing values (1, 'a')");
            try (PreparedStatement s = c.prepareStatement("select * from jd_changing where k = 1")) {
                for (int i = 0; i < 3; i++) same(rows(s.executeQuery()), "1,a");
                c.setAutoCommit(false);
                update(c, "alter table jd_changing add w int");
                SQLException e = failure(s::executeQuery);
                same(e.getSQLState() + " " + ((PSQLException) e).getServerErrorMessage().getMessage() + " "
                    + ((PSQLException) e).getServerErrorMessage().getRoutine(),
                    "0A000 cached plan must not change result type RevalidateCachedQuery");
                c.rollback();
                same(rows(s.executeQuery()), "1,a");
                c.rollback();
            }
        });
        connected("prepared: DEALLOCATE ALL and DISCARD ALL", "prepareThreshold=1", c -> {
            try (PreparedStatement s = c.prepareStatement("select ?::int + 1")) {
                for (String gone : new String[] {"deallocate all", "discard all"}) {
                    for (int i = 0; i < 3; i++) {
                        s.setInt(1, i);
                        same(rows(s.executeQuery()), String.valueOf(i + 1));
                    }
                    execute(c, gone);
                    s.setInt(1, 7);
                    same(rows(s.executeQuery()), "8");
                }
            }
        });
        tables("prepared: many different ones", "prepareThreshold=1&preparedStatementCacheQueries=10", KINDS, (c, kind) -> {
            table(c, kind, "jd_many", "k int primary key, v int");
            update(c, "insert into jd_many select i, i from generate_series(1, 20) i");
            for (int round = 0; round < 3; round++) {
                for (int i = 1; i <= 30; i++) {
                    try (PreparedStatement s = c.prepareStatement("select v + " + i + " from jd_many where k = ?")) {
                        s.setInt(1, 5);
                        same(rows(s.executeQuery()), String.valueOf(5 + i));
                    }
                }
            }
            // Those that the driver has forgotten are closed, some of them later.
            int kept = Integer.parseInt(value(c, "select count(*) from pg_prepared_statements"));
            ok(kept >= 1 && kept < 30);
        });
        connected("prepared: the search path changes", "prepareThreshold=1", c -> {
            execute(c, "drop schema if exists jd_a cascade; drop schema if exists jd_b cascade; create schema jd_a; "
                + "create schema jd_b; create table jd_a.t (v text); create table jd_b.t (v text, w int); "
                + "insert into jd_a.t values ('a'); insert into jd_b.t values ('b', 1)");
            c.setSchema("jd_a");
            same(c.getSchema(), "jd_a");
            try (PreparedStatement s = c.prepareStatement("select * from t")) {
                for (int i = 0; i < 3; i++) same(rows(s.executeQuery()), "a");
                c.setSchema("jd_b");
                same(rows(s.executeQuery()), "b,1");
                c.setSchema("jd_a");
                same(rows(s.executeQuery()), "a");
            }
            execute(c, "drop schema jd_a cascade; drop schema jd_b cascade");
        });
    }

    private static void cancelled() {
        modes("cancelled: by a request", new String[] {"local", "distributed"}, (c, kind) -> {
            table(c, kind, "jd_slow", "k int");
            update(c, "insert into jd_slow select generate_series(1, 100)");
            try (PreparedStatement s = c.prepareStatement("select pg_sleep(0.3) from jd_slow")) {
                for (int i = 0; i < 2; i++) {
                    Thread other = new Thread(() -> {
                        try {
                            Thread.sleep(100);
                            s.cancel();
                        } catch (InterruptedException | SQLException e) {
                            throw new AssertionError(e);
                        }
                    });
                    other.start();
                    same(state(s::executeQuery), "57014");
                    other.join();
                }
            }
            same(value(c, "select 1"), "1");
        });
        modes("cancelled: setQueryTimeout", new String[] {"local", "distributed"}, (c, kind) -> {
            table(c, kind, "jd_slow", "k int");
            update(c, "insert into jd_slow select generate_series(1, 50)");
            try (Statement s = c.createStatement()) {
                s.setQueryTimeout(1);
                same(state(() -> s.executeQuery("select pg_sleep(0.5) from jd_slow")), "57014");
                s.setQueryTimeout(20);
                same(rows(s.executeQuery("select count(*) from jd_slow")), "50");
            }
            execute(c, "set statement_timeout to 150");
            try (PreparedStatement s = c.prepareStatement("update jd_slow set k = k where pg_sleep(0.3) is not null")) {
                for (int i = 0; i < 2; i++) same(state(s::executeUpdate), "57014");
            }
        });
    }

    private static void routines() {
        for (String mode : new String[] {"", "escapeSyntaxCallMode=callIfNoReturn", "escapeSyntaxCallMode=call"}) {
            connected("routines [" + mode + "]", mode, c -> {
                execute(c, "create or replace function jd_add(a int, b int) returns int language sql as 'select a + b'; "
                    + "create or replace function jd_two(a int, out b int, out c text) language sql as $$ select a * 2, 'x' $$; "
                    + "create or replace procedure jd_proc(a int, inout b int, inout c text default 'd') language plpgsql "
                    + "as $$ begin b := a + b; c := c || b; end $$; "
                    + "create or replace function jd_set(n int) returns setof int language sql as 'select generate_series(1, n)'");
                if (!mode.endsWith("=call")) {
                    try (CallableStatement s = c.prepareCall("{? = call jd_add(?, ?)}")) {
                        for (int i = 0; i < 7; i++) {
                            s.registerOutParameter(1, Types.INTEGER);
                            s.setInt(2, i);
                            s.setInt(3, 5);
                            s.execute();
                            same(s.getInt(1), i + 5);
                        }
                    }
                    try (CallableStatement s = c.prepareCall("{call jd_two(?, ?, ?)}")) {
                        if (mode.isEmpty()) {
                            s.setInt(1, 4);
                            s.registerOutParameter(2, Types.INTEGER);
                            s.registerOutParameter(3, Types.VARCHAR);
                            s.execute();
                            same(s.getInt(2) + s.getString(3), "8x");
                        }
                    }
                }
                try (CallableStatement s = c.prepareCall("call jd_proc(?, ?, ?)")) {
                    for (int i = 0; i < 7; i++) {
                        s.setInt(1, 2);
                        s.setInt(2, i);
                        s.setString(3, "t");
                        s.registerOutParameter(2, Types.INTEGER);
                        s.registerOutParameter(3, Types.VARCHAR);
                        s.execute();
                        same(s.getInt(2) + s.getString(3), (i + 2) + "t" + (i + 2));
                    }
                }
                try (PreparedStatement s = c.prepareStatement("select * from jd_set(?)")) {
                    s.setInt(1, 3);
                    same(rows(s.executeQuery()), "1|2|3");
                }
            });
        }
        connected("routines: a procedure that commits", "", c -> {
            table(c, "distributed", "jd_commits", "k int");
            execute(c, "drop table if exists jd_log; create table jd_log (k int)", "create or replace procedure jd_steps(n int) "
                + "language plpgsql as $$ begin for i in 1..n loop insert into jd_log values (i); if i % 2 = 0 then commit; "
                + "else rollback; end if; end loop; end $$");
            try (CallableStatement s = c.prepareCall("call jd_steps(?)")) {
                s.setInt(1, 6);
                s.execute();
            }
            same(rows(c, "select k from jd_log order by k"), "2|4|6");
            c.setAutoCommit(false);
            same(state(() -> execute(c, "call jd_steps(2)")), "2D000");
            c.rollback();
        });
        connected("routines: triggers", "", c -> {
            table(c, "distributed", "jd_fired", "k int primary key, v text");
            execute(c, "create or replace function jd_fire() returns trigger language plpgsql as "
                + "$$ begin new.v := upper(new.v); raise notice 'fired %', new.k; return new; end $$",
                "create trigger fire before insert on jd_fired for each row execute function jd_fire()");
            try (PreparedStatement s = c.prepareStatement("insert into jd_fired values (?, ?) returning v")) {
                s.setInt(1, 5);
                s.setString(2, "abc");
                same(rows(s.executeQuery()), "ABC");
                same(s.getWarnings().getMessage(), "fired 5");
            }
        });
    }

    private Statements() {}
}

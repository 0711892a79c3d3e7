package drivers;

import static drivers.Suite.connect;
import static drivers.Suite.connected;
import static drivers.Suite.distribute;
import static drivers.Suite.execute;
import static drivers.Suite.KINDS;
import static drivers.Suite.modes;
import static drivers.Suite.ok;
import static drivers.Suite.rows;
import static drivers.Suite.same;
import static drivers.Suite.state;
import static drivers.Suite.table;
import static drivers.Suite.tables;
import static drivers.Suite.test;
import static drivers.Suite.update;
import static drivers.Suite.value;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.concurrent.Executors;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.copy.CopyOut;

/** Connections and what they are set to. */
final class Connections {
    private static final String[] BOTH = {"local", "distributed"};

    static void add() {
        settings();
        transactions();
        schemas();
        timeouts();
        results();
        notifications();
        copies();
        parameters();
    }

    private static CopyManager copier(Connection c) throws Exception {
        return c.unwrap(PGConnection.class).getCopyAPI();
    }

    private static void settings() {
        for (String mode : new String[] {"readOnlyMode=transaction", "readOnlyMode=always", "readOnlyMode=ignore"}) {
            tables("connections: setReadOnly, " + mode, mode, BOTH, (c, kind) -> {
                table(c, kind, "jd_read_only", "k int primary key");
                update(c, "insert into jd_read_only values (1), (2)");
                c.setReadOnly(true);
                ok(c.isReadOnly());
                for (boolean commits : new boolean[] {true, false}) {
                    c.setAutoCommit(commits);
                    boolean refused = mode.endsWith("always") || mode.endsWith("transaction") && !commits;
                    same(value(c, "select count(*) from jd_read_only"), "2");
                    String got = "none";
                    try {
                        update(c, "update jd_read_only set k = k where k = 1");
                    } catch (java.sql.SQLException e) {
                        got = e.getSQLState();
                    }
                    same(got, refused ? "25006" : "none");
                    if (!commits) c.rollback();
                }
                c.setAutoCommit(true);
                c.setReadOnly(false);
                same(update(c, "delete from jd_read_only"), 2);
            });
        }
        modes("connections: autocommit", KINDS, (c, kind) -> {
            ok(c.getAutoCommit());
            table(c, kind, "jd_auto", "k int primary key");
            c.setAutoCommit(false);
            update(c, "insert into jd_auto values (1)");
            c.rollback();
            same(value(c, "select count(*) from jd_auto"), "0");
            update(c, "insert into jd_auto values (2)");
            c.setAutoCommit(true);
            same(rows(c, "select k from jd_auto"), "2");
            same(state(c::commit), "25P01");
            same(state(c::rollback), "25P01");
            c.setAutoCommit(false);
            update(c, "insert into jd_auto values (3)");
            same(state(() -> c.setReadOnly(true)), "25001");
            same(state(() -> c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE)), "25001");
            c.commit();
            same(value(c, "select count(*) from jd_auto"), "2");
            c.rollback();
        });
        for (int[] level : new int[][] {{Connection.TRANSACTION_READ_UNCOMMITTED},
            {Connection.TRANSACTION_READ_COMMITTED},
                {Connection.TRANSACTION_REPEATABLE_READ}, {Connection.TRANSACTION_SERIALIZABLE}}) {
            tables("connections: isolation " + level[0], "", BOTH, (c, kind) -> {
                same(c.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
                table(c, kind, "jd_isolation", "k int primary key, v int");
                update(c, "insert into jd_isolation values (1, 1), (2, 2)");
                c.setTransactionIsolation(level[0]);
                same(c.getTransactionIsolation(), level[0]);
                c.setAutoCommit(false);
                same(value(c, "select v from jd_isolation where k = 1"), "1");
                try (Connection other = connect("")) {
                    update(other, "update jd_isolation set v = 10 where k = 1");
                }
                boolean stays = level[0] >= Connection.TRANSACTION_REPEATABLE_READ;
                same(value(c, "select v from jd_isolation where k = 1"), stays ? "1" : "10");
                String got = "none";
                try {
                    update(c, "update jd_isolation set v = v + 1 where k = 1");
                } catch (java.sql.SQLException e) {
                    got = e.getSQLState();
                }
                same(got, stays ? "40001" : "none");
                c.rollback();
                same(value(c, "select v from jd_isolation where k = 1"), "10");
                c.rollback();
            });
        }
        connected("connections: isValid, warnings, client info", "ApplicationName=first", c -> {
            ok(c.isValid(5));
            same(c.getClientInfo("ApplicationName"), "first");
            c.setClientInfo("ApplicationName", "second");
            same(value(c, "show application_name"), "second");
            execute(c, "do $$ begin raise warning 'careful'; end $$");
            ok(c.getWarnings() == null);
            try (Statement s = c.createStatement()) {
                s.execute("do $$ begin raise warning 'careful'; raise notice 'more'; end $$");
                same(s.getWarnings().getMessage() + s.getWarnings().getNextWarning().getMessage(), "carefulmore");
                same(s.getWarnings().getSQLState(), "01000");
                s.clearWarnings();
                ok(s.getWarnings() == null);
            }
            c.setAutoCommit(false);
            same(state(() -> value(c, "select 1 / 0")), "22012");
            ok(c.isValid(5));
            same(state(() -> value(c, "select 1")), "25P02");
            c.rollback();
            ok(c.isValid(0));
            c.close();
            ok(!c.isValid(5) && c.isClosed());
            same(state(c::createStatement), "08003");
        });
        connected("connections: a backend that was ended", "", c -> {
            int id = c.unwrap(PGConnection.class).getBackendPID();
            ok(id != 0);
            try (Connection other = connect("")) {
                same(value(other, "select pg_terminate_backend(" + value(c, "select pg_backend_pid()") + ")"), "t");
            }
            ok(state(() -> {
                for (int i = 0; i < 50; i++) {
                    value(c, "select 1");
                    Thread.sleep(20);
                }
            }).matches("57P01|08006"));
            ok(!c.isValid(5) && c.isClosed());
        });
    }

    private static void transactions() {
        modes("connections: savepoints", KINDS, (c, kind) -> {
            table(c, kind, "jd_saved", "k int primary key");
            c.setAutoCommit(false);
            update(c, "insert into jd_saved values (1)");
            Savepoint a = c.setSavepoint("a");
            same(a.getSavepointName(), "a");
            update(c, "insert into jd_saved values (2)");
            Savepoint b = c.setSavepoint();
            same(b.getSavepointId() >= 0, true);
            same(state(() -> update(c, "insert into jd_saved values (1)")), "23505");
            c.rollback(b);
            update(c, "insert into jd_saved values (3)");
            same(value(c, "select sum(k) from jd_saved"), "6");
            c.rollback(a);
            same(value(c, "select sum(k) from jd_saved"), "1");
            c.releaseSavepoint(a);
            same(state(a::getSavepointName), "3B000");
            Savepoint odd = c.setSavepoint("odd \"name");
            update(c, "insert into jd_saved values (4)");
            c.releaseSavepoint(odd);
            c.commit();
            same(rows(c, "select k from jd_saved order by k"), "1|4");
            c.commit();
        });
        for (String save : new String[] {"always", "conservative", "never"}) {
            tables("connections: autosave=" + save, "autosave=" + save, KINDS, (c, kind) -> {
                table(c, kind, "jd_saved", "k int primary key");
                c.setAutoCommit(false);
                update(c, "insert into jd_saved values (1)");
                for (int i = 0; i < 7; i++) {
                    try (PreparedStatement s = c.prepareStatement("insert into jd_saved values (?)")) {
                        s.setInt(1, 1);
                        same(state(s::executeUpdate), i > 0 && !save.equals("always") ? "25P02" : "23505");
                    }
                }
                if (save.equals("always")) {
                    update(c, "insert into jd_saved values (2)");
                    c.commit();
                } else {
                    c.rollback();
                }
                same(value(c, "select count(*) from jd_saved"), save.equals("always") ? "2" : "0");
                c.commit();
            });
        }
        tables("connections: prepared transactions", "", BOTH, (c, kind) -> {
            same(state(() -> execute(c, "rollback prepared 'jd_none'")), "42704");
            same(state(() -> execute(c, "commit prepared 'jd_none'")), "42704");
        });
    }

    private static void schemas() {
        connected("connections: setSchema", "", c -> {
            same(c.getSchema(), "public");
            execute(c, "drop schema if exists jd_one, jd_two cascade", "create schema jd_one", "create schema jd_two");
            for (String name : new String[] {"jd_one", "jd_two"}) {
                c.setSchema(name);
                same(c.getSchema(), name);
                table(c, "distributed", "jd_in", "k int primary key, v text");
                try (PreparedStatement s = c.prepareStatement("insert into jd_in values (?, ?)")) {
                    for (int i = 0; i < 7; i++) {
                        s.setInt(1, i);
                        s.setString(2, name);
                        same(s.executeUpdate(), 1);
                    }
                }
            }
            try (PreparedStatement s = c.prepareStatement("select v from jd_in where k = ?")) {
                for (int i = 0; i < 14; i++) {
                    c.setSchema(i % 2 == 0 ? "jd_one" : "jd_two");
                    s.setInt(1, i / 2);
                    same(rows(s.executeQuery()), i % 2 == 0 ? "jd_one" : "jd_two");
                }
            }
            c.setAutoCommit(false);
            c.setSchema("jd_one");
            c.commit();
            c.setSchema("jd_two");
            c.rollback();
            same(c.getSchema(), "jd_one");
            same(value(c, "select max(v) from jd_in"), "jd_one");
            c.commit();
            c.setAutoCommit(true);
            execute(c, "drop schema jd_one, jd_two cascade");
        });
        connected("connections: the database's name", "", c -> {
            same(c.getCatalog(), System.getenv("PGDATABASE"));
            same(value(c, "select current_database()"), System.getenv("PGDATABASE"));
            same(value(c, "select current_user"), System.getenv("PGUSER"));
        });
    }

    private static void timeouts() {
        test("connections: network timeout", () -> {
            try (Connection c = connect("")) {
                same(c.getNetworkTimeout(), 0);
                c.setNetworkTimeout(Executors.newSingleThreadExecutor(), 400);
                same(c.getNetworkTimeout(), 400);
                same(value(c, "select 1"), "1");
                same(state(() -> value(c, "select pg_sleep(3)")), "08006");
                ok(c.isClosed());
            }
        });
        test("connections: socketTimeout", () -> {
            try (Connection c = connect("socketTimeout=1")) {
                same(value(c, "select 1"), "1");
                same(state(() -> value(c, "select pg_sleep(3)")), "08006");
            }
        });
        tables("connections: cancelQuery of another thread", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_slow", "k int");
            update(c, "insert into jd_slow select generate_series(1, 40)");
            for (String text : new String[] {"select pg_sleep(10)", "select pg_sleep(1) from jd_slow",
                    "update jd_slow set k = k where pg_sleep(1) is not null"}) {
                Thread other = new Thread(() -> {
                    try {
                        Thread.sleep(150);
                        c.unwrap(PGConnection.class).cancelQuery();
                    } catch (Exception e) {
                        throw new AssertionError(e);
                    }
                });
                other.start();
                same(state(() -> execute(c, text)), "57014");
                other.join();
                same(value(c, "select count(*) from jd_slow"), "40");
            }
        });
        tables("connections: lock_timeout", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_locked", "k int primary key, v int");
            update(c, "insert into jd_locked values (1, 1)");
            c.setAutoCommit(false);
            update(c, "update jd_locked set v = 2 where k = 1");
            try (Connection other = connect("options=-c%20lock_timeout=200")) {
                same(state(() -> update(other, "update jd_locked set v = 3 where k = 1")), "55P03");
                same(state(() -> value(other, "select * from jd_locked where k = 1 for update nowait")), "55P03");
                same(value(other, "select * from jd_locked where k = 1 for update skip locked"), "no row");
                same(value(other, "select v from jd_locked where k = 1"), "1");
            }
            c.commit();
        });
        test("connections: abort", () -> {
            Connection c = connect("");
            c.abort(Runnable::run);
            ok(c.isClosed());
        });
    }

    private static void results() {
        tables("connections: fetchSize", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_fetch", "k int primary key, v text");
            update(c, "insert into jd_fetch select i, 'v' || i from generate_series(1, 500) i");
            for (boolean commits : new boolean[] {false, true}) {
                c.setAutoCommit(commits);
                for (int size : new int[] {1, 7, 100, 500, 501}) {
                    try (Statement s = c.createStatement()) {
                        s.setFetchSize(size);
                        ResultSet r = s.executeQuery("select k, v from jd_fetch order by k");
                        for (int i = 1; i <= 500; i++) {
                            ok(r.next());
                            same(r.getRow(), i);
                            same(r.getInt(1) + r.getString(2), i + "v" + i);
                        }
                        ok(!r.next());
                    }
                }
                if (!commits) c.commit();
            }
        });
        tables("connections: defaultRowFetchSize, adaptiveFetch",
            "defaultRowFetchSize=20&adaptiveFetch=true&maxResultBuffer=2M", BOTH, (c, kind) -> {
                table(c, kind, "jd_fetch", "k int primary key, v text");
                update(c, "insert into jd_fetch select i, repeat('x', i) from generate_series(1, 500) i");
                c.setAutoCommit(false);
                try (Statement s = c.createStatement();
                        ResultSet r = s.executeQuery("select v from jd_fetch order by k")) {
                    for (int i = 1; i <= 500; i++) ok(r.next() && r.getString(1).length() == i);
                    ok(!r.next());
                }
                c.commit();
            });
        tables("connections: holdability", "", BOTH, (c, kind) -> {
            same(c.getHoldability(), ResultSet.CLOSE_CURSORS_AT_COMMIT);
            table(c, kind, "jd_hold", "k int primary key");
            update(c, "insert into jd_hold select generate_series(1, 30)");
            c.setAutoCommit(false);
            try (Statement s = c.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY,
                    ResultSet.HOLD_CURSORS_OVER_COMMIT)) {
                s.setFetchSize(4);
                ResultSet r = s.executeQuery("select k from jd_hold order by k");
                ok(r.next());
                c.commit();
                int n = 1;
                while (r.next()) n++;
                same(n, 30);
            }
            c.commit();
        });
        tables("connections: WITH HOLD", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_hold", "k int primary key");
            update(c, "insert into jd_hold select generate_series(1, 30)");
            c.setAutoCommit(false);
            execute(c, "declare held cursor with hold for select k from jd_hold order by k");
            same(rows(c, "fetch 2 from held"), "1|2");
            c.commit();
            c.setAutoCommit(true);
            update(c, "delete from jd_hold");
            same(rows(c, "fetch 3 from held"), "3|4|5");
            execute(c, "move 20 in held");
            same(rows(c, "fetch all from held"), "26|27|28|29|30");
            execute(c, "close held");
            same(state(() -> rows(c, "fetch 1 from held")), "34000");
        });
        tables("connections: several results kept", "", BOTH, (c, kind) -> {
            table(c, kind, "jd_kept", "k int primary key");
            update(c, "insert into jd_kept select generate_series(1, 5)");
            try (Statement s = c.createStatement()) {
                ok(s.execute("select 1; select k from jd_kept order by k; select count(*) from jd_kept"));
                ResultSet first = s.getResultSet();
                ok(s.getMoreResults(Statement.KEEP_CURRENT_RESULT));
                ResultSet second = s.getResultSet();
                ok(s.getMoreResults(Statement.KEEP_CURRENT_RESULT));
                same(rows(s.getResultSet()) + " " + rows(second) + " " + rows(first), "5 1|2|3|4|5 1");
                ok(!s.getMoreResults(Statement.CLOSE_ALL_RESULTS));
                ok(first.isClosed() && second.isClosed());
            }
            try (Statement s = c.createStatement()) {
                s.closeOnCompletion();
                s.executeQuery("select 1").close();
                ok(s.isClosed());
            }
        });
    }

    private static String heard(Connection c, int millis) throws Exception {
        PGNotification[] all = c.unwrap(PGConnection.class).getNotifications(millis);
        StringBuilder text = new StringBuilder();
        if (all == null) return "";
        for (PGNotification one : all) text.append(one.getName() + ":" + one.getParameter() + " ");
        return text.toString().trim();
    }

    private static void notifications() {
        modes("connections: LISTEN, NOTIFY", c -> {
            execute(c, "listen jd_news", "listen \"Jd Other\"");
            execute(c, "notify jd_news, 'self'");
            same(heard(c, 2000), "jd_news:self");
            try (Connection other = connect("")) {
                execute(other, "notify jd_news");
                same(heard(c, 3000), "jd_news:");
                other.setAutoCommit(false);
                execute(other, "notify jd_news, 'a'", "notify jd_news, 'a'", "select pg_notify('Jd Other', 'b''c')");
                same(heard(c, 150), "");
                other.commit();
                StringBuilder all = new StringBuilder();
                for (int i = 0; i < 20 && all.indexOf("b'c") < 0; i++) all.append(heard(c, 200)).append(' ');
                same(all.toString().trim().replaceAll(" +", " ").replace("Jd Other", "other"), "jd_news:a other:b'c");
                execute(other, "notify jd_news, 'never'");
                other.rollback();
                execute(c, "unlisten *");
                execute(other, "notify jd_news, 'late'");
                other.commit();
                same(heard(c, 200), "");
            }
        });
        tables("connections: NOTIFY of a trigger", "", new String[] {"local"}, (c, kind) -> {
            table(c, kind, "jd_told", "k int primary key");
            execute(c, "create or replace function jd_tell() returns trigger language plpgsql as "
                + "$$ begin perform pg_notify('jd_told', new.k::text); return null; end $$",
                "create trigger tell after insert on jd_told for each row execute function jd_tell()",
                "listen jd_told");
            try (Connection other = connect("")) {
                update(other, "insert into jd_told values (1), (2)");
            }
            StringBuilder all = new StringBuilder();
            for (int i = 0; i < 20 && all.indexOf("2") < 0; i++) all.append(heard(c, 200)).append(' ');
            same(all.toString().trim().replaceAll(" +", " "), "jd_told:1 jd_told:2");
        });
    }

    private static void copies() {
        tables("connections: COPY in and out", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_copied", "k int primary key, v text, n numeric");
            StringBuilder lines = new StringBuilder();
            for (int i = 1; i <= 3000; i++) lines.append(i).append("\tv").append(i).append("\t").append(i)
                .append(".5\n");
            same(copier(c).copyIn("copy jd_copied from stdin", new StringReader(lines.toString())), 3000L);
            same(rows(c, "select count(*), sum(k), sum(n), max(v) from jd_copied"), "3000,4501500,4503000.0,v999");
            String csv = "k,v,n\n5001,\"a,\"\"b\",\n5002,,1\n5003,\"\",2\n";
            same(copier(c).copyIn("copy jd_copied (k, v, n) from stdin (format csv, header)",
                new ByteArrayInputStream(csv.getBytes(StandardCharsets.UTF_8))), 3L);
            same(rows(c, "select * from jd_copied where k > 5000 order by k"), "5001,a,\"b,null|5002,null,1|5003,,2");
            StringWriter out = new StringWriter();
            same(copier(c).copyOut("copy (select * from jd_copied where k > 5000 order by k) to stdout (format csv, "
                + "header)",
                out), 3L);
            same(out.toString(), csv);
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            same(copier(c).copyOut("copy jd_copied to stdout", all), 3003L);
            same(all.toString(StandardCharsets.UTF_8).lines().filter(line -> !line.startsWith("500")).count(), 2999L);
            ByteArrayOutputStream binary = new ByteArrayOutputStream();
            same(copier(c).copyOut("copy (select k, v from jd_copied where k in (5001, 5002) order by k) to stdout "
                + "(format binary)",
                binary), 2L);
            same(binary.size(), 19 + 2 + 8 + 8 + 2 + 8 + 4 + 2);
            update(c, "delete from jd_copied");
            same(copier(c).copyIn("copy jd_copied (k, v) from stdin (format binary)",
                new ByteArrayInputStream(binary.toByteArray())), 2L);
            same(rows(c, "select k, v from jd_copied order by k"), "5001,a,\"b|5002,null");
        });
        tables("connections: COPY that fails", "", KINDS, (c, kind) -> {
            table(c, kind, "jd_copied", "k int primary key, v text");
            same(state(() -> copier(c).copyIn("copy jd_copied from stdin", new StringReader("1\ta\nx\tb\n"))), "22P02");
            same(state(() -> copier(c).copyIn("copy jd_copied from stdin", new StringReader("1\ta\n2\n"))), "22P04");
            same(state(() -> copier(c).copyIn("copy jd_copied from stdin", new StringReader("1\ta\n1\tb\n"))), "23505");
            CopyIn in = copier(c).copyIn("copy jd_copied from stdin");
            byte[] line = "7\tseven\n".getBytes(StandardCharsets.UTF_8);
            in.writeToCopy(line, 0, line.length);
            in.cancelCopy();
            same(value(c, "select count(*) from jd_copied"), "0");
            c.setAutoCommit(false);
            in = copier(c).copyIn("copy jd_copied from stdin");
            same(in.getFieldCount() + " " + in.getFormat(), "2 0");
            in.writeToCopy(line, 0, 3);
            in.writeToCopy(line, 3, line.length - 3);
            same(in.endCopy(), 1L);
            same(value(c, "select v from jd_copied where k = 7"), "seven");
            c.rollback();
            same(value(c, "select count(*) from jd_copied"), "0");
            c.rollback();
            c.setAutoCommit(true);
            update(c, "insert into jd_copied select i, repeat('x', 100) from generate_series(1, 20000) i");
            CopyOut out = copier(c).copyOut("copy jd_copied to stdout");
            for (int i = 0; i < 5; i++) ok(out.readFromCopy() != null);
            int n = 5;
            while (out.readFromCopy() != null) n++;
            same(n, 20000);
            same(out.getHandledRowCount(), 20000L);
            same(value(c, "select count(*) from jd_copied"), "20000");
        });
    }

    private static void parameters() {
        test("connections: currentSchema", () -> {
            try (Connection c = connect("")) {
                execute(c, "drop schema if exists jd_current cascade; create schema jd_current");
            }
            try (Connection c = connect("currentSchema=jd_current,public")) {
                same(value(c, "show search_path"), "jd_current,public");
                same(c.getSchema(), "jd_current");
                table(c, "distributed", "jd_here", "k int primary key");
                update(c, "insert into jd_here select generate_series(1, 9)");
                same(rows(c, "select count(*), sum(k) from jd_here"), "9,45");
                same(value(c, "select relnamespace::regnamespace from pg_class where oid = 'jd_here'::regclass"),
                    "jd_current");
            }
            try (Connection c = connect("")) {
                same(state(() -> value(c, "select 1 from jd_here")), "42P01");
                execute(c, "drop schema jd_current cascade");
            }
        });
        for (String pair : new String[] {"work_mem=5MB", "statement_timeout=3s", "search_path=pg_catalog",
            "TimeZone=UTC",
                "my.own=value"}) {
            String[] parts = pair.split("=");
            connected("connections: options of " + parts[0], "options=-c%20" + parts[0] + "=" + parts[1], c -> {
                boolean zone = parts[0].equals("TimeZone");
                same(value(c, "show " + parts[0]), zone ? "Asia/Kolkata" : parts[1]);
                execute(c, "set " + parts[0] + " to default");
                same(value(c, "show " + parts[0]), zone ? "Asia/Kolkata" : parts[1]);
                execute(c, "reset all");
                same(value(c, "show " + parts[0]), zone ? "Asia/Kolkata" : parts[1]);
            });
        }
        connected("connections: what the server tells", "", c -> {
            var p = c.unwrap(PGConnection.class).getParameterStatuses();
            same(p.get("client_encoding") + " " + p.get("DateStyle") + " " + p.get("integer_datetimes") + " "
                + p.get("standard_conforming_strings") + " " + p.get("TimeZone"), "UTF8 ISO, MDY on on Asia/Kolkata");
            execute(c, "set timezone to 'UTC'");
            same(c.unwrap(PGConnection.class).getParameterStatus("TimeZone"), "UTC");
            execute(c, "set application_name to 'told'");
            same(c.unwrap(PGConnection.class).getParameterStatus("application_name"), "told");
            c.setAutoCommit(false);
            execute(c, "set timezone to 'Asia/Tokyo'");
            same(c.unwrap(PGConnection.class).getParameterStatus("TimeZone"), "Asia/Tokyo");
            c.rollback();
            same(c.unwrap(PGConnection.class).getParameterStatus("TimeZone"), "UTC");
        });
        for (int n : new int[] {1, 2, 127, 128, 129, 1000}) {
            tables("connections: reWriteBatchedInserts, " + n, "reWriteBatchedInserts=true", KINDS, (c, kind) -> {
                table(c, kind, "jd_rewritten", "k int primary key, v text");
                for (String end : new String[] {"", " on conflict do nothing",
                    " on conflict (k) do update set v = excluded.v"}) {
                    try (PreparedStatement s = c.prepareStatement("insert into jd_rewritten values (?, ?)" + end)) {
                        for (int i = 0; i < n; i++) {
                            s.setInt(1, i);
                            s.setString(2, "v" + i + end.length());
                            s.addBatch();
                        }
                        same(s.executeBatch().length, n);
                    }
                    same(rows(c, "select count(*), max(v) from jd_rewritten where k = " + (n - 1)),
                        "1,v" + (n - 1) + (end.contains("update") ? end.length() : 0));
                }
                same(value(c, "select count(*) from jd_rewritten"), String.valueOf(n));
            });
        }
        test("connections: reference table", () -> {
            try (Connection c = connect(""); Connection other = connect("")) {
                table(c, "local", "jd_everywhere", "k int primary key, v text");
                distribute(c, "jd_everywhere", null);
                same(copier(c).copyIn("copy jd_everywhere from stdin", new StringReader("1\ta\n2\tb\n")), 2L);
                c.setAutoCommit(false);
                update(c, "update jd_everywhere set v = 'c' where k = 1");
                same(rows(other, "select v from jd_everywhere order by k"), "a|b");
                c.commit();
                same(rows(other, "select v from jd_everywhere order by k"), "c|b");
            }
        });
        test("connections: many", () -> {
            Connection[] all = new Connection[20];
            for (int i = 0; i < all.length; i++) all[i] = connect("ApplicationName=jd" + i);
            for (int i = 0; i < all.length; i++) {
                same(value(all[i], "show application_name"), "jd" + i);
                all[i].close();
            }
        });
        test("connections: a database that is not", () -> {
            same(state(() -> java.sql.DriverManager.getConnection("jdbc:postgresql://" + System.getenv("PGHOST") + ":"
                + System.getenv("PGPORT") + "/jd_nowhere?user=" + System.getenv("PGUSER"))), "3D000");
        });
        test("connections: an option that is not", () -> same(state(() -> connect("options=-c%20jd_none=1")), "42704"));
    }

    private Connections() {}
}

package drivers;

import static drivers.Suite.connect;
import static drivers.Suite.execute;
import static drivers.Suite.KINDS;
import static drivers.Suite.ok;
import static drivers.Suite.rows;
import static drivers.Suite.same;
import static drivers.Suite.state;
import static drivers.Suite.table;
import static drivers.Suite.test;
import static drivers.Suite.update;
import static drivers.Suite.value;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;

/** HikariCP. */
final class Pools {
    private static final String[] SPREAD = {"local", "distributed"};

    static void add() {
        threads();
        evicted();
        states();
        waiting();
    }

    private interface Use {
        void run(HikariDataSource pool) throws Exception;
    }

    private static HikariDataSource pool(int size, Consumer<HikariConfig> more) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(Suite.url("ApplicationName=jp"));
        config.setMaximumPoolSize(size);
        config.setConnectionTimeout(5000);
        more.accept(config);
        return new HikariDataSource(config);
    }

    private static void pooled(String name, int size, Consumer<HikariConfig> more, Use use) {
        test("pools: " + name, () -> {
            try (HikariDataSource pool = pool(size, more)) {
                use.run(pool);
            }
        });
    }

    private static void all(int threads, Suite.Body body) throws Exception {
        ExecutorService runner = Executors.newFixedThreadPool(threads);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            all.add(runner.submit(() -> {
                body.run();
                return null;
            }));
        }
        for (Future<?> one : all) one.get();
        runner.shutdown();
    }

    private static void threads() {
        for (String kind : SPREAD) {
            for (boolean commits : new boolean[] {true, false}) {
                pooled("transactions of 8 threads, autocommit " + commits + " [" + kind + "]", 4,
                    c -> c.setAutoCommit(commits), pool -> {
                        try (Connection c = connect("")) {
                            table(c, kind, "jp_account", "k int primary key, v int not null");
                            update(c, "insert into jp_account select i, 100 from generate_series(0, 15) i");
                        }
                        all(8, () -> {
                            int seed = (int) Thread.currentThread().getId();
                            for (int i = 0; i < 25; i++) {
                                int a = Math.floorMod(seed + i * 7, 16);
                                int b = Math.floorMod(a + 1 + i % 15, 16);
                                try (Connection c = pool.getConnection()) {
                                    same(c.getAutoCommit(), commits);
                                    c.setAutoCommit(false);
                                    try (PreparedStatement s = c.prepareStatement(
                                            "update jp_account set v = v + ? where k = ?")) {
                                        // In order of the keys, so that none waits for another in a circle.
                                        s.setInt(1, a < b ? 1 : -1);
                                        s.setInt(2, Math.min(a, b));
                                        same(s.executeUpdate(), 1);
                                        s.setInt(1, a < b ? -1 : 1);
                                        s.setInt(2, Math.max(a, b));
                                        same(s.executeUpdate(), 1);
                                    }
                                    if (i % 5 == 4) c.rollback();
                                    else c.commit();
                                }
                            }
                        });
                        try (Connection c = pool.getConnection()) {
                            same(rows(c, "select count(*), sum(v) from jp_account"), "16,1600");
                        }
                        ok(pool.getHikariPoolMXBean().getTotalConnections() <= 4);
                    });
            }
            pooled("inserts of 8 threads [" + kind + "]", 4, c -> {}, pool -> {
                try (Connection c = connect("")) {
                    table(c, kind, "jp_log", "k serial primary key, v int not null");
                }
                all(8, () -> {
                    for (int i = 0; i < 30; i++) {
                        try (Connection c = pool.getConnection();
                                PreparedStatement s = c.prepareStatement("insert into jp_log (v) values (?) "
                                    + "returning k")) {
                            s.setInt(1, i);
                            ok(s.executeQuery().next());
                        }
                    }
                });
                try (Connection c = pool.getConnection()) {
                    same(rows(c, "select count(*), count(distinct k), max(k), sum(v) from jp_log"), "240,240,240,3480");
                }
            });
        }
    }

    private static String pid(Connection c) throws SQLException {
        return value(c, "select pg_backend_pid()");
    }

    private static void evicted() {
        pooled("evicted", 1, c -> {}, pool -> {
            String first;
            try (Connection c = pool.getConnection()) {
                first = pid(c);
                pool.evictConnection(c);
            }
            try (Connection c = pool.getConnection()) {
                ok(!pid(c).equals(first));
                first = pid(c);
            }
            try (Connection c = pool.getConnection()) {
                same(pid(c), first);
                pool.getHikariPoolMXBean().softEvictConnections();
                same(value(c, "select 1"), "1");
            }
            try (Connection c = pool.getConnection()) {
                ok(!pid(c).equals(first));
            }
        });
        for (String query : new String[] {null, "select 1"}) {
            pooled("terminated, validated by " + (query == null ? "isValid" : query), 1, c -> {
                c.setConnectionTestQuery(query);
                c.setValidationTimeout(1000);
            }, pool -> {
                String first;
                try (Connection c = pool.getConnection()) {
                    first = pid(c);
                }
                try (Connection c = connect("")) {
                    same(value(c, "select pg_terminate_backend(" + first + ", 3000)"), "t");
                }
                // What was used a moment ago is not tested.
                Thread.sleep(700);
                try (Connection c = pool.getConnection()) {
                    ok(!pid(c).equals(first));
                }
            });
        }
        pooled("terminated in use", 1, c -> {}, pool -> {
            try (Connection c = pool.getConnection()) {
                c.setAutoCommit(false);
                String first = pid(c);
                try (Connection other = connect("")) {
                    same(value(other, "select pg_terminate_backend(" + first + ", 3000)"), "t");
                }
                ok(state(() -> value(c, "select 1")).matches("57P01|08006"));
                ok(c.isClosed());
            }
            try (Connection c = pool.getConnection()) {
                same(value(c, "select 1"), "1");
            }
        });
        pooled("cancelled in use", 1, c -> {}, pool -> {
            String first;
            try (Connection c = pool.getConnection(); var s = c.createStatement()) {
                first = pid(c);
                s.setQueryTimeout(1);
                same(state(() -> s.executeQuery("select pg_sleep(5)")), "57014");
            }
            try (Connection c = pool.getConnection()) {
                same(pid(c), first);
            }
        });
    }

    private static void states() {
        pooled("what is reset", 1, c -> {}, pool -> {
            String first;
            try (Connection c = pool.getConnection()) {
                first = pid(c);
                c.setAutoCommit(false);
                c.setReadOnly(true);
                c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                c.setSchema("pg_catalog");
                same(value(c, "show transaction_isolation"), "serializable");
            }
            try (Connection c = pool.getConnection()) {
                same(pid(c), first);
                ok(c.getAutoCommit() && !c.isReadOnly());
                same(value(c, "show transaction_isolation"), "read committed");
                same(value(c, "show transaction_read_only"), "off");
            }
        });
        pooled("what leaks", 1, c -> {}, pool -> {
            try (Connection c = pool.getConnection()) {
                execute(c, "set work_mem to '3MB'", "set my.leak to 'yes'", "create temporary table jp_left (k int)",
                    "insert into jp_left values (7)", "prepare jp_stays as select 42", "select pg_advisory_lock(4711)",
                    "declare jp_held cursor with hold for select generate_series(1, 3)", "listen jp_news");
            }
            try (Connection c = pool.getConnection(); Connection other = connect("")) {
                same(value(c, "show work_mem") + value(c, "show my.leak"), "3MByes");
                same(value(c, "select k from jp_left"), "7");
                same(value(c, "execute jp_stays"), "42");
                same(rows(c, "fetch 2 from jp_held"), "1|2");
                same(value(c, "select string_agg(c, ',') from pg_listening_channels() c"), "jp_news");
                same(value(other, "select pg_try_advisory_lock(4711)"), "f");
                execute(c, "discard all");
                same(value(other, "select pg_try_advisory_lock(4711)"), "t");
                ok(!value(c, "show work_mem").equals("3MB"));
                same(state(() -> value(c, "select k from jp_left")), "42P01");
                same(state(() -> value(c, "execute jp_stays")), "26000");
                same(state(() -> rows(c, "fetch 1 from jp_held")), "34000");
                same(value(c, "select count(*) from pg_listening_channels()"), "0");
            }
        });
        for (String kind : SPREAD) {
            pooled("a transaction left open [" + kind + "]", 1, c -> {}, pool -> {
                try (Connection c = connect("")) {
                    table(c, kind, "jp_open", "k int primary key");
                }
                for (int i = 0; i < 3; i++) {
                    try (Connection c = pool.getConnection()) {
                        same(value(c, "select count(*) from jp_open"), "0");
                        c.setAutoCommit(false);
                        update(c, "insert into jp_open values (1), (2), (3)");
                        if (i == 1) same(state(() -> update(c, "insert into jp_open values (1)")), "23505");
                    }
                }
                try (Connection c = connect("")) {
                    same(value(c, "select count(*) from jp_open"), "0");
                    update(c, "insert into jp_open values (1)");
                }
            });
        }
        pooled("set up", 2, c -> {
            c.setConnectionInitSql("set statement_timeout to '9s'; set search_path to jp_schema, public");
            c.setTransactionIsolation("TRANSACTION_REPEATABLE_READ");
            c.setReadOnly(true);
        }, pool -> {
            for (int i = 0; i < 3; i++) {
                try (Connection c = pool.getConnection(); Connection other = pool.getConnection()) {
                    for (Connection one : new Connection[] {c, other}) {
                        same(value(one, "show statement_timeout") + value(one, "show search_path")
                            + value(one, "show transaction_isolation"), "9sjp_schema, publicrepeatable read");
                        ok(one.isReadOnly());
                    }
                    ok(!pid(c).equals(pid(other)));
                }
            }
        });
    }

    private static void waiting() {
        pooled("none is free", 1, c -> c.setConnectionTimeout(300), pool -> {
            try (Connection c = pool.getConnection()) {
                String told = "none";
                try {
                    pool.getConnection();
                } catch (SQLTransientConnectionException e) {
                    told = "timeout";
                }
                same(told, "timeout");
                same(value(c, "select 1"), "1");
            }
            try (Connection c = pool.getConnection()) {
                same(value(c, "select 2"), "2");
            }
        });
        for (String kind : SPREAD) {
            pooled("prepared statements of one after another [" + kind + "]", 1,
                c -> c.addDataSourceProperty("prepareThreshold", "1"), pool -> {
                    for (int i = 0; i < 4; i++) {
                        try (Connection c = pool.getConnection()) {
                            table(c, kind, "jp_changed", "k int primary key, v" + i + " text default 'd" + i + "'");
                            update(c, "insert into jp_changed values (1), (2)");
                            try (PreparedStatement s = c.prepareStatement("select * from jp_changed where k = ?")) {
                                s.setInt(1, 2);
                                same(rows(s.executeQuery()), "2,d" + i);
                                s.setInt(1, 1);
                                same(rows(s.executeQuery()), "1,d" + i);
                            }
                        }
                    }
                });
        }
        test("pools: temporary tables are of one connection", () -> {
            try (HikariDataSource pool = pool(2, c -> {}); Connection a = pool.getConnection();
                    Connection b = pool.getConnection()) {
                table(a, KINDS[2], "jp_mine", "k int");
                table(b, KINDS[2], "jp_mine", "k int");
                update(a, "insert into jp_mine values (1)");
                same(value(a, "select count(*) from jp_mine") + value(b, "select count(*) from jp_mine"), "10");
            }
        });
    }

    private Pools() {}
}

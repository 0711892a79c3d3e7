package drivers;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs tests one after another and writes how each ended. */
final class Suite {
    interface Body {
        void run() throws Exception;
    }

    interface With {
        void run(Connection connection) throws Exception;
    }

    interface OnTable {
        void run(Connection connection, String kind) throws Exception;
    }

    private record Test(String name, Body body) {}

    /** One that hangs fails, and the next goes on. */
    private static final int SECONDS = 60;
    private static final List<Test> TESTS = new ArrayList<>();

    static final String[] KINDS = {"local", "distributed", "temporary"};
    /** How statements go to the server. */
    static final String[] MODES = {"", "preferQueryMode=simple", "preferQueryMode=extendedForPrepared",
        "preferQueryMode=extendedCacheEverything", "prepareThreshold=1", "prepareThreshold=-1", "binaryTransfer=false"};

    static void test(String name, Body body) {
        TESTS.add(new Test(name, body));
    }

    static void connected(String name, String parameters, With body) {
        test(name, () -> {
            try (Connection connection = connect(parameters)) {
                body.run(connection);
            }
        });
    }

    /** In each way to send statements. */
    static void modes(String name, With body) {
        for (String mode : MODES) connected(name + " [" + (mode.isEmpty() ? "default" : mode) + "]", mode, body);
    }

    static void modes(String name, String[] kinds, OnTable body) {
        for (String kind : kinds) modes(name + " [" + kind + "]", connection -> body.run(connection, kind));
    }

    static void tables(String name, String parameters, String[] kinds, OnTable body) {
        for (String kind : kinds) {
            connected(name + " [" + kind + "]", parameters, connection -> body.run(connection, kind));
        }
    }

    static String url(String parameters) {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE") + "?user=" + System.getenv("PGUSER") + "&" + parameters;
    }

    static Connection connect(String parameters) throws SQLException {
        return DriverManager.getConnection(url(parameters));
    }

    /** Made anew; `kind` says whether it is spread where tables can be. */
    static void table(Connection connection, String kind, String name, String columns) throws SQLException {
        table(connection, kind, name, columns, "k");
    }

    static void table(Connection connection, String kind, String name, String columns, String key)
            throws SQLException {
        execute(connection, "drop table if exists " + name + " cascade");
        execute(connection, (kind.equals("temporary") ? "create temporary table " : "create table ") + name + " ("
            + columns + ")");
        if (kind.equals("distributed")) distribute(connection, name, key);
    }

    static void distribute(Connection connection, String name, String key) throws SQLException {
        if (!value(connection, "select to_regproc('create_distributed_table') is not null").equals("t")) return;
        String how = key == null ? "create_reference_table('" + name + "')"
            : "create_distributed_table('" + name + "', '" + key + "')";
        value(connection, "select " + how);
    }

    static void execute(Connection connection, String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) statement.execute(text);
        }
    }

    static int update(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeUpdate(text);
        }
    }

    /** The text of the first column of the first row. */
    static String value(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            return rows.next() ? rows.getString(1) : "no row";
        }
    }

    static String rows(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            return rows(rows);
        }
    }

    /** Columns with a comma between, rows with a bar. */
    static String rows(ResultSet rows) throws SQLException {
        List<String> lines = new ArrayList<>();
        while (rows.next()) lines.add(row(rows));
        return String.join("|", lines);
    }

    static String row(ResultSet rows) throws SQLException {
        List<String> cells = new ArrayList<>();
        for (int i = 1; i <= rows.getMetaData().getColumnCount(); i++) cells.add(rows.getString(i));
        return String.join(",", cells.stream().map(String::valueOf).toList());
    }

    static void same(Object got, Object expected) {
        if (!Objects.deepEquals(got, expected)) throw new AssertionError("got\n" + told(got) + "\nexpected\n" + told(expected));
    }

    static void ok(boolean is) {
        if (!is) throw new AssertionError("it is not so");
    }

    private static String told(Object value) {
        String text = Arrays.deepToString(new Object[] {value});
        return text.substring(1, text.length() - 1) + (value == null ? "" : " (" + value.getClass().getName() + ")");
    }

    static SQLException failure(Body body) throws Exception {
        try {
            body.run();
        } catch (SQLException e) {
            return e;
        }
        throw new AssertionError("no error");
    }

    static String state(Body body) throws Exception {
        return failure(body).getSQLState();
    }

    /** A line of its own for what was answered, so that another answer of the other side is seen. */
    static void record(String name, String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            System.out.println("=== " + name + "\n" + text);
            write("PASSED", name + ": " + HexFormat.of().formatHex(digest, 0, 6));
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    private static void write(String outcome, String name) {
        try {
            Files.writeString(Path.of(System.getenv("DRIVERS_RESULTS")), outcome + " " + name + "\n",
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void run() {
        ExecutorService runner = Executors.newCachedThreadPool();
        for (Test test : TESTS) {
            String outcome = "PASSED";
            try {
                runner.submit(() -> {
                    test.body.run();
                    return null;
                }).get(SECONDS, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                outcome = "FAILED";
                System.out.println("--- " + test.name);
                trace(e.getCause());
            } catch (TimeoutException | InterruptedException e) {
                outcome = "FAILED";
                System.out.println("--- " + test.name + "\nnot over after " + SECONDS + " s");
            }
            write(outcome, test.name);
        }
        // What a failed test has left open holds nothing up.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void trace(Throwable e) {
        for (; e != null; e = e.getCause()) {
            System.out.println(e);
            for (StackTraceElement frame : e.getStackTrace()) {
                if (frame.getClassName().startsWith("drivers.")) System.out.println("    at " + frame);
            }
        }
    }
}

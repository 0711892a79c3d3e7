package drivers;

import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.Arrays;

/** Reads and writes, and prints what comes of it. */
final class Use {
    static void all(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        long tenant = insert(connection);
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            System.out.println("paid: " + statement.executeUpdate("UPDATE orders SET state = 'paid' WHERE total > 6"));
            print(statement, "SELECT plan, state, orders, total FROM spent ORDER BY 1, 2, 3, 4");
            print(statement, "SELECT p.name, count(DISTINCT t.id), count(a.id), sum(a.balance) FROM plan p "
                + "LEFT JOIN tenant t ON t.plan = p.name LEFT JOIN account a ON a.tenant_id = t.id "
                + "GROUP BY 1 ORDER BY 1");
            print(statement, "SELECT a.mail, sum(worth(o.total, o.tags)) FROM account a JOIN orders o "
                + "ON o.tenant_id = a.tenant_id AND o.account_id = a.id WHERE 'gift' = ANY (o.tags) "
                + "GROUP BY 1 ORDER BY 1");
            connection.commit();
            Savepoint here = connection.setSavepoint();
            System.out.println("deleted: " + (statement.executeUpdate("DELETE FROM orders WHERE total < 3") > 0));
            connection.rollback(here);
            System.out.println("deleted: " + statement.executeUpdate("DELETE FROM account WHERE tenant_id = " + tenant
                + " AND id = 5"));
            connection.commit();
            statement.executeUpdate("DELETE FROM orders WHERE state = 'new'");
            connection.rollback();
            print(statement, "SELECT count(*), sum(total) FROM orders");
            connection.commit();
            for (String wrong : new String[] {
                "INSERT INTO tenant (name, plan) VALUES ('x', 'nothing')",
                "INSERT INTO orders (tenant_id, account_id, total) VALUES (" + tenant + ", -1, 1)",
                "INSERT INTO account (tenant_id, id, mail) VALUES (" + tenant + ", 99, ' 1@USED ')",
                "UPDATE account SET balance = -2000",
                "DELETE FROM plan WHERE name = 'free'",
                "INSERT INTO orders (tenant_id, account_id, total) VALUES (" + tenant + ", 1, 'x')",
            }) {
                try {
                    System.out.println("not refused: " + statement.executeUpdate(wrong));
                } catch (SQLException e) {
                    // What stands behind it may name any of several rows.
                    System.out.println(e.getSQLState() + " " + e.getMessage().split("\n")[0]);
                }
                connection.rollback();
            }
        }
        batch(connection, tenant);
    }

    private static long insert(Connection connection) throws SQLException {
        long tenant;
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO tenant (name, plan) SELECT 'used', max(name) FROM plan", new String[] {"id"})) {
            insert.executeUpdate();
            try (ResultSet keys = insert.getGeneratedKeys()) {
                keys.next();
                tenant = keys.getLong(1);
            }
        }
        try (PreparedStatement upsert = connection.prepareStatement("INSERT INTO account (tenant_id, id, mail) "
                + "VALUES (?, ?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET balance = account.balance + 1")) {
            for (int number = 0; number < 8; number++) {
                upsert.setLong(1, tenant);
                upsert.setLong(2, number % 5 + 1);
                upsert.setString(3, " " + (number % 5 + 1) + "@USED");
                upsert.addBatch();
            }
            System.out.println("accounts: " + Arrays.toString(upsert.executeBatch()));
        }
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO orders (tenant_id, account_id, total, tags) VALUES (?, ?, ?, ?)")) {
            for (int number = 0; number < 100; number++) {
                insert.setLong(1, tenant);
                insert.setLong(2, number % 5 + 1);
                insert.setBigDecimal(3, BigDecimal.valueOf(number, 1));
                insert.setArray(4, connection.createArrayOf("text", number % 3 == 0 ? new Object[] {"gift", "é"}
                    : new Object[0]));
                insert.addBatch();
            }
            System.out.println("orders: " + insert.executeBatch().length);
        }
        return tenant;
    }

    /** A batch of which one row is refused. */
    private static void batch(Connection connection, long tenant) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO account (tenant_id, id, mail) VALUES (?, ?, ?)")) {
            for (int id : new int[] {101, 102, 101, 103}) {
                insert.setLong(1, tenant);
                insert.setLong(2, id);
                insert.setString(3, id + "@batch");
                insert.addBatch();
            }
            insert.executeBatch();
        } catch (BatchUpdateException e) {
            System.out.println(e.getSQLState() + " after " + e.getUpdateCounts().length);
        }
        connection.rollback();
    }

    private static void print(Statement statement, String query) throws SQLException {
        try (ResultSet rows = statement.executeQuery(query)) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                StringBuilder line = new StringBuilder();
                for (int column = 1; column <= columns; column++) {
                    line.append(column == 1 ? "" : " | ").append(rows.getString(column));
                }
                System.out.println(line);
            }
        }
    }

    private Use() { }
}

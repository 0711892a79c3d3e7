package drivers;

import java.math.BigDecimal;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import org.flywaydb.core.api.migration.BaseJavaMigration;
import org.flywaydb.core.api.migration.Context;

/** What an account's orders come to is what it owes: read and written row by row, in Flyway's transaction. */
public final class V4__Balances extends BaseJavaMigration {
    @Override
    public void migrate(Context context) throws Exception {
        String write = "UPDATE account SET balance = balance - ? WHERE tenant_id = ? AND id = ?";
        try (Statement statement = context.getConnection().createStatement();
             PreparedStatement update = context.getConnection().prepareStatement(write)) {
            // A cursor over it stays open while the same rows are written.
            statement.setFetchSize(10);
            try (ResultSet rows = statement.executeQuery(
                    "SELECT tenant_id, account_id, sum(total) FROM orders GROUP BY 1, 2 ORDER BY 1, 2")) {
                while (rows.next()) {
                    update.setBigDecimal(1, rows.getBigDecimal(3).min(BigDecimal.TEN));
                    update.setLong(2, rows.getLong(1));
                    update.setLong(3, rows.getLong(2));
                    update.addBatch();
                }
            }
            update.executeBatch();
        }
    }
}

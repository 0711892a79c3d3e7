package drivers;

import java.sql.Connection;
import java.sql.DriverManager;
import java.util.LinkedHashMap;
import java.util.Map;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.core.api.output.ValidateOutput;
import org.flywaydb.core.api.output.ValidateResult;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

/** Flyway's commands, one after another, with settings as its own command line has them: migrate target=3 info. */
public final class Main {
    public static void main(String[] words) throws Exception {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
            + System.getenv("PGDATABASE");
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("flyway.locations", "filesystem:sql");
        settings.put("flyway.cleanDisabled", "false");
        settings.put("flyway.placeholders.note", "a note");
        for (String word : words) {
            if (word.contains("=")) {
                settings.put("flyway." + word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
            }
        }
        FluentConfiguration configuration = Flyway.configure().configuration(settings)
            .dataSource(url, System.getenv("PGUSER"), null).javaMigrations(new V4__Balances());
        // Its lock is not to be a transaction that CREATE INDEX CONCURRENTLY would wait for.
        configuration.getConfigurationExtension(PostgreSQLConfigurationExtension.class).setTransactionalLock(false);
        Flyway flyway = configuration.load();
        try {
            for (String word : words) {
                switch (word) {
                    case "migrate" -> System.out.println("migrations: " + flyway.migrate().migrationsExecuted);
                    case "info" -> info(flyway);
                    case "validate" -> validate(flyway);
                    case "repair" -> System.out.println("repaired: " + flyway.repair().repairActions);
                    case "baseline" -> System.out.println("baseline: " + flyway.baseline().baselineVersion);
                    case "clean" -> System.out.println("cleaned: " + flyway.clean().schemasCleaned);
                    case "use" -> {
                        try (Connection connection = DriverManager.getConnection(url, System.getenv("PGUSER"), null)) {
                            Use.all(connection);
                        }
                    }
                    default -> { }
                }
            }
        } catch (FlywayException e) {
            System.out.println(e.getMessage());
            System.exit(1);
        }
    }

    private static void info(Flyway flyway) {
        for (MigrationInfo each : flyway.info().all()) {
            System.out.println(each.getVersion() + " | " + each.getDescription() + " | " + each.getType() + " | "
                + each.getState().getDisplayName() + " | " + each.getChecksum());
        }
    }

    private static void validate(Flyway flyway) {
        ValidateResult result = flyway.validateWithResult();
        System.out.println("valid: " + result.validationSuccessful);
        for (ValidateOutput each : result.invalidMigrations) {
            System.out.println(each.version + " " + each.description + ": " + each.errorDetails.errorCode);
        }
        if (!result.validationSuccessful) {
            System.exit(1);
        }
    }

    private Main() { }
}

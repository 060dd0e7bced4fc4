// SPDX-License-Identifier: Apache-2.0
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.util.Properties;

/** A session as an application has it, printed: schemas, parameters, pages of a result, cancel. HOST:PORT USER. */
public final class Session {

    private Session() {
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", arguments[1]);
        properties.setProperty("password", System.getenv("LIMNOS_PASSWORD"));
        try (Connection connection = DriverManager.getConnection("jdbc:asterixdb://" + arguments[0], properties)) {
            describe(connection.getMetaData());
            bind(connection);
            page(connection);
            cancel(connection);
        }
    }

    private static void describe(DatabaseMetaData meta) throws SQLException {
        System.out.println("product: " + meta.getDatabaseProductName());
        try (ResultSet tables = meta.getTables("Metadata", null, "Data%", null)) {
            while (tables.next()) {
                System.out.println("table: " + tables.getString("TABLE_CAT") + " " + tables.getString("TABLE_NAME"));
            }
        }
        try (ResultSet columns = meta.getColumns("Metadata", null, "Synonym", null)) {
            while (columns.next()) {
                System.out.println("column: " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
            }
        }
    }

    private static void bind(Connection connection) throws SQLException {
        String query = "select ? a, ? b, x from [1, 2, 3] x where x > ?";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            System.out.println("parameters: " + statement.getParameterMetaData().getParameterCount());
            statement.setObject(1, LocalDate.of(2000, 1, 2));
            statement.setDouble(2, 1.5);
            statement.setLong(3, 1);
            try (ResultSet rows = statement.executeQuery()) {
                ResultSetMetaData columns = rows.getMetaData();
                while (rows.next()) {
                    System.out.println("row: " + columns.getColumnName(1) + "=" + rows.getDate(1) + " "
                            + columns.getColumnName(2) + "=" + rows.getDouble(2) + " x=" + rows.getLong(3));
                }
            }
        }
    }

    private static void page(Connection connection) throws SQLException {
        long sum = 0;
        long count = 0;
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("select x from range(1, 100000) x")) {
            while (rows.next()) {
                sum += rows.getLong(1);
                count++;
            }
        }
        System.out.println("paged: " + count + " rows, sum " + sum);
    }

    private static void cancel(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(1500);
                    statement.cancel();
                } catch (InterruptedException | SQLException e) {
                    System.out.println("cancel failed: " + e.getMessage());
                }
            });
            other.start();
            String query = "select count(*) n from range(1, 3000) a, range(1, 3000) b where a * b = 7";
            try (ResultSet rows = statement.executeQuery(query)) {
                System.out.println("not cancelled");
            } catch (SQLException e) {
                System.out.println("cancelled: " + e.getMessage());
            }
            other.join();
        }
    }
}

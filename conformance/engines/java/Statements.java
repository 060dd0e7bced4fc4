import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs the statements of a JSON file, one after the other whatever becomes of them; prints a line of JSON for each. */
public class Statements {

  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    String[] statements = JSON.readValue(Files.readString(Path.of(arguments[0])), String[].class);
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inBatchMode());
    tables.getConfig().set("parallelism.default", "1");
    for (String statement : statements) {
      System.out.println("=" + JSON.writeValueAsString(answer(tables, statement)));
    }
    System.exit(0);
  }

  private static ObjectNode answer(TableEnvironment tables, String statement) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      answer.set("rows", JSON.valueToTree(rows(tables.executeSql(statement), statement)));
    } catch (Throwable failure) {
      StringBuilder told = new StringBuilder();
      for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
        told.append(cause).append(" / ");
      }
      answer.put("error", told.toString());
    }
    return answer;
  }

  private static List<List<String>> rows(TableResult result, String statement) throws Exception {
    List<List<String>> rows = new ArrayList<>();
    if (statement.startsWith("INSERT") || statement.contains(" AS SELECT ")) {
      result.await();
      return rows;
    }
    try (CloseableIterator<Row> found = result.collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        List<String> cells = new ArrayList<>();
        for (int i = 0; i < row.getArity(); i++) {
          cells.add(String.valueOf(row.getField(i)));
        }
        rows.add(cells);
      }
    }
    return rows;
  }
}

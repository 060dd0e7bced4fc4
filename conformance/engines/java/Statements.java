// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs statements, each a line `["ask", [text]]` of the input, whatever becomes of them; answers each with a line. */
public class Statements {

  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inBatchMode());
    tables.getConfig().set("parallelism.default", "1");
    tables.getConfig().set("table.local-time-zone", "UTC");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      answers.println(JSON.writeValueAsString(answer(tables, JSON.readTree(line).get(1).get(0).asText())));
    }
    System.exit(0);
  }

  private static ObjectNode answer(TableEnvironment tables, String statement) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      answer.set("told", JSON.valueToTree(rows(tables.executeSql(statement), statement)));
    } catch (Throwable failure) {
      StringBuilder told = new StringBuilder();
      for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
        told.append(cause).append(" / ");
      }
      answer.put("error", told.toString());
    }
    return answer;
  }

  private static List<List<JsonNode>> rows(TableResult result, String statement) throws Exception {
    List<List<JsonNode>> rows = new ArrayList<>();
    if (statement.startsWith("INSERT") || statement.contains(" AS SELECT ")) {
      result.await();
      return rows;
    }
    try (CloseableIterator<Row> found = result.collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        List<JsonNode> cells = new ArrayList<>();
        for (int i = 0; i < row.getArity(); i++) {
          cells.add(cell(row.getField(i)));
        }
        rows.add(cells);
      }
    }
    return rows;
  }

  /** Text of a value; a list of those of its parts. */
  private static JsonNode cell(Object value) {
    if (value == null) {
      return JSON.nullNode();
    }
    List<JsonNode> parts = new ArrayList<>();
    if (value instanceof Row row) {
      for (int i = 0; i < row.getArity(); i++) {
        parts.add(cell(row.getField(i)));
      }
      return JSON.valueToTree(parts);
    }
    if (value instanceof Object[] items) {
      for (Object item : items) {
        parts.add(cell(item));
      }
      return JSON.valueToTree(parts);
    }
    if (value instanceof Map<?, ?> map) {
      return JSON.valueToTree(map);
    }
    return JSON.valueToTree(value.toString());
  }
}

// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.MetadataUpdateParser;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.SortOrderParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.mapping.NameMappingParser;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;

/**
 * Reads metadata documents from standard input, one per line after the word `table` or `view`, and answers each with a
 * line: `read`, or `refused` and the error. A line with `create table`, `create view`, `change table` or `change view`
 * and parts after tabs is a request, made with the library's builders: answers `made` and the document.
 */
public class MetadataReader {
  private static final String FILE = "file:/t/metadata/00001.metadata.json";
  private static final String NAME_MAPPING = "schema.name-mapping.default";

  public static void main(String[] arguments) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      answers.println(answer(line));
    }
  }

  private static String answer(String line) {
    try {
      if (line.startsWith("view ")) {
        ViewMetadataParser.toJson(ViewMetadataParser.fromJson(line.substring(5)));
        return "read";
      }
      if (line.startsWith("table ")) {
        TableMetadata metadata = TableMetadataParser.fromJson(FILE, line.substring(6));
        metadata.snapshots().forEach(snapshot -> snapshot.summary());
        readNameMapping(metadata.properties().get(NAME_MAPPING));
        TableMetadataParser.toJson(metadata);
        return "read";
      }
      return "made " + make(line.split("\t"));
    } catch (RuntimeException error) {
      return "refused " + error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).replace('\n', ' ');
    }
  }

  /** Parses a name mapping and builds its index by names, as a reader of files without field ids does. */
  private static void readNameMapping(String text) {
    if (text != null) {
      NameMappingParser.fromJson(text).find("a");
    }
  }

  private static String make(String[] parts) {
    return switch (parts[0]) {
      case "create table" -> createTable(parts);
      case "create view" -> createView(parts);
      case "change table" -> changeTable(parts);
      case "change view" -> changeView(parts);
      default -> throw new IllegalArgumentException(parts[0]);
    };
  }

  private static String createTable(String[] parts) {
    Schema schema = SchemaParser.fromJson(parts[3]);
    PartitionSpec spec =
        parts[4].equals("null") ? PartitionSpec.unpartitioned() : PartitionSpecParser.fromJson(schema, parts[4]);
    SortOrder order = parts[5].equals("null") ? SortOrder.unsorted() : SortOrderParser.fromJson(schema, parts[5]);
    Map<String, String> properties = Map.of("format-version", parts[2]);
    return TableMetadataParser.toJson(TableMetadata.newTableMetadata(schema, spec, order, parts[1], properties));
  }

  private static String createView(String[] parts) {
    return viewOf(ViewMetadata.builder().setLocation(parts[1]), parts);
  }

  private static String changeTable(String[] parts) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(TableMetadataParser.fromJson(FILE, parts[1]));
    for (int index = 2; index < parts.length; index++) {
      update(parts[index]).applyTo(builder);
    }
    return TableMetadataParser.toJson(builder.build());
  }

  private static String changeView(String[] parts) {
    return viewOf(ViewMetadata.buildFrom(ViewMetadataParser.fromJson(parts[1])), parts);
  }

  private static String viewOf(ViewMetadata.Builder builder, String[] parts) {
    for (int index = 2; index < parts.length; index++) {
      update(parts[index]).applyTo(builder);
    }
    return ViewMetadataParser.toJson(builder.build());
  }

  private static MetadataUpdate update(String text) {
    return MetadataUpdateParser.fromJson(text);
  }
}

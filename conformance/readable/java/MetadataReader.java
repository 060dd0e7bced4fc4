import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.view.ViewMetadataParser;

/**
 * Reads metadata documents from standard input, one per line after the word `table` or `view`, and answers each with a
 * line: `read`, or `refused` and the error.
 */
public class MetadataReader {
  private static final String FILE = "file:/t/metadata/00001.metadata.json";

  public static void main(String[] arguments) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      int space = line.indexOf(' ');
      answers.println(answer(line.substring(0, space), line.substring(space + 1)));
    }
  }

  private static String answer(String kind, String document) {
    try {
      if (kind.equals("view")) {
        ViewMetadataParser.toJson(ViewMetadataParser.fromJson(document));
      } else {
        TableMetadata metadata = TableMetadataParser.fromJson(FILE, document);
        metadata.snapshots().forEach(snapshot -> snapshot.summary());
        TableMetadataParser.toJson(metadata);
      }
      return "read";
    } catch (RuntimeException error) {
      return "refused " + error.getClass().getSimpleName() + ": " + String.valueOf(error.getMessage()).replace('\n', ' ');
    }
  }
}

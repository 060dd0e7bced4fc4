// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.NameIdentifier;
import com.datastrato.gravitino.Namespace;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.file.Fileset;
import com.datastrato.gravitino.file.FilesetCatalog;
import com.datastrato.gravitino.file.FilesetChange;
import com.datastrato.gravitino.messaging.Topic;
import com.datastrato.gravitino.messaging.TopicCatalog;
import com.datastrato.gravitino.messaging.TopicChange;
import java.util.Arrays;
import java.util.Map;

/** Filesets and topics. */
final class Leaves {

  private final Book book;
  private final String user;
  private final GravitinoClient client;

  Leaves(Book book, String user, GravitinoClient client) {
    this.book = book;
    this.user = user;
    this.client = client;
  }

  void run() {
    filesets();
    topics();
  }

  private void see(String step, Book.Call call, Object wants) {
    book.see(user, step, call, wants);
  }

  private void filesets() {
    String type = "FilesetCatalog.", catalog = "files_" + user;
    FilesetCatalog files = client.loadCatalog(Script.ident(catalog)).asFilesetCatalog();
    NameIdentifier ident = Script.ident(catalog, "a", "f"), none = Script.ident(catalog, "a", "none");
    see(type + "asFilesetCatalog", () -> files.getClass().getSimpleName(), "FilesetCatalog");
    see(type + "createFileset", () -> files.createFileset(ident, "c", Fileset.Type.MANAGED, null, Map.of("k", "v")).name(), "f");
    see(type + "createFileset again", () -> files.createFileset(ident, "", Fileset.Type.MANAGED, null, Map.of()), "FilesetAlreadyExistsException");
    see(type + "createFileset with an odd name", () -> files.createFileset(Script.ident(catalog, "a", "x=1"), "", Fileset.Type.MANAGED, null, Map.of()).name(), "x=1");
    see(type + "createFileset in a missing schema", () -> files.createFileset(Script.ident(catalog, "none", "f"), "", Fileset.Type.MANAGED, null, Map.of()), "NoSuchSchemaException");
    see(type + "createFileset outside", () -> files.createFileset(none, "", Fileset.Type.EXTERNAL, "file:/etc", Map.of()), "IllegalArgumentException");
    see(type + "loadFileset", () -> {
      Fileset found = files.loadFileset(ident);
      return found.comment() + found.type() + found.properties().get("k") + found.storageLocation().startsWith("file:");
    }, "cMANAGEDvtrue");
    see(type + "loadFileset missing", () -> files.loadFileset(none), "NoSuchFilesetException");
    see(type + "filesetExists", () -> files.filesetExists(ident) + " " + files.filesetExists(none), "true false");
    see(type + "listFilesets", () -> Arrays.asList(files.listFilesets(Namespace.of(Script.LAKE, catalog, "a"))).contains(ident), true);
    FilesetChange[] changes = {FilesetChange.updateComment("d"), FilesetChange.setProperty("l", "w"), FilesetChange.removeProperty("k"), FilesetChange.rename("g")};
    see(type + "alterFileset", () -> {
      Fileset found = files.alterFileset(ident, changes);
      return found.name() + found.comment() + found.properties().get("l") + found.properties().get("k");
    }, "gdwnull");
    see(type + "alterFileset missing", () -> files.alterFileset(none, changes), "NoSuchFilesetException");
    see(type + "dropFileset", () -> files.dropFileset(Script.ident(catalog, "a", "g")), true);
    see(type + "dropFileset missing", () -> files.dropFileset(none), false);
    see(type + "dropSchema that is not empty", () -> client.loadCatalog(Script.ident(catalog)).asSchemas().dropSchema(Script.ident(catalog, "a"), false), "NonEmptySchemaException");
  }

  private void topics() {
    String type = "MessagingCatalog.", catalog = "topics_" + user;
    TopicCatalog topics = client.loadCatalog(Script.ident(catalog)).asTopicCatalog();
    NameIdentifier ident = Script.ident(catalog, "a", "t"), none = Script.ident(catalog, "a", "none");
    see(type + "asTopicCatalog", () -> topics.getClass().getSimpleName(), "MessagingCatalog");
    see(type + "createTopic", () -> topics.createTopic(ident, "c", null, Map.of("k", "v")).name(), "t");
    see(type + "createTopic again", () -> topics.createTopic(ident, "", null, Map.of()), "TopicAlreadyExistsException");
    see(type + "createTopic in a missing schema", () -> topics.createTopic(Script.ident(catalog, "none", "t"), "", null, Map.of()), "NoSuchSchemaException");
    see(type + "loadTopic", () -> topics.loadTopic(ident).comment() + topics.loadTopic(ident).properties().get("k"), "cv");
    see(type + "loadTopic missing", () -> topics.loadTopic(none), "NoSuchTopicException");
    see(type + "topicExists", () -> topics.topicExists(ident) + " " + topics.topicExists(none), "true false");
    see(type + "listTopics", () -> Arrays.toString(topics.listTopics(Namespace.of(Script.LAKE, catalog, "a"))), "[" + ident + "]");
    TopicChange[] changes = {TopicChange.updateComment("d"), TopicChange.setProperty("l", "w"), TopicChange.removeProperty("k")};
    see(type + "alterTopic", () -> {
      Topic found = topics.alterTopic(ident, changes);
      return found.comment() + found.properties().get("l") + found.properties().get("k");
    }, "dwnull");
    see(type + "alterTopic missing", () -> topics.alterTopic(none, changes), "NoSuchTopicException");
    see(type + "dropTopic", () -> topics.dropTopic(ident) + " " + topics.dropTopic(ident), "true false");
  }
}

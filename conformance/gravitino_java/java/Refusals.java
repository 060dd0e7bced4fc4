// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.Catalog;
import com.datastrato.gravitino.CatalogChange;
import com.datastrato.gravitino.MetalakeChange;
import com.datastrato.gravitino.NameIdentifier;
import com.datastrato.gravitino.Namespace;
import com.datastrato.gravitino.authorization.Privileges;
import com.datastrato.gravitino.authorization.SecurableObjects;
import com.datastrato.gravitino.client.GravitinoAdminClient;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.file.Fileset;
import com.datastrato.gravitino.rel.Column;
import com.datastrato.gravitino.rel.SchemaChange;
import com.datastrato.gravitino.rel.SupportsSchemas;
import com.datastrato.gravitino.rel.TableCatalog;
import com.datastrato.gravitino.rel.TableChange;
import com.datastrato.gravitino.rel.types.Types;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** What somebody without rights is refused, by objects that the client made for somebody who has them where it can. */
final class Refusals {

  private static final String LAKE = Script.LAKE;

  private final Book book;
  private final GravitinoClient worker;
  private final GravitinoClient client;
  private final GravitinoAdminClient admin;

  Refusals(Book book, GravitinoClient worker, GravitinoClient client, GravitinoAdminClient admin) {
    this.book = book;
    this.worker = worker;
    this.client = client;
    this.admin = admin;
  }

  private void refused(String step, Book.Call call) {
    book.see("outsider", step, call, Book.FORBIDDEN);
  }

  /** A drop, of which this client tells no failure: nothing of it may be gone afterwards. */
  private void silent(String step, Book.Call call) {
    book.aged("outsider", step, call, false, "it tells of no failure of a drop but of what is not empty");
  }

  void run() throws Exception {
    lake();
    people();
    catalogs();
    below();
    NameIdentifier table = Script.ident("tables_worker", "a", "t");
    book.see("worker", "RelationalCatalog.loadTable after all that", () -> worker.loadCatalog(Script.ident("tables_worker")).asTableCatalog().loadTable(table).name(), "t");
  }

  private void lake() {
    String type = "GravitinoAdminClient.";
    NameIdentifier lake = NameIdentifier.of(LAKE);
    refused(type + "createMetalake", () -> admin.createMetalake(NameIdentifier.of("mine"), "x", Map.of()));
    refused(type + "alterMetalake", () -> admin.alterMetalake(lake, MetalakeChange.updateComment("mine")));
    book.see("outsider", type + "listMetalakes", () -> Arrays.stream(admin.listMetalakes()).map(each -> each.name()).toList(), "[" + LAKE + "]");
    book.see("outsider", type + "loadMetalake", () -> admin.loadMetalake(lake).name(), LAKE);
  }

  private void people() {
    String type = "GravitinoAdminClient.";
    refused(type + "addUser", () -> admin.addUser(LAKE, "x"));
    refused(type + "removeUser", () -> admin.removeUser(LAKE, "worker"));
    refused(type + "getUser", () -> admin.getUser(LAKE, "worker"));
    book.see("outsider", type + "getUser of oneself", () -> admin.getUser(LAKE, "outsider").roles(), "[]");
    refused(type + "addGroup", () -> admin.addGroup(LAKE, "x"));
    refused(type + "removeGroup", () -> admin.removeGroup(LAKE, "x"));
    refused(type + "getGroup", () -> admin.getGroup(LAKE, "x"));
    refused(type + "createRole", () -> admin.createRole(LAKE, "x", Map.of(), List.of(SecurableObjects.ofMetalake(LAKE, List.of(Privileges.UseCatalog.allow())))));
    refused(type + "getRole", () -> admin.getRole(LAKE, "workers"));
    refused(type + "deleteRole", () -> admin.deleteRole(LAKE, "workers"));
    refused(type + "grantRolesToUser", () -> admin.grantRolesToUser(LAKE, List.of("workers"), "outsider"));
    refused(type + "grantRolesToGroup", () -> admin.grantRolesToGroup(LAKE, List.of("workers"), "x"));
    refused(type + "revokeRolesFromUser", () -> admin.revokeRolesFromUser(LAKE, List.of("workers"), "worker"));
    refused(type + "revokeRolesFromGroup", () -> admin.revokeRolesFromGroup(LAKE, List.of("workers"), "x"));
  }

  private void catalogs() {
    String type = "GravitinoClient.";
    NameIdentifier ident = Script.ident("tables_worker");
    book.see("outsider", type + "listCatalogs", () -> client.listCatalogs(Namespace.of(LAKE)).length, 0);
    book.see("outsider", type + "listCatalogsInfo", () -> client.listCatalogsInfo(Namespace.of(LAKE)).length, 0);
    refused(type + "loadCatalog", () -> client.loadCatalog(ident));
    refused(type + "createCatalog", () -> client.createCatalog(Script.ident("mine"), Catalog.Type.FILESET, "fileset", "", Map.of()));
    refused(type + "alterCatalog", () -> client.alterCatalog(ident, CatalogChange.rename("mine")));
    silent(type + "dropCatalog", () -> client.dropCatalog(ident));
  }

  /** The client makes a catalog object for who may load one: the outsider gets the worker's, with its own credential. */
  private Catalog of(String name) throws Exception {
    Catalog found = worker.loadCatalog(Script.ident(name));
    Object rest = read(client.loadMetalake(NameIdentifier.of(LAKE)));
    for (Class<?> type = found.getClass(); type != null; type = type.getSuperclass()) {
      for (java.lang.reflect.Field field : type.getDeclaredFields()) {
        if (field.getName().equals("restClient")) {
          field.setAccessible(true);
          field.set(found, rest);
        }
      }
    }
    return found;
  }

  private static Object read(Object lake) throws Exception {
    java.lang.reflect.Field field = lake.getClass().getDeclaredField("restClient");
    field.setAccessible(true);
    return field.get(lake);
  }

  private void below() throws Exception {
    Catalog tables = of("tables_worker");
    schemas(tables.asSchemas());
    tables(tables.asTableCatalog());
    com.datastrato.gravitino.file.FilesetCatalog files = of("files_worker").asFilesetCatalog();
    NameIdentifier file = Script.ident("files_worker", "a", "x=1");
    refused("FilesetCatalog.listFilesets", () -> files.listFilesets(Namespace.of(LAKE, "files_worker", "a")));
    refused("FilesetCatalog.loadFileset", () -> files.loadFileset(file));
    refused("FilesetCatalog.createFileset", () -> files.createFileset(Script.ident("files_worker", "a", "mine"), "", Fileset.Type.MANAGED, null, Map.of()));
    refused("FilesetCatalog.alterFileset", () -> files.alterFileset(file, com.datastrato.gravitino.file.FilesetChange.rename("mine")));
    refused("FilesetCatalog.dropFileset", () -> files.dropFileset(file));
    com.datastrato.gravitino.messaging.TopicCatalog topics = of("topics_worker").asTopicCatalog();
    NameIdentifier topic = Script.ident("topics_worker", "a", "t");
    refused("MessagingCatalog.listTopics", () -> topics.listTopics(Namespace.of(LAKE, "topics_worker", "a")));
    refused("MessagingCatalog.loadTopic", () -> topics.loadTopic(topic));
    refused("MessagingCatalog.createTopic", () -> topics.createTopic(topic, "", null, Map.of()));
    refused("MessagingCatalog.alterTopic", () -> topics.alterTopic(topic, com.datastrato.gravitino.messaging.TopicChange.updateComment("mine")));
    refused("MessagingCatalog.dropTopic", () -> topics.dropTopic(topic));
  }

  private void schemas(SupportsSchemas schemas) {
    NameIdentifier ident = Script.ident("tables_worker", "a");
    refused("RelationalCatalog.listSchemas", () -> schemas.listSchemas(Namespace.of(LAKE, "tables_worker")));
    refused("RelationalCatalog.loadSchema", () -> schemas.loadSchema(ident));
    refused("RelationalCatalog.createSchema", () -> schemas.createSchema(Script.ident("tables_worker", "mine"), "", Map.of()));
    refused("RelationalCatalog.alterSchema", () -> schemas.alterSchema(ident, SchemaChange.setProperty("k", "mine")));
    silent("RelationalCatalog.dropSchema", () -> schemas.dropSchema(ident, false));
  }

  private void tables(TableCatalog tables) {
    NameIdentifier ident = Script.ident("tables_worker", "a", "t");
    Column[] columns = {Column.of("id", Types.LongType.get(), "")};
    refused("RelationalCatalog.listTables", () -> tables.listTables(Namespace.of(LAKE, "tables_worker", "a")));
    refused("RelationalCatalog.loadTable", () -> tables.loadTable(ident));
    refused("RelationalCatalog.createTable", () -> tables.createTable(Script.ident("tables_worker", "a", "mine"), columns, "", Map.of()));
    refused("RelationalCatalog.alterTable", () -> tables.alterTable(ident, TableChange.rename("mine")));
    silent("RelationalCatalog.dropTable", () -> tables.dropTable(ident));
    silent("RelationalCatalog.purgeTable", () -> tables.purgeTable(ident));
  }
}

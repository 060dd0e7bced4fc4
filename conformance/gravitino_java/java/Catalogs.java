// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.Catalog;
import com.datastrato.gravitino.CatalogChange;
import com.datastrato.gravitino.NameIdentifier;
import com.datastrato.gravitino.Namespace;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.client.GravitinoMetalake;
import com.datastrato.gravitino.rel.SchemaChange;
import com.datastrato.gravitino.rel.SupportsSchemas;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeSet;

/** Catalogs of each type, and schemas, nested ones too. */
final class Catalogs {

  private final Book book;
  private final String user;
  private final GravitinoClient client;

  Catalogs(Book book, String user, GravitinoClient client) {
    this.book = book;
    this.user = user;
    this.client = client;
  }

  void run() {
    catalogs();
    lake();
    SupportsSchemas schemas = client.loadCatalog(Script.ident("tables_" + user)).asSchemas();
    schemas(schemas, "RelationalCatalog.", "tables_" + user);
    nested(schemas, "tables_" + user);
    schemas(client.loadCatalog(Script.ident("files_" + user)).asSchemas(), "FilesetCatalog.", "files_" + user);
    schemas(client.loadCatalog(Script.ident("topics_" + user)).asSchemas(), "MessagingCatalog.", "topics_" + user);
  }

  private void see(String step, Book.Call call, Object wants) {
    book.see(user, step, call, wants);
  }

  private void catalogs() {
    String type = "GravitinoClient.", tables = "tables_" + user;
    Namespace in = Namespace.of(Script.LAKE);
    NameIdentifier ident = Script.ident(tables), none = Script.ident("none"), spare = Script.ident("spare_" + user);
    see(type + "createCatalog", () -> client.createCatalog(ident, Catalog.Type.RELATIONAL, "lakehouse-iceberg", "c", Map.of("k", "v")).name(), tables);
    see(type + "createCatalog again", () -> client.createCatalog(ident, Catalog.Type.RELATIONAL, "lakehouse-iceberg", "c", Map.of()), "CatalogAlreadyExistsException");
    see(type + "createCatalog of filesets", () -> client.createCatalog(Script.ident("files_" + user), Catalog.Type.FILESET, "fileset", "", Map.of()).type(), "FILESET");
    see(type + "createCatalog of topics", () -> client.createCatalog(Script.ident("topics_" + user), Catalog.Type.MESSAGING, "messaging", "", Map.of()).type(), "MESSAGING");
    see(type + "createCatalog of an unknown provider", () -> client.createCatalog(spare, Catalog.Type.RELATIONAL, "none", "", Map.of()), "IllegalArgumentException");
    see(type + "createCatalog of no such name", () -> client.createCatalog(Script.ident("a=b"), Catalog.Type.FILESET, "fileset", "", Map.of()), "IllegalArgumentException");
    see(type + "loadCatalog", () -> client.loadCatalog(ident).properties().get("k"), "v");
    see(type + "loadCatalog missing", () -> client.loadCatalog(none), "NoSuchCatalogException");
    see(type + "listCatalogs", () -> Arrays.asList(client.listCatalogs(in)).contains(ident), true);
    see(type + "listCatalogsInfo", () -> Arrays.stream(client.listCatalogsInfo(in)).anyMatch(each -> each.name().equals(tables)), true);
    client.createCatalog(spare, Catalog.Type.FILESET, "fileset", "", Map.of());
    CatalogChange[] changes = {CatalogChange.updateComment("d"), CatalogChange.setProperty("l", "w"), CatalogChange.removeProperty("k"), CatalogChange.rename("other_" + user)};
    see(type + "alterCatalog", () -> client.alterCatalog(spare, changes).name(), "other_" + user);
    see(type + "alterCatalog missing", () -> client.alterCatalog(none, CatalogChange.updateComment("d")), "NoSuchCatalogException");
    book.aged(user, type + "dropCatalog in use", () -> client.dropCatalog(Script.ident("other_" + user)), false, "a catalog is disabled before it is dropped, for which this client has no call");
    book.see(user, type + "dropCatalog missing", () -> client.dropCatalog(none), false);
    see(type + "clientVersion", () -> client.clientVersion().version(), "0.5.1");
  }

  /** The same calls by the other class that has them. */
  private void lake() {
    String type = "GravitinoMetalake.";
    GravitinoMetalake lake = (GravitinoMetalake) book.see(user, "GravitinoClient.loadMetalake", () -> client.loadMetalake(NameIdentifier.of(Script.LAKE)), Book.ANYTHING);
    NameIdentifier ident = Script.ident("lake_" + user);
    see(type + "createCatalog", () -> lake.createCatalog(ident, Catalog.Type.FILESET, "fileset", "", Map.of()).name(), ident.name());
    see(type + "listCatalogs", () -> Arrays.asList(lake.listCatalogs(Namespace.of(Script.LAKE))).contains(ident), true);
    see(type + "listCatalogsInfo", () -> lake.listCatalogsInfo(Namespace.of(Script.LAKE)).length > 2, true);
    see(type + "loadCatalog", () -> lake.loadCatalog(ident).provider(), "fileset");
    see(type + "alterCatalog", () -> lake.alterCatalog(ident, CatalogChange.updateComment("d")).comment(), "d");
    see(type + "dropCatalog missing", () -> lake.dropCatalog(Script.ident("none")), false);
  }

  private void schemas(SupportsSchemas schemas, String type, String catalog) {
    Namespace in = Namespace.of(Script.LAKE, catalog);
    NameIdentifier ident = Script.ident(catalog, "a"), none = Script.ident(catalog, "none");
    see(type + "asSchemas", () -> client.loadCatalog(Script.ident(catalog)).asSchemas().getClass(), schemas.getClass());
    see(type + "createSchema", () -> schemas.createSchema(ident, "c", Map.of("k", "v")).name(), "a");
    see(type + "createSchema again", () -> schemas.createSchema(ident, "", Map.of()), "SchemaAlreadyExistsException");
    see(type + "createSchema of no such name", () -> schemas.createSchema(Script.ident(catalog, "a b"), "", Map.of()), "IllegalArgumentException");
    see(type + "createSchema in a missing catalog", () -> schemas.createSchema(Script.ident("none", "a"), "", Map.of()), "NoSuchCatalogException");
    see(type + "listSchemas", () -> Arrays.toString(schemas.listSchemas(in)), "[" + ident + "]");
    see(type + "loadSchema", () -> schemas.loadSchema(ident).comment() + schemas.loadSchema(ident).properties().get("k"), "cv");
    see(type + "loadSchema missing", () -> schemas.loadSchema(none), "NoSuchSchemaException");
    see(type + "schemaExists", () -> schemas.schemaExists(ident) + " " + schemas.schemaExists(none), "true false");
    SchemaChange[] changes = {SchemaChange.setProperty("l", "w"), SchemaChange.removeProperty("k")};
    see(type + "alterSchema", () -> new TreeSet<>(schemas.alterSchema(ident, changes).properties().keySet()).containsAll(java.util.List.of("l")), true);
    see(type + "alterSchema missing", () -> schemas.alterSchema(none, changes), "NoSuchSchemaException");
    see(type + "dropSchema missing", () -> schemas.dropSchema(none, false), false);
  }

  /** Names with the separator are namespaces within namespaces. */
  private void nested(SupportsSchemas schemas, String catalog) {
    String type = "RelationalCatalog.";
    NameIdentifier deep = Script.ident(catalog, "n:b:c"), top = Script.ident(catalog, "n");
    see(type + "createSchema nested", () -> schemas.createSchema(deep, "deep", Map.of()).name(), "n:b:c");
    see(type + "loadSchema nested", () -> schemas.loadSchema(deep).comment(), "deep");
    see(type + "loadSchema made on the way", () -> schemas.loadSchema(Script.ident(catalog, "n:b")).name(), "n:b");
    see(type + "listSchemas beside nested ones", () -> Arrays.toString(schemas.listSchemas(Namespace.of(Script.LAKE, catalog))), "[" + Script.ident(catalog, "a") + ", " + top + "]");
    see(type + "createSchema with an empty segment", () -> schemas.createSchema(Script.ident(catalog, "n::c"), "", Map.of()), "IllegalArgumentException");
    see(type + "alterSchema nested", () -> schemas.alterSchema(deep, SchemaChange.setProperty("l", "w")).properties().get("l"), "w");
    see(type + "dropSchema that is not empty", () -> schemas.dropSchema(top, false), "NonEmptySchemaException");
    see(type + "dropSchema nested", () -> schemas.dropSchema(deep, false) + " " + schemas.schemaExists(deep), "true false");
    book.aged(user, type + "dropSchema cascading", () -> schemas.dropSchema(top, true) + " " + schemas.schemaExists(top), "false true", "it tells of no failure of a drop but of what is not empty");
  }
}

// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.NameIdentifier;
import com.datastrato.gravitino.Namespace;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.client.RelationalTable;
import com.datastrato.gravitino.rel.Column;
import com.datastrato.gravitino.rel.Table;
import com.datastrato.gravitino.rel.TableCatalog;
import com.datastrato.gravitino.rel.TableChange;
import com.datastrato.gravitino.rel.TableChange.ColumnPosition;
import com.datastrato.gravitino.rel.expressions.FunctionExpression;
import com.datastrato.gravitino.rel.expressions.NamedReference;
import com.datastrato.gravitino.rel.expressions.distributions.Distribution;
import com.datastrato.gravitino.rel.expressions.distributions.Distributions;
import com.datastrato.gravitino.rel.expressions.literals.Literals;
import com.datastrato.gravitino.rel.expressions.sorts.NullOrdering;
import com.datastrato.gravitino.rel.expressions.sorts.SortDirection;
import com.datastrato.gravitino.rel.expressions.sorts.SortOrder;
import com.datastrato.gravitino.rel.expressions.sorts.SortOrders;
import com.datastrato.gravitino.rel.expressions.transforms.Transform;
import com.datastrato.gravitino.rel.expressions.transforms.Transforms;
import com.datastrato.gravitino.rel.indexes.Index;
import com.datastrato.gravitino.rel.indexes.Indexes;
import com.datastrato.gravitino.rel.partitions.Partitions;
import com.datastrato.gravitino.rel.types.Type;
import com.datastrato.gravitino.rel.types.Types;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Tables: every type, partitioning, sort order, distribution and index that the client knows, and every change. */
final class Tables {

  private static final String TYPE = "RelationalCatalog.";
  private static final String CREATE = TYPE + "createTable ";

  private final Book book;
  private final String user;
  private final String catalog;
  private final TableCatalog tables;

  Tables(Book book, String user, GravitinoClient client) {
    this.book = book;
    this.user = user;
    this.catalog = "tables_" + user;
    this.tables = client.loadCatalog(Script.ident(catalog)).asTableCatalog();
  }

  void run() {
    types();
    layouts();
    paths();
    changes();
    partitions();
    drops();
  }

  private void see(String step, Book.Call call, Object wants) {
    book.see(user, step, call, wants);
  }

  private NameIdentifier named(String name) {
    return Script.ident(catalog, "a", name);
  }

  private Table make(String name, Column[] columns, Transform[] partitioning, Distribution spread, SortOrder[] sorts, Index[] indexes) {
    return tables.createTable(named(name), columns, "c", Map.of("k", "v", "format-version", "3"), partitioning, spread, sorts, indexes);
  }

  private Table make(String name, Column... columns) {
    return make(name, columns, Transforms.EMPTY_TRANSFORM, Distributions.NONE, SortOrders.NONE, Indexes.EMPTY_INDEXES);
  }

  private static String columns(Table table) {
    return Arrays.stream(table.columns()).map(each -> each.name() + " " + each.dataType().simpleString()).collect(Collectors.joining(", "));
  }

  private static Map<String, Type> held() {
    Map<String, Type> types = new LinkedHashMap<>();
    types.put("boolean", Types.BooleanType.get());
    types.put("byte", Types.ByteType.get());
    types.put("short", Types.ShortType.get());
    types.put("integer", Types.IntegerType.get());
    types.put("long", Types.LongType.get());
    types.put("float", Types.FloatType.get());
    types.put("double", Types.DoubleType.get());
    types.put("decimal", Types.DecimalType.of(20, 3));
    types.put("string", Types.StringType.get());
    types.put("varchar", Types.VarCharType.of(20));
    types.put("char", Types.FixedCharType.of(3));
    types.put("fixed", Types.FixedType.of(16));
    types.put("binary", Types.BinaryType.get());
    types.put("uuid", Types.UUIDType.get());
    types.put("date", Types.DateType.get());
    types.put("time", Types.TimeType.get());
    types.put("timestamp", Types.TimestampType.withoutTimeZone());
    types.put("timestamp_tz", Types.TimestampType.withTimeZone());
    types.put("null", Types.NullType.get());
    types.put("list", Types.ListType.of(Types.LongType.get(), false));
    types.put("map", Types.MapType.of(Types.StringType.get(), Types.ListType.nullable(Types.DoubleType.get()), true));
    types.put("struct", Types.StructType.of(
        Types.StructType.Field.notNullField("x", Types.IntegerType.get(), "first"),
        Types.StructType.Field.nullableField("y", Types.MapType.of(Types.StringType.get(), Types.DateType.get(), false))));
    return types;
  }

  private void types() {
    held().forEach((name, type) -> see(CREATE + "with " + name, () -> {
      make("t_" + name, Column.of("v", type, "says"));
      return tables.loadTable(named("t_" + name)).columns()[0].dataType().equals(type);
    }, true));
    Map<String, Type> refused = new LinkedHashMap<>();
    refused.put("interval_year", Types.IntervalYearType.get());
    refused.put("interval_day", Types.IntervalDayType.get());
    refused.put("union", Types.UnionType.of(Types.LongType.get(), Types.StringType.get()));
    refused.put("unparsed", Types.UnparsedType.of("geometry_of_mine"));
    refused.forEach((name, type) -> see(CREATE + "with " + name, () -> make("t_" + name, Column.of("v", type, "")), "IllegalArgumentException"));
  }

  private static final Column[] FOUR = {
    Column.of("id", Types.LongType.get(), "key", false, false, Column.DEFAULT_VALUE_NOT_SET),
    Column.of("at", Types.TimestampType.withTimeZone(), ""),
    Column.of("day", Types.DateType.get(), ""),
    Column.of("name", Types.StringType.get(), "")
  };

  private Book.Call partitioned(String name, Transform partitioning) {
    return () -> {
      Transform[] one = {partitioning};
      make("p_" + name, FOUR, one, Distributions.NONE, SortOrders.NONE, Indexes.EMPTY_INDEXES);
      return Arrays.equals(tables.loadTable(named("p_" + name)).partitioning(), one);
    };
  }

  private void layout(String name, Transform partitioning, Object wants) {
    see(CREATE + "partitioned by " + name, partitioned(name, partitioning), wants);
  }

  private void layouts() {
    layout("identity", Transforms.identity("name"), true);
    layout("year", Transforms.year("at"), true);
    layout("month", Transforms.month("at"), true);
    layout("day", Transforms.day("at"), true);
    layout("hour", Transforms.hour("at"), true);
    layout("bucket", Transforms.bucket(8, new String[] {"id"}), true);
    layout("truncate", Transforms.truncate(4, "name"), true);
    book.aged(user, CREATE + "partitioned by list", partitioned("list", Transforms.list(new String[] {"name"})), "ClassCastException", "it sends no request: a fault of its own");
    book.aged(user, CREATE + "partitioned by range", partitioned("range", Transforms.range(new String[] {"id"})), "ClassCastException", "it sends no request: a fault of its own");
    layout("function", Transforms.apply("f", new NamedReference[] {NamedReference.field("id")}), "UnsupportedOperationException");
    sorted();
    spread();
    indexed();
  }

  private void sorted() {
    SortOrder[] plain = {
      SortOrders.of(NamedReference.field("id"), SortDirection.DESCENDING, NullOrdering.NULLS_LAST),
      SortOrders.of(NamedReference.field("name"), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
    };
    see(CREATE + "sorted", () -> {
      make("s_plain", FOUR, Transforms.EMPTY_TRANSFORM, Distributions.NONE, plain, Indexes.EMPTY_INDEXES);
      return Arrays.equals(tables.loadTable(named("s_plain")).sortOrder(), plain);
    }, true);
    SortOrder[] called = {SortOrders.ascending(FunctionExpression.of("day", NamedReference.field("at")))};
    see(CREATE + "sorted by a function", () -> {
      make("s_called", FOUR, Transforms.EMPTY_TRANSFORM, Distributions.NONE, called, Indexes.EMPTY_INDEXES);
      return Arrays.equals(tables.loadTable(named("s_called")).sortOrder(), called);
    }, true);
    SortOrder[] missing = {SortOrders.ascending(NamedReference.field("none"))};
    see(CREATE + "sorted by a missing column", () -> make("s_none", FOUR, Transforms.EMPTY_TRANSFORM, Distributions.NONE, missing, Indexes.EMPTY_INDEXES), "IllegalArgumentException");
  }

  private void spread() {
    Map<String, Distribution> kept = Map.of("hash", Distributions.HASH, "range", Distributions.RANGE);
    kept.forEach((name, distribution) -> see(CREATE + "distributed by " + name, () -> {
      make("d_" + name, FOUR, Transforms.EMPTY_TRANSFORM, distribution, SortOrders.NONE, Indexes.EMPTY_INDEXES);
      return tables.loadTable(named("d_" + name)).distribution().equals(distribution);
    }, true));
    Map<String, Distribution> refused = Map.of("even", Distributions.even(4, NamedReference.field("id")), "hash in buckets", Distributions.hash(4, NamedReference.field("id")));
    refused.forEach((name, distribution) -> see(CREATE + "distributed by " + name, () -> make("d_refused", FOUR, Transforms.EMPTY_TRANSFORM, distribution, SortOrders.NONE, Indexes.EMPTY_INDEXES), "UnsupportedOperationException"));
  }

  private void indexed() {
    String[][] key = {{"id"}};
    see(CREATE + "with a primary key", () -> {
      make("i_primary", FOUR, Transforms.EMPTY_TRANSFORM, Distributions.NONE, SortOrders.NONE, new Index[] {Indexes.primary("PRIMARY", key)});
      Index found = tables.loadTable(named("i_primary")).index()[0];
      return found.type() + " " + Arrays.deepToString(found.fieldNames());
    }, "PRIMARY_KEY [[id]]");
    see(CREATE + "with a unique key", () -> make("i_unique", FOUR, Transforms.EMPTY_TRANSFORM, Distributions.NONE, SortOrders.NONE, new Index[] {Indexes.unique("u", key)}), "UnsupportedOperationException");
  }

  private void paths() {
    Namespace in = Namespace.of(Script.LAKE, catalog, "a");
    see(TYPE + "asTableCatalog", () -> tables.getClass().getSimpleName(), "RelationalCatalog");
    see(CREATE + "plain", () -> columns(make("t", FOUR)), "id long, at timestamp_tz, day date, name string");
    see(CREATE + "again", () -> make("t", FOUR), "TableAlreadyExistsException");
    see(CREATE + "in a missing schema", () -> tables.createTable(Script.ident(catalog, "none", "t"), FOUR, "", Map.of()), "NoSuchSchemaException");
    see(CREATE + "with an odd name", () -> make("a=b-c/d", FOUR).name(), "a=b-c/d");
    see(TYPE + "loadTable with an odd name", () -> tables.loadTable(named("a=b-c/d")).name(), "a=b-c/d");
    see(CREATE + "with a separator", () -> make("a:b", FOUR), "IllegalArgumentException");
    see(CREATE + "with a default", () -> {
      make("v", FOUR[0], Column.of("n", Types.IntegerType.get(), "", false, false, Literals.integerLiteral(7)));
      return tables.loadTable(named("v")).columns()[1].defaultValue().equals(Literals.integerLiteral(7));
    }, true);
    see(CREATE + "that counts", () -> make("counts", Column.of("n", Types.LongType.get(), "", false, true, Column.DEFAULT_VALUE_NOT_SET)), "UnsupportedOperationException");
    see(TYPE + "loadTable", () -> {
      Table found = tables.loadTable(named("t"));
      return found.comment() + found.properties().get("k") + found.columns()[0].comment() + found.columns()[0].nullable() + found.auditInfo().creator();
    }, "cvkeyfalse" + user);
    see(TYPE + "loadTable missing", () -> tables.loadTable(named("none")), "NoSuchTableException");
    see(TYPE + "tableExists", () -> tables.tableExists(named("t")) + " " + tables.tableExists(named("none")), "true false");
    see(TYPE + "listTables", () -> Arrays.asList(tables.listTables(in)).contains(named("t")), true);
    see(TYPE + "listTables of a missing schema", () -> tables.listTables(Namespace.of(Script.LAKE, catalog, "none")), "NoSuchSchemaException");
    see(CREATE + "nested", () -> tables.createTable(Script.ident(catalog, "n:b", "t"), FOUR, "", Map.of()).name(), "t");
    see(TYPE + "loadTable nested", () -> columns(tables.loadTable(Script.ident(catalog, "n:b", "t"))), "id long, at timestamp_tz, day date, name string");
  }

  private void alter(String what, String wants, TableChange... changes) {
    see(TYPE + "alterTable " + what, () -> columns(tables.alterTable(named("alter"), changes)), wants);
  }

  private static String[] field(String... name) {
    return name;
  }

  private void changes() {
    make("alter", FOUR[0], FOUR[3], Column.of("part", Types.StructType.of(Types.StructType.Field.nullableField("x", Types.IntegerType.get())), ""));
    String part = "part struct<x: integer NULL COMMENT >";
    alter("addColumn", "id long, name string, " + part + ", b integer", TableChange.addColumn(field("b"), Types.IntegerType.get(), "says"));
    alter("addColumn at the front", "f date, id long, name string, " + part + ", b integer", TableChange.addColumn(field("f"), Types.DateType.get(), ColumnPosition.first()));
    alter("addColumn behind another", "f date, id long, g uuid, name string, " + part + ", b integer", TableChange.addColumn(field("g"), Types.UUIDType.get(), "", ColumnPosition.after("id"), true));
    alter("addColumn with a default", "f date, id long, g uuid, name string, " + part + ", b integer, d integer", TableChange.addColumn(field("d"), Types.IntegerType.get(), "", ColumnPosition.defaultPos(), false, false, Literals.integerLiteral(3)));
    alter("renameColumn", "first date, id long, g uuid, name string, " + part + ", b integer, d integer", TableChange.renameColumn(field("f"), "first"));
    alter("updateColumnType", "first date, id long, g uuid, name string, " + part + ", b long, d integer", TableChange.updateColumnType(field("b"), Types.LongType.get()));
    alter("updateColumnPosition", "id long, g uuid, name string, " + part + ", b long, d integer, first date", TableChange.updateColumnPosition(field("first"), ColumnPosition.after("d")));
    alter("deleteColumn", "id long, name string, " + part + ", b long, d integer, first date", TableChange.deleteColumn(field("g"), false));
    alter("deleteColumn that may be missing", "id long, name string, " + part + ", b long, d integer, first date", TableChange.deleteColumn(field("g"), true));
    alter("deleteColumn missing", "IllegalArgumentException", TableChange.deleteColumn(field("g"), false));
    alter("addColumn that is there", "IllegalArgumentException", TableChange.addColumn(field("b"), Types.LongType.get()));
    alter("updateColumnType to a narrower one", "IllegalArgumentException", TableChange.updateColumnType(field("b"), Types.IntegerType.get()));
    alter("updateColumnAutoIncrement", "UnsupportedOperationException", TableChange.updateColumnAutoIncrement(field("id"), true));
    see(TYPE + "alterTable updateColumnComment", () -> column(tables.alterTable(named("alter"), TableChange.updateColumnComment(field("b"), "more")), "b").comment(), "more");
    see(TYPE + "alterTable updateColumnNullability", () -> column(tables.alterTable(named("alter"), TableChange.updateColumnNullability(field("id"), true)), "id").nullable(), true);
    alter("updateColumnNullability back", "IllegalArgumentException", TableChange.updateColumnNullability(field("id"), false));
    see(TYPE + "alterTable updateColumnDefaultValue", () -> column(tables.alterTable(named("alter"), TableChange.updateColumnDefaultValue(field("d"), Literals.integerLiteral(9))), "d").defaultValue().equals(Literals.integerLiteral(9)), true);
    see(TYPE + "alterTable updateComment, setProperty, removeProperty", () -> {
      Table found = tables.alterTable(named("alter"), TableChange.updateComment("e"), TableChange.setProperty("m", "x"), TableChange.removeProperty("k"));
      return found.comment() + found.properties().get("m") + found.properties().get("k");
    }, "exnull");
    alter("addIndex of a unique key", "UnsupportedOperationException", TableChange.addIndex(Index.IndexType.UNIQUE_KEY, "u", new String[][] {{"id"}}));
    alter("deleteIndex that may be missing", "id long, name string, " + part + ", b long, d integer, first date", TableChange.deleteIndex("none", true));
    see(TYPE + "alterTable rename", () -> tables.alterTable(named("alter"), TableChange.rename("altered")).name(), "altered");
    see(TYPE + "alterTable missing", () -> tables.alterTable(named("alter"), TableChange.updateComment("x")), "NoSuchTableException");
    see(TYPE + "alterTable rename to what is there", () -> tables.alterTable(named("altered"), TableChange.rename("t")), "TableAlreadyExistsException");
    see(TYPE + "alterTable rename beside another change", () -> tables.alterTable(named("altered"), TableChange.rename("u"), TableChange.updateComment("x")), "IllegalArgumentException");
  }

  private static Column column(Table table, String name) {
    return Arrays.stream(table.columns()).filter(each -> each.name().equals(name)).findFirst().orElseThrow();
  }

  private void partitions() {
    RelationalTable table = (RelationalTable) tables.loadTable(named("p_identity"));
    String type = "RelationalTable.", refused = "UnsupportedOperationException";
    see(type + "name", table::name, "p_identity");
    see(type + "namespace", table::namespace, Script.LAKE + "." + catalog + ".a");
    see(type + "columns", () -> table.columns().length, 4);
    see(type + "comment", table::comment, "c");
    see(type + "properties", () -> table.properties().get("k"), "v");
    see(type + "partitioning", () -> table.partitioning().length, 1);
    see(type + "sortOrder", () -> table.sortOrder().length, 0);
    see(type + "distribution", () -> table.distribution().strategy(), "NONE");
    see(type + "index", () -> table.index().length, 0);
    see(type + "auditInfo", () -> table.auditInfo().creator(), user);
    see(type + "getPartitionRequestPath", table::getPartitionRequestPath, Book.ANYTHING);
    see(type + "supportPartitions", () -> table.supportPartitions() == table, true);
    see(type + "listPartitionNames", () -> table.supportPartitions().listPartitionNames(), refused);
    see(type + "listPartitions", table::listPartitions, refused);
    see(type + "getPartition", () -> table.getPartition("name=x"), refused);
    see(type + "addPartition", () -> table.addPartition(Partitions.identity(new String[][] {{"name"}}, new com.datastrato.gravitino.rel.expressions.literals.Literal<?>[] {Literals.stringLiteral("x")})), refused);
    see(type + "dropPartition", () -> table.dropPartition("name=x"), refused);
  }

  private void drops() {
    see(TYPE + "dropTable", () -> tables.dropTable(named("t_boolean")) + " " + tables.tableExists(named("t_boolean")), "true false");
    see(TYPE + "dropTable missing", () -> tables.dropTable(named("t_boolean")), false);
    see(TYPE + "purgeTable", () -> tables.purgeTable(named("t_byte")) + " " + tables.tableExists(named("t_byte")), "true false");
    see(TYPE + "purgeTable missing", () -> tables.purgeTable(named("t_byte")), false);
  }
}

// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.authorization.Privilege;
import com.datastrato.gravitino.authorization.Privileges;
import com.datastrato.gravitino.authorization.Role;
import com.datastrato.gravitino.authorization.SecurableObject;
import com.datastrato.gravitino.authorization.SecurableObjects;
import com.datastrato.gravitino.client.GravitinoAdminClient;
import java.util.List;
import java.util.Map;

/** Users, groups, roles and who holds them. */
final class People {

  private static final String TYPE = "GravitinoAdminClient.";

  private final Book book;
  private final String user;
  private final GravitinoAdminClient client;

  People(Book book, String user, GravitinoAdminClient client) {
    this.book = book;
    this.user = user;
    this.client = client;
  }

  /** Add the two users that the rest is done by. */
  static void users(Book book, GravitinoAdminClient admin) {
    for (String name : new String[] {"worker", "outsider"}) {
      book.see("admin", TYPE + "addUser " + name, () -> admin.addUser(Script.LAKE, name).name(), name);
    }
  }

  /** Grant a user what a worker needs, by one role and with the words that this client has. */
  static void rights(GravitinoAdminClient admin, String user) {
    List<Privilege> granted = List.of(
        Privileges.CreateCatalog.allow(), Privileges.UseCatalog.allow(), Privileges.CreateSchema.allow(), Privileges.UseSchema.allow(), Privileges.CreateRole.allow());
    admin.createRole(Script.LAKE, "workers", Map.of(), List.of(SecurableObjects.ofMetalake(Script.LAKE, granted)));
    admin.grantRolesToUser(Script.LAKE, List.of("workers"), user);
  }

  private void see(String step, Book.Call call, Object wants) {
    book.see(user, step, call, wants);
  }

  void run() {
    boolean admin = user.equals("admin");
    String one = "u_" + user, crew = "g_" + user, lake = Script.LAKE;
    see(TYPE + "addUser", () -> client.addUser(lake, one).name(), admin ? one : Book.FORBIDDEN);
    see(TYPE + "addGroup", () -> client.addGroup(lake, crew).name(), admin ? crew : Book.FORBIDDEN);
    if (admin) {
      see(TYPE + "addUser again", () -> client.addUser(lake, one), "UserAlreadyExistsException");
      see(TYPE + "addGroup again", () -> client.addGroup(lake, crew), "GroupAlreadyExistsException");
      see(TYPE + "getUser", () -> client.getUser(lake, one).roles(), "[]");
      see(TYPE + "getUser missing", () -> client.getUser(lake, "none"), "NoSuchUserException");
      see(TYPE + "getGroup", () -> client.getGroup(lake, crew).roles(), "[]");
      see(TYPE + "getGroup missing", () -> client.getGroup(lake, "none"), "NoSuchGroupException");
      book.aged(user, TYPE + "addUser to a missing metalake", () -> client.addUser("none", one), Book.NO_MEMBER, "a metalake that is not there is forbidden, with access control on");
    }
    roles(admin, one, crew);
    see(TYPE + "removeGroup", () -> client.removeGroup(lake, crew) + " " + client.removeGroup(lake, crew), admin ? "true false" : Book.FORBIDDEN);
    see(TYPE + "removeUser", () -> client.removeUser(lake, one) + " " + client.removeUser(lake, one), admin ? "true false" : Book.FORBIDDEN);
  }

  private void roles(boolean admin, String one, String crew) {
    String name = "r_" + user, lake = Script.LAKE, tables = "tables_" + user;
    SecurableObject catalog = SecurableObjects.ofCatalog(tables, List.of(Privileges.UseCatalog.allow(), Privileges.CreateTable.deny()));
    SecurableObject schema = SecurableObjects.ofSchema(catalog, "a", List.of(Privileges.UseSchema.allow()));
    SecurableObject files = SecurableObjects.ofCatalog("files_" + user, List.of(Privileges.ReadFileset.allow()));
    see(TYPE + "createRole", () -> client.createRole(lake, name, Map.of("k", "v"), List.of(catalog, schema, files)).name(), name);
    see(TYPE + "createRole again", () -> client.createRole(lake, name, Map.of(), List.of(catalog)), "RoleAlreadyExistsException");
    see(TYPE + "createRole on a missing object", () -> client.createRole(lake, "x_" + user, Map.of(), List.of(SecurableObjects.ofCatalog("none", List.of(Privileges.UseCatalog.allow())))), "IllegalArgumentException");
    book.aged(user, TYPE + "createRole with a word of its own", () -> client.createRole(lake, "x_" + user, Map.of(), List.of(SecurableObjects.ofCatalog(tables, List.of(Privileges.ReadTable.allow())))), "IllegalArgumentException", "READ_TABLE is SELECT_TABLE today, WRITE_TABLE is MODIFY_TABLE; who may drop or alter is its owner");
    see(TYPE + "getRole", () -> {
      Role found = client.getRole(lake, name);
      return found.properties() + " " + found.securableObjects().stream().map(SecurableObject::fullName).sorted().toList();
    }, "{k=v} [files_" + user + ", " + tables + ", " + tables + ".a]");
    see(TYPE + "grantRolesToUser", () -> client.grantRolesToUser(lake, List.of(name), one).roles(), admin ? "[" + name + "]" : Book.FORBIDDEN);
    see(TYPE + "grantRolesToGroup", () -> client.grantRolesToGroup(lake, List.of(name), crew).roles(), admin ? "[" + name + "]" : Book.FORBIDDEN);
    if (admin) {
      see(TYPE + "grantRolesToUser of an unknown role", () -> client.grantRolesToUser(lake, List.of("none"), one), "IllegalArgumentException");
      see(TYPE + "grantRolesToUser to an unknown user", () -> client.grantRolesToUser(lake, List.of(name), "none"), "NoSuchUserException");
      see(TYPE + "grantRolesToGroup to an unknown group", () -> client.grantRolesToGroup(lake, List.of(name), "none"), "NoSuchGroupException");
    }
    see(TYPE + "revokeRolesFromUser", () -> client.revokeRolesFromUser(lake, List.of(name), one).roles(), admin ? "[]" : Book.FORBIDDEN);
    see(TYPE + "revokeRolesFromGroup", () -> client.revokeRolesFromGroup(lake, List.of(name), crew).roles(), admin ? "[]" : Book.FORBIDDEN);
    see(TYPE + "deleteRole with a denial", () -> client.deleteRole(lake, name), admin ? true : "RESTException: denies privileges");
    String plain = "p_" + user;
    see(TYPE + "createRole without denials", () -> client.createRole(lake, plain, Map.of(), List.of(files)).name(), plain);
    see(TYPE + "deleteRole", () -> client.deleteRole(lake, plain), true);
    see(TYPE + "deleteRole missing", () -> client.deleteRole(lake, plain), admin ? false : Book.FORBIDDEN);
    see(TYPE + "getRole missing", () -> client.getRole(lake, plain), admin ? "NoSuchRoleException" : Book.FORBIDDEN);
  }
}

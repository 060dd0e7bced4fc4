// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.Catalog;
import com.datastrato.gravitino.MetalakeChange;
import com.datastrato.gravitino.NameIdentifier;
import com.datastrato.gravitino.Namespace;
import com.datastrato.gravitino.client.DefaultOAuth2TokenProvider;
import com.datastrato.gravitino.client.GravitinoAdminClient;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.client.GravitinoMetalake;
import com.datastrato.gravitino.client.OAuth2TokenProvider;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.function.Function;

/**
 * Calls the Java client's methods as an admin, as a worker who was granted the work, and as an outsider. Usage: Script URI;
 * the environment has GRAVITINO_USER, whom the client's simple authentication names, and LIMNOS_TOKEN, an admin's token.
 */
public final class Script {

  static final String LAKE = "java_conformance";
  private static final String[] USERS = {"admin", "worker", "outsider"};

  public static void main(String[] arguments) throws Exception {
    String uri = arguments[0];
    Book book = new Book();
    GravitinoAdminClient admin = GravitinoAdminClient.builder(uri).withSimpleAuth().build();
    metalakes(book, admin);
    People.users(book, admin);
    Function<String, GravitinoClient> clients = user -> client(uri, user);
    People.rights(admin, "worker");
    for (String user : new String[] {"admin", "worker"}) {
      GravitinoClient client = clients.apply(user);
      new Catalogs(book, user, client).run();
      new Tables(book, user, client).run();
      new Leaves(book, user, client).run();
      new People(book, user, adminClient(uri, user)).run();
    }
    new Refusals(book, clients.apply("worker"), clients.apply("outsider"), adminClient(uri, "outsider")).run();
    signingIn(book, uri);
    ages(book, clients.apply("admin"), admin);
    models(book, clients.apply("admin"), uri);
    book.see("admin", "GravitinoAdminClient.close", () -> { admin.close(); return "closed"; }, "closed");
    book.tell();
    System.exit(0);
  }

  static NameIdentifier ident(String... names) {
    String[] all = new String[names.length + 1];
    all[0] = LAKE;
    System.arraycopy(names, 0, all, 1, names.length);
    return NameIdentifier.of(all);
  }

  private static Map<String, String> basic(String user) {
    return Map.of("Authorization", "Basic " + Base64.getEncoder().encodeToString((user + ":x").getBytes()));
  }

  private static GravitinoClient client(String uri, String user) {
    return GravitinoClient.builder(uri).withMetalake(LAKE).withHeaders(basic(user)).build();
  }

  private static GravitinoAdminClient adminClient(String uri, String user) {
    return GravitinoAdminClient.builder(uri).withHeaders(basic(user)).build();
  }

  private static void metalakes(Book book, GravitinoAdminClient admin) {
    String type = "GravitinoAdminClient.";
    NameIdentifier lake = NameIdentifier.of(LAKE), gone = NameIdentifier.of("java_gone");
    book.see("admin", type + "createMetalake", () -> admin.createMetalake(lake, "c", Map.of("k", "v")).name(), LAKE);
    book.see("admin", type + "createMetalake again", () -> admin.createMetalake(lake, "c", Map.of()), "MetalakeAlreadyExistsException");
    book.see("admin", type + "createMetalake of no such name", () -> admin.createMetalake(NameIdentifier.of("a b"), "", Map.of()), "IllegalArgumentException");
    book.see("admin", type + "listMetalakes", () -> Arrays.stream(admin.listMetalakes()).anyMatch(each -> each.name().equals(LAKE)), true);
    book.see("admin", type + "loadMetalake", () -> admin.loadMetalake(lake).properties().get("k"), "v");
    book.aged("admin", type + "loadMetalake missing", () -> admin.loadMetalake(gone), Book.NO_MEMBER, "a metalake that is not there is forbidden, with access control on");
    book.see("admin", type + "alterMetalake", () -> {
      GravitinoMetalake found = admin.alterMetalake(lake, MetalakeChange.updateComment("d"), MetalakeChange.setProperty("l", "w"), MetalakeChange.removeProperty("k"));
      return found.comment() + found.properties().get("l") + found.properties().get("k");
    }, "dwnull");
    admin.createMetalake(gone, "", Map.of());
    book.see("admin", type + "alterMetalake of the name", () -> admin.alterMetalake(gone, MetalakeChange.rename("java_lost")).name(), "java_lost");
    book.aged("admin", type + "dropMetalake in use", () -> admin.dropMetalake(NameIdentifier.of("java_lost")), false, "a metalake is disabled before it is dropped, for which this client has no call");
    book.see("admin", type + "clientVersion", () -> admin.clientVersion().version(), "0.5.1");
    book.see("admin", type + "serverVersion", () -> admin.serverVersion().version(), Book.ANYTHING);
    book.see("admin", type + "getVersion", () -> admin.getVersion().version(), Book.ANYTHING);
    book.see("admin", type + "checkVersion", () -> { admin.checkVersion(); return "checked"; }, "checked");
  }

  /** An API token, which the client's own provider for OAuth's client credentials fetches and does not send. */
  private static void signingIn(Book book, String uri) {
    String token = System.getenv("LIMNOS_TOKEN");
    OAuth2TokenProvider bearer = new OAuth2TokenProvider() {
      @Override
      protected String getAccessToken() {
        return token;
      }
    };
    GravitinoClient client = GravitinoClient.builder(uri).withMetalake(LAKE).withOAuth(bearer).build();
    book.see("admin", "GravitinoClient.loadCatalog by a token", () -> client.loadCatalog(ident("tables_admin")).name(), "tables_admin");
    book.see("admin", "GravitinoClient.checkVersion", () -> { client.checkVersion(); return "checked"; }, "checked");
    book.see("admin", "GravitinoClient.serverVersion", () -> client.serverVersion().compareTo(client.clientVersion()), 1);
    book.see("admin", "GravitinoClient.getVersion", () -> client.getVersion().version(), client.serverVersion().version());
    book.see("admin", "GravitinoClient.close", () -> { client.close(); return "closed"; }, "closed");
    book.aged("admin", "GravitinoClient.loadMetalake by client credentials", () -> byCredentials(uri, token, "PRINCIPAL_ROLE:ALL"), "NullPointerException", "for other scopes it gets the API token, and sends none, because it is no JWT");
    book.see("admin", "GravitinoClient.loadCatalog by client credentials", () -> byCredentials(uri, token, "gravitino").loadCatalog(ident("tables_admin")).name(), "tables_admin");
  }

  /** A client with its own provider of OAuth's client credentials. */
  private static GravitinoClient byCredentials(String uri, String token, String scope) {
    DefaultOAuth2TokenProvider fetched =
        DefaultOAuth2TokenProvider.builder()
            .withUri(uri).withCredential("admin:" + token).withScope(scope).withPath("iceberg/v1/oauth/tokens").build();
    return GravitinoClient.builder(uri).withMetalake(LAKE).withOAuth(fetched).build();
  }

  /** What the newer wire says that this client cannot read. */
  private static void ages(Book book, GravitinoClient client, GravitinoAdminClient admin) {
    book.aged("admin", "GravitinoAdminClient.addMetalakeAdmin", () -> admin.addMetalakeAdmin("boss"), "NotFoundException", "service admins are a setting of the server");
    book.aged("admin", "GravitinoAdminClient.removeMetalakeAdmin", () -> admin.removeMetalakeAdmin("boss"), "NotFoundException", "service admins are a setting of the server");
    book.aged("admin", "GravitinoClient.createCatalog of a type that it does not know", () -> client.createCatalog(ident("odd"), Catalog.Type.UNSUPPORTED, "none", "", Map.of()), "IllegalArgumentException", "its fourth type is nobody's");
  }

  /** A catalog that this client can neither make nor tell of. */
  private static void models(Book book, GravitinoClient client, String uri) throws Exception {
    HttpRequest made =
        HttpRequest.newBuilder(URI.create(uri + "/api/metalakes/" + LAKE + "/catalogs"))
            .header("Authorization", "Bearer " + System.getenv("LIMNOS_TOKEN"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"name\": \"models\", \"type\": \"model\"}"))
            .build();
    int status = HttpClient.newHttpClient().send(made, HttpResponse.BodyHandlers.ofString()).statusCode();
    if (status != 200) {
      throw new IllegalStateException("No catalog of models was made: " + status);
    }
    book.aged("admin", "GravitinoClient.listCatalogsInfo beside a catalog of models", () -> client.listCatalogsInfo(Namespace.of(LAKE)), "RESTException", "it reads catalogs of three types");
    book.see("admin", "GravitinoClient.listCatalogs beside a catalog of models", () -> Arrays.asList(client.listCatalogs(Namespace.of(LAKE))).contains(ident("models")), true);
  }

  private Script() {}
}

// SPDX-License-Identifier: Apache-2.0
import com.datastrato.gravitino.client.FilesetCatalog;
import com.datastrato.gravitino.client.GravitinoAdminClient;
import com.datastrato.gravitino.client.GravitinoClient;
import com.datastrato.gravitino.client.GravitinoMetalake;
import com.datastrato.gravitino.client.MessagingCatalog;
import com.datastrato.gravitino.client.RelationalCatalog;
import com.datastrato.gravitino.client.RelationalTable;
import com.datastrato.gravitino.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Keeps how each step ended, which methods the steps name, and which public methods the client's classes have. */
final class Book {

  /** A call of the client. */
  interface Call {
    Object run() throws Exception;
  }

  /** What a step wants when any value will do. */
  static final String ANYTHING = "<anything>";

  /** What the client of this age makes of 403, which it does not know: `RESTException`, with the server's words in it. */
  static final String FORBIDDEN = "RESTException: is not authorized to perform operation";

  /** The same of a metalake that is not there, or that the caller is no user of. */
  static final String NO_MEMBER = "RESTException: doesn't exist in the metalake";

  private static final List<Class<?>> CLASSES =
      List.of(
          GravitinoAdminClient.class,
          GravitinoClient.class,
          GravitinoMetalake.class,
          RelationalCatalog.class,
          RelationalTable.class,
          FilesetCatalog.class,
          MessagingCatalog.class);

  private final Set<String> known = new TreeSet<>();
  private final Set<String> offered = new TreeSet<>();
  private final Set<String> called = new TreeSet<>();
  private final List<Map<String, String>> steps = new ArrayList<>();

  Book() {
    for (Class<?> each : CLASSES) {
      for (Method method : each.getMethods()) {
        boolean own = method.getDeclaringClass().getName().contains("gravitino.client");
        String name = each.getSimpleName() + "." + method.getName();
        offered.add(name);
        if (own && !Modifier.isStatic(method.getModifiers())) {
          known.add(name);
        }
      }
    }
  }

  /**
   * Does a step of somebody. `step` begins with Class.method. `wants`: what it gives, as text; or the simple name of the
   * exception it ends with, perhaps followed by ": " and a part of what that says.
   */
  Object see(String who, String step, Call call, Object wants) {
    return note(who, step, call, wants, "");
  }

  /** A step that ends otherwise than its caller would wish because the client is older than the wire: `age` says how. */
  void aged(String who, String step, Call call, Object wants, String age) {
    note(who, step, call, wants, age);
  }

  private Object note(String who, String step, Call call, Object wants, String age) {
    String method = step.split(" ")[0];
    if (!offered.contains(method)) {
      throw new IllegalStateException("The client has no method " + method);
    }
    if (known.contains(method)) {
      called.add(method);
    }
    Object found = null;
    String told;
    boolean right;
    String wanted = String.valueOf(wants);
    try {
      found = call.run();
      told = String.valueOf(found);
      right = wanted.equals(ANYTHING) || told.equals(wanted);
    } catch (Exception failure) {
      told = failure.getClass().getSimpleName() + ": " + failure.getMessage();
      String[] parts = wanted.split(": ", 2);
      right = failure.getClass().getSimpleName().equals(parts[0]) && (parts.length == 1 || told.contains(parts[1]));
    }
    Map<String, String> line = new LinkedHashMap<>();
    line.put("who", who);
    line.put("step", step);
    line.put("outcome", right ? "ok" : "FAILED");
    line.put("told", told.length() > 500 ? told.substring(0, 500) : told);
    line.put("wants", wanted);
    line.put("age", age);
    steps.add(line);
    return found;
  }

  /** Print all that is known as one JSON object. */
  void tell() throws Exception {
    System.out.println(new ObjectMapper().writeValueAsString(Map.of("known", known, "called", called, "steps", steps)));
  }
}

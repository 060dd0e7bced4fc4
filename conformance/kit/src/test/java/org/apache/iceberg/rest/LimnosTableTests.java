// SPDX-License-Identifier: Apache-2.0
package org.apache.iceberg.rest;

import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The kit's table tests with everything switched on that has no flag: nested namespaces, slashes in names, and the
 * test of unique locations. It lives in the kit's package because the kit's set-up is visible only there.
 */
public class LimnosTableTests extends RESTCompatibilityKitCatalogTests {

  @Override
  protected boolean supportsNestedNamespaces() {
    return true;
  }

  @Override
  protected boolean supportsNamesWithSlashes() {
    return true;
  }

  /** The kit empties its own namespaces before each test, but knows nothing of the nested ones of two tests. */
  @BeforeEach
  void dropNested() {
    Namespace parent = Namespace.of("parent");
    if (catalog().namespaceExists(parent)) {
      catalog().listNamespaces(parent).forEach(catalog()::dropNamespace);
      catalog().dropNamespace(parent);
    }
  }

  /** Locations that the tests ask for are below a directory of this run, so that runs leave each other alone. */
  @Override
  protected String baseTableLocation(TableIdentifier identifier) {
    return System.getProperty("limnos.kit.base") + "/" + identifier.namespace() + "/" + identifier.name();
  }

  /** The kit leaves it out because its own server cannot be set to it; here locations are always unique. */
  @Override
  @Test
  public void createTableInUniqueLocation() {
    super.createTableInUniqueLocation();
  }
}

// SPDX-License-Identifier: Apache-2.0
package org.apache.iceberg.rest;

/**
 * The kit's view tests. It lives in the kit's package because the kit's set-up is visible only there; nothing of them has
 * to be switched on.
 */
public class LimnosViewTests extends RESTCompatibilityKitViewCatalogTests {}

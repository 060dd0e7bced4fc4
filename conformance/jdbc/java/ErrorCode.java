// SPDX-License-Identifier: Apache-2.0
package org.apache.asterix.common.exceptions;

/** The codes that the driver's tests look for; AsterixDB's own class is not on Maven Central. */
public enum ErrorCode {
    INVALID_FORMAT(6),
    PROHIBITED_STATEMENT_CATEGORY(44);

    private final int number;

    ErrorCode(int number) {
        this.number = number;
    }

    public String errorCode() {
        return String.format("ASX%04d", number);
    }
}

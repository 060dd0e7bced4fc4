// SPDX-License-Identifier: Apache-2.0
package org.apache.hyracks.algebricks.common.utils;

/** Two values. The driver's tests take this class from AsterixDB's own libraries, which Maven Central does not have. */
public class Pair<F, S> {

    public F first;
    public S second;

    public Pair(F first, S second) {
        this.first = first;
        this.second = second;
    }

    public F getFirst() {
        return first;
    }

    public S getSecond() {
        return second;
    }
}

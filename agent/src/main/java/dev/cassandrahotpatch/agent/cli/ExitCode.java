/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

/** What the command line ends with; the help of every command lists the same. */
final class ExitCode {
    static final int FINE = 0;
    static final int NOT_AS_WANTED = 1;
    static final int USAGE = 2;
    static final int UNREACHABLE = 3;

    private ExitCode() {}
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

/** Why a command can't do what it was asked: one sentence for the operator, with what to do, and the exit code. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    private final int exitCode;

    private Failure(int exitCode, String sentence) {
        super(sentence);
        this.exitCode = exitCode;
    }

    /** The command was understood, and what it found rules out what was wanted. */
    static Failure notAsWanted(String sentence) {
        return new Failure(ExitCode.NOT_AS_WANTED, sentence);
    }

    /** What was given on the command line makes no sense here. */
    static Failure usage(String sentence) {
        return new Failure(ExitCode.USAGE, sentence);
    }

    /** The node, or a file, could not be reached. */
    static Failure unreachable(String sentence) {
        return new Failure(ExitCode.UNREACHABLE, sentence);
    }

    int exitCode() {
        return exitCode;
    }
}

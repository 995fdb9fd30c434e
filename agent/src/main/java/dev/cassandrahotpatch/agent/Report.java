/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import java.util.List;

/**
 * Tells the operator what runs: on standard error before Cassandra starts, in Cassandra's log once it has, and on standard
 * error again if the log can't be written or the JVM ends before there was a log.
 */
final class Report {
    static final String MARK = "[hotpatch] ";

    private final PatchBoard board;
    private final List<String> warnings;
    private final Runnable whileStarting;
    private final Runnable beforeTable;
    /** Written by the report's thread once the table has been logged, read by the JVM's shutdown thread. */
    private volatile boolean logged;

    /**
     * Makes the report.
     *
     * @param whileStarting what to do about ten times a second while Cassandra starts
     * @param beforeTable what to do once Cassandra has started and before the table is made
     */
    Report(PatchBoard board, List<String> warnings, Runnable whileStarting, Runnable beforeTable) {
        this.board = board;
        this.warnings = warnings;
        this.whileStarting = whileStarting;
        this.beforeTable = beforeTable;
    }

    void printAtPremain(long millis) {
        HotPatch.print(title() + ", ready after " + millis + " ms");
        for (String warning : warnings) {
            HotPatch.print("warning: " + warning);
        }
        printTable();
    }

    /** Starts the thread that waits for Cassandra and then logs the table; it ends with that. */
    void logWhenCassandraHasStarted() {
        startDaemon(this::logTableAfterStart);
        Runtime.getRuntime().addShutdownHook(new Thread(this::printTableIfNeverLogged, "hotpatch-last-report"));
    }

    private void logTableAfterStart() {
        try {
            CassandraStart.await(whileStarting);
            beforeTable.run();
            logTable();
            logged = true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            HotPatch.print(
                    "warning: interrupted while waiting for Cassandra to start; the table of patches follows at the"
                            + " end of this JVM");
        } catch (RuntimeException | LinkageError e) {
            HotPatch.print("warning: the table of patches can't be logged (" + e + "); it follows here");
            printTable();
        }
    }

    private void logTable() {
        List<PatchStatus> statuses = board.statusesThenChangesTo(this::logFromThreadOfItsOwn);
        CassandraLog.info(MARK + title());
        for (String warning : warnings) {
            CassandraLog.warn(MARK + "warning: " + warning);
        }
        statuses.forEach(this::log);
        String problem = CassandraLog.problem();
        if (problem != null) {
            HotPatch.print("warning: Cassandra's log can't be trusted to have the table of patches (" + problem
                    + "): see that its folder can be written; the table follows here");
            printTable();
        }
    }

    /** A change happens while some thread loads a class: logging there could load more, and wait for who waits for us. */
    private void logFromThreadOfItsOwn(PatchStatus status) {
        startDaemon(() -> log(status));
    }

    private static void startDaemon(Runnable task) {
        Thread thread = new Thread(task, "hotpatch-report");
        thread.setDaemon(true);
        thread.start();
    }

    private void log(PatchStatus status) {
        if (status.state() == PatchState.REFUSED || status.state() == PatchState.FAILED) {
            CassandraLog.warn(MARK + status);
        } else {
            CassandraLog.info(MARK + status);
        }
    }

    private void printTable() {
        for (PatchStatus status : board.statuses()) {
            HotPatch.print(status.toString());
        }
    }

    private void printTableIfNeverLogged() {
        if (!logged) {
            HotPatch.print("this JVM ends before a Cassandra in it has started; the patches were");
            printTable();
        }
    }

    private String title() {
        return "Cassandra Hotpatch " + Agent.version() + ", " + board.statuses().size() + " patches";
    }
}

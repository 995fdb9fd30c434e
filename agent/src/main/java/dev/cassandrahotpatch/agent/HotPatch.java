/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.ClassFiles;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * The agent in one JVM: reads the options, looks at what the class path has for each patch, installs the transformer for
 * those that fit, and has the report made once Cassandra has started.
 */
final class HotPatch {
    static final String DAEMON = "org.apache.cassandra.service.CassandraDaemon";
    /** The newest Java that our tests run on. */
    private static final int NEWEST_JAVA = 25;

    private final List<Patch> patches = Catalogue.patches();
    private final ClassLoader loader = ClassLoader.getSystemClassLoader();
    private final PatchBoard board = new PatchBoard(patches);
    private final Options options;
    private final List<String> warnings;

    private HotPatch(Options options) {
        this.options = options;
        this.warnings = new ArrayList<>(options.warnings());
    }

    /**
     * Starts the agent if this JVM is a Cassandra daemon, or if the operator asked for every JVM; otherwise does and says
     * nothing, because scripts read what Cassandra's tools print.
     */
    static void start(String arguments, Instrumentation instrumentation) {
        long began = System.nanoTime();
        Options options = Options.read(arguments, System.getProperties(), Catalogue.patches());
        if (isDaemon() || options.everywhere()) {
            new HotPatch(options).install(instrumentation, began);
        }
    }

    /** Says that the agent is on the command line more than once. */
    static void startedTwice() {
        if (isDaemon()) {
            print("warning: cassandra-hotpatch.jar is on the command line more than once; the first one runs, with its"
                    + " arguments: remove the other -javaagent option");
        }
    }

    private static boolean isDaemon() {
        // set by the java launcher: main class and arguments; absent where there is no main class, as in the JVM that
        // bin/cassandra runs first (CASSANDRA-7254)
        String command = System.getProperty("sun.java.command", "");
        return command.equals(DAEMON) || command.startsWith(DAEMON + " ");
    }

    private void install(Instrumentation instrumentation, long began) {
        warnOfTheJvm();
        publishSettings();
        PatchTransformer transformer = new PatchTransformer(loader, options, board);
        for (Patch patch : patches) {
            if (prepare(patch)) {
                transformer.add(patch);
            }
        }
        if (transformer.hasTargets()) {
            instrumentation.addTransformer(transformer, instrumentation.isRetransformClassesSupported());
        }
        Report report = new Report(board, warnings, () -> loadWaiting());
        report.printAtPremain(millisSince(began));
        report.logWhenCassandraHasStarted();
    }

    private void warnOfTheJvm() {
        String version = System.getProperty("java.specification.version", "");
        try {
            // "1.8", or a plain number from 9 on
            if (!version.startsWith("1.") && Integer.parseInt(version) > NEWEST_JAVA) {
                warnings.add(
                        "Java " + version + " is newer than " + NEWEST_JAVA + ", the newest that this agent is tested"
                                + " on; patches are applied all the same: to run without them, -D" + Options.PREFIX
                                + "enabled=false");
            }
        } catch (NumberFormatException e) {
            warnings.add(
                    "this JVM's version, " + version + ", is unknown to this agent; patches are applied all the same");
        }
        if (loader.getResource(DAEMON.replace('.', '/') + ".class") == null) {
            warnings.add(
                    "there is no Cassandra on the class path, so there is nothing to patch: remove the -javaagent option"
                            + " from this program");
        }
    }

    /** Runtime classes read their settings from system properties; this makes sure that they find valid ones. */
    private void publishSettings() {
        for (Map.Entry<String, String> setting : options.settings().entrySet()) {
            System.setProperty(setting.getKey(), setting.getValue());
        }
    }

    /** Looks at a patch's sites on the class path, without loading their classes; says whether to weave it. */
    private boolean prepare(Patch patch) {
        String disabledBy = options.disabledBy(patch);
        if (disabledBy != null) {
            board.fix(PatchStatus.disabled(patch, disabledBy));
            return false;
        }
        String missing = missingRuntimeClass(patch);
        if (missing != null) {
            board.fix(PatchStatus.failed(patch, missing));
            return false;
        }
        for (Site site : patch.sites()) {
            try {
                byte[] classFile = ClassFiles.read(site, loader);
                if (classFile != null) {
                    Weaver.Weaving weaving =
                            Weaver.weave(classFile, Collections.singletonList(site), options.accepted(patch));
                    board.record(patch, site, weaving.verdicts().get(site));
                }
            } catch (IOException e) {
                board.record(patch, site, Verdict.failed("reading " + site.className() + " from the class path", e));
            }
        }
        return board.status(patch).state() == PatchState.WAITING;
    }

    private String missingRuntimeClass(Patch patch) {
        for (String runtimeClass : patch.runtimeClasses()) {
            try {
                Class.forName(
                        runtimeClass, false, loader); // loads it and no more: Cassandra's classes must not load yet
            } catch (ClassNotFoundException | LinkageError e) {
                return "the agent's jar lacks " + runtimeClass + " (" + e + "): reinstall it; the stock code runs";
            }
        }
        return null;
    }

    /** Has the classes loaded, but not initialised, that a started Cassandra has had no use for yet. */
    private void loadWaiting() {
        for (PatchStatus status : board.statuses()) {
            if (status.state() != PatchState.WAITING) {
                continue;
            }
            for (Site site : status.patch().sites()) {
                try {
                    Class.forName(site.className(), false, loader);
                } catch (ClassNotFoundException e) {
                    // stays WAITING: its reason says that the class is not there
                } catch (LinkageError e) {
                    board.record(status.patch(), site, Verdict.failed("loading " + site.className(), e));
                }
            }
        }
    }

    static void print(String line) {
        System.err.println(Report.MARK + line);
    }

    private static long millisSince(long nanoTime) {
        return (System.nanoTime() - nanoTime) / 1_000_000;
    }
}

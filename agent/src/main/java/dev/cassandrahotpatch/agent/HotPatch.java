/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.runtime.PatchFailures;
import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.ClassFiles;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The agent in one JVM: reads the options, looks at what the class path has for each patch, weaves in those that fit, has the
 * report made once Cassandra has started, and adds and removes patches while it runs.
 */
final class HotPatch {
    /** The newest Java that our tests run on. */
    private static final int NEWEST_JAVA = 25;

    /** Set by the first start, for as long as the JVM lives: a second agent option or attach runs this same class again. */
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private final List<Patch> patches = Catalogue.patches();
    private final ClassLoader loader = ClassLoader.getSystemClassLoader();
    private final PatchBoard board = new PatchBoard(patches);
    private final Options options;
    private final List<String> warnings;
    private final Instrumentation instrumentation;
    private final PatchTransformer transformer;
    /** Patches whose own code met an error: weaving them again would not mend that. Added to by whichever thread met it. */
    private final Set<Patch> broken = ConcurrentHashMap.newKeySet();
    /** Whether the JVM has been given the transformer; guarded by this object's monitor. */
    private boolean registered;

    private HotPatch(Options options, Instrumentation instrumentation) {
        this.options = options;
        this.warnings = new ArrayList<>(options.warnings());
        this.instrumentation = instrumentation;
        this.transformer = new PatchTransformer(loader, options, board);
    }

    /**
     * Starts the agent if this JVM is a Cassandra daemon, or if the operator asked for every JVM; otherwise does and says
     * nothing, because scripts read what Cassandra's tools print.
     */
    static void start(String arguments, Instrumentation instrumentation) {
        long began = System.nanoTime();
        Options options = Options.read(arguments, System.getProperties(), Catalogue.patches());
        if (!CassandraDaemon.isIn(System.getProperties()) && !options.everywhere()) {
            return;
        }
        if (STARTED.compareAndSet(false, true)) {
            new HotPatch(options, instrumentation).install(began);
        } else {
            print(
                    "warning: the agent is in this JVM already, and runs on with its first arguments: one -javaagent option,"
                            + " or one attach, is enough");
        }
    }

    private void install(long began) {
        warnOfTheJvm();
        publishSettings();
        PatchFailures.tell(this::recordRuntimeFailure);
        for (Patch patch : patches) {
            String disabledBy = options.disabledBy(patch);
            if (disabledBy == null) {
                enable(patch);
            } else {
                board.fix(PatchStatus.disabled(patch, disabledBy));
            }
        }
        Report report = new Report(board, warnings, this::loadRestOfBegun, this::whenCassandraHasStarted);
        report.printAtPremain(millisSince(began));
        report.logWhenCassandraHasStarted();
    }

    private void whenCassandraHasStarted() {
        loadWaiting();
        Management.register(this);
        Metrics.publish(this, options);
    }

    List<Patch> patches() {
        return patches;
    }

    PatchBoard board() {
        return board;
    }

    List<String> warnings() {
        return warnings;
    }

    /**
     * Weaves a patch in: into the classes that are loaded and those that will be. All of its sites, or none.
     *
     * @return what came of it
     */
    synchronized PatchStatus enable(Patch patch) {
        if (transformer.has(patch) && runsOrWillRun(patch)) {
            return board.status(patch);
        }
        if (patch.startOnly() && transformer.has(patch)) {
            if (board.status(patch).state() == PatchState.DISABLED && !broken.contains(patch)) {
                board.unfix(patch); // it is woven still
            }
        } else if (patch.startOnly() && !loadedTargets(patch).isEmpty()) {
            board.fix(PatchStatus.restartNeeded(
                    patch,
                    "it adds methods to classes that are loaded already: to have it, restart with -D" + Options.PREFIX
                            + patch.id() + "=true"));
        } else if (!broken.contains(patch) && prepare(patch)) {
            weave(patch);
        }
        return board.status(patch);
    }

    private void weave(Patch patch) {
        transformer.add(patch);
        registerTransformer();
        retransformLoadedClasses(patch).forEach((loaded, error) -> recordFailure(patch, loaded, error));
        if (!runsOrWillRun(patch)) {
            transformer.remove(patch);
            retransformLoadedClasses(patch); // back to stock, where another of its classes has been rewritten
            registerTransformer();
        }
    }

    /**
     * Takes a patch out: the classes that have it get their stock code back.
     *
     * @param by who did it, for the reason
     * @return what came of it
     */
    synchronized PatchStatus disable(Patch patch, String by) {
        if (!transformer.has(patch) && board.status(patch).state() != PatchState.RESTART_NEEDED) {
            return board.status(patch); // its code is stock already, and its reason is worth more than "switched off"
        }
        if (patch.startOnly()) { // what it has added to loaded classes has to stay, and does nothing from here on
            board.fix(PatchStatus.disabled(patch, by));
            return board.status(patch);
        }
        transformer.remove(patch);
        Map<Class<?>, Throwable> failures = retransformLoadedClasses(patch);
        registerTransformer();
        board.fix(
                failures.isEmpty()
                        ? PatchStatus.disabled(patch, by)
                        : PatchStatus.restartNeeded(
                                patch,
                                "still runs, because the JVM did not take the stock code back (" + failures
                                        + "); to be rid of it, restart with -D" + Options.PREFIX + patch.id()
                                        + "=false"));
        return board.status(patch);
    }

    private boolean runsOrWillRun(Patch patch) {
        PatchState state = board.status(patch).state();
        return state == PatchState.APPLIED || state == PatchState.WAITING;
    }

    private void recordFailure(Patch patch, Class<?> loaded, Throwable error) {
        for (Site site : patch.sites()) {
            if (site.className().equals(loaded.getName())) {
                board.record(patch, site, Verdict.failed("retransforming " + loaded.getName(), error));
            }
        }
    }

    private void recordRuntimeFailure(String patchId, Throwable error) {
        for (Patch patch : patches) {
            if (patch.id().equals(patchId)) {
                broken.add(patch);
                board.fix(PatchStatus.failed(
                        patch, "the patched code met " + error + " and does as the stock code does since then"));
            }
        }
    }

    /** Gives the JVM the transformer as long as it has something to do. */
    private void registerTransformer() {
        if (transformer.hasTargets() != registered) {
            if (registered) {
                instrumentation.removeTransformer(transformer);
            } else {
                instrumentation.addTransformer(transformer, instrumentation.isRetransformClassesSupported());
            }
            registered = !registered;
        }
    }

    /** Has the JVM load a patch's classes again, one at a time, so that one failure stays one; gives back the failures. */
    private Map<Class<?>, Throwable> retransformLoadedClasses(Patch patch) {
        Map<Class<?>, Throwable> failures = new LinkedHashMap<>();
        for (Class<?> loaded : loadedTargets(patch)) {
            try {
                instrumentation.retransformClasses(loaded);
            } catch (UnmodifiableClassException | RuntimeException | LinkageError e) {
                failures.put(loaded, e);
            }
        }
        return failures;
    }

    private Set<Class<?>> loadedTargets(Patch patch) {
        Set<String> names = new HashSet<>();
        patch.sites().forEach(site -> names.add(site.className()));
        Set<Class<?>> loadedTargets = new LinkedHashSet<>();
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (loaded.getClassLoader() == loader && names.contains(loaded.getName())) {
                loadedTargets.add(loaded);
            }
        }
        return loadedTargets;
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
        if (loader.getResource(CassandraDaemon.RESOURCE) == null) {
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
        String missing = missingRuntimeClass(patch);
        if (missing != null) {
            board.fix(PatchStatus.failed(patch, missing));
            return false;
        }
        board.lookedAt(patch, Weaver.judge(patch, site -> ClassFiles.read(site, loader), options.accepted(patch)));
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

    /** Has the rest of a patch's classes loaded that can't act before the last one is woven, once Cassandra has begun with them. */
    private void loadRestOfBegun() {
        for (PatchStatus status : board.statuses()) {
            if (status.state() == PatchState.WAITING
                    && status.patch().gate() != null
                    && board.hasWoven(status.patch())) {
                load(status.patch());
            }
        }
    }

    /** Has the classes loaded that a started Cassandra has had no use for yet. */
    private void loadWaiting() {
        for (PatchStatus status : board.statuses()) {
            if (status.state() == PatchState.WAITING) {
                load(status.patch());
            }
        }
    }

    /** Has a patch's classes loaded, but not initialised. */
    private void load(Patch patch) {
        for (Site site : patch.sites()) {
            try {
                Class.forName(site.className(), false, loader);
            } catch (ClassNotFoundException e) {
                // stays WAITING: its reason says that the class is not there
            } catch (LinkageError e) {
                board.record(patch, site, Verdict.failed("loading " + site.className(), e));
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

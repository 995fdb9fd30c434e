/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.cassandra.utils.FBUtilities;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs each benchmark in a JVM as it is and in one with the agent, and prints both side by side:
 * {@code mvn -Pbenchmarks verify}. The Cassandra on the class path is 4.1.10, or another with
 * {@code -Dbenchmarks.cassandra.version=6.0-alpha2}.
 */
public final class StockAndPatched {
    private static final String[] OPENED = {
        "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
        "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "--add-opens=java.base/java.io=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
    };

    private StockAndPatched() {}

    /** Takes no arguments. */
    public static void main(String[] arguments) throws RunnerException {
        System.out.printf(
                "Cassandra %s, Java %s, %d cores; calls a microsecond over all threads, stock and patched in turn%n%n",
                FBUtilities.getReleaseVersionString(),
                System.getProperty("java.version"),
                Runtime.getRuntime().availableProcessors());
        System.out.printf("%-55s %22s %22s %14s %14s%n", "", "stock", "patched", "patched/stock", "bytes a call");
        for (int threads : new int[] {1, 2, 8, 64}) {
            compare(CacheCapacityBenchmark.class, threads);
        }
    }

    private static void compare(Class<?> benchmark, int threads) throws RunnerException {
        Map<String, RunResult> stock = run(benchmark, threads, false);
        Map<String, RunResult> patched = run(benchmark, threads, true);
        stock.forEach((name, result) -> {
            Result<?> before = result.getPrimaryResult();
            Result<?> after = patched.get(name).getPrimaryResult();
            System.out.printf(
                    Locale.ROOT,
                    "%-55s %10.3f ± %-9.3f %10.3f ± %-9.3f %14.2f %14.1f%n",
                    name + ", " + threads + " threads",
                    before.getScore(),
                    before.getScoreError(),
                    after.getScore(),
                    after.getScoreError(),
                    after.getScore() / before.getScore(),
                    patched.get(name)
                            .getSecondaryResults()
                            .get("gc.alloc.rate.norm")
                            .getScore());
        });
    }

    private static Map<String, RunResult> run(Class<?> benchmark, int threads, boolean withAgent)
            throws RunnerException {
        ChainedOptionsBuilder options = new OptionsBuilder()
                .include(benchmark.getName() + ".*")
                .threads(threads)
                .addProfiler(GCProfiler.class)
                .verbosity(VerboseMode.SILENT)
                .jvmArgsPrepend(OPENED);
        if (withAgent) {
            options.jvmArgsAppend("-Dcassandra.hotpatch.scope=all", "-javaagent:" + System.getProperty("agent.jar"));
        }
        return byName(new Runner(options.build()).run());
    }

    private static Map<String, RunResult> byName(Collection<RunResult> results) {
        Map<String, RunResult> byName = new LinkedHashMap<>();
        for (RunResult result : results) {
            StringBuilder name = new StringBuilder(result.getPrimaryResult().getLabel());
            for (String parameter : result.getParams().getParamsKeys()) {
                name.append(", ")
                        .append(parameter)
                        .append(' ')
                        .append(result.getParams().getParam(parameter));
            }
            byName.put(name.toString(), result);
        }
        return byName;
    }
}

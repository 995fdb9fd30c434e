/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.jmx.JmxConfig;
import io.micrometer.jmx.JmxMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;

/**
 * What the patches do, as meters: over JMX always, to Prometheus where the operator gave a port. All meters only read
 * what the patches count anyhow, when somebody asks; nothing is counted here.
 */
final class Metrics {
    private static final String PREFIX = "cassandra.hotpatch.";

    private final MeterRegistry registry;

    private Metrics(MeterRegistry registry) {
        this.registry = registry;
    }

    /** Publishes the meters; what goes wrong is one line in Cassandra's log, and the patches run all the same. */
    static void publish(HotPatch hotPatch, Options options) {
        try {
            new Metrics(new JmxMeterRegistry(
                            new JmxConfig() {
                                @Override
                                public String get(String key) {
                                    return null; // the defaults, but for the domain
                                }

                                @Override
                                public String domain() {
                                    return "org.apache.cassandra.hotpatch.metrics";
                                }
                            },
                            Clock.SYSTEM))
                    .addMeters(hotPatch);
        } catch (RuntimeException | LinkageError e) {
            warn("no metrics over JMX (" + e + ")");
        }
        if (options.prometheusPort() != 0) {
            String address = options.prometheusHost() + ":" + options.prometheusPort();
            try {
                PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
                new Metrics(prometheus).addMeters(hotPatch);
                PrometheusEndpoint.serve(options.prometheusHost(), options.prometheusPort(), prometheus::scrape);
                CassandraLog.info(Report.MARK + "metrics for Prometheus are on http://" + address + "/metrics");
            } catch (IOException | RuntimeException | LinkageError e) {
                warn("no metrics for Prometheus on " + address + " (" + e + "); to have them, choose another "
                        + Options.PREFIX + "prometheus.port or prometheus.host, and restart");
            }
        }
    }

    private static void warn(String problem) {
        CassandraLog.warn(Report.MARK + "warning: " + problem);
    }

    private void addMeters(HotPatch hotPatch) {
        for (Patch patch : hotPatch.patches()) {
            for (PatchState state : PatchState.values()) {
                Gauge.builder(
                                PREFIX + "patch.state",
                                () -> hotPatch.board().status(patch).state() == state ? 1 : 0)
                        .description("1 for the state that the patch is in, 0 for the others")
                        .tag("patch", patch.id())
                        .tag("state", state.name())
                        .register(registry);
            }
        }
        for (PatchMeter meter : PatchMeter.ALL) {
            if (meter.counts()) {
                FunctionCounter.builder(PREFIX + meter.name(), meter, PatchMeter::value)
                        .description(meter.description())
                        .baseUnit(meter.unit())
                        .register(registry);
            } else {
                Gauge.builder(PREFIX + meter.name(), meter, PatchMeter::value)
                        .description(meter.description())
                        .baseUnit(meter.unit())
                        .register(registry);
            }
        }
    }
}

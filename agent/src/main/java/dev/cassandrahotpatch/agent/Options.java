/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Setting;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What the operator asked for: {@code cassandra.hotpatch.*} system properties over agent arguments over defaults. A name
 * or value that makes no sense becomes a warning, and the default holds. Immutable.
 */
public final class Options {
    /** What every property's name begins with. */
    public static final String PREFIX = "cassandra.hotpatch.";

    private static final String ENABLED = "enabled";
    private static final String SCOPE = "scope";
    private static final String ACCEPT = ".accept";
    private static final String PROMETHEUS_HOST = "prometheus.host";
    private static final Setting PROMETHEUS_PORT =
            new Setting("prometheus.port", 0, 0, 65_535, "the port to serve metrics to Prometheus on; 0 is none");

    private final boolean enabled;
    private final boolean everywhere;
    private final int prometheusPort;
    private final String prometheusHost;
    private final Map<Patch, String> disabledBy = new LinkedHashMap<>();
    private final Map<Patch, Set<String>> accepted = new LinkedHashMap<>();
    private final Map<String, String> settings = new TreeMap<>();
    private final List<String> warnings = new ArrayList<>();

    private Options(Map<String, Given> given, List<Patch> patches) {
        Set<String> known = new TreeSet<>();
        this.enabled = flag(given, known, ENABLED, true);
        this.everywhere = scope(given, known);
        this.prometheusPort = (int) number(given, known, PROMETHEUS_PORT.name(), PROMETHEUS_PORT);
        this.prometheusHost = text(given, known, PROMETHEUS_HOST, "127.0.0.1");
        for (Patch patch : patches) {
            boolean on = flag(given, known, patch.id(), patch.onByDefault());
            if (!enabled) {
                disabledBy.put(patch, given.get(ENABLED).origin);
            } else if (!on) {
                Given by = given.get(patch.id());
                disabledBy.put(
                        patch, by == null ? "default; " + origin(patch.id()) + "=true switches it on" : by.origin);
            }
            accepted.put(patch, acceptedFor(patch, given, known));
            for (Setting setting : patch.settings()) {
                String key = patch.id() + "." + setting.name();
                settings.put(PREFIX + key, Long.toString(number(given, known, key, setting)));
            }
        }
        for (Map.Entry<String, Given> entry : given.entrySet()) {
            if (!known.contains(entry.getKey())) {
                warnings.add(entry.getValue().origin + " is no patch or setting of this agent and changes nothing;"
                        + " the names are " + String.join(", ", known) + ", each after " + PREFIX);
            }
        }
    }

    /**
     * Reads the options.
     *
     * @param arguments the agent's arguments, or null
     * @param properties system properties; they win over arguments
     */
    public static Options read(String arguments, Properties properties, List<Patch> patches) {
        Map<String, Given> given = new TreeMap<>();
        if (arguments != null) {
            for (String argument : arguments.split(",", -1)) {
                String[] keyAndValue = argument.trim().split("=", 2);
                if (!keyAndValue[0].isEmpty()) {
                    String value = keyAndValue.length == 2 ? keyAndValue[1].trim() : "";
                    given.put(keyAndValue[0], new Given(value, "agent argument " + argument.trim()));
                }
            }
        }
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith(PREFIX)) {
                String key = name.substring(PREFIX.length());
                String value = properties.getProperty(name).trim();
                given.put(key, new Given(value, origin(key) + "=" + value));
            }
        }
        return new Options(given, patches);
    }

    /** Whether to act in JVMs that are no Cassandra daemon, too. */
    boolean everywhere() {
        return everywhere;
    }

    /** The port to serve metrics to Prometheus on, or 0 for none. */
    int prometheusPort() {
        return prometheusPort;
    }

    /** The address to serve them on: loopback, unless the operator says otherwise. */
    String prometheusHost() {
        return prometheusHost;
    }

    /** What switched the patch off, or null where it is on. */
    public String disabledBy(Patch patch) {
        return disabledBy.get(patch);
    }

    /** The fingerprints that the operator vouches for. */
    public Set<String> accepted(Patch patch) {
        return accepted.get(patch);
    }

    /** Every setting of every patch under its full property name, with the value that holds. */
    Map<String, String> settings() {
        return settings;
    }

    /** One sentence for each name or value that made no sense. */
    public List<String> warnings() {
        return Collections.unmodifiableList(warnings);
    }

    private static String origin(String key) {
        return "-D" + PREFIX + key;
    }

    private boolean flag(Map<String, Given> given, Set<String> known, String key, boolean byDefault) {
        known.add(key);
        Given flag = given.get(key);
        if (flag == null) {
            return byDefault;
        }
        if (flag.value.equalsIgnoreCase("true") || flag.value.equalsIgnoreCase("false")) {
            return Boolean.parseBoolean(flag.value);
        }
        warnings.add(flag.origin + " is neither true nor false; " + byDefault + " holds");
        return byDefault;
    }

    private boolean scope(Map<String, Given> given, Set<String> known) {
        known.add(SCOPE);
        Given scope = given.get(SCOPE);
        if (scope == null || scope.value.equals("daemon")) {
            return false;
        }
        if (scope.value.equals("all")) {
            return true;
        }
        warnings.add(scope.origin + " is neither daemon nor all; daemon holds");
        return false;
    }

    private static String text(Map<String, Given> given, Set<String> known, String key, String byDefault) {
        known.add(key);
        Given text = given.get(key);
        return text == null || text.value.isEmpty() ? byDefault : text.value;
    }

    private static Set<String> acceptedFor(Patch patch, Map<String, Given> given, Set<String> known) {
        known.add(patch.id() + ACCEPT);
        Given accept = given.get(patch.id() + ACCEPT);
        return accept == null ? Collections.emptySet() : Collections.singleton(accept.value);
    }

    private long number(Map<String, Given> given, Set<String> known, String key, Setting setting) {
        known.add(key);
        Given number = given.get(key);
        if (number == null) {
            return setting.defaultValue();
        }
        try {
            long value = Long.parseLong(number.value);
            if (value >= setting.least() && value <= setting.most()) {
                return value;
            }
        } catch (NumberFormatException e) {
            // the same answer as for a number out of range, below
        }
        warnings.add(number.origin + " is no number from " + setting.least() + " to " + setting.most() + "; "
                + setting.defaultValue() + " holds");
        return setting.defaultValue();
    }

    /** A value, and where the operator gave it. */
    private static final class Given {
        private final String value;
        private final String origin;

        Given(String value, String origin) {
            this.value = value;
            this.origin = origin;
        }
    }
}

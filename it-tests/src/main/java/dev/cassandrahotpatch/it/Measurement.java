/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * One thing that was measured in some cases, on stock Cassandra and on what is compared with it, all in one run: a table and a
 * chart of the benchmarks' report. Whoever measures writes one file a measurement into the folder that the system property
 * {@code results.folder} names; the report reads all that are there.
 *
 * <p>The file is a JSON object, in a file of any name that ends in {@code .json}; files are shown patch by patch, and by
 * name within a patch:
 *
 * <pre>{@code
 * {
 *   "patch": "cache_capacity",          // the patch's id, or "agent" for what the agent itself costs
 *   "title": "Asking for the capacity", // heading of the table
 *   "note": "One operation is ...",     // sentences for the reader: what was done, what the cases are, what is left out
 *   "release": "4.1.10",                // of Cassandra
 *   "unit": "ops/us",
 *   "better": "more",                   // or "less"
 *   "cases": [                          // rows of the table, in this order
 *     {
 *       "case": "8 threads",
 *       "stock": [144.6, 151.2],        // one number an iteration or round: the report makes mean and spread of them
 *       "upstream": [150.1, 149.2],     // any of the variants may be missing
 *       "ours": [899.0, 902.1],
 *       "floor": [905.3, 904.8]
 *     }
 *   ]
 * }
 * }</pre>
 *
 * @param better which of two values is the better one
 * @param cases in the order of the table
 */
public record Measurement(
        String patch, String title, String note, String release, String unit, Better better, List<Case> cases) {

    /** Which of two values is the better one. */
    public enum Better {
        /** A rate, say. */
        MORE,
        /** A duration, say. */
        LESS
    }

    /** What is compared; in the file, and in the order of the report's columns, by these names in lower case. */
    public enum Variant {
        /** Cassandra as released, in a JVM without the agent. */
        STOCK,
        /** The fix that the ticket has, written after it for the comparison. */
        UPSTREAM,
        /** The release with the real agent. */
        OURS,
        /** What no implementation could better, such as a buffer whose size is known beforehand. */
        FLOOR
    }

    /**
     * One row.
     *
     * @param samples of each variant that was measured, one number an iteration or round
     */
    public record Case(String name, Map<Variant, List<Double>> samples) {}

    /** Writes the file. */
    public void writeTo(Path file) {
        JSONArray rows = new JSONArray();
        for (Case row : cases) {
            JSONObject object = new JSONObject().put("case", row.name());
            row.samples().forEach((variant, samples) -> object.put(lowerCase(variant), samples));
            rows.put(object);
        }
        JSONObject json = new JSONObject()
                .put("patch", patch)
                .put("title", title)
                .put("note", note)
                .put("release", release)
                .put("unit", unit)
                .put("better", lowerCase(better))
                .put("cases", rows);
        try {
            Files.createDirectories(file.getParent());
            Files.writeString(file, json.toString(2));
        } catch (IOException e) {
            throw new UncheckedIOException("can't write " + file, e);
        }
    }

    /** Reads all measurements of a folder, by their files' names. */
    public static List<Measurement> readAll(Path folder) {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(".json"))
                    .sorted()
                    .map(Measurement::read)
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException("can't list " + folder, e);
        }
    }

    private static Measurement read(Path file) {
        try {
            JSONObject json = new JSONObject(Files.readString(file));
            List<Case> cases = new ArrayList<>();
            for (Object row : json.getJSONArray("cases")) {
                cases.add(readCase((JSONObject) row));
            }
            return new Measurement(
                    json.getString("patch"),
                    json.getString("title"),
                    json.getString("note"),
                    json.getString("release"),
                    json.getString("unit"),
                    Better.valueOf(json.getString("better").toUpperCase(Locale.ROOT)),
                    cases);
        } catch (IOException e) {
            throw new UncheckedIOException("can't read " + file, e);
        }
    }

    private static Case readCase(JSONObject row) {
        Map<Variant, List<Double>> samples = new EnumMap<>(Variant.class);
        for (Variant variant : Variant.values()) {
            JSONArray values = row.optJSONArray(lowerCase(variant));
            if (values != null) {
                samples.put(
                        variant,
                        Stream.iterate(0, i -> i < values.length(), i -> i + 1)
                                .map(values::getDouble)
                                .toList());
            }
        }
        return new Case(row.getString("case"), samples);
    }

    private static String lowerCase(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}

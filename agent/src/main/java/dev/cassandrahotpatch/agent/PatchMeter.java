/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.runtime.AsyncSSTableWriterCounters;
import dev.cassandrahotpatch.runtime.ResponseBufferSizes;
import dev.cassandrahotpatch.transformers.Patch;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongSupplier;

/**
 * A number that a patch's runtime classes count anyhow, for whoever asks: JMX, the command line, Prometheus. Reading one
 * costs the reader a sum and the patch nothing. Immutable.
 */
final class PatchMeter {
    private static final String RESPONSES = "response_buffer_sizing";
    private static final String WRITER = "async_sstable_writer";

    static final List<PatchMeter> ALL = Collections.unmodifiableList(Arrays.asList(
            counter(RESPONSES, "responses", "responses made", ResponseBufferSizes::responses),
            counter(RESPONSES, "responses.outgrown", "responses that grew", ResponseBufferSizes::outgrown),
            counter(
                    RESPONSES,
                    "responses.trimmed",
                    "responses copied out of too large a buffer",
                    ResponseBufferSizes::trimmed),
            gauge(
                    RESPONSES,
                    "responses.saved",
                    "what stock would have allocated for them, less what was",
                    "bytes",
                    ResponseBufferSizes::savedBytes),
            counter(WRITER, "writer.chunks", "chunks written by writer threads", AsyncSSTableWriterCounters::chunks),
            new PatchMeter(
                    WRITER,
                    "writer.written",
                    "their bytes before compression",
                    "bytes",
                    1,
                    true,
                    AsyncSSTableWriterCounters::bytes),
            counter(
                    WRITER,
                    "writer.fallbacks",
                    "chunks written as stock does, for want of a slot or because of an interrupt",
                    AsyncSSTableWriterCounters::fallbacks),
            time(
                    WRITER,
                    "writer.producer.wait",
                    "what compactions waited for writer threads",
                    AsyncSSTableWriterCounters::producerWaitNanos),
            time(
                    WRITER,
                    "writer.idle",
                    "what writer threads waited for chunks",
                    AsyncSSTableWriterCounters::writerIdleNanos),
            gauge(WRITER, "writer.slots.used", "slots in flight", null, AsyncSSTableWriterCounters::slotsInUse),
            gauge(WRITER, "writer.slots.size", "all slots", "bytes", AsyncSSTableWriterCounters::slotBytes)));

    private final String patchId;
    private final String name;
    private final String description;
    private final String unit;
    private final double perUnit;
    private final boolean counts;
    private final LongSupplier value;

    private PatchMeter(
            String patchId,
            String name,
            String description,
            String unit,
            double perUnit,
            boolean counts,
            LongSupplier value) {
        this.patchId = patchId;
        this.name = name;
        this.description = description;
        this.unit = unit;
        this.perUnit = perUnit;
        this.counts = counts;
        this.value = value;
    }

    private static PatchMeter counter(String patchId, String name, String description, LongSupplier value) {
        return new PatchMeter(patchId, name, description, null, 1, true, value);
    }

    private static PatchMeter time(String patchId, String name, String description, LongSupplier nanos) {
        return new PatchMeter(patchId, name, description, "seconds", 1e9, true, nanos);
    }

    private static PatchMeter gauge(String patchId, String name, String description, String unit, LongSupplier value) {
        return new PatchMeter(patchId, name, description, unit, 1, false, value);
    }

    /** The numbers of one patch, by name; a time is in seconds. */
    static Map<String, Double> valuesOf(Patch patch) {
        Map<String, Double> values = new TreeMap<>();
        for (PatchMeter meter : ALL) {
            if (meter.patchId.equals(patch.id())) {
                values.put(meter.unit == null ? meter.name : meter.name + "." + meter.unit, meter.value());
            }
        }
        return values;
    }

    /** The name, without the prefix that all our meters have. */
    String name() {
        return name;
    }

    String description() {
        return description;
    }

    /** The unit, or null for plain numbers. */
    String unit() {
        return unit;
    }

    /** Whether the number only ever grows. */
    boolean counts() {
        return counts;
    }

    double value() {
        return value.getAsLong() / perUnit;
    }
}

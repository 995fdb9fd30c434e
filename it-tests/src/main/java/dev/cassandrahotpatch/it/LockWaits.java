/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import javax.management.JMX;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import jdk.management.jfr.FlightRecorderMXBean;

/** Counts, by the flight recorder, how often a node's threads wait for a lock. */
public final class LockWaits {
    /** What the node does meanwhile. */
    public interface Work {
        /** Does it, and returns when it is done. */
        void run() throws IOException, InterruptedException;
    }

    private LockWaits() {}

    /**
     * How often threads parked for the lock in {@code getMaximum}, which is where {@code getCapacity} ends.
     *
     * @throws IllegalStateException if no thread has parked for anything, for then nothing was recorded
     */
    public static long inGetMaximum(CassandraNode node, Work work) throws IOException, InterruptedException {
        FlightRecorderMXBean recorder = recorder(node);
        long recording = recorder.newRecording();
        recorder.setRecordingSettings(
                recording,
                Map.of(
                        "jdk.ThreadPark#enabled", "true",
                        "jdk.ThreadPark#threshold", "0 ns",
                        "jdk.ThreadPark#stackTrace", "true"));
        recorder.startRecording(recording);
        work.run();
        recorder.stopRecording(recording);
        Path file = Files.createTempFile("parks", ".jfr");
        try {
            recorder.copyTo(recording, file.toString());
            return parksInGetMaximum(file);
        } finally {
            recorder.closeRecording(recording);
            Files.deleteIfExists(file);
        }
    }

    private static FlightRecorderMXBean recorder(CassandraNode node) {
        try {
            return JMX.newMXBeanProxy(
                    node.jmx(), new ObjectName("jdk.management.jfr:type=FlightRecorder"), FlightRecorderMXBean.class);
        } catch (MalformedObjectNameException e) {
            throw new IllegalStateException(e);
        }
    }

    private static long parksInGetMaximum(Path file) throws IOException {
        long parks = 0;
        long inGetMaximum = 0;
        try (RecordingFile events = new RecordingFile(file)) {
            while (events.hasMoreEvents()) {
                RecordedEvent event = events.readEvent();
                if (event.getEventType().getName().equals("jdk.ThreadPark") && event.getStackTrace() != null) {
                    parks++;
                    if (event.getStackTrace().getFrames().stream()
                            .anyMatch(frame -> frame.getMethod().getName().equals("getMaximum"))) {
                        inGetMaximum++;
                    }
                }
            }
        }
        if (parks == 0) {
            throw new IllegalStateException("the flight recorder saw no thread park at all, so it can't have worked");
        }
        return inGetMaximum;
    }
}

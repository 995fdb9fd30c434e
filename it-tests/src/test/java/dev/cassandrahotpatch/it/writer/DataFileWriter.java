/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import java.io.DataOutput;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.LongConsumer;

/** A release's {@code CompressedSequentialWriter}, by reflection: the signatures differ from line to line. */
final class DataFileWriter {
    private static final String IO = "org.apache.cassandra.io.";

    /** What the post-flush listener was told: an offset, and the size that the file had on disk then. */
    record Flushed(long offset, long sizeOnDisk, boolean onProducer) {}

    private final Path data;
    private final Object writer;
    private final Thread producer = Thread.currentThread();
    private final List<Flushed> flushed = new ArrayList<>();

    /**
     * Opens a new data file.
     *
     * @param compression as in CQL
     * @param direct whether to use 6.0's {@code DirectCompressedSequentialWriter}
     */
    DataFileWriter(WriterLoader loader, Path folder, Map<String, String> compression, boolean direct) {
        this.data = folder.resolve("Data.db");
        try {
            Object parameters = loader.load("org.apache.cassandra.schema.CompressionParams")
                    .getMethod("fromMap", Map.class)
                    .invoke(null, compression);
            Object comparator = loader.load("org.apache.cassandra.db.ClusteringComparator")
                    .getConstructor(Iterable.class)
                    .newInstance(List.of());
            Object collector = loader.load(IO + "sstable.metadata.MetadataCollector")
                    .getConstructor(comparator.getClass(), UUID.class) // without: it would ask the storage service
                    .newInstance(comparator, new UUID(0, 1));
            Class<?> option = loader.load(IO + "util.SequentialWriterOption");
            Class<?> type = loader.load(IO + "compress." + (direct ? "Direct" : "") + "CompressedSequentialWriter");
            Constructor<?> constructor = List.of(type.getConstructors()).stream()
                    .filter(candidate -> candidate.getParameterCount() == (direct ? 7 : 6))
                    .findFirst()
                    .orElseThrow();
            Class<?>[] types = constructor.getParameterTypes();
            List<Object> arguments = new ArrayList<>(List.of(
                    path(data, types[0]),
                    path(folder.resolve("CompressionInfo.db"), types[1]),
                    path(folder.resolve("Digest.crc32"), types[2]),
                    option.getField("DEFAULT").get(null),
                    parameters,
                    collector));
            if (direct) {
                arguments.add(null); // no dictionary
            }
            this.writer = constructor.newInstance(arguments.toArray());
        } catch (InvocationTargetException e) {
            throw DataFileWriter.<RuntimeException>thrown(e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }

    private static Object path(Path path, Class<?> type) throws ReflectiveOperationException {
        return type.getConstructor(String.class).newInstance(path.toString());
    }

    /** Sets a post-flush listener that does what Cassandra's do: take the offset that is written. */
    void listen() {
        Method setter = method("setPostFlushListener");
        if (setter.getParameterTypes()[0] == Runnable.class) {
            call("setPostFlushListener", (Runnable) () -> note((Long) call("getLastFlushOffset")));
        } else {
            call("setPostFlushListener", (LongConsumer) this::note);
        }
    }

    private void note(long offset) {
        try {
            flushed.add(new Flushed(offset, Files.size(data), Thread.currentThread() == producer));
        } catch (java.io.IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    List<Flushed> flushed() {
        return flushed;
    }

    DataOutput output() {
        return (DataOutput) writer;
    }

    void write(ByteBuffer bytes) {
        call("write", bytes);
    }

    long position() {
        return (Long) call("position");
    }

    /** Calls the first method of that name that takes these arguments; throws what it throws. */
    Object call(String name, Object... arguments) {
        return callOn(writer, method(name, arguments), arguments);
    }

    /** Calls {@code abort}; returns what it accumulates. */
    Throwable abort() {
        return (Throwable) call("abort", new Object[] {null});
    }

    /** The file's metadata as an early reader would get it. */
    String open(long length) {
        Object metadata = call("open", length);
        try {
            return metadata.getClass().getField("dataLength").get(metadata)
                    + " "
                    + metadata.getClass().getField("compressedFileLength").get(metadata);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        } finally {
            callOn(metadata, find(metadata.getClass(), "close"));
        }
    }

    /** Has something happen at the n-th write to the file. */
    FaultyChannel failAt(int nth, FaultyChannel.Fault fault) {
        try {
            Field field = field(writer.getClass(), "fchannel");
            FaultyChannel faulty = new FaultyChannel((FileChannel) field.get(writer), nth, fault);
            field.set(writer, faulty);
            field(writer.getClass(), "channel").set(writer, faulty);
            return faulty;
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
            for (Field field : owner.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    boolean has(String method) {
        return findOptional(writer.getClass(), method).isPresent();
    }

    private Method method(String name, Object... arguments) {
        return find(writer.getClass(), name, arguments);
    }

    private static Method find(Class<?> type, String name, Object... arguments) {
        return findOptional(type, name, arguments)
                .orElseThrow(() -> new AssertionError("no method " + name + " in " + type));
    }

    private static Optional<Method> findOptional(Class<?> type, String name, Object... arguments) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && (arguments.length == 0 || takes(method, arguments))) {
                boolean right = name.equals("setPostFlushListener") || method.getParameterCount() == arguments.length;
                if (right && !method.isBridge() && !Modifier.isStatic(method.getModifiers())) {
                    return Optional.of(method);
                }
            }
        }
        return Optional.empty();
    }

    private static boolean takes(Method method, Object[] arguments) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            boolean fits = arguments[i] == null
                    ? types[i] == Throwable.class
                    : types[i].isInstance(arguments[i]) || (types[i] == long.class && arguments[i] instanceof Long);
            if (!fits) {
                return false;
            }
        }
        return true;
    }

    private static Object callOn(Object target, Method method, Object... arguments) {
        try {
            method.setAccessible(true);
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw DataFileWriter.<RuntimeException>thrown(e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException thrown(Throwable cause) throws T {
        throw (T) cause;
    }
}

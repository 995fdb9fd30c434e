/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** A file's channel, in which something happens at the n-th write. */
final class FaultyChannel extends FileChannel {
    /** What happens before a write; may throw. */
    @FunctionalInterface
    interface Fault {
        void happen() throws IOException;
    }

    private final FileChannel file;
    private final Fault fault;
    private final int nth;
    private final AtomicInteger writes = new AtomicInteger();
    private final CountDownLatch happened = new CountDownLatch(1);

    FaultyChannel(FileChannel file, int nth, Fault fault) {
        this.file = file;
        this.nth = nth;
        this.fault = fault;
    }

    /** Returns once the fault has begun to happen. */
    void awaitFault() throws InterruptedException {
        happened.await();
    }

    private void maybeFail() throws IOException {
        if (writes.incrementAndGet() == nth) {
            happened.countDown();
            fault.happen();
        }
    }

    @Override
    public int write(ByteBuffer source) throws IOException {
        maybeFail();
        return file.write(source);
    }

    @Override
    public long write(ByteBuffer[] sources, int offset, int length) throws IOException {
        maybeFail();
        return file.write(sources, offset, length);
    }

    @Override
    public int write(ByteBuffer source, long position) throws IOException {
        maybeFail();
        return file.write(source, position);
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
        return file.read(target);
    }

    @Override
    public long read(ByteBuffer[] targets, int offset, int length) throws IOException {
        return file.read(targets, offset, length);
    }

    @Override
    public int read(ByteBuffer target, long position) throws IOException {
        return file.read(target, position);
    }

    @Override
    public long position() throws IOException {
        return file.position();
    }

    @Override
    public FileChannel position(long newPosition) throws IOException {
        file.position(newPosition);
        return this;
    }

    @Override
    public long size() throws IOException {
        return file.size();
    }

    @Override
    public FileChannel truncate(long size) throws IOException {
        file.truncate(size);
        return this;
    }

    @Override
    public void force(boolean metaData) throws IOException {
        file.force(metaData);
    }

    @Override
    public long transferTo(long position, long count, WritableByteChannel target) throws IOException {
        return file.transferTo(position, count, target);
    }

    @Override
    public long transferFrom(ReadableByteChannel source, long position, long count) throws IOException {
        return file.transferFrom(source, position, count);
    }

    @Override
    public MappedByteBuffer map(MapMode mode, long position, long size) throws IOException {
        return file.map(mode, position, size);
    }

    @Override
    public FileLock lock(long position, long size, boolean shared) throws IOException {
        return file.lock(position, size, shared);
    }

    @Override
    public FileLock tryLock(long position, long size, boolean shared) throws IOException {
        return file.tryLock(position, size, shared);
    }

    @Override
    protected void implCloseChannel() throws IOException {
        file.close();
    }
}

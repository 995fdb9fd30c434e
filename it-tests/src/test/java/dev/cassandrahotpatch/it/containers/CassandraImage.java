/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.async.ResultCallback;
import com.github.dockerjava.api.exception.DockerException;
import com.github.dockerjava.api.exception.NotFoundException;
import com.github.dockerjava.api.model.BuildResponseItem;
import com.github.dockerjava.api.model.PullResponseItem;
import dev.cassandrahotpatch.it.AgentJar;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A stock image of Cassandra; where no release is named, of whatever release the tag holds. Which one is a property:
 * {@code -Dit.image.4_1=cassandra:4.1.11}. Immutable and thread-safe.
 */
enum CassandraImage {
    V4_0("it.image.4_0", "cassandra:4.0"),
    V4_1("it.image.4_1", "cassandra:4.1"),
    V4_1_3("it.image.4_1_3", "cassandra:4.1.3"),
    V5_0("it.image.5_0", "cassandra:5.0"),
    V6_0("it.image.6_0", "cassandra:6.0-alpha2");

    private static final long PULL_LIMIT_MINUTES = 10;
    private static final long BUILD_LIMIT_MINUTES = 2;

    private final String reference;

    CassandraImage(String property, String reference) {
        this.reference = System.getProperty(property, reference);
    }

    /** Whether it is of the 4.0 line, whose cache's capacity is read without the lock. */
    boolean is40() {
        return this == V4_0;
    }

    /** Whether it is of the 6.0 line, whose patches differ. */
    boolean is60() {
        return this == V6_0;
    }

    /** The image's name, once it is here: pulled if need be. Where that can't be had, the test ends as a skipped one. */
    String stock() {
        DockerClient engine = ContainerEngine.client();
        try {
            engine.inspectImageCmd(reference).exec();
        } catch (NotFoundException notHere) {
            pull(engine);
        }
        return reference;
    }

    private void pull(DockerClient engine) {
        try (ResultCallback.Adapter<PullResponseItem> pulled =
                engine.pullImageCmd(reference).start()) {
            if (pulled.awaitCompletion(PULL_LIMIT_MINUTES, TimeUnit.MINUTES)) {
                return;
            }
        } catch (DockerException | IOException e) {
            ContainerEngine.unavailable("the image " + reference + " is neither here nor can it be pulled ("
                    + String.valueOf(e.getMessage()).strip()
                    + "): pull it, or build a stand-in with docker/stand-in/build.sh");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        ContainerEngine.unavailable("pulling the image " + reference + " has taken more than " + PULL_LIMIT_MINUTES
                + " minutes: pull it yourself, and start again");
    }

    /** Builds the image that {@code docker/Dockerfile} makes of this one. */
    String withAgent() {
        return withAgent(stock());
    }

    /**
     * Builds the image that {@code docker/Dockerfile} makes of another.
     *
     * @throws IllegalStateException if it makes none, with what the build has printed
     */
    static String withAgent(String stock) {
        String tag = "cassandra-hotpatch-it:" + stock.replaceAll("[^A-Za-z0-9._-]", "-");
        StringBuilder printed = new StringBuilder();
        try {
            Path context = Files.createTempDirectory("docker-context-");
            Path dockerfile = context.resolve("Dockerfile");
            Path jar = context.resolve("cassandra-hotpatch.jar");
            try (ResultCallback.Adapter<BuildResponseItem> build = new ResultCallback.Adapter<>() {
                @Override
                public void onNext(BuildResponseItem item) {
                    printed.append(item.getStream() == null ? "" : item.getStream());
                    if (item.isErrorIndicated()) {
                        onError(new IllegalStateException("no image of " + stock + ":\n" + printed));
                    }
                }
            }) {
                Files.copy(Path.of(System.getProperty("docker.folder"), "Dockerfile"), dockerfile);
                Files.copy(AgentJar.path(), jar);
                ContainerEngine.client()
                        .buildImageCmd()
                        .withBaseDirectory(context.toFile())
                        .withDockerfile(dockerfile.toFile())
                        .withBuildArg("CASSANDRA_IMAGE", stock)
                        .withTags(Set.of(tag))
                        .exec(build);
                if (!build.awaitCompletion(BUILD_LIMIT_MINUTES, TimeUnit.MINUTES)) {
                    throw new IllegalStateException(
                            "no image of " + stock + " within " + BUILD_LIMIT_MINUTES + " minutes:\n" + printed);
                }
            } finally {
                Files.deleteIfExists(dockerfile);
                Files.deleteIfExists(jar);
                Files.delete(context);
            }
            return tag;
        } catch (IOException e) {
            throw new UncheckedIOException("can't give " + stock + " to docker/Dockerfile", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while an image was built of " + stock, e);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every patch on the target classes of every served release, without starting any: {@code mvn -Pmatrix verify}. */
@Tag("matrix")
class ReleaseMatrixIT {
    /** What each patch must come to on each line of releases, in the catalogue's order. */
    private static final Map<String, Map<String, PatchState>> EXPECTED = Map.of(
            "4.0", states(PatchState.NOT_NEEDED, PatchState.NOT_NEEDED, PatchState.APPLIED, PatchState.APPLIED),
            "4.1", states(PatchState.APPLIED, PatchState.NOT_NEEDED, PatchState.APPLIED, PatchState.APPLIED),
            "5.0", states(PatchState.APPLIED, PatchState.NOT_NEEDED, PatchState.APPLIED, PatchState.APPLIED),
            "6.0", states(PatchState.APPLIED, PatchState.APPLIED, PatchState.NOT_NEEDED, PatchState.APPLIED));

    static Stream<String> releases() {
        return CassandraRelease.served().stream();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("releases")
    void everyPatchComesToItsStateAndWhatItRewritesVerifiesAndLinks(String version) throws Exception {
        CassandraRelease release = CassandraRelease.of(version);
        Map<String, byte[]> rewritten = new HashMap<>();
        Map<String, PatchState> states = new HashMap<>();
        for (Patch patch : Catalogue.patches()) {
            PatchStatus status = weave(patch, release, rewritten);
            states.put(patch.id(), status.state());
            System.out.println(version + " " + status);
        }
        assertThat(states).isEqualTo(EXPECTED.get(version.substring(0, 3)));
        verifyAndLink(release, rewritten);
    }

    /** All or nothing, as in a running node; what is rewritten is added to the classes in {@code rewritten}. */
    private static PatchStatus weave(Patch patch, CassandraRelease release, Map<String, byte[]> rewritten) {
        Map<Site, Verdict> verdicts = new HashMap<>();
        Map<String, byte[]> classes = new HashMap<>();
        for (Site site : patch.sites()) {
            String name = site.className();
            if (site.isOptional() && !release.hasClass(name)) {
                continue;
            }
            byte[] classFile = classes.getOrDefault(name, rewritten.getOrDefault(name, release.classFile(name)));
            Weaver.Weaving weaving = Weaver.weave(classFile, List.of(site), Set.of());
            verdicts.put(
                    site,
                    weaving.fits()
                            ? weaving.verdicts().get(site).woven()
                            : weaving.verdicts().get(site));
            if (weaving.fits()) {
                classes.put(name, weaving.classFile());
            }
        }
        PatchStatus status = PatchStatus.of(patch, verdicts);
        if (status.state() == PatchState.APPLIED) {
            rewritten.putAll(classes);
        }
        return status;
    }

    private static void verifyAndLink(CassandraRelease release, Map<String, byte[]> rewritten) throws Exception {
        assertThat(rewritten).isNotEmpty();
        try (PatchedLoader loader = new PatchedLoader(release, rewritten)) {
            for (String name : rewritten.keySet()) {
                // initialising a class has the JVM verify and link it first
                assertThat(Class.forName(name, true, loader).getClassLoader())
                        .as("%s is the rewritten one", name)
                        .isSameAs(loader);
            }
            for (Patch patch : Catalogue.patches()) {
                for (String runtimeClass : patch.runtimeClasses()) {
                    Class.forName(runtimeClass, true, loader);
                    assertThat(MemberReferences.missing(runtimeClass, loader))
                            .as("what %s needs of %s", runtimeClass, release)
                            .isEmpty();
                }
            }
        }
    }

    private static Map<String, PatchState> states(PatchState... inOrder) {
        Map<String, PatchState> states = new HashMap<>();
        for (int i = 0; i < inOrder.length; i++) {
            states.put(Catalogue.patches().get(i).id(), inOrder[i]);
        }
        return states;
    }

    /** A release with the agent's jar behind it and some of its classes rewritten; shares nothing with the test. */
    private static final class PatchedLoader extends URLClassLoader {
        private final Map<String, byte[]> rewritten;

        PatchedLoader(CassandraRelease release, Map<String, byte[]> rewritten) throws IOException {
            super(urls(release), ClassLoader.getPlatformClassLoader());
            this.rewritten = rewritten;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            byte[] classFile = rewritten.get(name);
            return classFile == null ? super.findClass(name) : defineClass(name, classFile, 0, classFile.length);
        }

        private static URL[] urls(CassandraRelease release) throws IOException {
            List<URL> urls = new ArrayList<>();
            for (Path jar : release.jars()) {
                urls.add(jar.toUri().toURL());
            }
            urls.add(Path.of(System.getProperty("agent.jar")).toUri().toURL());
            return urls.toArray(URL[]::new);
        }
    }
}

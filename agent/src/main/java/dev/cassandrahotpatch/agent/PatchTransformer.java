/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Rewrites the target classes as the JVM loads them. Immutable once it is registered; the JVM calls it from every thread
 * that loads a class, so what is not a target must cost no more than one look into a map.
 */
final class PatchTransformer implements ClassFileTransformer {
    private final ClassLoader loader;
    private final Options options;
    private final PatchBoard board;
    private final Map<String, Map<Patch, List<Site>>> targets = new HashMap<>();

    /**
     * Makes a transformer without targets.
     *
     * @param loader the loader that Cassandra and this agent share; classes of the same name in others are not ours
     */
    PatchTransformer(ClassLoader loader, Options options, PatchBoard board) {
        this.loader = loader;
        this.options = options;
        this.board = board;
    }

    /** Adds a patch whose sites all fit; only before the transformer is registered. */
    void add(Patch patch) {
        for (Site site : patch.sites()) {
            targets.computeIfAbsent(site.className().replace('.', '/'), name -> new LinkedHashMap<>())
                    .computeIfAbsent(patch, sites -> new ArrayList<>())
                    .add(site);
        }
    }

    boolean hasTargets() {
        return !targets.isEmpty();
    }

    @Override
    public byte[] transform(
            ClassLoader definingLoader,
            String className,
            Class<?> classBeingRedefined,
            ProtectionDomain protectionDomain,
            byte[] classFile) {
        Map<Patch, List<Site>> patches = definingLoader == loader ? targets.get(className) : null;
        if (patches == null) {
            return null;
        }
        byte[] rewritten = null;
        for (Map.Entry<Patch, List<Site>> entry : patches.entrySet()) {
            byte[] woven = weave(entry.getKey(), entry.getValue(), rewritten == null ? classFile : rewritten);
            rewritten = woven == null ? rewritten : woven;
        }
        return rewritten;
    }

    private byte[] weave(Patch patch, List<Site> sites, byte[] classFile) {
        try {
            Weaver.Weaving weaving = Weaver.weave(classFile, sites, options.accepted(patch));
            for (Site site : sites) {
                board.record(patch, site, whatHappened(patch, site, weaving));
            }
            return weaving.fits() ? weaving.classFile() : null;
        } catch (Throwable e) { // the JVM would drop it without a word
            for (Site site : sites) {
                board.record(patch, site, Verdict.failed("rewriting " + site.className(), e));
            }
            return null;
        }
    }

    private Verdict whatHappened(Patch patch, Site site, Weaver.Weaving weaving) {
        Verdict verdict = weaving.verdicts().get(site);
        if (weaving.fits()) {
            return verdict.woven();
        }
        if (verdict.kind() == Verdict.Kind.REFUSED && board.fits(patch, site)) {
            return verdict.because("the class path has a body that we know, so another agent has changed it: name"
                    + " cassandra-hotpatch.jar before that agent in jvm-server.options");
        }
        return verdict;
    }
}

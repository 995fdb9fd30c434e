/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Rewrites the target classes as the JVM loads them, or loads them again. The JVM calls it from every thread that loads a
 * class, so what is not a target must cost no more than one look into a map.
 */
final class PatchTransformer implements ClassFileTransformer {
    private final ClassLoader loader;
    private final Options options;
    private final PatchBoard board;
    /** Never changed, only replaced, by whoever adds or removes a patch; volatile, so that class loading sees the newest. */
    private volatile Map<String, Map<Patch, List<Site>>> targets = Collections.emptyMap();

    /** Written and read by whoever adds or removes a patch, under this object's monitor. */
    private final Set<Patch> patches = new LinkedHashSet<>();

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

    /** Adds a patch whose sites all fit: its classes are rewritten from now on. */
    synchronized void add(Patch patch) {
        patches.add(patch);
        targets = targetsOf(patches);
    }

    /** Takes a patch out: its classes are left as they are from now on. */
    synchronized void remove(Patch patch) {
        patches.remove(patch);
        targets = targetsOf(patches);
    }

    synchronized boolean has(Patch patch) {
        return patches.contains(patch);
    }

    boolean hasTargets() {
        return !targets.isEmpty();
    }

    private static Map<String, Map<Patch, List<Site>>> targetsOf(Set<Patch> patches) {
        Map<String, Map<Patch, List<Site>>> targets = new HashMap<>();
        for (Patch patch : patches) {
            for (Site site : patch.sites()) {
                targets.computeIfAbsent(site.className().replace('.', '/'), name -> new LinkedHashMap<>())
                        .computeIfAbsent(patch, sites -> new ArrayList<>())
                        .add(site);
            }
        }
        return targets;
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
            return verdict.because(
                    "the class path has a body that we know, so another agent has changed it: have that agent"
                            + " leave this class alone, or try naming cassandra-hotpatch.jar before it in jvm-server.options");
        }
        return verdict;
    }
}

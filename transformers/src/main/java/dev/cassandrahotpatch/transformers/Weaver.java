/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.AnalyzerException;
import org.objectweb.asm.tree.analysis.BasicVerifier;

/**
 * The engine: takes the bytes of a class and the sites of one patch in it, says site by site what it found, and gives the
 * rewritten bytes if every site fits. The load-time transformer, the offline checks and the fingerprint tool all come
 * through here, so that none can say something else than another.
 *
 * <p>Never loads a class, never throws for what it finds in the bytes, and leaves all methods but the sites' as they
 * were, byte for byte. Stateless; any thread may call it.
 */
public final class Weaver {
    private static final int ASM_API = Opcodes.ASM9;

    private Weaver() {}

    /** What came of one class. */
    public static final class Weaving {
        private final Map<Site, Verdict> verdicts;
        private final Map<Site, String> fingerprints;
        private final byte[] classFile;

        private Weaving(Map<Site, Verdict> verdicts, Map<Site, String> fingerprints, byte[] classFile) {
            this.verdicts = verdicts;
            this.fingerprints = fingerprints;
            this.classFile = classFile;
        }

        /** The finding for each site that was asked for. */
        public Map<Site, Verdict> verdicts() {
            return verdicts;
        }

        /** The fingerprint found at each site whose method is there. */
        public Map<Site, String> fingerprints() {
            return fingerprints;
        }

        /** Whether every site fits, so that there is a rewritten class. */
        public boolean fits() {
            return classFile != null;
        }

        /** The rewritten class. */
        public byte[] classFile() {
            if (!fits()) {
                throw new IllegalStateException("nothing was rewritten: " + verdicts);
            }
            return classFile;
        }
    }

    /** Where class files come from: a class loader, a folder of jars. */
    @FunctionalInterface
    public interface ClassSource {
        /** Reads a site's class, or gives back null where there is no such class. */
        byte[] classFile(Site site) throws IOException;
    }

    /**
     * Judges all sites of a patch, each in its class as the source has it.
     *
     * @return the finding for each site whose class is there
     */
    public static Map<Site, Verdict> judge(Patch patch, ClassSource source, Set<String> accepted) {
        Map<Site, Verdict> verdicts = new HashMap<>();
        for (Site site : patch.sites()) {
            try {
                byte[] classFile = source.classFile(site);
                if (classFile != null) {
                    verdicts.putAll(weave(classFile, Collections.singletonList(site), accepted)
                            .verdicts());
                }
            } catch (IOException e) {
                verdicts.put(site, Verdict.failed("reading " + site.className(), e));
            }
        }
        return verdicts;
    }

    /**
     * Judges the sites of one patch in one class, and rewrites the class if all of them fit.
     *
     * @param classFile the class's bytes, which are not changed
     * @param sites sites that all lie in this class
     * @param accepted fingerprints that the operator vouches for, beside those that the sites know
     */
    public static Weaving weave(byte[] classFile, List<Site> sites, Set<String> accepted) {
        Map<Site, Verdict> verdicts = new HashMap<>();
        Map<Site, String> fingerprints = new HashMap<>();
        try {
            ClassReader reader = new ClassReader(classFile);
            // sharing the reader's constant pool makes ASM copy every method that it is not asked to change
            ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
            if (sites.size() == 1 && sites.get(0).isWholeClass()) {
                ClassNode classNode = new ClassNode(ASM_API);
                reader.accept(classNode, 0);
                weaveClass(classNode, sites.get(0), verdicts, fingerprints);
                if (sites.get(0).places() == 0 && verdicts.get(sites.get(0)).kind() == Verdict.Kind.FITS) {
                    return new Weaving(verdicts, fingerprints, classFile); // only to be known, not to be changed
                }
                classNode.accept(writer);
            } else {
                reader.accept(new SiteVisitor(writer, sites, accepted, verdicts, fingerprints), 0);
            }
            boolean fits = true;
            for (Site site : sites) {
                Verdict absent = Verdict.refused(site + " is not in this class");
                Verdict verdict = verdicts.computeIfAbsent(site, missing -> absent);
                fits &= verdict.kind() == Verdict.Kind.FITS;
            }
            return new Weaving(verdicts, fingerprints, fits ? writer.toByteArray() : null);
        } catch (RuntimeException | LinkageError e) {
            for (Site site : sites) {
                verdicts.put(site, Verdict.failed("rewriting " + site.className(), e));
            }
            return new Weaving(verdicts, fingerprints, null);
        }
    }

    private static void weaveClass(
            ClassNode classNode, Site site, Map<Site, Verdict> verdicts, Map<Site, String> fingerprints) {
        String fingerprint = Fingerprint.of(classNode);
        fingerprints.put(site, fingerprint);
        Verdict verdict = judge(site, fingerprint, Collections.emptySet());
        if (verdict.kind() == Verdict.Kind.FITS) {
            int places = site.classRewrite().apply(classNode);
            if (places != site.places()) {
                verdict = wrongPlaces(site, places);
            }
            for (MethodNode method : classNode.methods) {
                verdict = verify(site, method, verdict);
            }
        }
        verdicts.put(site, verdict);
    }

    private static Verdict judge(Site site, String fingerprint, Set<String> accepted) {
        String reason = site.notNeeded().get(fingerprint);
        if (reason != null) {
            return Verdict.notNeeded(reason);
        }
        String releases = site.patched().get(fingerprint);
        if (releases != null) {
            return Verdict.fits(releases);
        }
        if (accepted.contains(fingerprint)) {
            return Verdict.fits("accepted by the operator: " + fingerprint);
        }
        return Verdict.refused(site + " has an unknown body, fingerprint " + fingerprint);
    }

    private static Verdict rewrite(Site site, MethodNode method, Verdict fits) {
        int places = site.rewrite().apply(method);
        if (places != site.places()) {
            return wrongPlaces(site, places);
        }
        return verify(site, method, fits);
    }

    private static Verdict wrongPlaces(Site site, int places) {
        return Verdict.refused(site + " has " + places + " places to rewrite instead of " + site.places());
    }

    private static Verdict verify(Site site, MethodNode method, Verdict fits) {
        try {
            new Analyzer<>(new BasicVerifier())
                    .analyzeAndComputeMaxs(site.className().replace('.', '/'), method);
            return fits;
        } catch (AnalyzerException e) {
            return Verdict.failed("checking the rewritten " + site, e);
        }
    }

    /** Passes a class on unchanged but for the sites in it. */
    private static final class SiteVisitor extends ClassVisitor {
        private final List<Site> sites;
        private final Set<String> accepted;
        private final Map<Site, Verdict> verdicts;
        private final Map<Site, String> fingerprints;

        SiteVisitor(
                ClassVisitor next,
                List<Site> sites,
                Set<String> accepted,
                Map<Site, Verdict> verdicts,
                Map<Site, String> fingerprints) {
            super(ASM_API, next);
            this.sites = sites;
            this.accepted = accepted;
            this.verdicts = verdicts;
            this.fingerprints = fingerprints;
        }

        @Override
        public MethodVisitor visitMethod(
                int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            for (Site site : sites) {
                if (site.isIn(name, descriptor)) {
                    return new MethodNode(ASM_API, access, name, descriptor, signature, exceptions) {
                        @Override
                        public void visitEnd() {
                            String fingerprint = Fingerprint.of(this);
                            fingerprints.put(site, fingerprint);
                            Verdict verdict = judge(site, fingerprint, accepted);
                            if (verdict.kind() == Verdict.Kind.FITS) {
                                verdict = rewrite(site, this, verdict);
                            }
                            verdicts.put(site, verdict);
                            accept(next);
                        }
                    };
                }
            }
            return next;
        }
    }
}

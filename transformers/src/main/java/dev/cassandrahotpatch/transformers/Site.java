/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * One method that a patch rewrites, or one whole class for a patch that changes what all of a class's methods may rely on:
 * where it is, the bodies that we know, and what to do with them. Immutable.
 */
public final class Site {
    /** Rewrites one method body whose fingerprint is known. */
    @FunctionalInterface
    public interface Rewrite {
        /**
         * Changes the method's instructions in place.
         *
         * @return how many places were rewritten
         */
        int apply(MethodNode method);
    }

    /** Rewrites a class whose fingerprint is known; may add fields, methods and interfaces. */
    @FunctionalInterface
    public interface ClassRewrite {
        /**
         * Changes the class in place.
         *
         * @return how many places were rewritten
         */
        int apply(ClassNode classNode);
    }

    private final String className;
    private final String methodName;
    private final String descriptor;
    private final boolean optional;
    private final Map<String, String> patched;
    private final Map<String, String> notNeeded;
    private final int places;
    private final Rewrite rewrite;
    private final ClassRewrite classRewrite;

    private Site(Builder builder, int places, Rewrite rewrite, ClassRewrite classRewrite) {
        this.className = builder.className;
        this.methodName = builder.methodName;
        this.descriptor = builder.descriptor;
        this.optional = builder.optional;
        this.patched = Collections.unmodifiableMap(builder.patched);
        this.notNeeded = Collections.unmodifiableMap(builder.notNeeded);
        this.places = places;
        this.rewrite = rewrite;
        this.classRewrite = classRewrite;
    }

    /**
     * Begins a site that is a whole class, by its binary name: the fingerprint covers all that is in it. An operator can't
     * vouch for one: what such a patch relies on can only be read in the class.
     */
    public static Builder ofClass(String className) {
        return new Builder(className, null, null);
    }

    /** Begins a site: the class by its binary name, the method by name and descriptor. */
    public static Builder of(String className, String methodName, String descriptor) {
        return new Builder(className, methodName, descriptor);
    }

    /** The class's binary name, as {@link Class#getName()} has it. */
    public String className() {
        return className;
    }

    /** The name of the class's file on the class path. */
    public String resource() {
        return className.replace('.', '/') + ".class";
    }

    /** The fingerprints that mean "patch this", each with the releases that have that body. */
    public Map<String, String> patched() {
        return patched;
    }

    /** The fingerprints that mean "not needed", each with the reason. */
    public Map<String, String> notNeeded() {
        return notNeeded;
    }

    /** How many places of the body the rewrite must find; any other count is a refusal. */
    int places() {
        return places;
    }

    Rewrite rewrite() {
        return rewrite;
    }

    /** Whether the site is a whole class; it is then the only site of its patch in that class. */
    boolean isWholeClass() {
        return methodName == null;
    }

    /** Whether some releases do not have the class, and need nothing in its place. */
    public boolean isOptional() {
        return optional;
    }

    ClassRewrite classRewrite() {
        return classRewrite;
    }

    boolean isIn(String methodName, String descriptor) {
        return methodName.equals(this.methodName) && descriptor.equals(this.descriptor);
    }

    /** Class and method, short enough for a log line. */
    @Override
    public String toString() {
        String simpleName = className.substring(className.lastIndexOf('.') + 1);
        return isWholeClass() ? simpleName : simpleName + "." + methodName;
    }

    /** Collects what a site knows; used by one thread, while the catalogue is built. */
    public static final class Builder {
        private final String className;
        private final String methodName;
        private final String descriptor;
        private boolean optional;
        private final Map<String, String> patched = new LinkedHashMap<>();
        private final Map<String, String> notNeeded = new LinkedHashMap<>();

        private Builder(String className, String methodName, String descriptor) {
            this.className = className;
            this.methodName = methodName;
            this.descriptor = descriptor;
        }

        /** Adds a body to patch, and says which releases have it. */
        public Builder patch(String fingerprint, String releases) {
            patched.put(fingerprint, releases);
            return this;
        }

        /** Adds a body that does not have the problem, and says why. */
        public Builder notNeeded(String fingerprint, String reason) {
            notNeeded.put(fingerprint, reason);
            return this;
        }

        /** Says that a release without this class needs nothing in its place. */
        public Builder optional() {
            optional = true;
            return this;
        }

        /** Ends a site that is a whole class; a rewrite of 0 places only checks that the class is one that we know. */
        public Site rewriteClass(int places, ClassRewrite rewrite) {
            return new Site(this, places, null, rewrite);
        }

        /** Ends the site with its rewrite and the number of places that the rewrite must find. */
        public Site rewrite(int places, Rewrite rewrite) {
            return new Site(this, places, rewrite, null);
        }
    }
}

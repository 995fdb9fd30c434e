/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;

/**
 * Defines the classes of one package anew, a patch's targets among them in their rewritten form, so that stock and patched
 * code can be run beside each other. All other classes are the test's own.
 */
final class PatchedClassLoader extends ClassLoader {
    private final String packagePrefix;
    private final Patch patch;

    PatchedClassLoader(String packageName, Patch patch) {
        super(PatchedClassLoader.class.getClassLoader());
        this.packagePrefix = packageName + ".";
        this.patch = patch;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.startsWith(packagePrefix)) {
            return super.loadClass(name, resolve);
        }
        synchronized (getClassLoadingLock(name)) {
            Class<?> loaded = findLoadedClass(name);
            if (loaded == null) {
                byte[] classFile = bytes(name);
                loaded = defineClass(name, classFile, 0, classFile.length);
            }
            return loaded;
        }
    }

    private byte[] bytes(String name) {
        byte[] classFile = ClassBytes.of(name);
        for (Site site : patch.sites()) {
            if (site.className().equals(name)) {
                Weaver.Weaving weaving =
                        Weaver.weave(classFile, Collections.singletonList(site), Collections.emptySet());
                assertThat(weaving.fits()).as("%s", weaving.verdicts()).isTrue();
                return weaving.classFile();
            }
        }
        return classFile;
    }
}

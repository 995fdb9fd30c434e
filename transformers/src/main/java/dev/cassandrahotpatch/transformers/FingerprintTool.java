/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.util.Collections;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Prints, for jars, what each patch finds in them: the source of the fingerprints in the patches' classes.
 *
 * <p>{@code java -cp cassandra-hotpatch.jar dev.cassandrahotpatch.transformers.FingerprintTool <jar>...}
 */
public final class FingerprintTool {
    private FingerprintTool() {}

    /** Prints a line for each site in each of the jars; jars without a site are passed over. */
    public static void main(String[] jars) throws IOException {
        if (jars.length == 0) {
            System.err.println("usage: FingerprintTool <jar>...");
            return;
        }
        for (String jar : jars) {
            print(new File(jar), System.out);
        }
    }

    private static void print(File jar, PrintStream out) throws IOException {
        try (ZipFile zip = new ZipFile(jar)) {
            for (Patch patch : Catalogue.patches()) {
                for (Site site : patch.sites()) {
                    ZipEntry entry = zip.getEntry(site.resource());
                    if (entry == null) {
                        continue;
                    }
                    try (InputStream in = zip.getInputStream(entry)) {
                        Weaver.Weaving weaving = Weaver.weave(
                                ClassFiles.read(in), Collections.singletonList(site), Collections.emptySet());
                        out.printf(
                                "%s %s %s %s %s%n",
                                jar.getName(),
                                patch,
                                site,
                                weaving.fingerprints().get(site),
                                weaving.verdicts().get(site));
                    }
                }
            }
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;

/** An agent for the tests that has a JVM claim to be of a Java yet to come; the command line can't, the JVM overrides it. */
public final class NewerJava {
    private NewerJava() {}

    /** The JVM calls this ahead of our agent. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        System.setProperty("java.specification.version", "99");
    }

    /** The JVM option that has it claim so; makes the agent's jar in a folder. */
    static String option(Path folder) throws IOException {
        return "-javaagent:" + TestJar.agent(folder.resolve("newer-java.jar"), NewerJava.class);
    }
}

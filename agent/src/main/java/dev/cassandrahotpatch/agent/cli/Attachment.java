/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * The attach API of the Java that runs this command, {@code com.sun.tools.attach}. By reflection, because a JRE does not have
 * it, and Java 8 has it in a jar that is not on the class path. To be used by one thread.
 */
final class Attachment implements AutoCloseable {
    private static final String API = "com.sun.tools.attach.VirtualMachine";

    /** Found at first use, and only once: the native library behind it can be loaded by one class loader only. */
    private static Class<?> api;

    private final Object vm;

    private Attachment(Object vm) {
        this.vm = vm;
    }

    /**
     * Attaches to a JVM, which sends the process a signal that only a JVM survives.
     *
     * @throws IOException if the JVM does not let us
     */
    static Attachment to(String pid) throws Failure, IOException {
        return new Attachment(call(null, "attach", pid));
    }

    /** The ids of the JVMs that the API lists and whose main class, with its arguments, begins like that. */
    static List<String> running(String mainClass) throws Failure, IOException {
        List<String> pids = new ArrayList<>();
        for (Object descriptor : (List<?>) call(null, "list")) {
            if (call(descriptor, "displayName").toString().startsWith(mainClass)) {
                pids.add(call(descriptor, "id").toString());
            }
        }
        return pids;
    }

    Properties systemProperties() throws Failure, IOException {
        return (Properties) call(vm, "getSystemProperties");
    }

    /** Has the JVM take JMX clients of its own user, and gives back their address; does no more where it takes them. */
    String startLocalManagementAgent() throws Failure, IOException {
        return (String) call(vm, "startLocalManagementAgent");
    }

    void loadAgent(String jar) throws Failure, IOException {
        try {
            call(vm, "loadAgent", jar);
        } catch (IOException e) {
            // Java 8 takes the answer of a Java from 10 on, which is that all is well, for an error
            if (!"0".equals(e.getCause().getMessage())) {
                throw e;
            }
        }
    }

    @Override
    public void close() throws Failure, IOException {
        call(vm, "detach");
    }

    private static Object call(Object target, String method, String... arguments) throws Failure, IOException {
        Class<?>[] types = new Class<?>[arguments.length];
        Arrays.fill(types, String.class);
        try {
            Class<?> owner = target == null || api().isInstance(target)
                    ? api()
                    : Class.forName(API + "Descriptor", false, api().getClassLoader());
            return owner.getMethod(method, types).invoke(target, (Object[]) arguments);
        } catch (InvocationTargetException e) {
            Throwable cause = e.getCause();
            throw new IOException(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
        } catch (ReflectiveOperationException e) {
            throw Failure.unreachable("the attach API of this Java is not one that we know (" + e
                    + "): run this with a JDK" + " from 8 to 25");
        }
    }

    private static Class<?> api() throws Failure {
        if (api == null) {
            try {
                api = Class.forName(API, true, loader());
            } catch (ClassNotFoundException e) {
                throw Failure.unreachable(
                        "this Java, " + System.getProperty("java.home") + ", can't attach to others, because it"
                                + " is a JRE (it lacks the module jdk.attach): run this with the java of a JDK; the node may keep"
                                + " its JRE");
            } catch (MalformedURLException e) {
                throw new IllegalStateException(e);
            }
        }
        return api;
    }

    private static ClassLoader loader() throws MalformedURLException {
        File tools = new File(System.getProperty("java.home"), "../lib/tools.jar"); // where a JDK 8 has it
        return tools.isFile()
                ? new URLClassLoader(new URL[] {tools.toURI().toURL()})
                : ClassLoader.getSystemClassLoader();
    }
}

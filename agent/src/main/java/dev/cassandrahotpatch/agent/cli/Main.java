/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.Agent;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The command line, {@code java -jar cassandra-hotpatch.jar}. Runs in a JVM of its own: nothing in this package is loaded
 * in a Cassandra node.
 */
@Command(
        name = Main.NAME,
        description = "Shows, checks, adds and removes patches of Apache Cassandra nodes.",
        subcommands = {
            ListCommand.class,
            CheckCommand.class,
            AttachCommand.class,
            StatusCommand.class,
            SwitchCommand.Enable.class,
            SwitchCommand.Disable.class
        },
        scope = ScopeType.INHERIT,
        mixinStandardHelpOptions = true,
        versionProvider = Main.Version.class,
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {
            "0:fine",
            "1:a patch is not as wanted: the output says which and why",
            "2:the command line makes no sense here",
            "3:the node, or a file, could not be reached"
        })
public final class Main {
    static final String NAME = "java -jar cassandra-hotpatch.jar";

    /** No command takes more than seconds, and a process that hangs is one of those that operators look at. */
    private static final long LIMIT_SECONDS = 60;

    @Option(names = "--json", scope = ScopeType.INHERIT, description = "Print JSON, for programs.")
    private boolean json;

    /** Runs a command and ends the JVM with its exit code. */
    public static void main(String[] arguments) {
        Thread watchdog = new Thread(Main::endWhenTimeIsUp, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        System.exit(commandLine().execute(arguments));
    }

    /** The attach API and JMX wait for ever for a process that is there and does not answer. */
    private static void endWhenTimeIsUp() {
        try {
            TimeUnit.SECONDS.sleep(LIMIT_SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return;
        }
        System.err.println(
                "error: no answer within " + LIMIT_SECONDS + " s: the process is there but hangs, or is stopped");
        Runtime.getRuntime().halt(ExitCode.UNREACHABLE);
    }

    /** The command line, ready to execute. */
    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setParameterExceptionHandler(Main::misused)
                .setExecutionExceptionHandler((error, command, parsed) -> failed(error, command));
    }

    boolean json() {
        return json;
    }

    private static int misused(ParameterException error, String[] arguments) {
        CommandLine command = error.getCommandLine();
        PrintWriter err = command.getErr();
        printError(command, error.getMessage());
        if (arguments.length == 0) {
            command.usage(err);
            return ExitCode.USAGE;
        }
        UnmatchedArgumentException.printSuggestions(error, err);
        err.println("see " + command.getCommandSpec().qualifiedName() + " --help");
        return ExitCode.USAGE;
    }

    private static int failed(Exception error, CommandLine command) {
        if (error instanceof Failure) {
            printError(command, error.getMessage());
            return ((Failure) error).exitCode();
        }
        if (error instanceof IOException || error instanceof UndeclaredThrowableException) {
            Throwable cause = error instanceof IOException ? error : error.getCause();
            printError(command, "the JVM stopped answering (" + cause + "): see whether it still runs, and try again");
        } else {
            printError(command, "this is a bug of Cassandra Hotpatch, please report it:");
            error.printStackTrace(command.getErr());
        }
        return ExitCode.UNREACHABLE;
    }

    private static void printError(CommandLine command, String sentence) {
        command.getErr().println(command.getColorScheme().errorText("error: " + sentence));
    }

    /** Reads the version from the jar. */
    static final class Version implements IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"Cassandra Hotpatch " + Agent.version()};
        }
    }
}

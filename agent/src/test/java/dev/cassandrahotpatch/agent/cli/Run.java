/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import java.io.PrintWriter;
import java.io.StringWriter;

/**
 * A command line that was run in this JVM, and what came of it.
 *
 * @param exit its exit code
 * @param out what it printed
 * @param err what it printed on standard error
 */
record Run(int exit, String out, String err) {
    static Run of(Object... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        String[] texts = new String[arguments.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = arguments[i].toString();
        }
        int exit = Main.commandLine()
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(texts);
        return new Run(exit, out.toString(), err.toString());
    }
}

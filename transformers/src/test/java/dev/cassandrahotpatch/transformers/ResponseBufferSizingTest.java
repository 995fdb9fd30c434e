/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;

class ResponseBufferSizingTest {
    static final String TARGET = "org.apache.cassandra.db.ReadResponse$LocalDataResponse";

    @Test
    void theWovenCallsExistInTheRuntimeAsTheyAreCalled() throws Exception {
        List<String> called = new ArrayList<>();
        byte[] woven = Weaver.weave(ClassBytes.of(TARGET), ResponseBufferSizing.PATCH.sites(), Collections.emptySet())
                .classFile();
        for (AbstractInsnNode instruction : ClassBytes.method(woven, "build").instructions) {
            if (instruction instanceof MethodInsnNode call && call.owner.startsWith("dev/cassandrahotpatch/")) {
                called.add(call.name);
                assertThat(ClassBytes.method(ClassBytes.of(call.owner.replace('/', '.')), call.name).desc)
                        .isEqualTo(call.desc);
                assertThat(ResponseBufferSizing.PATCH.runtimeClasses()).contains(call.owner.replace('/', '.'));
            }
        }
        assertThat(called).containsExactly("initialSize", "finish");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ChunkProducersTest {
    private final ChunkProducers producers = new ChunkProducers();

    @Test
    void thoseWhoComeAreCountedAtOnce() {
        count(7, 1);
        assertThat(producers.active()).isEqualTo(1);
        count(7, 2);
        assertThat(producers.active()).isEqualTo(3);
    }

    @Test
    void thoseWhoHaveGoneAreForgottenAfterAWholePeriod() {
        count(7, 8);
        count(8, 1);
        assertThat(producers.active()).isEqualTo(8);
        count(9, 1);
        assertThat(producers.active()).isEqualTo(1);
    }

    @Test
    void whatWasBeforeAPauseDoesNotCount() {
        count(7, 8);
        count(20, 1);
        assertThat(producers.active()).isEqualTo(1);
    }

    @Test
    void aThreadThatComesLateWithAPeriodThatIsOverStillCounts() {
        count(7, 2);
        count(8, 2);
        count(7, 1);
        assertThat(producers.active()).isEqualTo(3);
        count(9, 1);
        assertThat(producers.active()).isEqualTo(3);
    }

    @Test
    void aPeriodIsAnEighthOfASecond() {
        long now = System.nanoTime();
        assertThat(ChunkProducers.periodOf(now + TimeUnit.SECONDS.toNanos(1)) - ChunkProducers.periodOf(now))
                .isBetween(7L, 8L);
    }

    private void count(long period, int times) {
        for (int i = 0; i < times; i++) {
            producers.count(period);
        }
    }
}

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
        count(7, 3);
        assertThat(producers.active()).isEqualTo(3);
    }

    @Test
    void aThreadWithManyFilesIsCountedOnce() {
        count(7, 1);
        count(7, 1);
        producers.count(7);
        producers.count(7);
        assertThat(producers.active()).isEqualTo(2);
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
        count(8, 2);
        producers.count(7, -3);
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

    /** Counts threads of so many ids, which no real thread has. */
    private void count(long period, int threads) {
        for (int i = 1; i <= threads; i++) {
            producers.count(period, -1_000 - i);
        }
    }
}

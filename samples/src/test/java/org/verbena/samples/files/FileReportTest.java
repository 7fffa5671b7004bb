package org.verbena.samples.files;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What is printed of a file, whatever its size and however long its name. */
class FileReportTest {
    @Test
    void printsSmallFilesInUnitsThatHaveDigits() {
        assertThat(FileReport.of("a.txt", 5, 0, TimeUnit.MICROSECONDS.toNanos(2500), "ab")
                        .line())
                .isEqualTo("a.txt, 5 bytes in 2.5 ms, 2.0 kB/s, SHA-256 ab");
        assertThat(FileReport.of("a.txt", 1, 0, TimeUnit.MILLISECONDS.toNanos(1), "ab")
                        .line())
                .isEqualTo("a.txt, 1 byte in 1.0 ms, 1.0 kB/s, SHA-256 ab");
        assertThat(FileReport.of("empty", 0, 0, TimeUnit.MILLISECONDS.toNanos(1), "ab")
                        .line())
                .isEqualTo("empty, 0 bytes in 1.0 ms, 0.0 kB/s, SHA-256 ab");
    }

    @Test
    void printsLargeFilesInSecondsAndMegabytes() {
        assertThat(FileReport.of("film", 300_000_000, 100_000_000, TimeUnit.SECONDS.toNanos(2), "ab")
                        .line())
                .isEqualTo("film, 300000000 bytes, resumed at 100000000, in 2.00 s, 100.0 MB/s, SHA-256 ab");
    }

    @Test
    void theBarCountsBytesOfFilesThatHaveFew() {
        assertThat(SendFile.Unit.of(5)).isEqualTo(SendFile.Unit.BYTES);
        assertThat(SendFile.Unit.of(10_239)).isEqualTo(SendFile.Unit.BYTES);
        assertThat(SendFile.Unit.of(10_240)).isEqualTo(SendFile.Unit.KIBIBYTES);
        assertThat(SendFile.Unit.of(10 << 20)).isEqualTo(SendFile.Unit.MEBIBYTES);
    }

    @Test
    void theBarHasRoomBesideALongName() {
        assertThat(SendFile.shortName("film.mkv")).isEqualTo("film.mkv");
        String thirty = "x".repeat(26) + ".mkv";
        assertThat(SendFile.shortName(thirty)).isEqualTo(thirty);
        assertThat(SendFile.shortName("x" + thirty)).isEqualTo("x".repeat(14) + "\u2026" + "x".repeat(11) + ".mkv");
        // Characters beyond 16 bits are not cut in two.
        assertThat(SendFile.shortName("\ud83c\udf3f".repeat(40)).codePointCount(0, 59))
                .isEqualTo(30);
    }
}
